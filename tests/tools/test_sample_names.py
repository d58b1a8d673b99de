"""`_["cls"]` in an expression: a record as tarproc's tools called it, in the words of our own language."""

from __future__ import annotations

import pytest

from tarviz.model.errors import UsageError
from tarviz.tools.sample_names import without_sample


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('int(_["cls"]) == 180', "int(field('cls')) == 180"),
        ('_["seg.png"]', "field('seg.png')"),
        ("_.cls == 3", "field('cls') == 3"),
        ('_["__key__"].startswith("n0")', "key.startswith('n0')"),
        ('_["__source__"]', "shard"),
        ("len(_.jpg) > 9", "size('jpg') > 9"),
        ('_["txt"].decode("utf8") == "a"', "field('txt') == 'a'"),
        ('_["cls"] == b"3"', "field('cls') == '3'"),
        ('"jpg" in _', "has('jpg')"),
        ('"jpg" not in _', "not has('jpg')"),
        ('_.get("cls") == 3', "field('cls') == 3"),
        ("cls == 3", "cls == 3"),
    ],
)
def test_each_form_has_its_word(old: str, new: str):
    assert new == without_sample(old)


@pytest.mark.parametrize("text", ["_[0]", "_[cls]", '_["__class__"]', "_()", "_ + 1"])
def test_what_has_no_meaning_is_refused(text: str):
    with pytest.raises(UsageError):
        without_sample(text)
