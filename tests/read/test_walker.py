"""The walker's decisions, window by window: which records are certain, pending, doubled, lost or over the limit."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.formats.tar_header import tar_header
from tarviz.model.errors import DataError, LimitError, StoreError, TarvizError
from tarviz.read.rules import Decided
from tarviz.read.stream import ReadOptions
from tarviz.read.walker import AfterEnd, Over, PassingOver, Reading, Resyncing, Walker
from tests.read.tars import END, member, pax, raw

RECORD = member("a.txt", b"1") + member("a.cls", b"2")
OTHER = member("b.txt", b"3") + member("b.cls", b"4")


def walker(**options: Any) -> Walker:
    payloads = options.pop("payloads", "all")
    return ReadOptions(**options).walker("a.tar", payloads=payloads)


def keys(steps: list[Decided]) -> list[bytes]:
    return [key for step in steps for key in step.records.keys.tolist()]


def walked(data: bytes, size: int, **options: Any) -> tuple[list[bytes], list[bytes], Walker]:
    """Keys, keys of pending records, and the walker, over windows of at least `size` bytes that begin where it says."""
    one, found, pending = walker(**options), [], []
    while not one.over:
        end = max(one.keep + size, one.keep + one.need)
        for step in one.walk(memoryview(data)[one.keep : end], one.keep, final=end >= len(data)):
            names = step.records.keys.tolist()
            found += names
            pending += names[step.pending : step.pending + 1] if step.pending >= 0 else []
    return found, pending, one


class TestCertain:
    def test_a_record_is_certain_when_a_member_of_another_key_follows(self):
        one = walker()

        assert [] == keys(list(one.walk(memoryview(RECORD))))
        assert [b"a"] == keys(list(one.walk(memoryview(RECORD + OTHER[:1024]))))

    def test_or_when_the_end_mark_does_and_padding_behind_it(self):
        one = walker()

        assert [] == keys(list(one.walk(memoryview(RECORD + END))))
        assert [b"a"] == keys(list(one.walk(memoryview(RECORD + END), final=True)))
        assert one.over
        assert one.error is None

    def test_the_end_of_a_window_decides_nothing(self):
        data = RECORD + OTHER + END
        for size in range(512, len(data) + 512, 512):
            found, pending, one = walked(data, size)

            assert ([b"a", b"b"], [], None) == (found, pending, one.error)

    def test_what_is_noted_of_a_record_that_is_open_is_noted_once(self):
        data = member("a.txt", b"1") + raw("a.fifo", kind=b"6") + member("a.cls", b"2") + OTHER + END
        for size in range(512, len(data) + 512, 512):
            _, _, one = walked(data, size)

            assert ["W_SKIPPED_TYPE"] == [fault.code for fault in one.notes]

    def test_warnings_come_in_the_order_of_the_shard(self):
        pipe, plain = raw("a.fifo", kind=b"6"), member("README", b"1")
        data = plain + RECORD + pipe + plain + OTHER + pipe + plain + pipe + member("c.txt") + END
        for size in range(512, len(data) + 512, 512):
            _, _, one = walked(data, size)
            places = [fault.offset or 0 for fault in one.notes]

            assert [pipe if fault.code == "W_SKIPPED_TYPE" else plain[:512] for fault in one.notes] == [data[at:][:512] for at in places]
            assert (6, sorted(places)) == (len(places), places)

    def test_numbers_count_over_all_windows(self):
        one = walker()
        steps = [*one.walk(memoryview(RECORD + OTHER[:1024])), *one.walk(memoryview(RECORD + OTHER + END), final=True)]

        assert [0, 1] == [step.first for step in steps]
        assert 2 == one.records


class TestWhatIsWanted:
    def test_the_next_window_begins_with_the_record_that_is_open(self):
        one = walker()
        list(one.walk(memoryview(RECORD + OTHER[:1024])))

        assert len(RECORD) == one.keep
        assert one.need > 1024

    def test_a_payload_that_is_not_there_is_asked_for_whole(self):
        one = walker()
        list(one.walk(memoryview(raw("a.bin", 5000))))

        assert (0, 512 + 5120) == (one.keep, min(one.need, 512 + 5120))

    def test_who_reads_headers_goes_on_behind_the_payload(self):
        one = walker(payloads="none")
        list(one.walk(memoryview(raw("a.bin", 50_000))))

        assert 512 + 50_176 == one.place
        assert one.wants == one.place + 512

    def test_members_may_wait_to_be_decided_over_together(self):
        one = walker(payloads="none")
        one.patience = 100

        assert [] == list(one.walk(memoryview(RECORD + OTHER)))
        assert [b"a", b"b"] == keys(list(one.walk(memoryview(END), len(RECORD + OTHER), final=True)))


class TestEnd:
    CUT = RECORD + raw("b.txt", 900) + b"x" * 100

    @pytest.mark.parametrize(("strict", "expected"), [(True, ([b"a"], [])), (False, ([b"a", b"b"], [b"b"]))])
    def test_without_an_end_mark_the_last_record_may_lack_a_member(self, strict: bool, expected: Any):
        found, pending, one = walked(RECORD + OTHER, 2048, strict=strict)

        assert expected == (found, pending)
        assert (strict, not strict) == (isinstance(one.error, DataError), [note.code for note in one.notes] == ["W_NO_EOF"])

    @pytest.mark.parametrize("strict", [True, False])
    def test_a_cut_member_of_another_record_makes_the_one_before_certain(self, strict: bool):
        found, pending, one = walked(self.CUT, 512, strict=strict)

        assert ([b"a"], []) == (found, pending)
        assert isinstance(one.error, TarvizError)
        assert ("E_TRUNCATED", "b.txt", "b", 1) == (one.error.code, one.error.member, one.error.key, one.error.records_before)

    def test_the_error_names_the_record_that_was_open(self):
        _, _, one = walked(member("a.txt", b"1") + raw("a.cls", 900) + b"x" * 100, 512)

        assert isinstance(one.error, TarvizError)
        assert "a" == one.error.key
        assert 0 == one.error.records_before

    @pytest.mark.parametrize(("strict", "expected"), [(True, ([], [])), (False, ([b"a"], [b"a"]))])
    def test_a_source_that_fails_leaves_the_open_record_uncertain(self, strict: bool, expected: Any):
        one, found, pending = walker(strict=strict), [], []
        broken = DataError("the packed bytes are damaged", code="E_CORRUPT_COMPRESSED")
        for step in one.walk(memoryview(RECORD), 0, final=True, broken=broken):
            found += step.records.keys.tolist()
            pending += [step.records.keys.tolist()[step.pending]] if step.pending >= 0 else []

        assert expected == (found, pending)
        assert broken is one.error


class TestDamage:
    BAD = b"\x01" * 512

    def test_the_error_says_where_the_next_header_is(self):
        _, _, one = walked(RECORD + self.BAD + self.BAD + OTHER + END, 512)

        assert isinstance(one.error, TarvizError)
        assert ("E_CHECKSUM", len(RECORD)) == (one.error.code, one.error.offset)
        assert len(RECORD) + 1024 == one.error.details["resync_at"]
        assert {"key": "a", "fields": ["txt", "cls"]} == one.error.details["pending"]

    @pytest.mark.parametrize("folder", ["", "f" * 93, "f" * 60 + "/" + "f" * 60])
    def test_the_error_has_the_key_of_the_member_there(self, folder: str):
        bad = bytearray(member("b.txt", b"3"))
        bad[150] ^= 1
        _, _, one = walked(RECORD + bytes(bad) + tar_header(f"{folder}/b.cls", 1) + END, 512)

        assert isinstance(one.error, TarvizError)
        assert ("E_CHECKSUM", f"{folder}/b") == (one.error.code, one.error.key)

    @pytest.mark.parametrize("size", [512, 1024, 1 << 20])
    def test_skipping_goes_on_there_and_leaves_out_the_neighbours(self, size: int):
        data = RECORD + self.BAD + OTHER + member("c.txt", b"5") + member("c.cls", b"6") + END
        found, pending, one = walked(data, size, on_error="skip")

        assert ([b"c"], []) == (found, pending)
        assert ["E_CHECKSUM"] == [fault.code for fault in one.skipped]
        assert {("a", None), (None, "b.txt"), ("b", None)} == {(note.key, note.member) for note in one.notes if note.code == "W_DROPPED"}
        assert one.error is None

    def test_a_member_behind_a_damaged_extension_header_is_not_trusted(self):
        header = bytearray(pax((b"path", b"long/b.txt")))
        header[0] ^= 1
        data = RECORD + bytes(header) + member("x.txt", b"3") + member("c.txt", b"5") + member("c.cls", b"6") + END
        found, _, one = walked(data, 512, on_error="skip")

        assert b"x" not in found
        assert "x.txt" in [note.member for note in one.notes if note.code == "W_DROPPED"]


class TestLimit:
    LARGE = member("b.bin", bytes(4000))

    def test_a_member_over_the_limit_is_an_error_and_the_record_before_is_certain(self):
        found, _, one = walked(RECORD + self.LARGE + END, 512, max_member_bytes=3000)

        assert [b"a"] == found
        assert isinstance(one.error, LimitError)
        assert ("b.bin", len(RECORD), 4000) == (one.error.member, one.error.offset, one.error.details["need"])

    @pytest.mark.parametrize("size", [512, 1536, 1 << 20])
    def test_skipping_passes_it_over_with_its_record(self, size: int):
        data = RECORD + member("b.txt", b"3") + self.LARGE + member("b.cls", b"4") + member("c.txt", b"5") + END
        found, _, one = walked(data, size, max_member_bytes=3000, on_error="skip")

        assert [b"a", b"c"] == found
        assert ["E_LIMIT"] == [fault.code for fault in one.skipped]

    def test_a_size_that_is_only_promised_is_a_cut(self):
        _, _, one = walked(RECORD + raw("b.bin", 1 << 40) + bytes(100), 512, max_member_bytes=3000)

        assert isinstance(one.error, TarvizError)
        assert "E_TRUNCATED" == one.error.code

    def test_who_reads_no_payloads_has_none(self):
        assert [b"a", b"b"] == walked(RECORD + self.LARGE + END, 8192, max_member_bytes=3000, payloads="none")[0]


class TestAgain:
    def test_the_error_of_a_network_goes_on_as_it_is(self):
        one, broken = walker(), StoreError("gone")
        found = keys(list(one.walk(memoryview(RECORD + OTHER[:1024]), 0, final=True, broken=broken)))

        assert [b"a"] == found
        assert broken is one.error

    def test_a_second_archive_is_read_on_where_it_is_asked_for(self):
        data = RECORD + END + bytes(2048) + OTHER + END
        for size in (512, 1024, 4096, 1 << 20):
            assert ([b"a", b"b"], []) == walked(data, size, concatenated=True)[:2]
            assert ([b"a"], [b"a"]) == walked(data, size, strict=False)[:2]
            assert ([], []) == walked(data, size)[:2]


class TestStates:
    """What the walker waits for between two windows is one state, and each leads where its docstring says."""

    def test_damage_is_searched_behind_until_a_header_comes(self):
        one = walker(on_error="skip")
        list(one.walk(memoryview(RECORD + b"x" * 1024)))

        assert isinstance(one.state, Resyncing)
        assert "E_CHECKSUM" == one.state.damage.error.code

        list(one.walk(memoryview(RECORD + b"x" * 1024 + OTHER)))

        assert isinstance(one.state, Reading)

    def test_a_member_over_the_limit_goes_by(self):
        one = walker(max_member_bytes=4096)
        list(one.walk(memoryview(raw("a.bin", 50_000))))

        assert isinstance(one.state, PassingOver)
        assert (b"a.bin", 50_000, 512 + 4097) == (one.state.name, one.state.size, one.state.enough)

    def test_the_record_before_an_end_mark_waits_for_what_follows(self):
        one = walker(concatenated=True)
        list(one.walk(memoryview(RECORD + END)))

        assert isinstance(one.state, AfterEnd)
        assert one.state.last is not None
        assert [b"a"] == one.state.last.record.keys.tolist()

        assert [b"a"] == keys(list(one.walk(memoryview(RECORD + END + OTHER))))
        assert isinstance(one.state, Reading)

    def test_over_keeps_the_error(self):
        one = walker()
        list(one.walk(memoryview(RECORD), final=True))

        assert isinstance(one.state, Over)
        assert "E_NO_EOF" == one.state.error.code  # type: ignore[union-attr]
        assert one.error is one.state.error

    def test_members_that_wait_do_not_hide_the_one_whose_extension_header_is_lost(self):
        """The first member behind it is left out, not the first that is decided over."""
        broken = bytearray(pax((b"path", b"b.txt")))
        broken[0:4] = b"\xff" * 4
        data = RECORD + bytes(broken) + OTHER
        for patience in (0, 100):
            one = walker(payloads="none", on_error="skip")
            one.patience = patience
            list(one.walk(memoryview(data)))
            list(one.walk(memoryview(data + END)[one.place :], one.place, final=True))

            assert ["b.txt"] == [note.member for note in one.notes if note.code == "W_DROPPED" and note.member], patience


class TestFirst:
    """What ends the shard is the first of several things that may."""

    def test_a_field_that_is_there_twice_ends_it_before_the_damage_behind(self):
        data = member("a.txt", b"1") + member("a.txt", b"2") + b"\x01" * 512 + OTHER + END
        for size in range(512, len(data) + 512, 512):
            found, _, one = walked(data, size, strict=False)

            assert isinstance(one.error, DataError)
            assert ([], "E_DUP_FIELD") == (found, one.error.code)

    def test_a_source_that_fails_within_a_member_over_the_limit_is_what_is_told(self):
        one, broken = walker(max_member_bytes=3000), StoreError("gone")
        found = keys(list(one.walk(memoryview(RECORD + raw("b.bin", 9000) + bytes(1000)), 0, final=True, broken=broken)))

        assert ([b"a"], broken) == (found, one.error)

    def test_but_not_where_so_much_came_that_its_size_is_no_promise(self):
        one = walker(max_member_bytes=3000)
        found = keys(list(one.walk(memoryview(RECORD + raw("b.bin", 9000) + bytes(3001)), 0, final=True, broken=StoreError("gone"))))

        assert [b"a"] == found
        assert isinstance(one.error, LimitError)

    @pytest.mark.parametrize("more", [0, 1])
    def test_a_header_is_looked_for_in_a_mebibyte_behind_damage(self, more: int):
        bad = b"\x01" * ((1 << 20) + 512 * (more - 1))
        _, _, one = walked(RECORD + bad + OTHER + END, 1 << 16)

        assert isinstance(one.error, TarvizError)
        assert (None if more else len(RECORD + bad)) == one.error.details.get("resync_at")
