"""TFRecord files of recordable attributes read back: which files there are, what is in them, and a tf.data.Dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tarviz import stores
from tarviz.dialects.tfrecorder._example import Example, Path
from tarviz.dialects.tfrecorder._fields import RecordSchema
from tarviz.model.errors import DataError, NotFoundError, UsageError, require
from tarviz.model.types import URL
from tarviz.model.urls import path_or_url
from tarviz.outputs import Written

if TYPE_CHECKING:
    import tensorflow as tf

SUFFIX = ".tfr"
SCHEMA = "schema.json"


def get_tfrecord_filepaths(dirpath: Path) -> list[str]:
    """The files `0.tfr`, `1.tfr`, … of a folder, in the order of their numbers."""
    paths = numbered_files(dirpath)
    if not paths:
        raise NotFoundError(
            f"the folder holds no {SUFFIX} file.", shard=os.fspath(dirpath), hint="Name the folder of one subset, such as train."
        )
    return [str(path) for _, path in paths]


def numbered_files(dirpath: Path) -> list[tuple[int, URL]]:
    """Number and path of the `.tfr` files of a folder, sorted."""
    folder = URL(os.fspath(dirpath))
    found = []
    for stat in stores.of(folder).list(folder):
        stem = stat.url.rpartition("/")[2].removesuffix(SUFFIX)
        if not stat.url.endswith(SUFFIX):
            continue
        if not stem.isascii() or not stem.isdigit():
            raise UsageError(f"{stem}{SUFFIX} is not named by a number.", shard=folder)
        found.append((int(stem), stat.url))
    return sorted(found)


def write_schema(folder: Path, schema: RecordSchema, files: Sequence[Written]) -> None:
    """Keeps beside the files what is in them."""
    about = {each.url.rpartition("/")[2]: {"records": each.records, "bytes": each.bytes, "crc32c": each.crc32c} for each in files}
    stores.write(stores.join(folder, SCHEMA), json.dumps({"tfrecordable": schema.to_dict(), "files": about}, indent=1).encode() + b"\n")


def read_schema(folder: str) -> tuple[RecordSchema, dict[str, dict[str, Any]]] | None:
    """The schema kept in a folder, and figures by file name; None when there is none."""
    url = stores.join(folder, SCHEMA)
    try:
        stat = stores.of(url).stat(url)
    except NotFoundError:
        return None
    try:
        content = json.loads(stores.of(url).read(url, 0, stat.size or 1 << 24))
        return RecordSchema.from_dict(content["tfrecordable"]), dict(content["files"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"this is not a schema of recordable attributes: {error!r}.", code="E_DECODE", shard=url) from error


def schema_of(paths: Iterable[str], example_class: type[Example] | None = None) -> RecordSchema:
    """What the files hold: as their folders say, as the class says where they do not. Files that were cut are an error."""
    if example_class is not None and not (isinstance(example_class, type) and issubclass(example_class, Example)):
        raise UsageError(f"example_class={example_class!r} is not a subclass of Example.")
    found = None
    if example_class is not None:
        example_class.get_tfrecordable_attribute_names()
        found = RecordSchema(example_class._attributes)
    kept: RecordSchema | None = None
    folders: dict[str, Any] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = read_schema(folder or ".")
        if folders[folder] is None:
            if found is None:
                raise UsageError(
                    f"there is no {SCHEMA} beside the file.", shard=path, hint="Say what is in it: generate_dataset(paths, YourExample)."
                )
            continue
        schema, files = folders[folder]
        for other in (found, kept):
            if other is not None and not other.same(schema):
                raise UsageError(f"the file holds {schema}; expected {other}.", shard=path)
        kept = schema if kept is None else kept.join(schema)
        _check_size(path, files.get(name))
    whole = all(folder is not None for folder in folders.values())
    return kept if kept is not None and whole else (found or kept)  # type: ignore[return-value]  # one of them is there


def _check_size(path: str, about: dict[str, Any] | None) -> None:
    if about is None:
        return
    size = stores.of(path).stat(URL(path)).size
    if size is not None and size != about["bytes"]:
        raise DataError(
            f"the file has {size} bytes; {about['bytes']} were written.", code="E_TRUNCATED", shard=path, hint="Generate it again."
        )


def generate_dataset(
    tfrecord_filepaths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    example_class: type[Example] | None = None,
    dataset_num_shuffled_tfrecord_files: int | None = None,
    dataset_fetching_num_threads: int | None = None,
    *,
    tfrecords_filepaths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
) -> tf.data.Dataset:
    """The examples of TFRecord files as tuples of tensors, attributes in declared order, examples in file order.

    The class is needed only for files without a `schema.json` beside them. Arrays have their shapes, with None where they
    differ between examples. `dataset_num_shuffled_tfrecord_files`: so many files are read in turn, in random order.
    `dataset_fetching_num_threads`: threads that parse; the order stays. `tfrecords_filepaths` is another name of the first argument.
    """
    tf = require("tensorflow", "generate_dataset", "tensorflow")
    given = tfrecord_filepaths if tfrecord_filepaths is not None else tfrecords_filepaths
    listed = [given] if isinstance(given, str | os.PathLike) else given or ()
    paths = list(map(path_or_url, listed))
    if not paths:
        raise UsageError("there are no TFRecord files.", hint="get_tfrecord_filepaths(folder) lists those of a folder.")
    for path in paths:
        stores.of(path).stat(URL(path))
        if not stores.is_local(path) and path.partition("://")[0] not in tf.io.gfile.get_registered_schemes():
            raise UsageError("TensorFlow does not read from there.", shard=path, hint="Copy the files to this machine first.")
    schema = schema_of(paths, example_class)
    threads = dataset_fetching_num_threads or tf.data.AUTOTUNE
    if dataset_num_shuffled_tfrecord_files:
        count = int(dataset_num_shuffled_tfrecord_files)
        files = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
        records = files.interleave(tf.data.TFRecordDataset, cycle_length=count, num_parallel_calls=threads, deterministic=True)
    else:
        records = tf.data.TFRecordDataset(paths)
    return records.map(schema.parse, num_parallel_calls=threads, deterministic=True)
