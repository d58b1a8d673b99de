"""The verb `index`: an index that says how it went, and the text that NVIDIA DALI reads."""

from __future__ import annotations

import gzip
import html
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz import cli
from tarviz.commands.index import index
from tarviz.formats.index import parse_dali
from tarviz.model import config
from tarviz.model.config import format_size
from tarviz.model.errors import Fault, StoreError, UsageError
from tarviz.read import shard_index
from tarviz.testing.strategies import numbered_records
from tests.conftest import DATA

Make = Callable[..., Path]
TARS = DATA / "corpora" / "generated"


class TestIndex:
    def test_finds_records_by_number_and_key(self, digits: Path):
        made = index(str(digits / "train-{0000..0003}.tar"))

        assert 1500 == len(made)
        assert bytes(made[17]["png"]) == bytes(made["train/n00000017"]["png"])
        assert "train/n00001499" == made[-1].key

    def test_says_how_it_went(self, digits: Path):
        made = index(str(digits / "test-0000.tar"))

        assert 0 == made.exit_code
        assert "297" in str(made)
        assert 297 == made.to_dict()["records"]

    def test_damage_is_exit_code_two(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["index", str(TARS / "B14-trunc-in-data.tar")])
        assert "E_TRUNCATED" in capsys.readouterr().out

    def test_json(self, digits: Path, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["index", "--json", "--no-cache", str(digits)])
        assert {"png": 1797, "cls": 1797} == json.loads(capsys.readouterr().out)["fields"]

    def test_the_whole_listing(self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
        make(numbered_records(3))
        make([*numbered_records(1200)[:-1], ("odd/", {"txt": b""})], "b.tar")
        made = index(["a.tar", "b.tar"], dali=tmp_path)

        assert [
            ["shard", "records", "members", "size"],
            ["a.tar", "3", "6", *format_size(os.stat("a.tar").st_size).split()],
            ["b.tar", "1,199", "2,398", *format_size(os.stat("b.tar").st_size).split()],
        ] == [line.split() for line in str(made).splitlines()[:3]]
        assert [
            f"written: {tmp_path}/a.idx",
            f"written: {tmp_path}/b.idx",
            str(Fault.of(made.shards[1].warnings[0], "b.tar")),
            f"kept in {tmp_path}/cache",
        ] == str(made).splitlines()[3:]
        assert ["W_NO_KEY"] == [found["code"] for found in made.shards[1].warnings]
        assert 1 == made.exit_code
        assert {
            "records": 1202,
            "fields": {"png": 1202, "cls": 1202},
            "shards": [
                {"url": "a.tar", "records": 3, "members": 6, "warnings": [], "error": None},
                {"url": "b.tar", "records": 1199, "members": 2398, "warnings": made.shards[1].warnings, "error": None},
            ],
            "written": [f"{tmp_path}/a.idx", f"{tmp_path}/b.idx"],
        } == made.to_dict()
        assert f"<pre>{html.escape(str(made))}</pre>" == made._repr_mimebundle_()["text/html"]

    def test_what_is_not_kept_is_not_said_to_be(self, make: Make):
        said = str(index(make(numbered_records(1)), cache=False))

        assert "kept in" not in said

    def test_a_cache_that_cannot_be_written_is_not_said_to_keep_it(self, make: Make, tmp_path: Path):
        (tmp_path / "file").touch()
        with config.options(cache_dir=tmp_path / "file"):
            said = str(index(make(numbered_records(1))))

        assert f"not all is kept in {tmp_path}/file: it cannot be written" in said


class TestJobs:
    def test_shards_are_indexed_by_others_and_kept_here(self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
        paths = [str(make(numbered_records(count), f"{count}.tar")) for count in (3, 4)]
        made = index(paths, jobs=1, where="cls = 2", keys="")
        monkeypatch.setattr("tarviz.read.shard_index._build", None)

        assert ["train/n00000002"] * 2 == [record.key for record in made]
        assert 7 == len(index(paths))  # all of each is kept, whatever was chosen

    def test_a_shard_that_cannot_be_had_leaves_others_their_own_index(self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
        paths = [str(make(numbered_records(count), f"{count}.tar")) for count in (3, 4)]
        own = shard_index.shard_index
        refused = StoreError("gone.", code="E_READ")

        def first_fails(url: str, *args: Any, **options: Any) -> Any:
            if url == paths[0]:
                raise refused
            return own(url, *args, **options)

        monkeypatch.setattr("tarviz.commands.index.shard_index", first_fails)
        with pytest.raises(StoreError, match=r"3\.tar"):
            index(paths, jobs=1)

        assert [3, 4] == [len(index(path)) for path in paths]

    def test_without_the_cache_there_is_nowhere_to_keep_it(self, make: Make):
        with pytest.raises(UsageError, match="without the cache"):
            index(make(numbered_records(1)), cache=False, jobs=2)


class TestWids:
    def test_the_list_is_seen_from_where_it_is(self, make: Make, tmp_path: Path):
        path = make(numbered_records(3))
        made = index(path, wids=tmp_path / "lists" / "my.list.json")

        assert {
            "__kind__": "wids-shard-index-v1",
            "wids_version": 1,
            "name": "my.list",
            "shardlist": [{"url": "../a.tar", "nsamples": 3, "filesize": path.stat().st_size}],
        } == json.loads((tmp_path / "lists" / "my.list.json").read_text())
        assert (f"{tmp_path}/lists/my.list.json",) == made.written

    def test_it_counts_all_records(self, make: Make, tmp_path: Path):
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        with pytest.raises(UsageError, match="counts all records"):
            index(make(numbered_records(3)), wids=tmp_path / "l.json", where="cls = 1")


class TestDali:
    def test_writes_a_file_that_reads_back(self, digits: Path, tmp_path: Path):
        index(str(digits / "test-0000.tar"), dali=tmp_path / "test.idx")

        records = parse_dali((tmp_path / "test.idx").read_text())
        data = (digits / "test-0000.tar").read_bytes()
        ext, offset, size, name = records[3][0]
        assert (297, "png", "test/n00000003.png") == (len(records), ext, name)
        assert data[offset : offset + size].startswith(b"\x89PNG")

    def test_a_folder_gets_a_file_a_shard(self, digits: Path, tmp_path: Path):
        made = index(str(digits), dali=f"{tmp_path}/idx/")

        assert 5 == len(made.written)
        assert (tmp_path / "idx" / "train-0002.idx").is_file()

    def test_several_shards_need_a_folder(self, digits: Path, tmp_path: Path):
        with pytest.raises(UsageError, match="folder"):
            index(str(digits), dali=tmp_path / "one.idx")

    def test_a_compressed_shard_is_refused(self, digits: Path, tmp_path: Path):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress((digits / "test-0000.tar").read_bytes()))

        with pytest.raises(UsageError, match="compressed"):
            index(str(path), dali=tmp_path / "a.idx")
