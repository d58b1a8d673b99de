"""Batches of values that an engine made elsewhere, as columns for the graph; no framework yet."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.batch_memory import BatchMemory
from tarviz.runners.elsewhere import Elsewhere
from tarviz.runners.plans import ReaderPlan, Track
from tarviz.runners.tf.native import Columns, room, stacked
from tarviz.runners.tf.steps import GraphStep, paired
from tarviz.runners.walk import Walk
from tarviz.selection import SelectAll, Structure


def batches(
    pipeline: Pipeline,
    plan: ReaderPlan,
    step: GraphStep,
    schema: Structure,
    size: int,
    track: Track,
    *,
    elsewhere: Elsewhere,
    epoch: int,
    repeat: int | None,
    report: ReadReport,
    memory: BatchMemory,
) -> Generator[Columns, None, None]:
    """The values of a pipeline as columns of `size` records, fewer at the end. `step` is all of it, `schema` what it gives.

    They begin where `track` does, and it is told where each record stands.
    """
    away = replace(elsewhere, fit=functools.partial(fitted, step, schema), keeps=plan.shuffle > 1)
    walk = Walk(pipeline, shuffle=plan.shuffle, repeat=repeat, elsewhere=away)
    features = step.tensors
    trail, number = replace(track.trail), 0
    with closing(walk.values(plan, epoch, report, trail)) as values:
        while True:
            columns = [room(size, feature, memory) for feature in features]
            places: list[Mapping[str, Any]] = []
            for (turn, piece, behind), (where, made) in itertools.islice(values, size):
                track.note(number, turn, piece, np.array([behind - 1]), trail.versions)
                number += 1
                for column, value in zip(columns, made, strict=True):
                    column[len(places)] = value
                places.append(where)
            if not places:
                return
            whole = [column[: len(places)] for column in columns]
            yield [stacked(column, feature, places.__getitem__, step) for column, feature in zip(whole, features, strict=True)]


def fitted(step: GraphStep, schema: Structure, places: Mapping[str, Any], value: Any) -> tuple[Mapping[str, Any], list[Any]]:
    """Where a record is, and its values as they fit the tensors."""
    if isinstance(step.select, SelectAll):
        return places, step.fitted(places, lambda _, name: value[name])
    found = [one for _, one in paired(schema, value)]
    return places, step.fitted(places, lambda at, _: found[at])
