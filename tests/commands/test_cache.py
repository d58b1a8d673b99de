"""The verb `cache`: what is kept, by kind and shard; what goes, and what never does."""

from __future__ import annotations

import functools
import json
import os
import time
from pathlib import Path

import pytest

import tarviz
from tarviz import cli
from tarviz.commands.cache import CacheContents, Holding
from tarviz.model.errors import UsageError
from tarviz.stores.cache_files import KeptFile
from tarviz.testing.faults import FaultServer
from tarviz.testing.strategies import shard


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Two local shards and one far away, with all that is kept of them."""
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TARVIZ_SHARD_CACHE", "1MB")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("a.tar", "b.tar"):
        (tmp_path / name).write_bytes(shard([("a", {"cls": b"1"})]))
    with FaultServer() as server:
        url = server.put("/far.tar", shard([("a", {"cls": b"1"})]))
        for each in ("a.tar", "b.tar", url):
            tarviz.index(each)
        tarviz.table("a.tar").tags.add("cls = 1", "good")
        list(tarviz.records(url))
        yield url


def test_what_files_are_together():
    files = [KeptFile(Path("a"), 3, 10.0), KeptFile(Path("b"), 4, 30.0), KeptFile(Path("c"), 5, 20.0)]

    assert Holding("index", Path("x"), 3, 12, 30.0, "a.tar") == Holding.of("index", Path("x"), files, "a.tar")
    assert Holding("index", Path("x"), 0, 0, None) == Holding.of("index", Path("x"), [])


def counted(found):
    return {each.kind: each.files for each in found.holdings}


def test_kinds_are_listed_with_their_sizes(kept, tmp_path):
    found = tarviz.cache()

    assert {"index": 3, "table": 1, "tfrecord": 0, "shards": 1, "tags": 1} == {**counted(found), "table": min(1, counted(found)["table"])}
    sizes = {each.kind: each.bytes for each in found.holdings}
    assert sizes["index"] == sum(path.stat().st_size for path in (tmp_path / "cache" / "index").glob("*.tvi"))
    assert sizes["shards"] == len(shard([("a", {"cls": b"1"})]))
    assert "copies of shards" in str(found)
    assert "today" in str(found)


def test_what_is_kept_of_a_shard_is_said_by_any_of_its_names(kept, tmp_path):
    for name in ("a.tar", "./a.tar", str(tmp_path / "a.tar")):
        found = tarviz.cache(name, kinds=["index", "table", "shards"])
        assert (1, True, 0, 1) == tuple(each.files if each.kind != "table" else each.files > 0 for each in found.holdings)
    assert {"index": 1, "table": 0, "tfrecord": 0, "shards": 1, "tags": 0} == counted(tarviz.cache(f"{kept}?X-Amz-Signature=new"))


def test_a_copy_is_dropped_with_its_checksums_and_fetched_anew(kept, tmp_path):
    found = tarviz.cache(kept, action="clear", kinds=["shards"])

    assert [1] == [each.files for each in found.gone]
    assert [] == list((tmp_path / "cache" / "shards").iterdir())
    assert {"index": 3, "shards": 0} == {kind: count for kind, count in counted(tarviz.cache()).items() if kind in ("index", "shards")}
    assert 1 == len(list(tarviz.records(kept)))


def test_all_is_cleared_but_what_was_made_by_hand(kept):
    assert 0 == cli.main(["cache", "clear", "-q"])

    assert {"index": 0, "table": 0, "tfrecord": 0, "shards": 0, "tags": 1} == counted(tarviz.cache())
    assert {"good": 1} == tarviz.table("a.tar").tags.counts()
    assert 1 == len(tarviz.index(kept))


def test_a_shard_that_is_gone_can_be_cleared(kept):
    os.unlink("b.tar")
    assert 1 == tarviz.cache("b.tar").holdings[0].files

    tarviz.cache("b.tar", action="clear")

    assert 0 == tarviz.cache("b.tar").holdings[0].files


def test_pruned_is_what_is_over_the_limits(kept, tmp_path, monkeypatch):
    for path in (tmp_path / "cache" / "index").iterdir():
        os.utime(path, (0, 0))
    monkeypatch.setenv("TARVIZ_SHARD_CACHE", "100")
    found = tarviz.cache(action="prune")

    assert {"index": 3, "table": 0, "tfrecord": 0, "shards": 1} == {each.kind: each.files for each in found.gone}
    with pytest.raises(UsageError, match="a limit is of all"):
        tarviz.cache("a.tar", action="prune")


def test_the_shell_has_it_as_text_and_as_json(kept, capsys):
    assert 0 == cli.main(["cache"])
    assert 0 == cli.main(["cache", "list", "--json", "--kind", "index", "a.tar"])
    text, _, last = capsys.readouterr().out.rstrip().rpartition("\n")

    assert "tags and notes, made by hand" in text
    row, tags = json.loads(last)["kept"]
    assert [("index", 1, "a.tar"), ("tags", 1, "a.tar")] == [(each["kind"], each["files"], each["shard"]) for each in (row, tags)]


def test_tags_left_where_an_earlier_version_put_them_are_named(kept, tmp_path, capsys):
    (tmp_path / "cache" / "tags").mkdir()
    (tmp_path / "cache" / "tags" / "1.jsonl").write_text('{"shard": "x.tar", "key": "a", "tag": "bad"}\n')
    cli.main(["cache"])

    assert "1 files of tags on relative paths are left in" in capsys.readouterr().err


def test_a_kind_that_is_none_is_refused():
    with pytest.raises(UsageError, match="'tags' is not a kind"):
        tarviz.cache(kinds=["tags"])


def test_an_action_that_is_none_is_refused():
    with pytest.raises(UsageError, match="'purge' is not one of list, prune, clear"):
        tarviz.cache(action="purge")


@pytest.mark.parametrize("words", [["purge"], ["clean", "a.tar"], ["a.tar", "clear"]])
def test_a_word_that_is_no_shard_is_refused(words, capsys):
    assert 2 == cli.main(["cache", *words])
    assert "none of the actions list, prune, clear" in capsys.readouterr().err


def test_the_whole_listing(tmp_path, monkeypatch):
    now = time.time()
    holding = functools.partial(Holding, folder=Path("cache"))
    found = CacheContents(
        [holding("index", files=1200, bytes=34_000, used=now), holding("shards", files=1, bytes=0, used=now - 1.5 * 86_400)],
        [holding("index", files=3, bytes=500, used=None), holding("table", files=0, bytes=0, used=None)],
    )

    assert [
        "what              files     size  used       folder",
        "indexes           1,200  34.0 kB  today      cache",
        "copies of shards      1      0 B  yesterday  cache",
        "removed: 3 files of indexes, 500 B",
    ] == str(found).splitlines()
    of_shards = CacheContents([holding("table", files=2, bytes=10, used=now - 3 * 86_400, shard="s3://b/a.tar")])
    assert [
        "shard         what     files  size  used        folder",
        "s3://b/a.tar  columns      2  10 B  3 days ago  cache",
    ] == str(of_shards).splitlines()
    assert {
        "kept": [{"kind": "index", "folder": "cache", "files": 1200, "bytes": 34_000, "used": now, "shard": None}],
        "removed": [{"kind": "index", "folder": "cache", "files": 3, "bytes": 500, "used": None, "shard": None}],
    } == {name: rows[:1] for name, rows in found.to_dict().items()}
    assert (2, 2) == tuple(map(len, found.to_dict().values()))
