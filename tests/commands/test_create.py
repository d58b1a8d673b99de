"""Tars made from plans and folders: what is written is what the plan says, or nothing is."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz import cli, samples, stores
from tarviz.commands.create import create
from tarviz.commands.objects import objects
from tarviz.model.errors import StoreError, UsageError
from tarviz.testing.faults import FaultServer
from tarviz.testing.strategies import numbered_records
from tests.commands.conftest import LARGE, plain

Make = Callable[..., Path]


class TestShell:
    def test_reads_a_plan_from_a_pipe(self, plan: Any, bash: Any):
        plan("")

        done = bash("printf '__key__\\t@jpg\\nx\\ta b.jpg\\n' | tarviz create - | tar tf -")

        assert (0, b"x.jpg\n", b"") == (done.returncode, done.stdout, done.stderr)

    def test_a_folder_to_shards(self, raw: Path, bash: Any):
        done = bash("tarviz create raw -o '{split}.tar' --json")

        assert ["cat", "dog", "n01 é"] == json.loads(done.stdout)["labels"]
        assert [9, 9] == [tar["records"] for tar in json.loads(done.stdout)["outputs"]]

    @pytest.mark.matrix
    def test_round_trip_of_digits(self, make: Make, bash: Any):
        make(numbered_records(20))

        done = bash("tarviz tsv -f 'cls png' a.tar | tarviz create - | tarviz cat -f 'cls' | cmp - <(tarviz cat -f cls a.tar)")

        assert done.returncode in (0, 1)  # times differ
        assert b"" == done.stderr


class TestNames:
    """One picture, many names; labels that are words; columns that hold paths."""

    def folder(self, root: Path, *files: str) -> Path:
        for name in files:
            (root / "f" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "f" / name).write_bytes(name.encode())
        return root / "f"

    def test_pictures_of_several_endings_and_dots_in_stems_are_one_field(self, tmp_path: Path, out: Path):
        source = self.folder(tmp_path, "cat/a.jpg", "cat/b.jpeg", "cat/e.JPG", "dog/IMG_0011.v2.jpg", "dog/d.jpg", "dog/IMG_0011_v2.jpg")
        result = create(source, out)

        assert 6 == len(plain(out))
        assert all({"jpg", "cls"} == set(fields) for _, fields in plain(out))
        assert b"dog/IMG_0011.v2.jpg" == dict(plain(out))["dog/IMG_0011_v2_2"]["jpg"]
        assert "dog/IMG_0011_v2_2\tdog/IMG_0011.v2.jpg\n" == (tmp_path / "out.names.tsv").read_text()
        assert ["1 files had dots", "2 kinds of names are one field, jpg: jpeg ×1"] == [result.names[0][:16], result.names[1]]

    def test_a_stem_may_end_in_a_dot(self, tmp_path: Path, out: Path):
        create(self.folder(tmp_path, "cat/a..jpg", "cat/b.jpg"), out)

        assert [{"jpg", "cls"}, {"jpg", "cls"}] == [set(fields) for _, fields in plain(out)]

    def test_a_picture_beside_its_mask_keeps_both(self, tmp_path: Path, out: Path):
        source = self.folder(tmp_path, "a.jpg", "a.png", "b.jpeg", "b.png", "c.seg.png", "c.jpg", "d.jpg", "d.seg.png")
        result = create(source, out)

        assert [{"jpg", "png"}, {"jpg", "png"}, {"jpg", "seg.png"}, {"jpg", "seg.png"}] == [set(fields) for _, fields in plain(out)]
        assert any("stay fields of their own" in note for note in result.names)
        assert not (tmp_path / "out.names.tsv").exists()

    def test_labels_that_are_words_are_numbered_and_their_names_kept(self, plan: Any, out: Path, tmp_path: Path):
        result = create(plan("txt,cls\na,fire truck\nb,7\nc,cat\n", "plan.csv"), out)

        assert [b"2", b"0", b"1"] == [fields["cls"] for _, fields in plain(out)]
        assert ["7", "cat", "fire truck"] == result.labels == (tmp_path / "out.labels.txt").read_text().splitlines()

    def test_numbers_stay_as_they_are(self, plan: Any, out: Path, tmp_path: Path):
        create(plan("txt,cls\na,12\nb,7\n", "plan.csv"), out)

        assert [b"12", b"7"] == [fields["cls"] for _, fields in plain(out)]
        assert not (tmp_path / "out.labels.txt").exists()

    def test_numbers_that_pandas_made_fractions_of_are_numbers(self, plan: Any, out: Path):
        result = create(plan("txt,cls\na,10.0\nb,2.0\nc,\n", "plan.csv"), out)

        assert [b"10", b"2", None] == [fields.get("cls") for _, fields in plain(out)]
        assert ["not in all 3 records: cls 2"] == result.names

    def test_columns_are_taken_by_name(self, plan: Any, out: Path, tmp_path: Path):
        written = plan(",file,label,more\n0,a b.jpg,cat,x\n1,large.bin,ant,y\n", "plan.csv")
        create(written, out, base=tmp_path, fields={"file": "@jpg", "label": "cls"})

        assert [{"jpg": b"small", "cls": b"1"}, {"jpg": LARGE, "cls": b"0"}] == [fields for _, fields in plain(out)]
        with pytest.raises(UsageError, match="no column 'name'; it has , file, label, more"):
            create(written, out, fields={"name": "txt"})

    def test_a_column_without_a_title_is_an_index_and_spaces_are_none_of_a_title(self, plan: Any, out: Path):
        create(plan(",txt, cls\n0,a,3\n", "plan.csv"), out)

        assert [{"txt": b"a", "cls": b"3"}] == [fields for _, fields in plain(out)]

    def test_paths_of_windows_are_found(self, plan: Any, out: Path, tmp_path: Path):
        written = plan("@jpg,txt\nsub\\b.jpg,sub\\b.jpg\n", "plan.csv")
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "b.jpg").write_bytes(b"there")
        result = create(written, out, base=tmp_path)

        assert [{"jpg": b"there", "txt": b"sub\\b.jpg"}] == [fields for _, fields in plain(out)]
        assert "--as @jpg=txt takes the files" in str(result.report.warnings[0])

    def test_a_plan_without_rows_is_warned_of(self, plan: Any, out: Path):
        assert {"W_EMPTY": 1} == create(plan("txt\tcls\n"), out).report.counts()

    @pytest.mark.parametrize(("name", "match"), [("a.xlsx", "CSV, TSV or Parquet"), ("a.jsonl", "CSV, TSV"), ("a.parquet", "no Parquet")])
    def test_what_is_no_plan_is_refused(self, plan: Any, out: Path, name: str, match: str):
        pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        with pytest.raises(UsageError, match=match):
            create(plan("PK", name), out)

    def test_a_column_of_paths_says_how_to_take_the_files(self, plan: Any, out: Path, tmp_path: Path):
        result = create(plan("filename,cls\na b.jpg,1\nlarge.bin,2\n", "plan.csv"), out)

        assert {"W_PATHS": 1} == result.report.counts()
        assert "@jpg" in str(result.report.warnings[0])
        assert str(tmp_path) in str(result.report.warnings[0])


class TestAnnotated:
    """COCO, YOLO and VOC folders as people have them: what is written says the same objects as the zoo's shards they were made of."""

    @pytest.fixture(autouse=True)
    def _table(self) -> None:
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")

    @staticmethod
    def zoo(tmp_path: Path, kind: str) -> tuple[Path, list[tuple[str, dict[str, bytes]]]]:
        shards = samples.zoo(tmp_path / "zoo", kinds=[kind], count=6)
        return Path(shards[kind]), plain(shards[kind])

    @staticmethod
    def rows(shard: Any, **options: Any) -> list[dict[str, Any]]:
        """Objects, in the order of their records, without what names those."""
        table = objects(shard, **options).table.to_pylist()
        return [{name: value for name, value in row.items() if name not in ("shard", "key", "field")} for row in table]

    def coco(self, tmp_path: Path, content: Any, folder: str = "coco/val2017") -> Path:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "coco" / "annotations").mkdir()
        images, annotations, categories = [], [], []
        for key, fields in content:
            name, found = f"{key.rpartition('/')[2]}.jpg", json.loads(fields["json"])
            (tmp_path / folder / name).write_bytes(fields["jpg"])
            images.append({"id": found["image_id"], "file_name": name, "width": found["width"], "height": found["height"], "license": 4})
            annotations += found["annotations"]
            categories = found["categories"]
        place = tmp_path / "coco" / "annotations" / "instances_val2017.json"
        place.write_text(json.dumps({"info": {}, "images": images, "annotations": annotations, "categories": categories}))
        return place

    def test_coco_is_a_record_for_each_picture(self, tmp_path: Path, out: Path):
        shard, content = self.zoo(tmp_path, "coco")
        file = self.coco(tmp_path, content)

        for source in (tmp_path / "coco" / "val2017", tmp_path / "coco"):
            result = create(source, out, coco=file)

            assert (6, 0, []) == (result.records, result.exit_code, result.names)
            assert [key.rpartition("/")[2] for key, _ in content] == [key for key, _ in plain(out)]
            assert [fields["jpg"] for _, fields in content] == [fields["jpg"] for _, fields in plain(out)]
            assert self.rows(shard) == self.rows(out)
            assert self.rows(out)

    def test_what_coco_does_not_say_is_said(self, tmp_path: Path, out: Path):
        _, content = self.zoo(tmp_path, "coco")
        file = self.coco(tmp_path, content)
        (tmp_path / "coco" / "val2017" / "more.jpg").write_bytes(b"")
        said = json.loads(file.read_text())
        said["annotations"] = [each for each in said["annotations"] if each["image_id"] != said["images"][0]["id"]]
        said["annotations"].append({"image_id": 99, "category_id": 1, "bbox": [1, 1, 1, 1]})
        file.write_text(json.dumps(said))

        result = create(tmp_path / "coco", out, coco=file)

        assert ["1 annotations are of no picture in the list", "1 files beside the pictures are not in the list"] == result.names
        assert 6 == result.records
        assert [] == json.loads(plain(out)[0][1]["json"])["annotations"]

    def test_a_picture_that_is_missing_is_an_error_or_counted(self, tmp_path: Path, out: Path):
        _, content = self.zoo(tmp_path, "coco")
        file = self.coco(tmp_path, content)
        missing = next((tmp_path / "coco" / "val2017").glob("*1.jpg"))
        missing.unlink()

        with pytest.raises(UsageError, match=missing.name):
            create(tmp_path / "coco", out, coco=file)
        assert not out.exists()
        result = create(tmp_path / "coco", out, coco=file, on_error="skip")
        assert (5, {"E_NOT_FOUND": 1}) == (result.records, result.report.counts())

    @pytest.mark.parametrize("name", ["../ann.jpg", "/etc/ann.jpg", "a/../../ann.jpg"])
    def test_a_picture_outside_of_the_folder_is_refused(self, tmp_path: Path, out: Path, name: str):
        (tmp_path / "in").mkdir()
        (tmp_path / "ann.jpg").write_bytes(b"")
        (tmp_path / "in" / "ok.jpg").write_bytes(b"")
        images = [{"id": at, "file_name": each} for at, each in enumerate(("ok.jpg", name))]
        (tmp_path / "ann.json").write_text(json.dumps({"images": images, "annotations": []}))

        with pytest.raises(UsageError, match="E_UNSAFE_NAME"):
            create(tmp_path / "in", out, coco=tmp_path / "ann.json")

    @pytest.mark.parametrize("text", ["[", "[]", '{"images": []}'])
    def test_a_file_that_is_not_cocos(self, tmp_path: Path, out: Path, text: str):
        (tmp_path / "ann.json").write_text(text)
        with pytest.raises(UsageError):
            create(tmp_path, out, coco=tmp_path / "ann.json")

    @pytest.mark.parametrize("form", ["images/train/{}.jpg labels/train/{}.txt", "train/images/{}.jpg train/labels/{}.txt"])
    @pytest.mark.parametrize(
        "names", ["names: [disc, square, triangle, star]", "names:\n  0: disc\n  1: square\n  2: triangle\n  3: star\n"]
    )
    def test_yolo_puts_pictures_and_labels_together(self, tmp_path: Path, form: str, names: str):
        pytest.importorskip("yaml", reason="YAML needs pyyaml: pip install 'tarviz[media]'")
        shard, content = self.zoo(tmp_path, "yolo")
        for at, (_, fields) in enumerate(content):
            for place, ext in zip(form.split(), ("jpg", "txt"), strict=True):
                path = tmp_path / "yolo" / place.format(f"{at:03d}")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(fields[ext])
        path.unlink()  # a picture without anything in it
        (tmp_path / "yolo" / "data.yaml").write_text(f"train: images/train\n{names}")

        result = create(tmp_path / "yolo", tmp_path / "{split}.tar", layout="yolo")

        assert [f"{at:03d}" for at in range(6)] == [key for key, _ in plain(tmp_path / "train.tar")]
        assert ["disc", "square", "triangle", "star"] == (tmp_path / "labels.txt").read_text().splitlines() == result.labels
        assert ["not in all 6 records: txt 5"] == result.names
        expected = [row for row in self.rows(shard, classes=result.labels) if row["n"] < 5]
        assert expected == self.rows(tmp_path / "train.tar", classes=tmp_path / "labels.txt")
        assert "star" in {row["label"] for row in expected}

    def test_yolo_of_one_folder(self, tmp_path: Path, out: Path):
        shard, content = self.zoo(tmp_path, "yolo")
        (tmp_path / "obj").mkdir()
        for at, (_, fields) in enumerate(content):
            (tmp_path / "obj" / f"{at}.jpg").write_bytes(fields["jpg"])
            (tmp_path / "obj" / f"{at}.txt").write_bytes(fields["txt"])
        (tmp_path / "obj" / "classes.txt").write_text("disc\nsquare\ntriangle\nstar\n")

        result = create(tmp_path / "obj", out, layout="yolo")

        assert (6, 0, {}) == (result.records, result.exit_code, result.report.counts())
        assert self.rows(shard) == self.rows(out)

    def test_voc_puts_pictures_and_annotations_together(self, tmp_path: Path, bash: Any):
        shard, content = self.zoo(tmp_path, "voc")
        for folder, ext in (("JPEGImages", "jpg"), ("Annotations", "xml")):
            (tmp_path / "VOC2012" / folder).mkdir(parents=True)
            for key, fields in content:
                (tmp_path / "VOC2012" / folder / f"{key}.{ext}").write_bytes(fields[ext])
        (tmp_path / "VOC2012" / "Annotations" / "lonely.xml").write_bytes(b"<annotation/>")

        done = bash("tarviz create VOC2012 --voc -o out.tar")

        assert (1, b"") == (done.returncode, done.stderr) or b"lonely" in done.stderr
        assert content == plain(tmp_path / "out.tar")
        assert self.rows(shard) == self.rows(tmp_path / "out.tar")


class TestRefused:
    @pytest.mark.parametrize(
        ("source", "output", "options", "match"),
        [
            ("plan.tsv", "{split}.tar", {}, "neither a plan nor COCO has splits"),
            ("in", "{split}.tar", {"coco": "ann.json"}, "neither a plan nor COCO has splits"),
            ("plan.tsv", "o.tar", {"count": 2}, "has no counter"),
        ],
    )
    def test_what_cannot_be_meant(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, output: str, options: Any, match: str
    ):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "in").mkdir()
        (tmp_path / "plan.tsv").write_text("cls\n1\n")
        with pytest.raises(UsageError, match=match):
            create(source, output, **options)

    def test_a_folder_is_no_file_to_take(self, tmp_path: Path, out: Path):
        (tmp_path / "folder").mkdir()
        (tmp_path / "plan.tsv").write_text(f"cls\t@jpg\n1\t{tmp_path}/folder\n")
        with pytest.raises(UsageError, match="there is no file"):
            create(tmp_path / "plan.tsv", out)
        with pytest.raises(StoreError, match="it is a folder, not a file"):
            create(tmp_path / "plan.tsv", out, on_error="skip")

        assert not out.exists()

    def test_one_output_is_named_once(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["create", "plan.tsv", "a.tar", "-o", "b.tar"])
        assert "named twice" in capsys.readouterr().err


def test_the_whole_result(plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    plan("cls\ttxt\ndog\ta\ncat\t\\N\ndog\tb\n")
    result = create("plan.tsv", "o/train-{shard:06d}.tar", count=2)

    assert ["cat", "dog"] == result.labels
    assert "cat\ndog\n" == Path("o/train.labels.txt").read_text()
    assert [("000000000", b"1"), ("000000001", b"0")] == [(key, fields["cls"]) for key, fields in plain("o/train-000000.tar")]
    assert [("000000002", {"cls": b"1", "txt": b"b"})] == plain("o/train-000001.tar")
    assert [
        "o/train-000000.tar: 2 records, 4.10 kB",
        "o/train-000001.tar: 1 record, 3.07 kB",
        "2 classes",
        "labels are text: cls is the number of each, from 0, cat",
        "not in all 3 records: txt 2",
        "see o/train.labels.txt",
    ] == str(result).splitlines()
    said = {"labels": ["cat", "dog"], "names": result.names, "beside": ["o/train.labels.txt"]}
    assert said == {name: result.to_dict()[name] for name in said}


def test_files_far_away_are_taken_as_they_are(out: Path):
    with stores.of("memory://far/b.bin").create("memory://far/b.bin") as sink:  # type: ignore[arg-type]
        sink.write(b"small")
    with FaultServer() as server:
        rows = [f"{server.put('/a.bin', LARGE)}\t3", "memory://far/b.bin\t4"]
        create(server.put("/p.tsv", "\n".join(["@bin\tcls", *rows]).encode()), out)

    assert [("000000000", {"bin": LARGE, "cls": b"3"}), ("000000001", {"bin": b"small", "cls": b"4"})] == plain(out)
    with tarfile.open(out) as tar:
        assert [1_700_000_001, 0] == [member.mtime for member in tar][:2]


def test_what_is_left_out_is_counted_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("a.jpg").write_bytes(b"1")
    Path("plan.tsv").write_text("__key__\t@jpg\tcls\na\ta.jpg\t1\nb\tnone.jpg\t2\na\ta.jpg\t3\nc\t\\N\t\\N\n")
    made = create("plan.tsv", "o.tar", on_error="skip")

    assert (["line 3", "line 4", "line 5"], ["b", "a", "c"]) == (
        [fault.message.partition(":")[0] for fault in made.report.skipped],
        [fault.key for fault in made.report.skipped],
    )
    assert ([], 1, 1) == (made.report.warnings, made.records, made.exit_code)


def test_a_file_of_labels_stays_as_it_is_where_there_are_none(plan: Any, tmp_path: Path, out: Path):
    (tmp_path / "names.txt").write_text("cat\n")

    result = create(plan("cls\n1\n2\n"), out, labels=tmp_path / "names.txt")

    assert "cat\n" == (tmp_path / "names.txt").read_text()
    assert [f"there are no labels: {tmp_path}/names.txt is not written"] == result.names
