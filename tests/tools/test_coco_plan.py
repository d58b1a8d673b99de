"""COCO's file as a plan: what becomes of pictures, annotations and categories, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import UsageError
from tarviz.tools import coco_plan
from tarviz.tools.coco_plan import read_plan


def written(folder: Path, names: list[str], *, there: list[str] | None = None, **more: Any) -> str:
    """The annotation file of pictures with these names; `there` are those that exist, below `folder`."""
    folder.mkdir(exist_ok=True)
    for name in names if there is None else there:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    images = [{"id": at, "file_name": name} for at, name in enumerate(names)]
    (folder / "ann.json").write_text(json.dumps({"images": images, "annotations": [], **more}))
    return str(folder / "ann.json")


def test_a_record_is_a_picture_with_its_annotations_and_the_categories_of_these(tmp_path: Path):
    (tmp_path / "in").mkdir()
    annotations = [
        {"image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4]},
        {"image_id": 0, "segments_info": [{"category_id": 9}, {"category_id": 8}]},
        {"image_id": 1, "category_id": 7},
        {"category_id": 7},
        {"image_id": 5, "category_id": 7},
        {"image_id": 2, "category_id": "7"},
    ]
    categories = [{"id": at, "name": f"c{at}"} for at in (7, 8, 9)]
    names = ["in/é.jpg", "in/b.JPG", "in/c.png"]
    url = written(tmp_path, names, annotations=annotations, categories=categories)
    (tmp_path / "in" / "more.jpg").write_bytes(b"")
    (tmp_path / "in" / "folder").mkdir()

    records, made = read_plan(url, str(tmp_path), check=True)

    said = [json.loads(record.fields[1][1]) for record in records]
    assert ["in/é", "in/b", "in/c"] == [record.key.decode() for record in records]
    assert names == [record.place for record in records]
    assert [f"{tmp_path}/{name}" for name in names] == [record.fields[0][1] for record in records]
    assert [[b"jpg", b"json"]] * 3 == [[ext for ext, _ in record.fields] for record in records]
    assert {"id": 0, "file_name": "in/é.jpg", "annotations": annotations[1:2], "categories": categories[1:]} == said[0]
    assert {"id": 1, "file_name": "in/b.JPG", "annotations": [annotations[0], annotations[2]], "categories": categories[:1]} == said[1]
    assert {"id": 2, "file_name": "in/c.png", "annotations": annotations[5:], "categories": []} == said[2]
    assert "é".encode() in records[0].fields[1][1]  # as text, not escaped
    assert [
        "2 kinds of names are one field, jpg: png ×1",
        "1 annotations are of no category in the list",
        "2 annotations are of no picture in the list",
        "1 files beside the pictures are not in the list",
    ] == made.notes


@pytest.mark.parametrize("depth", ["", "a/", "a/b/"])
def test_pictures_are_found_in_a_folder_or_two_below(tmp_path: Path, depth: str):
    url = written(tmp_path, ["1.jpg"], there=[f"pictures/{depth}1.jpg"])
    (tmp_path / "pictures" / "0").mkdir()

    records, _ = read_plan(url, str(tmp_path / "pictures"), check=True)

    assert [f"{tmp_path}/pictures/{depth}1.jpg"] == [record.fields[0][1] for record in records]


def test_the_first_of_nine_that_is_there_tells_the_folder(tmp_path: Path):
    names = [f"{at}.jpg" for at in range(10)]

    records, _ = read_plan(written(tmp_path, names, there=["8.jpg"]), str(tmp_path), check=False)

    assert 10 == len(records)
    with pytest.raises(UsageError, match=r"no picture such as '0\.jpg' is there"):
        read_plan(written(tmp_path / "x", names, there=["9.jpg"]), str(tmp_path / "x"), check=False)


def test_files_beside_the_pictures_are_counted_and_folders_are_not(tmp_path: Path):
    url = written(tmp_path / "ann", ["1.jpg"], there=[])
    for name in ("in/1.jpg", "in/2.jpg", "in/below/3.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")

    assert ["1 files beside the pictures are not in the list"] == read_plan(url, str(tmp_path / "in"), check=True)[1].notes


def test_every_picture_is_a_record_however_many_dots_its_name_has(tmp_path: Path):
    names = ["1.left.jpg", "1.right.jpg", "2.left.jpg", "2.right.jpg"]

    records, made = read_plan(written(tmp_path, names), str(tmp_path), check=True)

    assert [(b"1_left", b"jpg"), (b"1_right", b"jpg")] == [(each.key, each.fields[0][0]) for each in records[:2]]
    assert names == [path for _, path in made.renamed]


@pytest.mark.parametrize(
    ("names", "there", "match"),
    [
        (["a.jpg", "README"], None, "the picture 'README' has no ending"),
        (["a.jpg", "a.png"], None, r"'a\.jpg' and 'a\.png' would be one record, 'a'"),
        (["a.jpg"], [], r"no picture such as 'a\.jpg' is there"),
        (["a.jpg", "b.jpg"], ["a.jpg"], r"there is no file '.*/b\.jpg'"),
    ],
)
def test_what_is_no_plan_says_why(tmp_path: Path, names: list[str], there: list[str] | None, match: str):
    (tmp_path / "in").mkdir()
    with pytest.raises(UsageError, match=match):
        read_plan(written(tmp_path / "in", names, there=there), str(tmp_path / "in"), check=True)


def test_entries_that_cannot_be_told_apart_or_read_are_refused(tmp_path):
    for lists, match in [
        ({"images": [{"id": 1, "coco_url": "http://x/1.jpg"}]}, r"images\[0\] is not an object with id and file_name: .*coco_url"),
        ({"images": [{"file_name": "1.jpg"}]}, r"images\[0\] is not an object with id and file_name"),
        ({"images": ["1.jpg"]}, r"images\[0\] is not an object"),
        ({"annotations": [None]}, r"annotations\[0\] is not an object: null"),
        ({"annotations": [{"image_id": [1]}]}, r"annotations\[0\] is not an object: .*image_id"),
        ({"categories": [{"id": 1}, {"name": "x"}]}, r"categories\[1\] is not an object with id: "),
        ({"images": [{"id": 1, "file_name": "1.jpg"}, {"id": 2, "file_name": "1.jpg"}]}, r"the picture '1\.jpg' has two ids, 1 and 2"),
        ({"images": [{"id": 1, "file_name": "1.jpg"}, {"id": 1, "file_name": "2.jpg"}]}, r"have the id 1: '1\.jpg' and '2\.jpg'"),
    ]:
        with pytest.raises(UsageError, match=match):
            read_plan(written(tmp_path, ["1.jpg", "2.jpg"], **lists), str(tmp_path), check=True)


def test_an_entry_that_is_there_twice_is_one_record(tmp_path: Path):
    url = written(tmp_path, ["1.jpg"], images=[{"id": 4, "file_name": "1.jpg"}] * 2, annotations=[{"image_id": 4, "segments_info": None}])

    ((record,), _) = read_plan(url, str(tmp_path), check=True)

    assert 1 == len(json.loads(record.fields[1][1])["annotations"])


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(coco_plan, "_LARGEST", 10)
    with pytest.raises(UsageError, match="the annotation file has more than 10 B"):
        read_plan(written(tmp_path, ["1.jpg"]), str(tmp_path), check=True)
