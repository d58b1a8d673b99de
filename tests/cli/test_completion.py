"""What can be typed next: names of shards, fields, keys, conditions and ops, for the shell and for magics."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tarviz.cli import completion
from tarviz.model import plugins
from tarviz.testing.strategies import shard


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of shards, other files, a folder and hidden ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("s-2.tar", "s-0.tar", "s-1.tar", "t-0.tar.gz", "t-9.tar.gz", "notes.txt", ".hidden.tar", "sub/a.tar", "sub/b.tgz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(shard([("k/1", {"jpg": b"1", "cls": b"2"}), ("k/2", {"jpg": b"1"}), ("m", {"json": b"{}"})]))
    return tmp_path


class TestShards:
    def test_are_templates_folders_and_shards_that_begin_so(self, folder):
        for text, expected in [
            ("", ["s-{0..2}.tar", "sub/", "s-0.tar", "s-1.tar", "s-2.tar", "t-0.tar.gz", "t-9.tar.gz"]),
            ("s", ["s-{0..2}.tar", "sub/", "s-0.tar", "s-1.tar", "s-2.tar"]),
            ("t", ["t-0.tar.gz", "t-9.tar.gz"]),
            (".h", [".hidden.tar"]),
            ("sub/", ["sub/a.tar", "sub/b.tgz"]),
            ("sub/b", ["sub/b.tgz"]),
            ("~/sub/a", ["~/sub/a.tar"]),
            ("./t-9", ["./t-9.tar.gz"]),
            ("none/", []),
            ("n", []),
        ]:
            assert expected == completion.shards(text)

    def test_an_absolute_name_begins_at_the_root(self, folder: Path):
        assert f"/{folder.parts[1]}/" in completion.shards(f"/{folder.parts[1]}")

    def test_no_more_than_two_hundred(self, tmp_path: Path):
        for at in range(0, 600, 2):
            (tmp_path / f"{at:03d}.tar").touch()

        assert [f"{tmp_path}/{at:03d}.tar" for at in range(0, 400, 2)] == completion.shards(f"{tmp_path}/")


def test_neighbours_without_a_gap_are_a_template():
    for names, expected in [
        (["a-1.tar"], []),
        (["a-1.tar", "a-3.tar"], []),
        (["a-9.tar", "a-10.tar"], []),  # of another width
        (["a-09.tar", "a-10.tar", "b.tar"], ["a-{09..10}.tar"]),
        (["a-2-1.tar", "a-3-1.tar"], []),  # the last number counts, and 1 is alone
        (["a-1-7.tar", "a-1-8.tar", "a-1-7.tgz"], ["a-1-{7..8}.tar"]),
    ]:
        assert expected == completion.fold_names(names)


class TestInside:
    def test_fields_and_keys_are_those_of_the_first_shard(self, folder: Path):
        assert ["jpg", "cls", "json"] == completion.fields(["s-0.tar", "t-0.tar.gz"])
        assert ["k/1", "k/2", "m"] == completion.keys(["s-0.tar"])
        assert ["k/1", "k/2"] == completion.keys(["s-0.tar"], "k/")
        Path("none.tar").write_bytes(bytes(1024))
        assert [] == completion.fields(["none.tar"]) == completion.keys(["none.tar"])

    def test_a_shard_that_was_written_again_is_looked_at_again(self, folder: Path):
        assert ["k/1", "k/2", "m"] == completion.keys(["s-0.tar"])
        Path("s-0.tar").write_bytes(shard([("new", {"txt": b""})]))
        os.utime("s-0.tar", (1, 1))

        assert ["new"] == completion.keys(["s-0.tar"])

    def test_nothing_is_known_of_what_is_not_here_or_no_shard(self, folder):
        for urls in [["none.tar"], [], ["https://host.example/a.tar"], ["empty.tar"], ["odd.tar"]]:
            Path("empty.tar").write_bytes(bytes(1024))
            Path("odd.tar").write_bytes(b"no tar" * 500)

            assert ([], []) == (completion.fields(urls), completion.keys(urls))

    def test_a_chain_goes_on_with_ops_and_fields(self, folder):
        for text, expected in [
            ("decode(jpg)|res", ("res", ["resize("])),
            ("decode(", ("", ["jpg", "cls", "json"])),
            ("decode(j", ("j", ["jpg", "json"])),
            ("decode(jpg)", ("", [])),
            ("a = fli", ("fli", ["flip("])),
        ]:
            assert expected == completion.chain(text, ["s-0.tar"])

    def test_an_empty_chain_begins_with_any_op(self, folder: Path):
        assert ("", [f"{name}(" for name in plugins.names("ops")]) == completion.chain("", [])

    def test_a_condition_goes_on_with_columns(self, folder: Path):
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")

        assert ("cl", ["cls", "cls.checksum", "cls.size"]) == completion.condition("cl", ["s-0.tar"])


@pytest.fixture
def invoked() -> Callable[[list[str], str], list[str]]:
    """`invoked(["cat"], "s")`: what click's completion offers."""
    from click.shell_completion import ShellComplete

    from tarviz import cli

    def offered(words: list[str], now: str) -> list[str]:
        return [item.value for item in ShellComplete(cli.group, {}, "tarviz", "_TARVIZ_COMPLETE").get_completions(words, now)]

    return offered


def test_verbs_that_read_shards_offer_them(folder, invoked):
    for verb in ["ls", "cat", "split", "objects", "card", "browse", "convert"]:
        assert ["t-0.tar.gz", "t-9.tar.gz"] == invoked([verb], "t")
