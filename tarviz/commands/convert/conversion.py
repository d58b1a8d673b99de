"""One call of `convert` at work: shards to outputs, in this process or spread over workers, kept outputs left alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tarviz import engines, stores, write
from tarviz.commands.convert import tasks
from tarviz.commands.convert.kept import kept_each, kept_sequence
from tarviz.commands.convert.recipe import ConversionProgress, Recipe
from tarviz.model import config
from tarviz.model.errors import UsageError
from tarviz.read.stream import ReadReport
from tarviz.write import Inputs, Names, Written, proof


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
    count = 1 if asked == "auto" else int(asked or 0) or config.options().workers or os.cpu_count() or 1
    return 1 if own else min(count, len(sources))


class Conversion:
    """One call of `convert` at work; `report` and `seen` grow."""

    def __init__(
        self,
        recipe: Recipe,
        settings: tasks.Settings,
        sources: Sequence[tasks.ShardToConvert],
        place: tuple[str, engines.EnginePlan],
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
        kept = kept_each(self._settings, self._sources) if resume and self._recipe.provable else {}
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
            kept, number, record = kept_sequence(self._settings, self._sources)
        self._passed(self._sources[:number])
        if self._settings.exists == "error" and number < len(self._sources):
            write.refuse_existing(self._settings.names.at(len(kept)))
        todo = [
            tasks.ShardToConvert(each.number, each.url, each.entry, record if each.number == number else 0)
            for each in self._sources[number:]
        ]
        with self._settings.outputs(done=kept, inputs=self._inputs) as run:
            if self._away or (self._plan.count != 1 and len(todo) > 1):
                self._assemble(run, todo)
            else:
                for source in todo:
                    progress = ConversionProgress(self._tick, self.report)
                    run.source(source.entry)
                    for batch in self._recipe.batches(source.url, progress, source.start):
                        run.add(batch.frames, batch.numbers, batch.stop)
                    self.seen |= progress.seen
        return run.done

    def _assemble(self, run: write.Outputs, todo: Sequence[tasks.ShardToConvert]) -> None:
        """Workers encode shards into unnamed files; here the records are spread over the outputs, in order."""
        with self._start(tasks.PieceJob(self._recipe), len(todo), spool=_folder(run.names)) as engine:
            for source, (outcome, file) in zip(todo, engine.run(todo), strict=True):
                assert file is not None
                self._take(outcome)
                run.source(source.entry)
                run.add(tasks.WrittenPiece(outcome.size, file), outcome.numbers, outcome.stop)
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
    url = names.at(0)
    if not stores.is_local(url):
        return tempfile.gettempdir()
    folder = os.path.dirname(stores.local_path(url)) or "."
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return tempfile.gettempdir()  # the store says why, in its own words
    return folder
