"""Convert shards to TFRecord files of tf.train.Example, through an op chain where one is given, and such files to shards."""

from __future__ import annotations

import json as _json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import click

from tarviz import engines, selection, stores
from tarviz.cli import shard_table, verb_base
from tarviz.cli.shard_map import cluster_options
from tarviz.commands.convert import from_examples, tasks
from tarviz.commands.convert.conversion import Conversion, digest, processes
from tarviz.commands.convert.recipe import ConversionProgress, Recipe
from tarviz.formats import example
from tarviz.formats.tfrecord import Compression
from tarviz.model import config
from tarviz.model.config import format_size
from tarviz.model.errors import Fault, TarvizWarning, UsageError, redact
from tarviz.model.types import URL
from tarviz.ops import Chain
from tarviz.outputs import TAR_END, Exists, Names, Written, packing, read_manifest
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.chosen import resolve
from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import ReadReport

_SHOWN = 20  # outputs and faults listed as text


class Converted(verb_base.Result, list[str]):
    """The paths written, in order. `outputs` has records, bytes and CRC32C of each, `report` what reading met and skipped."""

    def __init__(self, outputs: Sequence[Written], report: ReadReport, plan: Mapping[str, Any] | None = None) -> None:
        super().__init__(each.url for each in outputs)
        self.outputs = list(outputs)
        self.report = report
        self.plan = plan

    @property
    def records(self) -> int:
        """Records in all outputs."""
        return sum(each.records for each in self.outputs)

    @property
    def bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(each.bytes for each in self.outputs)

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.notes()])

    def lines(self, json: bool = False) -> Iterator[str]:
        """What was written, or would be, for the shell."""
        if json:
            yield _json.dumps(self.to_dict())
        else:
            yield from self._plan_lines() if self.plan is not None else self._lines()

    def notes(self) -> Iterator[str]:
        """What was skipped or warned of; a shell has it on standard error."""
        faults = [*self.report.skipped, *self.report.warnings]
        yield from (("skipped " if at < len(self.report.skipped) else "") + str(fault) for at, fault in enumerate(faults[:_SHOWN]))
        if len(faults) > _SHOWN:
            yield "… " + ", ".join(f"{code} ×{count}" for code, count in self.report.counts().items())

    def _plan_lines(self) -> Iterator[str]:
        assert self.plan is not None
        outputs = self.plan["outputs"]
        more = ", …" if len(outputs) > 3 or self.plan["more"] else ""
        yield f"would convert {self.plan['shards']} shard(s) to {', '.join(outputs[:3])}{more}"
        yield verb_base.table(
            [(name, *about) for name, about in self.plan["features"].items()], header=("feature", "kind", "values", "bytes")
        )

    def _lines(self) -> Iterator[str]:
        shown = self.outputs if len(self.outputs) <= _SHOWN else self.outputs[: _SHOWN - 1]
        rows = [(redact(each.url), f"{each.records:,}", format_size(each.bytes), "kept" if each.kept else "") for each in shown]
        if len(self.outputs) > len(shown):
            rows.append((f"… {len(self.outputs) - len(shown)} more", "", "", ""))
        if len(self.outputs) != 1:
            rows.append((f"{len(self.outputs)} files", f"{self.records:,}", format_size(self.bytes), ""))
        yield verb_base.table(rows, right=[1, 2], header=("output", "records", "size", ""))

    def to_dict(self) -> dict[str, Any]:
        if self.plan is not None:
            return {"dry_run": True, **self.plan}
        totals = {"records": self.records, "bytes": self.bytes}
        return {"outputs": [each.to_dict() for each in self.outputs], **totals, "read": self.report.to_dict()}


def convert(
    urls: stores.URLs | Pipeline,
    out: str | os.PathLike[str] | Names,
    *,
    chain: Any = None,
    select: Any = None,
    types: Mapping[str, example.Kind] | None = None,
    max_shard_size: int | float | str | None = None,
    num_workers: int | Literal["auto"] | None = "auto",
    compression: Compression | None = None,
    key: bool = True,
    exists: Exists = "replace",
    resume: bool = False,
    manifest: bool = True,
    seed: int = 0,
    record_to_example: Callable[[dict[str, Any]], Any] | None = None,
    dry_run: bool = False,
    engine: str = "local",
    address: str | None = None,
    **options: Unpack[ReadKeywords],
) -> Converted:
    """Writes the records of shards as `tf.train.Example` to TFRecord files; returns the paths written, with a report.

    TFRecord files become shards where `out` is a tar: each feature a field as `formats.example_fields` says, pictures by their first
    bytes, `image/height` as `image.height.cls`. Such shards become files of equal Examples again; their keys are then no features.

    `urls`: shards, or a `Pipeline`, which brings its own chain, selection, seed and options. `out`: with `{}` (1, 2, …), or
    `{shard:06d}` or `%06d` (from 0), one output for each shard; a plain path takes all of them; with `max_shard_size` (file bytes,
    framing included) outputs follow each other over all shards, a plain path going on as `train-1.record`.

    `types` names kinds (`bytes int64 float`) by feature; without it `cls cls2 class index id` are int64, renamed or not, the rest bytes.
    `key`: the key becomes the feature `__key__`. `select` keeps and names features: `("jpg", "cls")`, `{"image": "jpg"}`.
    `record_to_example` makes each Example from the record after chain and selection, a dict; it returns an Example, its
    bytes, or a dict of values. `num_workers` processes share the work (`"auto"`: this process alone; None or 0: one per
    processor), or with `engine="ray"` so many tasks at a time run on the cluster at `address` (`"auto"`: as many as it has
    room for); the bytes written do not depend on it. `exists`: `"replace"` an output when the new one is complete, or `"error"`.
    `resume` keeps outputs that their manifest proves. `options` are those of `ReadOptions`, strict by default; with `on_error="skip"`
    records that cannot be read or encoded are left out and counted in `.report`.

    Nothing is seen under an output's name before it is complete, whatever happens. A shard that is damaged does not stop those that
    have outputs of their own: its error is raised when they are done.
    """
    if isinstance(urls, Pipeline):
        if chain is not None or select is not None or options:
            raise UsageError("a Pipeline brings chain, selection and reading options of its own.", hint="Use its with_chain, with_select.")
        given = urls
        if given.mix is not None:
            raise UsageError("a mix of sources is drawn anew in each epoch, and is not converted.", hint="Convert Pipeline(urls) of each.")
        urls, chain, select, seed, read = given.urls, given.chain, given.select, given.seed, given.options
    else:
        read = stream.with_changes(None, options)
    settings = _settings(out, compression, exists, max_shard_size)
    recipe = Recipe(Chain.of(chain), selection.parse(select), dict(types or {}), key, seed, read, record_to_example)
    shards = stream.shards(urls)
    work: from_examples.AnyRecipe
    if from_examples.makes_tars(shards, settings.names):
        work = from_examples.recipe(recipe, shards, dry_run)
        settings = replace(settings, ending=TAR_END, compression=settings.compression or packing(settings.names.text))
    else:
        work = recipe = replace(recipe, options=resolve(shards, read))
    with verb_base.silent_warnings():
        if (recipe.chain or select is not None) and "-" not in shards:
            Pipeline(shards, recipe.chain, select=recipe.select, seed=seed)._with(options=recipe.options).plan()
        if dry_run:
            return _plan_only(recipe, shards, settings)
        sources = tasks.sources(shards)
        if manifest:
            settings = replace(settings, manifest=_manifest(work, sources, settings))
        made, seen = _run(work, settings, sources, num_workers, engine, address, resume)
    _look_round(made.report, recipe, seen, settings.names, len(made.outputs))
    for fault in {fault.code: fault for fault in reversed([*made.report.warnings, *made.report.skipped])}.values():
        warnings.warn(str(fault), TarvizWarning, stacklevel=2)
    return made


def _settings(
    out: str | os.PathLike[str] | Names, compression: Compression | None, exists: Exists, max_shard_size: int | float | str | None
) -> tasks.Settings:
    """How outputs are written, as far as the call says it."""
    if compression not in (None, "gzip", "zlib"):
        raise UsageError(f"compression={compression!r} is not one of None, gzip, zlib.")
    if exists not in ("replace", "error"):
        raise UsageError(f"exists={exists!r} is not one of replace, error.")
    names = out if isinstance(out, Names) else Names(os.fspath(out))
    limit = None if max_shard_size is None else config.parse_size(max_shard_size)
    if limit is not None and names.text == "-":
        raise UsageError("standard output is one output.", hint="Name a file to split the records over several.")
    return tasks.Settings(names, compression, exists, max_size=limit)


def _run(
    recipe: from_examples.AnyRecipe,
    settings: tasks.Settings,
    sources: Sequence[tasks.ShardToConvert],
    workers: int | str | None,
    engine: str,
    address: str | None,
    resume: bool,
) -> tuple[Converted, set[str]]:
    """The outputs, and the fields that were seen; the work is shown while it goes on."""
    total = sum(source.entry["size"] or 0 for source in sources)
    with (
        verb_base.progress(total or None, "bytes", label="convert") as bar,
        shard_table.show_tasks(len(sources), "convert", lambda outcome: (outcome.report.records, None), engine) as table,
    ):
        count = processes(workers, sources, settings.names, engine)
        plan = engines.EnginePlan(count, tick=bar.add, heard=table.heard, address=address)
        work = Conversion(recipe, settings, sources, engine, plan, table.cut)
        return Converted(work.each(resume) if settings.each else work.sequence(resume), work.report), work.seen


def _manifest(recipe: from_examples.AnyRecipe, sources: Sequence[tasks.ShardToConvert], settings: tasks.Settings) -> dict[str, Any]:
    from tarviz import __version__

    options = {**recipe.to_dict(), "max_shard_size": settings.max_size, "compression": settings.compression}
    inputs = digest([source.entry for source in sources])
    return {"format": "tar" if settings.ending else "tfrecord", "tarviz": __version__, "inputs": inputs, "options": options}


def _look_round(report: ReadReport, recipe: Recipe, seen: set[str], names: Names, count: int) -> None:
    """Warnings that only the end can tell: types for fields that do not exist, outputs of an earlier run."""
    if report.records and recipe.record_to_example is None:
        for name in sorted(set(recipe.types) - seen):
            report.add(Fault("W_NO_FIELD", f"types names {name!r}, which no record has; there are {', '.join(sorted(seen))}."))
    if names.text in ("-", ""):  # no text: names that a caller hands out one by one
        return
    url = names.at(count)
    if stores.is_local(url) and read_manifest(url) is not None and os.path.exists(stores.local_path(url)):
        report.add(Fault("W_OLD_OUTPUT", "an output of an earlier run is still there and was not written by this one.", shard=url))


def _plan_only(recipe: Recipe, shards: Sequence[URL], settings: tasks.Settings) -> Converted:
    """What would be done, from the first record."""
    progress = ConversionProgress(lambda size: None)
    features: dict[str, tuple[str, ...]] = {}
    batch = next((batch for url in shards for batch in recipe.batches(url, progress) if len(batch.numbers)), None)
    if batch is not None:
        from tarviz.formats import tfrecord

        first = next(tfrecord.read(b"".join(batch.frames.buffers(0, 1))))
        for name, (kind, values) in example.features(first).items():
            size = sum(map(len, values)) if kind == "bytes" else len(values) * (8 if kind == "int64" else 4)
            features[name] = kind or "", str(len(values)), str(size)
    outputs = [redact(settings.names.at(number)) for number in range(len(shards) if settings.each else 1)]
    more = settings.max_size is not None
    return Converted([], progress.report, {"shards": len(shards), "outputs": outputs, "more": more, "features": features})


def _selection(text: str | None) -> Any:
    """A selection as it is typed: `jpg,cls`, `image=jpg,label=cls`, or Python."""
    if text is None:
        return None
    if text.lstrip().startswith(("(", "[", "{", "Select")):
        return Pipeline.of(f'Pipeline("-", select={text})').select
    names = [part.strip() for part in text.split(",")]
    return verb_base.pairs([text], "--select", "image=jpg,label=cls") if "=" in text else tuple(names)


@verb_base.verb(
    "convert",
    example=[
        "tarviz convert 'data/train-{0000..0003}.tar' 'out/train-{}.tfrecord' --types cls=int64",
        "tarviz convert 'tfds/mnist-train.tfrecord-*' -o 'data/mnist-{shard:06d}.tar'",
        "tarviz convert data/ out/train.record --max-shard-size 100MB -j 4",
        "tarviz convert data/ 'out/{}.tfrecord' --resume --engine ray --address auto",
        "tarviz convert data/ 'out/{shard:06d}.tfrecord' --chain 'decode(jpg)|resize(jpg, (224, 224))|encode(jpg)' --select jpg,cls",
    ],
)
@click.argument("urls", nargs=-1, required=True, metavar="URL... OUT", shell_complete=verb_base.complete_shards)
@verb_base.output_option
@click.option(
    "--types", multiple=True, metavar="NAME=KIND,…", help="Kinds of features: bytes, int64, float. Class fields are int64 without it."
)
@click.option("--max-shard-size", type=verb_base.size, metavar="SIZE", help="Most bytes of an output, framing included: 100MB, 1GiB.")
@click.option("-c", "--chain", metavar="CHAIN", help="Ops to run on every record: 'decode(jpg)|resize(jpg, (224, 224))|encode(jpg)'.")
@click.option("--select", metavar="NAMES", help="Features to write: jpg,cls or image=jpg,label=cls.")
@click.option("--compression", type=click.Choice(["gzip", "zlib"]), help="Compress the outputs.")
@click.option("--key/--no-key", default=True, show_default=True, help="Write the key as feature __key__.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random ops.")
@verb_base.exists_option
@click.option("--resume", is_flag=True, help="Keep outputs that their manifest proves.")
@click.option("--manifest/--no-manifest", default=True, show_default=True, help="Write NAME.manifest.json beside each output.")
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
@verb_base.workers_option
@cluster_options
@verb_base.on_error_option
@verb_base.result_options
@verb_base.reading_options
def command(
    urls: tuple[str, ...],
    output: str | None,
    types: tuple[str, ...],
    select: str | None,
    as_json: bool,
    workers: int | None,
    strict: bool | None,
    **options: Any,
) -> Any:
    """Convert shards to TFRecord files of tf.train.Example, and such files to shards where OUT is a tar.

    OUT with {} (1, 2, …), {shard:06d} or %06d (from 0) gives one output for each shard, a plain path one for all; with --max-shard-size
    outputs follow each other. An output is seen under its name when it is complete. In Python: tarviz.convert(urls, out, …).
    """
    *shards, out = urls if output is None else (*urls, output)
    if not shards:
        raise UsageError("no output is named.", hint=f"tarviz convert {redact(out)} out.tfrecord")
    options |= {"types": verb_base.pairs(types, "--types", "cls=int64,jpg=bytes") if types else None, "select": _selection(select)}
    options |= {"num_workers": "auto" if workers is None else workers, "strict": strict is not False}
    with verb_base.silent_warnings():
        result = convert(shards, out, **options)
    return verb_base.emit(result, as_json, err=out == "-")
