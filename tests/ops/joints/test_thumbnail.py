"""A JPEG decoded, cut and resized in one pass: as the ops one by one make it, to the bit, and so are their errors."""

from __future__ import annotations

import importlib
import io
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tarviz.ops.chains import Chain
from tarviz.ops.joints import joints
from tests.ops.joints.conftest import one_by_one, same

thumbnail = importlib.import_module("tarviz.ops.joints.thumbnail")  # the package has a function of this name
fast = pytest.mark.skipif(find_spec("cykooz_resizer") is None, reason="cykooz-resizer is in the extra `fast`")


def picture(width: int, height: int, form: str = "JPEG", mode: str = "RGB", seed: int = 0, **options: Any) -> bytes:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (max(height // 4, 1), max(width // 4, 1), 3), np.uint8)
    made = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).convert(mode)
    out = io.BytesIO()
    made.save(out, form, **options)
    return out.getvalue()


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
        st.sampled_from(("", "|flip(jpg)", "|flip(jpg, vertical, p=1)", "|flip(jpg, p=0)")),
        st.sampled_from(("", "float32", "float16")),
    )
    def test_as_one_by_one(
        self, width: int, height: int, to_height: int, to_width: int, crop: str, mode: str, subsampling: int, least: str, flip: str, to: str
    ) -> None:
        data = picture(width, height, mode=mode, subsampling=subsampling, quality=90)
        scale = f"|convert(jpg, {to})|normalize(jpg, [0.1, 0.2, 0.3], 0.25)" if to else ""
        chain = Chain.of(f"decode(jpg{least}){crop}|resize(jpg, ({to_height}, {to_width})){flip}{scale}")

        same(chain, {"__key__": f"{width}x{height}", "__shard__": "s.tar", "jpg": data, "cls": b"1"})

    @fast
    def test_a_jpeg_is_done_in_one_pass(self) -> None:
        (joint,) = joints(Chain.of("decode(jpg)|resize(jpg, (8, 9))").ops).values()

        made = joint.joint.run({"jpg": picture(50, 40), "cls": b"1"}, None, {})

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

    def test_a_picture_larger_than_what_a_thread_keeps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(thumbnail, "_KEPT", 1_000_000)
        same(Chain.of("decode(jpg)|resize(jpg, (30, 40))"), {"__key__": "a", "jpg": picture(700, 500, quality=50)})

    @pytest.mark.parametrize(("height", "kept"), [(3000, True), (5000, False)])
    def test_a_photo_of_a_telephone_finds_the_memory_of_the_one_before(self, height: int, kept: bool) -> None:
        first = thumbnail._decoding(height, 4000)
        assert len(first) >= height * 4000 * 4
        assert kept is np.shares_memory(first, thumbnail._decoding(height, 4000))

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


class TestRoom:
    """Memory that is offered for the value."""

    @fast
    @pytest.mark.parametrize(
        ("more", "dtype"), [("", "uint8"), ("|flip(jpg, p=1)", "uint8"), ("|convert(jpg, float32)|normalize(jpg, 0.5, 0.25)", "float32")]
    )
    def test_the_value_is_the_row_of_a_batch_and_its_neighbours_stay(self, more: str, dtype: str) -> None:
        chain = Chain.of(f"decode(jpg)|resize(jpg, (8, 9)){more}|decode(cls)")
        record = {"__key__": "a", "jpg": picture(50, 40), "cls": b"1"}
        batch = np.full((3, 8, 9, 3), 7, dtype)
        row = batch[1]

        made = chain.run(record, None, {"jpg": row})

        assert made["jpg"] is row
        np.testing.assert_array_equal(row, chain.run(record)["jpg"])
        assert (batch[0] == 7).all()
        assert (batch[2] == 7).all()

    @pytest.mark.parametrize(
        "room", [np.zeros((9, 8, 3), np.uint8), np.zeros((8, 9, 3), np.int8), np.zeros((8, 9, 6), np.uint8)[:, :, ::2]]
    )
    def test_what_does_not_fit_is_not_used(self, room: Any) -> None:
        made = Chain.of("decode(jpg)|resize(jpg, (8, 9))").run({"__key__": "a", "jpg": picture(50, 40)}, None, {"jpg": room})

        assert ((8, 9, 3), np.uint8) == (made["jpg"].shape, made["jpg"].dtype)
        assert not room.any()

    def test_an_op_behind_gets_no_memory_that_is_somebody_elses(self) -> None:
        room = np.zeros((8, 9, 3), np.uint8)

        made = Chain.of("decode(jpg)|resize(jpg, (8, 9))|rotate(jpg, 180)").run(
            {"__key__": "a", "jpg": picture(50, 40)}, None, {"jpg": room}
        )

        assert made["jpg"].any()
        assert not room.any()
