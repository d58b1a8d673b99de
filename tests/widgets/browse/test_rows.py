"""Rows while shards are scanned: complete, in order, read in few ranges, the same whichever way they were found."""

from __future__ import annotations

import gzip
import os
import tarfile
import threading
import time

import pytest

from tarviz import stores
from tarviz.model.errors import LimitError, TarvizError
from tarviz.model.types import URL
from tarviz.read import stream
from tarviz.read.stream import ReadOptions
from tarviz.widgets.browse.rows import Rows, Want, payloads, row_id, split_id
from tarviz.widgets.browse.scan import Scan
from tests import effort
from tests.conftest import DATA, wait_until
from tests.widgets.conftest import png, tar


def scanned(urls, *, cache=False, seconds=60.0):
    rows = Rows(stores.expand(urls))
    scan = Scan(rows, ReadOptions(), cache=cache)
    scan.go_on()
    until = time.monotonic() + seconds
    while not rows.finished and time.monotonic() < until:
        with rows.changed:
            rows.changed.wait(0.05)
    scan.close()
    assert rows.finished, [shard.state for shard in rows.shards]
    return rows


def keys(rows):
    return [rows.row(row).key for row in rows.ids(0, len(rows))]


def test_rows_are_the_records_of_the_index(shards):
    rows = scanned(shards)
    index = stream.index(shards)

    assert list(index.keys()) == keys(rows)
    for place in (0, 19, 20, 59):
        row = rows.row(rows.ids(place, place + 1)[0])
        assert dict(index[place]) == dict(row.load())
        assert {ext: len(payload) for ext, payload in index[place].items()} == row.sizes
        assert place == rows.position(row.id)


def test_a_row_keeps_its_number(shards):
    rows = scanned(shards)

    assert (2, 5) == split_id(row_id(2, 5))
    assert "set/n000045" == rows.row(row_id(2, 5)).key
    assert row_id(1, 3) == rows.find(b"set/n000023")
    assert rows.find(b"set/none") is None
    assert rows.find(b"") is None
    with pytest.raises(IndexError):
        rows.row(row_id(2, 20))
    with pytest.raises(IndexError):
        rows.row(row_id(9, 0))


def test_a_kept_index_gives_the_same_rows(shards):
    fresh = scanned(shards, cache=True)
    kept = scanned(shards, cache=True)

    assert keys(fresh) == keys(kept)
    assert all(shard.cached for shard in kept.shards)
    assert not any(shard.cached for shard in fresh.shards)


def test_an_index_kept_by_the_verb_serves_the_browser(shards):
    stream.index(shards)

    assert all(shard.cached for shard in scanned(shards, cache=True).shards)


@pytest.mark.parametrize("packed", [False, True])
def test_streamed_shards_give_the_same_rows(tmp_path, shards, packed):
    paths = []
    for path in shards:
        data = path.read_bytes()
        paths.append(tmp_path / (path.name + ".gz" if packed else f"copy-{path.name}"))
        paths[-1].write_bytes(gzip.compress(data, 1) if packed else data)
    rows = scanned(paths)

    assert keys(scanned(shards)) == keys(rows)
    assert packed is bool(rows.shards[0].compression)
    assert b"2" == bytes(rows.row(row_id(1, 0)).load()["cls"])


def test_members_are_read_in_few_ranges(shards, monkeypatch):
    rows = scanned(shards)
    reads = []
    store = type(stores.of(URL(str(shards[0]))))
    original = store.read
    monkeypatch.setattr(store, "read", lambda self, *a, **k: reads.append(a) or original(self, *a, **k))
    chosen = [rows.row(row) for row in rows.ids(0, 30)]
    found = payloads([Want(row, "cls") for row in chosen])

    assert [str(number % 3).encode() for number in range(30)] == found
    assert 2 == len(reads)


def test_a_payload_that_cannot_be_had_is_an_error_in_its_place(shards):
    rows = scanned(shards)
    row = rows.row(row_id(0, 0))
    found = payloads([Want(row, "cls"), Want(row, "wav"), Want(row, "png")], limit=50)

    assert b"0" == found[0]
    assert ["E_MISSING_FIELD", "E_LIMIT"] == [error.code for error in found[1:] if isinstance(error, TarvizError)]


def test_a_shard_that_changed_is_noticed_when_it_is_read(shards):
    rows = scanned(shards)
    row = rows.row(row_id(0, 3))
    os.truncate(shards[0], 2000)
    found = payloads([Want(row, "png")])[0]

    assert isinstance(found, TarvizError)
    assert "E_CHANGED" == found.code


def test_its_thread_ends_when_it_is_closed(shards):
    before = set(threading.enumerate())
    scan = Scan(Rows([URL(str(shards[0]))]), ReadOptions(), cache=False)
    (thread,) = [each for each in set(threading.enumerate()) - before if each.name == "tarviz-scan"]
    scan.close()

    assert not thread.is_alive()


def test_a_missing_shard_is_one_finding_and_the_others_show(tmp_path, shards):
    rows = Rows([URL(str(shards[0])), URL(str(tmp_path / "gone.tar")), URL(str(shards[1]))])
    scan = Scan(rows, ReadOptions(), cache=False)
    wait_until(lambda: rows.finished)
    scan.close()

    assert ["done", "missing", "done"] == [shard.state for shard in rows.shards]
    assert 40 == len(rows)


def test_a_shard_that_lacks_its_end_is_whole_with_a_finding(tmp_path):
    path = tar(tmp_path / "a.tar", [("a", {"txt": b"1"}), ("b", {"txt": b"2"})])
    with open(path, "r+b") as file:
        file.truncate(4 * 512)
    rows = scanned([path])

    assert (["a", "b"], ["W_NO_EOF"]) == (keys(rows), [fault.code for fault in rows.shards[0].faults])


def test_a_field_given_twice_is_shown_once_with_a_finding(tmp_path):
    path = tar(tmp_path / "twice.tar", [("a", {"cls": b"1", "CLS": b"2", "txt": b"x"}), ("b", {"cls": b"3"})])
    rows = scanned([path], cache=True)

    assert ["a", "b"] == keys(rows)
    assert {"cls": 1, "txt": 1} == rows.row(0).sizes
    assert ["W_DUP_FIELD"] == [fault.code for fault in rows.shards[0].faults]
    assert ["a", "b"] == keys(scanned([path], cache=True))


@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "corpora" / "generated").glob("[ABCS]*.tar*")))
def test_every_damaged_shard_ends_in_a_state_and_its_rows_can_be_read(name):
    rows = scanned([DATA / "corpora" / "generated" / name])

    assert rows.shards[0].state in ("done", "damaged")
    assert rows.shards[0].faults or rows.shards[0].state == "done"
    for row in rows.ids(0, 50):
        for blob in payloads([Want(rows.row(row), ext) for ext in rows.row(row).fields]):
            assert isinstance(blob, (bytes, TarvizError))


def test_sparse_members_are_whole(tmp_path):
    path = DATA / "corpora" / "generated" / "A46-sparse-gnu-old.tar"
    if not path.is_file():
        pytest.skip("the corpus is not here")
    rows = scanned([path])
    index = stream.index(path)

    assert [dict(record) for record in index] == [dict(rows.row(row).load()) for row in rows.ids(0, 99)]


def many_shard(path, many):
    """A shard of `many` records of two bytes each, `k0000000` and so on."""
    block = bytearray(tar(path, [("k0000000", {"cls": b"1\n"})]).read_bytes()[:1024])
    total = sum(block[:148]) + 8 * 32 + sum(block[156:512]) - sum(b"0000000")
    with path.open("wb") as file:
        for number in range(many):
            digits = b"%07d" % number
            block[1:8] = digits
            block[148:156] = b"%06o\0 " % (total + sum(digits))
            file.write(block)
        file.write(bytes(1024))
    return path


def test_very_many_records_of_two_bytes_are_usable(tmp_path):
    rows = scanned([many_shard(tmp_path / "many.tar", 100_000)])
    with effort.counted() as calls:
        row = rows.row(rows.find(b"k0099999"))

        assert b"1\n" == payloads([Want(row, "cls")])[0]
    assert 100_000 == len(rows)
    assert calls.count < 10_000


def test_strange_keys_survive(tmp_path):
    strange = ["x" * 1000, "שלום", "🎉/🎉", "a b\tc", "<script>", "key with 'quotes'"]
    rows = scanned([tar(tmp_path / "s.tar", [(key, {"txt": b"t"}) for key in strange])])

    assert strange == keys(rows)
    assert all(rows.find(key.encode()) is not None for key in strange)


def until(rows, true, seconds=60.0):
    """Wait for the scan to have come so far."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        with rows.changed:
            rows.changed.wait(0.02)
    assert true(), [(shard.state, shard.count) for shard in rows.shards]


def packed_shards(tmp_path, count=3):
    urls = []
    for number in range(count):
        plain = tar(tmp_path / f"{number}.tar", [(f"{number}/{n:04d}", {"bin": os.urandom(3000), "cls": b"1"}) for n in range(1500)])
        packed = tmp_path / f"{number}.tar.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
        urls.append(URL(str(packed)))
    return urls


@pytest.mark.matrix
def test_the_shard_that_is_looked_at_is_scanned_first(tmp_path):
    rows = Rows(packed_shards(tmp_path))
    scan = Scan(rows, ReadOptions(), cache=False)
    scan.want(24)
    until(rows, lambda: rows.shards[0].state == "paused")
    assert [0, 0] == [shard.count for shard in rows.shards[1:]]

    scan.look_at(2)
    scan.want(24)
    until(rows, lambda: rows.shards[2].state == "paused")

    assert 24 <= rows.shards[2].count < 1500
    assert rows.shards[0].count < 1500
    assert 0 == rows.shards[1].count
    scan.close()
    rows.close()


def test_a_shard_is_scanned_again_from_its_beginning(tmp_path):
    rows = Rows(packed_shards(tmp_path, 1))
    scan = Scan(rows, ReadOptions(), cache=False)
    scan.want(24)
    until(rows, lambda: rows.shards[0].state == "paused")
    fresh = tar(tmp_path / "fresh.tar", [(f"new/{n:04d}", {"cls": b"2"}) for n in range(700)])
    packed = tmp_path / "fresh.tar.gz"
    packed.write_bytes(gzip.compress(fresh.read_bytes(), 1))
    os.replace(packed, rows.shards[0].url)
    before = rows.shards[0]

    scan.again(before)
    scan.go_on()
    until(rows, lambda: rows.finished)

    assert before is not rows.shards[0]
    assert [f"new/{n:04d}" for n in range(700)] == keys(rows)
    assert b"2" == payloads([Want(rows.row(row_id(0, 699)), "cls")])[0]
    scan.close()
    rows.close()


def test_a_payload_of_more_than_64_mib_is_not_read(tmp_path):
    with open(tmp_path / "a.tar", "wb") as out:
        for key, size in (("a", 64 << 20), ("b", (64 << 20) + 1)):
            info = tarfile.TarInfo(f"{key}.bin")
            info.size = size
            out.write(info.tobuf())
            out.truncate(out.seek(-(-size // 512) * 512, os.SEEK_CUR))  # a hole
        out.truncate(out.tell() + 1024)
    rows = scanned(str(tmp_path / "a.tar"))
    whole, refused = payloads([Want(rows.row(row), "bin") for row in rows.ids(0, 2)])

    assert bytes(64 << 20) == whole
    assert isinstance(refused, LimitError)
    rows.close()


@pytest.mark.matrix
def test_streaming_stops_beyond_what_is_looked_at(tmp_path):
    packed = tmp_path / "large.tar.gz"
    plain = tar(tmp_path / "large.tar", [(f"k{n:05d}", {"png": png() + os.urandom(3000), "cls": b"1"}) for n in range(3000)])
    packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
    rows = Rows([URL(str(packed))])
    scan = Scan(rows, ReadOptions(), cache=False)
    scan.want(24)
    wait_until(lambda: "paused" == rows.shards[0].state)

    assert 24 <= len(rows) < 3000
    scan.go_on()
    wait_until(lambda: rows.finished)
    assert 3000 == len(rows)
    assert b"1" == payloads([Want(rows.row(row_id(0, 2999)), "cls")])[0]
    assert b"1" == payloads([Want(rows.row(row_id(0, 0)), "cls")])[0]
    scan.close()
    rows.close()
