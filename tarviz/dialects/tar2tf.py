"""The dialect of NVIDIA's tar2tf: `Dataset(bucket, conversions=…, selections=…).load(template)` gives a tf.data.Dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tarviz import stores
from tarviz.errors import UsageError
from tarviz.ops import Chain, Convert, Decode, FieldOp, Op, Resize
from tarviz.pipeline import Pipeline
from tarviz.selection import Select, Selection, as_tuples, parse
from tarviz.stores._template import braces

if TYPE_CHECKING:
    import tensorflow as tf

CLASS_FIELDS = ("cls", "cls2", "class", "index", "id")
"""Fields that hold a class number as ASCII text: a conversion leaves them alone, and they become int32."""

CONVERSIONS = (Decode("jpg"), Convert("jpg", "float32"), Resize("jpg", (224, 224)))
"""What happens to a record when no conversions are given."""

SELECTIONS = ("jpg", "cls")


class Dataset:
    """Shards below `bucket_name` (a folder or a URL) as datasets of `(value, label)`.

    `conversions` is a conversion, a list of them, or chain text. Left out, `jpg` becomes a float32 image of 224 x 224 pixels in 0…1 and
    `cls` an int32. Given, a field has what its conversions make of it; class fields no conversion touches (`cls`, `cls2`,
    `class`, `index`, `id`) become int32, other fields stay `tf.string`. `[]` leaves everything `tf.string`. `selections` says what
    each element holds, in any structure of field names and selections.

    Shards are read as tar2tf reads them: the extension begins at the last dot, a record's members may lie anywhere in the
    shard, and of a field that comes twice the last counts.

    >>> dataset = Dataset("data/", conversions=[Decode("jpg"), Resize("jpg", (32, 32))], selections=["jpg", "cls"])
    >>> dataset.pipeline("train-{0..3}.tar").urls
    ('data/train-{0..3}.tar',)
    """

    def __init__(
        self,
        bucket_name: str | os.PathLike[str],
        conversions: str | Op | Iterable[str | Op] | None = None,
        selections: Any = SELECTIONS,
    ) -> None:
        self.bucket_name = os.fspath(bucket_name)
        self.chain = Chain.of(CONVERSIONS if conversions is None else conversions)
        self.selection: Selection = parse(selections)

    def pipeline(self, template: str | Sequence[str]) -> Pipeline:
        """The shards that a template below the bucket stands for, with conversions and selections; class fields still raw."""
        names = (template,) if isinstance(template, str) else template
        urls = [url for name in names for url in self._urls(name)]
        return Pipeline(urls, self.chain, select=self.selection, key_split="last-dot", group="shard", duplicates="last")

    def _urls(self, name: str) -> list[str]:
        if self.bucket_name.startswith(("http://", "https://")):  # there, braces in a name would be quoted
            return [stores.join(self.bucket_name, part) for part in braces(name)]
        return [stores.join(self.bucket_name, name)]

    def load(
        self,
        template: str | Sequence[str],
        *,
        output_types: Any = None,
        output_shapes: Any = None,
        num_workers: int = 4,
    ) -> tf.data.Dataset:
        """The records of the shards that `template` names (bash braces), as a tf.data.Dataset in the structure of the selections.

        `output_types` and `output_shapes`, in that structure, win over what the conversions make. `num_workers` shards are
        read at a time. A shard that is missing or damaged, or conversions that do not fit, raise `TarvizError`.
        """
        pipeline = self.pipeline(template)
        dataset = (with_class_numbers(pipeline) if self.chain else pipeline).tf(num_workers=num_workers)
        if output_types is None and output_shapes is None:
            return dataset
        return _as_asked(dataset, output_types, output_shapes)

    def __repr__(self) -> str:
        return f"Dataset({self.bucket_name!r}, {str(self.chain)!r}, {self.selection!r})"


def with_class_numbers(pipeline: Pipeline, dtype: str = "int32") -> Pipeline:
    """The pipeline with the class fields it selects, where its chain leaves them alone, decoded to `dtype`."""
    plan = pipeline.plan()
    touched = {ext for op in pipeline.chain if isinstance(op, FieldOp) for ext in op.exts}
    selected = [leaf.ext for leaf in pipeline.select.leaves() if isinstance(leaf, Select)]
    raw = [ext for ext in dict.fromkeys(selected) if ext in CLASS_FIELDS and ext not in touched and plan.record[ext].dtype == "bytes"]
    return pipeline.with_chain([*pipeline.chain, *(Decode(ext, dtype=dtype) for ext in raw)]) if raw else pipeline


def _as_asked(dataset: Any, types: Any, shapes: Any) -> Any:
    """The dataset with the dtypes and shapes asked for."""
    import tensorflow as tf

    several = isinstance(dataset.element_spec, tuple)
    cast = tf.autograph.experimental.do_not_convert(lambda *values: _cast(values if several else values[0], types, shapes))
    return dataset.map(cast)


def _cast(values: Any, types: Any, shapes: Any) -> Any:
    """Tensors with the dtypes and shapes asked for; a string becomes a number by its ASCII digits."""
    import tensorflow as tf

    def one(value: Any, dtype: Any, shape: Any) -> Any:
        if dtype is not None and value.dtype != dtype:
            if tf.as_dtype(dtype) == tf.string:
                raise UsageError(f"output_types asks for tf.string where the conversions make {value.dtype.name}.")
            value = tf.strings.to_number(tf.strings.strip(value), dtype) if value.dtype == tf.string else tf.cast(value, dtype)
        return value if shape is None else tf.ensure_shape(value, shape)

    flat = tf.nest.flatten(values)
    kinds = [None] * len(flat) if types is None else tf.nest.flatten(as_tuples(types))
    sizes = [None] * len(flat) if shapes is None else _shapes(values, shapes)
    if not len(flat) == len(kinds) == len(sizes):
        raise UsageError(f"The selections make {len(flat)} values; there are {len(kinds)} output_types and {len(sizes)} output_shapes.")
    return tf.nest.pack_sequence_as(values, [one(*each) for each in zip(flat, kinds, sizes, strict=True)])


def _shapes(values: Any, shapes: Any) -> list[Any]:
    """One shape for each tensor; a shape may be a TensorShape, a list or a tuple of sizes."""
    import tensorflow as tf

    if isinstance(values, dict):
        return [size for name in sorted(values) for size in _shapes(values[name], shapes[name])]
    if isinstance(values, tuple):
        if len(values) != len(shapes):
            raise UsageError(f"The selections make {len(values)} values; there are {len(shapes)} output_shapes.")
        return [size for value, shape in zip(values, shapes, strict=True) for size in _shapes(value, shape)]
    return [tf.TensorShape(shapes)]
