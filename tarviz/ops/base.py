"""What an op is: `Op`, and its two kinds `FieldOp` (one field) and `RecordOp` (the whole record)."""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import PLACES, Feature, Record, Schema
from tarviz.ops.chain_text import print_call
from tarviz.ops.values.payloads import kind_of

Draw: TypeAlias = NDArray[np.float64]


@cache
def _alternatives(names: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in names.split(";"))


def unpack(record: Record, needs: Collection[str] | None = None, taken: Callable[[memoryview], bytes] = bytes) -> dict[str, Any]:
    """The plain dict that ops work on: `__key__`, `__shard__`, `__index__`, then the fields as bytes of their own.

    `needs` leaves out the fields nobody asks for, `taken` makes the bytes of a payload. `SchemaError` where one of the others has the name
    of one of the three.
    """
    places: dict[str, Any] = {"__key__": record.key, "__shard__": record.shard, "__index__": record.index}
    for ext in record:
        if needs is not None and ext not in needs:
            continue
        if ext in PLACES:
            raise taken_place(ext).at(shard=record.shard, key=record.key)
        places[ext] = taken(record[ext])
    return places


def taken_place(ext: str) -> SchemaError:
    """The error for a field that is named like what a record says of itself."""
    return SchemaError(
        f"a field is named {ext!r}, which is where an op finds the record's own {ext.strip('_')}.",
        details={"field": ext},
        hint=f"Leave it out: tarviz cat --drop {ext} …, or select other fields.",
    )


def names_of(fields: Iterable[str]) -> list[str]:
    """The fields among the names of a record as a dict: all but `PLACES`."""
    return [name for name in fields if name not in PLACES]


_ONE_KIND = ("picture", "sound", "film")


def unfit(op: object, what: str, *, field: str | None = None, hint: str | None = None) -> SchemaError:
    """The error of an op that does not go with what it gets, which says its name: `resize(jpg, (32, 32)) expects an image`."""
    details = {"op": str(op), "field": field or getattr(op, "ext", None)}
    return SchemaError(f"{op} {what}", details={name: text for name, text in details.items() if text}, hint=hint)


def missing(what: object, ext: str, there: Iterable[str]) -> SchemaError:
    """The error for a field that is not there, naming what is (of a record whose other fields are not read: of those that are)."""
    names = names_of(there)
    close = difflib.get_close_matches(ext, names)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    text = f"expects a field {ext!r}; there are {', '.join(names) or 'none'}.{meant}"
    return unfit(what, text, field=ext, hint=another_name(ext, names))


def another_name(ext: str, there: Iterable[str]) -> str | None:
    """How to take a field that a record has under another ending of the same kind of file (`jpeg` where `jpg` is asked for); None: none."""
    asked = ext.split(";")
    base, _, last = asked[0].rpartition(".")
    kind = kind_of(last)
    same = [name for name in there if kind in _ONE_KIND and kind_of(name) == kind and name.rpartition(".")[0] == base and name not in asked]
    return f'Where a picture has several endings name all of them: "{";".join((*asked, *same))}".' if same else None


@cache
def in_graph(kind: type[Op], eager: str = "apply", graph: str = "apply_tf") -> bool:
    """Whether a class of ops says what it does inside a TensorFlow graph; one that changes only what it does outside of it does not."""
    return next((graph in vars(each) for each in kind.__mro__ if {eager, graph} & vars(each).keys()), False)


def feature_of(value: Any) -> Feature:
    """The feature that a value is an example of.

    >>> print(feature_of(np.zeros((2, 3), np.uint8)))
    uint8[2, 3]
    """
    if isinstance(value, np.ndarray | np.generic):
        return Feature(str(value.dtype), tuple(value.shape))
    if isinstance(value, bytes | bytearray | memoryview):
        return Feature("bytes")
    for kind, dtype in ((bool, "bool"), (int, "int64"), (float, "float64"), (str, "str")):
        if isinstance(value, kind):
            return Feature(dtype)
    return Feature("object")


class Op(ABC):
    """One step of a chain, as a value: it compares, pickles, and prints as chain text.

    `name` is the op's name in chain text. Executors call `run`, `run_schema` and, where `lowers` is true, `run_tf`.
    """

    __slots__ = ()

    name: ClassVar[str]

    @property
    def draws(self) -> int:
        """How many random numbers in [0, 1) the op needs for one record."""
        return 0

    @property
    def typed(self) -> bool:
        """Whether `run_schema` knows the result without looking at a record."""
        return True

    def generalize(self, seen: Feature) -> Feature:
        """What is known of a field of all records from that of one, where `typed` is false."""
        return seen

    @property
    def lowers(self) -> bool:
        """Whether `run_tf` can do this op inside a TensorFlow graph."""
        return in_graph(type(self))

    def lowers_on(self, schema: Schema) -> bool:
        """Whether it can on fields of that schema."""
        return self.lowers

    def native(self, feature: Feature) -> bool:
        """Whether `run` works on such a field in native code that lets go of the interpreter, faster than TensorFlow does the same."""
        return False

    @property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Names that stand for one field, as the op reads them: of each, the first that a record has."""
        return ()

    @property
    def new_names(self) -> frozenset[str]:
        """Names that stand for something else behind the op than before it."""
        return frozenset()

    @property
    def made(self) -> str | None:
        """The one field that the op makes, where ops may stand around it (`Resize(Decode("jpg"), …)`)."""
        return None

    @property
    def steps(self) -> tuple[Op, ...]:
        """The ops this one stands for: itself, after the one it was built around (`Resize(Decode("jpg"), …)`)."""
        return (self,)

    def after(self, before: Sequence[Op]) -> Op:
        """The op as it stands in a chain behind `before`, some of which say things for those after them (`carry`)."""
        return self

    def without(self, before: Sequence[Op]) -> Op:
        """The op without what those `before` it in a chain say for it."""
        return self

    @abstractmethod
    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        """The record after the op, a new dict; `draw` holds the op's random numbers, float64 [draws]."""

    @abstractmethod
    def run_schema(self, schema: Schema) -> Schema:
        """The schema after the op. `SchemaError` when the op does not fit, `ValueError` never."""

    @abstractmethod
    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        """The fields needed before the op, when `wanted` are needed after it. None means all of them."""

    def describe_draw(self, draw: Draw) -> str:
        """The random numbers in words, as the op uses them: `"flipped"`, `"rotated by 213.4°"`."""
        return ", ".join(f"{value:.3f}" for value in draw)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments that make this op; defaults are left out."""
        positional: list[Any] = []
        keyword: dict[str, Any] = {}
        pending: list[Any] = []
        for part in fields(self):  # type: ignore[arg-type]
            if not part.init:
                continue
            value = getattr(self, part.name)
            if part.kw_only:
                if value != part.default:
                    keyword[part.name] = value
                continue
            pending.append(value)
            if value != part.default:
                positional += pending
                pending = []
        return positional, keyword

    def __str__(self) -> str:
        return print_call(self.name, *self.arguments())


@dataclass(frozen=True, slots=True)
class FieldOp(Op):
    """An op on one field. `ext` names it; of alternatives (`"jpg;jpeg;png"`) the first that the record has.

    An op in place of `ext` is done before, on the same field: `Resize(Decode("jpg"), (32, 32))`.
    """

    ext: str
    of: Op | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        inner: Any = self.ext
        if isinstance(inner, Op) and inner.made is not None:
            object.__setattr__(self, "of", inner)
            object.__setattr__(self, "ext", inner.made)
        if not isinstance(self.ext, str) or not self.ext:
            raise ChainError(f"{self.name} needs the name of a field, got {self.ext!r}.", hint=f'For example {self.name}("jpg", …).')
        self.check()

    def check(self) -> None:
        """Refuses arguments that cannot work (`ChainError`) and brings the rest into one form."""

    def put(self, name: str, value: Any) -> None:
        """Sets an argument in `check`, while the op is being made."""
        object.__setattr__(self, name, value)

    def check_number(self, name: str, least: float | None = None, most: float = math.inf, *, whole: bool = False) -> None:
        """`ChainError` unless the argument `name` is a number, `whole` or not, from `least` to `most`; without `least` above 0."""
        value = getattr(self, name)
        kind = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not kind or not (value > 0 if least is None else value >= least) or value > most:
            bounds = "above 0" if least is None else f"from {least} on" if most == math.inf else f"from {least} to {most}"
            raise ChainError(f"{self.name} expects {name} as a {'whole ' if whole else ''}number {bounds}, got {value!r}.")

    @abstractmethod
    def apply(self, value: Any, draw: Draw | None = None) -> Any:
        """The op's meaning: the field's value after the op. The value given stays as it is."""

    @abstractmethod
    def infer(self, feature: Feature) -> Feature:
        """What `apply` makes of a feature. `SchemaError` names the cure when it cannot work."""

    @property
    def steps(self) -> tuple[Op, ...]:
        return (*self.of.steps, replace(self)) if self.of is not None else (self,)

    @property
    def made(self) -> str | None:
        return self.ext

    @property
    def exts(self) -> tuple[str, ...]:
        """The alternatives that `ext` names."""
        return _alternatives(self.ext)

    @property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        return (self.exts,)

    def field(self, there: Mapping[str, Any]) -> str:
        """The field the op works on in a record or schema that has the fields `there`."""
        if self.ext in there:
            return self.ext
        for ext in self.exts:
            if ext in there:
                return ext
        raise missing(self, self.ext, there)

    @property
    def named(self) -> frozenset[str]:
        """Every field that the op may change."""
        return frozenset(self.exts)

    def changed_fields(self, there: Mapping[str, Any]) -> tuple[str, ...]:
        """The fields that the op changes in a record or schema that has the fields `there`; its own is the first."""
        return (self.field(there),)

    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        ext = self.field(record)
        return {**record, ext: self.apply(record[ext], draw)}

    def run_schema(self, schema: Schema) -> Schema:
        ext = self.field(schema)
        return Schema({**schema, ext: self.infer(schema[ext])})

    def run_tf(self, record: Mapping[str, Any], draw: Any = None) -> dict[str, Any]:
        """`run` on tensors, inside a graph; only where `lowers` is true."""
        ext = self.field(record)
        return {**record, ext: self.apply_tf(record[ext], draw)}  # type: ignore[attr-defined]

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return None if wanted is None else wanted | set(self.exts)


class RecordOp(Op):
    """An op on the whole record."""

    __slots__ = ()

    @abstractmethod
    def apply_record(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record after the op; the dict given is the op's own to change."""

    @abstractmethod
    def infer_record(self, schema: Schema) -> Schema:
        """What `apply_record` makes of a schema."""

    @property
    def lowers(self) -> bool:
        return in_graph(type(self), "apply_record", "apply_tf_record")

    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        return self.apply_record(dict(record))

    def run_schema(self, schema: Schema) -> Schema:
        return self.infer_record(schema)

    def run_tf(self, record: Mapping[str, Any], draw: Any = None) -> dict[str, Any]:
        """`run` on tensors, inside a graph; only where `lowers` is true."""
        result: dict[str, Any] = self.apply_tf_record(dict(record))  # type: ignore[attr-defined]
        return result


class NamesOp(RecordOp):
    """An op on the names of fields: the same on values, on tensors and on what is known of them."""

    __slots__ = ()

    @abstractmethod
    def move(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields after the op; the dict given is the op's own to change."""

    def apply_record(self, record: dict[str, Any]) -> dict[str, Any]:
        return self.move(record)

    def apply_tf_record(self, record: dict[str, Any]) -> dict[str, Any]:
        """The same on a dict of tensors."""
        return self.move(record)

    def infer_record(self, schema: Schema) -> Schema:
        return Schema(self.move(dict(schema)))


@dataclass(frozen=True, slots=True, init=False)
class PatternOp(NamesOp):
    """An op on fields by their names or by patterns of them, `*` and `?` as in file names."""

    exts: tuple[str, ...]

    def __init__(self, *exts: str) -> None:
        if not exts or not all(isinstance(ext, str) and ext for ext in exts):
            given = ", ".join(map(repr, exts)) or "none"
            raise ChainError(f"{self.name} expects names of fields, got {given}.", hint=f"For example {self.name}(jpg, cls).")
        object.__setattr__(self, "exts", exts)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        return list(self.exts), {}

    def fits(self, name: str) -> bool:
        """Whether the field is one of them."""
        return any(fnmatchcase(name, ext) or name == ext for ext in self.exts)
