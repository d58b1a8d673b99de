"""Chains: ops in a row, as a value; read from text, checked against a schema, run, and traced step by step."""

from __future__ import annotations

import difflib
import inspect
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, starmap
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from tarviz.model import plugins
from tarviz.model.errors import ChainError, DataError, SchemaError, TarvizError
from tarviz.model.types import PLACES, Feature, Record, Schema, rich_form, to_bytes
from tarviz.ops.base import Draw, FieldOp, Op, feature_of, unpack
from tarviz.ops.chain_text import Call, error_at, parse_calls
from tarviz.ops.random_draws import draws

if TYPE_CHECKING:
    from tarviz.ops.joints import JointPlace

Chainable: TypeAlias = Union[str, Op, "Chain", Iterable[Union[str, Op, "Chain"]], None]


@dataclass(frozen=True, slots=True, init=False)
class Chain(Sequence[Op]):
    """Ops in a row. `Chain.of` makes one from text, an op, or any mix of them.

    >>> chain = Chain.of("decode(jpg)|resize(jpg, (32, 32))")
    >>> print(chain.schema(Schema(jpg=Feature("bytes"), cls=Feature("bytes"))))
    jpg: uint8[32, 32, 3], cls: bytes
    """

    ops: tuple[Op, ...]
    draws: int = field(init=False, repr=False, compare=False)
    """How many random numbers the chain needs for one record."""
    draw_slices: tuple[slice, ...] = field(init=False, repr=False, compare=False)
    """Which columns of `ops.draws` belong to each op; an empty slice where an op draws nothing."""
    _joints: Mapping[int, JointPlace] | None = field(init=False, repr=False, compare=False)

    def __init__(self, *ops: Op) -> None:
        for op in ops:
            if not isinstance(op, Op):
                raise ChainError(f"A chain is made of ops, got {op!r}.", hint='Chain.of("decode(jpg)") reads text.')
        joined: list[Op] = []
        for op in ops:
            for step in op.steps:
                joined.append(step.after(joined))
        ends = list(accumulate((op.draws for op in joined), initial=0))
        object.__setattr__(self, "ops", tuple(joined))
        object.__setattr__(self, "draws", ends[-1])
        object.__setattr__(self, "draw_slices", tuple(starmap(slice, pairwise(ends))))
        object.__setattr__(self, "_joints", None if joined else {})

    @classmethod
    def of(cls, source: Chainable) -> Chain:
        """A chain from chain text, an op, a chain, or several of these; None is the empty chain."""
        if isinstance(source, Chain):
            return source
        if source is None:
            return cls()
        if isinstance(source, str):
            return parse_chain(source)
        if isinstance(source, Op):
            return cls(source)
        if not isinstance(source, Iterable):
            raise ChainError(f"A chain is text, an op or a list of ops, got {source!r}.")
        return cls(*(op for part in source for op in (cls.of(part) if isinstance(part, str | Chain) else (part,))))

    def __getitem__(self, index: Any) -> Any:
        return Chain(*self.ops[index]) if isinstance(index, slice) else self.ops[index]

    def __len__(self) -> int:
        return len(self.ops)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __str__(self) -> str:
        return "|".join(str(op.without(self.ops[:at])) for at, op in enumerate(self.ops))

    def __repr__(self) -> str:
        return f"Chain.of({str(self)!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return rich_form(self)

    def needs(self, wanted: Iterable[str] | None = None) -> frozenset[str] | None:
        """The fields that must be read for `wanted` to be there after the chain. None means all."""
        needed = None if wanted is None else frozenset(wanted)
        for op in reversed(self.ops):
            needed = op.needs(needed)
        return None if needed is None else frozenset(name for name in needed if name not in PLACES)

    def schema(self, fields: Schema, probe: Callable[[], Mapping[str, Any]] | None = None) -> Schema:
        """The schema after the chain, found without decoding a byte.

        An op whose result cannot be known beforehand (a `Func` without `output_types`, a decoded `npy`) is run
        on the record that `probe` returns. `SchemaError` names the op that does not fit and the cure.
        """
        schema = fields
        for number, op in enumerate(self.ops):
            guess = op.run_schema(schema)
            if not op.typed:
                if probe is None:
                    raise SchemaError(f"{op} does not say what it returns.", hint="Give it output_types, or a record to try it on.")
                before = self[:number].run(probe())
                guess = _observe(op, before, self[number : number + 1].run(before), schema)
            schema = guess
        return schema

    def run(
        self,
        record: Mapping[str, Any],
        drawn: NDArray[np.float64] | None = None,
        room: Mapping[str, NDArray[Any]] | None = None,
        done: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """The record after the chain, a new dict. `drawn` is the record's row of `ops.draws` (left out: seed 0).

        `room` offers memory for the values of fields, arrays in C order: a value that fits may be written there, and is then that array.
        `done` is called after each step with the number of its first op and of the one after its last: some are done together.
        What an op raises reaches the caller as `TarvizError` with op, shard and key filled in.
        """
        result = unpack(record) if isinstance(record, Record) else dict(record)
        if drawn is None and self.draws:
            drawn = _draw(self, result, 0, 0)
        joints, after = self._find_joints(), 0  # the ops before `after` are done
        for number, (op, piece) in enumerate(zip(self.ops, self.draw_slices, strict=True)):
            if number < after:
                continue
            if joined := joints.get(number):
                ahead = None if drawn is None else drawn[piece.start :]
                if (made := joined.joint.run(result, ahead, room if room and joined.last else {})) is not None:
                    result, after = made, number + joined.joint.ops
                    if done is not None:
                        done(number, after)
                    continue
            result = run_step(op, result, _part(drawn, piece))
            if done is not None:
                done(number, number + 1)
        return result

    @property
    def in_place(self) -> frozenset[str]:
        """The fields whose values `run` can write into `room`."""
        return frozenset().union(*(joined.names for joined in self._find_joints().values() if joined.last))

    def _find_joints(self) -> Mapping[int, JointPlace]:
        """Where ops are done together; found when the chain runs first, since the ops' libraries are loaded for it."""
        if self._joints is None:
            from tarviz.ops.joints import joints

            object.__setattr__(self, "_joints", joints(self.ops))
        return self._joints or {}

    def trace(self, record: Mapping[str, Any], seed: int = 0, epoch: int = 0) -> Iterator[Step]:
        """The steps of `run`, one by one, each with its value, time and random numbers; one pass.

        An op that fails yields a step with its error, and is the last.
        """
        current = unpack(record) if isinstance(record, Record) else dict(record)
        drawn = _draw(self, current, seed, epoch)
        for op, piece in zip(self.ops, self.draw_slices, strict=True):
            draw = _part(drawn, piece)
            words = op.describe_draw(draw) if draw is not None else ""
            begin = time.perf_counter()
            try:
                result = run_step(op, current, draw)
            except TarvizError as error:
                yield Step(op, current, (), words, draw, time.perf_counter() - begin, error)
                return
            seconds = time.perf_counter() - begin
            if isinstance(op, FieldOp):
                fields = op.changed_fields(current)
            else:
                fields = tuple(name for name, value in result.items() if current.get(name, _ABSENT) is not value)
            current = result
            yield Step(op, current, fields, words, draw, seconds, None)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One op of a traced chain: the record after it, the fields it worked on, what it drew, and how long it took.

    With `error` set, the record is the one before the op.
    """

    op: Op
    record: dict[str, Any]
    fields: tuple[str, ...]
    drawn: str
    draw: Draw | None
    seconds: float
    error: TarvizError | None

    @property
    def value(self) -> Any:
        """The value of the field the op worked on (the first that it set, of several); None when there is none."""
        return self.record[self.fields[0]] if self.fields else None

    @property
    def feature(self) -> Feature | None:
        """Dtype and shape of `value`."""
        return feature_of(self.value) if self.fields else None


_ABSENT = object()


def parse_chain(text: str) -> Chain:
    """The chain that a text says.

    >>> parse_chain("decode(jpg) | resize(jpg, (32, 32))")[1].size
    (32, 32)
    """
    return Chain(*(_op(call, text) for call in parse_calls(text)))


def plugin_of(class_name: str) -> str | None:
    """The op named by its class: `CenterCrop` → `center_crop`; None when there is none."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()
    return name if class_name[:1].isupper() and name in plugins.names("ops") else None


def class_of(name: str) -> type[Op]:
    """The class of the op `name`, imported now."""
    found = plugins.load("ops", name)
    if inspect.isclass(found) and issubclass(found, Op):
        return found
    for value in vars(found).values():
        if inspect.isclass(value) and issubclass(value, Op) and getattr(value, "name", None) == name:
            return value
    raise ChainError(f"{found.__name__} holds no op of the name {name!r}.", hint="The name is what its class has as `name`.")


def _op(call: Call, text: str) -> Op:
    names = plugins.names("ops")
    if call.name not in names:
        raise _unknown(call, text, names)
    kind = class_of(call.name)
    args = [_op(value, text) if isinstance(value, Call) else value for value in call.args]
    keywords = {name: _op(value, text) if isinstance(value, Call) else value for name, value in call.keywords.items()}
    try:
        inspect.signature(kind).bind(*args, **keywords)
    except TypeError as error:
        raise error_at(f"{call.name}: {error}", text, call.at, hint=f"It is {_usage(call.name, kind)}.") from None
    try:
        return kind(*args, **keywords)
    except ChainError as error:
        raise error.at(hint=f"It is {_usage(call.name, kind)}.") from None


def _unknown(call: Call, text: str, names: tuple[str, ...]) -> ChainError:
    lowered = plugin_of(call.name) or call.name.lower()
    close = [lowered] if lowered in names else difflib.get_close_matches(lowered, names, cutoff=0.5)
    meant = f"Did you mean {close[0]}? " if close else ""
    return error_at(f"there is no op named {call.name!r}", text, call.at, hint=f"{meant}The ops are {', '.join(names)}.")


def _usage(name: str, kind: type[Op]) -> str:
    parts = []
    for part in inspect.signature(kind).parameters.values():
        mark = "*" if part.kind is part.VAR_POSITIONAL else "**" if part.kind is part.VAR_KEYWORD else ""
        default = "" if part.default is part.empty else f"={part.default!r}"
        parts.append(f"{mark}{part.name}{default}")
    return f"{name}({', '.join(parts)})"


def _part(drawn: NDArray[np.float64] | None, piece: slice) -> Draw | None:
    """The numbers of one op; None where it draws none."""
    return None if drawn is None or piece.start == piece.stop else drawn[piece]


def _draw(chain: Chain, record: Mapping[str, Any], seed: int, epoch: int) -> NDArray[np.float64]:
    return np.asarray(draws(chain, [to_bytes(str(record.get("__key__", "")))], seed, epoch)[0])


def _observe(op: Op, before: dict[str, Any], after: dict[str, Any], schema: Schema) -> Schema:
    """The schema of `after`: fields the op left alone keep what is known of them."""
    return Schema(
        {
            name: schema[name] if name in schema and before.get(name, _ABSENT) is value else op.generalize(feature_of(value))
            for name, value in after.items()
            if name not in PLACES
        }
    )


def run_step(op: Op, record: dict[str, Any], draw: Draw | None) -> dict[str, Any]:
    try:
        return op.run(record, draw)
    except TarvizError as error:
        if "op" not in error.details:  # one that `unfit` made says it itself
            error.message, error.details["op"] = f"{op}: {error.message}", str(op)
        skip = 'on_error="skip" leaves such records out.' if isinstance(error, DataError) else None
        raise error.at(shard=record.get("__shard__"), key=record.get("__key__"), hint=skip) from error.__cause__
    except Exception as error:  # a Func or a foreign op may raise anything; it goes on, with its place
        message = f"{op} failed: {type(error).__name__}: {error}"
        place = {"shard": record.get("__shard__"), "key": record.get("__key__")}
        raise DataError(message, code="E_OP", details={"op": str(op)}, **place) from error
