"""The graph that workers of a tf.data service run, run here: by run and number what the graph of a dataset gives."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.types import Schema
from tarviz.ops.base import unpack
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.plans import ReaderPlan
from tarviz.runners.shares import ShareReader
from tarviz.runners.tf.served import places
from tarviz.samples import write_shard

pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
from tarviz.runners.tf import service, typed
from tarviz.runners.tf.steps import fields_read, steps, whole


def picture(seed: int, width: int = 40) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (32, width, 3), np.uint8)).save(stream, "JPEG")
    return stream.getvalue()


def elements(pipeline: Pipeline, calls: int | None = None) -> list[tuple[int, list[int], list[Any]]]:
    """(run, numbers, values) as workers would give them."""
    plan = pipeline.plan()
    fields = fields_read(pipeline, plan.fields, plan.needs)
    there = Schema({ext: plan.fields[ext] for ext in fields})
    schema = typed.find(pipeline, plan.schema, None, None)
    parts = steps(pipeline, there, schema, lambda: unpack(plan.first, plan.needs))
    where = places(pipeline, fields, ReaderPlan(pipeline, ShareReader()).pieces(0, 0), 0, ReadReport(), skip=False)
    made = service.graph(pipeline, where, list(fields), parts, whole(pipeline, there, schema).tensors, calls)
    return [(int(run), numbers.numpy().tolist(), [value.numpy() for value in values]) for run, numbers, values in made]


@pytest.mark.parametrize("calls", [None, 1])
def test_a_run_is_one_element_with_an_empty_one_behind_it(tmp_path: Path, calls: int | None) -> None:
    write_shard(tmp_path / "0.tar", [(f"r{n:02d}", {"jpg": picture(n), "cls": b"%d" % n}) for n in range(70)])
    write_shard(tmp_path / "1.tar", [("s00", {"jpg": picture(70), "cls": b"70"})])
    chain = "decode(jpg)|random_crop(jpg, (24, 24))|flip(jpg)|decode(cls)"
    select = ("jpg", {"label": "cls"}, "__key__", "__shard__", "__index__")
    pipeline = Pipeline(str(tmp_path / "{0..1}.tar"), chain, select=select, seed=3)

    found = elements(pipeline, calls)

    assert [(0, 64), (0, 0), (1, 6), (1, 0), (2, 1), (2, 0)] == [(run, len(numbers)) for run, numbers, _ in found]
    assert list(range(71)) == [number for _, numbers, _ in found for number in numbers]
    rows = [row for _, _, values in found for row in zip(*values, strict=True)]
    for (image, label, *where), expected in zip(rows, pipeline.tf(graph=True).as_numpy_iterator(), strict=True):
        np.testing.assert_array_equal(expected[0], image)
        assert (expected[1]["label"], *expected[2:]) == (label, *where)


def test_values_of_many_sizes_come_one_by_one_and_what_is_refused_does_not(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tar", [(f"r{n}", {"jpg": b"none" if n == 1 else picture(n, 30 + n), "txt": b"t" * n}) for n in range(4)])

    found = elements(Pipeline(tmp_path / "a.tar", "decode(jpg)", select=("txt", "jpg")))

    assert [[0], [2], [3], []] == [numbers for _, numbers, _ in found]
    assert [(1, 32, 30 + n, 3) for n in (0, 2, 3)] + [(0, 0, 0, 3)] == [values[1].shape for _, _, values in found]
    assert [b"", b"tt", b"ttt"] == [text for _, _, (texts, _) in found for text in texts]
