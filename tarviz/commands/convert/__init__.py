"""Convert shards to TFRecord files of tf.train.Example, through an op chain where one is given."""

from __future__ import annotations

import json as _json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import click

from tarviz import engines, selection, stores, write
from tarviz.cli import verb_base
from tarviz.cli.shard_map import cluster_options
from tarviz.commands.convert import tasks
from tarviz.formats import example
from tarviz.formats.tfrecord import Compression
from tarviz.model import config
from tarviz.model.config import format_size
from tarviz.model.errors import Fault, TarvizWarning, UsageError, redact
from tarviz.model.types import URL
from tarviz.ops import Chain
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.chosen import resolved
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.write import Exists, Names, Written, proof
from tarviz.write.inputs import Inputs

_SHOWN = 20  # outputs and faults listed as text


class Converted(verb_base.Result, Sequence[str]):
    """The paths written, in order. `outputs` has records, bytes and CRC32C of each, `report` what reading met and skipped."""

    def __init__(self, outputs: Sequence[Written], report: ReadReport, plan: Mapping[str, Any] | None = None) -> None:
        self.outputs = list(outputs)
        self.report = report
        self.plan = plan

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return [each.url for each in self.outputs[index]] if isinstance(index, slice) else self.outputs[index].url

    def __len__(self) -> int:
        return len(self.outputs)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, list | Converted) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    @property
    def records(self) -> int:
        """Records in all outputs."""
        return sum(each.records for each in self.outputs)

    @property
    def bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(each.bytes for each in self.outputs)

    @property
    def exit_code(self) -> int:
        return 1 if self.report.skipped or self.report.warnings else 0

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
    types: Mapping[str, str] | None = None,
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
    **options: Any,
) -> Converted:
    """Writes the records of shards as `tf.train.Example` to TFRecord files; returns the paths written, with a report.

    `urls`: shards, or a `Pipeline`, which brings its own chain, selection, seed and options. `out`: with `{}` (1, 2, …) or
    `{shard:06d}` (from 0) one output for each shard; a plain path takes all of them; with `max_shard_size` (file bytes,
    framing included) outputs follow each other over all shards, a plain path going on as `train-1.record`.

    `types` names kinds (`bytes int64 float`) by feature; without it `cls cls2 class index id` are int64, renamed or not, the rest bytes.
    `key`: the key becomes the feature `__key__`. `select` keeps and names features: `("jpg", "cls")`, `{"image": "jpg"}`.
    `record_to_example` makes each Example from the record behind chain and selection, a dict; it returns an Example, its
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
        pipeline = urls
        urls, chain, select, seed, read = pipeline.urls, pipeline.chain, pipeline.select, pipeline.seed, pipeline.options
    else:
        read = stream.with_changes(None, options)
    if compression not in (None, "gzip", "zlib"):
        raise UsageError(f"compression={compression!r} is not one of None, gzip, zlib.")
    if exists not in ("replace", "error"):
        raise UsageError(f"exists={exists!r} is not one of replace, error.")
    recipe = tasks.Recipe(Chain.of(chain), selection.parse(select), dict(types or {}), key, seed, read, record_to_example)
    shards = stream.shards(urls)
    if read.where or read.keys:
        recipe = replace(recipe, options=resolved(shards, read))
    names = out if isinstance(out, Names) else Names(os.fspath(out))
    limit = None if max_shard_size is None else config.parse_size(max_shard_size)
    if limit is not None and names.text == "-":
        raise UsageError("standard output is one output.", hint="Name a file to split the records over several.")
    with verb_base.silent_warnings():
        if (recipe.chain or select is not None) and "-" not in shards:
            Pipeline(shards, recipe.chain, select=recipe.select, seed=seed, **_read_keywords(recipe.options)).plan()
        if dry_run:
            return _planned(recipe, shards, names, limit)
        sources = [
            tasks.Source(number, url, {"number": number, **write.source_entry(stores.of(url).stat(url))})
            for number, url in enumerate(shards)
        ]
        settings = tasks.Settings(names, compression, exists, _manifest(recipe, sources, limit, compression) if manifest else None, limit)
        total = sum(source.entry["size"] or 0 for source in sources)
        with verb_base.progress(total or None, "bytes", label="convert") as bar:
            place = engine, engines.Plan(_processes(num_workers, sources, names, engine), tick=bar.add, address=address)
            work = _Conversion(recipe, settings, sources, place)
            outputs = work.each(resume) if names.counts and limit is None else work.sequence(resume)
    report = work.report
    _look_round(report, recipe, work.seen, names, len(outputs))
    for fault in {fault.code: fault for fault in reversed([*report.warnings, *report.skipped])}.values():
        warnings.warn(str(fault), TarvizWarning, stacklevel=2)
    return Converted(outputs, report)


def _read_keywords(options: ReadOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ReadOptions.__dataclass_fields__}


def _manifest(recipe: tasks.Recipe, sources: Sequence[tasks.Source], limit: int | None, compression: str | None) -> dict[str, Any]:
    from tarviz import __version__

    options = {**recipe.to_dict(), "max_shard_size": limit, "compression": compression}
    inputs = tasks.digest([source.entry for source in sources])
    return {"format": "tfrecord", "tarviz": __version__, "inputs": inputs, "options": options}


def _processes(asked: int | str | None, sources: Sequence[tasks.Source], names: Names, engine: str) -> int | None:
    """How many tasks run at a time; 1 is this process itself on the local engine, None what a cluster has room for."""
    if isinstance(asked, int) and asked < 0:
        raise UsageError(f"num_workers={asked} is less than 0.")
    # Standard streams and the memory of this process cannot be reached from another.
    own = [url for url in [names.text, *(source.url for source in sources)] if url == "-" or url.startswith("memory:")]
    if engines.travels(engine):
        if inputs := [url for url in own if url != names.text or names.counts]:
            raise UsageError(
                f"{inputs[0]!r} is of this process alone; the workers of a cluster do not reach it.", hint="Use files or URLs."
            )
        return asked if isinstance(asked, int) and asked else None
    count = 1 if asked == "auto" else int(asked or 0) or config.options().workers or os.cpu_count() or 1
    return 1 if own else min(count, len(sources))


class _Conversion:
    """One call of `convert` at work; `report` and `seen` grow."""

    def __init__(
        self,
        recipe: tasks.Recipe,
        settings: tasks.Settings,
        sources: Sequence[tasks.Source],
        place: tuple[str, engines.Plan],
    ) -> None:
        self.report = ReadReport()
        self.seen: set[str] = set()
        self._recipe = recipe
        self._settings = settings
        self._sources = sources
        self._engine, self._plan = place
        self._away = engines.travels(self._engine)
        self._tick = self._plan.tick
        self._inputs = Inputs(source.url for source in sources)
        count = len(sources) if settings.names.counts else 1
        self._inputs.refuse_any(settings.names, count=count if settings.max_size is None else None)

    def each(self, resume: bool) -> list[Written]:
        """One output for each shard."""
        kept = tasks.kept_each(self._settings, self._sources) if resume and self._recipe.provable else {}
        todo = [source for source in self._sources if source.number not in kept]
        self._passed(source for source in self._sources if source.number in kept)
        if self._settings.exists == "error":
            for source in todo:
                write.refuse_existing(self._settings.names.at(source.number))
        made: dict[int, Written] = dict(kept)
        errors = engines.Errors()
        with self._start(tasks.EachJob(self._recipe, self._settings), len(todo)) as engine:
            for source, (outcome, _) in zip(todo, engine.run(todo, errors.keep), strict=True):
                if outcome is None:
                    continue
                if self._away:
                    proof.seen(outcome.written[0].url)
                self._take(outcome)
                made[source.number] = outcome.written[0]
        errors.settle([source.url for source in todo])
        return [made[source.number] for source in self._sources]

    def sequence(self, resume: bool) -> list[Written]:
        """Outputs that follow each other over all shards."""
        kept: list[Written] = []
        number = record = 0
        if resume and self._recipe.provable:
            kept, number, record = tasks.kept_sequence(self._settings, self._sources)
        self._passed(self._sources[:number])
        if self._settings.exists == "error" and number < len(self._sources):
            write.refuse_existing(self._settings.names.at(len(kept)))
        todo = [tasks.Source(each.number, each.url, each.entry, record if each.number == number else 0) for each in self._sources[number:]]
        with self._settings.outputs(done=kept, inputs=self._inputs) as run:
            if self._away or (self._plan.count != 1 and len(todo) > 1):
                self._assemble(run, todo)
            else:
                for source in todo:
                    progress = tasks.Progress(self._tick, self.report)
                    run.source(source.entry)
                    for batch in self._recipe.batches(source.url, progress, source.start):
                        run.add(batch.frames, batch.numbers, batch.stop)
                    self.seen |= progress.seen
        return run.done

    def _assemble(self, run: write.Outputs, todo: Sequence[tasks.Source]) -> None:
        """Workers encode shards into unnamed files; here the records are spread over the outputs, in order."""
        with self._start(tasks.PieceJob(self._recipe), len(todo), spool=_folder(run.names)) as engine:
            for source, (outcome, file) in zip(todo, engine.run(todo), strict=True):
                assert file is not None
                self._take(outcome)
                run.source(source.entry)
                run.add(tasks.Piece(outcome.size, file), outcome.numbers, outcome.stop)
                run.settle()  # the worker writes its next piece over this one
                if outcome.error is not None:
                    raise outcome.error

    def _start(self, job: engines.Job, count: int, spool: str | None = None) -> engines.Engine:
        return engines.start(
            self._engine, job, replace(self._plan, spool=spool, count=self._plan.count and min(self._plan.count, count or 1))
        )

    def _take(self, outcome: tasks.Outcome) -> None:
        self.report.merge(outcome.report)
        self.seen |= outcome.seen

    def _passed(self, sources: Any) -> None:
        self._tick(sum(source.entry["size"] or 0 for source in sources))


def _folder(names: Names) -> str:
    """Where workers put their unnamed files: beside the outputs, where there is room for them."""
    import tempfile

    url = names.at(0)
    if not stores.is_local(url):
        return tempfile.gettempdir()
    folder = os.path.dirname(stores.local_path(url)) or "."
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return tempfile.gettempdir()  # the store says why, in its own words
    return folder


def _look_round(report: ReadReport, recipe: tasks.Recipe, seen: set[str], names: Names, count: int) -> None:
    """Warnings that only the end can tell: types for fields that do not exist, outputs of an earlier run."""
    if report.records and recipe.record_to_example is None:
        for name in sorted(set(recipe.types) - seen):
            report.add(Fault("W_NO_FIELD", f"types names {name!r}, which no record has; there are {', '.join(sorted(seen))}."))
    if names.text in ("-", ""):  # no text: names that a caller hands out one by one
        return
    url = names.at(count)
    if stores.is_local(url) and write.read_manifest(url) is not None and os.path.exists(stores.local_path(url)):
        report.add(Fault("W_OLD_OUTPUT", "an output of an earlier run is still there and was not written by this one.", shard=url))


def _planned(recipe: tasks.Recipe, shards: Sequence[URL], names: Names, limit: int | None) -> Converted:
    """What would be done, from the first record."""
    progress = tasks.Progress(lambda size: None)
    features: dict[str, tuple[str, ...]] = {}
    for url in shards:
        batch = next((batch for batch in recipe.batches(url, progress) if len(batch.frames)), None)
        if batch is not None:
            from tarviz.formats import tfrecord

            first = next(tfrecord.read(b"".join(batch.frames.buffers(0, 1))))
            for name, (kind, values) in example.features(first).items():
                size = sum(map(len, values)) if kind == "bytes" else len(values) * (8 if kind == "int64" else 4)
                features[name] = kind or "", str(len(values)), str(size)
            break
    each = names.counts and limit is None
    outputs = [redact(names.at(number)) for number in range(len(shards) if each else 1)]
    return Converted([], progress.report, {"shards": len(shards), "outputs": outputs, "more": limit is not None, "features": features})


_PAIRS = {"--types": "--types cls=int64,jpg=bytes", "--select": "--select image=jpg,label=cls"}


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for part in ",".join(texts).split(","):
        name, mark, value = part.partition("=")
        if not (name.strip() and mark and value.strip()):
            raise UsageError(f"{option} {part!r} is not a NAME=VALUE.", hint=f"For example {_PAIRS[option]}.")
        pairs[name.strip()] = value.strip()
    return pairs


def _selected(text: str | None) -> Any:
    """A selection as it is typed: `jpg,cls`, `image=jpg,label=cls`, or Python."""
    if text is None:
        return None
    if text.lstrip().startswith(("(", "[", "{", "Select")):
        return Pipeline.of(f'Pipeline("-", select={text})').select
    names = [part.strip() for part in text.split(",")]
    return _pairs([text], "--select") if "=" in text else tuple(names)


@verb_base.verb(
    "convert",
    example=[
        "tarviz convert 'data/train-{0000..0003}.tar' 'out/train-{}.tfrecord' --types cls=int64",
        "tarviz convert data/ out/train.record --max-shard-size 100MB -j 4",
        "tarviz convert data/ 'out/{}.tfrecord' --resume --engine ray --address auto",
        "tarviz convert data/ 'out/{shard:06d}.tfrecord' --chain 'decode(jpg)|resize(jpg, (224, 224))|encode(jpg)' --select jpg,cls",
    ],
)
@verb_base.urls_argument
@click.argument("out")
@click.option(
    "--types", multiple=True, metavar="NAME=KIND,…", help="Kinds of features: bytes, int64, float. Class fields are int64 without it."
)
@click.option("--max-shard-size", type=verb_base.SIZE, metavar="SIZE", help="Most bytes of an output, framing included: 100MB, 1GiB.")
@click.option("-c", "--chain", metavar="CHAIN", help="Ops to run on every record: 'decode(jpg)|resize(jpg, (224, 224))|encode(jpg)'.")
@click.option("--select", metavar="NAMES", help="Features to write: jpg,cls or image=jpg,label=cls.")
@click.option("--compression", type=click.Choice(["gzip", "zlib"]), help="Compress the outputs.")
@click.option("--key/--no-key", default=True, show_default=True, help="Write the key as feature __key__.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random ops.")
@click.option(
    "--exists", type=click.Choice(["replace", "error"]), default="replace", show_default=True, help="What happens to outputs there are."
)
@click.option("--resume", is_flag=True, help="Keep outputs that their manifest proves.")
@click.option("--manifest/--no-manifest", default=True, show_default=True, help="Write NAME.manifest.json beside each output.")
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
@verb_base.workers_option
@cluster_options
@verb_base.on_error_option
@verb_base.json_option
@verb_base.quiet_option
@verb_base.reading_options
def command(
    urls: tuple[str, ...],
    out: str,
    types: tuple[str, ...],
    select: str | None,
    as_json: bool,
    workers: int | None,
    strict: bool | None,
    **options: Any,
) -> Any:
    """Convert shards to TFRecord files of tf.train.Example.

    OUT with {} (1, 2, …) or {shard:06d} (from 0) gives one output for each shard, a plain path one for all; with --max-shard-size outputs
    follow each other. An output is seen under its name when it is complete. In Python: tarviz.convert(urls, out, …).
    """
    with verb_base.silent_warnings():
        result = convert(
            urls,
            out,
            types=_pairs(types, "--types") if types else None,
            select=_selected(select),
            num_workers="auto" if workers is None else workers,
            strict=strict is not False,
            **options,
        )
    return verb_base.emit(result, as_json, err=out == "-")
