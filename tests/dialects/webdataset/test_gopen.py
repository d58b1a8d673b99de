"""`gopen`: URLs as file objects to read and to write, openers of one's own, rewriting, and the switch for security."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset import utils
from tarviz.dialects.webdataset.gopen import ShardFile, own_opener, rewrite_url
from tarviz.model.errors import NotFoundError, UsageError

DATA = bytes(range(256)) * 1000


class TestReading:
    @pytest.mark.parametrize("bufsize", [10, 1 << 20])
    def test_a_file_comes_in_pieces_and_whole(self, tmp_path: Path, bufsize: int) -> None:
        (tmp_path / "a").write_bytes(DATA)
        with wds.gopen(str(tmp_path / "a"), bufsize=bufsize) as file:
            first, second, rest = file.read(3), file.read(70_000), file.read()

        assert (DATA[:3], DATA[3:70_003], DATA[70_003:]) == (first, second, rest)
        assert file.closed

    @pytest.mark.parametrize(("bufsize", "expected"), [(8192, 1 << 16), (100_000, 100_000)])
    def test_so_much_is_read_at_a_time(self, tmp_path: Path, bufsize: int, expected: int) -> None:
        (tmp_path / "a").write_bytes(DATA)
        with wds.gopen(str(tmp_path / "a"), bufsize=bufsize) as file:
            assert expected == len(file.peek())

    def test_it_is_opened_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError):
            wds.gopen(str(tmp_path / "none"))

    def test_a_file_that_nobody_reads_is_not_opened(self, tmp_path: Path) -> None:
        with ShardFile(str(tmp_path / "none")) as file:
            assert file.readable()
            assert not file.begun
        (tmp_path / "a").write_bytes(DATA)
        with ShardFile(str(tmp_path / "a")) as file:
            assert DATA[:5] == file.read(5)
            assert file.begun


class TestWriting:
    def test_a_file_is_there_when_it_is_closed(self, tmp_path: Path) -> None:
        file = wds.gopen(str(tmp_path / "a"), "wb")
        written = [file.write(b"abc"), file.write(memoryview(b"de"))]
        before = (tmp_path / "a").exists()
        file.close()
        file.close()

        assert ([3, 2], False, b"abcde") == (written, before, (tmp_path / "a").read_bytes())
        assert file.closed

    def test_one_whose_block_fails_is_not(self, tmp_path: Path) -> None:
        def write() -> None:
            with wds.gopen(str(tmp_path / "a"), "wb") as file:
                file.write(b"abc")
                opened.append(file)
                raise ZeroDivisionError

        opened: list[Any] = []
        with pytest.raises(ZeroDivisionError):
            write()

        assert [] == list(tmp_path.iterdir())
        assert opened[0].closed

    def test_a_block_writes_it(self, tmp_path: Path) -> None:
        with wds.gopen(str(tmp_path / "a"), "wb") as file:
            assert file.writable()
            file.write(b"abc")

        assert b"abc" == (tmp_path / "a").read_bytes()


def test_other_modes_are_refused(tmp_path: Path) -> None:
    for mode in ("r", "ab", "w"):
        with pytest.raises(UsageError, match=f"gopen has the modes 'rb' and 'wb', not '{mode}'"):
            wds.gopen(str(tmp_path / "a"), mode)


def test_a_dash_is_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    given, taken = io.BytesIO(), io.BytesIO()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=given))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=taken))

    assert given is wds.gopen("-")
    assert taken is wds.gopen("-", "wb")


class TestOpeners:
    def test_one_of_ones_own_is_called_with_all_that_was_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(wds.gopen_schemes, "own", lambda *args, **options: (args, options))
        monkeypatch.setitem(wds.gopen_schemes, "pipe", lambda *args: args)

        assert (("own://a", "rb", 8192), {}) == wds.gopen("own://a")
        assert (("own://a", "wb", 7), {"verbose": True}) == wds.gopen("own://a", "wb", 7, verbose=True)
        assert ("pipe:cat a", "rb", 8192) == wds.gopen("pipe:cat a")

    def test_the_default_may_be_ones_own(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x")
        monkeypatch.setitem(wds.gopen_schemes, "__default__", lambda url, mode, bufsize: url)

        assert "any://a" == wds.gopen("any://a")
        assert own_opener(str(tmp_path / "a")) is None  # a path has no scheme
        assert own_opener("https://h/a") is None

    @pytest.mark.parametrize("mode", ["rb", "wb"])
    def test_pipes_are_refused(self, mode: str) -> None:
        with pytest.raises(UsageError, match="would run a shell command"):
            wds.gopen("pipe:cat a", mode)


class TestRewriting:
    def test_the_first_prefix_that_fits_is_replaced(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x")
        monkeypatch.setenv("GOPEN_REWRITE", f"b=1;s3://[a-z]+/={tmp_path}/;s3://=2")

        assert ["1a", f"{tmp_path}/a", "2A", "ab"] == [rewrite_url(url) for url in ("ba", "s3://bucket/a", "s3://A", "ab")]
        with wds.gopen("s3://bucket/a") as file:
            assert b"x" == file.read()

    def test_without_rules_nothing_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("GOPEN_REWRITE", raising=False)

        assert "ba" == rewrite_url("ba")


class TestSecurity:
    @pytest.fixture(autouse=True)
    def switch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(utils, "enforce_security", True)

    def test_files_pipes_rewriting_and_pickles_are_refused(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        refused = {
            "cannot open local files": lambda: wds.gopen(str(tmp_path / "a")),
            "cannot open pipe URLs": lambda: wds.gopen("pipe:cat a"),
            "Unpickling is not allowed": lambda: wds.autodecode.unpickle_loads(b""),
            "torch.loads is not allowed": lambda: wds.torch_loads(b""),
        }
        for message, call in refused.items():
            with pytest.raises(UsageError, match=message):
                call()
        monkeypatch.setenv("GOPEN_REWRITE", "a=b")
        with pytest.raises(UsageError, match="cannot rewrite URLs"):
            wds.gopen("a")

    def test_urls_are_opened(self) -> None:
        from tarviz.testing.faults import FaultServer

        with FaultServer() as server, wds.gopen(server.put("/a", b"x")) as file:
            assert b"x" == file.read()
