"""Measure how fast shards become records: rate, stages, the limit in a sentence; sweeps, peers, a baseline."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import click

from tarviz.cli import verb_base
from tarviz.cli.entry import INTERRUPTED
from tarviz.model.errors import UsageError, redact, safe
from tarviz.read.keywords import ReadKeywords

if TYPE_CHECKING:
    from tarviz.widgets.bench.controller import BenchRun, Several
    from tarviz.widgets.bench.result import BenchResult
    from tarviz.widgets.bench.view import BenchView


def bench(
    source: Any,
    chain: Any = None,
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
    per_item: int | Callable[[Any], int] | None = None,
    baseline: Any = None,
    fail_below: float = 0.9,
    **reading: Unpack[ReadKeywords],
) -> BenchView | BenchRun:
    """Measures a pipeline, or any iterable, on a thread: `.result`, `.wait()`, `.stop()`. In a notebook a widget, live.

    `source` is shards, a `Pipeline`, or anything that gives items (`per_item` records each). Several `workers`, `batch` or `prefetch`
    are swept. `runner` is `eager` (each stage timed) or `tf.data`. `vs` names peers: webdataset, from_generator, tfrecord. `cold`
    drops the shards from the page cache first. `baseline` is a result, or the file that `.result.save(file)` wrote; a row below
    `fail_below` times its rate makes `.result.exit_code` 1. Other keywords are those of `tarviz.records`.
    """
    from tarviz.widgets.bench.controller import BenchRun

    run = BenchRun(
        source,
        chain,
        select=select,
        runner=runner,
        workers=workers,
        batch=batch,
        prefetch=prefetch,
        seconds=seconds,
        count=count,
        warmup=warmup,
        repeat=repeat,
        vs=vs,
        cold=cold,
        seed=seed,
        per_item=per_item,
        baseline=baseline,
        fail_below=fail_below,
        **reading,
    )
    if not verb_base.in_notebook():
        return run
    from tarviz.widgets.bench.view import BenchView

    return BenchView(run)


@dataclass(frozen=True)
class Benched(verb_base.Result):
    """A bench that is done, and where it was saved."""

    result: BenchResult
    saved: str | None = None

    @property
    def exit_code(self) -> int:
        return INTERRUPTED if self.result.state == "stopped" else self.result.exit_code

    def __str__(self) -> str:
        return f"{self.result}\n\nsaved in {redact(safe(self.saved))}" if self.saved else str(self.result)

    def to_dict(self) -> dict[str, Any]:
        return self.result.to_dict()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**super()._repr_mimebundle_(include, exclude), **self.result._repr_mimebundle_(), "text/plain": str(self)}


def numbers(value: str) -> list[int]:
    """Whole numbers, comma between: `1,2,4`."""
    if not re.fullmatch(r" *\d+ *(, *\d+ *)*", value):
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 1,2,4.")
    return [int(part) for part in value.split(",")]


@verb_base.verb(
    "bench",
    example=[
        "tarviz bench data/ -c 'decode(jpg)|resize(jpg, (224, 224))' -j 0,1,2,4 --batch 32,64",
        "tarviz bench data/ -c 'decode(jpg)' --vs webdataset --save base.json",
        "tarviz bench data/ -c 'decode(jpg)' --baseline base.json --fail-below 0.9",
    ],
)
@click.argument("urls", nargs=-1, metavar="URL...", shell_complete=verb_base.complete_shards)
@click.option("-c", "--chain", default=None, metavar="CHAIN", help="The ops to run on each record. [default: none, raw records]")
@click.option("--select", default=None, metavar="FIELDS", help="What a step yields: jpg,cls. [default: all fields]")
@verb_base.choice("runner", ("eager", "tf.data"))
@click.option("-j", "--workers", type=numbers, default=None, metavar="N,…", help="Threads that run the ops; several are swept.")
@click.option("--batch", type=numbers, default="32", show_default=True, metavar="N,…", help="Records in a batch; several are swept.")
@click.option("--prefetch", type=numbers, default=None, metavar="N,…", help="Batches kept ready (tf.data); several are swept.")
@click.option("--for", "seconds", type=float, default=5.0, show_default=True, metavar="SECONDS", help="How long each trial runs.")
@click.option("-n", "--count", type=click.IntRange(min=1), default=None, metavar="N", help="End a trial after this many records.")
@click.option("--warmup", type=float, default=0.5, show_default=True, metavar="SECONDS", help="Warm-up left out after the first batch.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Run every trial this many times, in turns.")
@click.option("--vs", default="", metavar="PEER,…", help="Compare with webdataset, from_generator, tfrecord.")
@click.option("--cold", is_flag=True, help="Drop the shards from the page cache before each trial.")
@click.option("--save", metavar="FILE", help="Write the result, to be a baseline later.")
@click.option("--baseline", metavar="FILE", help="Compare with a saved result.")
@click.option("--fail-below", type=float, default=0.9, show_default=True, metavar="RATIO", help="Slower than this: exit code 1.")
@verb_base.choice_options
@click.option("--wait", is_flag=True, help="In a notebook: wait for the end, then show the result.")
@verb_base.result_options
def command(urls: tuple[str, ...], select: str | None, vs: str, save: str | None, wait: bool, as_json: bool, **wish: Any) -> Any:
    """Measure how fast shards become records.

    Says which stage is the limit. The first batch and the warm-up are apart, so the rate is exact. Ctrl-C ends it and keeps what was
    measured. In a notebook it runs in the background, live, with a Stop button.
    """
    fields = tuple(part.strip() for part in select.split(",")) if select else None
    wish |= {"select": fields, "vs": _names(vs)}
    for name in ("where", "keys"):
        if not wish[name]:
            del wish[name]
        elif vs:
            raise UsageError(f"--{name} and --vs do not go together: peers read every record.")
    cell = verb_base.door().cell
    if not urls and cell is None:
        raise click.UsageError("Missing argument 'URL...'.", click.get_current_context())
    source = list(urls) if urls else _items(cell)
    if verb_base.for_widgets() and not (wait or as_json or save):
        return verb_base.emit(bench(source, **wish))
    from tarviz.widgets.bench.controller import BenchRun

    run = BenchRun(source, **wish)
    watch(run)
    if save:
        run.result.save(save)
    return verb_base.emit(Benched(run.result, save), as_json)


def watch(run: BenchRun) -> None:
    """Wait for a bench, with progress on stderr; Ctrl-C ends it and keeps what was measured."""
    trials = len(run.trials) * run.repeat
    with verb_base.progress(trials, "trials") as bar:
        try:
            while not run.wait(0.2):
                bar.add(run.at[1] * len(run.trials) + run.at[0] - bar.done, run.status)
        except KeyboardInterrupt:
            run.end()


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _items(cell: Any) -> Any:
    """What the last line of a cell gave, to be timed as it is."""
    if isinstance(cell, str):
        raise UsageError("The cell's last line is text; it must be what gives the items.", hint="For shards write %tv bench URL.")
    return cell


command.cell = "value"  # type: ignore[attr-defined]
