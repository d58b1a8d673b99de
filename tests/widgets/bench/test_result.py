"""A bench as a value: its text and its JSON whole, what a baseline says, how it ends."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import UsageError
from tarviz.widgets.bench.rate_meter import Figures
from tarviz.widgets.bench.result import Against, BenchResult, TrialRow
from tarviz.widgets.bench.stage_groups import Group

FIGURES = Figures(100.0, 5.0, 12.25, 500, 61_250_000, 5.0, 0.125, 32, 532, 1.25, 2.5, 30.0)
HOST = {"cores": 2, "load": 0.5, "system": "Linux x86_64", "files": ["ext4", "tmpfs"], "versions": {"tarviz": "1", "numpy": "2"}}


def result(**more: Any) -> BenchResult:
    rows = [
        TrialRow("batch 32", "tarviz", {"workers": None, "batch": 32}, runs=[FIGURES], cache="warm (all in memory)"),
        TrialRow("webdataset", "peer", runs=[Figures(rate=40.0, first_seconds=1.0), Figures(rate=60.0, first_seconds=3.0)]),
        TrialRow("broken", "peer", error="E_X: no"),
        TrialRow("waiting", "tarviz"),
        TrialRow("reading alone", "stage", runs=[Figures(rate=400.0)]),
    ]
    groups = [Group("this thread", 1, 5.0, {"read": 1.0, "decode": 3.0}, "for records")]
    return BenchResult({"chain": "decode"}, HOST, rows, groups, 500, "done", "now", **more)


TEXT = """\
decode is the limit: 6.0 of 8.0 ms per record, reading waits 20 % of the time; 2.0× the rate of webdataset.

            records/s  ±     MB/s  p50 ms  p90  p99  first batch  files
batch 32          100  5 %   12.2    1.25  2.5   30       125 ms  warm
webdataset         50  254 %                              2000 ms
broken         failed
waiting             …

             stage              ms a record   share
this thread  read                    2.0000  20.0 %
             decode                  6.0000  60.0 %

broken: E_X: no

2 cores, load 0.5, files on ext4 and tmpfs; Linux x86_64; tarviz 1, numpy 2"""


class TestText:
    def test_it_is_whole(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("COLUMNS", "200")
        found = str(result())

        assert [" ".join(line.split()) for line in TEXT.split("\n")] == [" ".join(line.split()) for line in found.split("\n")]
        assert repr(result()) == found
        head, first = found.split("\n")[2:4]
        assert head.index("MB/s") + 4 == first.index("12.2") + 4  # figures stand below the ends of their names

    def test_what_was_compared_and_noted_comes_before_the_machine(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("COLUMNS", "200")
        found = result(against=[Against("a", 90.0, 100.0, 0.9, False), Against("b", 50.0, 100.0, 0.5, True)], notes=["a note"])
        found.state = "stopped"

        assert [
            "a: 90 records/s, 100 before: 0.90×  ok",
            "b: 50 records/s, 100 before: 0.50×  SLOWER",
            "a note",
            "2 cores, load 0.5, files on ext4 and tmpfs; Linux x86_64; tarviz 1, numpy 2",
            "stopped: what was measured until then",
        ] == str(found).split("\n\n")[4:]

    @pytest.mark.parametrize(
        ("host", "line"),
        [
            ({}, "? cores; ; "),
            ({"cores": 1, "load": None, "system": "x"}, "1 core; x; "),
            ({"cores": 3, "load": 0.0, "files": ["s3"], "versions": {"a": "1"}}, "3 cores, load 0.0, files on s3; ; a 1"),
        ],
    )
    def test_the_machine_is_a_line(self, host: dict[str, Any], line: str):
        assert line == BenchResult({}, host).facts


class TestPlain:
    def test_it_is_whole_and_read_back(self, tmp_path: Path):
        found = result()
        plain = found.to_dict()

        assert {"format", "state", "when", "verdict", "config", "host", "rows", "groups", "stages", "against", "notes"} == set(plain)
        assert (1, "done", "now", {"chain": "decode"}, HOST) == tuple(plain[name] for name in ("format", "state", "when", "config", "host"))
        assert [
            {"threads": "this thread", "stage": "read", "ms": 2.0, "share": 0.2},
            {"threads": "this thread", "stage": "decode", "ms": 6.0, "share": 0.6},
        ] == plain["stages"]
        assert [
            {"name": "this thread", "threads": 1, "busy": {"read": 0.2, "decode": 0.6}, "waits": "for records", "waiting": 0.2}
        ] == plain["groups"]
        first, second, *_ = plain["rows"]
        assert {"rate": 100.0, "margin": 5.0, "megabytes": 12.25, "p50": 1.25, "p90": 2.5, "p99": 30.0, "first_seconds": 0.125}.items() <= (
            first.items()
        )
        assert (50.0, None, 2.0) == (second["rate"], second["megabytes"], second["first_seconds"])
        assert 127.1 == pytest.approx(second["margin"], abs=0.1)
        assert [100.0, None] == [first["runs"][0]["rate"], second["runs"][0]["p50"]]
        assert json.dumps(plain, allow_nan=False)

        found.save(tmp_path / "b.json")
        again = BenchResult.load(tmp_path / "b.json")
        assert [row.to_dict() for row in found.rows] == [row.to_dict() for row in again.rows]
        assert (found.config, found.host, "done", "now", []) == (again.config, again.host, again.state, again.when, again.groups)
        assert (tmp_path / "b.json").read_text().startswith('{\n "format": 1,\n')

    def test_a_file_that_is_not_there_is_said(self, tmp_path: Path):
        with pytest.raises(UsageError, match=r"none\.json cannot be read: No such file"):
            BenchResult.load(tmp_path / "none.json")

    def test_stages_of_a_graph_have_their_share_of_all(self):
        rows = [
            TrialRow("whole", "tarviz", runs=[Figures(rate=100.0)], last_op="flip"),
            TrialRow("reading alone", "stage", runs=[Figures(rate=400.0)]),
        ]

        assert [("graph", "reading alone", 2.5, 0.25), ("graph", "flip", 7.5, 0.75)] == BenchResult({}, {}, rows).stages()
        assert [] == BenchResult({}, {}, [TrialRow("none", "tarviz")]).stages()

    def test_a_group_that_had_no_time_has_no_share(self):
        group = Group("idle", 2, 0.0, {"read": 0.0})

        assert ({"read": 0.0}, 1.0, 0.0) == (group.to_dict()["busy"], group.to_dict()["waiting"], group.share)
        assert [("idle", "read", 0.0, 0.0)] == BenchResult({}, {}, [], [group], 5).stages()
        assert 1.0 == Group("busy", 1, 1.0, {"read": 3.0}).share


class TestEnds:
    @pytest.mark.parametrize(
        ("rows", "state", "against", "code"),
        [
            ([], "done", [], 2),
            ([TrialRow("a", "tarviz", error="no")], "failed", [], 2),
            ([TrialRow("a", "tarviz", runs=[FIGURES])], "done", [], 0),
            ([TrialRow("a", "tarviz", runs=[FIGURES])], "stopped", [], 1),
            ([TrialRow("a", "tarviz", runs=[FIGURES]), TrialRow("b", "peer", error="no")], "done", [], 1),
            ([TrialRow("a", "tarviz", runs=[FIGURES])], "done", [Against("a", 1, 2, 0.5, True)], 1),
            ([TrialRow("a", "tarviz", runs=[FIGURES])], "done", [Against("a", 2, 2, 1.0, False)], 0),
        ],
    )
    def test_how_the_verb_ends(self, rows: list[TrialRow], state: str, against: list[Against], code: int):
        assert code == BenchResult({}, {}, rows, state=state, against=against).exit_code

    def test_the_rate_is_that_of_the_first_row_that_has_any(self):
        assert 100.0 == BenchResult({}, {}, [TrialRow("a", "tarviz"), TrialRow("b", "peer", runs=[FIGURES])]).rate
        assert math.isnan(BenchResult({}, {}).rate)
        assert math.isnan(TrialRow("a", "tarviz").margin)
        assert 5.0 == TrialRow("a", "tarviz", runs=[FIGURES]).margin


class TestBaseline:
    def compared(self, rate: float, before: dict[str, float], fail_below: float = 0.9) -> BenchResult:
        ours = BenchResult({}, HOST, [TrialRow("a", "tarviz", runs=[Figures(rate=rate)]), TrialRow("none", "tarviz")])
        ours.compare(BenchResult({}, HOST, [TrialRow(name, "tarviz", runs=[Figures(rate=r)]) for name, r in before.items()]), fail_below)
        return ours

    def test_rates_stand_beside_those_of_the_same_name(self):
        assert [Against("a", 90.0, 100.0, 0.9, False)] == self.compared(90.0, {"a": 100.0, "b": 5.0}).against
        assert [Against("a", 89.0, 100.0, 0.89, True)] == self.compared(89.0, {"a": 100.0}).against
        assert [] == self.compared(90.0, {"a": 100.0}).notes

    @pytest.mark.parametrize("before", [{"b": 1.0}, {"a": math.nan}, {"a": 0.0}, {"none": 3.0}])
    def test_what_cannot_be_compared_is_refused(self, before: dict[str, float]):
        with pytest.raises(UsageError, match="no row of the same name"):
            self.compared(90.0, before)

    def test_it_may_be_a_file(self, tmp_path: Path):
        result().save(tmp_path / "b.json")

        assert [1.0, 1.0] == [each.ratio for each in result().compare(tmp_path / "b.json") if each.label != "reading alone"]


def test_in_a_notebook_it_is_text_and_a_picture():
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    import base64

    found = result()._repr_mimebundle_()

    assert str(result()) == found["text/plain"]
    assert base64.b64decode(found["image/png"]).startswith(b"\x89PNG")
    assert ["text/plain"] == list(BenchResult({}, {})._repr_mimebundle_())
