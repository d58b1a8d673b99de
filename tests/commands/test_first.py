"""The first record that an expression finds: its payload out, its name beside, nothing executed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz import cli
from tarviz.commands.first import FirstRecord, first
from tarviz.model.errors import DataError, Fault, UsageError
from tarviz.testing.strategies import shard
from tests.read.tars import END, member

Make = Callable[..., Path]
CONTENT = [
    ("a", {"cls": b"1", "jpg": b"one", "json": b'{"w": 10}'}),
    ("b", {"cls": b"3", "json": b'{"w": 400}'}),
    ("c", {"cls": b"3", "png": b"\0three", "json": b'{"w": 20}'}),
    ("d", {"cls": b"3", "jpg": b"four", "json": b'{"w": 500}'}),
]


class TestFirst:
    def test_finds(self, make):
        for options, key, payload in [
            ({}, "a", b"one"),
            ({"where": "cls == 3"}, "c", b"\0three"),
            ({"where": "cls == 3 and json.w > 300"}, "d", b"four"),
            ({"where": "cls == 3", "field": "json"}, "b", b'{"w": 400}'),
            ({"where": "size(png) > 2"}, "c", b"\0three"),
            ({"where": "d"}, "d", b"four"),
            ({"field": "PNG;jpg"}, "a", b"one"),
            ({"select": 'int(_["cls"]) == 3'}, "c", b"\0three"),
        ]:
            found = first(make(CONTENT), **options)

            assert (key, payload, 0) == (found.key, found.payload, found.exit_code)

    def test_nothing_is_one(self, make: Make, tmp_path: Path):
        found = first(make(CONTENT), tmp_path / "o", where="cls == 9")

        assert (None, 1, "no such record among 4") == (found.key, found.exit_code, str(found))
        assert not (tmp_path / "o").exists()

    def test_what_was_warned_of_or_skipped_before_it_is_one_too(self, make: Make):
        """So a script sees that the record may not be the first."""
        warned = make(member("README", b"1") + member("a.jpg", b"2") + member("b.jpg", b"3") + END)
        after = b"".join(member(f"{name}.jpg", name.encode()) for name in "bcd") + END
        skipped = make(member("a.cls", b"1") + b"x" * 512 + after, "b.tar")

        assert [1, 1] == [first(warned).exit_code, first(skipped, on_error="skip").exit_code]
        assert (["W_NO_KEY"], "a") == (list(first(warned).report.counts()), first(warned).key)

    def test_reads_no_further(self, make: Make, tmp_path: Path):
        data = shard([*CONTENT, *((f"e{at}", {"x": b"x" * 70_000}) for at in range(40))])

        assert "a" == first(make(data[:-100_000])).key
        with pytest.raises(DataError):
            first(make(data[:-100_000]), where="cls == 9")

    @pytest.mark.parametrize(
        "where",
        ["__import__('os').system('touch x')", "cls.__class__ == 1", "open('x')", "(lambda: 1)()", "cls == (", "_ == 3", "_[0] == 3"],
    )
    def test_an_expression_cannot_run_anything(self, make: Make, where: str):
        with pytest.raises(UsageError):
            first(make(CONTENT), where=where)

    def test_one_field_only(self, make: Make):
        with pytest.raises(UsageError):
            first(make(CONTENT), field="jpg png")


class TestShell:
    def test_the_payload_goes_out_and_the_name_beside(self, make: Make, bash: Any):
        make(CONTENT)

        done = bash("tarviz first -S 'cls == 3' a.tar")

        assert (0, b"\0three", b"a.tar record 2: c.png, 6 B\n") == (done.returncode, done.stdout, done.stderr)

    def test_into_a_file_with_json(self, make: Make, bash: Any, tmp_path: Path):
        make(CONTENT)

        done = bash("tarviz first -o o.jpg --json < a.tar")

        assert b"one" == (tmp_path / "o.jpg").read_bytes()
        assert "a" == json.loads(done.stderr)["key"]

    def test_a_terminal_gets_text_made_safe_and_no_other_bytes(self, make: Make, bash: Any):
        make([("a", {"txt": b"red \x1b[31m\n"}), ("b", {"bin": b"\0\1"})])

        assert b"red \\x1b[31m\r\n" in bash("script -qec 'tarviz first -f txt a.tar' /dev/null").stdout
        assert b"is a terminal" in bash("script -qec 'tarviz first -f bin a.tar' /dev/null").stdout

    def test_nothing_found_is_exit_code_one(self, make: Make, bash: Any):
        make(CONTENT)

        done = bash("tarviz first -S 'cls > 5' a.tar")

        assert (1, b"") == (done.returncode, done.stdout)

    @pytest.mark.matrix
    def test_the_expressions_of_the_old_tool(self, make: Make, bash: Any):
        make(CONTENT)

        found = bash("""tarfirst -S 'int(_["cls"]) == 3 and _["__key__"] > "c"' -f jpg a.tar""")
        word = bash("tarfirst -S d a.tar")
        refused = bash("""tarfirst -S 'np.frombuffer(_["cls"]) == 3' a.tar""")

        assert (0, b"four") == (found.returncode, found.stdout)
        assert (2, b"") == (word.returncode, word.stdout)
        assert 2 == refused.returncode


def test_a_result_is_text_and_data(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    make(CONTENT)
    found = first("a.tar", where="cls == 3")

    assert "a.tar record 2: c.png, 6 B" == str(found)
    assert {"key": "c", "shard": "a.tar", "index": 2, "ext": "png", "size": 6, "read": found.report.to_dict()} == found.to_dict()
    assert {"key": None, "shard": None, "index": None, "ext": None, "size": 0} == {
        name: value for name, value in first("a.tar", where="cls == 9").to_dict().items() if name != "read"
    }
    assert 4 == first("a.tar", where="cls == 9").report.records


def test_a_terminal_is_shown_text_and_refused_bytes(make: Make, monkeypatch: pytest.MonkeyPatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    first(make([("a", {"txt": b"one\r\ntwo \x1b[31m"})]), "-", field="txt")

    assert "one\ntwo \\x1b[31m\n" == shown.getvalue()
    for payload in (b"\xff", b"\0"):
        with pytest.raises(UsageError, match="stdout takes no bytes here"):
            first(make([("a", {"txt": payload})]), "-", field="txt")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_more_than_twenty_faults_are_noted():
    found = FirstRecord()
    for at in range(22):
        found.report.add(Fault("W_NO_KEY", f"odd {at}."))

    assert [f"W_NO_KEY: odd {at}." for at in range(20)] == list(found.notes())


def test_a_condition_that_names_no_field_says_what_is_near(make: Make):
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    with pytest.raises(UsageError, match="json"):
        first(make(CONTENT), where="jsn.w > 3")


def test_the_shell_reads_shards_of_a_list(make: Make, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    (tmp_path / "list").write_text(str(make(CONTENT)))

    assert 0 == cli.main(["first", "-T", str(tmp_path / "list"), "-f", "png"])
    assert b"\0three" == capfdbinary.readouterr().out
