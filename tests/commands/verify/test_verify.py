"""Every fault of the corpus is found, placed and counted; what follows the damage is read."""

from __future__ import annotations

import gzip
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz import cli
from tarviz.commands.verify import verify
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.outputs import TAR_END, tar_member
from tarviz.testing.strategies import numbered_records
from tests.conftest import DATA, corpus

TARS = DATA / "corpora" / "generated"
TFRECORDS = DATA / "corpora" / "tfrecord"
# Links and directories are noted where the manifest says nothing of them, and a lone extension header is a warning when read leniently.
ALSO_NOTED = {"A26": "W_SKIPPED_TYPE", "A30": "W_NAME_ENCODING", "S09": "W_SKIPPED_TYPE", "S10": "W_SKIPPED_TYPE", "B37": "W_ORPHAN_EXT"}
UNDETECTABLE = ("B10", "B33")


def codes(found: list[dict[str, Any]]) -> list[str]:
    return [each["code"] for each in found]


class TestTheTarsOfTheCorpus:
    @pytest.mark.parametrize(("path", "entry"), corpus("generated"))
    def test_behave_as_the_manifest_says(self, path: Path, entry: dict[str, Any]):
        expected = entry["tarviz_expected"]
        wanted = expected.get("error") or expected.get("error_at_end") or expected.get("warn", "").split(" ")[0].rstrip(":")
        wanted = ALSO_NOTED.get(entry["id"], wanted)

        result = verify(str(path))

        found = [*result.faults, *result.warnings]
        if wanted:
            assert wanted in codes(found)
        else:
            assert [] == found
        if "error" in expected and entry["id"] != "B37":
            assert 2 == result.exit_code
            fault = result.faults[0]
            assert expected.get("offset", fault.get("offset")) == fault.get("offset")
            assert str(path) == fault["shard"]
        if "records" in expected:
            assert expected["records"] == result.records
        if entry["id"] == "C14":  # a bomb for whoever lowers the ratio
            with tarviz.options(max_ratio=200):
                assert ["E_LIMIT"] == codes(verify(str(path)).faults)

    @pytest.mark.parametrize(("path", "entry"), [each for each in corpus("generated") if each.id.startswith("B")])
    def test_no_damage_is_clean(self, path: Path, entry: dict[str, Any]):
        expected = 0 if entry["id"] in UNDETECTABLE else (1, 2)

        code = verify(str(path)).exit_code

        assert code == expected or (expected == (1, 2) and code in expected)

    @pytest.mark.parametrize(("path", "entry"), corpus("generated"))
    def test_strict_reading_finds_no_less(self, path: Path, entry: dict[str, Any]):
        expected = entry["tarviz_expected"].get("strict", "")

        result = verify(str(path), strict=True)

        if expected.startswith("E_"):
            assert expected.split(";")[0].split(" ")[0] in codes(result.faults)
        assert result.exit_code >= verify(str(path)).exit_code


class TestVerify:
    def test_what_follows_the_damage_is_read(self):
        result = verify(str(TARS / "B09-bad-checksum-middle.tar"))

        assert 2 == result.records
        assert ["E_CHECKSUM"] == codes(result.faults)
        assert (2048, "k0001", "k00X1.cls") == tuple(result.faults[0][name] for name in ("offset", "record", "member"))

    def test_every_record_with_a_field_twice_is_found(self, tmp_path: Path):
        names = [f"a{n}.{ext}" for n in range(5) for ext in ("jpg", "cls")]
        names.insert(3, "a1.jpg")
        names.insert(10, "a4.jpg")
        (tmp_path / "a.tar").write_bytes(b"".join(b"".join(tar_member(name, b"1")) for name in names) + TAR_END)

        result = verify(str(tmp_path / "a.tar"))

        assert [("E_DUP_FIELD", "a1", 3072), ("E_DUP_FIELD", "a4", 10240)] == [(f["code"], f["record"], f["offset"]) for f in result.faults]
        assert 3 == result.records

    def test_every_record_that_comes_back_is_found(self, tmp_path: Path):
        names = [f"a{n}.jpg" for n in (0, 1, 2, 1, 3, 0, 4)]
        (tmp_path / "a.tar").write_bytes(b"".join(b"".join(tar_member(name, b"1")) for name in names) + TAR_END)

        result = verify(str(tmp_path / "a.tar"), strict=True)

        assert {("E_SPLIT_RECORD", "a1"), ("E_SPLIT_RECORD", "a0")} == {(f["code"], f["record"]) for f in result.faults}
        assert 5 == result.records

    def test_a_clean_shard_is_clean(self, digits: Path):
        result = verify(str(digits))

        assert (1797, 0, 5) == (result.records, result.exit_code, result.shards)
        assert "1,797 records in 5 files: no fault found" == str(result)

    @pytest.mark.parametrize("label", ["E_coli: K12", "E_DECODE: not at all", "E_"])
    def test_what_a_label_says_is_no_fault(self, label: str, tmp_path: Path):
        (tmp_path / "a.tar").write_bytes(
            b"".join(piece for ext in ("label", "txt") for piece in tar_member(f"r1.{ext}", label.encode())) + TAR_END
        )

        result = verify(str(tmp_path / "a.tar"), deep=True)

        assert ([], [], 0) == (result.faults, result.warnings, result.exit_code)

    def test_a_tiff_that_is_whole_and_cannot_be_shown_is_no_fault(self, tmp_path: Path):
        tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
        file = io.BytesIO()
        tifffile.imwrite(
            file, np.arange(13 * 64 * 64, dtype="uint16").reshape(13, 64, 64), planarconfig="separate", photometric="minisblack"
        )
        whole = file.getvalue()
        members = [*tar_member("a.tif", whole), *tar_member("b.tif", whole[: len(whole) // 2]), TAR_END]
        (tmp_path / "a.tar").write_bytes(b"".join(members))

        result = verify(str(tmp_path / "a.tar"), deep=True)

        assert [("E_DECODE", "b")] == [(fault["code"], fault["record"]) for fault in result.faults]

    def test_deep_names_the_field_that_cannot_be_decoded(self):
        result = verify(str(TARS / "D00-hostile-payloads.tar"), deep=True)

        found = {fault["record"]: fault for fault in result.faults}
        assert "E_IMAGE_TOO_LARGE" == found["d01"]["code"]
        assert ("E_DECODE", "d23.cls", 267264) == (found["d23"]["code"], found["d23"]["member"], found["d23"]["offset"])
        assert "d21" not in found
        assert "d22" not in found  # a class by its name
        assert "d33" not in found
        assert 37 == result.records

    def test_deep_runs_no_pickle(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("TARVIZ_CANARY", raising=False)

        verify(str(TARS / "D00-hostile-payloads.tar"), deep=True)

        import os

        assert "TARVIZ_CANARY" not in os.environ

    def test_a_damaged_compressed_shard_is_placed(self, digits: Path, tmp_path: Path):
        path = tmp_path / "cut.tar.gz"
        packed = gzip.compress((digits / "test-0000.tar").read_bytes())
        path.write_bytes(packed[: len(packed) // 2])

        result = verify(str(path))

        assert ["E_TRUNCATED_COMPRESSED"] == codes(result.faults)
        assert 0 < result.records < 297

    def test_a_missing_shard_is_no_finding(self):
        with pytest.raises(NotFoundError):
            verify("nothing-here.tar")

    def test_warnings_do_not_come_twice(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            verify(str(TARS / "A06-no-eof-blocks.tar"))

        assert [] == seen


class TestTheShell:
    def test_json_holds_records_faults_and_warnings(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["verify", "--json", str(TARS / "B14-trunc-in-data.tar")])

        content = json.loads(capsys.readouterr().out)
        fault = content["faults"][0]
        assert (1, ["W_DROPPED"]) == (content["records"], codes(content["warnings"]))
        assert ("E_TRUNCATED", "k1", "k1.bin", 1024) == (fault["code"], fault["record"], fault["member"], fault["offset"])

    def test_a_warning_is_exit_code_one(self, capsys: pytest.CaptureFixture[str]):
        assert 1 == cli.main(["verify", str(TARS / "A06-no-eof-blocks.tar")])
        assert "W_NO_EOF" in capsys.readouterr().out

    def test_names_cannot_steer_the_terminal(self, capsys: pytest.CaptureFixture[str]):
        cli.main(["verify", "--strict", str(TARS / "S12-shell-hostile-keys.tar")])
        cli.main(["ls", "--members", str(TARS / "S12-shell-hostile-keys.tar")])
        cli.main(["show", "-n", "30", str(TARS / "S12-shell-hostile-keys.tar")])

        out = "".join(capsys.readouterr())
        assert not [letter for letter in out if ord(letter) < 32 and letter != "\n"]
        assert "\x7f" not in out

    def test_types_are_read(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["verify", "--types", "id=int64", str(TFRECORDS / "example-wrong-type.tfrecord")])
        assert "E_SCHEMA" in capsys.readouterr().out

    def test_a_wrong_kind_is_refused(self):
        with pytest.raises(UsageError, match="bytes, int64, float"):
            cli.invoke(["verify", "--types", "id=int", "x"])


class TestJobs:
    @pytest.fixture
    def shards(self, make: Any) -> list[str]:
        """Three shards: one clean, one with a picture that is none, one that ends early."""
        bad = b"".join(b"".join(tar_member(f"k{at}.png", b"no picture")) for at in range(2)) + TAR_END
        clean = [(f"k{at}", {"txt": b"a", "cls": b"1"}) for at in range(3)]
        return [str(make(clean, "a.tar")), str(make(bad, "b.tar")), str(make(bad[:-1500], "c.tar"))]

    def test_they_find_what_one_process_finds(self, shards: list[str]):
        alone, spread = verify(shards, deep=True), verify(shards, deep=True, jobs=1)

        assert alone.to_dict() == spread.to_dict()
        assert (3, 3, 2) == (spread.shards, len({found["shard"] for found in alone.faults}) + 1, spread.exit_code)

    def test_records_with_faults_are_tagged_whoever_found_them(self, shards: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        for name, options in (("1", {}), ("2", {"jobs": 1})):
            monkeypatch.setenv("TARVIZ_TAGS", str(tmp_path / name))
            verify(shards, deep=True, tag=True, **options)

            assert {"bad": 2} == tarviz.table(shards[:2]).tags.counts()

    def test_standard_input_and_one_shard_are_read_here(self, make: Any):
        path = make(numbered_records(3))

        assert (3, 1) == ((found := verify(path, jobs=2)).records, found.shards)
