"""Shard to shard: `-o 'x-{}.tar'` runs a tool on each shard by itself, on an engine, and puts what comes of shard 1 into `x-1.tar`."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import IO, Any, TypeVar

import click

from tarviz import engines, stores
from tarviz.cli import shard_table, verb_base
from tarviz.cli.tar_tool_options import Made, Tar, command_shards
from tarviz.model.errors import UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.outputs import Names, has_counter, piped, source_entry
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.manifest import check_seen, find_kept, forget_manifest, prove
from tarviz.read.keywords import ReadKeywords

F = TypeVar("F", bound=Callable[..., Any])


class MappedKeywords(ReadKeywords, total=False):
    """What a tool that is `shard_to_shard` takes beside its own options: how it goes about many shards, and how these are read."""

    engine: str
    address: str | None
    jobs: int | None
    resume: bool


# `--engine` and `--address`: where tasks run.
cluster_options = verb_base.together(
    verb_base.choice("engine", ("local", "ray"), "Where shards are worked on."),
    click.option("--address", metavar="ADDRESS", help="Of the cluster: auto, HOST:6379, ray://HOST:10001. [default: RAY_ADDRESS]"),
)

# `--engine`, `--address`, `--jobs`: of a verb that looks at each shard by itself.
jobs_options = verb_base.together(
    cluster_options,
    click.option("--jobs", type=click.IntRange(min=0), metavar="N", help="Shards at a time, each by itself; 0: one per processor."),
)

# `--engine`, `--address`, `--jobs`, `--resume`: how a verb that maps shard to shard goes about it.
engine_options = verb_base.together(
    jobs_options, click.option("--resume", is_flag=True, help="Shard to shard: keep outputs that their manifest proves.")
)


def _map_shards(job: ShardJob, urls: list[URL], names: Names, engine: str, address: str | None, jobs: int | None) -> Mapped:
    """What the job makes of each shard.

    A shard that is damaged or cannot be had does not stop the others: its error is raised when they are done. On a cluster, and with
    `resume`, outputs have a manifest beside them; `resume` keeps those that it proves.
    """
    Inputs(urls).refuse_any(names, count=len(urls))
    away = engines.travels(engine)
    own = [url for url in [*urls, names.text] if engines.is_own(url) or piped.is_command(url)]
    if away and own:
        raise engines.unreachable(own[0])
    tasks = [MappedShard(number, url, names.at(number)) for number, url in enumerate(urls)]
    mapped, errors = Mapped(), engines.Errors(urls)
    with verb_base.silent_warnings():
        for task, result in shard_table.each_task(
            job.verb.__name__, job, tasks, lambda made: (made.records, made.bytes), engine, address, 1 if own else jobs, errors
        ):
            if away:
                check_seen(task.output)
            mapped.add(task, result)
    return mapped


def shard_to_shard(gathered: Callable[[Mapped, str], Any] = lambda mapped, _: mapped, *, mixing: str = "") -> Callable[[F], F]:
    """Lets a tool that makes one output of all shards also make one of each by itself, where the output has a counter.

    It takes `MappedKeywords` then. `gathered` makes the tool's own result of all that came of the shards and of the output's name; the
    option `mixing`, if any, is for one output alone.
    """

    def decorate(verb: F) -> F:
        own = inspect.signature(verb)

        @functools.wraps(verb)
        def tool(
            *args: Any, engine: str = "local", address: str | None = None, jobs: int | None = None, resume: bool = False, **more: Any
        ) -> Any:
            given = own.bind(*args, **more)
            given.apply_defaults()
            urls, output = given.args
            keywords = given.kwargs
            if not has_counter(fspath(output)):
                if engine != "local" or address is not None or jobs is not None or resume:
                    raise UsageError(
                        "one output of all shards is made by one process.",
                        hint="Write -o 'x-{}.tar' to make an output of each shard, many at a time.",
                    )
                return verb(urls, output, **keywords)
            if keywords.pop(mixing, None) is not None:
                raise UsageError("shard to shard mixes nothing.", hint=f"Leave out {mixing}, or the counter of the output.")
            shards = command_shards(urls, keywords.pop("files"))
            job = ShardJob(tool, keywords, _recipe(tool, keywords) if resume or engines.travels(engine) else None, resume)
            return gathered(_map_shards(job, shards, Names(fspath(output)), engine, address, jobs), fspath(output))

        parts, spread = [*own.parameters.values()], inspect.signature(tool, follow_wrapped=False).parameters
        parts[-1:-1] = [spread[name] for name in MappedKeywords.__annotations__ if name in spread]  # before what reading takes
        tool.__signature__ = own.replace(parameters=parts)  # type: ignore[attr-defined]  # what inspect looks for
        return tool  # type: ignore[return-value]

    return decorate


@dataclass
class Mapped(Made):
    """What came of the shards: a tar each, the reports in one, and what the tool said of each that was not kept."""

    made: list[Any] = field(default_factory=list)

    def add(self, shard: MappedShard, result: Made | Tar) -> None:
        if isinstance(result, Tar):
            self.outputs.append(result)
            return
        self.outputs.append(Tar(shard.output, result.records, result.bytes))
        self.made.append(result)
        self.report.merge(result.report)


@dataclass(frozen=True, slots=True)
class MappedShard:
    """One shard of the mapping, and its output."""

    number: int
    url: URL
    output: URL

    __repr__ = redacted_repr


@dataclass(frozen=True)
class ShardJob:
    """A tool run on one shard by itself; `recipe`, if not None, is what the manifest beside the output says of the tool."""

    verb: Callable[..., Made]
    keywords: Mapping[str, Any]
    recipe: Mapping[str, Any] | None
    resume: bool

    def __call__(self, shard: MappedShard, file: IO[bytes] | None, tick: engines.Tick) -> Made | Tar:
        """What the tool made; a `Tar` where the output was there already."""
        if self.recipe is None:
            with verb_base.hush():
                return self.verb(shard.url, shard.output, **self.keywords)
        source = {"number": shard.number, **source_entry(stores.of(shard.url).stat(shard.url))}
        facts = {**self.recipe, "sources": [source]}
        if self.resume and self.recipe["options"] is not None and (kept := find_kept(shard.output, facts)) is not None:
            return Tar(shard.output, kept.records, kept.bytes)
        forget_manifest(shard.output)  # it would be untrue between the new output and its own
        with verb_base.hush():
            made = self.verb(shard.url, shard.output, **self.keywords)
        prove(shard.output, made.records, facts)
        return made


def _recipe(verb: Callable[..., Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says of a tool; its options are None where a Python function is one, which may change without its name changing."""
    from tarviz import __version__

    options: dict[str, Any] | None = None
    if all(isinstance(value, str | int | float | bool | None | tuple | list | PathLike) for value in keywords.values()):
        options = {name: list(value) if isinstance(value, tuple) else value for name, value in keywords.items()}
        options |= {name: fspath(value) for name, value in keywords.items() if isinstance(value, PathLike)}
        if script := options.get("script"):
            with open(script, "rb") as file:
                options["script"] = hashlib.sha256(file.read()).hexdigest()
    return {"format": "tar", "verb": verb.__name__, "tarviz": __version__, "options": options}
