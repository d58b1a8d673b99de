"""Point clouds: which arrays are some, thinned, coloured and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.looks import points
from tarviz.looks.tones import table


@pytest.mark.parametrize(
    ("shape", "name", "cloud"),
    [
        ((512, 3), "npy", True), ((511, 3), "npy", False), ((512, 7), "npy", True), ((512, 8), "npy", False), ((512, 2), "npy", False),
        ((4, 3), "points.npy", True), ((3, 3), "points.npy", False), ((30, 3), "left.lidar_points.npy", True), ((30, 3), "XYZ.npy", True),
        ((9000, 3), "keypoints.npy", False), ((9000, 3), "actions.npy", False), ((512, 3, 1), "npy", False), ((40, 14), "", False),
    ],
)  # fmt: skip
def test_names_decide_before_numbers_do(shape, name, cloud):
    assert cloud is points.is_cloud(np.zeros(shape, np.float32), name)
    assert not points.is_cloud(np.zeros(shape, np.int32), name)


@pytest.mark.parametrize(
    ("shape", "steps"),
    [
        ((24, 1), True),
        ((23, 1), False),
        ((32, 16), True),
        ((31, 16), False),
        ((99, 17), False),
        ((24, 12), True),
        ((24, 13), False),
        ((99,), False),
    ],
)
def test_rows_of_few_fractions_are_steps(shape, steps):
    assert steps is points.are_steps(np.zeros(shape))
    assert not points.are_steps(np.zeros(shape, int))


class TestColumns:
    XYZ = {"x": np.array([1, 2]), "Y": np.array([3.0, 4.0]), "z": np.array([5, 6], np.int8)}

    @pytest.mark.parametrize(
        ("more", "behind"),
        [
            ({}, []),
            ({"intensity": [7, 8]}, [[7], [8]]),
            ({"i": [7, 8], "normal": [0, 0]}, [[7], [8]]),
            ({"red": [1, 2], "green": [3, 4], "blue": [5, 6], "intensity": [7, 8]}, [[1, 3, 5], [2, 4, 6]]),
            ({"r": [1, 2], "g": [3, 4], "b": [5, 6]}, [[1, 3, 5], [2, 4, 6]]),
            ({"red": [1, 2], "green": [3, 4]}, []),
            ({"rgb": np.array([0xFF8001, 0x0000FF], np.uint32), "intensity": [7, 8]}, [[255, 128, 1], [0, 0, 255]]),
            ({"rgba": np.array([0x7FFF8001, 0xFF], np.uint32).view(np.float32)}, [[255, 128, 1], [0, 0, 255]]),
            ({"red": [1, 2], "green": [3, 4], "blue": [5, 6], "rgb": np.array([9, 9], np.uint32)}, [[1, 3, 5], [2, 4, 6]]),
        ],
    )
    def test_places_come_before_colours_or_strength(self, more, behind):
        found = points.of_columns({**self.XYZ, **{name: np.asarray(values) for name, values in more.items()}})

        assert np.float32 == found.dtype
        assert [[1, 3, 5, *(behind[0] if behind else [])], [2, 4, 6, *(behind[1] if behind else [])]] == found.tolist()


class TestScans:
    @staticmethod
    def scan(count: int, columns: int = 4) -> np.ndarray:
        draw = np.random.default_rng(0)
        rows = np.concatenate([draw.normal(0, 10, (count, 3)), draw.uniform(0, 255, (count, 1))], axis=1)
        return np.concatenate([rows, np.arange(count)[:, None] % 32], axis=1)[:, :columns].astype("<f4")

    @pytest.mark.parametrize(
        ("count", "columns", "is_one"), [(256, 4, True), (255, 4, False), (256, 5, True), (255, 5, False), (5000, 5, True)]
    )
    def test_a_few_hundred_points_are_one(self, count, columns, is_one):
        found = points.of_scan(self.scan(count, columns).tobytes())

        assert is_one is (found is not None)
        if found is not None:
            np.testing.assert_array_equal(self.scan(count, columns), found)

    @pytest.mark.parametrize(
        ("column", "value"), [(0, 1000.0), (2, -1000.0), (1, np.nan), (3, -1.0), (3, 256.0), (4, 0.5), (4, 256.0), (4, -1.0), (0, None)]
    )
    def test_numbers_that_no_scanner_gives_are_none(self, column, value):
        scan = self.scan(300, 5)
        scan[:, column] = 7.0 if value is None else scan[:, column]
        scan[5, column] = 7.0 if value is None else value

        assert points.of_scan(scan.tobytes()) is None
        assert points.of_scan(self.scan(300, 5).tobytes() + b"x") is None


class TestThinned:
    def test_places_lie_within_one_and_are_coloured_by_height_or_strength(self):
        places, colours = points.thin(np.array([[0, 0, 0], [2, 4, 8], [np.nan, 0, 0]]))

        assert ([[-0.25, -0.5, -1], [0.25, 0.5, 1]], np.float32) == (places.tolist(), places.dtype)
        assert table("viridis")[[0, 255]].tolist() == colours.tolist()
        assert table("viridis")[[255, 0]].tolist() == points.thin(np.array([[0, 0, 0, 9], [2, 4, 8, 1]]))[1].tolist()
        assert (
            table("viridis")[[0, 0]].tolist()
            == points.thin(np.array([[0, 0, 0, 9, 1], [2, 4, 8, np.nan, 2]]) * [1, 1, 1, 0, 1])[1].tolist()
        )

    @pytest.mark.parametrize(
        ("last", "colours"),
        [
            ([[0, 0.5, 1], [1, 0, 0]], [[0, 127, 255], [255, 0, 0]]),
            ([[0, 127, 255], [2, 0, 0]], [[0, 127, 255], [2, 0, 0]]),
            ([[0, 1, 2], [2, 0, 0]], [[0, 1, 2], [2, 0, 0]]),
            ([[0, 0, 256], [0, 0, 0]], None),
            ([[0, 0, -1], [0, 0, 0]], None),
            ([[0, 0, np.inf], [0, 0, 0]], None),
        ],
    )
    def test_the_last_three_of_six_columns_are_colours_where_they_look_so(self, last, colours):
        array = np.concatenate([[[0, 0, 0], [2, 4, 8]], last], axis=1)

        assert (colours or table("viridis")[[0, 255]].tolist()) == points.thin(array)[1].tolist()

    def test_of_very_many_points_every_so_manyth_is_kept(self):
        array = np.arange(3 * (2 * points.MOST + 1), dtype=float).reshape(-1, 3)

        assert points.MOST == len(points.thin(array[: points.MOST])[0])
        assert points.MOST == len(points.thin(array[: 2 * points.MOST])[0])
        assert (2 * points.MOST + 3) // 3 == len(points.thin(array)[0])
        assert ((0, 3), (0, 3)) == tuple(part.shape for part in points.thin(np.full((30, 3), np.nan)))


class TestDrawn:
    def test_a_point_is_four_pixels_on_a_dark_ground(self):
        found = points.draw(np.ones((4, 3)), 40)

        assert {(20, 20), (20, 21), (21, 20), (21, 21)} == {
            tuple(each) for each in np.argwhere((found == (68, 1, 84)).all(axis=2)).tolist()
        }
        assert 1600 - 4 == int((found == (24, 26, 31)).all(axis=2).sum())
        assert (24, 26, 31) == tuple(np.unique(points.draw(np.full((9, 3), np.nan), 40).reshape(-1, 3), axis=0)[0])

    def test_near_points_are_over_far_ones(self):
        sight = np.array([np.sin(0.7), np.cos(0.7), np.tan(0.5)])  # as it is seen: to the side by 0.7, from above by 0.5
        near, far = [*-sight, 255, 0, 0], [*sight, 0, 0, 255]

        for cloud in ([near, far], [far, near]):
            assert (255, 0, 0) == tuple(points.draw(np.array(cloud), 40)[20, 20])

    def test_right_is_right_and_up_is_up(self):
        corners = {"origin": (0, 0, 0), "x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
        colours = np.eye(4, 3) * 255
        found = points.draw(np.concatenate([list(corners.values()), colours[[3, 0, 1, 2]]], axis=1), 100)
        places = {name: np.argwhere((found == colour).all(axis=2)).mean(axis=0) for name, colour in zip("xyz", colours[:3], strict=True)}

        assert places["z"][0] < places["x"][0] < places["y"][0]
        assert places["x"][1] > places["z"][1] > places["y"][1]
