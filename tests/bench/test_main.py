"""The benchmark's command: rows say when they were measured, and what is not measured is said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench import Figure, Value, __main__
from docs import tables

_run = subprocess.run


def test_a_package_that_is_absent_is_said_and_its_figure_left_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    made = Figure("x-one", "one", Value(lambda _: 1.0, "s"), at_most=2)
    lacks = Figure("x-two", "two", Value(lambda _: 1.0, "s"), at_most=2, packages=("no_such_package.part",))
    monkeypatch.setattr(__main__, "figures", lambda _: [made, lacks])
    [line], sound = __main__.run_one("x", Path(), 1, None)

    assert sound
    assert ("x-one", True) == (line["name"], line["reached"])
    assert line["commit"]
    assert 10 == len(str(line["date"]))
    assert "not measured: no_such_package.part is not installed" in capsys.readouterr().err


def test_a_peer_that_fails_leaves_the_other_figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def broken(_: Path) -> float:
        raise OSError("no such library")

    whole = Figure("x-two", "two", Value(lambda _: 1.0, "s"), at_most=2)
    monkeypatch.setattr(__main__, "figures", lambda _: [Figure("x-one", "one", Value(broken, "s"), at_most=2), whole])
    [line], sound = __main__.run_one("x", Path(), 1, None)

    assert not sound
    assert "x-two" == line["name"]
    assert line["processor"] in __main__.machine()
    assert "not measured: OSError: no such library" in capsys.readouterr().err


def test_rows_that_are_not_measured_now_stay_and_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(__main__, "names", lambda: ["x"])
    monkeypatch.setattr(__main__, "figures", lambda _: [Figure(name, name, Value(lambda _: 1.0, "s"), at_most=2) for name in ("b", "a")])
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"figures": [{"name": "a", "value": 1, "date": "2026-01-02"}, {"name": "gone", "value": 1}]}))
    __main__.merge(path, [{"name": "b", "value": 2}])

    assert ["b", "a"] == [line["name"] for line in json.loads(path.read_text())["figures"]]
    assert "a: kept as it was measured on 2026-01-02" in capsys.readouterr().err


def test_what_is_measured_again_stands_beside_what_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "results.json"
    old = [{"name": name, "value": 2.0, "shown": "2.00×", "date": "2026-01-02", "commit": "abc"} for name in ("a", "b")]
    path.write_text(json.dumps({"machine": "here", "figures": old}))
    values = {"a": 2.1, "b": 1.7, "c": 1.0}
    now = [{"name": name, "value": value, "shown": f"{value}×", "date": "2026-01-03", "commit": "abd"} for name, value in values.items()]
    __main__.add(path, now)

    content = json.loads(path.read_text())
    assert "here" == content["machine"]
    assert [2.0, 2.0] == [line["value"] for line in content["figures"]]
    assert {"value": 2.1, "shown": "2.1×", "date": "2026-01-03", "commit": "abd"} == content["figures"][0]["again"]
    said = capsys.readouterr().err.splitlines()
    assert ["b: 2.00× before, 1.7× again: 15% apart", "c: there is nothing to put it beside; measure without --again"] == said


def test_what_another_processor_gives_stands_in_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def line(value: float, processor: str) -> dict[str, object]:
        return {"name": "a", "value": value, "shown": f"{value}×", "date": "2026-01-02", "commit": "abc", "processor": processor}

    path = tmp_path / "results.json"
    path.write_text(json.dumps({"machine": "2 cores of One", "figures": [line(2.0, "One")]}))
    for value, processor in ((1.0, "Two"), (1.5, "Two"), (2.1, "One"), (4.0, "Three")):
        __main__.add(path, [line(value, processor)])
        [found] = json.loads(path.read_text())["figures"]
        if value == 1.5:
            assert (1.0, 1.5) == (found["elsewhere"]["value"], found["elsewhere"]["again"]["value"])
            assert "2026-01-02, abc; on Two 1.0×; again 1.5×" == tables._measured(found, "2 cores of One")

    assert (2.0, 2.1, 4.0) == (found["value"], found["again"]["value"], found["elsewhere"]["value"])
    assert ["a: 1.0× before, 1.5× again: 50% apart"] == capsys.readouterr().err.splitlines()


def test_results_do_not_count_as_a_change_of_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "bench"
    folder.mkdir()
    for name in ("results.json", "made.py"):
        (folder / name).write_text("1")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(__main__, "FOLDER", folder)
    clean = __main__.commit()

    (folder / "results.json").write_text("2")
    assert clean == __main__.commit()
    (folder / "made.py").write_text("2")
    assert f"{clean}+" == __main__.commit()
    monkeypatch.setattr(__main__, "FOLDER", tmp_path.parent)
    assert "unknown" == __main__.commit()


def test_the_verdict_begins_with_what_falls_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A whole run over three figures; its last word, the page of figures and the README agree."""
    bounds = {"won": 2, "lost": 0.5, "won too": 2}
    made = [Figure(name, name, Value(lambda _: 1.0, "s"), at_most=bound) for name, bound in bounds.items()]
    monkeypatch.setattr(__main__, "figures", lambda _: made)
    monkeypatch.setattr(__main__, "names", lambda: ["x"])
    monkeypatch.setattr(__main__.subprocess, "run", alone)
    results = tmp_path / "bench" / "results.json"
    results.parent.mkdir()
    monkeypatch.setattr("sys.argv", ["bench", "--results", str(results)])

    assert 0 == __main__.main()
    verdict = capsys.readouterr().err.splitlines()[-4:]
    assert [
        "1 of 3 figures fall short",
        "LOST    lost: 1 s, to reach ≤ 0.5 s",
        "reached won: 1 s, to reach ≤ 2 s",
        "reached won too: 1 s, to reach ≤ 2 s",
    ] == verdict
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "IN_SHORT", ("won", "lost"))
    for page, names in ((tables.figures(), ["lost", "won", "won too"]), (tables.figures_in_short(), ["lost", "won"])):
        assert "Of 3 figures 1 fall short; they stand first." in page
        assert names == [line.split(" | ")[0][2:] for line in page.splitlines() if line.endswith("|")][2:]


def alone(argv: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """What the process of one file does, in this one: it would not see this test's figures."""
    if "--one" not in argv:
        return _run(argv, **options)  # type: ignore[call-overload,no-any-return]
    lines, sound = __main__.run_one("x", Path(), 1, None)
    Path(argv[-1]).write_text(json.dumps(lines))
    return subprocess.CompletedProcess(argv, 0 if sound else 1)
