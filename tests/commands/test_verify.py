"""Every fault of the corpus is found, placed and counted; what follows the damage is read."""

from __future__ import annotations

import gzip
import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz import cli
from tarviz.commands.verify import Salvage, Verified, beside, save, verify
from tarviz.formats import example, tfrecord
from tarviz.model.errors import Fault, NotFoundError, UsageError
from tarviz.model.types import URL
from tarviz.outputs import TAR_END, tar_member
from tarviz.read.stream import ReadOptions
from tarviz.testing.strategies import numbered_records, shard
from tests.commands.conftest import listed, plain
from tests.conftest import DATA, corpus

TARS = DATA / "corpora" / "generated"
TFRECORDS = DATA / "corpora" / "tfrecord"
Make = Callable[..., Path]
LARGE = b"\xff" * 70_000
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


class TestTheTFRecordsOfTheCorpus:
    @pytest.mark.parametrize(("path", "entry"), corpus("tfrecord"))
    def test_behave_as_the_manifest_says(self, path: Path, entry: dict[str, Any]):
        expected = entry["tarviz_expected"]

        result = verify(str(path))

        if "error" in expected:
            assert expected["error"] in codes(result.faults)
            assert expected.get("offset", result.faults[0].get("offset")) == result.faults[0].get("offset")
            assert expected.get("records_before", 0) <= result.records
        else:
            assert [] == result.faults
            assert expected["records"] == result.records

    def test_goes_on_behind_a_payload_that_does_not_fit_its_crc(self):
        result = verify(str(TFRECORDS / "bad-data-crc-rec2.tfrecord"))

        assert 4 == result.records
        assert 243 == result.faults[0]["resumable_at"]

    def test_examples_are_parsed_on_request(self):
        path = str(TFRECORDS / "not-an-example.tfrecord")

        assert [] == verify(path).faults
        assert ["E_BAD_EXAMPLE"] == codes(verify(path, examples=True).faults)

    def test_features_are_held_against_the_types_given(self):
        result = verify(str(TFRECORDS / "example-wrong-type.tfrecord"), examples={"id": "int64"})

        assert ["E_SCHEMA"] == codes(result.faults)
        assert "id" == result.faults[0]["member"]

    def test_a_tfrecord_is_known_by_its_content_where_the_name_says_nothing(self, tmp_path: Path):
        path = tmp_path / "part-00000-of-00001"
        path.write_bytes((TFRECORDS / "valid-5.tfrecord").read_bytes())

        assert (5, 0) == (verify(str(path)).records, verify(str(path)).exit_code)

    def test_the_format_can_be_given(self):
        result = verify(str(TARS / "A01-ustar.tar"), format="tfrecord")

        assert ["E_NOT_TFRECORD"] == codes(result.faults)


class TestExamples:
    def test_features_that_differ_from_those_of_the_first_record_are_named(self, tmp_path: Path):
        path = tmp_path / "x.tfrecord"
        records = [{"a": 1, "b": [0.5]}, {"a": 2}, {"a": b"x"}]
        path.write_bytes(b"".join(tfrecord.frame([*(example.encode(each) for each in records), b"\x12\0"]).buffers()))
        found = verify(path, examples=True)

        assert [("E_SCHEMA", 2, "a"), ("E_BAD_EXAMPLE", 3, None)] == [
            (each["code"], each["records_before"], each.get("member")) for each in found.faults
        ]
        assert "the feature 'a' holds bytes, not int64." == found.faults[0]["message"]
        assert (4, path.stat().st_size) == (found.records, found.bytes)
        assert [0] == [each["records_before"] for each in verify(path, examples={"b": "int64"}).faults][:1]


class TestRepair:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_saves_all_but_the_damaged_record(self, make: Make, payload: bytes):
        content = numbered_records(1000 if len(payload) < 1000 else 50, payload=payload)
        data = bytearray(shard(content))
        data[data.index(b"train/n00000017.png")] ^= 1
        a = make(bytes(data))

        result = verify([str(a)], repair=True)

        saved = a.with_name("a.repaired.tar")
        assert [Salvage(str(a), str(saved), len(content) - 1, saved.stat().st_size)] == result.written
        assert [record for record in content if record[0] != "train/n00000017"] == plain(saved)
        assert any("E_CHECKSUM" == fault["code"] for fault in result.faults)
        assert (2, 0) == (result.exit_code, verify([str(saved)]).exit_code)

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_a_tar_cut_short_gives_its_front(self, make: Make, out: Path, payload: bytes):
        content = numbered_records(30, payload=payload)
        data = shard(content)

        verify([str(make(data[: data.index(b"train/n00000021.cls") + 300]))], repair=True, output=str(out))

        assert [key for key, _ in content[:21]] == [key for key, _ in plain(out)][:21]
        assert 44 >= len(listed(out)) >= 42

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_what_may_lack_a_member_is_kept_and_told_or_left_out(self, make: Make, out: Path, payload: bytes):
        data = shard(numbered_records(3, payload=payload))
        a = str(make(data[: data.index(b"train/n00000002.cls")]))

        lenient = verify([a], repair=True, output=str(out))
        assert ({"W_NO_EOF": 1, "W_PENDING": 1}, 3) == (lenient.counts, len(plain(out)))
        assert "train/n00000002" == next(each for each in lenient.warnings if each["code"] == "W_PENDING")["record"]

        strict = verify([a], strict=True, repair=True, output=str(out))
        assert ({"E_NO_EOF": 1, "W_DROPPED": 1}, 2) == (strict.counts, len(plain(out)))

    def test_a_shard_without_a_fault_is_left_alone(self, make: Make):
        good, bad = make(numbered_records(3)), make(shard(numbered_records(3))[:3000], "b.tar")

        result = verify([str(good), str(bad)], repair=True)

        assert [str(bad)] == [saved.shard for saved in result.written]
        assert not good.with_name("a.repaired.tar").exists()

    def test_behind_the_end_of_the_archive(self, make: Make, out: Path):
        a = str(make(shard(numbered_records(2)) + shard(numbered_records(2, prefix="b"))))

        verify([a], repair=True, output=str(out))
        assert 2 == len(plain(out))
        verify([a], repair=True, output=str(out), concatenated=True)
        assert 4 == len(plain(out))

    @pytest.mark.parametrize("path", sorted(TARS.glob("B*")), ids=lambda path: path.stem)
    def test_the_corpus(self, path: Path, out: Path):
        result = verify([str(path)], repair=True, output=str(out))

        # B40: a member whose two sizes differ is kept, as lenient reading does, and still told of.
        assert set(verify([str(out)]).counts) <= ({"W_SIZE_MISMATCH"} if path.stem[:3] == "B40" else {"W_EMPTY"})
        assert result.exit_code or path.stem[:3] in ("B10", "B33")
        if path.stem[:3] != "B33":  # which bsdtar cannot read as it came
            listed(out)

    def test_names(self):
        assert "a.repaired.tgz" == beside("a.tgz")
        assert "x.repaired.tar" == beside("memory://f/x.tar")

    @pytest.mark.parametrize(("urls", "options"), [(["a.tar", "a.tar"], {"output": "o.tar"}), (["x.tfrecord"], {})])
    def test_what_cannot_be(self, make: Make, urls: Any, options: Any, monkeypatch: pytest.MonkeyPatch):
        a = make(numbered_records(1))
        (a.parent / "x.tfrecord").write_bytes(b"")
        monkeypatch.chdir(a.parent)

        with pytest.raises(UsageError):
            verify(urls, repair=True, **options)


class TestShell:
    def test_says_what_was_saved(self, make: Make, bash: Any):
        make(shard(numbered_records(3))[:3000], "b.tar")

        done = bash("tarviz verify --repair b.tar")
        content = json.loads(bash("tarviz verify --repair --json b.tar").stdout)

        assert 2 == done.returncode
        assert "b.tar → b.repaired.tar: 1 record, 3.58 kB" in done.stdout.decode()
        assert [{"shard": "b.tar", "output": "b.repaired.tar", "records": 1, "bytes": 3584}] == content["written"]

    def test_a_pipe_cannot_be_repaired(self, make: Make, bash: Any):
        make(numbered_records(1))

        assert b"Save it to a file first" in bash("tarviz verify --repair - < a.tar").stderr


def test_the_whole_of_a_repair(make: Make, monkeypatch: pytest.MonkeyPatch):
    make(shard(numbered_records(3))[:3000], "b.tar")
    make(numbered_records(2), "a.tar")
    monkeypatch.chdir(make(b"", "empty").parent)
    result = verify(["a.tar", "b.tar"], repair=True)

    assert [Salvage("b.tar", "b.repaired.tar", 1, 3072 + 1024 - 512)] == result.written
    *found, saved = str(result).splitlines()
    assert "b.tar → b.repaired.tar: 1 record, 3.58 kB" == saved
    assert "3 records in 2 files: E_TRUNCATED ×1, W_PENDING ×1" == found[-1]
    assert [{"shard": "b.tar", "output": "b.repaired.tar", "records": 1, "bytes": 3584}] == result.to_dict()["written"]
    assert [] == verify("b.tar").to_dict()["written"]


def test_standard_input_cannot_be_read_twice():
    with pytest.raises(UsageError, match="Save it to a file first"):
        save([URL("-")], None, Verified(), ReadOptions())


@pytest.mark.parametrize(("jobs", "expected"), [({"jobs": 1}, "one process")])
def test_a_repair_is_not_spread(make: Make, jobs: Any, expected: str):
    with pytest.raises(UsageError, match=expected):
        verify([make(numbered_records(1)), make(numbered_records(1), "b.tar")], repair=True, **jobs)


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
