"""What the fields of a record stand for, told by their names and kinds."""

from __future__ import annotations

import pytest

from tarviz.looks.roles import Roles, is_mask, roles


def test_each_field_has_one_role():
    kinds = {
        "jpg": "image", "seg.png": "image", "depth.npy": "npy", "npy": "npy", "mp3": "audio", "mp4": "video", "json": "json", "txt": "text",
        "cls": "cls", "ply": "cloud", "nii": "volume", "parquet": "structured", "bin": "bytes",
    }  # fmt: skip

    assert Roles(
        ("jpg", "depth.npy"), ("seg.png",), ("npy", "ply", "nii", "parquet"), ("mp3", "mp4"), ("json", "txt", "cls"), ("bin",)
    ) == roles(kinds)
    assert Roles() == roles({})


def test_a_mask_is_told_by_its_name_where_there_is_a_picture_too():
    found = roles({"jpg": "image", "seg.png": "image", "label.png": "image"})

    assert (("jpg",), ("seg.png", "label.png")) == (found.pictures, found.masks)
    assert ("seg.png",) == roles({"seg.png": "image"}).pictures
    assert (("a.mask.png", "b.mask.png"), ()) == ((only := roles({"a.mask.png": "image", "b.mask.png": "image"})).pictures, only.masks)


@pytest.mark.parametrize(
    ("ext", "mask"),
    [("seg.png", True), ("left_mask.png", True), ("leftmask.png", False), ("left-mask.png", True), ("mask", False), ("gt.png", True)],
)
def test_the_name_of_a_mask_is_a_whole_word_before_its_kind(ext, mask):
    assert mask is is_mask(ext)


def test_named_pictures_belong_side_by_side_and_others_do_not():
    kinds = {"left.jpg": "image", "right.jpg": "image", "disp.npy": "npy", "pose.npy": "npy"}

    assert ("left.jpg", "right.jpg", "disp.npy") == roles(kinds).beside
    assert ("pose.npy",) == roles(kinds).arrays
    assert ("jpg",) == roles({"jpg": "image", "thumb.jpg": "image"}).beside
    assert ("left.jpg",) == roles({"left.jpg": "image"}).beside
