from __future__ import annotations

import gzip
import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from google_crc32c import value as crc
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError, LimitError, SchemaError, TarvizError, UsageError
from tests.conftest import DATA, corpus, each_case

FILES = sorted(path for path in (DATA / "corpora" / "tfrecord").iterdir())


def framed(*records: bytes) -> bytes:
    out = io.BytesIO()
    tfrecord.write(out, records)
    return out.getvalue()


class Dripping:
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        self.data, self.step = io.BytesIO(data), step

    def readinto(self, buffer: memoryview) -> int:
        return self.data.readinto(buffer[: self.step])


class TestFraming:
    def test_the_masked_crc_is_that_of_the_reference(self):
        assert 0xC78AB0E5 == tfrecord.masked_crc32c(b"123456789")
        assert tfrecord.masked_crc32c(b"abc") == tfrecord.masked_crc32c(memoryview(bytearray(b"xabc"))[1:])

    @given(st.binary(max_size=50), st.binary(max_size=50))
    def test_a_crc_goes_on_where_another_ended(self, one, two):
        assert crc(one + two) == tfrecord.crc32c(memoryview(two), tfrecord.crc32c(bytearray(one)))

    @each_case("length", [0, 1, 255, 256, 65_535, 2**24, 2**31 - 1, 2**32 - 1, 2**32, 2**40 + 12345])
    def test_headers_hold_length_and_masked_crc(self, length):
        packed = struct.pack("<Q", length)
        expected = packed + struct.pack("<I", tfrecord.masked_crc32c(packed))

        headers = tfrecord._headers(np.array([length, 5]))

        assert expected == headers[0].tobytes()

    @given(st.lists(st.binary(max_size=200), max_size=20))
    def test_read_gives_back_what_was_written(self, records):
        assert records == [bytes(record) for record in tfrecord.read(framed(*records))]

    @given(st.lists(st.binary(max_size=200), max_size=20), st.data())
    def test_frames_are_cut_anywhere_between_records(self, records, data):
        frames = tfrecord.frame(records)
        cut = data.draw(st.integers(0, len(records)))

        assert framed(*records) == b"".join(frames.buffers(0, cut) + frames.buffers(cut))
        assert len(framed(*records[:cut])) == frames.size[:cut].sum()

    @given(st.lists(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=3), max_size=9), st.data())
    def test_short_records_and_those_in_pieces_give_the_same_file(self, records, data):
        whole = [b"".join(pieces) for pieces in records]
        size = np.array([len(each) for each in whole], np.int64)
        apart = example.Examples(np.arange(len(records)), size, None, [tuple(pieces) for pieces in records])
        cut = data.draw(st.integers(0, len(records)))
        for frames in (tfrecord.frame(whole), tfrecord.frame(apart)):
            assert framed(*whole) == b"".join(frames.buffers(0, cut) + frames.buffers(cut))

    def test_tensorflow_reads_what_is_written(self, tmp_path):
        tf = pytest.importorskip("tensorflow")
        records = [b"", b"a", b"b" * 70_000, example.encode({"cls": 1})]
        path = tmp_path / "a.tfrecord"
        path.write_bytes(framed(*records))

        assert records == [bytes(record.numpy()) for record in tf.data.TFRecordDataset(str(path))]

    def test_the_bytes_are_those_of_tensorflow(self, tmp_path):
        tf = pytest.importorskip("tensorflow")
        records = [b"", b"a", b"b" * 70_000]
        with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
            for record in records:
                writer.write(record)

        assert (tmp_path / "a.tfrecord").read_bytes() == framed(*records)


class TestRead:
    def test_records_may_come_a_byte_at_a_time(self):
        records = [b"abc", b"", b"x" * 500]

        assert records == [bytes(record) for record in tfrecord.read(Dripping(framed(*records), 1))]

    @each_case("size", [1 << 20, (1 << 20) - 16, (1 << 20) + 1, 5 << 20])
    def test_records_may_be_larger_than_a_block(self, size):
        records = [b"a" * 100, b"b" * size, b"c" * 100, b"d" * size]

        assert records == [bytes(record) for record in tfrecord.read(framed(*records))]

    def test_many_blocks(self):
        records = [bytes([at % 251]) * (at % 3000) for at in range(3000)]

        reader = tfrecord.read(framed(*records))

        assert records == [bytes(record) for record in reader]
        assert (3000, len(framed(*records))) == (reader.records, reader.offset)

    @pytest.mark.matrix
    def test_views_stay_valid_and_cannot_be_written(self):
        views = list(tfrecord.read(framed(*[b"%06d" % at for at in range(200_000)])))

        assert b"000000" == bytes(views[0])
        assert views[0].readonly

    @pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda data: gzip.compress(data[:30]) + gzip.compress(data[30:])])
    def test_compression_is_told_by_the_bytes(self, pack):
        records = [b"abc" * 100, b"", b"x" * 5000]

        reader = tfrecord.read(pack(framed(*records)))

        assert records == [bytes(record) for record in reader]
        assert reader.compression in ("gzip", "zlib")

    @pytest.mark.parametrize("length", [0x9C78, 0x0178, 0x8B1F])
    def test_a_length_that_looks_like_compression_is_a_length(self, length):
        records = [b"x" * length]

        assert records == [bytes(record) for record in tfrecord.read(framed(*records))]

    def test_plain_is_read_as_plain_where_that_is_asked(self):
        with pytest.raises(DataError, match="compression='auto'") as caught:
            next(tfrecord.read(gzip.compress(framed(b"abc")), compression=None))

        assert "E_NOT_TFRECORD" == caught.value.code

    def test_skip_goes_on_behind_a_record_whose_crc_is_wrong(self):
        records = [b"%03d" % at * 10 for at in range(10)]
        data = bytearray(framed(*records))
        size = len(framed(records[0]))
        for bad in (0, 4, 5, 9):
            data[bad * size + 20] ^= 1

        reader = tfrecord.read(data, on_error="skip", shard="a.tfrecord")

        assert [records[at] for at in (1, 2, 3, 6, 7, 8)] == [bytes(record) for record in reader]
        assert [0, 4 * size, 5 * size, 9 * size] == [fault.offset for fault in reader.faults]
        assert [0, 3, 3, 6] == [fault.records_before for fault in reader.faults]
        assert {"E_DATA_CRC"} == {fault.code for fault in reader.faults}
        assert 6 == reader.records

    def test_skip_does_not_pass_over_a_wrong_length(self):
        data = bytearray(framed(b"abc", b"def"))
        data[19] ^= 1

        with pytest.raises(DataError) as caught:
            list(tfrecord.read(data, on_error="skip"))

        assert "E_LENGTH_CRC" == caught.value.code

    @pytest.mark.parametrize("option", [{"on_error": "ignore"}, {"compression": "zip"}])
    def test_a_wrong_option_is_refused(self, option):
        with pytest.raises(UsageError, match="is not one of"):
            tfrecord.read(b"", **option)

    def test_a_record_beyond_the_limit_is_refused(self):
        with pytest.raises(LimitError, match="limit") as caught:
            list(tfrecord.read(framed(b"abc", bytes(5 << 20)), max_record_bytes=1 << 20, shard="a"))

        assert ("E_LIMIT", 19, 1) == (caught.value.code, caught.value.offset, caught.value.records_before)

    @pytest.mark.parametrize("limit", [(2 << 20) - 4, 2 << 20, 5 << 20])  # more than a block, which is read at once
    def test_a_record_of_just_the_limit_is_read(self, limit):
        assert [limit] == [len(each) for each in tfrecord.read(framed(bytes(limit)), max_record_bytes=limit)]
        with pytest.raises(LimitError):
            list(tfrecord.read(framed(bytes(limit + 100)), max_record_bytes=limit))

    def test_bytes_behind_a_compressed_file_are_an_error_at_its_end(self):
        reader = tfrecord.read(gzip.compress(framed(b"abc")) + b"more")

        assert b"abc" == bytes(next(reader))
        with pytest.raises(DataError) as caught:
            next(reader)
        assert "E_TRAILING" == caught.value.code

    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress])
    def test_a_file_cut_anywhere_gives_the_whole_records_and_an_error(self, pack):
        records = [b"abc", b"", b"x" * 30]
        data = pack(framed(*records))
        ends = [0, 19, 35, 81]
        for cut in range(1, len(data)):
            if pack is bytes and cut in ends:
                continue
            found = []
            with pytest.raises(DataError) as caught:
                found.extend(bytes(record) for record in tfrecord.read(data[:cut]))
            assert found == records[: len(found)]
            assert caught.value.code in ("E_TRUNCATED", "E_TRUNCATED_COMPRESSED")
            if pack is bytes:
                assert sum(end <= cut for end in ends) - 1 == len(found) == caught.value.records_before
                assert ends[len(found)] == caught.value.offset

    @given(st.data())
    @settings(deadline=None)
    def test_damage_never_gives_a_wrong_record(self, data):
        records = [b"%03d" % at * 7 for at in range(5)]
        whole = bytearray(framed(*records))
        for _ in range(data.draw(st.integers(1, 3))):
            whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        reader = tfrecord.read(whole, on_error="skip")
        try:
            found = [bytes(record) for record in reader]
        except DataError:
            return
        assert set(found) <= set(records)
        assert len(records) == len(found) + len(reader.faults)

    @given(st.binary(max_size=100))
    def test_any_bytes_are_records_or_a_data_error(self, data):
        reader = tfrecord.read(data)
        found: list[bytes] = []
        try:
            found.extend(map(bytes, reader))
        except DataError as error:
            assert error.code.startswith("E_")
            assert data.startswith(framed(*found))
        else:
            assert data == framed(*found) or reader.compression

    @pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "zlib"])
    @pytest.mark.matrix
    def test_a_compressed_file_may_not_inflate_without_end(self, monkeypatch, pack):
        noise = bytes(n * n * 31 % 251 for n in range(20_000))
        large = noise[:2048] * (36 << 10)  # 72 MiB: more than may be above the ratio in one go
        packed = pack(framed(large, noise))
        assert [len(large), len(noise)] == [len(record) for record in tfrecord.read(packed)]
        monkeypatch.setenv("TARVIZ_MAX_RATIO", "50")

        with pytest.raises(LimitError, match="more than 50 to 1"):
            list(tfrecord.read(packed))

    @each_case("pack", [bytes, gzip.compress])
    @each_case("step", [1, 5, 11, 13])
    def test_bytes_may_come_in_small_pieces(self, pack, step):
        class Trickle(io.BytesIO):
            def readinto(self, buffer):
                return super().readinto(memoryview(buffer)[:step])

        assert [b"abc", b"", b"x" * 99] == [bytes(record) for record in tfrecord.read(Trickle(pack(framed(b"abc", b"", b"x" * 99))))]

    def test_a_length_that_lies_costs_no_memory(self):
        code = """
import resource, sys
from tests import memory
from tarviz.formats import tfrecord
from tarviz.model.errors import DataError
list(tfrecord.read(tfrecord.frame([b"x"]).buffers()[0]))
resource.setrlimit(resource.RLIMIT_AS, (memory.peak() + (600 << 20),) * 2)
before = memory.begin()
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        try:
            list(tfrecord.read(file))
        except DataError as error:
            assert error.code == "E_TRUNCATED", error
grown = memory.peak() - before
assert grown < 16 << 20, grown
"""
        huge = [str(path) for path in FILES if path.name.startswith("huge-length")]

        assert 2 == len(huge)
        subprocess.run([sys.executable, "-c", code, *huge], check=True, cwd=Path(tfrecord.__file__).parents[2])


@pytest.mark.parametrize(("path", "entry"), corpus("tfrecord"))
class TestCorpus:
    """Every file behaves as the manifest says."""

    def test_behaves_as_expected(self, path: Path, entry):
        expected = entry["tarviz_expected"]
        found, error = [], None
        with path.open("rb") as file:
            reader = tfrecord.read(file, shard=path.name)
            try:
                found.extend(bytes(record) for record in reader)
            except TarvizError as caught:
                error = caught

        if "records" in expected:
            assert error is None
            assert expected["records"] == len(found)
        else:
            assert error is not None
            assert expected["error"] == error.code
            assert path.name == error.shard
            assert len(found) == error.records_before
        if "records_before" in expected:
            assert (expected["records_before"], expected["offset"]) == (len(found), error.offset)
        if "resumable_at" in expected:
            assert expected["resumable_at"] == error.details["resumable_at"]
        if "hint" in expected:
            assert expected["hint"] in error.hint
        if "compression" in expected:
            assert expected["compression"].lower() == reader.compression
        if "error_when_parsed" in expected:
            code, _, number, *where = expected["error_when_parsed"].split()
            with pytest.raises(TarvizError) as caught:
                example.decode(found[int(number)], {"id": "int64"} if code == "E_SCHEMA" else None)
            assert code == caught.value.code
            if code == "E_SCHEMA":
                assert isinstance(caught.value, SchemaError)
                assert where[1] == caught.value.member
            else:
                assert int(where[1]) == caught.value.offset


def test_every_file_of_the_corpus_behaves_as_expected():
    """`make test` runs three cases of the test above: they are quick in one go."""
    for case in corpus("tfrecord"):
        TestCorpus().test_behaves_as_expected(*case.values)


@pytest.mark.parametrize("name", ["bad-data-crc-rec2.tfrecord", "bad-footer-rec2.tfrecord"])
def test_skip_reads_on_behind_the_damage(name):
    reader = tfrecord.read((DATA / "corpora" / "tfrecord" / name).read_bytes(), on_error="skip")

    assert 4 == len(list(reader))
    assert [(162, 243)] == [(fault.offset, fault.details["resumable_at"]) for fault in reader.faults]


class TestTogether:
    @each_case("sizes", [[], [1] * 3000, [3 << 20] * 3, [5 << 20, 1], [0] * 1024])
    def test_records_keep_their_order_and_lists_are_bounded(self, sizes: list[int]) -> None:
        records = [bytes(size) for size in sizes]
        batches = list(tfrecord.together(iter(records)))

        assert records == [record for batch in batches for record in batch]
        assert all(len(batch) <= 1024 and sum(map(len, batch[:-1])) < 4 << 20 for batch in batches)
