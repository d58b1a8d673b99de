"""TFRecorder over the engine: classes that say which attributes are written, and a factory that writes and reads them.

`from tarviz.dialects.tfrecorder import Example, tfrecordable, factory as tf_factory`. docs/dialects/tfrecorder.md lists what differs.
TensorFlow is imported by `generate_dataset` and `parse_from_string` only.
"""

from __future__ import annotations

from tarviz.dialects.tfrecorder import checker, factory
from tarviz.dialects.tfrecorder._dataset import generate_dataset, get_tfrecord_filepaths
from tarviz.dialects.tfrecorder._example import Example, IgnoreExampleException, tfrecordable
from tarviz.dialects.tfrecorder._fields import Field
from tarviz.dialects.tfrecorder.factory import (
    Counts,
    generate_and_save_tfrecords_files_for_examples_dict,
    generate_and_save_tfrecords_files_for_examples_file,
    generate_and_save_tfrecords_files_for_examples_files_dict,
    generate_and_save_tfrecords_files_for_train_eval_test_examples_files,
    generate_and_save_train_eval_test_tfrecords_files,
    generate_and_save_train_eval_test_tfrecords_files_for_examples,
    get_examples_list_filepaths,
    split_examples_list,
)

__all__ = [
    "Counts",
    "Example",
    "Field",
    "IgnoreExampleException",
    "checker",
    "factory",
    "generate_and_save_tfrecords_files_for_examples_dict",
    "generate_and_save_tfrecords_files_for_examples_file",
    "generate_and_save_tfrecords_files_for_examples_files_dict",
    "generate_and_save_tfrecords_files_for_train_eval_test_examples_files",
    "generate_and_save_train_eval_test_tfrecords_files",
    "generate_and_save_train_eval_test_tfrecords_files_for_examples",
    "generate_dataset",
    "get_examples_list_filepaths",
    "get_tfrecord_filepaths",
    "split_examples_list",
    "tfrecordable",
]
