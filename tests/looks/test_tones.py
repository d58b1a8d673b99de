"""Numbers as colours: windows, palettes, class numbers, what is not a number."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.looks import tones


def ramp(dtype=np.uint16):
    return np.arange(4096).reshape(64, 64).astype(dtype)


class TestShade:
    def test_the_window_leaves_out_the_tails_unless_asked(self):
        values = ramp()
        values[0, 0] = 65_535

        assert tones.shade(values)[1].high < 4096
        assert 65_535 == tones.shade(values, "min–max")[1].high
        assert (0.0, 65_535.0) == (tones.shade(values, "raw")[1].low, tones.shade(values, "raw")[1].high)

    def test_bytes_in_grey_stay_as_they_are(self):
        values = np.random.default_rng(0).integers(0, 256, (32, 32)).astype(np.uint8)

        assert np.array_equal(values, tones.shade(values)[0])

    @pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.uint16, np.int64, np.float16, np.float64])
    @pytest.mark.parametrize("window", ["", *tones.WINDOWS])
    @pytest.mark.parametrize("palette", ["", *tones.PALETTES])
    def test_any_numbers_become_colours(self, dtype, window, palette):
        shown, _ = tones.shade(ramp().astype(dtype), window, palette)

        assert (np.uint8, (64, 64)) == (shown.dtype, shown.shape[:2])

    def test_what_is_no_number_is_pink(self):
        values = ramp(np.float32)
        values[3, 4] = np.nan
        shown, tone = tones.shade(values)

        assert tones.BAD == tuple(shown[3, 4])
        assert "1 no number" in str(tone)

    @pytest.mark.parametrize("values", [np.zeros((16, 16)), np.full((16, 16), np.nan), np.full((16, 16), np.inf)])
    def test_flat_and_empty_ranges_are_no_trouble(self, values):
        assert (16, 16) == tones.shade(values)[0].shape[:2]


class TestColours:
    @pytest.mark.parametrize(
        ("array", "expected"),
        [
            (np.linspace(0, 1, 768).reshape(16, 16, 3), "0 dark … 1 bright (raw, colours)"),
            (np.linspace(-1, 1, 768).reshape(16, 16, 3), "-1 dark … 1 bright (raw, colours)"),
            (np.linspace(0, 255, 768).reshape(16, 16, 3), "0 dark … 255 bright (raw, colours)"),
            (np.arange(768).reshape(16, 16, 3), "3.835 dark … 763.16 bright (auto, colours)"),
            (np.linspace(0, 12, 768).reshape(16, 16, 3), "0.06 dark … 11.94 bright (auto, colours)"),
            (np.linspace(-2.1, 2.6, 768).reshape(16, 16, 3), "-2.0765 dark … 2.5765 bright (auto, colours)"),
        ],
    )
    def test_the_span_is_told_by_the_numbers(self, array, expected):
        assert expected == str(tones.coloured(array)[1])

    def test_a_window_of_two_numbers_is_kept(self):
        shown, tone = tones.shade(ramp(np.int16), "soft tissue -160…240")

        assert (-160.0, 240.0) == (tone.low, tone.high)
        assert {255} == set(shown[4:].ravel().tolist())

    def test_motion_to_all_sides_has_all_hues_and_the_unknown_is_black(self):
        turn = np.linspace(0, 2 * np.pi, 64, endpoint=False)
        flow = np.stack([np.cos(turn), np.sin(turn)], axis=1).reshape(8, 8, 2) * 3
        flow[0, 0] = 1e10
        shown, longest = tones.flow_colours(flow)

        assert (0, 0, 0) == tuple(shown[0, 0])
        assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 40
        assert pytest.approx(3, 0.01) == longest


class TestIds:
    def test_masks_are_told_from_photographs_and_digits(self):
        mask = np.repeat(np.arange(4, dtype=np.uint8), 256).reshape(32, 32)
        noise = np.random.default_rng(0).integers(0, 30, (32, 32)).astype(np.uint8)

        assert tones.is_ids(mask)
        assert tones.is_ids(np.where(mask == 3, 255, mask).astype(np.uint8))
        assert not tones.is_ids(noise)
        assert not tones.is_ids(mask * 60)
        assert not tones.is_ids(mask.astype(np.float32))

    def test_colours_are_many_and_the_same_for_boxes_and_masks(self):
        assert 250 <= len({tuple(colour) for colour in tones.id_colours().tolist()})
        assert "#{:02x}{:02x}{:02x}".format(*tones.id_colours()[7].tolist()) == tones.id_colour(7)


class TestHistogram:
    def test_counts_every_value_and_no_nan(self):
        values = ramp(np.float32)
        values[0, :] = np.nan
        counts, low, high = tones.histogram(values)

        assert 64 * 63 == sum(counts)
        assert (64.0, 4095.0) == (low, high)

    def test_whole_numbers_in_a_small_range_have_a_bar_each(self):
        assert [2.0, 0.0, 1.0] == tones.histogram(np.array([[3, 3, 5]]))[0]


def apart(colours, eyes):
    """The least distance (CIE 1976) between two of some colours uint8 [n, 3], as eyes of a kind see them (Machado et al. 2009)."""
    light = np.where((part := colours / 255) <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4) @ np.array(eyes).T
    xyz = (
        light.clip(0, 1) @ np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]]).T / [0.9505, 1, 1.0888]
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
    distance = np.linalg.norm(lab[:, None] - lab[None], axis=2)
    return distance[~np.eye(len(lab), dtype=bool)].min()


@pytest.mark.parametrize(
    "eyes",
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    ],
    ids=["normal", "deuteranopia", "protanopia"],
)
def test_colours_of_classes_are_told_apart_by_all_eyes(eyes):
    colours = tones.id_colours()

    assert 24 <= apart(colours[1:11], eyes)
    assert 14 <= apart(colours[1:25], eyes)
