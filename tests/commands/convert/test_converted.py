"""What `convert` returns: the paths written, as text and data."""

from __future__ import annotations

import json
import os

import tarviz
from tarviz.commands import convert as module
from tarviz.commands.convert import convert
from tarviz.model.errors import Fault
from tarviz.model.types import URL
from tarviz.outputs import Written
from tests.commands.test_convert import make, shards, some


class TestResult:
    def test_it_is_a_sequence_of_paths_with_figures(self, tmp_path):
        shards(tmp_path / "in", 3, 3)

        found = convert(tmp_path / "in", tmp_path / "t-{}.tfrecord")

        assert isinstance(found[0], str)
        assert found[1:] == list(found)[1:]
        assert found == list(found)
        assert repr(list(found)) == repr(found)
        assert sum(os.path.getsize(path) for path in found) == found.bytes
        assert "text/html" in found._repr_mimebundle_()

    def test_many_outputs_are_counted_not_listed(self, tmp_path):
        path = make(tmp_path / "a.tar", some(100))

        text = str(convert(path, tmp_path / "t.tfrecord", max_shard_size=1))

        assert "… 81 more" in text
        assert "100 files" in text

    def test_secrets_in_urls_are_not_shown(self):
        found = module.Converted([Written(URL("http://me:pw@host/a?sig=abc"), 1, 1, "")], tarviz.read.stream.ReadReport())

        assert "pw" not in str(found)
        assert "abc" not in json.dumps(found.to_dict())

    def test_a_dry_run_is_text_and_data(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        paths = [make(tmp_path / f"{at}.tar", [("k", {"jpg": b"12345", "cls": b"7"})]) for at in range(5)]
        found = convert(paths, "o-{}.tfrecord", dry_run=True)

        features = {"jpg": ("bytes", "1", "5"), "cls": ("int64", "1", "8"), "__key__": ("bytes", "1", "1")}
        assert {"dry_run": True, "shards": 5, "outputs": [f"o-{at}.tfrecord" for at in range(1, 6)], "more": False} == {
            name: value for name, value in found.to_dict().items() if name != "features"
        }
        assert features == found.to_dict()["features"]
        assert "would convert 5 shard(s) to o-1.tfrecord, o-2.tfrecord, o-3.tfrecord, …" == str(found).splitlines()[0]
        assert sorted([["feature", "kind", "values", "bytes"], *([name, *about] for name, about in features.items())]) == sorted(
            line.split() for line in str(found).splitlines()[1:]
        )
        assert "would convert 5 shard(s) to o.tfrecord" == str(convert(paths, "o.tfrecord", dry_run=True)).splitlines()[0]
        assert str(convert(paths, "o.tfrecord", dry_run=True, max_shard_size=9)).splitlines()[0].endswith("to o.tfrecord, …")

    def test_the_whole_listing(self):
        report = tarviz.read.stream.ReadReport()
        for at in range(15):
            report.add(Fault("E_SCHEMA", f"odd {at}.", "a.tar"), skipped=True)
            report.add(Fault("W_NO_KEY", f"odd {at}.", "a.tar"))
        found = module.Converted([Written(URL("o-1"), 1200, 5000, "", kept=True), Written(URL("o-2"), 1, 100, "")], report)

        assert [
            "output   records     size",
            "o-1        1,200  5.00 kB  kept",
            "o-2            1    100 B",
            "2 files    1,201  5.10 kB",
            *(f"skipped E_SCHEMA a.tar: odd {at}." for at in range(15)),
            *(f"W_NO_KEY a.tar: odd {at}." for at in range(5)),
            "… E_SCHEMA ×15, W_NO_KEY ×15",
        ] == str(found).splitlines()
        assert (1201, 5100, 1) == (found.records, found.bytes, found.exit_code)
        assert (1201, 5100, ["o-1", "o-2"]) == (
            found.to_dict()["records"],
            found.to_dict()["bytes"],
            [each["url"] for each in found.to_dict()["outputs"]],
        )
        assert found == ["o-1", "o-2"] != module.Converted([], report)
        assert found.__eq__("o-1") is NotImplemented
