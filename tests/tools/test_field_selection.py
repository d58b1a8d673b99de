"""Which fields the tar tools keep, and under which names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tarviz
from tarviz.commands.cat import cat
from tarviz.model.errors import DataError, UsageError
from tarviz.tools.field_selection import Pick, key_template, picks, substitution
from tests.read.tars import END, member, pax


class TestPicks:
    def test_alternatives_new_names_and_what_may_be_missing(self):
        assert (Pick(("jpg", "png"), "image"), Pick(("seg.png",), None, True)) == picks("image:JPG;png  seg.png?")

    @pytest.mark.parametrize(
        "text", ["", " ", "jpg;", ":jpg", "a:b:jpg", "a/b", "?", "jpg jpg", "jpg;png png", "x:jpg x:png", "jpg x:png;jpg"]
    )
    def test_what_is_no_list_of_fields_is_refused(self, text: str):
        with pytest.raises(UsageError):
            picks(text)


class TestKeys:
    @pytest.mark.parametrize(
        ("template", "key"),
        [
            ("{key}", b"train/0001"),
            ("{folder}-{base}", b"train-0001"),
            ("{shard}/{n:06d}", b"shard-7/000012"),
            ("{n:3}_{n}", b"012_12"),
            ("fixed", b"fixed"),
        ],
    )
    def test_words_are_parts_of_the_old_one(self, template: str, key: bytes):
        assert key == key_template(template)(b"train/0001", "https://h/x/shard-7.tar.gz?sig=a/b", 12)

    @pytest.mark.parametrize("template", ["{what}", "{key:3}", "{", "}", "{n:abc}", "{{key}}"])
    def test_other_braces_are_refused(self, template: str):
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
