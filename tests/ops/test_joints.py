"""Ops done together: what they make is what the ops one by one make, to the bit, and so are their errors."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tarviz.model.errors import TarvizError
from tarviz.ops.chains import Chain
from tarviz.ops.joints import Scaling, Thumbnail, joints
from tarviz.ops.values.resizer import resize_in_place

fast = pytest.mark.skipif(resize_in_place() is None, reason="cykooz-resizer is in the extra `fast`")


def picture(width: int, height: int, form: str = "JPEG", mode: str = "RGB", seed: int = 0, **options: Any) -> bytes:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (max(height // 4, 1), max(width // 4, 1), 3), np.uint8)
    made = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).convert(mode)
    out = io.BytesIO()
    made.save(out, form, **options)
    return out.getvalue()


def one_by_one(chain: Chain, record: dict[str, Any]) -> Any:
    """What the steps of the chain give, or the code and words of the first error."""
    steps = list(chain.trace(record))
    if steps[-1].error is not None:
        return steps[-1].error.code, str(steps[-1].error)
    return steps[-1].record


def together(chain: Chain, record: dict[str, Any]) -> Any:
    try:
        return chain.run(record)
    except TarvizError as error:
        return error.code, str(error)


def same(chain: Chain, record: dict[str, Any]) -> Any:
    """The result of the chain, which is the same both ways."""
    expected, found = one_by_one(chain, record), together(chain, record)
    if isinstance(expected, tuple):
        assert expected == found
        return expected
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (found[name].dtype, found[name].shape)
            np.testing.assert_array_equal(found[name], value)
            assert found[name].flags.writeable
        else:
            assert value == found[name]
    return found


class TestWhereOpsAreJoined:
    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ("decode(jpg)|resize(jpg, 32)", {0: (Thumbnail, 2)}),
            ("decode(jpg)|random_crop(jpg, 40)|resize(jpg, 32)|flip(jpg)", {0: (Thumbnail, 3)}),
            ("decode(cls)|decode(jpg)|center_crop(jpg, 40)|resize(jpg, 32)", {1: (Thumbnail, 3)}),
            ("decode(jpg)|resize(jpg, 32)|convert(jpg, float32)|normalize(jpg, 0.5, 0.25)", {0: (Thumbnail, 2), 2: (Scaling, 2)}),
            ("decode(jpg)|resize(png, 32)", {}),
            ("decode(jpg)|center_crop(jpg, 40)|flip(jpg)|resize(jpg, 32)", {}),
            ("decode(jpg, channels=1)|resize(jpg, 32)", {}),
            ("decode(jpg, orient=True)|resize(jpg, 32)", {}),
            ("decode(jpg)|resize(jpg, 32, carry=json)", {}),
            ("decode(cls)|convert(cls, int32)|normalize(jpg, 0.5, 0.25)", {}),
            ("decode(jpg)", {}),
            ("", {}),
        ],
    )
    def test_in_a_row_on_one_field(self, text: str, where: dict[int, Any]) -> None:
        found = joints(Chain.of(text).ops)

        assert where == {at: (type(joint), joint.ops) for at, joint in found.items()}


class TestThumbnail:
    @given(
        st.integers(1, 90),
        st.integers(1, 90),
        st.integers(1, 60),
        st.integers(1, 60),
        st.sampled_from(("", "|random_crop(jpg, (20, 17))", "|center_crop(jpg, (7, 30))")),
        st.sampled_from(("RGB", "L")),
        st.sampled_from((0, 1, 2)),
        st.sampled_from(("", ", least=(10, 9)")),
    )
    def test_as_one_by_one(
        self, width: int, height: int, to_height: int, to_width: int, crop: str, mode: str, subsampling: int, least: str
    ) -> None:
        data = picture(width, height, mode=mode, subsampling=subsampling, quality=90)
        chain = Chain.of(f"decode(jpg{least}){crop}|resize(jpg, ({to_height}, {to_width}))")

        same(chain, {"__key__": f"{width}x{height}", "__shard__": "s.tar", "jpg": data, "cls": b"1"})

    @fast
    def test_a_jpeg_is_done_in_one_pass(self) -> None:
        (joint,) = joints(Chain.of("decode(jpg)|resize(jpg, (8, 9))").ops).values()

        made = joint.run({"jpg": picture(50, 40), "cls": b"1"}, None)

        assert made is not None
        assert ((8, 9, 3), b"1") == (made["jpg"].shape, made["cls"])

    @pytest.mark.parametrize(
        "data",
        [
            picture(50, 40, "PNG"),
            picture(50, 40, "JPEG", "CMYK"),
            picture(50, 40)[:-200],
            picture(50, 40)[:30],
            b"\xff\xd8",
            b"",
            b"text",
            7,
        ],
        ids=("png", "cmyk", "cut", "header cut", "two bytes", "empty", "text", "number"),
    )
    def test_what_is_no_whole_jpeg_goes_one_by_one(self, data: Any) -> None:
        same(Chain.of("decode(jpg)|resize(jpg, (8, 9))"), {"__key__": "a", "jpg": data})

    def test_a_picture_smaller_than_the_crop_is_the_error_of_the_crop(self) -> None:
        code, words = same(Chain.of("decode(jpg)|random_crop(jpg, 64)|resize(jpg, 8)"), {"__key__": "a", "jpg": picture(50, 40)})

        assert "random_crop" in words
        assert code

    def test_a_field_that_is_not_there_is_the_error_of_the_decode(self) -> None:
        assert "decode(jpg)" in same(Chain.of("decode(jpg)|resize(jpg, 8)"), {"__key__": "a", "png": b""})[1]

    def test_a_picture_larger_than_what_a_thread_keeps(self) -> None:
        same(Chain.of("decode(jpg)|resize(jpg, (30, 40))"), {"__key__": "a", "jpg": picture(2600, 2000, quality=50)})

    def test_threads_have_memory_of_their_own(self) -> None:
        records = [{"__key__": str(at), "jpg": picture(40 + at, 90 - at, seed=at)} for at in range(40)]
        chain = Chain.of("decode(jpg)|resize(jpg, (33, 31))")
        expected = [one_by_one(chain, record)["jpg"] for record in records]

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(chain.run, records * 5))

        for at, record in enumerate(found):
            np.testing.assert_array_equal(record["jpg"], expected[at % 40])

    def test_results_do_not_share_memory(self) -> None:
        chain = Chain.of("decode(jpg)|resize(jpg, (33, 31))")
        first = chain.run({"__key__": "a", "jpg": picture(50, 40)})["jpg"]
        kept = first.copy()

        chain.run({"__key__": "b", "jpg": picture(50, 40, seed=1)})

        np.testing.assert_array_equal(first, kept)


class TestScaling:
    @given(
        st.integers(0, 40),
        st.integers(0, 40),
        st.sampled_from((1, 2, 3, 4)),
        st.sampled_from(("uint8", "uint16", "uint32", "int16", "float32")),
        st.sampled_from(("float16", "float32", "float64")),
        st.sampled_from(("0.5, 0.25", "[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]", "[0.5], 2")),
        st.booleans(),
    )
    def test_as_one_by_one(self, height: int, width: int, channels: int, given_: str, dtype: str, numbers: str, whole: bool) -> None:
        image = (np.random.default_rng(height).random((height, width, channels)) * 250).astype(given_)
        chain = Chain.of(f"convert(x, {dtype})|normalize(x, {numbers})")
        before = image.copy()

        same(chain, {"__key__": "a", "x": image if whole else image[:, ::-1]})

        np.testing.assert_array_equal(image, before)

    def test_in_parts_that_do_not_come_out_even(self) -> None:
        image = np.random.default_rng(0).integers(0, 256, (101, 333, 3), np.uint8)

        same(Chain.of("convert(x, float32)|normalize(x, [0.1, 0.2, 0.3], [1, 2, 3])"), {"__key__": "a", "x": image})

    @pytest.mark.parametrize("value", [b"bytes", 7, np.uint8(3), np.zeros(4, np.uint8)], ids=("bytes", "int", "number", "one side"))
    def test_what_is_no_image_goes_one_by_one(self, value: Any) -> None:
        same(Chain.of("convert(x, float32)|normalize(x, 0.5, 0.25)"), {"__key__": "a", "x": value})
