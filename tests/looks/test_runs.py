"""Run-length masks: COCO's list and COCO's text, there and back, and against the library that wrote the format."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tarviz.looks import runs
from tarviz.model.errors import DataError

MASKS = arrays.arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40)), elements=st.integers(0, 1))
FORMS = st.sampled_from([[], "", b""])


class TestByHand:
    # 3 x 4, down the columns: 0 0 1 | 1 1 1 | 0 0 0 | 1 0 0
    MASK = np.array([[0, 1, 0, 1], [0, 1, 0, 0], [1, 1, 0, 0]], np.uint8)
    RUNS = (2, 4, 3, 1, 2)

    def test_a_list_of_runs_begins_with_zeros(self):
        assert {"size": [3, 4], "counts": list(self.RUNS)} == runs.encode(self.MASK, {"size": [], "counts": []})
        np.testing.assert_array_equal(self.MASK, runs.decode({"size": [3, 4], "counts": list(self.RUNS)}))

    def test_a_text_holds_what_runs_differ_by_from_the_one_before_the_last(self):
        # 2 4 3, then 1 - 4 = -3 (29 of 5 bits with the sign set), 2 - 3 = -1 (31)
        text = "".join(chr(48 + code) for code in (2, 4, 3, 29, 31))

        assert text == runs.encode(self.MASK, {"size": [], "counts": ""})["counts"]
        np.testing.assert_array_equal(self.MASK, runs.decode({"size": [3, 4], "counts": text}))

    def test_a_large_number_takes_several_letters(self):
        # 1000 = 31 * 32 + 8: 8 with more to come, 31 with more to come (its sign bit is set), 0
        text = "".join(chr(48 + code) for code in (8 + 32, 31 + 32, 0))

        assert {"size": [10, 100], "counts": text} == runs.encode(np.zeros((10, 100)), {"size": [], "counts": ""})
        assert not runs.decode({"size": [10, 100], "counts": text}).any()

    def test_a_mask_that_begins_with_ones_has_a_run_of_none(self):
        assert [0, 6] == runs.encode(np.ones((2, 3)), {"size": [], "counts": []})["counts"]

    def test_what_else_is_written_is_kept(self):
        assert {"size": [1, 1], "counts": [1], "id": 7} == runs.encode(np.zeros((1, 1)), {"size": [5, 5], "counts": [], "id": 7})


class TestThereAndBack:
    @given(MASKS, FORMS)
    def test_a_mask_comes_back_in_the_form_asked_for(self, mask, form):
        written = runs.encode(mask, {"size": [], "counts": form})

        np.testing.assert_array_equal(mask, runs.decode(written))
        assert type(form) is type(written["counts"])

    @given(MASKS, FORMS, st.integers(1, 50))
    def test_a_thinned_one_is_the_nearest_of_each_place(self, mask, form, side):
        height, width, *counts = runs.thin(runs.encode(mask, {"size": [], "counts": form}), side)
        rows = ((np.arange(height) + 0.5) * mask.shape[0] / height).astype(int)
        columns = ((np.arange(width) + 0.5) * mask.shape[1] / width).astype(int)

        scale = min(1, side / max(mask.shape))
        assert all(abs(new - max(1, old * scale)) <= 0.5 for new, old in zip((height, width), mask.shape, strict=True))
        np.testing.assert_array_equal(mask[rows][:, columns], runs.decode({"size": [height, width], "counts": counts}))

    @given(MASKS)
    def test_the_library_of_the_format_agrees(self, mask):
        oracle = pytest.importorskip("pycocotools.mask", reason="pycocotools is not installed")
        theirs = oracle.encode(np.asfortranarray(mask))

        assert theirs["counts"] == runs.encode(mask, {"size": [], "counts": b""})["counts"]
        np.testing.assert_array_equal(mask, runs.decode(theirs))


class TestDamaged:
    @pytest.mark.parametrize(
        "counts",
        [[1, 2], [-1, 13], [12.0], [True, 11], [1 << 80], "", "24", "2", "\x7f\x7f", "24Pé", "o" * 40, [0] * 3, "o" * 11 + "0"],
    )
    def test_runs_that_do_not_fill_the_mask_are_an_error(self, counts):
        with pytest.raises(DataError, match="damaged"):
            runs.decode({"size": [3, 4], "counts": counts})

    @given(st.text(max_size=30) | st.lists(st.integers(-5, 1 << 70), max_size=6))
    def test_any_text_is_a_mask_or_an_error(self, counts):
        try:
            mask = runs.decode({"size": [3, 4], "counts": counts})
        except DataError:
            return
        assert (3, 4) == mask.shape

    @pytest.mark.parametrize(
        "value", [None, {}, {"size": [1], "counts": ""}, {"size": [0, 4], "counts": ""}, {"size": ["3", 4], "counts": []}, {"counts": [1]}]
    )
    def test_what_is_none_is_told(self, value):
        assert not runs.is_runs(value)
