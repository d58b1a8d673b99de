"""Folders of files as records: what is split, label and key in a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tarviz.model.errors import NotFoundError, UsageError
from tarviz.read.stream import ReadReport
from tarviz.tools.folder_layout import files_of


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
