"""The controller of a bench: runs trials one after the other on a thread, counts, can be stopped at any time. It knows no GUI."""

from __future__ import annotations

import array
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

from tarviz.model.errors import TarvizError, UsageError, redact, safe
from tarviz.model.types import URL
from tarviz.ops.chains import Chainable
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.viewers.panel import readable
from tarviz.widgets.bench import bench_jobs, machine
from tarviz.widgets.bench.bench_jobs import RUNNERS, PerItem, Trial
from tarviz.widgets.bench.chart import chart, down_of, grid
from tarviz.widgets.bench.peers import of_peer
from tarviz.widgets.bench.rate_meter import Clock, Meter, line
from tarviz.widgets.bench.result import BenchResult, TrialRow
from tarviz.widgets.bench.stage_groups import Group
from tarviz.widgets.bench.verdict import per_second, word
from tarviz.widgets.host.behind import start_thread
from tarviz.widgets.host.rpc import Answer, Controller, Message, rpc

log = logging.getLogger(__name__)

Several = int | None | Iterable[int | None]


class BenchRun(Controller):
    """A bench at work; it begins at once, on a thread. Every method may be called from any thread.

    `source` is shards (with `chain` and `select`), a `Pipeline`, any iterable of items (of `per_item` records each; left out, a batch
    counts by its length), or a function that makes one. A trial takes `seconds` from its first batch on, of which `warmup` are cut
    off, or ends with `count` records; `repeat` runs each so often, in turns. Several `workers`, `batch` and `prefetch` are swept.
    `runner` is `eager` (each stage timed) or `tf.data`. `vs` names peers, `cold` drops the shards from the page cache before each
    trial. `baseline` is a result or the file of one; `fail_below` the ratio to it that is too slow.
    """

    script = "bench"

    def __init__(
        self,
        source: Any,
        chain: Chainable = None,
        *,
        select: Any = None,
        runner: str = "eager",
        workers: Several = None,
        batch: Several = 32,
        prefetch: Several = None,
        seconds: float = 5.0,
        count: int | None = None,
        warmup: float = 0.5,
        repeat: int = 1,
        vs: Sequence[str] = (),
        cold: bool = False,
        seed: int = 0,
        per_item: PerItem = None,
        baseline: BenchResult | str | PathLike[str] | None = None,
        fail_below: float = 0.9,
        clock: Clock = time.perf_counter,
        cpu: Clock = time.thread_time,
        **options: Any,
    ) -> None:
        if runner not in RUNNERS:
            raise UsageError(f"There is no runner {runner!r} to measure.", hint=f"There are {', '.join(RUNNERS)}.")
        if not 0 < seconds < 86_400 or repeat < 1 or warmup < 0:
            raise UsageError(
                f"seconds={seconds}, warmup={warmup}, repeat={repeat} cannot be measured.", hint="Give seconds > 0, repeat ≥ 1."
            )
        self.pipeline = _pipeline(source, chain, select, seed, options)
        self.seconds, self.count, self.warmup, self.repeat, self.cold = seconds, count, warmup, repeat, cold
        self.fail_below = fail_below
        self._base = BenchResult.load(baseline) if isinstance(baseline, str | PathLike) else baseline
        self._clock = clock
        self.renewed: Callable[[], None] = lambda: None  # hears that it measures again
        self.urls: list[URL] = stream.shards(self.pipeline.urls) if self.pipeline is not None else []
        settings = [{"workers": w, "batch": b, "prefetch": p} for w, b, p in itertools.product(*map(_as_list, (workers, batch, prefetch)))]
        self.trials = self._plan(source, RUNNERS[runner], settings, vs, per_item, cpu)
        self._config = {
            "source": self.title,
            "chain": str(self.pipeline.chain) if self.pipeline is not None else "",
            "runner": runner,
            "warmup": self.warmup,
            "repeat": repeat,
            "cold": cold,
        }
        self._begin()

    def _begin(self) -> None:
        """Measure from the beginning, on a thread."""
        last = str(self.pipeline.chain[-1]) if self.pipeline is not None and self.pipeline.chain else ""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.result = BenchResult({**self._config, "seconds": self.seconds, "count": self.count}, machine.facts(self.urls), when=when)
        self.result.rows = [TrialRow(trial.label, trial.kind, trial.setting, trial.note, last_op=last) for trial in self.trials]
        self.at = (0, 0)  # (trial, round) that runs
        self.meter: Meter | None = None
        self._line: list[tuple[float, float, float]] = []
        self._stopping = threading.Event()
        self._done = threading.Event()
        start_thread("bench", self._work)

    def _plan(
        self, source: Any, runner: str, settings: list[dict[str, Any]], peers: Sequence[str], per_item: PerItem, cpu: Clock
    ) -> list[Trial]:
        pipeline = self.pipeline
        if pipeline is None:
            if peers:
                raise UsageError("Peers read shards; an iterable has none.", hint="Give shards and a chain.")
            return [bench_jobs.of_iterable(source, per_item)]
        pipeline.plan()  # a chain that does not fit is said at once, not in the middle
        trials = [bench_jobs.of_pipeline(pipeline, runner, setting, self._clock, cpu) for setting in settings]
        if runner == "tf" and len(settings) == 1 and pipeline.chain:
            trials += bench_jobs.stages_of_graph(pipeline, settings[0])
        return trials + [of_peer(name, pipeline, settings[0]) for name in peers]

    # ---- the work

    def _work(self) -> None:
        try:
            for round_ in range(self.repeat):
                for number, trial in enumerate(self.trials):
                    if self._stopping.is_set():
                        return
                    if trial.kind != "stage" or round_ == 0:
                        self.at = number, round_
                        self._run(trial, self.result.rows[number], number)
        finally:
            self._finish()

    def _run(self, trial: Trial, row: TrialRow, number: int) -> None:
        if self.cold:
            machine.evict(self.urls)
        share = machine.cached_share(self.urls) if self.urls else None
        row.cache = row.cache or (machine.cache_words(share) if self.urls else "")
        seconds = self.seconds / (3 if trial.kind == "stage" else 1)
        self.meter = meter = Meter(self._clock, min(self.warmup, seconds / 2))
        counts = None
        try:
            counts = trial.start()
            for records, size in counts:
                meter.arrive(records, size)
                if self._stopping.is_set() or meter.behind_first >= seconds or (self.count is not None and meter.records >= self.count):
                    break
        except Exception as error:
            log.debug("a trial failed", exc_info=error)
            row.error = redact(safe(str(error) if isinstance(error, TarvizError) else f"{type(error).__name__}: {error}"))[:400]
        if meter.records:
            row.runs.append(meter.figures())
        if number == 0:
            self._line = line(meter.marks)
            self._group(trial, meter)
        if counts is not None:
            counts.close()

    def _group(self, trial: Trial, meter: Meter) -> None:
        self.result.groups = trial.groups()
        self.result.grouped_records = meter.records if self.result.groups else 0

    def _finish(self) -> None:
        result = self.result
        failed = not any(row.runs for row in result.rows)
        result.state = "failed" if failed and not self._stopping.is_set() else "stopped" if self._stopping.is_set() else "done"
        if self._base is not None and not failed:
            try:
                result.compare(self._base, self.fail_below)
            except UsageError as error:
                result.notes.append(str(error))
        self._done.set()

    @property
    def running(self) -> bool:
        """Whether it is still at work."""
        return not self._done.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; False when the time was over first."""
        return self._done.wait(seconds)

    def end(self) -> BenchResult:
        """Stop it and wait until it has: what was measured until then."""
        self._stopping.set()
        self.wait(10)
        return self.result

    # ---- what a view asks

    @rpc
    def stop(self) -> Message:
        """End the trial that runs and all after it; what was measured stays."""
        self._stopping.set()
        return {}

    @rpc
    def again(self, times: float = 1.0) -> Message:
        """Measure once more, each trial `times` as long as before, in place of what was measured."""
        if self.running:
            raise UsageError("It is still measuring.", hint="Stop it first.")
        if not 0 < self.seconds * times < 86_400:
            raise UsageError(f"{times} times {self.seconds} seconds cannot be measured.")
        self.seconds *= times
        self.count = None if self.count is None else max(1, round(self.count * times))
        self._begin()
        self.renewed()
        return {}

    @rpc
    def poll(self, trial: int = -1, points: int = 0) -> Answer:
        """How it stands; the line of the running trial from point `points` on, where it is still the trial numbered `trial`."""
        number = self.at[1] * len(self.trials) + self.at[0]
        meter, result = self.meter, self.result
        known = line(list(meter.marks)) if meter is not None else []
        begin = points if trial == number else 0
        floats = array.array("f", [value for point in known[begin:] for value in point])
        first = meter.marks[1][0] if meter is not None and len(meter.marks) > 1 else None
        live = self.running and self.at[0] == 0
        if live and meter is not None:
            self._group(self.trials[0], meter)
        head, rest = result.clauses
        message: Message = {
            "running": self.running,
            "stopping": self._stopping.is_set(),
            "state": result.state,
            "status": self.status,
            "trial": number,
            "label": self.trials[self.at[0]].label,
            "from": begin,
            "first": first,
            "verdict": [readable(head), readable(rest)],
            "rows": [_row_message(row) for row in result.rows],
            "groups": [_group_message(group) for group in result.groups],
            "stages": [[threads, readable(word(stage)), ms, share] for threads, stage, ms, share in result.stages()],
            "heat": _heat_message(result.rows),
            "against": [str(each) for each in result.against],
            "notes": result.notes,
        }
        return message, [floats.tobytes()]

    @rpc
    def plain(self) -> Message:
        """The result as JSON."""
        return {"result": self.result.to_dict()}

    # ---- what a host asks

    def first(self, session: str = "") -> Answer:
        message, buffers = self.poll()
        config: Message = {"title": self.title, "chain": readable(self.result.config["chain"])[:600], "facts": readable(self.result.facts)}
        return {"config": config, "poll": message}, buffers

    def text(self) -> str:
        return f"tarviz bench {safe(self.title)}\n{self.status}\n\n{self.result}"

    def picture(self) -> bytes:
        return chart(self.result, self._line)

    def likely(self) -> Iterator[tuple[str, Message | None]]:
        yield "poll", None
        yield "plain", {}

    def close(self) -> None:
        self._stopping.set()

    # ---- what Python asks

    @property
    def title(self) -> str:
        """What is measured, as it was named."""
        if self.pipeline is None:
            return self.trials[0].label
        return readable(redact(" ".join(self.pipeline.urls)))[:300]

    @property
    def status(self) -> str:
        """One sentence: what runs, how far it is."""
        number = self.at[1] * len(self.trials) + self.at[0] + 1
        count = len(self.trials) * self.repeat
        if not self.running:
            measured = sum(bool(row.runs) for row in self.result.rows)
            failed = sum(bool(row.error) for row in self.result.rows)
            parts = [self.result.state, f"{measured} of {len(self.trials)} measured"] + ([f"{failed} failed"] if failed else [])
            return " · ".join(parts)
        meter = self.meter
        rate = f"{meter.records:,} records in {meter.seconds:.1f} s" if meter is not None else ""
        text = "stopping" if self._stopping.is_set() else f"running {number} of {count}: {self.trials[self.at[0]].label}"
        return " · ".join(part for part in (text, rate) if part)


def _pipeline(source: Any, chain: Chainable, select: Any, seed: int, options: dict[str, Any]) -> Pipeline | None:
    """The pipeline that is meant; None where the source is an iterable of another kind."""
    if isinstance(source, Pipeline):
        if chain is not None or select is not None or options:
            raise UsageError("A Pipeline brings chain, selection and options of its own.", hint="Use its with_chain, with_select.")
        return source
    several = isinstance(source, list | tuple) and all(isinstance(each, str | PathLike) for each in source)
    if isinstance(source, str | PathLike) or (several and source):
        return Pipeline(source, chain, select=select, seed=seed, **options)
    if not isinstance(source, Iterable) and not callable(source):
        raise UsageError(f"{type(source).__name__} cannot be measured: it is neither a URL nor a Pipeline, and it yields no items.")
    if chain is not None or select is not None or options:
        raise UsageError("Chain, selection and reading options are for shards; an iterable is timed as it is.")
    return None


def _as_list(value: Several) -> list[int | None]:
    return list(value) if isinstance(value, Iterable) else [value]


def _row_message(row: TrialRow) -> Message:
    shown = per_second(row.rate) if math.isfinite(row.rate) else ""
    texts = {name: readable(getattr(row, name)) for name in ("label", "error", "last_op")}
    return row.to_dict() | texts | {"shown": shown, "runs": len(row.runs)}


def _group_message(group: Group) -> Message:
    found = group.to_dict()
    return found | {"busy": [[readable(word(name)), share] for name, share in found["busy"].items()]}


def _heat_message(rows: Sequence[TrialRow]) -> Message | None:
    found = grid([row for row in rows if math.isfinite(row.rate)])
    if found is None:
        return None
    across, down, rates = found
    cells = [[rates.get((x, y)) for x in across] for y in down]
    return {"across": [str(x) for x in across], "down": [str(y) for y in down], "name": down_of(rows), "cells": cells}
