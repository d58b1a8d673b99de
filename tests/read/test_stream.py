"""Records, blocks, members and the index over whole shards, damaged ones above all."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.model.errors import ChangedError, DataError, LimitError, NotFoundError, TarvizError, TarvizWarning, UsageError
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.testing.strategies import numbered_records, shard
from tarviz.testing.strategies import records as record_lists
from tests import effort, memory
from tests.conftest import DATA, corpus, each_case, unpacked

pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")

CASES = [entry | {"path": str(path)} for path, entry in (case.values for case in corpus("generated"))]
LISTED = json.loads((DATA / "corpora" / "MANIFEST.json").read_text("utf-8"))["files"]
CASES += [case | {"path": str(path)} for case in LISTED if (path := unpacked() / Path(case["file"]).name).is_file()]


def read(path: Any, **options: Any) -> tuple[list[Any], TarvizError | None, ReadReport]:
    run = stream.records(path, **options)
    found: list[Any] = []
    try:
        found.extend(run)
    except TarvizError as error:
        return found, error, run.report
    return found, None, run.report


def write(folder: Path, content: Any, name: str = "a.tar", **options: Any) -> Path:
    path = folder / name
    path.write_bytes(shard(content, **options))
    return path


def plain(found: Any) -> list[tuple[str, dict[str, bytes]]]:
    return [(record.key, {ext: bytes(value) for ext, value in record.items()}) for record in found]


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
class TestCorpus:
    def test_reads_as_expected_when_lenient(self, case):
        expected = case["tarviz_expected"]
        found, error, report = read(case["path"], strict=False, max_ratio=2000)

        if "records" in expected:
            assert expected["records"] == len(found)
        if "keys" in expected:
            assert expected["keys"] == [record.key for record in found]
        if "key_bytes_hex" in expected:
            assert expected["key_bytes_hex"] == found[0].key.encode("utf-8", "surrogateescape").hex()
        for name, size in expected.get("sizes", {}).items():
            key, ext = name.split(".")
            assert size == next(len(record[ext]) for record in found if record.key == key)
        for key, fields in expected.get("fields", {}).items():
            assert fields == next(list(record) for record in found if record.key == key)

        if "error" in expected and "lenient" not in expected:
            assert error is not None
            assert expected["error"] == error.code
            assert expected.get("records_before", error.records_before) == error.records_before
            assert expected.get("offset", error.offset) == error.offset
            assert expected.get("record") in (None, error.key, error.member)
            for word in ("need", "have", "resync_at"):
                assert expected.get(word) in (None, error.details.get(word))
            if "hint" in expected:
                assert set(re.findall(r"\w{5,}", expected["hint"])) & set(re.findall(r"\w{5,}", error.hint))
            assert case["path"] == error.shard
        elif "error_at_end" in expected:
            assert error is not None
            assert expected["error_at_end"] == error.code
        else:
            assert error is None

        if "warn" in expected:
            code, _, rest = expected["warn"].replace(":", " ").partition(" ")
            assert code in report.counts()
            if times := re.search(r"x(\d)", rest):
                assert int(times[1]) == report.counts()[code]
            if place := re.search(r"(?:offset|again at|EOF at) (\d+)", rest):
                assert int(place[1]) in [fault.offset for fault in report.warnings if fault.code == code]

    def test_reads_as_expected_when_strict(self, case):
        expected = case["tarviz_expected"]
        found, error, _ = read(case["path"], max_ratio=2000)

        if "strict" in expected:
            assert error is not None
            assert expected["strict"].split(";")[0].startswith(error.code)
        elif "error" in expected:
            assert error is not None
            assert expected["error"] == error.code
        elif "error_at_end" not in expected:
            assert error is None
        assert not any(record.pending for record in found)

    def test_options_of_the_matrix_do_what_they_say(self, case):
        for option, result in case["tarviz_expected"].get("with_option", {}).items():
            name, _, value = option.partition("=")
            found, error, _ = read(case["path"], strict=False, **{name: int(value) if value else True})
            if result == "E_LIMIT" or "error" in result:
                assert error is not None
                assert "E_LIMIT" == error.code
            else:
                assert error is None
                assert result["records"] == len(found)

    def test_the_index_holds_the_same_records(self, case):
        if case["id"] in ("C14", "B44"):
            return  # reading these is refused; indexing is not
        found, _, _ = read(case["path"], strict=False, max_ratio=2000)
        try:
            index = stream.index(case["path"])
        except TarvizError:
            assert not found
            return

        assert [record.key for record in found] == list(index.keys())
        assert [list(record) for record in found] == [list(index[number]) for number in range(len(index))]

    def test_no_member_comes_out_in_silence(self, case):
        """0 of the damaged tars end early without a word."""
        if case["class_"] != "corrupt" or case["id"] in ("B10", "B33"):
            return
        _, error, report = read(case["path"])

        assert error is not None or report.warnings


@pytest.mark.parametrize(
    "holds",
    [
        TestCorpus.test_reads_as_expected_when_lenient,
        TestCorpus.test_reads_as_expected_when_strict,
        TestCorpus.test_options_of_the_matrix_do_what_they_say,
    ],
)
def test_every_small_tar_of_the_corpus(holds):
    """Of each test above `make test` runs three cases: these are quick in one go."""
    for case in CASES:
        if case["bytes"] < 30_000:
            holds(None, case)


class TestRecords:
    @given(record_lists(), st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]), st.sampled_from([4096, 8192, 1 << 20]))
    @settings(max_examples=100, deadline=None)
    @pytest.mark.matrix
    def test_gives_back_what_was_written(self, tmp_path_factory, content, format, block_size):
        path = write(tmp_path_factory.mktemp("t"), content, format=format)

        assert content == plain(stream.records(path, block_size=block_size))

    def test_a_record_larger_than_a_block_comes_whole(self, tmp_path):
        content = [("a", {"bin": os.urandom(100_000), "cls": b"1"}), ("b", {"bin": os.urandom(50_000)})]

        assert content == plain(stream.records(write(tmp_path, content), block_size=4096))

    def test_records_stay_valid_while_they_are_held(self, tmp_path):
        content = [(f"k{at:04d}", {"bin": bytes([at % 256]) * 700}) for at in range(3000)]
        held = list(stream.records(write(tmp_path, content), block_size=16384))

        assert content == plain(held)

    def test_shards_come_in_the_order_of_their_template(self, tmp_path):
        for number in range(3):
            write(tmp_path, [(f"{number}", {"txt": b""})], f"s-{number}.tar")

        assert ["0", "1", "2"] == [record.key for record in stream.records(f"{tmp_path}/s-{{0..2}}.tar")]

    def test_a_missing_shard_is_named(self, tmp_path):
        write(tmp_path, [], "s-0.tar")
        with pytest.raises(NotFoundError, match=r"s-1\.tar"):
            stream.records(f"{tmp_path}/s-{{0..1}}.tar")

    def test_an_option_that_does_not_exist_is_named(self, tmp_path):
        with pytest.raises(UsageError, match="no option 'strickt'"):
            stream.records(write(tmp_path, []), strickt=True)

    def test_each_warning_code_comes_once(self, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(pack([("README", b""), ("LICENSE", b""), ("a.txt", b"1")]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TarvizWarning)
            run = stream.records(path)
            list(run)

        assert ["W_NO_KEY"] == [str(each.message).split()[0] for each in caught]
        assert {"W_NO_KEY": 2} == run.report.counts()

    def test_closing_lets_go_of_the_file(self, tmp_path):
        path = write(tmp_path, numbered_records(5000))
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(50):
            for _record in stream.records(path):
                break
            run = stream.records(path)
            next(run)
            run.close()

        assert before == len(list(Path("/proc/self/fd").iterdir()))


class TestThreads:
    def test_a_second_reader_at_one_time_is_told_so_and_nothing_is_lost(self, tmp_path):
        pipe, found = tmp_path / "a.tar", []
        os.mkfifo(pipe)
        run = stream.records(pipe)
        reader = threading.Thread(target=lambda: found.append(next(run).key))
        reader.start()
        with open(pipe, "wb") as file:  # opened: the reader waits inside
            with pytest.raises(UsageError, match="two threads"):
                next(run)
            file.write(pack([("a.txt", b"1"), ("b.txt", b"2")]))
        reader.join(60)

        assert ["a", "b"] == [*found, *(record.key for record in run)]

    def test_a_value_error_of_its_own_stays_one(self, tmp_path, monkeypatch):
        run = stream.records(write(tmp_path, [("a", {"txt": b"1"})]))
        monkeypatch.setattr(stream, "blocks", lambda *_, **__: (int("no") for _ in "x"))

        with pytest.raises(ValueError, match="invalid literal"):
            next(run)


class TestCuts:
    """P4: no cut of a shard, at any byte, yields a record that lacks a member."""

    @pytest.mark.parametrize(
        ("packed", "every"),
        [(False, False), (True, True), pytest.param(False, True, marks=pytest.mark.matrix)],
        ids=["tar, about the blocks", "tar.gz", "tar"],
    )
    def test_no_cut_gives_a_partial_record(self, tmp_path, packed, every):
        content = [(f"k{n}", {"cls": b"%d" % n, "bin": bytes([n]) * 600}) for n in range(3)]
        data = shard(content)[: 3 * 3 * 512 + 3 * 512 + 1024]
        data = gzip.compress(data) if packed else data
        path = tmp_path / ("a.tar.gz" if packed else "a.tar")
        for length in range(len(data)):
            if not every and 3 < length % 512 < 509 and length % 64:
                continue
            path.write_bytes(data[:length])
            found, error, _ = read(path)
            assert plain(found) == content[: len(found)]
            if error is None:
                assert content == plain(found)

    def test_lenient_reading_marks_what_may_lack_a_member(self, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(shard(numbered_records(2))[: 2 * (512 + 1024 + 512)])
        found, error, report = read(path, strict=False)

        assert error is None
        assert [True] == [record.pending for record in found][-1:]
        assert "W_NO_EOF" in report.counts()


class TestSkip:
    def damaged(self, folder: Path, *members: int) -> Path:
        data = bytearray(shard(numbered_records(1000, payload=b"x" * 100)))
        for member in members:
            data[member * 1024 + 5] ^= 1
        path = folder / "a.tar"
        path.write_bytes(data)
        return path

    @pytest.mark.parametrize("member", [100, 101, 1000, 1999])
    def test_one_damaged_header_costs_one_record(self, tmp_path, member):
        found, error, report = read(self.damaged(tmp_path, member), on_error="skip")

        assert error is None
        assert 999 == len(found)
        assert f"train/n{member // 2:08d}" not in [record.key for record in found]
        assert ["E_CHECKSUM"] == [fault.code for fault in report.skipped]
        assert all(2 == len(record) for record in found)

    def test_raise_stops_behind_the_last_certain_record(self, tmp_path):
        found, error, _ = read(self.damaged(tmp_path, 100))

        assert isinstance(error, DataError)
        assert (49, 50, 102400) == (len(found), error.records_before, error.offset)


class TestHostile:
    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux knows them")
    @pytest.mark.parametrize("case", [case for case in CASES if case["id"][0] in "BSD"], ids=lambda case: case["id"])
    def test_costs_little_time_and_memory(self, case):
        before = memory.begin()
        with effort.counted() as calls:
            for strict in (True, False):
                read(case["path"], strict=strict)

        assert calls.count < 100_000
        assert memory.peak() - before < 16 << 20

    def test_sizes_promised_are_not_allocated(self):
        program = (
            "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
            "import warnings; warnings.simplefilter('ignore')\n"
            "from tarviz.read import stream as reading\nfrom tarviz.model.errors import TarvizError\n"
            "for path in sys.argv[1:]:\n"
            "    try:\n        list(reading.records(path, strict=False))\n    except TarvizError: pass\n"
        )
        paths = [case["path"] for case in CASES if case["id"][0] in "BSDC"]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}

        assert b"" == subprocess.run([sys.executable, "-c", program, *paths], check=True, capture_output=True, env=environment).stderr

    def test_a_member_over_the_limit_is_refused(self, tmp_path):
        path = write(tmp_path, [("a", {"txt": b"1"}), ("b", {"bin": bytes(100_000)}), ("c", {"txt": b"2"})])
        found, error, _ = read(path, max_member_bytes=50_000, block_size=4096)
        skipped, _, report = read(path, max_member_bytes=50_000, block_size=4096, on_error="skip")

        assert isinstance(error, LimitError)
        assert (["a"], "b", 1) == ([record.key for record in found], error.key, error.records_before)
        assert (["a", "c"], ["E_LIMIT"]) == ([record.key for record in skipped], [fault.code for fault in report.skipped])


class TestGroup:
    MEMBERS = (("a.jpg", b"1"), ("b.jpg", b"2"), ("a.cls", b"3"), ("b.cls", b"4"), ("a.jpg", b"5"))

    @pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
    def test_gathers_the_members_of_a_shard(self, tmp_path, name):
        path = tmp_path / name
        path.write_bytes(gzip.compress(pack(self.MEMBERS)) if name.endswith("gz") else pack(self.MEMBERS))
        found, error, _ = read(path, group="shard", duplicates="last")

        assert error is None
        assert [("a", {"jpg": b"5", "cls": b"3"}), ("b", {"jpg": b"2", "cls": b"4"})] == plain(found)

    def test_is_the_same_as_adjacent_where_nothing_returns(self, tmp_path):
        path = write(tmp_path, numbered_records(300))

        assert plain(stream.records(path)) == plain(stream.records(path, group="shard"))


class TestBlocks:
    @each_case("start", [0, 17, 60])
    @each_case("stop", [0, 17, 18, 50, None])
    def test_any_range_of_records_is_that_range(self, tmp_path, start, stop):
        path = write(tmp_path, numbered_records(50))
        found = [record for block in stream.blocks(str(path), ReadOptions(block_size=4096), start=start, stop=stop) for record in block]

        assert numbered_records(50)[start:stop] == plain(found)
        assert list(range(50))[start:stop] == [record.index for record in found]

    def test_spans_are_tars_of_one_record(self, tmp_path):
        path = write(tmp_path, numbered_records(20), format=tarfile.PAX_FORMAT, mtime=1.5)
        for block in stream.blocks(str(path)):
            for row, (begin, end, alone) in enumerate(zip(*block.spans, strict=True)):
                with tarfile.open(fileobj=io.BytesIO(bytes(block.data[begin:end]) + bytes(1024))) as tar:
                    assert [each.name for each in block[row].members] == tar.getnames()
                assert alone


class TestIndex:
    def test_reads_records_by_number_and_key(self, tmp_path):
        for number in range(2):
            write(tmp_path, numbered_records(100, prefix=f"s{number}/"), f"s-{number}.tar")
        index = stream.index(tmp_path)

        assert 200 == len(index)
        assert "s1/00000005" == index[105].key == index[-95].key
        assert b"5" == bytes(index["s1/00000005"]["cls"])
        assert {"png": 200, "cls": 200} == index.fields()
        assert "s0/00000099" in index
        with pytest.raises(KeyError):
            index["nothing"]
        with pytest.raises(IndexError):
            index[200]

    def test_reads_only_the_bytes_of_the_record(self, tmp_path, monkeypatch):
        path = write(tmp_path, numbered_records(100))
        index = stream.index(path)
        asked = []
        store = type(stream.stores.of(str(path)))
        original = store.read
        monkeypatch.setattr(store, "read", lambda self, *given, **more: asked.append(given[2]) or original(self, *given, **more))
        index[50]

        assert sum(asked) <= 512 + 1024 + 1024 + 6

    def test_is_kept_and_never_stale(self, tmp_path, monkeypatch):
        path = write(tmp_path, numbered_records(100))
        first = stream.index(path)
        monkeypatch.setattr("tarviz.read.shard_index._build", lambda *given: pytest.fail("built again"))
        assert list(first.keys()) == list(stream.index(path).keys())
        monkeypatch.undo()

        write(tmp_path, numbered_records(7))

        assert 7 == len(stream.index(path))

    def test_a_damaged_cache_file_is_built_again(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
        path = write(tmp_path, numbered_records(100))
        stream.index(path)
        (kept,) = (tmp_path / "cache" / "index").iterdir()
        kept.write_bytes(kept.read_bytes()[:300])

        assert 100 == len(stream.index(path))

    def test_a_shard_that_changed_is_not_read_through_an_old_index(self, tmp_path):
        path = write(tmp_path, numbered_records(100))
        index = stream.index(path)
        write(tmp_path, numbered_records(100, payload=b"y" * 600))
        with pytest.raises(ChangedError):
            index[0]

    @pytest.mark.parametrize("name", ["a.tar.gz", "a.tar"])
    def test_compressed_shards_give_the_same_records(self, tmp_path, name):
        path = tmp_path / name
        path.write_bytes(gzip.compress(shard(numbered_records(50))))
        index = stream.index(path)

        assert numbered_records(50)[33:34] == plain([index[33]])

    @given(record_lists())
    @settings(max_examples=60, deadline=None)
    @pytest.mark.matrix
    def test_survives_its_file(self, tmp_path_factory, content):
        from tarviz.formats.index import ShardIndex

        path = write(tmp_path_factory.mktemp("t"), content, format=tarfile.GNU_FORMAT)
        index = stream.index(path, cache=False)
        again = ShardIndex.load(b"".join(index.shards[0].dump()))

        assert list(index.keys()) == [key.decode() for key in again.keys()]  # noqa: SIM118
        for column in ("start", "data", "size", "end"):
            assert np.array_equal(getattr(index.shards[0].members, column), getattr(again.members, column))
        assert [(record.key, record.index) for record in index] == [(key, again.find(key.encode())) for key, _ in content]

    def test_dali_reads_and_writes_the_same(self, tmp_path):
        from tarviz.formats.index import parse_dali

        index = stream.index(write(tmp_path, numbered_records(3))).shards[0]
        text = index.to_dali()

        assert "v1.2 3" == text.splitlines()[0]
        assert [("png", 512, 600, "train/n00000000.png"), ("cls", 2048, 1, "train/n00000000.cls")] == parse_dali(text)[0]


class TestMembers:
    def test_lists_every_type_and_skips_payloads(self, tmp_path):
        case = next(case for case in CASES if case["id"] == "A25")
        (found,) = stream.members(case["path"])

        assert ["file", "hardlink", "symlink", "char", "block", "fifo", "file"] == [each.type for each in found]

    def test_reads_little_of_a_shard_of_large_files(self, tmp_path):
        path = write(tmp_path, [(f"{n}", {"bin": bytes(3 << 20)}) for n in range(10)])
        report = ReadReport()

        assert 10 == sum(len(run) for run in stream.members(path, report=report))
        assert report.bytes < 1 << 20

    def test_a_bomb_is_listed_in_little_memory(self):
        case = next(case for case in CASES if case["id"] == "C14")
        before = memory.begin()
        (found,) = stream.members(case["path"])

        assert 64 << 20 == found.size[0]
        assert memory.peak() - before < 16 << 20

    def test_says_the_same_as_the_records(self):
        for case in CASES:
            names = set()
            try:
                for run in stream.members(case["path"]):
                    names |= {each.name for each in run}
            except TarvizError:
                pass
            found, _, _ = read(case["path"], strict=False, max_ratio=2000)
            assert {member.name for record in found for member in record.members} <= names


class TestStoresThatFail:
    """What arrived before a store failed is read; the store's own error follows."""

    def test_a_length_that_lies_is_a_warning_when_the_tar_is_whole(self):
        from tarviz.testing.faults import ALWAYS, FaultServer
        from tarviz.testing.faults import Fault as Plan

        with FaultServer() as server:
            url = server.put("/a.tar", shard(numbered_records(50)), plan=[Plan(lie=1000, times=ALWAYS)])
            found, error, report = read(url)

        assert error is None
        assert numbered_records(50) == plain(found)
        assert [("W_LENGTH", url)] == [(fault.code, fault.shard) for fault in report.warnings]
        assert report.warnings[0].message.endswith("The tar itself is whole.")

    def test_records_before_a_change_are_read(self):
        from tarviz.testing.faults import Fault as Plan
        from tarviz.testing.faults import FaultServer

        data = shard(numbered_records(500))
        with FaultServer() as server:
            url = server.put("/a.tar", data, plan=[Plan(cut=len(data) // 2, then=data[::-1])])
            found, error, _ = read(url)

        assert "E_CHANGED" == error.code
        assert 200 < len(found) < 260
        assert numbered_records(500)[: len(found)] == plain(found)


class TestFarApart:
    """Headers read one by one, where payloads are large, say what a look at every byte says."""

    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(st.sampled_from([0, 1, 512, 30_000, 70_000, 200_000]), min_size=1, max_size=40),
        st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
        st.data(),
    )
    def test_as_one_stream(self, tmp_path_factory: pytest.TempPathFactory, sizes: list[int], format: int, data: st.DataObject):
        folder = tmp_path_factory.mktemp("far")
        names = [
            f"d/{'n' * data.draw(st.sampled_from([1, 60 if format == tarfile.USTAR_FORMAT else 120]))}{number}"
            for number in range(len(sizes))
        ]
        content = shard([(name, {"bin": b"\0" * size}) for name, size in zip(names, sizes, strict=True)], format=format, mtime=0.5)
        cut = data.draw(st.sampled_from([len(content), len(content) - 700, len(content) // 2]))
        path = write_bytes(folder / "a.tar", content[:cut])
        packed = write_bytes(folder / "a.tar.gz", gzip.compress(content[:cut], 1))

        def rows(place: Path) -> tuple[list[Any], str | None]:
            found: list[Any] = []
            try:
                for run in stream.members(str(place)):
                    found += list(run)
            except DataError as error:
                return found, error.code
            return found, None

        assert rows(packed) == rows(path)


def write_bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
