"""What both generations share: where the shards of a bucket are, and how they become a dataset or TFRecord files."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarviz import stores
from tarviz.dialects.tar2tf._records import ToExample, default_record_to_example
from tarviz.model.errors import UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.model.urls import path_or_url
from tarviz.ops import Chain, Decode, Drop, FieldOp, Keep, Op, Rename
from tarviz.outputs import Names
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.selection import Select, SelectDict, Selection, SelectList
from tarviz.stores.templates import braces

CLASS_FIELDS = ("cls", "cls2", "class", "index", "id")
"""Fields that hold a class number as ASCII text: a conversion leaves them alone, and they become int32."""

_BUCKET = re.compile(r"\w[\w.-]*", re.ASCII)

OPTIONS: dict[str, Any] = {"key_split": "last-dot", "group": "shard", "duplicates": "last"}

_LITTLE = 64 << 20

OutputPath: TypeAlias = "str | os.PathLike[str] | Iterable[str] | Callable[[], Iterator[str]] | None"


class Bucket:
    """Shards below `bucket_name`, with what is made of their records."""

    chain: Chain
    selection: Selection

    def __init__(self, bucket_name: str | os.PathLike[str], proxy_url: str | None) -> None:
        self._prefix = prefix(bucket_name, proxy_url)
        self.bucket_name = os.fspath(bucket_name)
        self.proxy_url = proxy_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.bucket_name!r}, {str(self.chain)!r}, {self.selection!r})"


def prefix(bucket_name: str | os.PathLike[str], proxy_url: str | None) -> str:
    """Where the objects of a bucket are: a folder or a URL prefix. Of a bucket of AIStore `proxy_url` becomes `AIS_ENDPOINT`.

    Where a proxy is given, what can be the name of a bucket is one, and `./name` the folder; else a folder of that name goes before.
    """
    if not isinstance(bucket_name, str | os.PathLike) or not os.fspath(bucket_name):
        raise UsageError(f"bucket_name={bucket_name!r} is not a name, folder or URL prefix.")
    if proxy_url is not None and not isinstance(proxy_url, str):
        hint = "The order is Dataset(bucket_name, proxy_url, conversions, selections); name them: conversions=[…]."
        raise UsageError(f"proxy_url={proxy_url!r} is not a URL.", hint=hint)
    name = os.fspath(bucket_name)
    if "://" in name and not name.startswith("ais://"):
        stores.of(name)
        return name
    named, folder = _BUCKET.fullmatch(name) is not None, os.path.isdir(stores.local_path(name))
    if proxy_url is None:
        bucket = named and not folder and bool(os.environ.get("AIS_ENDPOINT"))
    else:
        bucket = named or not folder
    if not bucket and not name.startswith("ais://"):
        return name
    if proxy_url is not None:
        os.environ["AIS_ENDPOINT"] = proxy_url  # workers and TensorFlow's threads read it too
    return name if name.startswith("ais://") else f"ais://{name}"


def urls(where: str, template: str | Sequence[str]) -> list[str]:
    """The names of a template (bash braces) below a bucket."""
    if not isinstance(template, str) and not (isinstance(template, Sequence) and all(isinstance(name, str) for name in template)):
        raise UsageError(f"a template is text, such as train-{{0..3}}.tar.gz, got {template!r}.")
    found: list[str] = []
    for name in (template,) if isinstance(template, str) else template:
        if where.startswith(("http://", "https://")):  # there, braces in a name would be quoted
            found += [stores.join(where, part) for part in braces(name)]
        else:
            found.append(stores.join(where, name))
    return found


def with_class_numbers(pipeline: Pipeline, output_types: Any = None) -> Pipeline:
    """The pipeline with the class fields it selects, under whatever name, decoded to int32 where its chain leaves them alone.

    Those for which `output_types` asks for strings stay as they are.
    """
    plan = pipeline.plan()
    whence = _origins(pipeline, plan.fields)
    selected = [leaf.ext for leaf in pipeline.select.leaves() if isinstance(leaf, Select)]
    text = _strings(pipeline.select, output_types)
    raw = [
        ext for ext in dict.fromkeys(selected) if whence.get(ext) in CLASS_FIELDS and ext not in text and plan.record[ext].dtype == "bytes"
    ]
    decoded: list[Op] = []
    for ext in raw:
        if ext in CLASS_FIELDS:
            decoded.append(Decode(ext, dtype="int32"))
        else:  # a name such as `label` does not say how it is decoded
            named = f"{ext}.cls"
            decoded += [Rename({named: ext}), Decode(named, dtype="int32"), Rename({ext: named})]
    return pipeline.with_chain([*pipeline.chain, *decoded]) if raw else pipeline


def _origins(pipeline: Pipeline, fields: Iterable[str]) -> dict[str, str | None]:
    """Field behind the chain → the field of the shard that it is, under whatever name; None where an op has worked on it."""
    whence: dict[str, Any] = {name: name for name in fields}
    for op in pipeline.chain:
        if isinstance(op, FieldOp):
            whence |= dict.fromkeys(op.exts)
        elif isinstance(op, Rename | Keep | Drop):
            whence = op.apply_record(whence)
    return whence


def _strings(selection: Selection, types: Any) -> set[str]:
    """The fields for which `types`, in the structure of the selection, has `tf.string`."""
    if isinstance(selection, Select):
        return {selection.ext} if getattr(types, "name", types) in ("string", str, bytes) else set()
    if isinstance(selection, SelectList) and isinstance(types, list | tuple):
        return {ext for item, kind in zip(selection.items, types, strict=False) for ext in _strings(item, kind)}
    if isinstance(selection, SelectDict) and isinstance(types, Mapping):
        return {ext for name, item in selection.items for ext in _strings(item, types.get(name))}
    return set()


@dataclass(frozen=True, slots=True)
class GivenNames(Names):
    """Names of outputs that a generator yields, one after the other."""

    given: Iterator[str]
    seen: list[str]

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        """Nothing to check: there is no text to read."""

    @property
    def counts(self) -> bool:
        return True

    def at(self, number: int) -> URL:
        while len(self.seen) <= number:
            name = next(self.given, None)
            if name is None:
                raise UsageError(f"the generator given as path ended after {len(self.seen)} name(s); one more is needed.")
            if not isinstance(name, str | os.PathLike) or not os.fspath(name):
                raise UsageError(f"the generator given as path yielded {name!r}, which is not a path.")
            self.seen.append(os.fspath(name))
        return URL(self.seen[number])


def outputs_of(path: Any, max_shard_size: Any, record_to_example: Any) -> str | GivenNames | None:
    """The outputs that `path` names: text, what a generator yields, or None for none; then the others have to be left out, too."""
    if max_shard_size and (isinstance(max_shard_size, bool) or not isinstance(max_shard_size, int | float | str)):
        raise UsageError(f"max_shard_size={max_shard_size!r} is neither a number of bytes nor a size such as '100MB'.")
    if path is None or path == "":
        if max_shard_size:
            raise UsageError("max_shard_size limits files; there is no path.", hint='Add path="train-{}.record".')
        if record_to_example is not None:
            hint = 'Add path="train-{}.record", or use Func(f).'
            raise UsageError("record_to_example is for TFRecord files; there is no path.", hint=hint)
        return None
    if isinstance(path, str | os.PathLike):
        return os.fspath(path)
    if inspect.isgeneratorfunction(path):
        path = path()
    if isinstance(path, Mapping | bytes) or not isinstance(path, Iterable):
        raise UsageError(f"path is text or a generator of texts, got {type(path).__name__}.", hint="For example train-{}.record.")
    return GivenNames("", iter(path), [])


def write(
    shards: list[str],
    outputs: str | GivenNames,
    record_to_example: Callable[[dict[str, Any]], Any] | None,
    max_shard_size: int | float | str | None,
    num_workers: int,
) -> list[str]:
    """The records of shards, as they are, as TFRecord files; returns their paths."""
    if isinstance(outputs, GivenNames):
        if not max_shard_size:
            outputs.at(len(stream.shards(shards)) - 1)  # too few names are an error before anything is written
        num_workers = 1
    if record_to_example is not None:
        if not callable(record_to_example):
            raise UsageError(f"record_to_example={record_to_example!r} is not a function of the record.")
        num_workers = 1  # a function of a notebook need not be able to travel
    if all(map(stores.is_local, shards)) and sum(stores.of(url).stat(url).size or 0 for url in stream.shards(shards)) < _LITTLE:
        num_workers = 1  # done before a worker has started
    pipeline = Pipeline(shards, **OPTIONS)
    made = pipeline.convert(
        outputs,
        max_shard_size=max_shard_size or None,
        num_workers=num_workers,
        record_to_example=ToExample(record_to_example or default_record_to_example),
    )
    return list(map(path_or_url, made))


def check_remote(remote_exec: Any) -> None:
    """`UsageError` when `remote_exec` is neither True, False nor None."""
    if remote_exec is not None and not isinstance(remote_exec, bool):
        raise UsageError(f"remote_exec={remote_exec!r} is not one of True, False, None.")
