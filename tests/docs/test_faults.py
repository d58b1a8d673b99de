"""Every fault of the list is shown by a test, and no test names one that is not there."""

from __future__ import annotations

import pytest

from docs import faults


def test_every_fault_has_a_test():
    assert [f"F{number:02d}" for number in range(1, 56)] + [f"U{number}" for number in range(1, 6)] == [row[0] for row in faults.rows()]


def test_a_fault_that_no_test_shows_is_named(monkeypatch):
    monkeypatch.setitem(faults.FAULTS, "F99", ("", ""))
    with pytest.raises(SystemExit, match=r"no test shows: .'F99'."):
        faults.rows()


def test_a_fault_that_nobody_lists_is_named(monkeypatch):
    monkeypatch.delitem(faults.FAULTS, "F33")
    with pytest.raises(SystemExit, match=r"nobody lists: .'F33'."):
        faults.rows()


def test_marks_of_classes_and_of_tests_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(faults, "TESTS", tmp_path)
    (tmp_path / "test_a.py").write_text(
        'import pytest\n@pytest.mark.fault("F01")\nclass TestA:\n    @pytest.mark.fault("F02", "U1")\n    def test_one_thing(self): ...\n'
        "    def test_another(self): ...\n    def helper(self): ...\ndef test_no_fault(): ...\n"
    )

    assert {"F01": ["one thing", "another"], "F02": ["one thing"], "U1": ["one thing"]} == {
        name: [sentence for _, sentence in tests] for name, tests in faults.shown().items()
    }
