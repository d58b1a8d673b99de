"""Sorting: a permutation, stable, nothing dropped; by key, by field, shuffled; from pipes and packed shards."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tarviz.commands.sort import sort
from tarviz.model.errors import DataError, NotFoundError, UsageError
from tarviz.model.types import to_bytes
from tarviz.testing.strategies import numbered_records, shard
from tarviz.testing.strategies import records as record_lists
from tarviz.tools import sort_table
from tests.commands.conftest import ROOT, listed, names, plain
from tests.conftest import DATA

TARS = DATA / "corpora" / "generated"
Make = Callable[..., Path]
LARGE = b"\xff" * 70_000


def by_key(record: tuple[str, Any]) -> bytes:
    return to_bytes(record[0])


class TestOrder:
    @settings(max_examples=80, deadline=None)
    @given(
        record_lists(max_size=12),
        st.randoms(),
        st.booleans(),
        st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    )
    @pytest.mark.matrix
    def test_by_key_is_the_order_of_bytes(self, tmp_path_factory: Any, content: Any, random: Any, packed: bool, format: int):
        folder = tmp_path_factory.mktemp("sort")
        content = [(key, fields) for key, fields in content if format != tarfile.USTAR_FORMAT or len(key.encode()) < 70]
        random.shuffle(content)
        data = shard(content, format=format)
        (folder / "a.tar").write_bytes(gzip.compress(data) if packed else data)

        sort(folder / "a.tar", folder / "out")

        assert sorted(content, key=by_key) == plain(folder / "out")

    def test_one_long_value_makes_the_others_no_longer(self, make: Make, out: Path):
        path = make([(f"{n:04}", {"txt": b"%d" % -n if n else b"x" * 60_000}) for n in range(2000)])
        tracemalloc.start()
        sort(path, out, by="txt")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert "0000" == plain(out)[-1][0]
        assert most < 60_000 * 2000 / 4

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_over_shards(self, make: Make, out: Path, payload: bytes):
        content = numbered_records(90, payload=payload)
        paths = [make(content[first::3], f"{first}.tar") for first in (2, 0, 1)]

        result = sort(paths, out)

        assert (90, 0) == (result.records, result.exit_code)
        assert shard(content).rstrip(b"\0") == out.read_bytes().rstrip(b"\0")

    def test_what_is_in_order_is_copied_bit_for_bit(self, make: Make, out: Path):
        a = make(numbered_records(3000))

        sort(a, out)

        assert a.read_bytes().rstrip(b"\0") == out.read_bytes().rstrip(b"\0")

    def test_reverse(self, make: Make, out: Path):
        sort(make(numbered_records(9)), out, reverse=True)

        assert numbered_records(9)[::-1] == plain(out)

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)), st.booleans())
    def test_by_a_number_and_stable(self, tmp_path_factory: Any, numbers: list[int], reverse: bool):
        folder = tmp_path_factory.mktemp("sort")
        content = [(f"k{at}", {"cls": b" %d\n" % number, "x": b""}) for at, number in enumerate(numbers)]
        (folder / "a.tar").write_bytes(shard(content))

        sort(folder / "a.tar", folder / "out", by="cls", to="int", reverse=reverse)

        order = sorted(range(len(numbers)), key=lambda at: numbers[at], reverse=reverse)
        assert [content[at] for at in order] == plain(folder / "out")

    @pytest.mark.parametrize(
        ("to", "expected"),
        [("text", [b"-1", b"10", b"1e3", b"9"]), ("float", [b"-1", b"9", b"10", b"1e3"])],
    )
    def test_by_a_field_as_text_or_float(self, make: Make, out: Path, to: Any, expected: list[bytes]):
        sort(make([(f"k{at}", {"x": value}) for at, value in enumerate([b"10", b"9", b"1e3", b"-1"])]), out, by="x", to=to)

        assert expected == [fields["x"] for _, fields in plain(out)]

    def test_by_a_path_into_a_field(self, make: Make, out: Path):
        sort(make([(f"k{w}", {"json": json.dumps({"w": w}).encode()}) for w in (30, 4, 100)]), out, by="json.w", to="int")

        assert ["k4", "k30", "k100"] == [key for key, _ in plain(out)]

    @pytest.mark.parametrize(
        "values", [[b"b" * 5000, b"a\0", b"a", b"b" * 4999 + b"a"], [b"a\0\0", b"a\0", b"a", b"b"]], ids=["long", "short"]
    )
    def test_by_a_long_text_and_one_that_ends_in_nul(self, make: Make, out: Path, values: list[bytes]):
        sort(make([(f"k{at}", {"x": value}) for at, value in enumerate(values)]), out, by="x")

        assert sorted(values) == [fields["x"] for _, fields in plain(out)]

    def test_keys_as_numbers(self, make: Make, out: Path):
        sort(make([(key, {"x": b""}) for key in ("10", "9", "100")]), out, to="int")

        assert ["9", "10", "100"] == [key for key, _ in plain(out)]

    def test_very_long_keys(self, make: Make, out: Path):
        content = [(f"{'d' * (90 + at)}/{at}", {"x": b""}) for at in range(80, 0, -1)]
        sort(make(content, format=tarfile.GNU_FORMAT), out)

        assert sorted(content, key=by_key) == plain(out)


class TestShuffle:
    @pytest.mark.matrix
    def test_is_a_permutation_drawn_from_key_and_seed(self, make: Make, out: Path):
        content = numbered_records(2000)
        sort(make(content), out, shuffle=True, seed=3)
        first = plain(out)
        sort(make(content[::-1], "b.tar"), out, shuffle=True, seed=3)
        again = plain(out)
        sort(make(content), out, shuffle=True, seed=4)

        assert (content, first) == (sorted(first), again)
        assert first != plain(out)

    def test_is_as_random_as_it_looks(self):
        keys = np.array([f"n{at:08d}".encode() for at in range(20_000)])
        for seed in range(3):
            order = np.argsort(sort_table.mix(sort_table.hashes(keys.tolist()), seed))
            place = np.empty(len(order))
            place[order] = np.arange(len(order))

            assert abs(np.corrcoef(place, np.arange(len(order)))[0, 1]) < 0.03
            assert abs(np.corrcoef(place[1:], place[:-1])[0, 1]) < 0.03
            assert abs(place[::64].mean() / len(order) - 0.5) < 0.07

    @pytest.mark.parametrize("wrong", [{"by": "cls"}, {"reverse": True}, {"to": "int"}])
    def test_knows_no_other_order(self, make: Make, out: Path, wrong: Any):
        with pytest.raises(UsageError):
            sort(make(numbered_records(1)), out, shuffle=True, **wrong)


class TestNothingIsLost:
    def test_records_of_equal_rank_stay(self, make: Make, out: Path):
        content = [(f"k{at}", {"cls": b"%d" % (at % 3), "x": b"%d" % at}) for at in range(50)]

        sort(make(content), out, by="cls")

        assert sorted(content, key=lambda record: record[1]["cls"]) == plain(out)

    def test_one_key_twice_is_kept_and_warned_of(self, make: Make, out: Path):
        result = sort([make([("a", {"x": b"1"}), ("c", {"x": b""})]), make([("b", {"x": b""}), ("a", {"x": b"2"})], "b.tar")], out)

        assert (4, 1, {"W_MERGED_RECORD": 1}) == (result.records, result.exit_code, result.report.counts())
        assert [b"a.x", b"a.x", b"b.x", b"c.x"] == names(out)
        assert 4 == len(listed(out))

    def test_members_that_stood_apart_come_together(self, make: Make, out: Path):
        fields = [(key, {ext: f"{key}{ext}".encode()}) for ext in ("jpg", "cls", "json") for key in ("c", "a", "b", "d")]

        for options in ({"shuffle": True}, {}):
            result = sort(make([*fields[:3], *fields[4:8], fields[3], *fields[8:]]), out, **options)
            found = plain(out)

            assert (4, 0) == (result.records, result.exit_code)
            assert {(key, ext): f"{key}{ext}".encode() for key in "abcd" for ext in ("jpg", "cls", "json")} == {
                (key, ext): value for key, kept in found for ext, value in kept.items()
            }
        assert [b"jpg", b"cls", b"json"] == [name.split(b".")[1] for name in names(out)[:3]]

    def test_the_corpus_shard_that_is_unsorted(self, out: Path):
        path = next(TARS.glob("A23-*.tar"))

        assert 0 == sort(path, out).exit_code
        assert (2, sorted(names(path))) == (len(plain(out)), sorted(names(out)))

    @settings(max_examples=80, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=14), st.booleans())
    @pytest.mark.matrix
    def test_every_member_comes_out_once_whatever_the_order_in(self, tmp_path_factory: Any, members: Any, shuffle: bool):
        folder = tmp_path_factory.mktemp("sort")
        content = [(key, {ext: b"%d" % at}) for at, (key, ext) in enumerate(members)]
        whole = shard(content)
        (folder / "a.tar").write_bytes(whole)

        places = range(len(members))
        assume(not any(_same_run(members, low, high) for low in places for high in places[low + 1 :]))
        sort(folder / "a.tar", folder / "out", shuffle=shuffle)

        with tarfile.open(folder / "out") as tar:
            found = [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
        assert Counter((f"{key}.{ext}", b"%d" % at) for at, (key, ext) in enumerate(members)) == Counter(found)

    def test_a_global_header_is_left_out(self, out: Path):
        sort(next(TARS.glob("A44-*.tar")), out, reverse=True)

        assert ["k1", "k0"] == [key for key, _ in plain(out)]
        assert b"k1" == listed(out)[0].split(b".")[0]


def _same_run(members: Any, low: int, high: int) -> bool:
    """Whether the members `low` and `high` are a field twice in one run of a key."""
    return members[low] == members[high] and all(key == members[low][0] for key, _ in members[low : high + 1])


class TestMissing:
    CONTENT = [("a", {"cls": b"2"}), ("b", {"txt": b""}), ("c", {"cls": b"one"}), ("d", {"cls": b"1"})]

    def test_a_record_without_the_field_is_an_error(self, make: Make, out: Path):
        with pytest.raises(DataError, match=r'E_SCHEMA .* record "b".*no cls in the record; it has txt'):
            sort(make(self.CONTENT), out, by="cls")
        assert not out.exists()

    def test_or_is_left_out_and_counted(self, make: Make, out: Path):
        result = sort(make(self.CONTENT), out, by="cls", to="int", on_error="skip")

        assert ["d", "a"] == [key for key, _ in plain(out)]
        assert (1, ["b", "c"]) == (result.exit_code, [fault.key for fault in result.report.skipped])
        assert "cls is b'one', which is not of the type int" in str(result)

    def test_a_text_longer_than_64_kib_is_refused(self, make: Make, out: Path):
        longest = b"x" * (64 << 10)
        sort(make([("b", {"txt": longest}), ("a", {"txt": longest[:-1]})]), out, by="txt")
        assert ["a", "b"] == [key for key, _ in plain(out)]
        with pytest.raises(DataError, match="txt has more than 65536 bytes"):
            sort(make([("a", {"txt": longest + b"x"})]), out, by="txt")

    def test_what_is_no_int64_is_refused(self, make, out):
        for value in [b"9223372036854775808", b"1" * 500, b"\xff", b""]:
            with pytest.raises(DataError, match="E_SCHEMA"):
                sort(make([("a", {"cls": value})]), out, by="cls", to="int")


class TestDamage:
    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_a_cut_input_makes_no_output(self, make: Make, out: Path, payload: bytes, packed: bool):
        data = shard(numbered_records(30, payload=payload))[:-20_000]

        with pytest.raises(DataError) as caught:
            sort(make(gzip.compress(data) if packed else data), out)
        assert not out.exists()
        assert str(make(data).parent / "a.tar") == caught.value.shard

    def test_skip_sorts_what_there_is(self, make: Make, out: Path):
        data = bytearray(shard(numbered_records(30)))
        data[data.index(b"train/n00000017.png")] ^= 1

        result = sort(make(gzip.compress(bytes(data))), out, on_error="skip", reverse=True)

        assert (29, 1) == (len(plain(out)), result.exit_code)
        assert {str(out.parent / "a.tar")} == {fault.shard for fault in result.report.skipped}

    def test_a_cut_gzip_stream_gives_its_front_when_asked(self, make: Make, out: Path):
        data = gzip.compress(shard([(key, {"x": os.urandom(5000)}) for key in "dcba"]))

        result = sort(make(data[:-3000]), out, on_error="skip")

        assert ["b", "c", "d"] == [key for key, _ in plain(out)]
        assert "E_TRUNCATED_COMPRESSED" in result.report.counts()

    def test_no_file_stays_behind(self, make: Make, out: Path, tmp_path: Path):
        (tmp_path / "tmp").mkdir()
        with pytest.raises(DataError):
            sort(make(gzip.compress(shard(numbered_records(30))[:5000])), out, tmp=tmp_path / "tmp")

        assert [] == list((tmp_path / "tmp").iterdir())


class TestShell:
    def test_a_filter(self, make: Make, bash: Any, tmp_path: Path):
        a = make(numbered_records(30))

        done = bash("tarviz sort --shuffle < a.tar | tarviz sort --by cls --as int | tarviz sort -")

        assert (0, b"") == (done.returncode, done.stderr)
        assert a.read_bytes().rstrip(b"\0") == done.stdout.rstrip(b"\0")

    def test_json(self, make: Make, bash: Any):
        make(numbered_records(30))

        done = bash("tarviz sort a.tar -o b.tar --json")

        assert 30 == json.loads(done.stdout)["records"]

    @pytest.mark.slow
    def test_a_large_shard_of_small_records_stays_below_256_mb(self, tmp_path: Path):
        path = tmp_path / "large.tar"
        with path.open("wb") as file:
            for first in range(0, 1_600_000, 100_000):
                content = ((f"train/n{number:08d}", {"png": b"x" * 600, "cls": b"1"}) for number in range(first, first + 100_000))
                data = shard(content).rstrip(b"\0")
                file.write(data + bytes(-len(data) % 512))
            file.write(bytes(1024))
        code = "import sys; from tests import memory; from tarviz.commands.sort import sort; sort(sys.argv[1], '/dev/null', shuffle=True)\n"
        code += "print(memory.peak())"

        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=True, cwd=ROOT)

        assert int(done.stdout) < 256 << 20


class TestSpooled:
    """What a packed shard holds is unpacked into a file beside the output first."""

    def test_what_is_noted_is_said_of_the_shard(self, make: Make, out: Path):
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "k"
        path = make(gzip.compress(link.tobuf() + shard(numbered_records(3))), "a.tar.gz")

        result = sort(path, out)

        assert [("W_SKIPPED_TYPE", str(path))] == [(each.code, each.shard) for each in result.report.warnings]

    def test_a_disk_that_takes_a_part_at_a_time_gets_all_of_it(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        class Slow(io.FileIO):
            def write(self, data: Any) -> int:
                return super().write(memoryview(data)[:3000])

        content = numbered_records(20, payload=os.urandom(2000))
        path = make(gzip.compress(shard(content)), "a.tar.gz")
        monkeypatch.setattr(sys.modules[sort.__module__], "open", lambda path, mode, buffering: Slow(path, mode), raising=False)

        sort(path, out)

        assert content == plain(out)


class TestThroughAFile:
    def test_what_is_packed_and_no_tar_is_named_as_it_was_given(self, make: Make, out: Path):
        odd = make(gzip.compress(b"no tar" * 500), "odd.tar.gz")
        with pytest.raises(DataError, match="E_NOT_TAR") as caught:
            sort([make(numbered_records(3)), odd], out)
        assert str(odd) == caught.value.shard
        result = sort([odd, make(numbered_records(3))], out, on_error="skip", reverse=True)

        assert (numbered_records(3)[::-1], [str(odd)]) == (plain(out), [fault.shard for fault in result.report.skipped])
        assert (3, 2) == (result.report.records, result.report.shards)

    def test_what_is_not_there_is_named_as_it_was_given(self, out: Path):
        with pytest.raises(NotFoundError) as caught:
            sort("memory://sort/none.tar", out)

        assert "memory://sort/none.tar" == caught.value.shard

    def test_an_empty_packed_shard_is_said_to_be_empty(self, make: Make, out: Path):
        empty = make(gzip.compress(b""), "empty.tar.gz")
        with pytest.raises(DataError, match=rf"E_EMPTY {empty}"):
            sort([empty, make(numbered_records(2))], out)

        assert 2 == sort([empty, make(numbered_records(2))], out, on_error="skip").records

    def test_a_condition_chooses_among_those_that_went_through_a_file(self, make: Make, out: Path):
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        sort(make(gzip.compress(shard(numbered_records(9)))), out, where="cls > 5", reverse=True)

        assert numbered_records(9)[:5:-1] == plain(out)

    def test_faults_of_several_shards_are_counted_together(self, make: Make, out: Path):
        paths = [
            make(gzip.compress(shard(numbered_records(count, prefix=name)) + b"x" * 512), f"{name}.tgz")
            for name, count in (("a", 2), ("b", 3))
        ]
        result = sort(paths, out, strict=False)

        assert (5, 5, 2) == (result.records, result.report.records, result.report.shards)
        assert [str(path) for path in paths] == [fault.shard for fault in result.report.warnings if fault.code == "W_TRAILING"]


class TestValues:
    @pytest.mark.parametrize("to", ["text", "int", "float"])
    def test_the_key_is_a_value_too(self, make: Make, out: Path, to: Any):
        sort(make([(key, {"txt": b""}) for key in ("10", "9", "100")]), out, by="__key__", to=to)

        assert (["10", "100", "9"] if to == "text" else ["9", "10", "100"]) == [key for key, _ in plain(out)]

    def test_a_field_called_key_comes_before_the_key(self, make: Make, out: Path):
        sort(make([("a", {"key": b"2"}), ("b", {"key": b"1"})]), out, by="key", to="int")

        assert ["b", "a"] == [key for key, _ in plain(out)]

    @pytest.mark.parametrize(
        ("value", "match"), [(b"7" * 401, "cls is not a number"), (b"x", "cls is b'x', which is not of the type float")]
    )
    def test_what_is_no_number_says_so(self, make: Make, out: Path, value: bytes, match: str):
        with pytest.raises(DataError, match=f"{match}.*--on-error skip"):
            sort(make([("a", {"cls": value})]), out, by="cls", to="float")

    def test_texts_of_any_length_are_compared_to_their_end(self, make: Make, out: Path):
        for length in [255, 256, 257]:
            for last in [b"", b"\0"]:
                texts = [b"x" * length + last, b"x" * length, b"x" * (length - 1), b"y", b""]
                sort(make([(f"k{at}", {"txt": text}) for at, text in enumerate(texts)]), out, by="txt")

                assert sorted(texts) == [fields["txt"] for _, fields in plain(out)]

    @pytest.mark.parametrize("wrong", [{"by": "cls"}, {"to": "int"}, {"reverse": True}])
    def test_a_shuffle_has_no_other_order(self, make: Make, out: Path, wrong: Any):
        with pytest.raises(UsageError, match="a shuffle has no other order"):
            sort(make(numbered_records(2)), out, shuffle=True, **wrong)
        sort(make(numbered_records(2)), out, shuffle=True, by="__key__")
