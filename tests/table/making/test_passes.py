"""Passes over shards: ended between two records, asked while they go on, made elsewhere, kept files that are damaged or replaced."""

from __future__ import annotations

import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

import tarviz
from tarviz.model.config import options
from tarviz.model.errors import ChangedError, DataError, TarvizError, UsageError
from tarviz.read.stream import ReadOptions
from tarviz.table.columns import NAMES, Part
from tarviz.table.making import passes, shard_columns
from tarviz.table.making.shard_columns import make_columns
from tests.conftest import sampled

CONTENT = Part("content", "png")


def picture(number: int) -> bytes:
    out = io.BytesIO()
    Image.new("L", (8, 8), number % 256).save(out, "PNG")
    return out.getvalue()


SHARD = [(f"k{at:03}", {"png": picture(at), "cls": b"%d" % (at % 7), "json": b'{"w": %d}' % at}) for at in range(90)]


@pytest.fixture
def decoding(monkeypatch):
    """Calls the function put into it with the number of each picture that is decoded."""
    told = []
    count = iter(range(10_000))
    real = shard_columns._fingerprint

    def seen(payload):
        number = next(count)
        for tell in told:
            tell(number)
        return real(payload)

    monkeypatch.setattr(shard_columns, "_fingerprint", seen)
    return told


class TestEnding:
    def test_a_pass_ends_before_the_next_record(self, make, decoding):
        table = tarviz.table(make(SHARD))
        seen = []
        decoding += [seen.append, lambda number: number == 5 and table.interrupt()]

        with pytest.raises(UsageError, match="stopped") as error:
            table.make([CONTENT])
        assert "E_STOPPED" == error.value.code
        assert [0, 1, 2, 3, 4, 5] == seen

    def test_only_what_is_for_the_sake_of_one_who_stops_is_ended(self, make, decoding):
        table = tarviz.table(make(SHARD))
        mine, other = threading.Event(), threading.Event()
        decoding.append(lambda number: number == 5 and (table.interrupt(other), other.set()))
        with table.until(mine):
            table.make([CONTENT])

        assert 90 == table.sizes("png.decodable = true")[0]

    def test_whoever_waits_for_a_pass_can_be_stopped_too(self, make, decoding):
        table = tarviz.table(make(SHARD))
        len(table)
        stop, ended = threading.Event(), []

        def wait():
            with table.until(stop):
                try:
                    table.rows("json.w > 3")
                except UsageError as error:
                    ended.append(error.code)

        waiter = threading.Thread(target=wait)

        def begin(number):
            if number == 5:
                waiter.start()
            if number == 20:
                stop.set()
                waiter.join(20)

        decoding.append(begin)
        table.make([CONTENT])

        assert ["E_STOPPED"] == ended

    def test_what_was_stopped_can_be_asked_again(self, make, decoding):
        path = make(SHARD)
        table = tarviz.table(path)
        decoding.append(lambda number: number == 5 and table.interrupt())
        with pytest.raises(UsageError):
            table.make([CONTENT])

        assert 90 == table.sizes("png.decodable = true")[0] == tarviz.table(path).sizes("png.decodable = true")[0]


class TestReplaced:
    def test_a_shard_that_is_replaced_while_it_is_read_is_an_error(self, make, decoding):
        path = make(SHARD)
        table = tarviz.table(path)
        decoding.append(lambda number: number == 5 and make(SHARD[:80]))

        with pytest.raises((ChangedError, DataError)):
            table.make([CONTENT])
        assert 80 == tarviz.table(path).sizes("png.decodable = true")[0]

    def test_so_is_one_that_is_replaced_between_two_questions_once(self, make):
        path = make(SHARD)
        table = tarviz.table(path)
        assert 13 == table.sizes("cls = 1")[0]
        make(SHARD[:80])

        with pytest.raises(ChangedError, match="replaced"):
            table.sizes("json.w = 1")
        assert tarviz.table(path).sizes("json.w = 1") == table.sizes("json.w = 1")
        table.check()


class TestBeside:
    def test_what_needs_no_more_columns_is_answered_while_a_pass_goes_on(self, make, decoding):
        table = tarviz.table(make(SHARD))
        assert 13 == table.sizes("cls = 1")[0]
        answers = []

        def ask(number):
            if number == 5:
                asker = threading.Thread(target=lambda: answers.append(table.sizes("cls = 1")[0]))
                asker.start()
                asker.join(20)

        decoding.append(ask)
        table.make([CONTENT])

        assert [13] == answers

    def test_what_was_read_so_far_is_a_table_of_its_own(self, make, decoding, monkeypatch):
        monkeypatch.setattr(shard_columns, "GROWS", 0.0)
        table = tarviz.table([make(SHARD[:40], "a.tar"), make(SHARD[40:], "b.tar")], workers=1)
        len(table)
        found = []

        def ask(number):
            if number == 60 and (grown := table.so_far({CONTENT})) is not None:
                found.append((len(grown), grown.facets("png.mean").all.max, grown.sizes("png.mean >= 10")[0]))

        decoding.append(ask)
        assert None is table.so_far({CONTENT})
        table.make([CONTENT])

        assert [(40, 39.0, 30)] == found
        assert 90 == len(table.so_far({CONTENT}))

    @pytest.mark.matrix
    def test_tables_over_the_same_shards_do_not_hinder_each_other(self, make):
        urls = [make(SHARD, f"s-{number}.tar") for number in range(4)]
        tables = [tarviz.table(urls), tarviz.table(urls)]
        wrong: list[int] = []

        def ask(table):
            wrong.extend(found for _ in range(6) if (found := table.sizes("cls = 1")[0]) != 52)

        threads = [threading.Thread(target=ask, args=(table,)) for table in tables * 2]
        for thread in threads:
            thread.start()
        for where in ("json.w > 3", "png.width = 8", "cls.checksum = ''"):
            tables[0].sizes(where)
        for thread in threads:
            thread.join()

        assert [] == wrong
        assert [344] * 2 == [table.sizes("json.w > 3")[0] for table in tables]


class TestKept:
    @pytest.fixture(autouse=True)
    def own(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "own"))

    @pytest.mark.matrix
    def test_damage_anywhere_in_what_is_kept_is_found_and_made_again(self, make):
        path = make(SHARD)
        query = "SELECT key, cls, json.w FROM records ORDER BY n"
        expected = tarviz.table(path).sql(query).fetchall()
        tarviz.table(path).sql("SELECT * FROM records").fetchall()
        draw = random.Random(0)
        for _ in range(12):
            for kept in (options().cache_dir / "table").glob("*.parquet"):
                data = bytearray(kept.read_bytes())
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
                kept.write_bytes(data)

            assert expected == tarviz.table(path).sql(query).fetchall()

    def test_files_that_another_process_took_away_are_made_again(self, make):
        table = tarviz.table(make(SHARD))
        assert 13 == table.sizes("cls = 1")[0]
        for kept in (options().cache_dir / "table").glob("*.parquet"):
            kept.unlink()

        assert 13 == table.sizes("cls = 1")[0]

    def test_so_are_those_that_are_gone_before_the_first_question(self, make):
        path = make(SHARD)
        tarviz.table(path).sizes("cls = 1")
        table = tarviz.table(path)
        for kept in (options().cache_dir / "table").glob("*.parquet"):
            kept.unlink()

        assert 13 == table.sizes("cls = 1")[0]

    def test_of_a_shard_that_was_replaced_meanwhile_they_are_not(self, make):
        table = tarviz.table(make(SHARD))
        assert 13 == table.sizes("cls = 1")[0]
        for kept in (options().cache_dir / "table").glob("*.parquet"):
            kept.unlink()
        make(SHARD[:80])

        with pytest.raises(ChangedError, match="replaced since the table was opened"):
            table.sizes("cls = 1")

    def test_what_had_fewer_columns_goes_after_a_while(self, make, monkeypatch):
        path = make(SHARD)
        tarviz.table(path).sizes("cls = 1")
        tarviz.table(path).sizes("json.w = 1")
        folder = options().cache_dir / "table"
        before = len(list(folder.glob("*.parquet")))
        monkeypatch.setattr("tarviz.table.making.kept_columns._STAYS", -1.0)
        tarviz.table(path)

        assert (3, 1) == (before, len(list(folder.glob("*.parquet"))))
        assert 1 == tarviz.table(path).sizes("json.w = 1")[0]

    def test_a_damaged_byte_is_found_before_the_first_question(self, make):
        path = make(SHARD[:9])
        tarviz.table(path).sizes("cls = 1")
        for kept in (options().cache_dir / "table").glob("*.parquet"):
            data = bytearray(kept.read_bytes())
            data[data.index(b"k003") + 3] ^= 1
            kept.write_bytes(data)
        table = tarviz.table(path)

        assert [(f"k{at:03}",) for at in range(9)] == table.sql("SELECT key FROM records ORDER BY n").fetchall()
        assert [True] == [shard.sound for shard in table.passes.kept]

    def test_very_large_tables_are_not_read_whole_before_a_question(self, make, monkeypatch):
        path = make(SHARD)
        tarviz.table(path).sizes("cls = 1")
        monkeypatch.setattr(passes, "MOST_PROVEN", 0)
        monkeypatch.setattr("tarviz.table.making.kept_columns.KeptColumns.prove", lambda _: pytest.fail("it was read"))

        assert 13 == tarviz.table(path).sizes("cls = 1")[0]


def test_columns_that_count_other_records_than_those_there_are_refused(make):
    """Made by a worker elsewhere, of a shard that was replaced by one with the same stamp."""
    table = tarviz.table(make(SHARD))
    table.make([NAMES])
    (kept,) = table.passes.kept
    wanted = {Part("value", "cls")}
    made = shard_columns.make_columns(kept.url, ReadOptions(), wanted)

    with pytest.raises(ChangedError, match="replaced"):
        kept.take(wanted, replace(made, records=made.records - 1))


QUERY = "SELECT shard, key, n, size, txt, cls FROM records ORDER BY shard, n"


class TestElsewhere:
    """Columns made by workers of an engine are those that threads of this process make."""

    @pytest.fixture
    def shards(self, make, tmp_path, monkeypatch) -> str:
        monkeypatch.chdir(tmp_path)
        for at, count in enumerate((7, 1, 12)):
            make([(f"p{at}-{n}", {"txt": b"text %d" % n, "cls": b"%d" % (n % 3)}) for n in range(count)], f"in-{at}.tar")
        data = Path("in-2.tar").read_bytes()
        Path("in-3.tar").write_bytes(data[:5000])
        return "in-{0..3}.tar"

    @pytest.mark.parametrize("workers", [2, *sampled([1], 0)])
    def test_rows_and_findings_are_the_same_and_kept(self, shards, tmp_path, monkeypatch, workers):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "one"))
        expected = tarviz.table(shards)
        rows = expected.sql(QUERY).fetchall()
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "other"))

        found = tarviz.table(shards, engine="local", workers=workers)

        assert rows == found.sql(QUERY).fetchall()
        assert expected.findings == found.findings
        assert expected.columns == found.columns
        again = tarviz.table(shards, engine="local", workers=workers, progress=lambda done, total: pytest.fail("a pass was made"))
        assert rows == again.sql(QUERY).fetchall()

    def test_a_pass_that_nobody_wants_ends_between_two_shards(self, shards, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "one"))
        stop = threading.Event()
        done = []

        def progress(count: int, total: int) -> None:
            done.append(count)
            stop.set()

        table = tarviz.table(shards, engine="local")
        table.passes.progress = progress
        with pytest.raises(TarvizError, match="E_STOPPED"):
            table.passes.make({Part("value", "txt")}, stop)

        assert [1] == done

    def test_a_shard_that_changed_meanwhile_is_an_error(self, shards, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "one"))
        table = tarviz.table(shards)
        Path("in-0.tar").write_bytes(Path("in-2.tar").read_bytes())
        shard = table.passes.kept[0]

        with pytest.raises(ChangedError, match="while its columns were made"):
            shard.take({NAMES}, make_columns(shard.url, table.options, {NAMES}))

    def test_an_address_needs_an_engine_and_memory_stays_here(self, shards):
        with pytest.raises(UsageError, match="belongs to an engine"):
            tarviz.table(shards, address="auto")
        with pytest.raises(UsageError, match="of this process alone"):
            tarviz.table("memory://a/b.tar", engine="ray")

    @pytest.mark.parametrize("engine", [None, "local"])
    def test_progress_is_told_shard_by_shard_and_every_shard_is_a_new_version(self, shards, engine):
        told = []
        table = tarviz.table(shards, engine=engine, workers=1, progress=lambda done, total: told.append((done, total)))
        table.make([Part("value", "txt")])

        assert [(at, 4) for at in (1, 2, 3, 4)] == told
        assert 4 == table.passes.version == table.passes.grown
        table.make([Part("value", "cls"), Part("value", "txt")])
        assert 8 == len(told) == table.passes.version
        assert {"W_TRUNCATED_PADDING": 1} == table.findings


def test_what_is_bad_is_counted_over_all_shards(make):
    content = [("a", {"json": b"{", "x.json": b"{"}), ("b", {"json": b"{}"})]
    table = tarviz.table([make(content), make(content[:1], "b.tar"), make(content[1:], "c.tar")])
    table.sql("SELECT * FROM records").fetchall()

    assert {"json.bad": 2, "x.json.bad": 2} == table.findings


def test_what_has_the_parts_by_now_is_in_the_order_of_the_shards(make):
    table = tarviz.table([make(SHARD[:2], "a.tar"), make(SHARD[2:5], "b.tar")])
    assert [] == table.passes.so_far({CONTENT})
    table.make([])
    (first, other) = table.passes.kept
    first.add({CONTENT}, ReadOptions(), look=lambda: None, grown=lambda _: None)()

    assert [first.url] == [shard.url for shard in table.passes.so_far({CONTENT})]
    assert [first.url, other.url] == [shard.url for shard in table.passes.so_far({Part("names")})]
    assert {CONTENT} == table.passes.unmade({CONTENT, Part("names")})


def test_beginnings_of_a_shard_are_told_of_too(make, monkeypatch):
    monkeypatch.setattr(shard_columns, "GROWS", 0.0)
    told = []
    path = make([(f"k{at}", {"bin": bytes(5000)}) for at in range(20)])
    table = tarviz.table(path, block_size=4096, progress=lambda done, total: told.append((done, total)))
    table.make([Part("content", "bin")])

    assert [(0, 1)] * 20 + [(1, 1)] == told
    assert (21, 1) == (table.passes.grown, table.passes.version)


def test_shards_of_a_server_are_waited_for_by_many_and_files_by_one_for_each_processor(make, monkeypatch):
    asked = []

    def pool(count, name):
        asked.append(count)
        return ThreadPoolExecutor(count, name)

    monkeypatch.setattr(passes, "processors", lambda: 2)
    monkeypatch.setattr(passes, "ThreadPoolExecutor", pool)
    for far, workers, expected in [(False, None, 2), (True, None, 5), (False, 3, 3), (True, 1, 1), (False, 9, 5)]:
        urls = [str(make([("a", {"cls": b"1"})], f"{at}.tar")) for at in range(5)]
        if far:
            for at, url in enumerate(urls):
                tarviz.cat(url, f"memory://passes/{at}.tar")
            urls = [f"memory://passes/{at}.tar" for at in range(5)]

        assert 5 == len(tarviz.table(urls, workers=workers))
        assert expected == asked.pop()
