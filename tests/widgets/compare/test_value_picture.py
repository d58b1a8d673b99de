"""Values of a record, made ready to be seen."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.looks import tones
from tarviz.widgets.compare.value_picture import ShownValue, as_picture, encode_pixels, limits, look_at, number, pixels_of, thumbnail
from tests.widgets.conftest import png

NAN = float("nan")


@pytest.mark.parametrize(("count", "text"), [(2, "['w', 'w']"), (64, str(["w"] * 64)), (65, "65 values")])
def test_few_values_that_are_no_numbers_are_listed_and_many_counted(count: int, text: str):
    found = look_at(np.full(count, "w"))

    assert text.startswith(str(found.text).rstrip("…"))
    assert found.text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"abc", ShownValue("bytes", "3 bytes")),
        (memoryview(bytes(1234)), ShownValue("bytes", "1,234 bytes")),
        ("text", ShownValue("str", text="text")),
        ("x" * 241, ShownValue("str", text="x" * 240 + "…")),
        ("x" * 240, ShownValue("str", text="x" * 240)),
        (np.arange(16, dtype=np.int64), ShownValue("int64[16]", "0…15", text=str(list(range(16))))),
        (np.arange(17, dtype=np.int64), ShownValue("int64[17]", "0…16", text="0 1 2 3 4 5 6 7 8 9 10 11 …")),
        (np.array([1.5, NAN, np.inf]), ShownValue("float64[3]", "1.5…1.5, 2 NaN", text="[1.5, nan, inf]")),
        (np.full(2, NAN), ShownValue("float64[2]", "NaN…NaN, 2 NaN", text="[nan, nan]")),
        (np.zeros((0, 3), np.float32), ShownValue("float32[0, 3]", text="[]")),
    ],
)
def test_what_is_no_picture_is_told_in_words(value: Any, words: ShownValue):
    assert words == look_at(value)


def column(*values: float, dtype: Any = np.float32) -> np.ndarray:
    """An array [2, n] of the same two lines."""
    return np.array([values, values], dtype)


@pytest.mark.parametrize(
    ("value", "mapping", "first"),
    [
        (column(0, 255, 7, dtype=np.uint8), "as it is", [0, 255, 7]),
        (column(0, 255, dtype=np.int16), "as it is", [0, 255]),
        (column(True, False, dtype=np.bool_), "×255", [255, 0]),
        (column(0, 0.5, 1), "×255", [0, 128, 255]),
        (column(*[0.0] * 19, 1.5), "×255, clipped 5.0 %", [*[0] * 19, 255]),
        (column(*[0.0] * 18, 1.5), "as 0…255", [*[0] * 18, 2]),
        (column(0, 255, 100.4), "as 0…255", [0, 255, 100]),
        (column(0, 256), "stretched from 0…256", [0, 255]),
        (column(-2, 0, 2), "stretched from −2…2", [0, 128, 255]),
        (column(-3, -3), "stretched from −3…−3", [0, 0]),
    ],
)
def test_numbers_become_levels_and_it_is_said_how(value: np.ndarray, mapping: str, first: list[int]):
    found = look_at(value)

    assert found.pixels is not None
    assert (mapping, (*value.shape, 1)) == (found.mapping, found.pixels.shape)
    assert [first, first] == found.pixels[..., 0].tolist()


def test_what_is_not_a_number_is_pink_in_all_bands():
    found = look_at(np.array([[0.5, NAN], [0.0, 1.0]], np.float32))

    assert found.pixels is not None
    assert "×255, NaN pink (25.0 %)" == found.mapping
    assert [[[128] * 3, list(tones.BAD)], [[0] * 3, [255] * 3]] == found.pixels.tolist()
    four = np.full((2, 2, 4), 0.5, np.float32)
    four[0, 0, 1] = NAN
    assert [*tones.BAD, 128] == look_at(four).pixels[0, 0].tolist()  # type: ignore[index]
    assert "NaN pink (< 0.1 %)" in look_at(np.where(np.arange(1100).reshape(2, 550) == 5, NAN, 0.5)).mapping
    assert "NaN pink (0.1 %)" in look_at(np.where(np.arange(1000).reshape(2, 500) == 5, NAN, 0.5)).mapping


def test_whole_numbers_beyond_a_byte_and_those_of_classes_are_shown_as_everywhere():
    deep = column(-1, 9, dtype=np.int32)
    found = look_at(deep)

    assert found.pixels is not None
    assert ("−1…9 as dark…bright", [0, 255]) == (found.mapping, found.pixels[0, :, 0].tolist())
    assert "0…256 as dark…bright" == look_at(column(0, 256, dtype=np.uint16)).mapping
    ids = np.repeat(np.arange(4, dtype=np.uint8), 64).reshape(16, 16)
    assert "numbers 0…3 as colours" == look_at(ids).mapping
    assert tones.id_colours()[ids].tolist() == look_at(ids).pixels.tolist()  # type: ignore[union-attr]
    colours = look_at(np.full((2, 2, 3), 300, np.int32))
    assert "stretched from 300…300" == colours.mapping


@pytest.mark.parametrize(
    ("shape", "seen", "note"),
    [
        ((4, 5), (4, 5, 1), ""),
        ((4, 5, 1), (4, 5, 1), ""),
        ((4, 5, 3), (4, 5, 3), ""),
        ((4, 5, 4), (4, 5, 4), ""),
        ((3, 4, 5), (4, 5, 3), "channels first"),
        ((1, 4, 5), (4, 5, 1), None),
        ((4, 5, 2), (4, 5, 1), "first of 2 channels"),
        ((5, 6, 7), (5, 6, 1), "first of 7 channels"),
        ((6, 4, 5, 3), (4, 5, 3), "first of 6"),
        ((6, 2, 4, 5, 3), (4, 5, 3), "first of 2"),
        ((1, 5), None, ""),
        ((5, 1), None, ""),
        ((7,), None, ""),
        ((0, 4, 5, 3), None, ""),
    ],
)
def test_which_arrays_are_pictures(shape: tuple[int, ...], seen: tuple[int, ...] | None, note: str | None):
    found = look_at(np.zeros(shape, np.uint8))

    if seen is None or note is None:
        assert (found.pixels is None) == (seen is None or note is None)
        return
    assert found.pixels is not None
    assert seen == found.pixels.shape
    assert ", ".join(filter(None, ("as it is", note))) == found.mapping


def test_of_very_many_pixels_every_second_or_so_is_shown():
    found = look_at(np.ones((8000, 8000), np.uint8))

    assert found.pixels is not None
    assert (4000, 4000, 1) == found.pixels.shape
    assert "as it is, one pixel in 2" == found.mapping


def test_the_limits_leave_out_what_is_no_number():
    assert (1.0, 3.0, 0) == limits(np.array([3, 1, 2]))
    assert (1.0, 2.0, 2) == limits(np.array([1, 2, NAN, -np.inf]))


def test_numbers_are_short():
    assert ["NaN", "0", "255", "−2.12", "1e+06", "999999", "1.5", "1.23e+03"] == [
        number(value) for value in (NAN, 0.0, 255.0, -2.1179, 1e6, 999_999.0, 1.5, 1234.5)
    ]


class TestEncoded:
    def opened(self, *given: Any) -> tuple[str | None, tuple[int, int], str]:
        picture = Image.open(io.BytesIO(encode_pixels(*given)))
        return picture.format, picture.size, picture.mode

    def test_what_fits_stays_exact_and_what_is_large_is_a_jpeg(self):
        grey, colour, clear = (np.full((100, 200, bands), 9, np.uint8) for bands in (1, 3, 4))

        assert ("PNG", (200, 100), "L") == self.opened(grey)
        assert ("PNG", (200, 100), "RGB") == self.opened(colour, 200)
        assert ("JPEG", (199, 100), "RGB") == self.opened(colour, 199)
        assert ("JPEG", (144, 72), "L") == self.opened(grey, 144)
        assert ("PNG", (144, 72), "RGBA") == self.opened(clear, 144)


class TestThumbnail:
    def test_a_value_is_a_picture_or_words_and_bytes_are_shown_by_their_viewer(self):
        record = {"__key__": "k", "__shard__": "s", "png": png((1, 2, 3)), "txt": b"words", "jpg": b"no picture"}

        def made(value: Any, ext: str) -> tuple[bytes, str]:
            return thumbnail(value, look_at(value), record, ext, 144)

        assert made(record["png"], "png")[0][:4] == b"\x89PNG"
        assert (b"", "words") == made(record["txt"], "txt")
        assert (b"", "words") == made(bytearray(b"words"), "txt")
        assert made(record["jpg"], "jpg")[1].startswith("E_DECODE: ")
        assert (b"", "7") == made(7, "n")
        assert made(np.zeros((4, 4), np.uint8), "n")[0][:4] == b"\x89PNG"

    def test_what_has_no_pixels_gives_none(self):
        assert pixels_of(None) is None
        assert pixels_of(b"no picture") is None
        assert pixels_of("text") is None
        assert (8, 12, 3) == pixels_of(memoryview(png())).shape  # type: ignore[union-attr]


@pytest.mark.parametrize("lead", [(2,), (3, 2)])
def test_of_many_pictures_the_first_is_shown(lead: tuple[int, ...]):
    array = np.arange(np.prod(lead) * 12, dtype=np.uint8).reshape(*lead, 2, 2, 3)
    found = as_picture(array)

    assert found is not None
    assert array[(0,) * len(lead)].tolist() == found[0].tolist()
    assert f"first of {lead[-1]}" in found[1]
