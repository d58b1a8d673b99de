"""What the tar tools share: their options, how inputs are opened, the buffer that shuffles, the result."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, fspath
from typing import Any, TypeVar

import click

from tarviz import stores
from tarviz.cli import html_page, verb_base
from tarviz.model.config import format_size
from tarviz.model.errors import UsageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, lines_of
from tarviz.model.wording import plural
from tarviz.outputs.piped import is_command
from tarviz.read.spans import Batch
from tarviz.read.stream import ReadReport
from tarviz.tools.whole_file import contents

F = TypeVar("F", bound=Callable[..., Any])

MAX_FAULTS = 20  # of a kind shown as text
MAX_LIST = 64 << 20  # bytes of a list of shards
_TOGETHER = 8  # small records that leave the memory of their block together


# `[URL...]`, standard input when there is none, handed over as the tuple `urls`; `-T FILE`, handed over as `files`. See `opened`.
inputs_argument = verb_base.together(
    click.argument("urls", nargs=-1, metavar="[URL]...", shell_complete=verb_base.complete_shards),
    click.option("-T", "--files", metavar="FILE", help="Read the names of shards from a list, one per line."),
)

# What every tool has: `as_json`, `on_error`, `strict`, `key_split`, `duplicates`, `concatenated`, `where`, `keys`, and `-q`.
_STRICT_TEXT = "Refuse, or take with a warning, what may be incomplete."
tool_options = verb_base.together(
    verb_base.choice_options,
    verb_base.result_options,
    verb_base.on_error_option,
    click.option("--strict/--lenient", "strict", default=True, show_default=True, help=_STRICT_TEXT),
    *(verb_base.READ_OPTIONS[name] for name in ("key_split", "duplicates", "concatenated")),
)


def list_urls(urls: stores.URLs) -> list[str]:
    """The URLs of a call, one or many, as they are written."""
    return [fspath(url) for url in ([urls] if isinstance(urls, str | PathLike) else urls)]


def command_shards(urls: stores.URLs, listed: str | None = None) -> list[URL]:
    """The shards of a command line: those named, those a list names, standard input when there are neither."""
    named = [*list_urls(urls), *(listing(listed) if listed is not None else ())]
    if not named and listed is None:
        named = ["-"]
    if named.count("-") > 1:
        raise UsageError("standard input can be read once only.")
    return stores.expand(named)


def listing(url: str) -> list[str]:
    """The URLs in a list, one per line; empty lines and lines that begin with # are passed over.

    A list from another machine may not name files of this one.
    """
    lines = lines_of(contents(url, "the list of shards", MAX_LIST))
    found = [line for line in map(str.strip, lines) if line and not line.startswith("#")]
    if not stores.is_local(url) and url != "-" and (local := [line for line in found if stores.is_local(line) or line == "-"]):
        raise UsageError(f"a list from another machine names {local[0]!r}, a file of this one.", shard=url)
    return found


def shuffled(batches: Iterable[Batch], size: int, seed: int) -> Iterator[tuple[Batch, int]]:
    """Records drawn from a buffer of `size`, as (batch, record): each that comes in puts a random one out. The same for the same seed."""
    draw = random.Random(seed).randrange
    held: list[tuple[Batch, int]] = []
    for batch in batches:
        for part in _parts(batch):
            for record in range(len(part)):
                if len(held) < size:
                    held.append((part, record))
                else:
                    at = draw(size)
                    out, held[at] = held[at], (part, record)
                    yield out
    while held:
        at = draw(len(held))
        held[at], held[-1] = held[-1], held[at]
        yield held.pop()


def _parts(batch: Batch) -> Iterator[Batch]:
    """A batch in pieces that own their bytes: a record that waits must not hold the whole block in memory."""
    if batch.source is not None:
        yield batch
        return
    begin, end, _ = batch.block.spans
    together = _TOGETHER if int(end[-1] - begin[0]) < (_TOGETHER << 13) * len(batch) else 1
    for low in range(0, len(batch), together):
        part = batch.block.part(low, min(low + together, len(batch)))
        if not part.members.sparse:
            first, last = int(part.spans[0][0]), int(part.spans[1][-1])
            part = replace(part, data=memoryview(bytes(part.data[first:last])), base=part.base + first, offset=part.offset - first)
        yield Batch(part)


@dataclass(frozen=True, slots=True)
class Tar:
    """One tar that is complete: its URL, records, and bytes before any packing."""

    url: str
    records: int
    bytes: int

    __repr__ = redacted_repr

    def __str__(self) -> str:
        records = plural(self.records, "record")
        return f"{redact(safe(self.url))}: {records}, {format_size(self.bytes)}"


@dataclass
class Made(verb_base.Result):
    """The tars a tool wrote, and the report of what it read. Exit code 1: something was left out or warned of."""

    outputs: list[Tar] = field(default_factory=list)
    report: ReadReport = field(default_factory=ReadReport)

    @property
    def records(self) -> int:
        """Records written."""
        return sum(tar.records for tar in self.outputs)

    @property
    def bytes(self) -> int:
        """Bytes of tar written, before any packing."""
        return sum(tar.bytes for tar in self.outputs)

    @property
    def to_stdout(self) -> bool:
        """Whether standard output carries the tar."""
        return any(tar.url in ("-", "/dev/stdout") or is_command(tar.url) for tar in self.outputs)

    def lines(self, json: bool = False) -> Iterator[str]:
        if json:
            yield from super().lines(json)
        elif not self.to_stdout:  # a filter is silent when all is well
            yield from self.summary()

    def summary(self) -> Iterator[str]:
        """What was written, a line each."""
        yield from map(str, self.outputs)

    def notes(self) -> Iterator[str]:
        yield from self._faults()

    def _faults(self) -> Iterator[str]:
        for title, faults in (("left out", self.report.skipped), ("", self.report.warnings)):
            yield from (f"{title}: {fault}" if title else str(fault) for fault in faults[:MAX_FAULTS])
            if len(faults) > MAX_FAULTS:
                yield f"… {len(faults) - MAX_FAULTS} more"
        if self.report.skipped:
            count = len(self.report.skipped)
            yield f"{plural(count, 'fault')} left out."

    def __str__(self) -> str:
        return "\n".join([*self.summary(), *self._faults()])

    def to_dict(self) -> dict[str, Any]:
        outputs = [{**asdict(tar), "url": redact(tar.url)} for tar in self.outputs]
        return {"records": self.records, "bytes": self.bytes, "outputs": outputs, "read": self.report.to_dict()}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        rows = [(redact(tar.url), f"{tar.records:,}", format_size(tar.bytes)) for tar in self.outputs]
        body = html_page.table(rows, header=("tar", "records", "size"), right=[1, 2])
        body += "".join(f'<p class="bad">{html_page.text(line)}</p>' for line in self._faults())
        return {"text/plain": str(self), "text/html": html_page.fragment(body)}
