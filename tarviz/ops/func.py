"""Any Python function of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tarviz.model.errors import ChainError
from tarviz.model.types import PLACES, Feature, Schema
from tarviz.ops.base import RecordOp, unfit
from tarviz.ops.convert import dtype_name


@dataclass(frozen=True, slots=True)
class Func(RecordOp):
    """Calls `f` with the record, a dict it may change: `__key__`, `__shard__`, `__index__`, and the fields as bytes or arrays.

    What `f` returns is the record after it; None means the dict it was given. Tensors in it (of TensorFlow, PyTorch) become NumPy
    arrays. `output_types` and `output_shapes` (field →
    dtype, field → shape with None for what varies) say what `f` makes; fields they do not name stay as they are. Without them
    `f` is tried on one record, and all records have to give dtypes and shapes like that one's.

    A function has no text: a chain with it prints `func("module:name")`, which does not read back.
    """

    f: Callable[[dict[str, Any]], Any]
    output_types: Mapping[str, Any] | None = field(default=None, kw_only=True, hash=False)
    output_shapes: Mapping[str, Any] | None = field(default=None, kw_only=True, hash=False)

    name: ClassVar[str] = "func"

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise ChainError(
                f"{self.name} holds a Python function, which text cannot say; got {self.f!r}.",
                hint="In Python, put tarviz.ops.Func(f) into a list of ops.",
            )
        if self.output_types is None and self.output_shapes is not None:
            raise ChainError(f"{self.name} needs output_types beside output_shapes.")
        if self.output_types is not None:
            object.__setattr__(self, "output_types", {ext: _dtype(dtype) for ext, dtype in self.output_types.items()})
        if self.output_shapes is not None:
            object.__setattr__(self, "output_shapes", {ext: _shape(shape) for ext, shape in self.output_shapes.items()})

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        module = getattr(self.f, "__module__", None) or type(self.f).__module__
        return [f"{module}:{getattr(self.f, '__qualname__', type(self.f).__qualname__)}"], {}

    @property
    def typed(self) -> bool:
        return self.output_types is not None

    def apply_record(self, record: dict[str, Any]) -> dict[str, Any]:
        places = {name: value for name, value in record.items() if name in PLACES}
        result = self.f(record)
        if result is None:
            result = record
        if not isinstance(result, Mapping):
            raise unfit(self, f"has to return the record, a dict; it returned {type(result).__name__}.")
        return {**places, **{name: as_numpy(value) for name, value in result.items()}}

    def infer_record(self, schema: Schema) -> Schema:
        types, shapes = self.output_types or {}, self.output_shapes or {}
        if unknown := [ext for ext in shapes if ext not in types]:
            raise unfit(self, f"has a shape for {unknown[0]!r}, but no type.")
        made = {ext: Feature(dtype, shapes.get(ext, ())) for ext, dtype in types.items()}
        return Schema({**schema, **made})

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return None


def as_numpy(value: Any) -> Any:
    """A tensor as a NumPy array (of text, as bytes); anything else as it is."""
    return value.numpy() if hasattr(value, "numpy") and hasattr(value, "dtype") else value


def _dtype(dtype: Any) -> str:
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype
    if name in ("bytes", "str", "object", "bool"):
        return str(name)
    return "bytes" if name == "string" else dtype_name("func", dtype)


def _shape(shape: Any) -> tuple[int | None, ...]:
    return tuple(None if size is None else int(size) for size in (shape.as_list() if hasattr(shape, "as_list") else shape))
