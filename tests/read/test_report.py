"""What reading met, counted and kept."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tarviz.model.errors import Fault, TarvizWarning
from tarviz.model.types import URL
from tarviz.read.report import Noted, ReadReport
from tarviz.stores import Stat


def test_every_fault_is_counted_and_a_thousand_of_a_code_are_kept():
    report = ReadReport()
    for number in range(1500):
        report.add(Fault("W_ONE", str(number)))
    report.add(Fault("E_TWO", "skipped"), skipped=True)

    assert {"W_ONE": 1500, "E_TWO": 1} == report.counts()
    assert (1000, 1) == (len(report.warnings), len(report.skipped))


def test_reports_are_added_up():
    whole, part = ReadReport(records=1, bytes=10, shards=1), ReadReport(records=2, bytes=20, shards=1)
    for number in range(800):
        whole.add(Fault("W_ONE", str(number)))
        part.add(Fault("W_ONE", str(number)))
    whole.merge(part)

    assert (3, 30, 2) == (whole.records, whole.bytes, whole.shards)
    assert {"W_ONE": 1600} == whole.counts()
    assert 1000 == len(whole.warnings)
    assert "3 records, 30 bytes, 2 shards, W_ONE ×1600" == str(whole)


def test_what_was_skipped_is_added_up_too():
    whole, part = ReadReport(), ReadReport()
    for report, codes in ((whole, ("E_ONE",)), (part, ("E_ONE", "E_TWO"))):
        for code in codes:
            report.add(Fault(code, "gone", "a.tar"), skipped=True)
    whole.merge(part)

    assert {"E_ONE": 2, "E_TWO": 1} == whole.left_out == whole.counts()
    assert ["E_ONE", "E_ONE", "E_TWO"] == [fault.code for fault in whole.skipped]


def test_it_is_told_whole_and_without_secrets():
    report = ReadReport(records=3, bytes=10, shards=1)
    report.add(Fault("W_ONE", "odd", "https://me:pw@host/a.tar", member="a.txt", offset=512))
    report.add(Fault("E_TWO", "gone", key="b"), skipped=True)

    assert {
        "records": 3,
        "bytes": 10,
        "shards": 1,
        "counts": {"W_ONE": 1, "E_TWO": 1},
        "warnings": [{"code": "W_ONE", "message": "odd", "shard": "https://***@host/a.tar", "member": "a.txt", "offset": 512}],
        "skipped": [{"code": "E_TWO", "message": "gone", "key": "b"}],
    } == report.to_dict()


def test_what_was_met_since_is_a_report_of_its_own():
    report = ReadReport(records=3, bytes=10, shards=1, opened=Stat(URL("a.tar")))
    report.add(Fault("W_ONE", "odd"))
    report.add(Fault("E_TWO", "gone"), skipped=True)
    found = report.split_off()
    report.add(Fault("W_ONE", "more"))

    assert (3, 10, 1, {"W_ONE": 1, "E_TWO": 1}, {"E_TWO": 1}) == (found.records, found.bytes, found.shards, found.counts(), found.left_out)
    assert (["odd"], ["gone"], "a.tar") == (
        [one.message for one in found.warnings],
        [one.message for one in found.skipped],
        found.opened.url,
    )
    assert (0, 0, 0, {"W_ONE": 1}, {}) == (report.records, report.bytes, report.shards, report.counts(), report.left_out)
    assert (["more"], [], found.opened) == ([one.message for one in report.warnings], report.skipped, report.opened)


def test_each_epoch_tells_what_was_left_out_in_it(caplog: pytest.LogCaptureFixture):
    report = ReadReport()
    report.tell_skipped()
    report.add(Fault("W_ONE", "odd"))
    report.tell_skipped()
    assert [] == caplog.messages

    for code in ("E_ONE", "E_ONE", "E_TWO"):
        report.add(Fault(code, "gone", "a.tar"), skipped=True)
    for _ in range(2):
        report.tell_skipped()
    assert ['3 left out so far (on_error="skip"): E_ONE ×2, E_TWO ×1; the first: E_ONE a.tar: gone'] == caplog.messages

    report.split_off()
    report.add(Fault("E_TWO", "gone", "b.tar"), skipped=True)
    report.tell_skipped()
    assert '1 left out so far (on_error="skip"): E_TWO ×1; the first: E_TWO b.tar: gone' == caplog.messages[-1]


def test_each_fault_is_taken_once_and_each_code_is_warned_of_once():
    report, met = ReadReport(), SimpleNamespace(notes=[Fault("W_ONE", "a")], skipped=[])
    noted = Noted(report, met)
    with pytest.warns(TarvizWarning, match="W_ONE"):
        noted.take(5)
    met.notes.append(Fault("W_ONE", "b"))
    met.skipped.append(Fault("W_ONE", "c"))
    noted.take(7)  # a second warning would be an error

    assert (["a", "b"], ["c"]) == ([fault.message for fault in report.warnings], [fault.message for fault in report.skipped])
    assert 7 == report.bytes
