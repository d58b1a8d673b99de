"""The scanner against other tars' readings of the same bytes, against damage, and against itself."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tarviz.formats.tar import Damaged, Ended, Headers, Scanner
from tarviz.model.errors import TarvizError
from tarviz.testing.strategies import numbered_records, records, shard
from tests import effort
from tests.conftest import DATA, corpus, each_case
from tests.read.tars import END, member, pax

TARS = [entry | {"path": str(path)} for path, entry in (case.values for case in corpus("generated")) if str(path).endswith(".tar")]
# What tar, libarchive, tarfile, Go and others list, where most of them agree: name, type, size.
LISTINGS = json.loads((DATA / "corpora" / "listings.json").read_text("utf-8"))
SMALL = [Path(case["path"]) for case in TARS if case["bytes"] < 30_000]
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def scan(data: bytes, **options: Any) -> tuple[list[Any], Scanner]:
    scanner = Scanner("a.tar", **options)
    members = scanner.scan(memoryview(data), 0, final=True)
    return list(members), scanner


def answer(data: bytes, step: int, **options: bool) -> tuple[Any, ...]:
    """All that a scanner says of a tar whose bytes arrive `step` at a time, or as many as it wants."""
    scanner, found, filled, final = Scanner("a.tar", **options), list[Any](), 0, False
    while not (final or scanner.over or scanner.error is not None):
        filled = min(max(filled + step, scanner.wants), len(data))
        base, final = min(scanner.at, filled) // 512 * 512, filled == len(data)
        window = memoryview(data)[base:filled]
        if not scanner.ended:
            found += scanner.scan(window, base, final=final)
        while scanner.ended and scanner.behind(window, base, final=final):
            found += scanner.scan(window, base, final=final)
    fault = None if scanner.error is None else scanner.error.fault
    return found, scanner.notes, repr(scanner.state), fault, scanner.found, scanner.continued, scanner.damaged_name


def listing(data: bytes) -> list[tuple[str, int, int]]:
    members, scanner = scan(data)
    assert scanner.error is None
    return [(each.name, each.size, each.data_offset) for each in members]


def by_tarfile(data: bytes) -> list[tuple[str, int, int]]:
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as tar:
        return [(member.name, member.size, member.offset_data) for member in tar if member.isfile()]


class TestOracles:
    @each_case("case", [case for case in TARS if case["file"] in LISTINGS])
    def test_lists_what_most_tools_list(self, case):
        consensus = LISTINGS[case["file"]]
        members, _ = scan(Path(case["path"]).read_bytes(), strict=False)

        def plain(name: str) -> str:
            return name.encode("utf-8", "surrogateescape").decode("latin1").removeprefix("./").rstrip("/") or "."

        assert [(plain(name), kind) for name, kind, _ in consensus] == [(plain(each.name), each.type) for each in members]
        sizes = [size for *_, size in consensus]
        assert sizes == [each.size if size is not None else None for each, size in zip(members, sizes, strict=True)]

    @given(records(), st.sampled_from(FORMATS), st.sampled_from([0, 1700000000, 1700000000.25]))
    @settings(max_examples=150, deadline=None)
    @pytest.mark.matrix
    def test_finds_what_tarfile_finds(self, content, format, mtime):
        try:
            data = shard(content, format=format, mtime=mtime)
        except ValueError:
            return  # a name that ustar cannot hold

        assert by_tarfile(data) == listing(data)

    @pytest.mark.parametrize("format", FORMATS)
    def test_reads_a_thousand_regular_members_like_tarfile(self, format):
        data = shard(numbered_records(500), format=format, mtime=1700000000.5)

        assert by_tarfile(data) == listing(data)

    @pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
    def test_lists_like_gnu_tar(self, tmp_path):
        (tmp_path / "a.tar").write_bytes(shard(numbered_records(300)))
        names = subprocess.run(["tar", "tf", tmp_path / "a.tar"], capture_output=True, check=True, text=True).stdout.split()

        assert names == [name for name, _, _ in listing((tmp_path / "a.tar").read_bytes())]


class TestBuffers:
    @given(records(max_size=6), st.sampled_from(FORMATS), st.integers(1, 40))
    @settings(max_examples=80, deadline=None)
    @pytest.mark.matrix
    def test_finds_the_same_however_the_bytes_arrive(self, content, format, step):
        try:
            data = shard(content, format=format, mtime=1.5)
        except ValueError:
            return

        assert answer(data, len(data)) == answer(data, step * 512)

    @pytest.mark.parametrize(("strict", "concatenated"), [(True, False), (False, False), (False, True)])
    def test_where_a_buffer_ends_changes_nothing_of_odd_and_damaged_tars(self, strict: bool, concatenated: bool):
        """Buffers of one block are walked with care; longer ones are looked at a column at a time."""
        for path in SMALL:
            data = path.read_bytes()

            assert answer(data, len(data), strict=strict, concatenated=concatenated) == answer(
                data, 512, strict=strict, concatenated=concatenated
            ), path.name

    def test_a_tar_inside_a_payload_is_payload(self):
        inner = shard(numbered_records(200))
        data = shard([("a", {"tar": inner, "cls": b"1"}), ("b", {"tar": inner})])

        assert ["a.tar", "a.cls", "b.tar"] == [name for name, _, _ in listing(data)]


class TestDamage:
    def test_every_cut_is_noticed_wherever_the_buffers_end(self):
        data = pax((b"path", b"p" * 700)) + member("x.a", b"1" * 700) + member("@", b"l" * 600, b"L") + member("y.b", b"2") + END

        for at in range(0, len(data) - 512, 512):
            for length in (at, at + 300):
                found = answer(data[:length], 512)
                assert found[3] is not None, length
                assert answer(data[:length], len(data)) == found, length

    @given(st.data())
    @settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @pytest.mark.matrix
    def test_a_changed_header_gives_an_answer_soon(self, data):
        source = bytearray(Path(data.draw(st.sampled_from([case["path"] for case in TARS if case["bytes"] < 20000]))).read_bytes())
        for _ in range(data.draw(st.integers(1, 6))):
            if source:
                source[data.draw(st.integers(0, len(source) - 1))] = data.draw(st.integers(0, 255))
        if data.draw(st.booleans()):  # right again for those who only compare the check sum
            for at in range(0, len(source) - 511, 512):
                if source[at + 257 : at + 262] == b"ustar":
                    source[at + 148 : at + 156] = b" " * 8
                    source[at + 148 : at + 156] = b"%06o\0 " % sum(source[at : at + 512])
        for strict in (True, False):
            concatenated = data.draw(st.booleans())
            with effort.counted() as calls:
                scan(bytes(source), strict=strict, concatenated=concatenated)

            assert calls.count < 20_000

    @given(st.binary(max_size=3000))
    @example(b"\0" * 512)
    @example(b"\x1f\x8b" * 300)
    @settings(max_examples=200, deadline=None)
    def test_any_bytes_are_read_or_refused(self, data):
        _, scanner = scan(data)

        assert scanner.ended or isinstance(scanner.error, TarvizError)


@pytest.mark.parametrize("size", [512, 1536, 1 << 16])
def test_what_a_pax_header_is_called_is_no_matter(size: int):
    """Its own name names nothing; the header behind it does, whatever the buffers are that they come in."""
    data = member(b"\xc6zW", b"30 mtime=1795372379.082852243\n", b"x") + member("a.txt", b"1") + member(b"\xc6.txt", b"1")
    data += b"".join(member(f"{number}.txt", b"1") for number in range(60)) + END
    scanner = Scanner("a.tar", strict=True)
    at = 0
    while not scanner.ended:
        scanner.scan(memoryview(data)[at : at + size], at, final=at + size >= len(data))
        at, size = scanner.at, max(size, scanner.wants - scanner.at)

    assert [("W_NAME_ENCODING", 2048)] == [(note.code, note.offset) for note in scanner.notes]


class TestStates:
    def test_headers_lead_to_the_end_mark_and_that_to_what_stands_behind(self):
        data = shard(numbered_records(3))
        scanner = Scanner("a.tar", strict=False)
        scanner.scan(memoryview(data), 0)

        assert isinstance(scanner.state, Ended)
        assert ("zeros", False) == (scanner.state.behind, scanner.over)

        scanner.behind(memoryview(data + b"junk" * 200), 0, final=True)

        assert ("bytes", True, None) == (scanner.state.behind, scanner.over, scanner.error)

    def test_damage_says_where_and_is_left_by_going_on_elsewhere(self):
        data = bytearray(shard(numbered_records(3)))
        data[148:156] = b"00000000"  # the checksum of the first header
        scanner = Scanner("a.tar")
        scanner.scan(memoryview(bytes(data)), 0, final=True)

        assert isinstance(scanner.state, Damaged)
        assert ("E_CHECKSUM", 0, False) == (scanner.state.error.code, scanner.state.bad, scanner.ended)

        scanner.skip_to(scanner.resync(memoryview(bytes(data)), 0))

        assert isinstance(scanner.state, Headers)


def test_behind_a_header_that_lost_its_member_the_end_is_read_in_the_same_look():
    data = pax((b"path", b"lost.txt")) + END
    scanner = Scanner("a.tar", strict=False)
    found = scanner.scan(memoryview(data), 0, final=True)

    assert (0, True, True, len(data)) == (len(found), scanner.ended, scanner.open_end, scanner.at)
    assert [("W_ORPHAN_EXT", 0)] == [(note.code, note.offset) for note in scanner.notes]


def test_a_tar_whose_last_padding_is_cut_is_over():
    scanner = Scanner("a.tar", strict=False)
    found = scanner.scan(memoryview(member("a.txt", b"1")[:600]), 0, final=True)

    assert (1, True, True, True) == (len(found), scanner.ended, scanner.open_end, scanner.over)
    assert [("W_TRUNCATED_PADDING", 600, "a.txt")] == [(note.code, note.offset, note.member) for note in scanner.notes]
