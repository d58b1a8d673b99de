"""Two data sets told apart: by key, whatever the shards; by the bytes of each field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz import cli
from tarviz.commands.diff import Difference, diff
from tarviz.model.errors import DataError, Fault, NotFoundError
from tarviz.read.stream import ReadReport
from tarviz.testing.strategies import numbered_records, shard

Make = Callable[..., Path]
FIELDS = st.dictionaries(st.sampled_from(["txt", "cls", "jpg"]), st.binary(max_size=3), min_size=1)


def test_records_are_found_in_whatever_shard_and_order(make: Make):
    content = numbered_records(20)
    whole = make(content, "a.tar")
    parts = [make(content[10:][::-1], "b-0.tar"), make(content[:10], "b-1.tar")]

    result = diff(whole, parts)

    assert ([], [], {}, 20, 0) == (result.added, result.gone, result.changed, result.equal, result.exit_code)


def test_a_key_that_comes_again_is_not_taken_for_another(make: Make):
    content = [("k (2)", {"cls": b"1"}), ("k", {"cls": b"1"})]
    again = make([("k", {"cls": b"2"})], "c.tar")

    result = diff(make(content, "a.tar"), [make(content, "b.tar"), again])

    assert (["k (2)"], {}, 2) == (result.added, result.changed, result.equal)


def test_one_changed_field_is_named(make: Make):
    content = [(f"k{at}", {"jpg": b"picture %d" % at, "cls": b"1"}) for at in range(9)]
    other = [(key, {**fields, **({"cls": b"2"} if key == "k4" else {})}) for key, fields in content]

    result = diff(make(content, "a.tar"), make(other, "b.tar"))

    assert ({"k4": ["cls"]}, 8, 1) == (result.changed, result.equal, result.exit_code)
    assert "k4: cls" in str(result)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from("abcdef"), FIELDS), st.dictionaries(st.sampled_from("abcdef"), FIELDS))
def test_it_says_what_comparing_dicts_says(tmp_path_factory: Any, old: dict[str, Any], new: dict[str, Any]):
    folder = tmp_path_factory.mktemp("diff")
    for name, records in (("a.tar", old), ("b.tar", new)):
        (folder / name).write_bytes(shard(list(records.items())))

    result = diff(folder / "a.tar", folder / "b.tar")

    assert [key for key in new if key not in old] == result.added
    assert [key for key in old if key not in new] == result.gone
    both = [key for key in old if key in new and old[key] != new[key]]
    assert {key: [ext for ext in ("cls", "jpg", "txt") if old[key].get(ext) != new[key].get(ext)] for key in both} == result.changed
    assert len(old.keys() & new.keys()) - len(both) == result.equal


def test_a_key_that_comes_twice_is_counted(make: Make):
    a = [make([("k", {"txt": b"1"}), ("m", {"txt": b"1"})], "a-0.tar"), make([("k", {"txt": b"2"})], "a-1.tar")]
    b = [make([("k", {"txt": b"1"}), ("m", {"txt": b"1"})], "b-0.tar"), make([("k", {"txt": b"3"}), ("m", {"txt": b"1"})], "b-1.tar")]

    result = diff(a, b)

    assert ({"k (2)": ["txt"]}, ["m (2)"]) == (result.changed, result.added)


def test_only_what_a_condition_chooses_is_compared(make: Make):
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    a = make([("k", {"cls": b"1"}), ("m", {"cls": b"2"})], "a.tar")
    b = make([("k", {"cls": b"1"}), ("n", {"cls": b"3"})], "b.tar")

    assert 0 == diff(a, b, where="cls = 1").exit_code


def test_damage_is_an_error_or_counted(make: Make):
    whole = shard(numbered_records(9))
    damaged = make(whole[: len(whole) // 2 + 100], "b.tar")
    with pytest.raises(DataError):
        diff(make(whole, "a.tar"), damaged)
    result = diff(make(whole, "a.tar"), damaged, on_error="skip")

    assert 0 < len(result.gone) < 9
    assert (1, 1) == (len(result.report.skipped), result.exit_code)


def test_the_shell_prints_json_and_leaves_with_1(make: Make, capsys: pytest.CaptureFixture[str]):
    a, b = make([("k", {"txt": b"1"}), ("old", {"txt": b"1"})], "a.tar"), make([("k", {"txt": b"2"}), ("new", {"txt": b"1"})], "b.tar")

    code = cli.main(["diff", "--json", str(a), str(b)])

    assert 1 == code
    assert {"added": ["new"], "gone": ["old"], "changed": {"k": ["txt"]}, "equal": 0} == json.loads(capsys.readouterr().out)
    assert 0 == cli.main(["diff", "-q", str(a), str(a)])


def test_a_name_that_is_not_there_is_an_error(make: Make, tmp_path: Path):
    with pytest.raises(NotFoundError):
        diff(make(numbered_records(1), "a.tar"), tmp_path / "none.tar")


def test_the_whole_of_what_is_said(make: Make):
    a = [(f"k{at:02d}", {"jpg": b"%d" % at, "cls": b"1"}) for at in range(40)] + [(f"old{at}", {"cls": b"1"}) for at in range(4)]
    b = [(f"k{at:02d}", {"jpg": b"%d" % at, **({"cls": b"2"} if at < 22 else {"cls": b"1"} if at < 39 else {})}) for at in range(40)]
    result = diff(make(a, "a.tar"), make([*b, *((f"new{at}", {"cls": b"1"}) for at in range(5))], "b.tar"))

    assert [
        "added     5  new0, new1, new2, new3, …",
        "gone      4  old0, old1, old2, old3",
        "changed  23  cls of 23",
        "equal    17",
        *(f"k{at:02d}: cls" for at in range(20)),
    ] == str(result).splitlines()
    assert {"added": result.added, "gone": result.gone, "changed": result.changed, "equal": 17} == result.to_dict()
    assert 1 == result.exit_code


def test_no_more_than_twenty_faults_are_noted():
    report = ReadReport()
    for at in range(25):
        report.add(Fault("W_NO_KEY", f"odd {at}."))

    assert [f"W_NO_KEY: odd {at}." for at in range(20)] == list(Difference([], [], {}, 0, report).notes())
    assert 0 == Difference([], [], {}, 0, report).exit_code
