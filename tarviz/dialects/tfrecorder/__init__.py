"""TFRecorder over the engine: classes that say which attributes are written, and a factory that writes and reads them.

`from tarviz.dialects.tfrecorder import Example, tfrecordable, factory as tf_factory`. docs/dialects/tfrecorder.md lists what differs.
TensorFlow is imported by `generate_dataset` and `parse_from_string` only.
"""

from __future__ import annotations

from tarviz.dialects.tfrecorder import checker as checker
from tarviz.dialects.tfrecorder import factory as factory
from tarviz.dialects.tfrecorder._example import Example as Example
from tarviz.dialects.tfrecorder._example import IgnoreExampleException as IgnoreExampleException
from tarviz.dialects.tfrecorder._example import tfrecordable as tfrecordable
from tarviz.dialects.tfrecorder._fields import Field as Field
from tarviz.dialects.tfrecorder.factory import *  # noqa: F403  its `__all__`
