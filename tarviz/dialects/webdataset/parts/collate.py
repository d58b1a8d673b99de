"""Samples combined into batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tarviz.model.errors import SchemaError


def default_collation_fn(samples: Sequence[Any], combine_tensors: bool = True, combine_scalars: bool = True) -> Any:
    """A batch of samples: numbers and arrays stacked along a new first axis, anything else a list; tuples and dicts are kept.

    `combine_tensors=False` and `combine_scalars=False` leave arrays and numbers in lists.

    >>> default_collation_fn([(1, b"a"), (2, b"b")])
    (array([1, 2]), [b'a', b'b'])
    """
    first = samples[0]
    if isinstance(first, dict):
        if any(sample.keys() != first.keys() for sample in samples):
            raise SchemaError("samples of one batch have different fields.", hint="Put to_tuple or a map before batched.")
        return {name: _combined([sample[name] for sample in samples], name, combine_tensors, combine_scalars) for name in first}
    return tuple(
        _combined(list(column), place, combine_tensors, combine_scalars) for place, column in enumerate(zip(*samples, strict=True))
    )


def _combined(values: list[Any], name: object, tensors: bool, scalars: bool) -> Any:
    first = values[0]
    if isinstance(first, int | float):
        return np.array(values) if scalars else values
    if not tensors or not (isinstance(first, np.ndarray) or hasattr(first, "detach")):
        return values
    if len(shapes := {tuple(value.shape) for value in values}) > 1:
        some = ", ".join(str(list(shape)) for shape in sorted(shapes)[:3])
        raise SchemaError(f"the values of {name!r} in one batch have the shapes {some}.", hint="Resize or crop them before batched.")
    if isinstance(first, np.ndarray):
        return np.stack(values)
    import torch

    return torch.stack(values)
