"""Rows as files: a tar that other tools read, a table, a list of keys; and what is refused."""

from __future__ import annotations

import csv
import io
import json
import tarfile

import numpy as np
import pytest

from tarviz.model.errors import LimitError, UsageError
from tarviz.widgets.browse import export
from tarviz.widgets.browse.controller import Browser
from tests.widgets.browse.test_controller import settle
from tests.widgets.conftest import tar

RECORDS = [
    ("a/n0", {"txt": b"one, two", "cls": b"3"}),
    ("a/n1", {"txt": b"a \xff b", "cls": b"4"}),
    ("a/n2", {"cls": b"5", "json": b'{"w": 1.5, "ok": true}'}),
]


@pytest.fixture
def browser(tmp_path):
    found = settle(Browser([tar(tmp_path / "s.tar", RECORDS)], cache=False))
    yield found
    found.close()


def exported(browser, kind, ids=(0, 2), wanted=None):
    return export.as_file(kind, browser.shards.rows, np.array(ids, np.int64), browser.shards.questions, wanted)


def test_a_tar_holds_their_members_as_they_are(browser):
    with tarfile.open(fileobj=io.BytesIO(exported(browser, "tar"))) as file:
        found = [(one.name, file.extractfile(one).read()) for one in file]

    assert [("a/n0.txt", b"one, two"), ("a/n0.cls", b"3"), ("a/n2.cls", b"5"), ("a/n2.json", b'{"w": 1.5, "ok": true}')] == found
    assert 0 == len(exported(browser, "tar")) % 512


def test_a_table_has_a_column_an_expression(browser, tmp_path):
    shard = tmp_path / "s.tar"

    assert (
        f"key,shard,index,cls,json.w\na/n0,{shard},0,3,\na/n2,{shard},2,5,1.5\n"
        == exported(browser, "csv", wanted=["cls", "json.w"]).decode()
    )
    assert b"key,shard,index,cls,txt,json.w,json.ok" == exported(browser, "csv").splitlines()[0]
    assert ",4,a \N{REPLACEMENT CHARACTER} b\n" in exported(browser, "csv", [1]).decode()


def test_a_table_has_every_column_and_every_text_as_it_is(tmp_path):
    texts = ["x" * 5000, "007", "1_000", "nan", "a\rb", 'say "a",\r\nb', "\u202eabc", "3.50"]
    late = json.dumps({f"n{number}": number for number in range(60)}).encode()
    records = [(f"r{number:02d}", {"txt": text.encode()}) for number, text in enumerate(texts)]
    records += [(f"s{number:02d}", {"cls": b"03"}) for number in range(30)]
    browser = settle(Browser([tar(tmp_path / "s.tar", [*records, ("t", {"json": late})])], cache=False))

    found = list(csv.DictReader(io.StringIO(exported(browser, "csv", range(39)).decode(), newline="")))

    assert texts == [row["txt"] for row in found[:8]]
    assert ["3"] * 30 == [row["cls"] for row in found[8:38]]
    assert [str(number) for number in range(60)] == [found[38][f"json.n{number}"] for number in range(60)]
    browser.close()


def test_a_list_has_a_key_a_line(browser):
    assert b"a/n0\na/n2\n" == exported(browser, "txt")


def test_what_is_no_kind_is_refused_with_those_there_are(browser, tmp_path):
    with pytest.raises(UsageError, match=r"Records are not saved as 'zip'\.") as refused:
        exported(browser, "zip")
    assert "There are: tar, csv, parquet, txt." == refused.value.hint
    with pytest.raises(UsageError, match="does not say what is to be written") as refused:
        browser.write(tmp_path / "s.zip")
    assert "End it in .tar, .csv, .parquet, .txt." == refused.value.hint


def test_a_page_is_given_no_more_than_it_can_hold(browser, monkeypatch):
    whole = exported(browser, "tar")
    monkeypatch.setattr(export, "MOST_BYTES", len(whole))
    assert whole == exported(browser, "tar")
    monkeypatch.setattr(export, "MOST_BYTES", len(whole) - 1)

    with pytest.raises(LimitError, match="more than a page is given at once") as refused:
        exported(browser, "tar")
    assert "In Python, w.export('subset.tar') writes any number." == refused.value.hint
