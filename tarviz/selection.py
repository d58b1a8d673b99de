"""Selections: which values of a record a model gets, and in what structure.

Plain Python says most of it: `"jpg"`, `("jpg", "cls")`, `{"image": "jpg"}`, nested as you like; `parse` turns it
into the nodes `Select`, `SelectJSON`, `SelectList`, `SelectDict`, which stand in such structures too.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarviz.model.errors import DataError, SchemaError, UsageError
from tarviz.model.types import PLACES, Feature, Schema
from tarviz.model.wording import did_you_mean

Structure: TypeAlias = Any  # a Feature, or a tuple, list or dict of structures
Path: TypeAlias = tuple[str | int, ...]


class Selection(ABC):
    """One node: what it needs, what it picks, and what that is."""

    __slots__ = ()

    def parts(self) -> Iterable[Selection]:
        """The nodes that it is made of, in order."""
        return ()

    def needs(self) -> frozenset[str] | None:
        """The fields it reads; None means all of them."""
        each = [part.needs() for part in self.parts()]
        known = [names for names in each if names is not None]
        return frozenset[str]().union(*known) if len(known) == len(each) else None

    @abstractmethod
    def pick(self, record: Mapping[str, Any]) -> Any:
        """The values, in the selection's structure. `SchemaError` when a field is missing, `DataError` when JSON is."""

    @abstractmethod
    def infer(self, schema: Schema) -> Structure:
        """Features in the structure that `pick` gives."""

    def leaves(self) -> Iterator[Leaf]:
        """The nodes that read a field, in the order in which `pick` reads them."""
        for part in self.parts():
            yield from part.leaves()

    def pick_tf(self, record: Mapping[str, Any]) -> Any:
        """`pick` on tensors: lists become tuples, as tf.data takes a list for a tensor. JSON leaves are refused."""
        for leaf in self.leaves():
            if isinstance(leaf, SelectJSON):
                raise SchemaError(f"{leaf} reads JSON, which a graph cannot.", details={"field": leaf.ext})
        return as_tuples(self.pick(record))


@dataclass(frozen=True, slots=True)
class Leaf(Selection):
    """A node that reads one field, of alternatives the first that is there."""

    ext: str

    def __post_init__(self) -> None:
        if not isinstance(self.ext, str) or not self.ext:
            raise UsageError(f"{type(self).__name__} needs the name of a field, got {self.ext!r}.")

    def needs(self) -> frozenset[str] | None:
        return frozenset(_alternatives(self.ext))

    def leaves(self) -> Iterator[Leaf]:
        yield self


@dataclass(frozen=True, slots=True)
class Select(Leaf):
    """The value of one field. Of alternatives (`"jpg;png"`) the first that the record has.

    >>> Select("cls").pick({"__key__": "a", "cls": b"7"})
    b'7'
    """

    def pick(self, record: Mapping[str, Any]) -> Any:
        return record[_present(self.ext, record)]

    def infer(self, schema: Schema) -> Structure:
        if self.ext == "__index__":
            return Feature("int64")
        if self.ext in ("__key__", "__shard__"):
            return Feature("str")
        return schema[_present(self.ext, schema)]


@dataclass(frozen=True, slots=True)
class SelectJSON(Leaf):
    """A value inside a JSON field: `path` is a name, a position, or several of these from the outside in.

    `fill` stands in for null, also inside lists.

    >>> SelectJSON("json", ["boxes", 0, "label"]).pick({"json": b'{"boxes": [{"label": "cat"}]}'})
    'cat'
    """

    path: Path = ()
    fill: Any = None

    def __repr__(self) -> str:
        fill = "" if self.fill is None else f", fill={self.fill!r}"
        return f'SelectJSON("{self.ext}", {json.dumps(list(self.path), ensure_ascii=False)}{fill})'

    def __post_init__(self) -> None:
        Leaf.__post_init__(self)
        path: Any = (self.path,) if isinstance(self.path, str | int) else tuple(self.path)
        if not all(isinstance(step, str | int) and not isinstance(step, bool) for step in path):
            raise UsageError(f"A path into JSON is made of names and positions, got {self.path!r}.")
        object.__setattr__(self, "path", path)

    def pick(self, record: Mapping[str, Any]) -> Any:
        return self.read(record[_present(self.ext, record)], key=record.get("__key__"), shard=record.get("__shard__"))

    def read(self, value: Any, *, key: str | None = None, shard: str | None = None) -> Any:
        """The value at `path` in a payload, a text or a decoded tree. `key` and `shard` go into the error."""
        tree = self._parse(value, key, shard) if isinstance(value, bytes | bytearray | memoryview | str) else value
        for depth, step in enumerate(self.path):
            try:
                tree = tree[step]
            except (LookupError, TypeError):
                at = "".join(f"[{part!r}]" for part in self.path[:depth]) or "the top"
                message = f"{self} finds no {step!r} at {at}; there is {_shape(tree)}."
                raise DataError(message, code="E_DECODE", key=key, shard=shard, details={"field": self.ext}) from None
        return tree if self.fill is None else _fill_nulls(tree, self.fill)

    def _parse(self, value: Any, key: str | None, shard: str | None) -> Any:
        try:
            return json.loads(value if isinstance(value, str) else bytes(value))
        except (ValueError, RecursionError) as error:
            message = f"{self}: this is not JSON that can be read: {error}."
            raise DataError(message, code="E_DECODE", key=key, shard=shard, details={"field": self.ext}) from error

    def infer(self, schema: Schema) -> Structure:
        feature = schema[_present(self.ext, schema)]
        if feature.dtype not in ("bytes", "str", "object"):
            raise SchemaError(f"{self} expects JSON, got {feature}.", details={"field": self.ext})
        return Feature("object")


@dataclass(frozen=True, slots=True, init=False)
class SelectList(Selection):
    """Several selections, in order; `SelectList("jpg", "cls")` and `SelectList(["jpg", "cls"])` are the same. Picks a list."""

    items: tuple[Selection, ...]

    def __init__(self, *items: Any) -> None:
        parts = items[0] if len(items) == 1 and isinstance(items[0], list | tuple) else items
        object.__setattr__(self, "items", tuple(map(_node, parts)))

    def parts(self) -> Iterable[Selection]:
        return self.items

    def pick(self, record: Mapping[str, Any]) -> Any:
        return [item.pick(record) for item in self.items]

    def infer(self, schema: Schema) -> Structure:
        return [item.infer(schema) for item in self.items]


@dataclass(frozen=True, slots=True, init=False)
class SelectTuple(SelectList):
    """`SelectList` that picks a tuple; what `("jpg", "cls")` becomes."""

    def pick(self, record: Mapping[str, Any]) -> Any:
        return tuple(item.pick(record) for item in self.items)

    def infer(self, schema: Schema) -> Structure:
        return tuple(item.infer(schema) for item in self.items)


@dataclass(frozen=True, slots=True, init=False)
class SelectDict(Selection):
    """Selections under names of their own: `SelectDict(image="jpg")`, `SelectDict({"image": "jpg"})`. Picks a dict."""

    items: tuple[tuple[str, Selection], ...]

    def __init__(self, items: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        parts = {**(items or {}), **more}
        object.__setattr__(self, "items", tuple((str(name), _node(part)) for name, part in parts.items()))

    def parts(self) -> Iterable[Selection]:
        return [item for _, item in self.items]

    def pick(self, record: Mapping[str, Any]) -> Any:
        return {name: item.pick(record) for name, item in self.items}

    def infer(self, schema: Schema) -> Structure:
        return {name: item.infer(schema) for name, item in self.items}


@dataclass(frozen=True, slots=True)
class SelectAll(Selection):
    """The whole record: a dict of `__key__` and all fields. What no selection means."""

    def needs(self) -> frozenset[str] | None:
        return None

    def pick(self, record: Mapping[str, Any]) -> Any:
        return {name: value for name, value in record.items() if name not in PLACES or name == "__key__"}

    def infer(self, schema: Schema) -> Structure:
        return Schema({"__key__": Feature("str"), **schema})


def parse(select: Any) -> Selection:
    """The selection that plain Python says; None selects the whole record.

    >>> parse(("jpg", {"label": "cls"})).pick({"jpg": b"...", "cls": b"7"})
    (b'...', {'label': b'7'})
    """
    return SelectAll() if select is None else _node(select)


def plain(selection: Selection) -> Any:
    """The shortest Python that `parse` turns into this selection.

    >>> plain(parse(["jpg", SelectJSON("json", 0)]))
    ['jpg', SelectJSON("json", [0])]
    """
    match selection:
        case SelectAll():
            return None
        case Select(ext):
            return ext
        case SelectTuple(items):
            return tuple(map(plain, items))
        case SelectList(items):
            return [plain(item) for item in items]
        case SelectDict(items):
            return {name: plain(item) for name, item in items}
        case _:
            return selection


def as_tuples(structure: Any) -> Any:
    """The structure with tuples in place of lists."""
    if isinstance(structure, list | tuple):
        return tuple(map(as_tuples, structure))
    if isinstance(structure, dict):
        return {name: as_tuples(part) for name, part in structure.items()}
    return structure


def _node(part: Any) -> Selection:
    match part:
        case Selection():
            return part
        case str():
            return Select(part)
        case tuple() if part:
            return SelectTuple(part)
        case list() if part:
            return SelectList(part)
        case Mapping() if part:
            return SelectDict(part)
        case _:
            raise UsageError(f"A selection is a field name, or a tuple, list or dict of selections; got {part!r}.")


def _fill_nulls(tree: Any, fill: Any) -> Any:
    if isinstance(tree, list):
        return [_fill_nulls(part, fill) for part in tree]
    return fill if tree is None else tree


def _alternatives(ext: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in ext.split(";"))


def _present(ext: str, there: Mapping[str, Any]) -> str:
    if ext in there:
        return ext
    for part in _alternatives(ext):
        if part in there:
            return part
    names = [name for name in there if name not in PLACES]
    raise SchemaError(
        f"the selection asks for a field {ext!r}; there are {', '.join(names) or 'none'}. {did_you_mean(ext, names)}".rstrip(),
        key=there.get("__key__"),
        shard=there.get("__shard__"),
        details={"field": ext},
    )


def _shape(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"an object with {', '.join(map(repr, list(tree)[:8])) or 'nothing in it'}"
    if isinstance(tree, list):
        return f"a list of {len(tree)}"
    return type(tree).__name__
