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
        assert expected == str(tones.colour(array)[1])

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
        assert not tones.is_ids(np.repeat(np.arange(4, dtype=np.uint8), 100).reshape(4, 100))
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


class TestLevels:
    def test_values_are_spread_between_the_ends_of_the_window(self):
        values = np.array([[0, 0.25, 0.5, 1, 2, -1]] * 8)
        ramp = [0, 64, 128, 255, 255, 0]

        assert [ramp] * 8 == tones.shade(values, "0…1", "grey")[0].tolist()
        assert (tones.table("heat")[ramp]).tolist() == tones.shade(values, "0…1", "heat")[0][0].tolist()
        assert [[0] * 6] * 8 == tones.shade(values, "1…1", "grey")[0].tolist()

    def test_endless_values_are_the_ends_and_those_that_are_none_are_pink(self):
        values = np.array([[0.0, 1.0, np.inf, -np.inf, np.nan]])

        assert [[[0] * 3, [255] * 3, [255] * 3, [0] * 3, [*tones.BAD]]] == tones.shade(values, "", "grey")[0].tolist()
        assert tones.Tone("auto", "grey", 0.0, 1.0, 1) == tones.shade(values)[1]

    @pytest.mark.parametrize(
        ("values", "window", "limits"),
        [
            (np.array([[3, 9]], np.uint8), "raw", (0, 255, 0)),
            (np.array([[3, 9]], np.int16), "raw", (0, 65_535, 0)),
            (np.array([[0.25, 0.5]]), "raw", (0, 1, 0)),
            (np.array([[0.25, 1.5]]), "raw", (0.25, 1.5, 0)),
            (np.array([[-0.25, 0.5, np.nan]]), "raw", (-0.25, 0.5, 1)),
            (np.array([[np.nan, np.inf]]), "auto", (0, 1, 1)),
            (np.array([[3, 9]]), "mine -1.5…2e2", (-1.5, 200, 0)),
            (np.arange(399), "auto", (0, 398, 0)),
            (np.arange(401), "auto", (2, 398, 0)),
            (np.arange(401), "min–max", (0, 400, 0)),
            (np.repeat([0, 5, 9], [1, 998, 1]), "auto", (0, 9, 0)),  # where the tails are all there is
        ],
    )
    def test_the_limits_of_a_window(self, values, window, limits):
        assert limits == tones.limits(values, window)

    def test_what_was_done_is_said(self):
        assert "numbers 0…3 as colours" == str(tones.Tone("raw", "ids", 0, 3))
        assert "0 dark … 4 bright (auto, heat), 1,000 no number (pink)" == str(tones.Tone("auto", "heat", 1e-7, 4, 1000))
        assert "-0.001 dark … 4 bright (auto, grey)" == str(tones.Tone("auto", "grey", -1e-3, 4))

    def test_numbers_of_classes_are_told_where_nothing_else_is_asked_for(self):
        mask = np.repeat(np.arange(4, dtype=np.int32), 64).reshape(16, 16)

        assert tones.id_colours()[mask].tolist() == tones.shade(mask)[0].tolist()
        assert tones.Tone("raw", "ids", 0, 3) == tones.shade(mask)[1]
        assert "viridis" == tones.shade(mask, "auto", usual="viridis")[1].palette
        assert ("raw", "grey") == ((grey := tones.shade(mask.astype(np.uint8), palette="grey")[1]).window, grey.palette)
        assert tones.id_colours()[[[1, 255, 0]]].tolist() == tones.shade(np.array([[257, -1, 256]]), "", "ids")[0].tolist()
        assert tones.Tone("raw", "ids", 5, 9) == tones.shade(np.array([[5, 9]]), "", "ids")[1]
        assert (0, 3) == tones.shade(np.zeros((0, 3)), "", "ids")[0].shape[:2]


class TestBands:
    def test_four_bands_stay_where_they_are_of_eight_bits(self):
        array = np.arange(16 * 16 * 4, dtype=np.uint8).reshape(16, 16, 4)

        assert array.tolist() == tones.colour(array)[0].tolist() == tones.colour(array, "raw")[0].tolist()
        assert (16, 16, 3) == tones.colour(array.astype(np.int32))[0].shape
        assert "0 dark … 254 bright (min–max, colours)" == str(tones.colour(array, "min–max")[1])

    def test_a_span_is_told_by_the_least_and_the_greatest(self):
        def span(low: float, high: float, dtype: type = float) -> tuple[float, float, str]:
            tone = tones.colour(np.array([[[low, high, low]] * 2], dtype))[1]
            return tone.low, tone.high, tone.window

        assert (0, 1, "raw") == span(0.2, 1)
        assert (0, 1, "raw") == span(-0.001, 1.001)
        assert (-1, 1, "raw") == span(-0.5, 0.5)
        assert (0, 255, "raw") == span(0, 64)
        assert (0, 63.9, "auto") == span(0, 63.9)
        assert (-1.5, 1, "auto") == span(-1.5, 1)
        assert (0, 255, "raw") == span(0, 1, int)
        assert (0, 256, "auto") == span(0, 256, int)

    def test_a_pixel_with_a_band_that_is_no_number_is_pink(self):
        array = np.full((2, 2, 3), 0.5)
        array[0, 1, 2] = np.nan

        assert [[[128] * 3, [*tones.BAD]], [[128] * 3] * 2] == tones.colour(array, "0…1")[0].tolist()


class TestMotion:
    def test_the_direction_is_the_hue_and_the_length_how_strong_it_is(self):
        flow = np.array([[[4, 0], [0, 4], [-4, 0], [2, 0], [0, 0], [np.nan, 0], [0, 1e9]]], np.float32)
        shown, longest = tones.flow_colours(flow)

        assert 4.0 == longest
        assert [[255, 0, 0], [255, 128, 128], [255, 255, 255], [0, 0, 0], [0, 0, 0]] == shown[0, [0, 3, 4, 5, 6]].tolist()
        assert [[132, 255, 0], [0, 255, 252]] == shown[0, [1, 2]].tolist()
        assert 1.0 == tones.flow_colours(np.zeros((2, 2, 2)))[1]

    def test_what_is_unknown_or_stands_out_does_not_dim_the_rest(self):
        flow = np.array([[[0.5, 0]] * 600 + [[1e9, 1e9]] * 399 + [[9, 0]]])
        shown, longest = tones.flow_colours(flow)

        assert 0.5 == longest
        assert [[255, 0, 0], [0, 0, 0], [255, 0, 0]] == shown[0, [0, 600, 999]].tolist()


IDS = np.repeat(np.arange(3), 3)  # of eight pairs of neighbours six are equal


@pytest.mark.parametrize(
    ("array", "is_ids"),
    [
        (np.tile(IDS, (8, 1)), True),
        (np.tile([0, 0, 0, 1, 1, 1, 2, 2, 3], (8, 1)), False),
        (np.tile(IDS, (7, 1)), False),
        (np.tile(IDS[:7], (10, 1)), False),
        (np.tile(IDS, (8, 1)).astype(float), False),
        (np.repeat(np.arange(40), 64).reshape(40, 64), True),
        (np.repeat(np.arange(41), 64).reshape(41, 64), False),
        (np.repeat([0, 99], 64).reshape(2, 64).repeat(8, 0), True),
        (np.repeat([0, 100], 64).reshape(2, 64).repeat(8, 0), False),
        (np.repeat([-1, 5], 64).reshape(2, 64).repeat(8, 0), False),
        (np.repeat([0, 255], 64).reshape(2, 64).repeat(8, 0), False),
        (np.repeat([5, 255], 64).reshape(2, 64).repeat(8, 0), True),
        (np.full((9, 9), 5), False),
    ],
)
def test_class_numbers_are_few_and_their_areas_even(array, is_ids):
    assert is_ids is tones.is_ids(array)


def test_colours_of_classes_stay_as_they_are():
    colours = tones.id_colours()

    assert [(26, 27, 32), (230, 159, 0), (86, 180, 233), (214, 214, 218)] == [tuple(colours[at].tolist()) for at in (0, 1, 2, 255)]
    assert ["#1a1b20", "#e69f00", "#1a1b20", "#e69f00"] == [tones.id_colour(number) for number in (0, 1, 255, 256)]
    assert [*range(256)] == tones.table("grey")[:, 0].tolist()


@pytest.mark.parametrize(
    ("palette", "colours"),
    [
        ("grey", "000000 404040 808080 bfbfbf ffffff"),
        ("viridis", "440154 3b528b 21918c 5ec962 fde725"),
        ("heat", "000000 781c14 dc5114 fab43c ffffe6"),
    ],
)
def test_colours_of_palettes_stay_as_they_are(palette, colours):
    assert colours == " ".join(bytes(colour).hex() for colour in tones.table(palette)[[0, 64, 128, 191, 255]])


@pytest.mark.parametrize(
    ("array", "counts", "low", "high"),
    [
        (np.array([True, False, True]), [1, 2], 0, 1),
        (np.array([np.nan, np.inf]), [0], 0, 0),
        (np.array([], np.uint8), [0], 0, 0),
        (np.array([7, 7]), [2], 7, 7),
        (np.array([2.5, 2.5]), [2, *[0] * 255], 2.5, 2.5),
        (np.array([0, 255]), [1, *[0] * 254, 1], 0, 255),
        (np.array([0, 256]), [1, *[0] * 254, 1], 0, 256),
        (np.array([0.0, 1.0, 2.0]), [1, *[0] * 127, 1, *[0] * 126, 1], 0, 2),
    ],
)
def test_values_are_counted_in_256_steps_or_one_by_one(array, counts, low, high):
    assert (counts, low, high) == tones.histogram(array)
