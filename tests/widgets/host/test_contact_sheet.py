"""The contact sheet: where pictures and words stand, and how it is kept small."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
from PIL import Image

from tarviz.widgets.host.contact_sheet import Cell, printable, sheet
from tests.widgets.conftest import png

BLUE = (0, 0, 255)


def drawn(cells: list[Cell], *, title: str = "", foot: str = "", **more: int) -> np.ndarray:
    """The sheet as uint8 [h, w, 3]."""
    with Image.open(io.BytesIO(sheet(title, foot, cells, **more))) as page:
        return np.asarray(page.convert("RGB"))


def filled(page: np.ndarray, dark: bool = False) -> tuple[int, int, int, int] | None:
    """The box (left, top, right, bottom) of all that is blue on a page, or of all that is not near white."""
    own = (page[..., 2].astype(int) - page[..., 0] > 128) if not dark else page.min(axis=2) < 200
    if not own.any():
        return None
    rows, columns = np.flatnonzero(own.any(axis=1)), np.flatnonzero(own.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


@pytest.mark.parametrize(
    ("size", "box"),
    [
        ((112, 112), (8, 30, 120, 142)),
        ((300, 150), (8, 58, 120, 114)),  # made smaller, in the middle
        ((57, 20), (35, 76, 92, 96)),  # more than half as wide as its place: as it is
        ((56, 20), (8, 66, 120, 106)),  # grown by whole numbers
        ((20, 10), (14, 61, 114, 111)),
        ((10, 55), (54, 31, 74, 141)),
    ],
)
def test_a_picture_stands_in_the_middle_of_its_place(size: tuple[int, int], box: tuple[int, int, int, int]):
    page = drawn([Cell(png(BLUE, size), "", "")])

    assert (190, 728, 3) == page.shape
    assert box == filled(page)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("E_DECODE: .jpg is none", "E_DECODE: .jpg\nis none"),
        ("a" * 20, "a" * 16 + "\naaaa"),
        ("  two:\n\n    three", "  two:\n\n    three"),
    ],
)
def test_words_are_broken_between_lines_and_long_ones_where_they_end(text: str, lines: str):
    assert np.array_equal(drawn([Cell(b"", lines, "")]), drawn([Cell(b"", text, "")]))


def test_cells_stand_in_rows_of_as_many_as_are_asked_for():
    for columns, count, size, last in (
        (6, 7, (728, 326), (8, 166, 120, 278)),
        (5, 6, (608, 326), (8, 166, 120, 278)),
        (3, 6, (560, 326), (248, 166, 360, 278)),
        (8, 4, (968, 190), (368, 30, 480, 142)),
    ):
        page = drawn([Cell(b"", "", "")] * (count - 1) + [Cell(png(BLUE, (112, 112)), "", "")], columns=columns)

        assert (size, last) == ((page.shape[1], page.shape[0]), filled(page))


def test_what_has_no_picture_is_a_frame_with_words_and_a_bad_one_too():
    empty = drawn([Cell(b"", "", "")])
    assert (8, 30, 120, 142) == filled(255 - (255 - empty) * 4, dark=True)  # a thin grey line
    assert (empty[31:141, 9:119] > 240).all()

    words = drawn([Cell(b"", "first\nsecond line that is longer", "")])
    box = filled(words[31:141, 9:119], dark=True)
    assert box is not None
    assert box[0] >= 2
    assert 13 < box[3] < 13 * 4
    bad = drawn([Cell(png(BLUE), "E_DECODE", "", bad=True)])
    ink = bad[31:141, 9:119].reshape(-1, 3).astype(int)
    assert filled(bad) is None
    assert (ink[:, 0] - ink[:, 1] > 60).any()
    many = filled(drawn([Cell(b"", "\n".join("abcdefgh"), "")])[31:141, 9:119], dark=True)
    assert many is not None
    assert many[3] <= 110


def test_title_caption_and_foot_stand_where_they_belong_and_are_cut_to_their_room():
    long = "wide words " * 30
    for part, (left, top, right, bottom) in (
        ({"title": long}, (8, 6, 720, 26)),
        ({"foot": long}, (8, 166, 720, 186)),
    ):
        box = filled(drawn([Cell(png((255, 255, 255), (112, 112)), "", "")], **part), dark=True)
        assert box is not None
        assert left <= box[0] < left + 6
        assert top <= box[1] < box[3] <= bottom
        assert right - 30 < box[2] <= right
    box = filled(drawn([Cell(png((255, 255, 255), (112, 112)), "", long)]), dark=True)
    assert box is not None
    assert (8, 144) <= box[:2] <= (12, 150)
    assert 100 < box[2] <= 120
    assert box[3] <= 160


def test_a_sheet_that_leaves_pictures_out_says_so_at_its_foot():
    white = Cell(png((255, 255, 255), (112, 112)), "", "")
    whole, cut = (filled(drawn([white] * count, foot="foot"), dark=True) for count in (24, 25))

    assert whole is not None
    assert cut is not None
    assert whole[2] + 100 < cut[2]


def test_it_is_made_smaller_until_it_fits_and_given_up_below_that():
    noise = io.BytesIO()
    Image.frombytes("RGB", (112, 112), os.urandom(112 * 112 * 3)).save(noise, "PNG")
    cells = [Cell(noise.getvalue(), "", "noise")] * 30
    sizes: list[tuple[int, int] | None] = []
    budget = 1 << 20
    while not sizes or sizes[-1] is not None:
        data = sheet("title", "foot", cells, budget=budget)
        assert len(data) <= budget
        size = Image.open(io.BytesIO(data)).size if data else None
        sizes += [size] if not sizes or size != sizes[-1] else []
        budget = budget * 4 // 5

    assert [(728, 598), (560, 470), (560, 246), (560, 126), None] == sizes


def test_before_fewer_pictures_it_has_fewer_colours_and_no_dithering():
    noise = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (112, 112, 3), np.uint8)).save(noise, "PNG")
    cells = [Cell(noise.getvalue(), "", "noise")] * 24
    found: list[tuple[int, int]] = []
    data = sheet("", "", cells, budget=1 << 20)
    while data:
        with Image.open(io.BytesIO(data)) as page:
            found.append((page.height, len(page.getcolors() or ())))
        data = sheet("", "", cells, budget=len(data) - 1)

    assert [598, 598, 598, 470, 246, 126, 126] == [height for height, _ in found]
    for most, (_, count) in zip((256, 256, 128, 64, 64, 32, 16), found, strict=True):
        assert most // 2 < count <= most


def test_text_is_what_a_plain_font_can_draw():
    assert "a·b" == printable("a\nb")
    assert "a\nb" == printable("a\nb", keep="\n")
    assert 400 == len(printable("x" * 500))
