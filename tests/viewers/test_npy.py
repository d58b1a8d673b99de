"""Arrays: pictures, lines, slices, and no pickle."""

from __future__ import annotations

import io
import os
import struct
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Control, Meta, Note, Panel, Plot, Table, Text, npy
from tests.viewers.payloads import saved, tenbin, zipped


class TestNpy(ViewerTests):
    viewer = "npy"
    good: ClassVar = {
        "npy": saved(np.arange(12.0).reshape(3, 4)),
        "line.npy": saved(np.arange(5000)),
        "rgb.npy": saved(np.zeros((8, 8, 3), np.uint8)),
        "volume.npy": saved(np.zeros((5, 4, 3, 2), np.float32)),
        "scalar.npy": saved(np.float64(3)),
        "empty.npy": saved(np.zeros((0, 3))),
        "text.npy": saved(np.array(["a", "b"])),
        "rows.npy": saved(np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])),
        "nan.npy": saved(np.array([[np.nan, np.inf], [1, 2]])),
        "complex.npy": saved(np.ones((3, 3), np.complex64)),
        "bool.npy": saved(np.ones((3, 3), bool)),
        "npz": zipped(a=np.eye(4), b=np.arange(3)),
        "ten": tenbin(np.eye(3, dtype=np.float32), np.arange(4)),
    }
    bad: ClassVar = {"npy": b"\x93NUMPY\x01\x00v\x00", "npz": b"PK\x03\x04 cut", "ten": b"~TenBin~" + struct.pack("<q", 1 << 60)}

    def test_fractions_in_columns_are_lines_unless_their_name_or_number_says_points(self):
        steps = saved(np.random.default_rng(0).normal(0, 1, (60, 7)))

        assert {"npy": "lines", "action.npy": "lines", "lidar.npy": "cloud"} == {
            ext: shown_as(steps, ext) for ext in ("npy", "action.npy", "lidar.npy")
        }
        many = saved(np.zeros((600, 3), np.float32))
        assert {"npy": "cloud", "imu.npy": "lines"} == {ext: shown_as(many, ext) for ext in ("npy", "imu.npy")}

    def test_the_pane_switches_cloud_lines_picture_and_numbers(self):
        cloud = saved(np.random.default_rng(0).normal(0, 1, (600, 3)))
        kinds = {}
        for way in ("cloud", "lines", "picture", "numbers"):
            panel = viewers.view(cloud, Meta("xyz.npy", options={"as": way}))
            kinds[way] = type(panel.blocks[0]).__name__
            assert ("cloud", "lines", "picture", "numbers") == panel.controls[0].choices

        assert {"cloud": "Points", "lines": "Plot", "picture": "Image", "numbers": "Table"} == kinds

    def test_a_line_a_column(self):
        plot, table, *_ = viewers.view(saved(np.arange(80.0).reshape(40, 2)), Meta("npy")).blocks

        assert [("column 0", 0.0, 78.0), ("column 1", 1.0, 79.0)] == [(name, line[0], line[-1]) for name, line in plot.series]
        assert Table(("column", "min", "max", "mean"), (("0", "0", "78", "39"), ("1", "1", "79", "40")), right=(1, 2, 3)) == table

    def test_sixteen_bits_and_signed_fractions_and_channels_first_have_right_colours(self):
        red = np.zeros((16, 16, 3))
        red[:, :8, 0] = 1

        for array in (
            (red * 4000).astype(np.uint16),
            (red * 2 - 1).astype(np.float32),
            np.moveaxis(red, 2, 0).astype(np.float32),
            (np.moveaxis(red, 2, 0) * 255).astype(np.uint8),
            (red * 255).astype(np.int64),
        ):
            for blob in (bytes(viewers.view(saved(array), Meta("npy")).blocks[0].data), viewers.tile(saved(array), Meta("npy"), 64)):
                seen = np.asarray(Image.open(io.BytesIO(blob)).convert("RGB"))
                assert [(255, 0, 0), (0, 0, 0)] == [tuple(seen[4, at]) for at in (2, 12)], array.dtype

    def test_bands_of_a_picture_can_be_seen_alone(self):
        blob = saved(np.stack([np.full((16, 16), at * 10.0) for at in range(3)], axis=2))
        panel = viewers.view(blob, Meta("npy", options={"as": "bands", "band": 2}))

        assert 20 == np.frombuffer(panel.blocks[0].values, "<f4")[0]

    def test_safetensors_are_arrays_by_name(self):
        numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed (extra `media`)")
        panel = self.panel("safetensors", numpy.save({"weight": np.eye(4, dtype=np.float32), "bias": np.zeros(4)}))

        assert panel.summary.startswith("2 arrays, ")

    def test_statistics_count_nans(self):
        assert {"min": "1", "max": "inf", "NaN": "1"}.items() <= dict(self.panel("npy", self.good["nan.npy"]).facts).items()

    def test_fortran_order_is_kept(self):
        array = np.asfortranarray(np.arange(6.0).reshape(2, 3))

        assert ("shape", "2×3") in self.panel("npy", saved(array)).facts

    def test_slices_are_chosen_by_the_reader(self):
        volume = np.arange(2 * 3 * 2 * 2, dtype=float).reshape(2, 3, 2, 2)
        panel = viewers.view(saved(volume), Meta("npy", options={"slice": [1, 99]}))

        assert [(1, 1), (2, 2)] == [(control.value, control.high) for control in panel.controls if control.name == "slice"]
        assert "20 dark … 23 bright (auto, viridis)" == panel.blocks[0].label

    def test_arrays_of_an_npz_are_chosen_by_name(self):
        panel = viewers.view(self.good["npz"], Meta("npz", options={"array": "b"}))

        assert "2 arrays, b: int64[3]" == panel.summary

    def test_objects_are_never_unpickled(self):
        class Canary:
            def __reduce__(self):
                return os.putenv, ("TARVIZ_CANARY", "set")

        panel = self.panel("npy", saved(np.array([Canary()], dtype=object)))

        assert panel.summary.startswith("E_UNSAFE_DECODER")

    def test_a_shape_larger_than_the_member_is_refused_by_header(self):
        blob = saved(np.zeros(4)).replace(b"(4,), }            ", b"(999999999999,), } "[:19])

        assert self.panel("npy", blob).summary.startswith("E_LIMIT")

    def test_the_formats_of_webdataset_agree(self):
        tenbin_ = pytest.importorskip("webdataset.tenbin", reason="webdataset is the oracle for .ten")
        blob = bytes(tenbin_.encode_buffer([np.arange(6, dtype=np.int32).reshape(2, 3)]))

        assert "int32[2, 3]" == self.panel("ten", blob).summary


def shown_as(blob: bytes, ext: str) -> str:
    (control,) = (one for one in viewers.view(blob, Meta(ext)).controls if one.name == "as")
    return control.value


class TestForms:
    @pytest.mark.parametrize(
        ("shape", "dtype", "name", "ways"),
        [
            ((9,), "f4", "npy", ["lines", "numbers"]),
            ((9, 2), "f4", "npy", ["picture", "lines", "numbers"]),
            ((30, 2), "f4", "npy", ["lines", "picture", "numbers"]),
            ((30, 2), "i4", "npy", ["picture", "lines", "numbers"]),
            ((30, 3), "f4", "npy", ["lines", "cloud", "picture", "numbers"]),
            ((30, 7), "f4", "lidar.npy", ["cloud", "lines", "picture", "numbers"]),
            ((9, 7), "f4", "npy", ["picture", "cloud", "lines", "numbers"]),
            ((9, 8), "f4", "npy", ["picture", "lines", "numbers"]),
            ((9, 64), "f4", "npy", ["picture", "lines", "numbers"]),
            ((9, 65), "f4", "npy", ["picture", "numbers"]),
        ],
    )
    def test_an_array_may_be_shown_in_several_ways(self, shape, dtype, name, ways):
        assert ways == npy.forms(np.zeros(shape, dtype), name)

    @pytest.mark.parametrize(
        ("shape", "dtype", "seen"),
        [
            ((8, 8, 3), "u1", (8, 8, 3)), ((8, 8, 4), "f4", (8, 8, 4)), ((7, 8, 3), "u1", None), ((8, 8, 5), "u1", None),
            ((8, 8), "u1", None),
            ((3, 8, 9), "u1", (8, 9, 3)), ((4, 9, 8), "i2", (9, 8, 4)), ((3, 8, 7), "u1", None), ((2, 3, 8, 9), "u1", (2, 8, 9, 3)),
            ((8, 8, 3), "?", None), ((8, 8, 3), "c8", None), ((5, 8, 8), "u1", None),
        ],
    )  # fmt: skip
    def test_three_or_four_channels_are_colours_first_or_last(self, shape, dtype, seen):
        array, colour = npy.in_colour(np.zeros(shape, dtype))

        assert (seen or shape, seen is not None) == (array.shape, colour)

    @pytest.mark.parametrize(
        ("array", "facts"),
        [
            (np.array([3, 1, 2], np.uint8), [("min", "1"), ("max", "3"), ("mean", "2")]),
            (np.array([1.5, np.nan]), [("min", "1.5"), ("max", "1.5"), ("mean", "1.5"), ("NaN", "1")]),
            (np.array([np.nan]), [("min", "nan"), ("max", "nan"), ("mean", "nan"), ("NaN", "1")]),
            (np.array([1 + 5j, 3]), [("min", "1"), ("max", "3"), ("mean", "2"), ("NaN", "0")]),
            (np.array([True, False]), [("min", "0"), ("max", "1"), ("mean", "0.5")]),
            (np.array(["a"]), []),
            (np.zeros(0), []),
        ],
    )
    def test_its_numbers_are_summed_up(self, array, facts):
        assert facts == npy.statistics(array)

    def test_of_a_part_it_is_said(self, monkeypatch):
        monkeypatch.setattr(npy, "_MOST_COUNTED", 2)

        assert ("these are of", "the first 2 numbers of 3") == npy.statistics(np.arange(3))[-1]
        assert ["min", "max", "mean"] == [name for name, _ in npy.statistics(np.arange(2))]


class TestDrawn:
    def test_the_middle_of_what_has_more_axes_is_seen_first(self):
        volume = np.arange(5 * 4 * 3, dtype=float).reshape(5, 4, 3)
        panel = viewers.view(saved(volume), Meta("npy"))

        assert [("slice", 2, 4)] == [(one.name, one.value, one.high) for one in panel.controls if one.name == "slice"]
        assert "24 dark … 35 bright (auto, viridis)" == panel.blocks[0].label
        assert (3, 4) == Image.open(io.BytesIO(viewers.tile(saved(volume), Meta("npy")))).size
        for films in (volume, np.random.default_rng(0).integers(0, 255, (5, 8, 9, 3), np.uint8)):
            assert viewers.tile(saved(films[2]), Meta("npy")) == viewers.tile(saved(films), Meta("npy"))

    @pytest.mark.parametrize(
        ("array", "text"),
        [
            (np.float64(3), "float64[]\n[3.0]"),
            (np.arange(3), "int64[3]\n[0, 1, 2]"),
            (np.array(["a", "b"] * 9), "<U1[18]\n" + str(["a", "b"] * 4)),
            (np.zeros((0, 3)), "float64[0, 3]\n[]"),
        ],
    )
    def test_what_is_no_picture_is_a_text_in_a_tile(self, array, text):
        assert text == viewers.tile(saved(array), Meta("npy"))

    def test_a_large_array_is_made_small_and_an_empty_archive_is_empty(self):
        assert (80, 80) == Image.open(io.BytesIO(viewers.tile(saved(np.zeros((160, 160))), Meta("npy"), 96))).size
        assert (96, 96) == Image.open(io.BytesIO(viewers.tile(saved(np.zeros((96, 96))), Meta("npy"), 96))).size
        assert (17, 67) == Image.open(io.BytesIO(viewers.tile(saved(np.zeros((200, 50))), Meta("npy"), 96))).size
        assert "empty" == viewers.tile(zipped(), Meta("npz"))
        assert "no arrays" == viewers.view(zipped(), Meta("npz")).summary

    @pytest.mark.parametrize(
        ("count", "kind", "label"),
        [(2000, "lines", "2000 values"), (2001, "envelope", "2001 values, lowest and highest of each thousandth")],
    )
    def test_a_long_line_is_its_extremes(self, count, kind, label):
        plot = viewers.view(saved(np.arange(count)), Meta("npy")).blocks[0]

        assert (kind, label) == (plot.kind, plot.label)
        assert [0.0, count - 1.0] == [plot.series[0][1][0], plot.series[-1][1][-1]]

    def test_steps_are_thinned_and_their_columns_summed_up(self):
        plot, table = viewers.view(saved(np.arange(8000.0).reshape(4000, 2)), Meta("npy")).blocks
        (few, _, _) = viewers.view(saved(np.arange(100.0).reshape(50, 2)), Meta("npy")).blocks

        assert ("4000 rows, every 2th", 2000) == (plot.label, len(plot.series[0][1]))
        assert "50 rows" == few.label
        assert (("column", "min", "max", "mean"), (("0", "0", "7998", "3999"), ("1", "1", "7999", "4000"))) == (table.columns, table.rows)

    @pytest.mark.parametrize(("count", "written"), [(256, True), (257, False)])
    def test_a_small_array_is_written_out(self, count, written):
        assert written is any(isinstance(block, Text) for block in viewers.view(saved(np.arange(count)), Meta("npy")).blocks)

    def test_numbers_and_records_are_rows(self):
        (table,) = viewers.view(saved(np.arange(300 * 40.0).reshape(300, 40)), Meta("npy", options={"as": "numbers"})).blocks
        (records,) = viewers.view(self_of("rows.npy"), Meta("npy")).blocks

        assert ((200, 33), tuple(range(33))) == ((len(table.rows), len(table.rows[0])), table.right)
        assert (("", "0", "1"), ("1", "40", "41")) == (table.columns[:3], table.rows[1][:3])
        assert Table(("a", "b"), (("1", "2.0"),)) == records
        assert "The array is empty." == viewers.view(self_of("empty.npy"), Meta("npy")).blocks[0].text
        assert "3.0" == viewers.view(self_of("scalar.npy"), Meta("npy")).blocks[0].text


def self_of(name: str) -> bytes:
    return TestNpy.good[name]


@pytest.mark.parametrize(
    ("array", "way", "expected"),
    [
        (
            np.array([1, -2, 3], np.int16),
            "lines",
            Panel(
                "int16[3]",
                [Plot("lines", (("value", (1.0, -2.0, 3.0)),), "3 values"), Text("[ 1 -2  3]", numbered=False)],
                [("dtype", "int16"), ("shape", "3"), ("min", "-2"), ("max", "3"), ("mean", "0.666667")],
                [Control("as", "shown as", "lines", choices=("lines", "numbers"))],
            ),
        ),
        (
            np.array([[1.5, np.nan], [2, 4]], np.float32),
            "numbers",
            Panel(
                "float32[2, 2]",
                [Table(("", "0", "1"), (("0", "1.5", "nan"), ("1", "2", "4")), (0, 1, 2))],
                [("dtype", "float32"), ("shape", "2×2"), ("min", "1.5"), ("max", "4"), ("mean", "2.5"), ("NaN", "1")],
                [Control("as", "shown as", "numbers", choices=("picture", "lines", "numbers"))],
            ),
        ),
        (
            np.array(2.5, np.float32),
            "picture",
            Panel(
                "float32[]",
                [Text("2.5", numbered=False)],
                [("dtype", "float32"), ("shape", "scalar"), ("min", "2.5"), ("max", "2.5"), ("mean", "2.5"), ("NaN", "0")],
            ),
        ),
        (
            np.zeros((2, 0, 3)),
            "picture",
            Panel("float64[2, 0, 3]", [Note("The array is empty.")], [("dtype", "float64"), ("shape", "2×0×3")]),
        ),
    ],
    ids=["line", "numbers", "scalar", "empty"],
)
def test_a_small_array_is_shown_whole(array, way, expected):
    assert replace(expected, viewer="npy") == viewers.view(saved(array), Meta("npy", options={"as": way}))


def test_a_tile_of_less_than_four_numbers_is_their_text():
    tiles = [viewers.tile(saved(np.arange(count, dtype=np.int16)), Meta("npy")) for count in (0, 3, 4)]

    assert ["int16[0]\n[]", "int16[3]\n[0, 1, 2]", True] == [*tiles[:2], tiles[2].startswith(b"\x89PNG")]
    assert "float32[]\n[2.5]" == viewers.tile(saved(np.float32(2.5)), Meta("npy"))
    assert "<U1[9]\n" + str(["a"] * 8) == viewers.tile(saved(np.full(9, "a")), Meta("npy"))
