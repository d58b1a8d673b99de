"""Folders of files as records: what is split, label and key in a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.create import create
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.read.stream import ReadReport
from tarviz.tools.folder_layout import files_of
from tests.commands.conftest import names, plain


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., str]:
    def make(*names: str) -> str:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(name)
        return str(tmp_path)

    return make


def found(root: str, layout: str = "auto") -> tuple[list[tuple[str, str, str, list[str]]], list[str], ReadReport]:
    report = ReadReport()
    groups, labels, _ = files_of(root, layout, report)  # type: ignore[arg-type]
    return [(group.split, group.label, group.key, [ext for ext, _ in group.files]) for group in groups], labels, report


class TestLayouts:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [("train/cat/1.jpg", ("train", "cat", "train/cat/1")), ("cat/1.jpg", ("", "cat", "cat/1")), ("1.jpg", ("", "", "1"))],
    )
    def test_depth_says_what_they_are(self, tree: Callable[..., str], name: str, expected: tuple[str, str, str]):
        groups, labels, _ = found(tree(name))

        assert [(*expected, ["jpg"])] == groups
        assert [expected[1]] * bool(expected[1]) == labels

    def test_folders_of_different_depth_have_to_be_named(self, tree: Callable[..., str]):
        root = tree("cat/1.jpg", "train/cat/2.jpg")
        with pytest.raises(UsageError, match="lie 1, 2 folders deep"):
            found(root)

        assert ["cat", "train"] == found(root, "label")[1]
        with pytest.raises(UsageError, match="'cat/1' is not nested deeply enough"):
            found(root, "split/label")

    def test_too_deep_is_a_question_too(self, tree: Callable[..., str]):
        with pytest.raises(UsageError, match="3 folders deep"):
            found(tree("a/b/c/1.jpg"))


class TestFiles:
    def test_files_of_one_key_are_a_record_in_the_order_of_bytes(self, tree: Callable[..., str]):
        groups, _, _ = found(tree("b.seg.png", "b.jpg", "B.jpg", "a.jpg"))

        assert [("B", ["jpg"]), ("a", ["jpg"]), ("b", ["jpg", "seg.png"])] == [(key, exts) for _, _, key, exts in groups]

    def test_clutter_is_left_out_and_what_has_no_key_is_said(self, tree: Callable[..., str], tmp_path: Path):
        root = tree("a.jpg", ".DS_Store", "._a.jpg", "README", "Thumbs.db", "sub/b.jpg")
        (tmp_path / "link").symlink_to(tmp_path / "sub")
        (tmp_path / "c.jpg").symlink_to(tmp_path / "a.jpg")
        (tmp_path / "d.jpg").symlink_to(tmp_path / "nothing")
        groups, _, report = found(root, "flat")

        assert ["a", "c", "sub/b"] == [key for _, _, key, _ in groups]
        assert {"W_NO_KEY": 1, "W_SKIPPED_TYPE": 2} == report.counts()

    def test_one_extension_in_two_cases_is_refused(self, tree: Callable[..., str]):
        with pytest.raises(UsageError, match="extensions that differ only in case"):
            found(tree("a.jpg", "a.JPG"))

    def test_no_file_at_all_is_said(self, tree: Callable[..., str], tmp_path: Path):
        with pytest.raises(NotFoundError, match="no file that could be a field"):
            found(str(tmp_path))


class TestBeside:
    """Pictures and what is said of them, in folders of their own or side by side."""

    @pytest.mark.parametrize(
        ("layout", "names", "expected"),
        [
            ("yolo", ["a.jpg", "a.txt", "b.png"], [("", "", "a", ["jpg", "txt"]), ("", "", "b", ["jpg"])]),
            ("yolo", ["images/train/1.jpg", "labels/train/1.txt"], [("train", "", "train/1", ["jpg", "txt"])]),
            ("yolo", ["train/images/1.jpg", "train/labels/1.txt"], [("train", "", "train/1", ["jpg", "txt"])]),
            ("voc", ["JPEGImages/1.jpg", "Annotations/1.xml"], [("", "", "1", ["xml", "jpg"])]),
            (
                "yolo",
                ["images/1.v2.jpg", "labels/1.v2.txt", "images/1.v3.jpg", "labels/1.v3.txt"],
                [("", "", "1_v2", ["jpg", "txt"]), ("", "", "1_v3", ["jpg", "txt"])],
            ),
        ],
    )
    def test_they_are_one_record(self, tree: Callable[..., str], layout: str, names: list[str], expected: object):
        assert expected == found(tree(*names), layout)[0]

    def test_what_has_no_picture_or_lies_elsewhere_is_of_no_record(self, tree: Callable[..., str]):
        root = tree("images/1.jpg", "labels/1.txt", "labels/2.txt", "README.md", "more/x.jpg")
        groups, _, made = files_of(root, "yolo", report := ReadReport())

        assert ["1"] == [group.key for group in groups]
        assert {"W_NO_KEY": 1} == report.counts()
        assert "no picture has this name; the file belongs to no record." == report.warnings[0].message
        assert ["2 files elsewhere are of no record: README.md"] == made.notes

    @pytest.mark.parametrize(
        ("name", "text", "labels"),
        [
            ("data.yaml", "names: [cat, dog]", ["cat", "dog"]),
            ("data.yml", "nc: 2\nnames:\n  1: dog\n  0: cat\n", ["cat", "dog"]),
            ("data.yaml", "path: x", []),
            ("data.yaml", "[1]", []),
            ("classes.txt", "cat\ndog\n", ["cat", "dog"]),
            ("coco.names", "cat", ["cat"]),
            ("labels/classes.txt", "cat\n", ["cat"]),
            ("names.txt", "cat", []),
        ],
    )
    def test_classes_are_named_in_a_file_beside(self, tree: Callable[..., str], tmp_path: Path, name: str, text: str, labels: list[str]):
        if name.endswith((".yaml", ".yml")):
            pytest.importorskip("yaml", reason="names in YAML need pyyaml: pip install 'tarviz[media]'")
        root = tree("images/1.jpg", "labels/1.txt")
        (tmp_path / name).write_text(text)
        groups, made, named = files_of(root, "yolo", report := ReadReport())

        assert (["1"], labels, {}) == ([group.key for group in groups], made, report.counts())
        assert ([] if labels else [f"1 files elsewhere are of no record: {name}"]) == named.notes

    def test_the_topmost_list_of_classes_counts_and_a_broken_one_is_refused(self, tree: Callable[..., str], tmp_path: Path):
        root = tree("images/train/1.jpg", "labels/train/1.txt")
        for name in ("labels/train/classes.txt", "labels/x.names"):
            (tmp_path / name).write_text(name)

        assert ["labels/x.names"] == files_of(root, "yolo", report := ReadReport())[1]
        assert {"W_NO_KEY": 1} == report.counts()
        pytest.importorskip("yaml", reason="names in YAML need pyyaml: pip install 'tarviz[media]'")
        (tmp_path / "data.yaml").write_bytes(b"names: [a: b: c")
        with pytest.raises(UsageError, match=r"data\.yaml cannot be read as YAML"):
            files_of(root, "yolo", ReadReport())


class TestFolder:
    def test_split_and_label_are_folders(self, raw: Path, out: Path, tmp_path: Path):
        result = create(raw, out, labels=tmp_path / "names.txt")
        found = plain(out)

        assert 18 == len(found)
        assert ("train/cat/0", {"jpg": b"traincat0", "meta.json": b"{}", "cls": b"0"}) == found[0]
        assert ("val/n01 é/2", b"2") == (found[-1][0], found[-1][1]["cls"])
        assert ["cat", "dog", "n01 é"] == result.labels == (tmp_path / "names.txt").read_text().splitlines()
        assert b"train/cat/0.JPG" == names(out)[0]

    def test_each_split_has_outputs_of_its_own(self, raw: Path, tmp_path: Path):
        result = create(raw, tmp_path / "{split}-{shard:03d}.tar", count=4)

        assert {"train-000.tar": 4, "train-001.tar": 4, "train-002.tar": 1, "val-000.tar": 4, "val-001.tar": 4, "val-002.tar": 1} == {
            Path(tar.url).name: tar.records for tar in result.outputs
        }
        assert "cat/0" == plain(tmp_path / "val-000.tar")[0][0]

    def test_a_size_holds(self, raw: Path, tmp_path: Path):
        result = create(raw, tmp_path / "s-{shard}.tar", size=10_240)

        assert 18 == result.records
        assert all(Path(tar.url).stat().st_size <= 10_240 for tar in result.outputs)

    def test_labels_alone_and_files_alone(self, raw: Path, out: Path):
        create(raw / "train", out)
        assert ("cat/0", b"0") == (plain(out)[0][0], plain(out)[0][1]["cls"])

        create(raw / "train" / "cat", out)
        assert ("0", {"jpg": b"traincat0", "meta.json": b"{}"}) == plain(out)[0]

    def test_a_class_that_is_there_stays(self, raw: Path, out: Path):
        (raw / "train" / "cat" / "0.cls").write_bytes(b"99")

        create(raw, out)

        assert b"99" == plain(out)[0][1]["cls"]

    def test_uneven_depth_wants_a_word(self, raw: Path, out: Path):
        (raw / "train" / "cat" / "more").mkdir()
        (raw / "train" / "cat" / "more" / "x.jpg").write_bytes(b"")

        with pytest.raises(UsageError, match="--layout"):
            create(raw, out)
        create(raw, out, layout="split/label")
        assert b"0" == dict(plain(out))["train/cat/more/x"]["cls"]

    def test_what_is_no_field_is_warned_of(self, raw: Path, out: Path):
        (raw / "train" / "cat" / "README").write_bytes(b"")
        (raw / "train" / "cat" / ".DS_Store").write_bytes(b"")
        (raw / "train" / "link").symlink_to(raw / "val")
        os.mkfifo(raw / "train" / "cat" / "pipe.jpg")

        result = create(raw, out)

        assert (1, {"W_NO_KEY": 1, "W_SKIPPED_TYPE": 2}) == (result.exit_code, result.report.counts())

    def test_what_lies_above_the_folders_is_of_no_record(self, raw: Path, out: Path):
        for name in ("README.md", "train.csv"):
            (raw / name).write_bytes(b"")
        (raw / ".git" / "refs").mkdir(parents=True)
        (raw / ".git" / "refs" / "a.jpg").write_bytes(b"")

        result = create(raw, out)

        assert {"W_NO_KEY": 2, "W_SKIPPED_TYPE": 1} == result.report.counts()
        assert {"train", "val"} == {key.partition("/")[0] for key, _ in plain(out)}

    def test_what_img2dataset_writes_has_no_classes(self, tmp_path: Path, out: Path):
        for part in ("00000", "00001"):
            (tmp_path / "set" / part).mkdir(parents=True)
            (tmp_path / "set" / f"{part}_stats.json").write_text("{}")
            for ending in ("jpg", "json", "txt"):
                (tmp_path / "set" / part / f"{part}0000.{ending}").write_bytes(b"")

        result = create(tmp_path / "set", out)

        assert {"W_NO_KEY": 2} == result.report.counts()
        assert [("00000/000000000", ["jpg", "json", "txt"]), ("00001/000010000", ["jpg", "json", "txt"])] == [
            (key, sorted(fields)) for key, fields in plain(out)
        ]

    def test_fields_that_not_all_have_are_said(self, tmp_path: Path, out: Path):
        for name in ("a.jpg", "a.txt", "b.jpg", "c.heic"):
            (tmp_path / "set" / name).parent.mkdir(exist_ok=True)
            (tmp_path / "set" / name).write_bytes(b"")

        assert "not in all 3 records: jpg 2, txt 1, heic 1" in create(tmp_path / "set", out).names

    def test_a_link_to_a_file_is_the_file(self, raw: Path, out: Path):
        (raw / "train" / "cat" / "9.jpg").symlink_to(raw / "train" / "dog" / "0.JPG")

        create(raw, out)

        assert b"traindog0" == dict(plain(out))["train/cat/9"]["jpg"]

    @pytest.mark.parametrize(
        ("options", "where"),
        [({"layout": "split/label"}, "train"), ({"count": 3}, "."), ({}, "empty")],
    )
    def test_what_cannot_be_made(self, raw: Path, out: Path, options: Any, where: str):
        (raw / "empty").mkdir()
        with pytest.raises((UsageError, NotFoundError)):
            create(raw / where, out, **options)

    def test_splits_there_are_not(self, raw: Path, tmp_path: Path):
        with pytest.raises(UsageError, match="no splits"):
            create(raw / "train", tmp_path / "{split}.tar")

    def test_extensions_that_differ_in_case_only(self, raw: Path, out: Path):
        (raw / "train" / "cat" / "0.jpg").write_bytes(b"")
        with pytest.raises(UsageError, match="case"):
            create(raw, out)
