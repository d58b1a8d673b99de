"""Which outputs of an earlier conversion are kept: what their manifests say, held against the shards there are now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.convert.conversion import digest, find_kept, find_kept_sequence
from tarviz.commands.convert.tasks import Settings, ShardToConvert
from tarviz.formats.tfrecord import crc32c
from tarviz.model.types import URL
from tarviz.outputs import Names, Written
from tarviz.outputs.manifest import write_manifest

SAID = {"format": "tfrecord", "options": {"key": True, "types": {}}}
DATA = b"records"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def entry(number: int, **more: Any) -> dict[str, Any]:
    return {"number": number, "shard": f"s{number}", "size": 10, "etag": None, "mtime": 1.5} | more


def shards(count: int, **more: Any) -> list[ShardToConvert]:
    return [ShardToConvert(at, URL(f"s{at}"), entry(at, **more)) for at in range(count)]


def settings(names: str, size: int | None = None, **more: Any) -> Settings:
    return Settings(Names(names), None, "replace", {**SAID, "inputs": "all", **more}, size)


def put(name: str, *parts: dict[str, Any], **more: Any) -> None:
    """An output with a manifest: its parts, and what else it says."""
    Path(name).write_bytes(DATA)
    write_manifest(Written(URL(name), 7, len(DATA), f"{crc32c(DATA):08x}"), {**SAID, "inputs": "all", "sources": [*parts], **more})


def part(number: int, first: int, stop: int, **more: Any) -> dict[str, Any]:
    return entry(number, **more) | {"first": first, "stop": stop}


class TestEach:
    def test_an_output_whose_shard_and_options_are_the_same_is_kept(self):
        put("o-1", part(0, 0, 7))
        put("o-3", part(2, 0, 7))

        found = find_kept(settings("o-{}"), shards(3))

        assert {0: "o-1", 2: "o-3"} == {number: written.url for number, written in found.items()}
        assert [(7, len(DATA), True)] * 2 == [(written.records, written.bytes, written.kept) for written in found.values()]

    def test_one_that_says_something_else_is_not(self):
        for parts, more in [
            ([part(0, 0, 7, shard="other")], {}),
            ([part(0, 0, 7, size=11)], {}),
            ([part(0, 0, 7, etag="x")], {}),
            ([part(0, 0, 7, mtime=2.5)], {}),
            ([part(0, 0, 7), part(1, 0, 7)], {}),
            ([], {}),
            ([part(0, 0, 7)], {"options": {"key": False, "types": {}}}),
            ([part(0, 0, 7)], {"format": "tar"}),
            ([part(0, 0, 7)], {"bytes": 8}),
            ([part(0, 0, 7)], {"crc32c": "00000000"}),
        ]:
            put("o-1", *parts, **more)

            assert {} == find_kept(settings("o-{}"), shards(2))

    def test_a_shard_without_a_version_proves_nothing(self):
        put("o-1", part(0, 0, 7, mtime=None))
        put("o-2", part(1, 0, 7, mtime=None, etag="v1"))

        assert {} == find_kept(settings("o-{}"), shards(1, mtime=None))
        assert [1] == [*find_kept(settings("o-{}"), shards(2, mtime=None, etag="v1"))]


class TestSequence:
    """Three shards in outputs `o-0`, `o-1`, … that are full but for the last."""

    NAMES = "o-{shard}"

    def kept(self, count: int = 3, **more: Any) -> tuple[list[str], int, int]:
        kept, number, record = find_kept_sequence(settings(self.NAMES, 100, **more), shards(count))
        return [written.url for written in kept], number, record

    def test_outputs_follow_each_other_from_record_to_record(self):
        put("o-0", part(0, 0, 5), full=True)
        put("o-1", part(0, 5, 9), part(1, 0, 4), full=True)
        assert (["o-0", "o-1"], 1, 4) == self.kept()
        put("o-2", part(1, 4, 8), part(2, 0, 3))
        assert (["o-0", "o-1", "o-2"], 3, 0) == self.kept()
        assert (["o-0", "o-1"], 1, 4) == self.kept(inputs="others")  # more records may follow in the last one

    def test_the_next_one_may_begin_with_the_next_shard(self):
        put("o-0", part(0, 0, 5), full=True)
        put("o-1", part(1, 0, 5), full=True)

        assert (["o-0", "o-1"], 1, 5) == self.kept()

    def test_one_that_does_not_follow_ends_it(self):
        for parts in [
            [part(0, 4, 9)],
            [part(1, 1, 9)],
            [part(0, 0, 9)],
            [part(3, 0, 9)],
            [part(-1, 0, 9)],
            [part(0, 5, 9) | {"number": "0"}],
            [part(0, 5, 9), part(1, 0, 4, size=11)],
            [part(0, 5, 9), part(3, 0, 4)],
        ]:
            put("o-0", part(0, 0, 5), full=True)
            put("o-1", *parts, full=True)

            assert (["o-0"], 0, 5) == self.kept()

    def test_nothing_is_kept_where_the_first_is_missing_or_damaged(self):
        put("o-1", part(0, 0, 5), full=True)
        assert ([], 0, 0) == self.kept()
        put("o-0", part(0, 0, 5), full=True)
        Path("o-0").write_bytes(DATA[::-1])
        assert ([], 0, 0) == self.kept()

    def test_one_output_of_all_shards_is_kept_where_they_are_all_the_same(self):
        put("o", part(0, 0, 5), part(1, 0, 5))
        put("o-1", part(1, 5, 9))

        kept, number, record = find_kept_sequence(settings("o"), shards(2))
        assert (["o"], 2, 0) == ([written.url for written in kept], number, record)
        assert ([], 0, 0) == find_kept_sequence(settings("o", inputs="others"), shards(2))


def test_a_list_of_inputs_has_a_name_that_depends_on_all_of_it():
    one, two = entry(0), entry(1, shard="\udcff")

    assert 32 == len(digest([one, two]))
    assert digest([one, two]) == digest([dict(reversed(one.items())), two])
    assert 4 == len({digest(each) for each in ([one, two], [two, one], [one], [one, two | {"size": 11}])})
