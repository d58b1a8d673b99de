"""`_["cls"]` in an expression: a record as tarproc's tools called it, in the words of our own language."""

from __future__ import annotations

import pytest

from tarviz.model.errors import UsageError
from tarviz.tools.sample_names import without_sample


def test_each_form_has_its_word():
    for old, new in [
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
        ("a man, a plan and a (", "a man, a plan and a ("),
        (' _["cls"] > 1 ', "field('cls') > 1"),
        ('json.w > _["json"].w', "json.w > field('json').w"),
        ('max(_["a"], x.y[0], key=_.b) == 1', "max(field('a'), x.y[0], key=field('b')) == 1"),
        ('len(_["__key__"]) > 3', "len(key) > 3"),
        ('len(x) > len(_["a"])', "len(x) > size('a')"),
        ('_.get("__index__") < 5 < _["a"]', "index < 5 < field('a')"),
        ('"jpg" in _ and "a" in _["txt"]', "has('jpg') and 'a' in field('txt')"),
        ('_["txt"] == b"\\xff"', "field('txt') == '\ufffd'"),
        ('_["a"].decode(errors="x") == 1', "field('a').decode(errors='x') == 1"),
    ]:
        assert new == without_sample(old)


def test_what_has_no_meaning_is_refused():
    for text in ["_[0]", "_[cls]", '_["__class__"]', "_()", "_ + 1", "_.get(cls)", "len(_)", "1 in _", "_.__dict__"]:
        with pytest.raises(UsageError):
            without_sample(text)
