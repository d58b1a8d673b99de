"""What `proc` does to a record: commands in private folders, chains; what passes beside them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tarviz.commands.proc import proc
from tarviz.model.errors import DataError, UsageError
from tarviz.ops import Func
from tarviz.tools.record_files import Collecting
from tarviz.tools.record_work import Commands, script_line
from tests.commands.conftest import plain


def test_a_thread_that_begins_after_the_end_starts_no_command(tmp_path: Path):
    work = Commands("touch begun", Collecting(), None, any_key=False, timeout=None, tmp=tmp_path)
    with work:
        work.kill()
        with pytest.raises(DataError, match="the work was stopped"):
            work._worker()

    assert [] == os.listdir(tmp_path)


def made_up(record: dict[str, Any]) -> dict[str, Any]:
    """Values of every type that is written."""
    return {**record, "text": "größe", "whole": 7, "part": 0.5, "view": memoryview(b"\0v"), "array": bytearray(b"a")}


class TestChain:
    def test_text_and_numbers_are_written_as_text(self, make: Callable[..., Path], tmp_path: Path):
        proc(make([("a", {"txt": b"kept", "cls": b"3"})]), tmp_path / "o.tar", op=Func(made_up))

        fields = {"txt": b"kept", "cls": b"3", "text": "größe".encode(), "whole": b"7", "part": b"0.5", "view": b"\0v", "array": b"a"}
        assert [("a", fields)] == plain(tmp_path / "o.tar")

    @pytest.mark.parametrize(("value", "what"), [(True, "bool"), (None, "NoneType"), ([1], "list")])
    def test_what_else_there_is_wants_an_encode(self, make: Callable[..., Path], tmp_path: Path, value: Any, what: str):
        with pytest.raises(DataError, match=rf"the field 'odd' is a {what} after the chain.*encode\(odd\)"):
            proc(make([("a", {"txt": b""})]), tmp_path / "o.tar", op=Func(lambda record: {**record, "odd": value}))

    def test_a_field_under_another_name_is_written_anew(self, make: Callable[..., Path], tmp_path: Path):
        proc(make([("a", {"txt": b"1", "cls": b"2"})]), tmp_path / "o.tar", op="rename(new=txt)|keep(cls, new)")

        assert [("a", {"cls": b"2", "new": b"1"})] == plain(tmp_path / "o.tar")


class TestFieldsThatPass:
    CONTENT: ClassVar = [("a", {"x": b"1", "cls": b"2", "y": b"3"})]

    def test_stand_in_their_order_whatever_the_command_leaves(self, make: Callable[..., Path], tmp_path: Path):
        for command, expected in [
            ("true", [("a", {"x": b"1", "cls": b"2", "y": b"3"})]),
            ("rm sample.cls", [("a", {"x": b"1", "y": b"3"})]),
            ("mv sample.cls sample-1.cls", [("a", {"x": b"1", "y": b"3"}), ("a-1", {"cls": b"2"})]),
            ("touch sample.b sample.a", [("a", {"x": b"1", "cls": b"2", "y": b"3", "a": b"", "b": b""})]),
        ]:
            proc(make(self.CONTENT), tmp_path / "o.tar", command=command, fields="cls")
            found = plain(tmp_path / "o.tar")

            assert expected == found
            assert [list(fields) for _, fields in expected] == [list(fields) for _, fields in found]

    def test_do_not_pass_where_fields_stand_alone(self, make: Callable[..., Path], tmp_path: Path):
        proc(make(self.CONTENT), tmp_path / "o.tar", command="rm sample.cls", fields="cls", only_fields=True)

        assert [] == plain(tmp_path / "o.tar")


class TestScripts:
    def test_the_line_runs_it_as_it_can_be_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        Path("a b.sh").write_text("")

        assert f". '{tmp_path}/a b.sh'" == script_line("a b.sh", None)
        assert f"exec python3 -S 'my file' '{tmp_path}/a b.sh'" == script_line("a b.sh", "python3 -S 'my file'")
        Path("a b.sh").chmod(0o700)
        assert f"exec '{tmp_path}/a b.sh'" == script_line("a b.sh", None)
        with pytest.raises(UsageError, match="there is no script 'none'"):
            script_line("none", None)
