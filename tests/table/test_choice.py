"""The records that a condition and a list of keys choose together, and what is wrong with either."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tarviz
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.read.stream import ReadOptions
from tarviz.table import choice


@pytest.fixture
def urls(make) -> list[URL]:
    return [URL(str(make([(f"{name}{at}", {"cls": b"%d" % at}) for at in range(4)], f"{name}.tar"))) for name in "ab"]


def test_a_condition_and_keys_choose_what_both_do(urls):
    found = choice.choose(urls, ReadOptions(where="cls > 0", keys=("b2", "a0", "a3")))

    assert {urls[0]: [3], urls[1]: [2]} == {url: rows.tolist() for url, rows in found.rows.items()}
    assert set(urls) == set(found.versions)
    assert frozenset() == found.streams
    only = choice.choose(["-", *urls[:1]], ReadOptions(where="cls > 2"))
    assert ({urls[0]: [3]}, frozenset("-")) == ({url: rows.tolist() for url, rows in only.rows.items()}, only.streams)


def test_records_out_of_order_are_not_chosen_from(urls):
    with pytest.raises(UsageError, match='a condition and group="shard" do not go together'):
        choice.choose(urls, ReadOptions(where="cls = 1", group="shard"))


def test_keys_are_given_or_the_lines_of_a_file(tmp_path, monkeypatch):
    file = tmp_path / "keys"
    file.write_bytes(b"a\n\n b\n  \n\xff\n")

    assert ["a", " b", "\udcff"] == choice.list_keys(str(file))
    assert ["a", "b"] == choice.list_keys(("a", "b"))
    file.write_bytes("\ufeffa\r\nb\u2028c\x85\n".encode())  # as Windows writes it; one end of a line, of those that Unicode has
    assert ["a", "b\u2028c\x85"] == choice.list_keys(str(file))
    file.write_bytes(b"a\n\n b\n  \n\xff\n")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        choice.list_keys(str(tmp_path / "nowhere"))
    monkeypatch.setattr(choice, "MAX_KEYS", 10)
    with pytest.raises(UsageError, match="too large for a list of keys"):
        choice.list_keys(str(file))
    monkeypatch.setattr(choice, "MAX_KEYS", 11)
    assert 3 == len(choice.list_keys(str(file)))


@given(st.lists(st.text(st.characters(codec="utf-8")).filter(lambda key: key.strip() and "\n" not in key and key[-1] != "\r")))
@example(["a\u2028b", "c\x85", "\x0bd", "e\rf", "\udcff"])
def test_a_list_of_keys_reads_back(keys):
    with NamedTemporaryFile() as file:
        Path(file.name).write_bytes(choice.listing(keys))

        assert keys == choice.list_keys(file.name)


def test_what_is_no_line_is_not_listed():
    for key in ["two\nlines", "end\r", " ", ""]:
        with pytest.raises(UsageError, match="is no line of a list of keys"):
            choice.listing(["a", key])


def test_a_list_that_another_program_wrote(tmp_path):
    (tmp_path / "keys").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")

    assert ["a", "b"] == choice.list_keys(str(tmp_path / "keys"))


def test_conditions_and_searches_are_joined():
    assert "(search('boat')) and (cls = 1)" == choice.join_conditions(["boat", "  ", "cls = 1 "])
    assert "cls = 1" == choice.join_conditions(["", "cls = 1"])
    assert "" == choice.join_conditions([])


def test_a_wrong_key_is_named_with_the_nearest(urls):
    with pytest.raises(UsageError, match=r"2 of 3 keys are in no shard, 'a11' first.*Nearest: a1"):
        list(tarviz.records(urls, keys=("a11", "a1", "zzz")))


def test_a_wrong_key_of_many_letters_is_named_in_short(urls):
    with pytest.raises(UsageError) as raised:
        list(tarviz.records(urls, keys=("\0" * 10_000,)))

    assert 1000 > len(str(raised.value))
