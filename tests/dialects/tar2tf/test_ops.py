"""tar2tf's ops over ours: ops around a function, an angle of 0, lists out of JSON."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.dialects.tar2tf import AisDataset, Dataset
from tarviz.dialects.tar2tf.ops import Convert, Func, Resize, Rotate, Select, SelectJSON

tf = pytest.importorskip("tensorflow", reason="tensorflow: pip install 'tarviz[tensorflow]'")


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """One shard of three records: `json` with a box, `cls`."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for at in range(3):
            for ext, data in {"json": json.dumps({"bbox": [at, 1, 2, 3.5]}).encode(), "cls": b"%d" % at}.items():
                info = tarfile.TarInfo(f"k{at}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return tmp_path


def image(record: dict[str, Any]) -> Any:
    return np.full((8, 6, 3), int(record["cls"]) * 10, np.uint8)


class TestOpsAroundAFunction:
    def test_work_on_its_value(self, bucket: Path) -> None:
        value = Convert(Resize(Func(image, "im"), (4, 4)), tf.float32)
        images = [pair[0].numpy() for pair in AisDataset(str(bucket), None, value, Select("cls")).load_from_tar("a.tar")]

        assert [(4, 4, 3)] * 3 == [each.shape for each in images]
        np.testing.assert_allclose([0, 10 / 255, 20 / 255], [each.mean() for each in images], rtol=1e-5)

    def test_stand_beside_it_in_a_list(self, bucket: Path) -> None:
        value = [Resize(Func(image, "im"), (4, 4)), Func(lambda record: tf.constant([1, 2]), "pair")]
        dataset = AisDataset(str(bucket), None, value, Select("cls"), num_workers=0)
        found, label = next(iter(dataset.load_from_tar("a.tar")))

        assert (4, 4, 3) == found["im"].shape
        assert [1, 2] == found["pair"].numpy().tolist()
        assert 0 == label.numpy()


@pytest.mark.matrix
def test_boxes_reach_the_model_typed(bucket: Path) -> None:
    dataset = Dataset(str(bucket), None, [], [SelectJSON("json", "bbox"), "cls"])
    made = dataset.load("a.tar", output_types=(tf.float32, tf.float32), output_shapes=([4], []), num_workers=0)

    assert [[at, 1, 2, 3.5] for at in range(3)] == [box.numpy().tolist() for box, _ in made]
    assert [0.0, 1.0, 2.0] == [cls.numpy() for _, cls in made]


def test_an_angle_of_0_is_random_here_only() -> None:
    from tarviz import ops

    assert 1 == Rotate("jpg").draws == Rotate("jpg", 0).draws == ops.Rotate("jpg").draws
    assert 0 == ops.Rotate("jpg", 0).draws
    picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    np.testing.assert_array_equal(picture, ops.Rotate("jpg", 0).apply(picture))
