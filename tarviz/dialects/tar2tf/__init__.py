"""NVIDIA's tar2tf over the engine, both generations: `AisDataset(…).load_from_tar(…)` and `Dataset(…).load(…)`.

`from tarviz.dialects.tar2tf import Dataset, AisDataset, default_record_parser` and
`from tarviz.dialects.tar2tf.ops import Decode, Convert, Resize, …`. docs/dialects/tar2tf.md lists what differs.
TensorFlow is imported when something is loaded.
"""

from __future__ import annotations

from tarviz.dialects.tar2tf import ops
from tarviz.dialects.tar2tf._ais import AisDataset
from tarviz.dialects.tar2tf._dataset import SELECTIONS, Dataset
from tarviz.dialects.tar2tf._records import CONVERSIONS, default_record_parser, default_record_to_example
from tarviz.dialects.tar2tf._shards import CLASS_FIELDS, with_class_numbers

__all__ = [
    "CLASS_FIELDS",
    "CONVERSIONS",
    "SELECTIONS",
    "AisDataset",
    "Dataset",
    "default_record_parser",
    "default_record_to_example",
    "ops",
    "with_class_numbers",
]
