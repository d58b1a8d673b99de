"""go-tfdata over the engine: `Pipeline().from_tar(…).sample_to_tf_example(…).to_tfrecord(…).do()`.

`from tarviz.dialects.tfdata import Pipeline, core, selection, transform`. docs/dialects/tfdata.md lists what differs.
"""

from __future__ import annotations

from tarviz.dialects.tfdata import core as core
from tarviz.dialects.tfdata import selection as selection
from tarviz.dialects.tfdata import transform as transform
from tarviz.dialects.tfdata._pipeline import Pipeline as Pipeline
from tarviz.dialects.tfdata._pipeline import empty_examples as empty_examples
from tarviz.dialects.tfdata._pipeline import empty_samples as empty_samples
from tarviz.dialects.tfdata.core import FeatureType as FeatureType
from tarviz.dialects.tfdata.core import Sample as Sample
from tarviz.dialects.tfdata.core import TFExample as TFExample
from tarviz.dialects.tfdata.core import TypesMap as TypesMap
