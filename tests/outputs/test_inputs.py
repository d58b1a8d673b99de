from __future__ import annotations

import os
import sys

import pytest

from tarviz.model.errors import UsageError
from tarviz.outputs import Names
from tarviz.outputs.inputs import Inputs


@pytest.fixture
def shard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "d" / "a-1.tar"
    path.parent.mkdir()
    path.write_bytes(b"a tar")
    return path


def links(shard):
    """Other names of the shard."""
    os.symlink(shard, "link.tar")
    os.symlink(shard.parent, "folder")
    os.link(shard, "hard.tar")
    os.symlink("link.tar", "far.tar")
    return [shard, "d/a-1.tar", "./d/../d/a-1.tar", f"file://{shard}", "link.tar", "far.tar", "hard.tar", "folder/a-1.tar"]


class TestOneOutput:
    def test_an_input_is_refused_under_whatever_name(self, shard):
        names = links(shard)
        for name in names:
            for output in names:
                with pytest.raises(UsageError, match="one of the inputs"):
                    Inputs([str(name)]).refuse(str(output))

    @pytest.mark.parametrize("name", ["b.tar", "d/b.tar", "no/a-1.tar", "/dev/null", "memory://d/a-1.tar", "-"])
    def test_anything_else_is_not(self, shard, name):
        Inputs([str(shard), "http://host/a.tar", "-"]).refuse(name)

    @pytest.mark.parametrize(
        "name", ["http://host/a%20b.tar", "HTTP://Host/a b.tar?X-Amz-Signature=1", "http://me:secret@host/a b.tar", "http://host/a b.tar#x"]
    )
    def test_a_remote_input_is_the_same_whatever_user_and_signature(self, name):
        with pytest.raises(UsageError, match="one of the inputs") as error:
            Inputs(["http://host/a b.tar?X-Amz-Signature=2"]).refuse(name)

        assert "secret" not in str(error.value)

    def test_standard_output_may_be_an_input(self, shard, monkeypatch):
        with open(shard, "ab") as out:
            monkeypatch.setattr(sys, "stdout", out)
            for name in ("-", f"/proc/self/fd/{out.fileno()}"):
                with pytest.raises(UsageError, match="is one of the inputs"):
                    Inputs([str(shard)]).refuse(name)

    def test_standard_input_may_be_the_output(self, shard, monkeypatch):
        with open(shard, "rb") as source:
            monkeypatch.setattr(sys, "stdin", source)
            with pytest.raises(UsageError, match="the output is one of the inputs"):
                Inputs(["-"]).refuse(str(shard))

    def test_terminals_and_devices_are_read_and_written(self, monkeypatch):
        with open(os.devnull, "rb") as source, open(os.devnull, "ab") as out:
            monkeypatch.setattr(sys, "stdin", source)
            monkeypatch.setattr(sys, "stdout", out)
            Inputs(["-", os.devnull]).refuse("-")
            Inputs(["-", os.devnull]).refuse(os.devnull)


class TestCountedOutputs:
    @pytest.mark.parametrize("text", ["d/a-{shard}.tar", "d/a-{}.tar", "./d/../d/a-{shard:01d}.tar", "folder/a-{}.tar", "{}/a-1.tar"])
    def test_any_of_them_may_be_an_input(self, shard, text):
        os.symlink(shard.parent, "folder")
        os.symlink(shard.parent, "7")
        with pytest.raises(UsageError, match="one of the inputs"):
            Inputs([str(shard)]).refuse_any(Names(text))

    def test_a_link_among_them_is_found(self, shard):
        os.symlink(shard, "out-0012.tar")
        with pytest.raises(UsageError, match="out-0012"):
            Inputs([str(shard)]).refuse_any(Names("out-{shard:04d}.tar"))

    def test_names_that_go_on_by_themselves_too(self, shard):
        with pytest.raises(UsageError, match=r"d/a-1\.tar"):
            Inputs([str(shard)]).refuse_any(Names("d/a.tar"))

    def test_only_those_that_will_be_written(self, shard):
        inputs = Inputs([str(shard)])
        inputs.refuse_any(Names("d/a-{shard}.tar"), first=2)
        inputs.refuse_any(Names("d/a-{shard}.tar"), first=0, count=1)
        inputs.refuse_any(Names("d/a-{shard:03d}.tar"))
        inputs.refuse_any(Names("d/a.tar"), count=1)
        with pytest.raises(UsageError, match="one of the inputs"):
            inputs.refuse_any(Names("d/a-{shard}.tar"), first=0, count=2)

    def test_signs_of_patterns_in_a_name_are_letters(self, shard):
        os.rename(shard, shard.with_name("a[1]-3.tar"))
        with pytest.raises(UsageError, match="one of the inputs"):
            Inputs(["d/a[1]-3.tar"]).refuse_any(Names("d/a[1]-{}.tar"))

    def test_remote_ones_are_found_by_number(self):
        inputs = Inputs(["http://bucket/train-0007.tar"])
        inputs.refuse_any(Names("http://bucket/train-{shard}.tar"))
        with pytest.raises(UsageError, match="train-0007"):
            inputs.refuse_any(Names("http://bucket/train-{shard:04d}.tar"))
