"""Create shards: from a plan (TSV, CSV, Parquet; a row for each record), from a folder sorted by split and label, from COCO, YOLO, VOC."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, get_args

import click
import numpy as np

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.cli.tar_tool_options import Made, Tar
from tarviz.formats.tar_header import tar_header
from tarviz.model.config import parse_size
from tarviz.model.errors import DataError, Fault, TarvizError, UsageError, safe
from tarviz.model.types import URL, to_bytes, to_text
from tarviz.model.wording import plural
from tarviz.outputs import Names
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.limits import Limits
from tarviz.outputs.output import size_of
from tarviz.outputs.tar_output import Piece, Range, TarOutput
from tarviz.read.spans import HeldTar
from tarviz.stores import Whole
from tarviz.tools import coco_plan, field_selection
from tarviz.tools.create_plan import Planned, paths_in, read_plan
from tarviz.tools.field_selection import columns
from tarviz.tools.folder_layout import FileGroup, Layout, files_of
from tarviz.tools.whole_file import contents

_SMALL = 64 << 10  # bytes of a file that is read at once
_SHOWN = 8
_CUT = re.compile(r"\{split\}")


@dataclass
class Created(Made):
    """The tars written; also the labels, whose places are the classes, what was done to names, and files that hold both."""

    labels: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)

    def summary(self) -> Iterator[str]:
        yield from super().summary()
        if self.labels:
            yield plural(len(self.labels), "class")
        yield from self.names
        yield from (f"see {place}" for place in self.beside)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"labels": self.labels, "names": self.names, "beside": self.beside}


def create(
    source: str | PathLike[str],
    output: str | PathLike[str] = "-",
    *,
    delimiter: str | None = None,
    key: str = "{n:09d}",
    base: str | PathLike[str] | None = None,
    fields: Mapping[str, str] | None = None,
    layout: Layout = "auto",
    coco: str | PathLike[str] | None = None,
    labels: str | PathLike[str] | None = None,
    count: int | None = None,
    size: int | float | str | None = None,
    on_error: str = "raise",
) -> Created:
    r"""Writes a tar of records that a plan or a folder describes.

    A plan is a table (TSV, CSV, Parquet) whose header names extensions. A cell is the field's text; below `@jpg` it is the path or URL
    of the file to take, relative to `base`. `fields` says so of columns with other titles, `{"filename": "@jpg", "label": "cls"}`, and
    leaves the others out. `__key__` holds the keys, else `key` makes them of the row's number. A TSV cell may be
    escaped as `tsv` does; `\N`, in a CSV an empty cell, is a field that is not there. All local files are looked for before anything is
    written.

    A folder is `<split>/<label>/<file>` or `<label>/<file>` or just files (`layout` says which, `auto` looks at the depth): files that
    share a name before the first dot are the fields of one record. Pictures of several endings (jpg, jpeg, png) are one field where no
    record has two of them; a dot that belongs to a file's stem (`IMG_1.v2.jpg`) is `_` in the key. The result says what was done, and
    `OUTPUT.names.tsv` holds key and path of each file that was renamed. `{split}` in the output makes one series for each split.

    `coco` names an annotation file of COCO's: each picture it lists, in the folder `source` or below, is a record with its entry,
    annotations and their categories as `json`. The layouts `yolo` and `voc` put together what lies in `images` and `labels`, or in
    `JPEGImages` and `Annotations`, under one name (`images/train/1.jpg` and `labels/train/1.txt` are `train/1`). Overlays and
    `objects` read all three; YOLO's names of classes go into `OUTPUT.labels.txt`, for `--classes`.

    `cls` is the number of a record's label among all, sorted: of a folder's labels, and of a plan's where one of them is text (not in a
    TSV with `__key__`, which is what `tsv` writes). `labels` names a file that lists them; without it a plan's go into
    `OUTPUT.labels.txt`.

    With `count` or `size` an output goes on in another one, as `split` does; then its name needs a counter.
    """
    place, result = fspath(source), Created()
    series = _Series(fspath(output), Limits(count, None if size is None else parse_size(size)))
    renamed: list[tuple[str, str]] = []
    numbered = layout == "yolo"
    folder = place != "-" and stores.is_local(place) and os.path.isdir(stores.local_path(place))
    if _CUT.search(fspath(output)) and (coco is not None or not folder):
        raise UsageError("neither a plan nor COCO has splits: {split} is for folders.")
    if coco is not None:
        plan, made = coco_plan.read_plan(fspath(coco), stores.local_path(URL(place)), check=on_error == "raise")
        result.names, renamed = made.notes, made.renamed
        records = _refuse_sources(plan, fspath(coco), series)
    elif folder:
        root = stores.local_path(place)
        groups, result.labels, made = files_of(root, layout, result.report)
        result.names, renamed = made.notes, made.renamed
        records = _from_folder(root, groups, result.labels, split_apart=bool(_CUT.search(fspath(output))))
        series.refuse([os.path.join(root, path) for group in groups for _, path in group.files], {group.split for group in groups})
    else:
        plan = _read_plan(place, delimiter, key, fspath(base or ""), fields or {}, on_error == "raise", result)
        numbered = bool(result.labels)
        records = _refuse_sources(plan, place, series)
    _run(records, series, result, on_error)
    if labels is not None:
        _write_labels(labels, result)
    if not result.to_stdout:
        _write_beside(output, "labels.txt", result.labels if numbered and labels is None else [], result)
        _write_beside(output, "names.tsv", [f"{key}\t{path}" for key, path in renamed], result)
    return result


def _refuse_sources(plan: list[Planned], place: str, series: _Series) -> Iterator[Planned]:
    """The records of a plan; `UsageError` where an output is one of the files that it names."""
    series.refuse([place, *(content for record in plan for _, content in record.fields if isinstance(content, str))], {""})
    return iter(plan)


def _read_plan(
    place: str, delimiter: str | None, key: str, base: str, fields: Mapping[str, str], check: bool, result: Created
) -> list[Planned]:
    """The records of a plan; what is to be said of it goes into the result."""
    plan, result.labels = read_plan(place, delimiter, key, base, fields, check=check)
    if not plan:
        result.report.add(Fault("W_EMPTY", "the plan has no row below its first line, which names the fields.", place))
    result.names += [f"labels are text: cls is the number of each, from 0, {safe(label)}" for label in result.labels[:1]]
    for text in paths_in(plan, [base, os.path.dirname(place)]):
        result.report.add(Fault("W_PATHS", text, place))
    return plan


def _run(records: Iterator[Planned], series: _Series, result: Created, on_error: str) -> None:
    """Write records into the outputs, and what is left out into the report."""
    seen: set[bytes] = set()
    fields = Counter[str]()
    with verb_base.progress(None, "records") as bar, series:
        for record in records:
            try:
                _check(record, seen)
                series.put(record)
                fields.update({to_text(ext).lower() for ext, _ in record.fields})
            except TarvizError as error:
                if on_error == "raise" or not isinstance(error, DataError | FileNotFoundError | UsageError):
                    raise
                fault = Fault(error.code, f"{record.place}: {error.message}", error.shard, to_text(record.key))
                result.report.add(fault, skipped=True)
            bar.add()
    result.outputs += series.done
    result.report.records = result.records
    if some := [f"{safe(ext)} {count:,}" for ext, count in fields.most_common() if count < result.records]:
        result.names.append(f"not in all {result.records:,} records: {', '.join(some[:_SHOWN])}{', …' if len(some) > _SHOWN else ''}")


def _write_beside(output: str | PathLike[str], ending: str, lines: list[str], result: Created) -> None:
    """Write lines, if there are any, beside an output: for `a/train-{shard:06d}.tar` into `a/train.ENDING`, for `{split}.tar` `ENDING`."""
    if not lines:
        return
    folder, slash, name = fspath(output).rpartition("/")
    stem = re.sub(r"\{[^}]*\}", "", name).partition(".")[0].strip("-_")
    result.beside.append(f"{folder}{slash}{stem}{'.' if stem else ''}{ending}")
    _write(result.beside[-1], lines)


def _write_labels(place: str | PathLike[str], result: Created) -> None:
    if result.labels:
        _write(place, result.labels)
    else:
        result.names.append(f"there are no labels: {safe(fspath(place))} is not written")


def _write(place: str | PathLike[str], lines: list[str]) -> None:
    stores.write(place, to_bytes("".join(f"{line}\n" for line in lines)))


def _check(record: Planned, seen: set[bytes]) -> None:
    field_selection.check_new_key(record.key, record.key)
    if not record.fields:
        raise UsageError(f"{record.place}: the record {to_text(record.key)!r} has no field.")
    digest = hashlib.blake2b(to_bytes(record.split) + b"\0" + record.key, digest_size=8).digest()
    if digest in seen:
        raise UsageError(f"{record.place}: the key {to_text(record.key)!r} appeared before.", hint="A key names one record of a shard.")
    seen.add(digest)


def _from_folder(root: str, groups: list[FileGroup], labels: list[str], *, split_apart: bool) -> Iterator[Planned]:
    classes = {label: b"%d" % number for number, label in enumerate(labels)}
    if split_apart and any(not group.split for group in groups):
        raise UsageError("the folder has no splits.", shard=root, hint="{split} needs <split>/<label>/<file>; see --layout.")
    for group in groups:
        fields: list[tuple[bytes, URL | bytes]] = [(os.fsencode(ext), URL(os.path.join(root, path))) for ext, path in group.files]
        if group.label and not any(ext.lower() == b"cls" for ext, _ in fields):
            fields.append((b"cls", classes[group.label]))
        key = group.key.removeprefix(f"{group.split}/") if split_apart else group.key
        yield Planned(os.fsencode(key), fields, group.files[0][1], group.split if split_apart else "")


class _Series(Whole):
    """Outputs of each split, one after the other where a limit says so."""

    def __init__(self, output: str, limits: Limits) -> None:
        self.output, self.limits = output, limits
        self.limited = limits != Limits()
        self.done: list[Tar] = []
        self._open: dict[str, TarOutput] = {}
        self._numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)
        self._inputs = Inputs(())
        if self.limited and not Names(_CUT.sub("x", output)).counts:
            raise UsageError(f"{output!r} has no counter.", hint="Write {shard:06d}.")

    def refuse(self, inputs: Iterable[str], splits: Iterable[str]) -> None:
        """`UsageError` when one of the outputs to come is one of the inputs."""
        self._inputs = Inputs(inputs)
        for split in splits:
            self._inputs.refuse_any(self._names(split), count=None if self.limited else 1)

    def _names(self, split: str) -> Names:
        return Names(_CUT.sub(lambda _: split, self.output))

    def _outlet(self, split: str, number: int) -> TarOutput:
        return TarOutput(self._names(split).at(number), inputs=self._inputs)

    def put(self, record: Planned) -> None:
        pieces = [piece for ext, content in record.fields for piece in _member(record.key + b"." + ext, content)]
        outlet = self._open.get(record.split)
        size = np.array([sum(map(size_of, pieces))])
        if outlet is not None and not self.limits.fit(size, 0, outlet.records, outlet.bytes):
            self._close(record.split)
            outlet = None
        if outlet is None:
            outlet = self._open[record.split] = self._outlet(record.split, next(self._numbers[record.split]))
        outlet.write(pieces)
        outlet.records += 1

    def _close(self, split: str) -> None:
        outlet = self._open.pop(split)
        outlet.commit()
        self.done.append(Tar(outlet.url, outlet.records, outlet.bytes))

    def commit(self) -> None:
        """Finish what is open; there is one output at least."""
        if not self.done and not self._open and not _CUT.search(self.output):
            self._open[""] = self._outlet("", 0)
        for split in list(self._open):
            self._close(split)

    def abort(self) -> None:
        for outlet in self._open.values():
            outlet.abort()


def _member(name: bytes, content: URL | bytes) -> list[Piece]:
    if isinstance(content, bytes):
        return [tar_header(name, len(content)), content, bytes(-len(content) % 512)]
    if stores.is_local(content):
        source = HeldTar(content)
        size, time = source.stat.size, int(source.stat.mtime or 0)
        if size is None:
            raise UsageError("it is not a regular file.", shard=content)
        payload: Piece = source.read(0, size) if size <= _SMALL else Range(source, 0, size)
        return [tar_header(name, size, time), payload, bytes(-size % 512)]
    stat = stores.of(content).stat(content)
    data = contents(content, "the file", etag=stat.etag)
    return [tar_header(name, len(data), int(stat.mtime or 0)), bytes(data), bytes(-len(data) % 512)]


@verb_base.verb(
    "create",
    example=[
        "tarviz create plan.tsv -o data.tar",
        "tarviz create labels.csv -C photos --as @jpg=filename --as cls=label -o photos.tar",
        "tarviz create imagenet/ -s 1GB -o '{split}-{shard:06d}.tar' --labels names.txt",
        "tarviz create coco/val2017 --coco coco/annotations/instances_val2017.json -o val.tar",
    ],
)
@click.argument("source", metavar="PLAN|FOLDER")
@click.argument("target", required=False, metavar="[OUTPUT]")
@verb_base.output_option
@click.option("-d", "--delimiter", metavar="CHAR", help="Between the cells of a plan. [default: a comma for .csv, else a tab]")
@click.option("-k", "--key", default="{n:09d}", show_default=True, metavar="TEMPLATE", help="Keys where the plan has no __key__.")
@click.option(
    "-C", "--dir", "base", type=click.Path(file_okay=False, exists=True), metavar="DIR", help="What a plan's paths are relative to."
)
@click.option("--as", "pairs", multiple=True, metavar="FIELD=COLUMN", help="Take a plan's column, as @jpg the files it names; no others.")
@verb_base.choice("layout", get_args(Layout), "Of a folder.")
@click.option("--yolo", "layout", flag_value="yolo", help="Pictures in images, what is said of them in labels; names in data.yaml.")
@click.option("--voc", "layout", flag_value="voc", help="Pictures in JPEGImages, what is said of them in Annotations.")
@click.option("--coco", metavar="FILE", help="COCO's annotations of the pictures in FOLDER.")
@click.option("--labels", metavar="FILE", help="Write the labels of a folder, one per line; the first is class 0.")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Records of an output at most.")
@click.option("-s", "--size", type=verb_base.size, metavar="BYTES", help="Bytes of an output at most.")
@verb_base.on_error_option
@verb_base.result_options
def command(source: str, target: str | None, output: str | None, pairs: tuple[str, ...], as_json: bool, **options: Any) -> Any:
    """Create a tar from a plan, a table with a row for each record, or from a folder.

    A plan's header names extensions: below cls stands the text, below @jpg the path of a file. __key__ holds keys. - reads a plan from
    standard input. A folder is <split>/<label>/<file>, <label>/<file> or just files; labels become classes, pictures of several endings one
    field. With --coco, --yolo or --voc records are pictures with their objects, which tarviz browse and tarviz objects know.
    """
    if target and output:
        raise UsageError("the output is named twice.")
    return verb_base.emit(create(source, output or target or "-", fields=columns(pairs), **options), as_json)
