"""Outputs that are commands, as the tarproc tools had them (`-o '|gzip > x.tgz'`): whole or not at all, their exit code looked at."""

from __future__ import annotations

import gzip
import os
import tarfile

import pytest

from tarviz.commands.cat import cat
from tarviz.model.errors import StoreError
from tarviz.outputs import piped
from tarviz.testing.strategies import numbered_records


@pytest.fixture
def folder(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)
    make(numbered_records(10), "a.tar")
    return tmp_path


class TestOldNames:
    def test_tarsplit_pipes_each_shard(self, folder, bash):
        made = bash("tarsplit -n 4 -o '|gzip > x-{shard}.tgz' a.tar")

        assert 0 == made.returncode, made.stderr
        assert ["x-0.tgz", "x-1.tgz", "x-2.tgz"] == sorted(name for name in os.listdir() if "x-" in name)
        with tarfile.open("x-0.tgz") as tar:
            assert 4 == len({name.partition(".")[0] for name in tar.getnames()})

    def test_a_command_without_a_counter_gets_one_shard_after_the_other(self, folder, bash):
        made = bash("tarsplit -n 4 -o '|tar tf - | wc -l >> counts' a.tar")

        assert 0 == made.returncode, made.stderr
        assert 3 == len((folder / "counts").read_text().split())

    def test_tarproc_and_tarscat_pipe_all(self, folder, bash):
        made = bash("tarscat a.tar -o '|gzip > b.tgz' && tarproc -c true a.tar -o '|cat > c.tar'")

        assert 0 == made.returncode, made.stderr
        content = (folder / "c.tar").read_bytes()
        assert content == gzip.decompress((folder / "b.tgz").read_bytes())
        assert (folder / "a.tar").read_bytes().rstrip(b"\0") == content.rstrip(b"\0")

    def test_what_the_command_prints_is_alone_on_standard_output(self, folder, bash):
        made = bash("tarscat a.tar -o '|cat'")

        assert (folder / "a.tar").read_bytes().rstrip(b"\0") == made.stdout.rstrip(b"\0")

    def test_a_command_that_fails_is_an_error(self, folder, bash):
        made = bash("tarscat a.tar -o '|cat > /dev/null; exit 3'")

        assert 2 == made.returncode
        assert b"the command ended with exit code 3" in made.stderr

    def test_a_command_never_gets_half_a_tar(self, folder, bash):
        with open("a.tar", "r+b") as file:
            file.truncate(os.path.getsize("a.tar") // 2 + 100)

        made = bash("tarscat a.tar -o '|cat > b.tar'")

        assert 2 == made.returncode
        assert not (folder / "b.tar").exists()


class TestElsewhere:
    def test_a_bar_is_part_of_a_name(self, folder):
        cat("a.tar", "|touch ran")

        assert ["a.tar", "|touch ran"] == sorted(name for name in os.listdir() if not name.startswith("."))

    def test_a_signal_is_named(self, folder):
        with piped.allow(), pytest.raises(StoreError, match="ended by SIGKILL"):
            cat("a.tar", "|kill -9 $$")
