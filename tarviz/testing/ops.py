"""What every op keeps to, as tests: derive a class from `OpTests`, say which op, and what it accepts."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from copy import deepcopy
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np
import pytest

from tarviz.model.errors import TarvizError
from tarviz.model.types import PLACES, Feature, Schema
from tarviz.ops import Chain, FieldOp, Func, Op, draws, parse_chain
from tarviz.ops.base import feature_of

_KEYS = (b"train/0001", b"train/0002", "gr\u00fcn".encode())
_SIZES = ((7, 5), (32, 48), (61, 40))


def noise(feature: Feature, seed: int = 0, sizes: tuple[tuple[int, int], ...] = _SIZES) -> list[Any]:
    """Example values of a feature of numbers: arrays of smooth noise, None in its shape replaced by each of `sizes` (3 from the third axis
    on); numbers for `()`.

    Integers fill the range of their dtype, floats 0…1.
    """
    random = np.random.default_rng(seed)
    dtype = np.dtype(feature.dtype)

    def scale(values: Any) -> Any:
        return values.astype(dtype) if dtype.kind == "f" else (values * (float(np.iinfo(dtype).max) * 0.999)).astype(dtype)

    if not feature.shape:
        return [scale(random.random(()))[()] for _ in sizes]
    values = []
    for size in sizes:
        shape = [at if known is None else known for known, at in zip_longest(feature.shape, size[: len(feature.shape)], fillvalue=3)]
        coarse = random.random([-(-length // 8) for length in shape[:2]] + shape[2:])
        for axis in range(len(shape[:2])):
            coarse = coarse.repeat(8, axis)
        smooth = coarse[tuple(map(slice, shape))]
        values.append(scale(smooth * 0.7 + random.random(smooth.shape) * 0.3))
    return values


class OpTests:
    """The contract of an op. `op` is the one under test.

    A field op says in `accepts` the feature it takes; override `values` where random arrays of that feature will not do. A record
    op overrides `records`. `tf_atol` is how far the graph may be off: in the value's units for floats, in steps for integers.
    `fails_on` is a record the op refuses; None where it refuses none. Where a library of the world makes the same of a record
    (PIL, tifffile, soundfile, PyAV, librosa), let `oracle` ask it; `oracle_atol` is how far the op may be from what it says.
    """

    op: ClassVar[Op]
    accepts: ClassVar[Feature] = Feature("uint8", (None, None, 3))
    tf_atol: ClassVar[float] = 0
    oracle_atol: ClassVar[float] = 0
    fails_on: ClassVar[dict[str, Any] | None] = {}

    def values(self) -> Iterable[Any]:
        """Values of the field that the op takes."""
        return noise(self.accepts)

    def records(self) -> list[dict[str, Any]]:
        """Records that the op takes, all of one schema."""
        assert isinstance(self.op, FieldOp)
        ext = self.op.exts[0]
        places = [{"__key__": key.decode(), "__shard__": "a.tar", "__index__": at} for at, key in enumerate(_KEYS)]
        return [{**place, ext: value, "other": b"left alone"} for place, value in zip(places, self.values(), strict=False)]

    def schema(self) -> Schema:
        """The schema of `records`."""
        assert isinstance(self.op, FieldOp)
        return Schema({self.op.exts[0]: self.accepts, "other": Feature("bytes")})

    def oracle(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """What another library makes of fields of a record; None where none says."""
        return None

    def draws(self) -> Any:
        """Random numbers for `records`, one row each."""
        return draws(Chain.of(self.op), [record["__key__"].encode() for record in self.records()], seed=3)

    def test_its_text_reads_back(self) -> None:
        if isinstance(self.op, Func):
            pytest.skip("a function has no text")

        assert Chain(self.op) == parse_chain(str(self.op))

    def test_it_pickles(self) -> None:
        assert self.op == _copy(self.op)

    def test_it_is_hashable(self) -> None:
        assert hash(self.op) == hash(_copy(self.op))

    def test_it_is_documented(self) -> None:
        assert (type(self.op).__doc__ or "").strip()
        assert not str(type(self.op).__doc__).startswith(f"{type(self.op).__name__}(")

    def test_the_input_is_left_unchanged(self) -> None:
        for record, drawn in zip(self.records(), self.draws(), strict=True):
            copy = deepcopy(record)
            names = list(record)

            self.op.run(record, drawn)

            assert names == list(record)
            for name, value in copy.items():
                if isinstance(value, np.ndarray):
                    np.testing.assert_array_equal(value, record[name])
                else:
                    assert repr(value) == repr(record[name])

    def test_the_same_value_and_numbers_give_the_same(self) -> None:
        assert self.records()
        for record, drawn in zip(self.records(), self.draws(), strict=True):
            result = self.op.run(record, drawn)

            assert record.keys() & PLACES <= result.keys()
            np.testing.assert_equal(self.op.run(record, drawn), result)

    def test_another_library_makes_the_same(self) -> None:
        asked = [(record, expected) for record in self.records() if (expected := self.oracle(record)) is not None]
        if not asked:
            pytest.skip("no other library says what the op makes")
        for record, expected in asked:
            result = self.op.run(record, self.draws()[0])
            for name, value in expected.items():
                _assert_near(value, result[name], self.oracle_atol, name)

    def test_it_needs_what_it_says(self) -> None:
        for record, drawn in zip(self.records(), self.draws(), strict=True):
            for name, value in self.op.run(record, drawn).items():
                needed = self.op.needs(frozenset({name}) - {*PLACES})
                read = {each: value for each, value in record.items() if needed is None or each in needed or each in PLACES}
                np.testing.assert_equal(self.op.run(read, drawn)[name], value)

    def test_infer_predicts_dtype_and_shape(self) -> None:
        if not self.op.typed:
            pytest.skip("the op is tried on a record")
        schema = self.op.run_schema(self.schema())
        for record, drawn in zip(self.records(), self.draws(), strict=True):
            result = self.op.run(record, drawn)

            assert set(schema) == {name for name in result if name not in PLACES}
            for name, feature in schema.items():
                _assert_fits(feature, result[name], name)

    def test_results_are_writable(self) -> None:
        for record, drawn in zip(self.records(), self.draws(), strict=True):
            for value in self.op.run(record, drawn).values():
                assert not isinstance(value, np.ndarray) or value.flags.writeable

    def test_eager_equals_the_graph(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        if not self.op.lowers:
            pytest.skip("the op has no lowering")
        predicted = self.op.run_schema(self.schema())
        dtypes = {ext: tf.string if feature.dtype in ("bytes", "str") else feature.dtype for ext, feature in self.schema().items()}
        fields = {ext: tf.TensorSpec(feature.shape, dtypes[ext]) for ext, feature in self.schema().items()}
        graph = tf.function(self.op.run_tf, input_signature=[fields, tf.TensorSpec([self.op.draws], tf.float64)])  # type: ignore[attr-defined]
        outputs = graph.get_concrete_function().structured_outputs

        for record, drawn in zip(self.records(), self.draws(), strict=True):
            expected = {name: value for name, value in self.op.run(record, drawn).items() if name not in PLACES}
            actual = graph({name: tf.constant(record[name]) for name in fields}, drawn)

            assert set(expected) == set(actual)
            for name, value in expected.items():
                _assert_near(value, actual[name].numpy(), self.tf_atol, name)
                assert outputs[name].shape.is_compatible_with(list(predicted[name].shape)), name

    def test_the_same_key_draws_the_same(self) -> None:
        if not self.op.draws:
            pytest.skip("the op draws nothing")
        chain, keys = Chain.of(self.op), list(_KEYS)
        block = draws(chain, keys, seed=7, epoch=2)

        assert (len(keys), self.op.draws) == block.shape
        for at, key in enumerate(keys):
            np.testing.assert_array_equal(block[at], draws(chain, [key], seed=7, epoch=2)[0])
        assert not np.array_equal(block, draws(chain, keys, seed=7, epoch=3))
        assert not np.array_equal(block, draws(chain, keys, seed=8, epoch=2))
        assert self.op.describe_draw(block[0])

    def test_a_failure_names_op_shard_and_key(self) -> None:
        if self.fails_on is None:
            pytest.skip("the op refuses no record")
        place = {"__key__": "train/0001", "__shard__": "shards/a.tar", "__index__": 0}
        with pytest.raises(TarvizError) as caught:
            Chain(self.op).run({**place, **self.fails_on})

        assert caught.value.key == "train/0001"
        assert caught.value.shard == "shards/a.tar"
        assert str(self.op) == caught.value.details["op"]
        assert self.op.name in str(caught.value)


def _copy(op: Op) -> Any:
    return pickle.loads(pickle.dumps(op))  # noqa: S301  made one line before


def _assert_fits(feature: Feature, value: Any, name: str) -> None:
    actual = feature_of(value)
    if feature.dtype == "object":
        return
    assert feature.dtype == actual.dtype, name
    assert len(feature.shape) == len(actual.shape), name
    assert all(known in (None, size) for known, size in zip(feature.shape, actual.shape, strict=True)), name


def _assert_near(expected: Any, actual: Any, atol: float, name: str) -> None:
    if isinstance(expected, str):
        expected = expected.encode()
    if isinstance(expected, bytes | bytearray | memoryview):
        assert bytes(expected) == (actual.encode() if isinstance(actual, str) else bytes(actual)), name
        return
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape), name
    np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=0, atol=atol, err_msg=name)
