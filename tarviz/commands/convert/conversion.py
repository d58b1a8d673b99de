"""One call of `convert` at work: shards to outputs, in this process or spread over workers, kept outputs left alone."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

from tarviz import engines, stores
from tarviz.commands.convert import ranges, tasks
from tarviz.commands.convert.from_examples import AnyRecipe
from tarviz.commands.convert.recipe import ConversionProgress
from tarviz.model import config
from tarviz.model.errors import TarvizError, UsageError
from tarviz.model.processors import processors
from tarviz.model.types import URL
from tarviz.outputs import Inputs, Names, Outputs, Written, proven, read_manifest, refuse_existing
from tarviz.outputs.manifest import check_seen
from tarviz.read.stream import ReadReport

_READ_AT_ONCE = 8  # outputs: each holds 4 MiB of memory


def processes(asked: int | str | None, sources: Sequence[tasks.ShardToConvert], names: Names, engine: str) -> int | None:
    """How many tasks run at a time; 1 is this process itself on the local engine, None what a cluster has room for."""
    if isinstance(asked, int) and asked < 0:
        raise UsageError(f"num_workers={asked} is less than 0.")
    # Standard streams and the memory of this process cannot be reached from another.
    own = [url for url in [names.text, *(source.url for source in sources)] if engines.is_own(url)]
    if engines.travels(engine):
        if inputs := [url for url in own if url != names.text or names.counts]:
            raise engines.unreachable(inputs[0])
        return asked if isinstance(asked, int) and asked else None
    count = 1 if asked == "auto" else int(asked or 0) or config.options().workers or processors()
    return 1 if own else count


@dataclass(eq=False, repr=False)
class Conversion:
    """One call of `convert` at work; `report` and `seen` grow. `hear_cut(shards, parts)` is told how many shards are cut, and into what."""

    _recipe: AnyRecipe
    _settings: tasks.Settings
    _sources: Sequence[tasks.ShardToConvert]
    _engine: str
    _plan: engines.EnginePlan
    _hear_cut: Callable[[int, int], None] = lambda shards, parts: None
    report: ReadReport = field(default_factory=ReadReport)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._away = engines.travels(self._engine)
        self._tick = self._plan.tick
        self._inputs = Inputs(source.url for source in self._sources)
        names, limited = self._settings.names, self._settings.max_size is not None
        self._inputs.refuse_any(names, count=None if limited else len(self._sources) if names.counts else 1)

    def each(self, resume: bool) -> list[Written]:
        """One output for each shard."""
        kept = find_kept(self._settings, self._sources) if resume and self._recipe.provable else {}
        todo = [source for source in self._sources if source.number not in kept]
        self._pass_over(source for source in self._sources if source.number in kept)
        if self._settings.exists == "error":
            for source in todo:
                refuse_existing(self._settings.names.at(source.number))
        made: dict[int, Written] = dict(kept)
        errors, outcomes = engines.Errors([source.url for source in self._sources]), {}
        cut = self._cut(todo, carried=False)
        for source, outcome in self._join([source for source in todo if source.number in cut], cut, errors):
            outcomes[source.number] = outcome
        whole = [source for source in todo if source.number not in cut]
        with self._start(tasks.EachJob(self._recipe, self._settings), len(whole)) as engine:
            results = engine.run(whole, lambda at, error: errors.keep(whole[at].number, error))
            for source, (outcome, _) in zip(whole, results, strict=True):
                if outcome is None:
                    continue
                if self._away:
                    check_seen(outcome.written[0].url)
                outcomes[source.number] = outcome
        for number, outcome in sorted(outcomes.items()):
            self._take(outcome)
            [made[number]] = outcome.written
        errors.settle()
        return [made[source.number] for source in self._sources]

    def _cut(self, todo: Sequence[tasks.ShardToConvert], *, carried: bool) -> dict[int, list[tasks.ShardToConvert]]:
        """Number of each shard that is worked on in ranges → these."""
        if self._plan.count == 1 and not self._away:
            return {}
        candidates = ranges.large(todo, self._plan.count or sum(source.entry["size"] or 0 for source in todo), carried=True)
        if not candidates:
            return {}
        quiet = engines.EnginePlan(engines.count(self._engine, self._plan.count, len(candidates)), address=self._plan.address)
        with engines.start(self._engine, partial(ranges.find_ranges, self._recipe.options, ranges.PIECE), quiet) as engine:
            chosen = ranges.large(todo, self._plan.count or engine.room, carried=carried)
            found = [parts for parts, _ in engine.run(chosen)]
        cut = {
            source.number: [replace(source, part=part) for part in parts]
            for source, parts in zip(chosen, found, strict=True)
            if len(parts) > 1
        }
        self._hear_cut(len(cut), sum(map(len, cut.values())))
        return cut

    def _join(
        self, sources: Sequence[tasks.ShardToConvert], cut: Mapping[int, list[tasks.ShardToConvert]], errors: engines.Errors
    ) -> Iterator[tuple[tasks.ShardToConvert, tasks.Outcome]]:
        """Each of these shards with what came of it: its ranges are encoded by workers, and joined to one output here, in order."""
        if not sources:
            return
        parts = [part for source in sources for part in cut[source.number]]
        with self._start(tasks.PieceJob(self._recipe), len(parts), spool=_folder(self._settings.names)) as engine:
            results = engine.run(parts, lambda at, error: tasks.Outcome(error=error))
            for source in sources:
                pieces = itertools.islice(results, len(cut[source.number]))
                try:
                    outcome = self._join_pieces(source, pieces)
                except TarvizError as error:
                    errors.keep(source.number, error)
                    for _ in pieces:  # of no use any more
                        pass
                else:
                    yield source, outcome

    def _join_pieces(self, source: tasks.ShardToConvert, pieces: Iterator[tuple[tasks.Outcome, IO[bytes] | None]]) -> tasks.Outcome:
        whole = tasks.Outcome()
        with self._settings.outputs(source.number, inputs=self._inputs) as run:
            for outcome, file in pieces:
                whole.report.merge(outcome.report)
                whole.seen |= outcome.seen
                self._put(run, source, outcome, file)
        whole.written = run.done
        return whole

    def sequence(self, resume: bool) -> list[Written]:
        """Outputs that follow each other over all shards."""
        kept: list[Written] = []
        number = record = 0
        if resume and self._recipe.provable:
            kept, number, record = find_kept_sequence(self._settings, self._sources)
        self._pass_over(self._sources[:number])
        if self._settings.exists == "error" and number < len(self._sources):
            refuse_existing(self._settings.names.at(len(kept)))
        todo = [
            tasks.ShardToConvert(each.number, each.url, each.entry, record if each.number == number else 0)
            for each in self._sources[number:]
        ]
        with self._settings.outputs(done=kept, inputs=self._inputs) as run:
            cut = self._cut(todo, carried=True)
            if self._away or cut or (self._plan.count != 1 and len(todo) > 1):
                self._assemble(run, [part for source in todo for part in cut.get(source.number, [source])])
            else:
                for source in todo:
                    progress = ConversionProgress(self._tick, self.report)
                    run.source(source.entry)
                    for batch in self._recipe.batches(source.url, progress, source.start):
                        run.add(batch.frames, batch.numbers, batch.stop)
                    self.seen |= progress.seen
        return run.done

    def _assemble(self, run: Outputs, todo: Sequence[tasks.ShardToConvert]) -> None:
        """Workers encode shards and ranges into unnamed files; here the records are spread over the outputs, in order."""
        with self._start(tasks.PieceJob(self._recipe), len(todo), spool=_folder(run.names)) as engine:
            for source, (outcome, file) in zip(todo, engine.run(todo), strict=True):
                self._take(outcome)
                self._put(run, source, outcome, file)

    def _put(self, run: Outputs, source: tasks.ShardToConvert, outcome: tasks.Outcome, file: IO[bytes] | None) -> None:
        """Write the records of a piece, then raise what they ended with."""
        run.source(source.entry)
        if file is not None:
            run.add(tasks.WrittenPiece(outcome.size, file), outcome.numbers, outcome.stop)
            run.settle()  # the worker writes its next piece over this one
        if outcome.error is not None:
            raise outcome.error

    def _start(self, job: engines.Job, tasks: int, spool: str | None = None) -> engines.Engine:
        count = engines.count(self._engine, self._plan.count, tasks)
        return engines.start(self._engine, job, replace(self._plan, spool=spool, count=count, heard=self._heard))

    def _heard(self, done: engines.TaskEnd) -> None:
        """Hand on that a task ended; one whose records end with an error has failed."""
        error = done.value.error if done.good else None
        self._plan.heard(done if error is None else replace(done, good=False, value=error))

    def _take(self, outcome: tasks.Outcome) -> None:
        self.report.merge(outcome.report)
        self.seen |= outcome.seen

    def _pass_over(self, sources: Any) -> None:
        self._tick(sum(source.entry["size"] or 0 for source in sources))


def _folder(names: Names) -> str:
    """Where workers put their unnamed files: beside the outputs, where there is room for them."""
    url = names.at(0)
    if not stores.is_local(url):
        return tempfile.gettempdir()
    folder = os.path.dirname(stores.local_path(url)) or "."
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return tempfile.gettempdir()  # the store says why, in its own words
    return folder


def digest(entries: Sequence[Mapping[str, Any]]) -> str:
    """A name for a list of inputs as they are now."""
    return hashlib.sha256(json.dumps(list(entries), sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def find_kept(settings: tasks.Settings, sources: Sequence[tasks.ShardToConvert]) -> dict[int, Written]:
    """Source number → its output, where manifest and bytes prove that it need not be made again."""

    def of(source: tasks.ShardToConvert) -> Written | None:
        url = settings.names.at(source.number)
        manifest = _manifest(url, settings)
        parts = manifest.get("sources", [])
        return proven(url, manifest) if len(parts) == 1 and _same(parts[0], source.entry) else None

    with ThreadPoolExecutor(_READ_AT_ONCE, "tarviz-kept") as pool:
        found = pool.map(of, sources)
        return {source.number: written for source, written in zip(sources, found, strict=True) if written}


def find_kept_sequence(settings: tasks.Settings, sources: Sequence[tasks.ShardToConvert]) -> tuple[list[Written], int, int]:
    """The outputs from the first on that are proven, then source and record with which the next one begins."""
    kept: list[Written] = []
    number = record = 0
    while True:
        url = settings.names.at(len(kept)) if settings.max_size is not None or not kept else None
        manifest = _manifest(url, settings) if url else {}
        parts = manifest.get("sources", [])
        if url is None or not manifest or not _follows(parts, sources, number, record):
            return kept, number, record
        whole = settings.manifest is not None and manifest.get("inputs") == settings.manifest.get("inputs")
        if not (manifest.get("full") or whole) or (written := proven(url, manifest)) is None:
            return kept, number, record
        kept.append(written)
        if not manifest.get("full"):
            return kept, len(sources), 0
        number, record = parts[-1]["number"], parts[-1]["stop"]


def _follows(parts: Sequence[Mapping[str, Any]], sources: Sequence[tasks.ShardToConvert], number: int, record: int) -> bool:
    """Whether the records of an output begin at a record of a source and come from sources that are still the same."""
    for at, part in enumerate(parts):
        place = part.get("number")
        if not isinstance(place, int) or not 0 <= place < len(sources) or not _same(part, sources[place].entry):
            return False
        if at == 0 and (place, part.get("first")) != (number, record) and not (place > number and part.get("first") == 0):
            return False
    return True


def _manifest(url: URL, settings: tasks.Settings) -> dict[str, Any]:
    """The manifest of an output that was made in this way; {} where there is none."""
    found = read_manifest(url) or {}
    wanted = json.loads(json.dumps(dict(settings.manifest or {})))
    return found if all(found.get(name) == wanted.get(name) for name in ("format", "options")) else {}


def _same(part: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    # A source whose version is not known may have changed.
    known = entry["etag"] is not None or entry["mtime"] is not None
    return known and all(part.get(name) == entry[name] for name in ("shard", "size", "etag", "mtime"))
