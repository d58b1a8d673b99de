"""Field names of files: what is one field, and what belongs to a stem."""

from __future__ import annotations

from tarviz.formats.records import split_name
from tarviz.tools.field_names import name_fields


def fields(*paths: str) -> dict[str, list[str]]:
    cut = [(*split_name(path.encode()), path) for path in paths]  # type: ignore[misc]
    return {
        key: [ext for ext, _ in files] for key, files in name_fields([(key.decode(), ext, path) for key, ext, path in cut]).records.items()
    }


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


APART = "kinds of names stay fields of their own, as records have several"
DOTS = "1 files had dots in their stems, which are _ in keys"


def test_what_is_made_of_names_and_what_is_said_of_it():
    for paths, expected, notes in [
        (["a.jpg", "b.JPG"], {"a": ["jpg"], "b": ["jpg"]}, []),
        (
            ["a.jpg", "b.png", "c.JPEG", "d.jpg"],
            {"a": ["jpg"], "b": ["jpg"], "c": ["jpg"], "d": ["jpg"]},
            ["3 kinds of names are one field, jpg: png ×1, jpeg ×1"],
        ),
        (
            ["a.jpg", "a.png", "b.jpeg", "b.png"],
            {"a": ["jpg", "png"], "b": ["jpg", "png"]},
            [
                "2 kinds of names are one field, jpg: jpeg ×1",
                f"2 {APART}: jpg ×2, png ×2",
            ],
        ),
        (
            ["a.jpg", "a.jpeg", "b.jpg"],
            {"a": ["jpg", "jpeg"], "b": ["jpg"]},
            [f"2 {APART}: jpg ×2, jpeg ×1"],
        ),
        (
            ["a.seg.png", "a.jpg", "b.seg.webp", "b.jpg"],
            {"a": ["seg.png", "jpg"], "b": ["seg.png", "jpg"]},
            ["2 kinds of names are one field, seg.png: seg.webp ×1"],
        ),
        (
            ["a.1.jpg", "a_1.jpg", "b.jpg"],
            {"a_1_2": ["jpg"], "a_1": ["jpg"], "b": ["jpg"]},
            [f"{DOTS}: a.1.jpg is a_1_2"],
        ),
        (["a..jpg", "b.jpg"], {"a_": ["jpg"], "b": ["jpg"]}, [f"{DOTS}: a..jpg is a_"]),
    ]:
        cut = [(*split_name(path.encode()), path) for path in paths]  # type: ignore[misc]
        made = name_fields([(key.decode(), ext, path) for key, ext, path in cut])

        assert expected == {key: [ext for ext, _ in files] for key, files in made.records.items()}
        assert notes == made.notes
