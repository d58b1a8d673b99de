"""Field names of files: what is one field, and what belongs to a stem."""

from __future__ import annotations

from tarviz.formats.records import split_name
from tarviz.tools.field_names import named


def fields(*paths: str) -> dict[str, list[str]]:
    cut = [(*split_name(path.encode()), path) for path in paths]  # type: ignore[misc]
    return {key: [ext for ext, _ in files] for key, files in named([(key.decode(), ext, path) for key, ext, path in cut]).records.items()}


def test_what_half_of_the_records_have_is_a_field_whatever_it_is_called():
    assert {"a": ["v1.jpg", "v2.jpg"], "b": ["v1.jpg", "v2.jpg"]} == fields("a.v1.jpg", "a.v2.jpg", "b.v1.jpg", "b.v2.jpg")


def test_what_few_have_beside_a_picture_is_a_field_unless_it_is_a_number():
    found = fields("a.jpg", "a.mask.png", "b.jpg", "b.2.jpg", "c.jpg", "d.jpg", "e.jpg")

    assert (["jpg", "mask.png"], ["jpg"], ["jpg"]) == (found["a"], found["b"], found["b_2"])


def test_files_of_one_stem_stay_together():
    assert ["jpg", "json"] == fields("a.v2.jpg", "a.v2.json", *(f"{n}.jpg" for n in range(9)))["a_v2"]


def test_endings_are_merged_within_a_role_alone():
    found = fields("a.jpg", "a.seg.png", "b.jpeg", "b.seg.png", "c.jpg", "c.seg.webp")

    assert {"a": ["jpg", "seg.png"], "b": ["jpg", "seg.png"], "c": ["jpg", "seg.png"]} == found


def test_other_kinds_keep_their_endings():
    assert {"a": ["wav"], "b": ["flac"], "c": ["txt"]} == fields("a.wav", "b.flac", "c.txt")
