"""NVIDIA's tar2tf over the engine, both generations: `AisDataset(…).load_from_tar(…)` and `Dataset(…).load(…)`.

`from tarviz.dialects.tar2tf import Dataset, AisDataset, default_record_parser` and
`from tarviz.dialects.tar2tf.ops import Decode, Convert, Resize, …`. docs/dialects/tar2tf.md lists what differs.
TensorFlow is imported when something is loaded.
"""

from __future__ import annotations

from tarviz.dialects.tar2tf import ops as ops
from tarviz.dialects.tar2tf._ais import AisDataset as AisDataset
from tarviz.dialects.tar2tf._dataset import SELECTIONS as SELECTIONS
from tarviz.dialects.tar2tf._dataset import Dataset as Dataset
from tarviz.dialects.tar2tf._records import CONVERSIONS as CONVERSIONS
from tarviz.dialects.tar2tf._records import default_record_parser as default_record_parser
from tarviz.dialects.tar2tf._records import default_record_to_example as default_record_to_example
from tarviz.dialects.tar2tf._shards import CLASS_FIELDS as CLASS_FIELDS
from tarviz.dialects.tar2tf._shards import with_class_numbers as with_class_numbers
