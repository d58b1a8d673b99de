"""Which ops of a chain run inside a graph and which in Python, and what goes over the border between them; no framework yet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import SchemaError
from tarviz.model.types import PLACES, Feature, Schema, to_bytes, to_text
from tarviz.ops.base import FieldOp, taken_place
from tarviz.ops.chains import Chain
from tarviz.pipeline import Pipeline
from tarviz.runners.tf.value_types import Listed, as_array, pack
from tarviz.selection import Leaf, Select, SelectAll, Selection, SelectJSON, Structure

T = TypeVar("T")

_NUMBERS = frozenset((
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
    "complex128",
))  # fmt: skip


_UNTYPED = "output_types=… and output_shapes=… say what it is, SelectJSON(…, fill=0) what stands for null."
VARIES = (
    "Where sizes vary, ragged=True gives batches as tf.RaggedTensor, pad=True fills them up; output_shapes=(None,) takes single records."
)


@dataclass(frozen=True, slots=True)
class GraphStep:
    """Ops in a row that run in one place: in the graph, or (`python`) as one call out of it.

    `draws` are the columns of the chain's random numbers that belong to them. A call takes the fields `takes` and gives
    `gives`; with `select` these are the selected values, in the order of the leaves of their structure, else with `whole` all the
    fields that there are after it.
    """

    chain: Chain
    draws: slice
    python: bool
    takes: Schema = field(default_factory=Schema)
    gives: tuple[tuple[str, Feature], ...] = ()
    select: Selection | None = None
    whole: bool = False

    @property
    def tensors(self) -> list[Feature]:
        """The features of the tensors that its values are: of a list, the strings of bytes that it travels in."""
        return [part for _, feature in self.gives for part in _travelling(feature)]

    def along(self, columns: Sequence[T]) -> Iterator[tuple[str, T]]:
        """Names, and the columns of their tensors, where a name has one that no other has."""
        names = [name for name, _ in self.gives]
        at = 0
        for name, feature in self.gives:
            if not isinstance(feature, Listed) and names.count(name) == 1:
                yield name, columns[at]
            at += len(_travelling(feature))

    def call(
        self, places: Mapping[str, Any], values: list[Any], draw: NDArray[np.float64], room: Mapping[str, NDArray[Any]] | None = None
    ) -> list[Any]:
        """The values after the step for one record, as arrays and bytes that fit `gives`; `room`: see `Chain.run`.

        What an op raises is a `TarvizError` with op, shard and key; a value that does not fit is a `SchemaError`.
        """
        given = zip(self.takes.items(), values, strict=True)
        # What the eager runner would have: text as str, numbers as NumPy values, bytes as they are.
        fields = {name: to_text(bytes(value)) if feature.dtype == "str" else value for (name, feature), value in given}
        record = {**places, **fields}
        result = self.chain.run(record, draw, room)
        picked = None if self.select is None else leaves_of(self.select, dict(self.gives))
        return self.fit(places, lambda at, name: result[name] if picked is None else picked[at].pick(result))

    def fit(self, places: Mapping[str, Any], value: Callable[[int, str], Any]) -> list[Any]:
        """Values as arrays and bytes that fit `gives`: `value(at, name)` is the one of its entry `at`."""
        made: list[Any] = []
        for at, (name, feature) in enumerate(self.gives):
            try:
                found = value(at, name)
                made += pack(found, feature) if isinstance(feature, Listed) else [_as_tensor(found, feature)]
            except (SchemaError, KeyError) as error:
                leaf = None if self.select is None else leaves_of(self.select, dict(self.gives))[at]
                what = error.message if isinstance(error, SchemaError) else "is not there"
                text = f"the field {name!r} {what} after {str(self.chain) or 'the selection'}; the first record had {feature}."
                said = _UNTYPED if isinstance(leaf, SelectJSON) else VARIES if isinstance(error, _ShapeError) else None
                raise SchemaError(text, shard=places["__shard__"], key=places["__key__"], details={"field": name}, hint=said) from None
        return made


class _ShapeError(SchemaError):
    """A value has another shape than the first one."""


def _travelling(feature: Feature) -> list[Feature]:
    """What goes over the border for a value: lists as strings of bytes."""
    return [Feature("bytes")] * (1 + feature.ragged) if isinstance(feature, Listed) else [feature]


def leaves(structure: Structure) -> list[Any]:
    """What stands in a structure of tuples, lists and dicts, in order."""
    if isinstance(structure, Mapping):
        return [leaf for part in structure.values() for leaf in leaves(part)]
    if isinstance(structure, tuple | list):
        return [leaf for part in structure for leaf in leaves(part)]
    return [structure]


def pair_up(structure: Structure, values: Any) -> Iterator[tuple[Any, Any]]:
    """What stands in a structure, in order, each with the value that stands there in `values`.

    >>> list(pair_up((Feature("uint8"), {"b": Feature("object")}), (1, {"b": [2, 3]})))
    [(Feature(dtype='uint8', shape=()), 1), (Feature(dtype='object', shape=()), [2, 3])]
    """
    if isinstance(structure, Mapping):
        for name, part in structure.items():
            yield from pair_up(part, values[name])
    elif isinstance(structure, tuple | list):
        for part, value in zip(structure, values, strict=True):
            yield from pair_up(part, value)
    else:
        yield structure, values


def leaves_of(select: Selection, schema: Structure) -> list[Leaf]:
    """The node of each leaf of what a selection gives."""
    return [Select(name) for name in schema] if isinstance(select, SelectAll) else list(select.leaves())


def part_lists(schema: Structure) -> Structure:
    """The schema with a tuple in place of each list: the strings that it travels in."""
    return refill(schema, [("",) * (1 + part.ragged) if isinstance(part, Listed) else part for part in leaves(schema)])


def refill(structure: Structure, values: list[Any]) -> Any:
    """A structure like this one (lists as tuples) with other leaves."""
    rest = iter(values)

    def fill(part: Structure) -> Any:
        if isinstance(part, Mapping):
            return {name: fill(inner) for name, inner in part.items()}
        if isinstance(part, tuple | list):
            return tuple(map(fill, part))
        return next(rest)

    return fill(structure)


def fields_read(pipeline: Pipeline, fields: Schema, needs: frozenset[str] | None) -> dict[str, tuple[str, ...]]:
    """The fields that go into the graph, and the names of each: records may have a field under any of the alternatives `jpg;png`.

    Alternatives become one field, under the name that the first records have, if everybody who asks for one of them takes the
    others too.
    """
    if needs is None:
        if taken := [ext for ext in fields if ext in PLACES]:
            raise taken_place(taken[0])
        return {ext: (ext,) for ext in fields}
    asked = _names_asked(pipeline)
    single = frozenset[str]().union(*(op.needs(frozenset()) or () for op in pipeline.chain if not op.alternatives))
    made: dict[str, tuple[str, ...]] = {}
    for ext in fields:
        names = _alternatives(ext, asked, single)
        if ext in needs and not any(set(names) & set(known) for known in made.values()):
            made[next(name for name in names if name in fields)] = names
    return made


def _names_asked(pipeline: Pipeline) -> list[tuple[str, ...]]:
    """The names by which ops and selection ask for fields that are read, not for those that an op renamed."""
    asked: list[tuple[str, ...]] = []
    renamed: frozenset[str] = frozenset()
    for op in pipeline.chain:
        asked += [names for names in op.alternatives if not renamed & set(names)]
        renamed |= op.new_names
    picked = [tuple(part.strip() for part in leaf.ext.split(";")) for leaf in pipeline.select.leaves()]
    return asked + [names for names in picked if not renamed & set(names)]


def has_lists(schema: Structure) -> bool:
    """Whether a value of the selection travels as a list."""
    return any(isinstance(part, Listed) for part in leaves(schema))


def _picks_values(schema: Structure, select: Selection) -> bool:
    """Whether Python has to pick the values: no tensor holds a JSON tree, and lists travel as strings."""
    return has_lists(schema) or any(isinstance(leaf, SelectJSON) for leaf in select.leaves())


def _alternatives(ext: str, asked: list[tuple[str, ...]], single: frozenset[str]) -> tuple[str, ...]:
    """The names that `ext` goes by with everybody who asks for it; itself alone where somebody asks for one of them (`single`: by name)."""
    groups = {names for names in asked if ext in names}
    if len(groups) != 1:
        return (ext,)
    (names,) = groups
    alone = single & set(names) or any(set(names) & set(other) for other in asked if other != names)
    return (ext,) if alone else names


def steps(
    pipeline: Pipeline, fields: Schema, schema: Structure, first: Callable[[], dict[str, Any]], *, varies: bool = False
) -> list[GraphStep]:
    """The steps that take `fields` to the selected values, whose features are `schema`.

    An op goes into the graph where it has a lowering, and where nothing before or after it is a Python object (a decoded
    JSON tree), which no tensor holds. `first` gives a record to try ops on that do not say what they return; with `varies` others may
    have arrays of other sizes.
    """
    chain, select = pipeline.chain, pipeline.select
    found = schemas(chain, fields, first, varies=varies)
    wanted = select.needs()
    live = [_live(found[at], chain[at:].needs(wanted)) for at in range(len(chain) + 1)]
    solid = [all(feature.dtype != "object" for feature in part.values()) for part in live]
    picking = _picks_values(schema, select) or not solid[-1]
    _check_all(schema)
    python = [not (op.lowers_on(found[at]) and solid[at] and solid[at + 1]) for at, op in enumerate(chain)]
    if python and not solid[-1]:
        python[-1] = True
    made: list[GraphStep] = []
    slices, at = chain.draw_slices, 0
    for in_python, group in itertools.groupby(python):
        end = at + len(list(group))
        part, draws = chain[at:end], slice(slices[at].start, slices[end - 1].stop)
        if not in_python:
            made.append(GraphStep(part, draws, False))
        elif picking and end == len(chain):
            made.append(GraphStep(part, draws, True, live[at], _leaf_features(select, schema), select))
        elif all(isinstance(op, FieldOp) for op in part):
            made.append(_on_fields(part, draws, found[at : end + 1], live[at], live[end]))
        else:
            made.append(GraphStep(part, draws, True, live[at], tuple(live[end].items()), whole=True))
        at = end
    if picking and (not made or made[-1].select is None):
        made.append(GraphStep(Chain(), slice(0, 0), True, live[-1], _leaf_features(select, schema), select))
    return made


def _on_fields(part: Chain, draws: slice, found: list[Schema], before: Schema, after: Schema) -> GraphStep:
    """Ops on single fields as a call that takes and gives these fields alone.

    A field that nobody selects (a decoded JSON tree) is not computed, and has no type that a tensor could be of.
    """
    touched = (op.changed_fields(schema) for op, schema in zip(part, found, strict=False) if isinstance(op, FieldOp))
    names = list(dict.fromkeys(name for names in touched for name in names))
    takes = Schema({name: found[0][name] for name in names if name in before})
    return GraphStep(part, draws, True, takes, tuple((name, found[-1][name]) for name in names if name in after))


def whole(pipeline: Pipeline, fields: Schema, schema: Structure) -> GraphStep:
    """All of the pipeline as one step in Python: what the graph is not to do."""
    chain, select = pipeline.chain, pipeline.select
    _check_all(schema)
    takes = _live(fields, chain.needs(select.needs()))
    return GraphStep(chain, slice(0, chain.draws), True, takes, _leaf_features(select, schema), select)


def schemas(chain: Chain, fields: Schema, first: Callable[[], dict[str, Any]], *, varies: bool = False) -> list[Schema]:
    """The schema before each op, and after the last."""
    found = [fields]
    record: dict[str, Any] | None = None
    reached = 0
    for at, op in enumerate(chain):

        def probe(at: int = at) -> dict[str, Any]:
            nonlocal record, reached
            record = chain[reached:at].run(first() if record is None else record)
            reached = at
            return record

        made = chain[at : at + 1].schema(found[-1], None if op.typed else probe)
        if varies and not op.typed:
            new = {name: Feature(one.dtype, (None,) * len(one.shape)) for name, one in made.items() if one != found[-1].get(name)}
            made = Schema({**made, **new})
        found.append(made)
    return found


def _live(schema: Schema, needs: frozenset[str] | None) -> Schema:
    return schema if needs is None else Schema({name: feature for name, feature in schema.items() if name in needs})


def _leaf_features(select: Selection, schema: Structure) -> tuple[tuple[str, Feature], ...]:
    found = leaves(schema)
    if isinstance(select, SelectAll):
        return tuple(zip(schema, found, strict=True))
    return tuple((leaf.ext, feature) for leaf, feature in zip(select.leaves(), found, strict=True))


def _check_all(schema: Structure) -> None:
    """`SchemaError` where a selected value is of no type that a tensor has."""
    for feature in leaves(schema):
        if feature.dtype not in _NUMBERS and feature.dtype not in ("bytes", "str"):
            raise SchemaError(
                f"the selection gives {feature}, which no tensor holds.",
                hint="Pick values of it with SelectJSON, say what it is by output_types, make an array of it with Func, or leave it out.",
            )


def _as_tensor(value: Any, feature: Feature) -> Any:
    if feature.dtype == "bytes":
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SchemaError("is null" if value is None else f"is {type(value).__name__}")
        return bytes(value)
    if feature.dtype == "str":
        if not isinstance(value, str):
            raise SchemaError("is null" if value is None else f"is {type(value).__name__}")
        try:
            return to_bytes(value)
        except UnicodeEncodeError as error:  # half of a pair, as JSON can have it
            raise SchemaError("is text that UTF-8 cannot say") from error
    if isinstance(value, list | tuple | float | int):
        array = as_array(value, feature.dtype)
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
    else:
        raise SchemaError("is null" if value is None else f"is {type(value).__name__}")
    shape = feature.shape
    if array.dtype != feature.dtype or len(shape) != array.ndim:
        raise SchemaError(f"is {Feature(str(array.dtype), array.shape)}")
    if any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        raise _ShapeError(f"is {Feature(str(array.dtype), array.shape)}")
    return array
