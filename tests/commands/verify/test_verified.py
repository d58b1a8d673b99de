"""What `verify` found, as text, data and a table, and beyond how many it is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.verify import Verified, verify
from tarviz.model.errors import Fault
from tarviz.outputs import TAR_END, tar_member
from tarviz.testing.strategies import numbered_records


class TestListed:
    def test_the_whole_of_it(self, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        make(b"".join(tar_member("<k>.png", b"no picture")) + b"".join(tar_member("README", b"")) + TAR_END)
        found = verify("a.tar", deep=True)

        (fault,), (warning,) = found.faults, found.warnings
        assert ("a.tar", "<k>", "<k>.png", 0) == (fault["shard"], fault["record"], fault["member"], fault["offset"])
        assert ("W_NO_KEY", "README", 1024) == (warning["code"], warning["member"], warning["offset"])
        lines = str(found).splitlines()
        assert f"{fault['code']} a.tar, record '<k>', member '<k>.png' at byte 0: {fault['message']}" == lines[0].partition(" Hint: ")[0]
        assert [f"W_NO_KEY a.tar, member 'README' at byte 1024: {warning['message']}"] == lines[1:-1]
        assert f"1 record in 1 file: {fault['code']} ×1, W_NO_KEY ×1" == lines[-1]
        html = found._repr_mimebundle_()["text/html"]
        assert f'<p class="bad">1 record in 1 file: {fault["code"]} ×1, W_NO_KEY ×1</p><div class="findings"><table>' in html
        assert "<th>code</th><th>shard</th><th>record</th><th>member</th><th class=right>offset</th><th>message</th>" in html
        assert "<td>W_NO_KEY</td><td>a.tar</td><td></td><td>README</td><td class=right>1024</td>" in html

    def test_what_is_clean_has_no_list(self, make: Any):
        found = verify([make(numbered_records(1)), make(numbered_records(1200), "b.tar")])

        assert "1,201 records in 2 files: no fault found" == str(found)
        assert '<p class="good">1,201 records in 2 files: no fault found</p></div>' in found._repr_mimebundle_()["text/html"]

    def test_beyond_so_many_findings_are_counted(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("tarviz.commands.verify.MAX_KEPT", 3)
        found, other = Verified(), Verified(2, 30, 1)
        for at in range(5):
            found.add(Fault("E_SCHEMA", "odd.", "a.tar", f"k{at}"))
            other.add(Fault("W_NO_KEY", "odd.", "b.tar", member=f"m{at}"))
        found.merge(other)

        assert (["k0", "k1", "k2"], ["m0", "m1", "m2"]) == (
            [each["record"] for each in found.faults],
            [each["member"] for each in found.warnings],
        )
        assert {"E_SCHEMA": 5, "W_NO_KEY": 5} == found.counts
        assert (2, 30, 1) == (found.records, found.bytes, found.shards)
        found.merge(found)
        assert (3, 3, 10) == (len(found.faults), len(found.warnings), found.counts["E_SCHEMA"])
