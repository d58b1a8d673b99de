"""The first generation: `AisDataset(bucket, proxy, val_op, label_op).load_from_tar(template)`, ops nested in each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tarviz.dialects import refuse_unknown
from tarviz.dialects.tar2tf import _shards
from tarviz.dialects.tar2tf.ops import Convert, Decode, Func, Resize, Select, SelectDict, SelectJSON, names
from tarviz.model.errors import UsageError
from tarviz.ops import Chain, FieldOp, Op, Rename
from tarviz.ops.func import Func as RecordFunc
from tarviz.pipeline import Pipeline
from tarviz.runners.arguments import whole_number
from tarviz.selection import Selection, parse

if TYPE_CHECKING:
    import tensorflow as tf

VALUE = Resize(Convert(Decode("jpg"), "float32"), (224, 224))  # type: ignore[arg-type]  # an op in place of a field
LABEL = Select("cls")
_LOAD = ("path", "record_to_example", "max_shard_size", "output_types", "output_shapes")
_EXPECTED = "Select, SelectJSON, Decode, Convert, Resize, Rotate, Func"


class AisDataset(_shards.Bucket):
    """Shards below `bucket_name` (a folder or a URL prefix) as datasets of `(value, label)`.

    `val_op` and `label_op` say how value and label come from a record: an op around another
    (`Resize(Convert(Decode("jpg"), tf.float32), (224, 224))`), `Select`, `SelectJSON`, `Func`, whose function gets the raw record
    and returns the value, or a list of these, which gives a dict by field name (of one name twice the last holds). Both always
    see the record as it is in the shard. `num_workers` shards are read at a time.

    A class field (`cls`, `cls2`, `class`, `index`, `id`) that is selected becomes int32, other selected fields are `tf.string`.
    """

    def __init__(
        self,
        bucket_name: str | os.PathLike[str],
        proxy_url: str | None = None,
        val_op: Any = VALUE,
        label_op: Any = LABEL,
        num_workers: int = 4,
    ) -> None:
        super().__init__(bucket_name, proxy_url)
        whole_number("num_workers", num_workers)
        self.num_workers = num_workers
        self.chain, self.selection = translate(val_op, label_op)

    def pipeline(self, template: str | Sequence[str]) -> Pipeline:
        """The shards that a template below the bucket stands for, with the ops as a chain; class fields still raw."""
        return Pipeline(_shards.urls(self._prefix, template), self.chain, select=self.selection, **_shards.OPTIONS)

    def load_from_tar(
        self,
        template: str | Sequence[str],
        path: _shards.OutputPath = None,
        *,
        record_to_example: Callable[[dict[str, Any]], Any] | None = None,
        max_shard_size: int | float | str | None = None,
        output_types: Any = None,
        output_shapes: Any = None,
        **unknown: Any,
    ) -> tf.data.Dataset | list[str]:
        """The records of the shards that `template` names (bash braces): a tf.data.Dataset, or with a `path` TFRecord files.

        See `Dataset.load` for path, `max_shard_size` and `record_to_example`; the paths written are returned. `output_types` and
        `output_shapes`, in the structure of value and label, win over what the ops make.
        """
        refuse_unknown("load_from_tar", unknown, _LOAD)
        outputs = _shards.outputs_of(path, max_shard_size, record_to_example)
        if outputs is not None:
            return _shards.write(_shards.urls(self._prefix, template), outputs, record_to_example, max_shard_size, self.num_workers)
        pipeline = _shards.with_class_numbers(self.pipeline(template), output_types=output_types)
        return pipeline.tf(num_workers=self.num_workers, output_types=output_types, output_shapes=output_shapes)


@dataclass(frozen=True, slots=True)
class RawCall:
    """A function called with the record as it is in the shard, without the fields that other ops add."""

    f: Callable[[dict[str, Any]], Any]
    added: frozenset[str]

    def __call__(self, record: Mapping[str, Any]) -> Any:
        return self.f({name: value for name, value in names(record).items() if name not in self.added})


def translate(val_op: Any, label_op: Any) -> tuple[Chain, Selection]:
    """Value and label as one chain and a selection.

    An op that is alone on its field works in place. Where a field is wanted in two ways (decoded and raw, or decoded twice), each
    but the raw one works on a copy, `copy-1.jpg`, so that both begin with the bytes of the shard.
    """
    parts = [_parts(one, what) for one, what in ((val_op, "val_op"), (label_op, "label_op"))]
    leaves = [leaf for part in parts for leaf in (part.values() if isinstance(part, dict) else [part])]
    made = _Translation(leaves)
    nodes = [
        SelectDict({name: made.node(leaf) for name, leaf in part.items()}) if isinstance(part, dict) else made.node(part) for part in parts
    ]
    return Chain.of([*made.functions(), *made.copies(), *made.steps]), parse(tuple(nodes))


def _parts(op: Any, what: str) -> Any:
    """One leaf, or a dict of them by field name."""
    if not isinstance(op, list | tuple):
        return _leaf(op, what)
    if not op:
        raise UsageError(f"{what} is an empty list.")
    found: dict[str, Any] = {}
    for one in op:
        if isinstance(one, list | tuple):
            raise UsageError(f"{what}: a list of operations cannot contain another list.")
        leaf = _leaf(one, what)
        inner = _function(leaf)
        name = leaf.ext if inner is None else inner.ext_name if isinstance(inner, Func) else None
        if name is None:
            raise UsageError(f"{what}: in a list, Func needs a name for its value.", hint='For example Func(f, "name").')
        found[name] = leaf
    return found


def _leaf(op: Any, what: str) -> Any:
    if isinstance(op, str):
        return Select(op)
    if isinstance(op, Select | SelectJSON | RecordFunc | FieldOp):
        return op
    kind = op.__name__ if isinstance(op, type) else type(op).__name__
    raise UsageError(f"{what} is an operation of another kind: {kind}.", hint=f"Expected one of {_EXPECTED}, or a list of them.")


def _function(leaf: Any) -> RecordFunc | None:
    """The function that a leaf is, or that its ops stand around."""
    while isinstance(leaf, FieldOp):
        leaf = leaf.of
    return leaf if isinstance(leaf, RecordFunc) else None


class _Translation:
    """Chain and selection in the making."""

    def __init__(self, leaves: list[Any]) -> None:
        self.steps: list[Op] = []
        self._named: list[tuple[RecordFunc, str]] = []
        self._copied: dict[str, str] = {}
        self._places: dict[tuple[str, str], str] = {}
        fields = [leaf for leaf in leaves if _function(leaf) is None]
        ways = {(leaf.ext, str(Chain.of(leaf)) if isinstance(leaf, FieldOp) else "") for leaf in fields}
        self._alone = {
            (ext, text) for ext, text in ways if not any(set(ext.split(";")) & set(other.split(";")) for other, _ in ways - {(ext, text)})
        }

    def node(self, leaf: Any) -> Selection:
        """What selects the value of a leaf; its ops go into the chain."""
        if isinstance(leaf, Select | SelectJSON):
            return leaf
        chain = Chain.of(leaf)
        if (inner := _function(leaf)) is not None:
            place = f"func-{len(self._named) + 1}"
            self._named.append((inner, place))
            self.steps += [replace(step, ext=place) for step in chain if isinstance(step, FieldOp)]
            return Select(place)
        way = leaf.ext, str(chain)
        if way not in self._places:
            place = leaf.ext
            if way not in self._alone:
                place = f"copy-{len(self._copied) + 1}.{leaf.exts[0]}"
                self._copied[place] = leaf.ext
            self._places[way] = place
            self.steps += [replace(step, ext=place) for step in chain if isinstance(step, FieldOp)]
        return Select(self._places[way])

    def functions(self) -> list[Op]:
        """The calls, before anything is decoded."""
        added = frozenset(place for _, place in self._named)
        return [Func(RawCall(leaf.f, added), place, **_types(leaf, place)) for leaf, place in self._named]

    def copies(self) -> list[Op]:
        return [Rename(dict(self._copied), keep=True)] if self._copied else []


def _types(leaf: RecordFunc, place: str) -> dict[str, Any]:
    """What a function says its value is, under the name that it gets here."""
    name = leaf.ext_name if isinstance(leaf, Func) else None
    found: dict[str, Any] = {}
    for word in ("output_types", "output_shapes"):
        given = getattr(leaf, word)
        if given is not None:
            found[word] = {place if one == name or len(given) == 1 else one: value for one, value in given.items()}
    return found
