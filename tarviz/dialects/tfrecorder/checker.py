"""A check for a class of examples: what is written is what is read back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tarviz.dialects.tfrecorder._example import Example
from tarviz.formats import example as examples


def assert_example_serialize_deserialize_is_ok(example: Example | Iterable[Example], **kwargs: Any) -> int:
    """Loads, splits and serialises examples, reads each back and compares every attribute; returns how many were compared.

    `AssertionError` names the attribute that came back as something else. Keywords go to `load` and `split`.
    """
    count = 0
    for one in [example] if isinstance(example, Example) else example:
        one.load(**kwargs)
        for chunk in one.split(**kwargs):
            found = examples.decode(chunk.serialize_to_string())
            for attribute in chunk._attributes:
                expected, actual = getattr(chunk, attribute.name), attribute.value(found)
                kind = None if attribute.field.dtype == "str" else attribute.field.dtype  # 0.1 is stored as float32(0.1)
                same = np.array_equal(np.asarray(expected, kind), np.asarray(actual, kind), equal_nan=kind is not None)
                if not same or np.shape(expected) != np.shape(actual):
                    raise AssertionError(f"{type(chunk).__name__}.{attribute.name}: {expected!r} came back as {actual!r}")
            count += 1
        one.release()
    return count
