"""Types of what a dataset yields: given, or found in the first records; lists of varying lengths as ragged tensors, or padded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import tensorflow as tf

from tarviz.model.errors import TarvizError, UsageError
from tarviz.model.types import Feature, to_bytes
from tarviz.ops.base import FieldOp, unpack
from tarviz.ops.random_draws import draws
from tarviz.pipeline import Pipeline
from tarviz.runners.tf.steps import leaves, leaves_of, pair_up, refill
from tarviz.runners.tf.value_types import TEXT_END, Listed, feature, observe
from tarviz.selection import SelectJSON, Structure

_NO_ARRAY = ("bytes", "str")
_JSON = 256  # records looked at to type values that JSON holds
_WORKED = 4  # the same where the chain has to be run


def find(pipeline: Pipeline, schema: Structure, types: Any, shapes: Any, *, varies: bool = False, batched: bool = False) -> Structure:
    """The schema with types for JSON values and Python objects: those given, else those that fit the first records.

    With `varies`, arrays may have other sizes where `shapes` says None, else where the first records differ; batches of them are lists.
    """
    flat = leaves(schema)
    kinds, sizes = flat_types(schema, types), flat_shapes(schema, shapes)
    made: list[Feature] = []
    for at, (leaf, known) in enumerate(zip(leaves_of(pipeline.select, schema), flat, strict=True)):
        if not isinstance(leaf, SelectJSON) and known.dtype != "object":
            if known.dtype in _NO_ARRAY or not (varies or (sizes[at] is not None and not batched)):
                made.append(known)
                continue
            size = sizes[at]
            wide = _widen(known, _varying(pipeline, leaf, known) if size is None else size)
            made.append(feature(wide.dtype, wide.shape) if varies and batched else wide)
            continue
        seen = known
        if kinds[at] is None or sizes[at] is None:
            seen = observe(_sample(pipeline, leaf)) or known
        dtype = seen.dtype if kinds[at] is None else _name(kinds[at])
        size = sizes[at]
        shape = seen.shape if size is None else size
        made.append(feature(dtype, shape) if (dtype, shape) != (known.dtype, known.shape) else known)
    return refill(schema, made)


def _widen(known: Feature, shape: tuple[int | None, ...]) -> Feature:
    """The feature with None where `shape` has it; itself where that has another rank: the cast says what does not fit."""
    if len(shape) != len(known.shape):
        return known
    return Feature(known.dtype, tuple(None if n is None else m for n, m in zip(shape, known.shape, strict=True)))


def _varying(pipeline: Pipeline, leaf: Any, known: Feature) -> tuple[int | None, ...]:
    """The shape with None where the first records differ, and for the first axis of what no op types: the next record may be longer."""
    seen = [np.shape(value) for value in _sample(pipeline, leaf)]
    free = any(not op.typed for op in pipeline.chain)
    return tuple(None if (axis == 0 and free) or len({one[axis] for one in seen}) > 1 else n for axis, n in enumerate(known.shape))


def _name(kind: Any) -> str:
    dtype = tf.as_dtype(kind)
    return "str" if dtype == tf.string else str(dtype.name)


def _sample(pipeline: Pipeline, leaf: Any) -> Iterator[Any]:
    """Values of a leaf in the first records; where no op has touched its field, without the chain."""
    names = {part.strip() for part in leaf.ext.split(";")}
    raw = isinstance(leaf, SelectJSON) and all(isinstance(op, FieldOp) and not names & op.named for op in pipeline.chain)
    for record in itertools.islice(pipeline._peek()[1], _JSON if raw else _WORKED):
        if raw:
            yield leaf.pick(unpack(record, names))
        else:
            drawn = draws(pipeline.chain, [to_bytes(record.key)], pipeline.seed)[0]
            with suppress(*([TarvizError] if pipeline.options.on_error == "skip" else [])):
                yield leaf.pick(pipeline.chain.run(unpack(record, pipeline.needs), drawn))


def flat_types(schema: Structure, types: Any) -> list[Any]:
    """The types given, one for each leaf; None where none is."""
    count, found = len(leaves(schema)), _flat(schema, types)
    if len(found) != count:
        raise UsageError(f"The selections make {count} values; there are {len(found)} output_types.")
    return found


def _flat(structure: Structure, given: Any) -> list[Any]:
    if isinstance(structure, Mapping) and isinstance(given, Mapping):
        return [kind for name, part in structure.items() for kind in _flat(part, given.get(name))]
    if isinstance(structure, tuple | list) and isinstance(given, tuple | list):
        if len(structure) != len(given):
            return [kind for part in given for kind in leaves(part)]
        return [kind for part, inner in zip(structure, given, strict=True) for kind in _flat(part, inner)]
    return [None] * len(leaves(structure)) if given is None else [given]


def flat_shapes(schema: Structure, shapes: Any) -> list[tuple[int | None, ...] | None]:
    """The shapes given, one for each leaf; None where none is."""
    if shapes is None:
        return [None] * len(leaves(schema))
    if isinstance(schema, Mapping):
        return [size for name, part in schema.items() for size in flat_shapes(part, shapes.get(name))]
    if isinstance(schema, tuple | list):
        if len(schema) != len(shapes):
            raise UsageError(f"The selections make {len(schema)} values; there are {len(shapes)} output_shapes.")
        return [size for part, inner in zip(schema, shapes, strict=True) for size in flat_shapes(part, inner)]
    shape = tf.TensorShape(shapes)
    return [None if shape.rank is None else tuple(shape.as_list())]


def open_lists(schema: Structure, values: Any, *, batched: bool, pad: Any) -> Any:
    """Tensors of lists out of the bytes they travelled in (`value_types.pack`); `values` has a tuple of strings for each."""
    parts = pair_up(schema, values)
    return refill(schema, [_open_list(part, known, batched, pad) if isinstance(known, Listed) else part for known, part in parts])


def _open_list(parts: Any, listed: Listed, batched: bool, pad: Any) -> Any:
    texts, *counts = (tf.strings.reduce_join(part) for part in parts)
    lengths = [tf.io.decode_raw(part, tf.int64) for part in counts]
    if listed.dtype in ("str", "bytes"):
        flat = tf.strings.split(texts, TEXT_END)[:-1]
    else:
        flat = tf.reshape(_numbers(texts, tf.as_dtype(listed.dtype)), [-1, *listed.inner])
    if not batched:
        lengths = lengths[1:]
    made = tf.RaggedTensor.from_nested_row_lengths(flat, lengths, validate=False) if lengths else flat
    if pad is None or not lengths:
        return made
    of_text = made.dtype == tf.string
    if pad is True or of_text != isinstance(pad, str | bytes):  # by nothing: 0, False, ""
        return made.to_tensor()
    return made.to_tensor(pad if of_text else tf.cast(pad, made.dtype))


def _numbers(data: Any, dtype: Any) -> Any:
    wide = {tf.uint32: tf.int32, tf.uint64: tf.int64}.get(dtype)
    return tf.io.decode_raw(data, dtype) if wide is None else tf.bitcast(tf.io.decode_raw(data, wide), dtype)


def cast(schema: Structure, values: Any, types: Any, shapes: Any) -> Any:
    """Tensors with the given dtypes and shapes; a string becomes a number by its ASCII digits."""

    def one(value: Any, kind: Any, shape: Any) -> Any:
        if kind is not None and value.dtype != kind:
            dtype = tf.as_dtype(kind)
            if dtype == tf.string:
                raise UsageError(f"output_types asks for tf.string where the pipeline makes {value.dtype.name}.")
            value = _number(value, dtype) if value.dtype == tf.string else tf.cast(value, dtype)
        return value if shape is None or isinstance(value, tf.RaggedTensor) else tf.ensure_shape(value, shape)

    kinds, sizes = flat_types(schema, types), flat_shapes(schema, shapes)
    flat = [value for _, value in pair_up(schema, values)]
    return refill(schema, [one(*each) for each in zip(flat, kinds, sizes, strict=True)])


def _number(text: Any, dtype: Any) -> Any:
    """The number that a string holds in ASCII; `string_to_number` knows four dtypes, the others go through the widest."""
    wide = dtype if dtype in (tf.float32, tf.float64, tf.int32, tf.int64) else tf.float64 if dtype.is_floating else tf.int64
    return tf.cast(tf.strings.to_number(tf.strings.strip(text), wide), dtype)
