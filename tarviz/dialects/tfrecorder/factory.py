"""TFRecorder's factory: examples into TFRecord files by subset, with counts, CSV lists, a config file and a schema.

Beside the files of a subset lie `examples.csv` (a row per example, enough to make it again) and `schema.json`.
"""

from __future__ import annotations

import configparser
import inspect
import io
import json
import logging
import math
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tarviz import stores
from tarviz.dialects.tfrecorder._dataset import SUFFIX, generate_dataset, get_tfrecord_filepaths, numbered_files, write_schema
from tarviz.dialects.tfrecorder._example import Example, IgnoreExampleException, Path, read_csv, write_csv
from tarviz.dialects.tfrecorder._fields import Attribute, Shapes
from tarviz.formats import tfrecord
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.model.types import URL
from tarviz.outputs import Names, Outputs, manifest_url

__all__ = [
    "Counts",
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
]

_LOG = logging.getLogger(__name__)
MAX_SIZE = 1e6  # bytes of a file
CSV = "examples.csv"
CONFIG = "tfrecord_files_config.txt"
_TOLERANCE = 1e-6


def generate_and_save_train_eval_test_tfrecords_files(
    save_directory_path: Path,
    examples_class: type[Example] | None = None,
    examples_filepath: Path | None = None,
    examples_train_eval_test_ratio: float | Sequence[float] = 0.8,
    examples_tfrecord_file_max_size_in_bytes: float = MAX_SIZE,
    examples_log_in_csv_file: bool = True,
    *,
    example_class: type[Example] | None = None,
    examples_list_filepath: Path | None = None,
    **kwargs: Any,
) -> Counts:
    """The examples of a CSV file, split into train, eval and perhaps test, written below `save_directory_path`.

    `example_class` and `examples_list_filepath` are other names for the second and third argument. `kwargs`: the options of
    `generate_and_save_train_eval_test_tfrecords_files_for_examples`; all others go to `from_csv_row`, `load` and `split`.
    """
    kind = _pick_given(examples_class=examples_class, example_class=example_class)
    path = _pick_given(examples_filepath=examples_filepath, examples_list_filepath=examples_list_filepath)
    examples, about = _from_file(kind, path, kwargs)
    files = examples_tfrecord_file_max_size_in_bytes, examples_log_in_csv_file
    return _split_and_write(save_directory_path, examples, examples_train_eval_test_ratio, about, *files, **kwargs)


def generate_and_save_train_eval_test_tfrecords_files_for_examples(
    save_directory_path: Path,
    examples: Sequence[Example],
    examples_train_eval_test_ratio: float | Sequence[float] = 0.8,
    examples_shuffle: bool = True,
    examples_tfrecord_file_max_size_in_bytes: float = MAX_SIZE,
    examples_log_in_csv_file: bool = True,
    **kwargs: Any,
) -> Counts:
    """Examples split into train, eval and perhaps test, and written; the list given stays as it is.

    The ratio is the share of train, or two or three shares that sum to 1. `examples_shuffle` shuffles before, in an order that
    `examples_shuffle_seed` (0) decides. `examples_tfrecord_file_max_size_in_bytes` (10⁶) limits a file, framing
    included; only a record that is larger by itself exceeds it. `examples_log_in_csv_file` writes `examples.csv`. Other
    keywords go to `load` and `split`.
    """
    examples = list(examples)
    for kind in {type(example) for example in examples}:
        _check_keywords(kind, kwargs)
    about = {"class_name": type(examples[0]).__name__ if examples else "", "list_filepath": ""}
    files = examples_tfrecord_file_max_size_in_bytes, examples_log_in_csv_file
    return _split_and_write(
        save_directory_path, examples, examples_train_eval_test_ratio, about, *files, examples_shuffle=examples_shuffle, **kwargs
    )


def generate_and_save_tfrecords_files_for_train_eval_test_examples_files(
    save_directory_path: Path,
    examples_class: type[Example] | None = None,
    train_examples_filepath: Path | None = None,
    eval_examples_filepath: Path | None = None,
    test_examples_filepath: Path | None = None,
    examples_tfrecord_file_max_size_in_bytes: float = MAX_SIZE,
    examples_log_in_csv_file: bool = True,
    *,
    example_class: type[Example] | None = None,
    **kwargs: Any,
) -> Counts:
    """The split that earlier `examples.csv` files hold, made again."""
    files = {
        "train": _pick_given(train_examples_filepath=train_examples_filepath),
        "eval": _pick_given(eval_examples_filepath=eval_examples_filepath),
    }
    if test_examples_filepath is not None:
        files["test"] = test_examples_filepath
    return generate_and_save_tfrecords_files_for_examples_files_dict(
        save_directory_path,
        _pick_given(examples_class=examples_class, example_class=example_class),
        files,
        examples_tfrecord_file_max_size_in_bytes,
        examples_log_in_csv_file,
        **kwargs,
    )


def generate_and_save_tfrecords_files_for_examples_files_dict(
    save_directory_path: Path,
    examples_class: type[Example] | None = None,
    examples_filepaths: Mapping[str, Path] | None = None,
    examples_tfrecord_file_max_size_in_bytes: float = MAX_SIZE,
    examples_log_in_csv_file: bool = True,
    *,
    example_class: type[Example] | None = None,
    examples_filepaths_dict: Mapping[str, Path] | None = None,
    **kwargs: Any,
) -> Counts:
    """The examples of several CSV files, each in a subset of its name. `examples_filepaths_dict` is another name of the third argument."""
    kind = _pick_given(examples_class=examples_class, example_class=example_class)
    paths = _pick_given(examples_filepaths=examples_filepaths, examples_filepaths_dict=examples_filepaths_dict)
    examples = {name: _from_file(kind, path, kwargs)[0] for name, path in paths.items()}
    return generate_and_save_tfrecords_files_for_examples_dict(
        save_directory_path, examples, examples_tfrecord_file_max_size_in_bytes, examples_log_in_csv_file, **kwargs
    )


def generate_and_save_tfrecords_files_for_examples_dict(
    save_directory_path: Path,
    examples: Mapping[str, Sequence[Example]] | None = None,
    examples_tfrecord_file_max_size_in_bytes: float = MAX_SIZE,
    examples_log_in_csv_file: bool = True,
    *,
    examples_dict: Mapping[str, Sequence[Example]] | None = None,
    **kwargs: Any,
) -> Counts:
    """Examples by subset, under any names: `{"fold-0": […], "fold-1": […]}`. Their order is kept."""
    subsets = _pick_given(examples=examples, examples_dict=examples_dict)
    if not isinstance(subsets, Mapping) or not subsets:
        raise UsageError(f"examples are a dict of subset and list, got {type(subsets).__name__}.", hint='For example {"fold-0": [...]}.')
    for name, listed in subsets.items():
        _subset(name)
        for kind in {type(example) for example in listed}:
            _check_keywords(kind, kwargs)
    kinds = {type(example).__name__ for listed in subsets.values() for example in listed}
    about = {"class_name": ", ".join(sorted(kinds)), "list_filepath": ""}
    return write_subsets(save_directory_path, subsets, about, examples_tfrecord_file_max_size_in_bytes, examples_log_in_csv_file, **kwargs)


def generate_and_save_tfrecords_files_for_examples_file(
    save_directory_path: Path,
    examples_class: type[Example] | None = None,
    examples_filepath: Path | None = None,
    examples_tfrecord_file_max_size_in_bytes: float = MAX_SIZE,
    examples_log_in_csv_file: bool = True,
    *,
    example_class: type[Example] | None = None,
    **kwargs: Any,
) -> Counts:
    """The examples of a CSV file, without a split: the files lie in `save_directory_path` itself."""
    kind, path = _pick_given(examples_class=examples_class, example_class=example_class), _pick_given(examples_filepath=examples_filepath)
    examples, about = _from_file(kind, path, kwargs)
    files = examples_tfrecord_file_max_size_in_bytes, examples_log_in_csv_file
    return write_subsets(save_directory_path, {"": examples}, about, *files, **kwargs)


def _pick_given(**names: Any) -> Any:
    """The argument that was given, under whichever of its names."""
    found = [value for value in names.values() if value is not None]
    if len(found) == 1:
        return found[0]
    known = " or ".join(names)
    raise UsageError(f"{known} is given twice." if found else f"{known} is missing.")


def get_examples_list_filepaths(dirpath: Path) -> str:
    """The list of the examples in a subset's folder."""
    return str(stores.join(dirpath, CSV))


def split_examples_list(
    examples: Sequence[Example], examples_train_eval_test_ratio: float | Sequence[float] = 0.8
) -> tuple[list[Example], list[Example], list[Example] | None]:
    """Train, eval and test; test is None when no share is left for it. Shares are rounded down, the last one takes the rest.

    >>> [len(part) for part in split_examples_list([Example()] * 10, [0.7, 0.2, 0.1])]
    [7, 2, 1]
    """
    shares = _shares(examples_train_eval_test_ratio)
    count, listed = len(examples), list(examples)
    train = math.floor(count * shares[0] + _TOLERANCE)
    if len(shares) == 2 or shares[2] < _TOLERANCE:
        return listed[:train], listed[train:], None
    evaluated = train + math.floor(count * shares[1] + _TOLERANCE)
    return listed[:train], listed[train:evaluated], listed[evaluated:]


def _shares(ratio: Any) -> list[float]:
    try:
        shares = [float(ratio), 1 - float(ratio)] if isinstance(ratio, int | float) else [float(share) for share in ratio]
    except (TypeError, ValueError):
        shares = []
    fits = len(shares) in (2, 3) and all(0 <= share <= 1 for share in shares) and abs(sum(shares) - 1) <= _TOLERANCE
    if not fits or isinstance(ratio, bool):
        raise UsageError(
            f"the ratio {ratio!r} is neither a share of train from 0 to 1 nor two or three shares that sum to 1.",
            hint="For example 0.8, or [0.7, 0.2, 0.1].",
        )
    return shares


def _split_and_write(
    save_directory_path: Path,
    examples: list[Example],
    ratio: Any,
    about: dict[str, Any],
    limit: float,
    log: bool,
    /,  # what examples take may have any of these names
    *,
    examples_shuffle: bool = True,
    examples_shuffle_seed: int = 0,
    **kwargs: Any,
) -> Counts:
    _shares(ratio)
    if not examples:
        raise UsageError("there are no examples.")
    if examples_shuffle:
        random.Random(examples_shuffle_seed).shuffle(examples)
    parts = split_examples_list(examples, ratio)
    subsets = {name: part for name, part in zip(("train", "eval", "test"), parts, strict=True) if part is not None}
    return write_subsets(save_directory_path, subsets, {**about, "train_eval_test_ratio": ratio}, limit, log, **kwargs)


_OPTIONS = frozenset({
    "examples_shuffle", "examples_shuffle_seed", "examples_train_eval_test_ratio", "examples_log_in_csv_file",
    "examples_tfrecord_file_max_size_in_bytes", "examples_tfrecords_files_max_size_in_bytes",
})  # fmt: skip


def _from_file(kind: Any, path: Path, kwargs: Mapping[str, Any]) -> tuple[list[Example], dict[str, Any]]:
    """The examples of a CSV file, and what the config file says of them."""
    own = _check_keywords(kind, kwargs)
    return list(read_csv(kind, path, own)), {"class_name": kind.__name__, "list_filepath": absolute(path)}


def _check_keywords(kind: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords that are the examples' own, when the class can be written and takes them."""
    if not (isinstance(kind, type) and issubclass(kind, Example)):
        raise UsageError(f"{kind!r} is not a subclass of Example.")
    kind.get_tfrecordable_attribute_names()
    own = {name: value for name, value in kwargs.items() if name not in _OPTIONS}
    for method in (kind.load, kind.split):
        try:
            inspect.signature(method).bind(None, **own)
        except TypeError as error:
            hint = f"The options of the factory are {', '.join(sorted(_OPTIONS))}; let {method.__name__} take **kwargs for others."
            raise UsageError(f"{kind.__name__}.{method.__name__}: {error}.", hint=hint) from None
    return own


def _subset(name: Any) -> None:
    if not isinstance(name, str) or not name or "/" in name or name in (".", ".."):
        raise UsageError(f"a subset is named by a folder name, got {name!r}.")


class Counts(dict[str, int]):
    """Subset → examples that were given for it. `written` counts the records in its files, `ignored` the examples left out."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, int] = {}
        self.ignored: dict[str, int] = {}


def write_subsets(
    save_directory_path: Path,
    subsets: Mapping[str, Sequence[Example]],
    about: dict[str, Any],
    limit: float,
    log: bool,
    /,  # what examples take may have any of these names
    *,
    examples_tfrecords_files_max_size_in_bytes: float | None = None,
    **kwargs: Any,
) -> Counts:
    """Writes the subsets, in files of `limit` bytes at most, and the config file, with a `log` also the lists of examples.

    The one place where files are made. The keyword is another name of the limit, and goes before it.
    """
    limit = examples_tfrecords_files_max_size_in_bytes or limit
    root = os.fspath(save_directory_path)
    attributes = _attributes(example for listed in subsets.values() for example in listed)
    rows = {name: [example.to_csv_row() for example in listed] for name, listed in subsets.items()} if log else {}
    counts = Counts()
    for name, listed in subsets.items():
        folder = stores.join(root, name) if name else URL(root)
        shapes, ignored = Shapes({}), [0]
        names = Names(stores.join(folder, f"{{shard}}{SUFFIX}"))
        with Outputs(names, limit) as outputs:
            for batch in tfrecord.together(_serialize(listed, shapes, ignored, kwargs)):
                outputs.add(tfrecord.frame(batch))
        _forget(folder, len(outputs.done))
        if log:
            write_csv(stores.join(folder, CSV), rows[name])
        write_schema(folder, shapes.schema(attributes), outputs.done)
        counts[name] = len(listed)
        counts.written[name] = sum(written.records for written in outputs.done)
        counts.ignored[name] = ignored[0]
    facts = {**about, "tfrecord_file_max_size_in_mb": f"{limit / 1e6:.2e}", "log_in_csv_file": log}
    _write_config(root, {**facts, **{f"{name or 'examples'}_count": count for name, count in counts.items()}, **kwargs})
    return counts


def _attributes(examples: Iterable[Example]) -> tuple[Attribute, ...]:
    """The attributes of the examples, which all have to declare the same."""
    kinds = list(dict.fromkeys(type(example) for example in examples))
    if not kinds:
        raise UsageError("there are no examples.")
    for kind in kinds[1:]:
        if kind._attributes != kinds[0]._attributes:
            raise UsageError(
                f"{kinds[0].__name__} and {kind.__name__} declare different attributes.", hint="Write them to folders of their own."
            )
    return kinds[0]._attributes


def _serialize(examples: Sequence[Example], shapes: Shapes, ignored: list[int], kwargs: dict[str, Any]) -> Iterator[bytes]:
    """Each example loaded, split, serialised and let go, one after the other."""
    for number, example in enumerate(examples):
        kind = type(example).__name__
        step = "load"
        try:
            example.load(**kwargs)
            step = "split"
            chunks = example.split(**kwargs)
        except IgnoreExampleException as error:
            _LOG.warning("example %d (%s) is left out: %s", number, kind, error)
            ignored[0] += 1
            continue
        except Exception as error:
            error.add_note(f"{kind}.{step} of example {number} failed")
            raise
        if isinstance(chunks, Example) or not isinstance(chunks, Iterable):
            raise UsageError(f"{kind}.split of example {number} returned {type(chunks).__name__}, not a list of examples.")
        for chunk in chunks:
            if not isinstance(chunk, Example):
                raise UsageError(f"{kind}.split of example {number} returned a list with {type(chunk).__name__}, not examples.")
            try:
                yield chunk.serialize_to_string(shapes)
            except UsageError as error:
                raise error.at(key=f"example {number}") from error.__cause__
            chunk.release()
        example.release()


def _forget(folder: URL, count: int) -> None:
    """Removes files of an earlier, larger run, which would be taken for files of this one."""
    for number, path in numbered_files(folder):
        if number >= count:
            stores.of(path).delete(path)
            with suppress(NotFoundError):
                stores.of(path).delete(manifest_url(path))


def _write_config(root: str, facts: Mapping[str, Any]) -> None:
    config = configparser.ConfigParser(interpolation=None)
    config["examples"] = {name: _show(name, value) for name, value in facts.items()}
    text = io.StringIO()
    config.write(text)
    stores.write(stores.join(root, CONFIG), text.getvalue().encode())


def _show(name: str, value: Any) -> str:
    if "path" in name and isinstance(value, str | os.PathLike):
        return absolute(value)
    return json.dumps(list(value)) if isinstance(value, list | tuple) else str(value).replace("\n", " ")


def absolute(path: Path) -> str:
    """A local path from the root on, a URL as it is.

    >>> absolute("s3://bucket/a"), absolute(""), os.path.isabs(absolute("a"))
    ('s3://bucket/a', '', True)
    """
    text = os.fspath(path)
    return os.path.abspath(text) if text and stores.is_local(text) else text
