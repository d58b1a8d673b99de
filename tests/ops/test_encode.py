"""Encode: values back to bytes that decode to the same."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops import Decode, Encode
from tarviz.testing.ops import OpTests, noise

RGB = Feature("uint8", (None, None, 3))


class TestEncodeJpeg(OpTests):
    op = Encode("jpg", quality=80)

    def test_quality_is_that_of_pil(self) -> None:
        image = noise(RGB)[2]
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "JPEG", quality=80)

        assert stream.getvalue() == self.op.apply(image)

    def test_alpha_is_dropped(self) -> None:
        image = noise(Feature("uint8", (None, None, 4)))[1]

        assert "RGB" == Image.open(io.BytesIO(Encode("jpg").apply(image))).mode

    def test_floats_are_refused_with_the_cure(self) -> None:
        with pytest.raises(SchemaError, match=r"Put convert\(jpg, uint8\) before it"):
            self.op.infer(Feature("float32", (None, None, 3)))

    def test_bytes_are_refused(self) -> None:
        with pytest.raises(SchemaError, match="encoded already"):
            self.op.infer(Feature("bytes"))

    @pytest.mark.parametrize("quality", [0, 101, 90.5, "high", True])
    def test_a_quality_that_is_none_is_refused(self, quality: Any) -> None:
        with pytest.raises(ChainError, match="quality"):
            Encode("jpg", quality=quality)

    def test_a_field_without_a_format_needs_one(self) -> None:
        with pytest.raises(ChainError, match=r"encode\(image, png\)"):
            Encode("image")
        assert Encode("image", "png").apply(noise(RGB)[0]).startswith(b"\x89PNG")


class TestEncodePng(OpTests):
    op = Encode("png")

    @pytest.mark.parametrize("channels", [1, 2, 3, 4])
    def test_it_comes_back(self, channels: int) -> None:
        image = noise(Feature("uint8", (None, None, channels)))[1]

        np.testing.assert_array_equal(image, Decode("png", channels=0).apply(self.op.apply(image)))


@pytest.mark.parametrize("form", ["webp", "bmp", "jpeg"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_channel_count_is_written(form: str, channels: int) -> None:
    image = noise(Feature("uint8", (None, None, channels)))[1]

    assert image.shape[:2] == Decode(form).apply(Encode(form).apply(image)).shape[:2]


class TestEncodeClass(OpTests):
    op = Encode("cls")
    accepts = Feature("int64")
    fails_on = {"cls": 1.5}

    def test_it_is_ascii(self) -> None:
        assert b"-7" == self.op.apply(np.int32(-7))


class TestEncodeText(OpTests):
    op = Encode("txt")
    accepts = Feature("str")
    fails_on = {"txt": 3}

    def values(self) -> list[Any]:
        return ["hi", "grün", ""]


class TestEncodeJson(OpTests):
    op = Encode("json")
    accepts = Feature("object")
    fails_on = {"json": object()}

    def values(self) -> list[Any]:
        return [{"a": [1, np.float32(0.5), np.arange(2)]}, "x", None]

    def test_numpy_becomes_plain(self) -> None:
        assert b'{"a": [1, 0.5, [0, 1]]}' == self.op.apply(self.values()[0])

    def test_letters_stay_letters(self) -> None:
        assert '"grün"'.encode() == self.op.apply("grün")


class TestEncodeArray(OpTests):
    op = Encode("npy")
    accepts = Feature("float32", (None, None, 3))

    def test_it_comes_back(self) -> None:
        array = np.arange(6, dtype=np.int16).reshape(2, 3)

        np.testing.assert_array_equal(array, Decode("npy").apply(self.op.apply(array)))


@pytest.mark.parametrize(
    ("ext", "value", "why"),
    [
        ("txt", "\ud800", "surrogates"),
        ("npy", [[1], [2, 3]], "inhomogeneous"),
        ("npy", None, "Object arrays"),
        ("npy", np.ma.masked_array([1, 2], [False, True]), "mask"),
        ("png", np.zeros((0, 4, 3), np.uint8), "empty"),
        ("jpg", np.zeros((1, 70_000, 1), np.uint8), "cannot write this"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_by_name(ext: str, value: Any, why: str):
    with pytest.raises(SchemaError, match=why) as found:
        Encode(ext).apply(value)
    assert {"op": f"encode({ext})", "field": ext} == found.value.details


def test_numbers_that_npy_has_no_name_for_are_refused():
    types = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    with pytest.raises(SchemaError, match="no bfloat16; make it float32"):
        Encode("npy").apply(np.ones(3, types.bfloat16))


@pytest.mark.parametrize(("bands", "fits"), [(None, True), (1, True), (4, True), (5, False), (0, False)])
def test_a_picture_has_one_to_four_channels(bands: int | None, fits: bool) -> None:
    feature = Feature("uint8", (None, None, bands))
    if fits:
        assert Feature("bytes") == Encode("png").infer(feature)
    else:
        with pytest.raises(SchemaError, match="expects 1 to 4 channels"):
            Encode("png").infer(feature)


@pytest.mark.parametrize(
    ("form", "bands", "mode"),
    [
        *(("jpg", bands, mode) for bands, mode in ((1, "L"), (2, "L"), (3, "RGB"), (4, "RGB"))),
        *(("png", bands, mode) for bands, mode in ((1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA"))),
        *(("tif", bands, mode) for bands, mode in ((1, "L"), (2, "L"), (3, "RGB"), (4, "RGBA"))),
        *(("bmp", bands, mode) for bands, mode in ((1, "L"), (4, "RGB"))),
        ("webp", 4, "RGBA"),
        ("ppm", 4, "RGB"),
        ("pgm", 1, "L"),
    ],
)
def test_alpha_is_kept_where_a_format_has_it(form: str, bands: int, mode: str) -> None:
    image = noise(Feature("uint8", (None, None, bands)))[1]
    image[:, :, -1] |= 1 if bands == 4 else 0  # WebP drops what is wholly transparent

    assert mode == Image.open(io.BytesIO(Encode(form).apply(image))).mode


def test_quality_is_for_jpeg_and_webp() -> None:
    image = noise(RGB)[2]
    sizes = {form: [len(Encode(form, quality=quality).apply(image)) for quality in (10, 90)] for form in ("jpg", "webp", "png", "tif")}

    assert {"jpg": True, "webp": True, "png": False, "tif": False} == {form: low < high for form, (low, high) in sizes.items()}


def test_a_class_is_a_whole_number_of_any_kind() -> None:
    assert [b"7"] * 3 == [Encode("cls").apply(value) for value in (7, np.uint8(7), np.array(7))]
    for value in (np.array([7]), np.array(0.5), 1.0, "7"):
        with pytest.raises(SchemaError, match="expects a whole number"):
            Encode("cls").apply(value)


def test_the_format_is_that_of_the_first_name() -> None:
    assert ["jpeg", "cls", "cls", "txt", "png"] == [
        op.format_name for op in (Encode("a.JPEG;png"), Encode("x.index"), Encode("count"), Encode("txt"), Encode("jpg", "png"))
    ]
