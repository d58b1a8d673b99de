"""Shards far away are looked at several at a time, with few requests each."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import tarviz
from tarviz import stores
from tarviz.model.errors import NotFoundError
from tarviz.model.types import URL
from tarviz.read.several import AT_ONCE, several, stats
from tarviz.samples import write_shard
from tarviz.stores import memory
from tarviz.testing.faults import FaultServer


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def served(server, folder, count, size=20_000, records=100):
    """Shards of an ordinary kind: two MB of small members."""
    urls = []
    for number in range(count):
        write_shard(folder / "a.tar", [(f"{number}-{at}", {"bin": bytes(size)}) for at in range(records)])
        urls.append(server.put(f"/a-{number}.tar", (folder / "a.tar").read_bytes()))
    return urls


VERBS = {
    "ls": lambda urls: tarviz.ls(urls).records,
    "index": lambda urls: len(tarviz.index(urls)),
    "verify": lambda urls: tarviz.verify(urls).records,
    "sql": lambda urls: tarviz.sql("SELECT count(*) FROM records", urls).rows[0][0],
}


class TestRequests:
    @pytest.mark.parametrize("verb", ["ls", "index"])
    def test_a_shard_that_nothing_is_known_of_costs_two(self, own, verb):
        with FaultServer() as server:
            urls = served(server, own, 3)

            assert 300 == VERBS[verb](urls)
            assert [("GET", "/a-0.idx"), ("GET", "/a-0.tar")] == sorted(
                (each.method, each.path) for each in server.requests if "a-0" in each.path
            )
            server.requests.clear()
            assert 300 == VERBS[verb](urls)
            assert [("HEAD", f"/a-{number}.tar") for number in range(3)] == sorted((each.method, each.path) for each in server.requests)

    def test_the_headers_of_large_members_are_read_by_ranges(self, own):
        with FaultServer() as server:
            urls = served(server, own, 2, size=12_000_000, records=4)

            assert 8 == tarviz.ls(urls).records
            assert server.sent < 0.7 * 2 * 4 * 12_000_000  # the one answer that is left in the middle was on its way

    @pytest.mark.parametrize("verb", VERBS)
    def test_sixteen_are_under_way_at_once(self, own, verb):
        if verb == "sql":
            pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        with FaultServer(latency=0.05) as server:
            urls = served(server, own, 24, size=10, records=2)

            assert 48 == VERBS[verb](urls)
            assert 8 <= server.most <= AT_ONCE + 2

    def test_the_command_line_says_how_many(self, own, capsys):
        with FaultServer(latency=0.02) as server:
            served(server, own, 12, size=10, records=2)

            assert 0 == tarviz.cli.main(["ls", "--jobs", "3", "--json", f"{server.url}/a-{{0..11}}.tar"])
            assert server.most <= 3


class TestOrder:
    def test_outcomes_come_in_order_and_an_error_after_those_before_it(self, own):
        urls = [f"memory://{number}" for number in range(40)]
        found = []

        def work(url, look):
            if url == "memory://7":
                raise NotFoundError("gone", shard=url)
            return url

        with pytest.raises(NotFoundError):
            found.extend(several(urls, work))
        assert urls[:7] == found

    def test_who_leaves_ends_what_is_under_way(self):
        begun, ended = threading.Semaphore(0), []

        def work(url, look):
            if url == "memory://0":
                return url
            begun.release()
            try:
                while True:
                    look()
            except tarviz.TarvizError as error:
                ended.append(error.code)
                raise

        run = several([f"memory://{number}" for number in range(5)], work, jobs=3)
        assert "memory://0" == next(run)
        begun.acquire()
        run.close()

        assert {"E_STOPPED"} == set(ended)


class TestStats:
    def test_in_the_order_given(self, tmp_path):
        urls = [URL(str(tmp_path / name)) for name in ("10.tar", "z.tar.gz", "1.tar")]
        for url in urls:
            Path(url).write_bytes(b"x")
        assert [stat.url for stat in stats(urls)] == urls

    def test_remote_ones_are_asked_at_once(self, monkeypatch):
        together = threading.Barrier(4)
        ask = memory.MemoryStore.stat

        def stat(store, url):
            together.wait(timeout=60)
            return ask(store, url)

        urls = [URL(f"memory://stats/{number}.tar") for number in range(8)]
        for number, url in enumerate(urls):
            with stores.of(url).create(url) as sink:
                sink.write(bytes(number))
        monkeypatch.setattr(memory.MemoryStore, "stat", stat)
        assert [found.size for found in stats(urls)] == list(range(8))

    def test_the_first_that_is_not_there_is_the_one_that_is_named(self):
        urls = [URL("memory://stats/none-1.tar"), URL("memory://stats/none-2.tar"), URL("none.tar")]
        with pytest.raises(NotFoundError, match="none-1"):
            list(stats(urls))
