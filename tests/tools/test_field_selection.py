"""Which fields the tar tools keep, and under which names."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tarviz
from tarviz.commands.cat import cat
from tarviz.model.errors import DataError, UsageError
from tarviz.testing.strategies import numbered_records
from tarviz.tools import field_selection
from tarviz.tools.field_selection import Pick, columns, key_template, picks, substitution
from tests.commands.conftest import names, plain
from tests.read.tars import END, member, pax


class TestPicks:
    def test_alternatives_new_names_and_what_may_be_missing(self):
        assert (Pick(("jpg", "png"), "image"), Pick(("seg.png",), None, True)) == picks("image:JPG;png  seg.png?")

    def test_what_is_no_list_of_fields_is_refused(self):
        for text in ["", " ", "jpg;", ":jpg", "a:b:jpg", "a/b", "?", "jpg jpg", "jpg;png png", "x:jpg x:png", "jpg x:png;jpg"]:
            with pytest.raises(UsageError):
                picks(text)


class TestKeys:
    def test_words_are_parts_of_the_old_one(self):
        for template, key in [
            ("{key}", b"train/0001"),
            ("{folder}-{base}", b"train-0001"),
            ("{shard}/{n:06d}", b"shard-7/000012"),
            ("{n:3}_{n}", b"012_12"),
            ("fixed", b"fixed"),
        ]:
            assert key == key_template(template)(b"train/0001", "https://h/x/shard-7.tar.gz?sig=a/b", 12)

    def test_other_braces_are_refused(self):
        for template in ["{what}", "{key:3}", "{", "}", "{n:abc}", "{{key}}"]:
            with pytest.raises(UsageError):
                key_template(template)

    def test_a_pattern_is_replaced_in_bytes(self):
        assert b"b\xff_a" == substitution(r"(a)/(b.)", r"\2_\1")(b"a/b\xff")
        for wrong in (("(", "x"), ("a", r"\1"), ("a", r"\g<x>")):
            with pytest.raises(UsageError, match="is not a substitution"):
                substitution(*wrong)


class TestWritten:
    DATA = b"".join(member(f"{key}.{ext}", f"{key}{ext}".encode()) for key in "ab" for ext in ("jpg", "cls", "json")) + END

    def written(self, folder: Path) -> list[tuple[str, dict[str, bytes]]]:
        return [(str(record.key), {ext: bytes(data) for ext, data in record.items()}) for record in tarviz.records(folder / "out.tar")]

    def test_fields_come_in_the_order_of_the_list_under_their_new_names(self, make: Callable[..., Path], tmp_path: Path):
        cat(str(make(self.DATA)), tmp_path / "out.tar", fields="cls image:png;jpg txt?")

        assert [(key, {"cls": f"{key}cls".encode(), "image": f"{key}jpg".encode()}) for key in "ab"] == self.written(tmp_path)

    def test_a_member_that_keeps_its_name_stays_bit_for_bit(self, make: Callable[..., Path], tmp_path: Path):
        first = pax((b"mtime", b"1.5"), (b"comment", b"kept")) + member("a.jpg", b"1")
        cat(str(make(first + member("a.cls", b"2") + END)), tmp_path / "out.tar", drop="cls")

        assert first + END == (tmp_path / "out.tar").read_bytes()

    def test_a_record_without_the_field_is_an_error_with_its_place(self, make: Callable[..., Path], tmp_path: Path):
        path = make(self.DATA[:-1024] + member("c.jpg", b"1") + END)
        with pytest.raises(DataError, match=r'E_SCHEMA .*record "c"'):
            cat(str(path), tmp_path / "out.tar", fields="cls")
        made = cat(str(path), tmp_path / "out.tar", fields="cls", on_error="skip")

        assert ["a", "b"] == [key for key, _ in self.written(tmp_path)]
        assert ["c"] == [fault.key for fault in made.report.skipped]

    def test_a_record_of_which_nothing_is_left_is_an_error_or_left_out(self, make: Callable[..., Path], tmp_path: Path):
        path = make(self.DATA[:-1024] + member("c.cls", b"ccls") + END)
        with pytest.raises(DataError, match=r'record "c".*nothing is left of the record when its fields are dropped'):
            cat(str(path), tmp_path / "out.tar", drop="cls txt")
        made = cat(str(path), tmp_path / "out.tar", drop="cls txt", on_error="skip")

        assert [(key, {ext: f"{key}{ext}".encode() for ext in ("jpg", "json")}) for key in "ab"] == self.written(tmp_path)
        assert ["c"] == [fault.key for fault in made.report.skipped]

    def test_what_stands_before_a_name_is_no_part_of_its_ending(self, make: Callable[..., Path], tmp_path: Path):
        cat(str(make(member("././t/a.JPG", b"1") + END)), tmp_path / "out.tar", key="{base}-{n}")

        assert [b"a-0.JPG"] == names(tmp_path / "out.tar")

    def test_large_payloads_go_under_new_names_from_where_they_lie(self, make: Callable[..., Path], tmp_path: Path):
        content = numbered_records(3, payload=b"\xff" * 70_001)
        cat(str(make(content)), tmp_path / "out.tar", key="k{n}")

        assert [(f"k{at}", fields) for at, (_, fields) in enumerate(content)] == plain(tmp_path / "out.tar")

    def test_a_member_keeps_its_rights_where_it_has_some(self, make, tmp_path):
        for word, expected in [(b"00000000000\0", 0o644), (b"0100640\0", 0o640), (b"0007777\0", 0o7777), (b"zzzzzzz\0", 0o644)]:
            head = bytearray(member("a.jpg", b"1"))
            head[100:108] = word[:8].ljust(8, b"\0")
            head[148:156] = b" " * 8
            head[148:156] = b"%06o\0 " % sum(head[:512])
            cat(str(make(bytes(head) + END)), tmp_path / "out.tar", key="b", strict=False)

            with tarfile.open(tmp_path / "out.tar") as tar:
                assert [("b.jpg", expected, 0)] == [(each.name, each.mode, each.mtime) for each in tar]


class TestOneByOne:
    """Records that come out of a shuffle's buffer, chosen by number and written some at a time."""

    @pytest.mark.parametrize("payload", [b"x", b"\xff" * 70_000], ids=["tiny", "large"])
    @pytest.mark.parametrize(
        ("choice", "part"),
        [
            ({}, slice(None)),
            ({"count": 3}, slice(3)),
            ({"skip": 5}, slice(5, None)),
            ({"skip": 2, "count": 9}, slice(2, 11)),
            ({"slice": "1:12:4"}, slice(1, 12, 4)),
            ({"slice": "::3"}, slice(None, None, 3)),
            ({"count": 0}, slice(0)),
        ],
    )
    def test_a_choice_is_of_the_order_drawn(
        self, make: Callable[..., Path], tmp_path: Path, payload: bytes, choice: dict[str, Any], part: slice
    ):
        path = make(numbered_records(14, payload=payload))
        cat(path, tmp_path / "all.tar", shuffle=6, seed=3)
        made = cat(path, tmp_path / "some.tar", shuffle=6, seed=3, **choice)

        whole = plain(tmp_path / "all.tar")
        assert sorted(whole) == numbered_records(14, payload=payload) != whole
        assert whole[part] == plain(tmp_path / "some.tar")
        assert len(whole[part]) == made.records

    def test_more_than_are_held_at_once(self, make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(field_selection, "_TOGETHER", 4)
        path = make(numbered_records(30))
        made = cat(path, tmp_path / "o.tar", shuffle=1, seed=1)

        assert numbered_records(30) == sorted(plain(tmp_path / "o.tar"))
        assert (30, (tmp_path / "o.tar").stat().st_size) == (made.records, made.bytes)

    def test_nothing_is_read_behind_the_last_one_wanted(self, make: Callable[..., Path], tmp_path: Path):
        paths = [str(make(numbered_records(9, prefix=name), f"{name}.tar")) for name in "ab"]
        random.Random(5).shuffle(order := list(paths))
        Path(order[1]).write_bytes(b"no tar at all" * 100)

        assert 2 == cat(paths, tmp_path / "o.tar", shuffle=1, seed=5, count=2).records

    def test_neighbours_of_one_key_are_warned_of(self, make: Callable[..., Path], tmp_path: Path):
        paths = [make([("k", {"a": b"1"})]), make([("k", {"b": b"2"})], "b.tar")]

        assert {"W_MERGED_RECORD": 1} == cat(paths, tmp_path / "o.tar", shuffle=1).report.counts()


def test_columns_are_fields_of_other_names():
    assert {"label": "cls", "file": "@jpg", "b=c": "a"} == columns(["cls=label", "@jpg=file", "a=b=c"])
    assert {} == columns([])


def test_a_column_without_a_field_or_for_two_is_refused():
    for pairs in [["cls"], ["=label"], ["cls="], ["a=x", "b=x"]]:
        with pytest.raises(UsageError, match="--as names a field and a column each"):
            columns(pairs)


def test_a_record_that_may_lack_a_member_is_said_once_where_it_is_kept(make: Callable[..., Path], tmp_path: Path):
    path = make(member("a.jpg", b"1") + member("b.jpg", b"2"))
    made = cat(str(path), tmp_path / "out.tar", strict=False)
    assert {"W_NO_EOF": 1, "W_PENDING": 1} == made.report.counts()
    assert ["b"] == [fault.key for fault in made.report.warnings if fault.code == "W_PENDING"]

    assert "W_PENDING" not in cat(str(path), tmp_path / "out.tar", strict=False, count=1).report.counts()
