"""A command, a script or a chain on every record: its files become the fields, nothing else is touched."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tarviz.commands.proc import proc
from tarviz.errors import TarvizError, UsageError
from tarviz.testing.strategies import numbered
from tests.commands.conftest import plain
from tests.conftest import DATA

Make = Callable[..., Path]
pytestmark = pytest.mark.skipif(not shutil.which("sh"), reason="commands need a shell")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tar"


class TestCommands:
    def test_a_file_it_makes_is_a_field(self, make: Make, out: Path):
        result = proc(make(numbered(5)), out, command="printf '%s' \"$(wc -c < sample.png | tr -d ' ')\" > sample.size")

        assert [b"600"] * 5 == [fields["size"] for _, fields in plain(out)]
        assert (5, 0) == (result.records, result.exit_code)

    def test_a_file_it_removes_is_gone_and_the_rest_stays(self, make: Make, out: Path):
        proc(make(numbered(3)), out, command="rm sample.cls")

        assert [(key, {"png": fields["png"]}) for key, fields in numbered(3)] == plain(out)

    def test_the_key_is_in_the_environment(self, make: Make, out: Path):
        proc(make(numbered(2)), out, command='printf %s "$TARVIZ_KEY" > sample.key')

        assert [key.encode() for key, _ in numbered(2)] == [fields["key"] for _, fields in plain(out)]

    def test_the_order_stays_with_many_workers(self, make: Make, out: Path):
        proc(make(numbered(40)), out, command="sleep 0.0$((RANDOM % 5))", workers=4)

        assert numbered(40) == plain(out)

    def test_several_outputs_are_several_records(self, make: Make, out: Path):
        proc(make(numbered(1)), out, command="cp sample.png sample-1.png; cp sample.png sample-2.png; rm sample.png sample.cls")

        assert ["train/n00000000-1", "train/n00000000-2"] == [key for key, _ in plain(out)]

    def test_a_failing_command_is_an_error_and_nothing_is_written(self, make: Make, out: Path):
        with pytest.raises(TarvizError) as caught:
            proc(make(numbered(3)), out, command="exit 3")

        assert ("E_COMMAND", "train/n00000000") == (caught.value.code, caught.value.key)
        assert not out.exists()

    def test_a_failing_record_is_left_out_and_counted_when_asked(self, make: Make, out: Path):
        result = proc(make(numbered(10)), out, command='test "$(cat sample.cls)" != 4', on_error="skip")

        assert (9, 1) == (result.records, result.exit_code)
        assert "train/n00000004" not in [key for key, _ in plain(out)]

    def test_names_never_reach_the_shell_and_no_file_lies_outside(self, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch):
        home = tmp_path / "home"
        work = tmp_path / "work"
        home.mkdir()
        work.mkdir()
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.chdir(work)
        for path in sorted((DATA / "corpora" / "generated").glob("S*.tar")):
            try:
                proc(path, out, command="true", tmp=work, strict=False)
            except TarvizError:
                continue

        assert [] == list(home.rglob("*"))
        assert [] == list(work.rglob("*"))

    def test_one_of_command_script_and_op_is_asked_for(self, make: Make, out: Path):
        with pytest.raises(UsageError, match="one of command, script and op"):
            proc(make(numbered(1)), out)

    def test_a_script_is_run_by_itself(self, make: Make, out: Path, tmp_path: Path):
        script = tmp_path / "do.sh"
        script.write_text("#!/bin/sh\nprintf hi > sample.txt\n")
        os.chmod(script, 0o755)
        proc(make(numbered(2)), out, script=script)

        assert [b"hi"] * 2 == [fields["txt"] for _, fields in plain(out)]


class TestOps:
    def test_a_chain_needs_no_process(self, digits: Path, out: Path):
        proc(digits / "test-0000.tar", out, op="decode(png)|resize(png, (14, 10))|encode(png)", workers=2)
        first = plain(out)[0][1]

        assert (10, 14) == Image.open(io.BytesIO(first["png"])).size  # width, height
        assert ["png", "cls"] == list(first)
