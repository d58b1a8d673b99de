"""go-tfdata over the engine: `Pipeline().from_tar(…).sample_to_tf_example(…).to_tfrecord(…).do()`.

`from tarviz.dialects.tfdata import Pipeline, core, selection, transform`. docs/dialects/tfdata.md lists what differs.
"""

from __future__ import annotations

from tarviz.dialects.tfdata import core, selection, transform
from tarviz.dialects.tfdata._pipeline import Pipeline
from tarviz.dialects.tfdata._stages import empty_examples, empty_samples
from tarviz.dialects.tfdata.core import FeatureType, Sample, TFExample, TypesMap

__all__ = [
    "FeatureType",
    "Pipeline",
    "Sample",
    "TFExample",
    "TypesMap",
    "core",
    "empty_examples",
    "empty_samples",
    "selection",
    "transform",
]
