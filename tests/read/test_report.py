"""What reading met, counted and kept."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tarviz.model.errors import Fault, TarvizWarning
from tarviz.read.report import Noted, ReadReport


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
