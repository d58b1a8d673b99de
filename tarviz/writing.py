"""Shards from Python: `tarviz.writer` takes records one by one, `tarviz.write` an iterable of them.

A shard has its name when it is complete; values become bytes as the op `encode` makes them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import count, islice
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.cli.tar_tool_options import Made, Tar
from tarviz.model import config
from tarviz.model.errors import TarvizWarning, UsageError, redact
from tarviz.model.in_order import in_order
from tarviz.model.types import Buffer, Record, to_text
from tarviz.outputs import TAR_END, Exists, Inputs, Names, Outputs, packing
from tarviz.outputs.encoded import EncodedRecords, RecordEncoder, check_key
from tarviz.outputs.piped import is_command
from tarviz.read import stream
from tarviz.stores import Whole
from tarviz.stores.base import is_there
from tarviz.tools.field_selection import key_template

_HELD = 1 << 18  # bytes that wait before they are written
_TOGETHER = 8  # records that a thread encodes at a time
_ROWS = 1024  # of an Arrow table that are Python values at a time

Keyed: TypeAlias = tuple[str, Mapping[str, Any]]


@dataclass
class WrittenShards(Made):
    """The shards that are complete, first those that `resume` found (`kept` of them). Their `bytes` are those of the files."""

    kept: int = 0

    def summary(self) -> Iterator[str]:
        yield from super().summary()
        if self.kept:
            yield f"{self.kept} of them kept from before"

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"kept": self.kept}


class Writer(Whole):
    """Writes records to shards that follow each other; made by `tarviz.writer`. Not for several threads at a time."""

    def __init__(self, names: Names, outputs: Outputs, encoder: RecordEncoder, *, resume: bool) -> None:
        self._names, self._outputs, self.encoder = names, outputs, encoder
        self._waiting = EncodedRecords()
        self._written, self._fresh = set[int](), set[int]()  # hashes of the shard's keys: of those written, of those that wait
        self._origin: Any = None  # the shard that the record before was read from
        self._kept: list[Tar] = []
        self._before = self._keys_before() if resume else None
        self._open = True

    @property
    def result(self) -> WrittenShards:
        """The shards that are complete by now."""
        done = [Tar(each.url, each.records, each.bytes) for each in self._outputs.done]
        return WrittenShards([*self._kept, *done], kept=len(self._kept))

    def __str__(self) -> str:
        return str(self.result)

    def write(self, key: str, fields: Mapping[str, Any]) -> None:
        """Add a record. Bytes are written as they are, other values as their extension says; nothing of it is needed afterwards."""
        if not self.passes_over(key, fields):
            self.add(key, self.encoder.members(key, fields))

    def passes_over(self, key: str, fields: Mapping[str, Any]) -> bool:
        """Whether a shard that `resume` keeps holds the record already. `UsageError` for one read from a shard that is written."""
        if (origin := _origin(fields)) is not None and origin != self._origin:
            self._origin = origin
            Inputs([str(origin)]).refuse_any(self._names)
        if self._before is None:
            return False
        check_key(key)
        there = next(self._before, None)
        if there is None:
            self._before = None
            return False
        if there != key:
            hint = "Give the records of the interrupted run in the same order, or write without resume."
            raise UsageError(f"resume found {there!r} in the shards that are there, where {key!r} is given.", key=key, hint=hint)
        return True

    def _keys_before(self) -> Generator[str, None, None]:
        """The keys in shards that are there; each of these is kept once all its keys have come."""
        for number in count():
            url = self._names.at(number)
            if not is_there(stores.of(url), url):
                return
            found = 0
            with closing(stream.blocks(url)) as blocks:
                for block in blocks:
                    found += len(block)
                    yield from map(to_text, block.keys)
            self._kept.append(Tar(url, found, stores.of(url).stat(url).size or 0))
            self._outputs.start = number + 1

    def add(self, key: str, members: list[Buffer]) -> None:
        """Add a record whose members are made already."""
        if not self._open:
            raise UsageError("the writer is closed.", key=key, hint="Write inside of `with tarviz.writer(…) as out:`.")
        if (mark := hash(key)) in self._fresh or mark in self._written:
            raise UsageError(f"the key {key!r} comes twice: readers would take it for one record.", key=key, hint="A key names one record.")
        self._fresh.add(mark)
        self._waiting.add(members)
        if self._waiting.bytes >= _HELD:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, EncodedRecords()
        if waiting.sizes:
            complete = len(self._outputs.done)
            self._outputs.add(waiting)
            if len(self._outputs.done) > complete:
                self._written = set()
            self._written |= self._fresh
            self._fresh = set()

    def commit(self) -> WrittenShards:
        """Complete the last shard. Doing so twice does nothing."""
        if not self._open:
            return self.result
        if self._before is not None and (left := next(self._before, None)) is not None:
            hint = "Give all records again: those that are there are passed over."
            raise UsageError(f"the shards that are there hold more: {left!r} comes next.", key=left, hint=hint)
        self._open = False
        begun = bool(self._waiting.sizes or self._outputs.done)
        self._flush()
        if begun or not self._kept:
            self._outputs.commit()
        if self._names.counts and is_there(stores.of(url := self._names.at(self._outputs.start + len(self._outputs.done))), url):
            text = f"W_OLD_OUTPUT {redact(url)}: an output of an earlier run is still there and was not written by this one."
            warnings.warn(text, TarvizWarning, stacklevel=4)
        return self.result

    def abort(self) -> None:
        """Drop the shard that is open; those before it stay."""
        self._open = False
        if self._before is not None:
            self._before.close()
        self._outputs.abort()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            super().__exit__(kind, error, trace)
        except BaseException as failure:
            failure.add_note(self._leftovers())
            raise
        if error is not None:
            error.add_note(self._leftovers())

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            warnings.warn("a writer was not closed: its last shard is not written. Use it in a with.", ResourceWarning, stacklevel=2)
            self.abort()

    def _leftovers(self) -> str:
        """What stays of a run that was broken off."""
        found = self.result
        return f"Complete and kept:\n{found}" if found.outputs else "No shard was complete; nothing is left under a final name."


def _rows(records: Iterable[Any], key: str | None, fields: Mapping[str, str] | None) -> Iterator[Keyed]:
    """Key and fields of each record, batches taken apart; `key` and `fields` are those of `write`."""
    template = "{n:09d}" if key is None else key
    numbered = key_template(template) if "{" in template else None
    column = "__key__" if key is None or numbered is not None else key
    counted = key is not None and numbered is not None  # keys of the data are not asked for
    for number, record in enumerate(one for each in _each(records) for one in _parts(each, column)):
        name, there = _halves(record, column)
        if counted or (name is None and numbered is not None):
            assert numbered is not None
            name = to_text(numbered(b"", "", number))
        if name is None:
            raise UsageError(f"record {number} has no {column!r}, which is to be its key.", hint="Name another column, or '{n:09d}'.")
        if isinstance(name, float | np.floating):
            raise UsageError(f"record {number} has the number {name} as its key.", hint="A key is text or a whole number.")
        name = to_text(name) if isinstance(name, bytes) else str(name)
        yield name, _choose(there, fields, column if column == key else "", name)


def _choose(there: Mapping[str, Any], fields: Mapping[str, str] | None, column: str, key: str) -> Mapping[str, Any]:
    if fields is None:
        if type(there) is Record:
            return there
        return {ext: value for ext, value in there.items() if value is not None and ext != column}
    if lacking := [name for name in fields if name not in there]:
        raise UsageError(f"the record has no {lacking[0]!r}.", key=key, hint=f"It has {', '.join(map(str, there))}.")
    return {ext: there[name] for name, ext in fields.items() if there[name] is not None} | {"__shard__": _origin(there)}


def _origin(fields: Mapping[str, Any]) -> Any:
    """The shard that a record was read from; None where it does not say."""
    return fields.shard if type(fields) is Record else fields.get("__shard__")


def _halves(record: Any, column: str) -> tuple[Any, Mapping[str, Any]]:
    """Key, None where it has none, and fields of a record."""
    if type(record) is Record:
        return (record.key if column == "__key__" else to_text(bytes(record[column])) if column in record else None), record
    if type(record) is dict or isinstance(record, Mapping):  # the first is asked quicker
        return record.get(column), record
    if isinstance(record, tuple) and len(record) == 2 and isinstance(record[1], Mapping):
        return record
    raise UsageError(f"a record is a dict or (key, dict), got {type(record).__name__}.", hint='For example {"__key__": "0001", "cls": 3}.')


def _parts(record: Any, column: str) -> Iterator[Any]:
    """The records of a batch, whose keys are a list; a record by itself."""
    keys = record.get(column) if isinstance(record, dict) else None
    if isinstance(keys, list | tuple | np.ndarray):
        if uneven := [name for name, values in record.items() if len(values) != len(keys)]:
            raise UsageError(
                f"the batch has {len(keys)} keys, and {len(record[uneven[0]])} of {uneven[0]!r}.", hint="One value for each key."
            )
        yield from ({name: values[at] for name, values in record.items()} for at in range(len(keys)))
    else:
        yield record


def _each(records: Any) -> Iterator[Any]:
    """The rows of a table as dicts, what is missing as None; of other things what they iterate."""
    if hasattr(records, "iter_rows"):  # polars
        yield from records.iter_rows(named=True)
    elif hasattr(records, "to_batches") and hasattr(records, "schema"):  # pyarrow
        for batch in records.to_batches(max_chunksize=_ROWS):
            yield from batch.to_pylist()
    elif hasattr(records, "itertuples"):  # pandas
        names = [str(name) for name in records.columns]
        if len(set(names)) < len(names):
            raise UsageError(f"two columns of the table have one name: {', '.join(names)}.")
        for row in records.itertuples(index=False, name=None):
            yield {name: None if _missing(value) else value for name, value in zip(names, row, strict=True)}
    else:
        yield from records


def _missing(value: Any) -> bool:
    """Whether pandas takes a cell for empty: NaN, NaT, NA."""
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def _encode(rows: Iterator[Keyed], encoder: RecordEncoder, workers: int) -> Generator[tuple[str, list[Buffer]], None, None]:
    """Key and members of records, in order, made by so many threads."""

    def members(some: list[Keyed]) -> list[tuple[str, list[Buffer]]]:
        return [(key, encoder.members(key, fields)) for key, fields in some]

    chunks = iter(lambda: [*islice(rows, _TOGETHER)], [])
    if not workers:
        yield from ((key, encoder.members(key, fields)) for key, fields in rows)
        return
    with ThreadPoolExecutor(workers, "tarviz-encode") as pool:
        for some in in_order(chunks, members, pool, 2 * workers):
            yield from some


def writer(
    out: str | os.PathLike[str],
    *,
    max_shard_size: int | float | str | None = None,
    max_records: int | None = None,
    formats: Mapping[str, str] | None = None,
    quality: int = 90,
    exists: Exists = "replace",
    resume: bool = False,
) -> Writer:
    """A context manager whose `write(key, fields)` adds a record: `{"jpg": array or bytes, "json": {…}, "cls": 3, "txt": "…"}`.

    `out` is a name in any store, packed where it ends in gz, zst, bz2 or xz. With `{}` (1, 2, …), `{shard:06d}` or `%06d` (from 0)
    shards follow each other: one ends before the record that would take it beyond `max_shard_size` (bytes of tar, or text such as
    `"1GB"`) or `max_records`. Bytes are written as they are; other values as the op `encode` makes them: uint8 pictures
    [height, width, channels], PIL pictures, torch tensors, JSON, classes, texts, npy. `formats` names a format for an extension that says
    none (`{"caption": "txt"}`); `quality` is that of JPEG and WebP. The same records make the same bytes: members have no time.

    A shard has its name when it is complete. An exception drops the one that is open; a note in it names those that are complete.
    `exists`: `"replace"` a shard of that name, or `"error"`. `resume` keeps the complete shards of a run that was broken off: the same
    records must come again in the same order; those that are there are passed over by their keys (values are not compared) and not
    encoded. The result is in `.result`.

    >>> import tarviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tarviz.writer(f"{folder}/train-{{}}.tar", max_shard_size="1GB") as out:
    ...         out.write("0001", {"txt": "a cat", "cls": 3})
    ...     [(record.key, bytes(record["cls"])) for record in tarviz.records(f"{folder}/train-1.tar")]
    [('0001', b'3')]
    """
    if exists not in ("replace", "error"):
        raise UsageError(f"exists={exists!r} is not one of replace, error.")
    names = Names(os.fspath(out))
    if resume and (names.text == "-" or is_command(names.text)):
        raise UsageError("what goes into a pipe cannot be resumed.", hint="Name a file.")
    encoder = RecordEncoder(dict(formats or {}), quality)
    outputs = Outputs(
        names, max_size=max_shard_size, max_records=max_records, compression=packing(names.text), exists=exists, ending=TAR_END
    )
    if exists == "error" and not resume:
        names.refuse_taken()
    return Writer(names, outputs, encoder, resume=resume)


def write(
    records: Iterable[Any],
    out: str | os.PathLike[str],
    *,
    key: str | None = None,
    fields: Mapping[str, str] | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    max_shard_size: int | float | str | None = None,
    max_records: int | None = None,
    formats: Mapping[str, str] | None = None,
    quality: int = 90,
    exists: Exists = "replace",
    resume: bool = False,
) -> WrittenShards:
    """Writes records to shards, named, limited and encoded as `writer` says; returns what was written.

    `records`: a pipeline, records, a `DataLoader` (of records, or of batches whose `__key__` is a list), a `datasets` dataset, a table of
    pandas, polars or pyarrow (a record each row), or any iterable of dicts or of (key, dict). `key` names the column of keys, or is a
    template with `{n}` or `{n:09d}`, the number of the record from 0; left out, it is `__key__` where there is one, else `{n:09d}`.
    `fields` chooses columns and names extensions, `{"image": "jpg", "label": "cls"}`; without it each column is an extension. What is
    None, or missing in a table, is no field. `workers` threads encode, in order. `progress`: shown or not; None: as the options say.

    >>> import tarviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = tarviz.write([{"caption": "a cat", "label": 3}], f"{folder}/a.tar", fields={"caption": "txt", "label": "cls"})
    ...     made.records, [record.key for record in tarviz.records(f"{folder}/a.tar")]
    (1, ['000000000'])
    """
    if workers is not None and workers < 0:
        raise UsageError(f"workers={workers!r} is less than 0.")
    if fields and len(set(fields.values())) < len(fields):
        raise UsageError(f"fields={fields!r} makes one field of two columns.")
    made = writer(
        out,
        max_shard_size=max_shard_size,
        max_records=max_records,
        formats=formats,
        quality=quality,
        exists=exists,
        resume=resume,
    )
    known: Any = records
    total = len(known) if hasattr(known, "__len__") and hasattr(known, "__getitem__") else None  # a loader counts batches
    shown = nullcontext() if progress is None else config.options(progress="on" if progress else "off")
    with shown, made, verb_base.progress(total, "records") as bar:

        def todo() -> Iterator[Keyed]:
            for name, there in _rows(records, key, fields):
                if made.passes_over(name, there):
                    bar.add()
                else:
                    yield name, there

        with closing(_encode(todo(), made.encoder, workers or 0)) as encoded:
            for name, members in encoded:
                made.add(name, members)
                bar.add()
    return made.result
