"""Split records into shards of a given number of records or bytes, and run a command on each finished one."""

from __future__ import annotations

from contextlib import closing
from os import PathLike, fspath
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from tarviz.cli import verb_base
from tarviz.cli.tar_tool_options import Made, Tar, inputs_argument, opened, tool_options
from tarviz.formats.tar_header import TAR_END
from tarviz.model.config import parse_size
from tarviz.model.errors import Fault, StoreError, UsageError, redact
from tarviz.read.spans import Batch, intake, pieces
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import SHARD_SUFFIXES, URLs
from tarviz.tools import field_selection
from tarviz.tools.shard_command import line, run_for
from tarviz.write import Exists, Names, counted
from tarviz.write.inputs import Inputs
from tarviz.write.piped import is_command
from tarviz.write.tar_output import TarOutput

DEFAULT_COUNT, DEFAULT_SIZE = 100_000, 10**9


def split(
    urls: URLs = "-",
    output: str | PathLike[str] = "split-{shard:06d}.tar",
    *,
    count: int | None = None,
    size: int | float | str | None = None,
    maxshards: int | None = None,
    start: int = 0,
    command: str | None = None,
    files: str | None = None,
    exists: Exists = "replace",
    **reading: Any,
) -> Made:
    """Writes records into shards of at most `count` records and `size` bytes; with neither, 100 000 and 10⁹.

    `size` counts the bytes of the tar file (before packing), end mark included; only a record that is larger by itself makes a larger
    shard, and a record is never cut. `output` holds a counter: `{shard:06d}` or `%06d` from `start`, `{}` from `start` + 1; a bare name
    gets `-000000.tar`. After `maxshards` no more is read. `command` is a line for bash, run on each finished shard: `{shard}`, `{abspath}`,
    `{basename}`, `{dirname}`, `{base}` and `{ext}` are parts of its name, quoted as they need; a plain command gets the name as its last
    argument. `exists`: `"replace"` an output when the new one is complete, or `"error"`.
    """
    options = with_changes(ReadOptions(), reading)
    if count is None and size is None:
        count, size = DEFAULT_COUNT, DEFAULT_SIZE
    limit = None if size is None else parse_size(size)
    if (count is not None and count < 1) or (limit is not None and limit < 1) or (maxshards is not None and maxshards < 1):
        raise UsageError("a shard holds at least one record, and there is at least one.")
    targets = opened([fspath(url) for url in ([urls] if isinstance(urls, str | PathLike) else urls)], files)
    names = Names(pattern(fspath(output)))
    shards = _Shards(names, count, limit, start, maxshards, command, options.on_error == "skip", Inputs(targets), exists)
    with (
        verb_base.silent_warnings(),
        verb_base.progress(None, "records") as bar,
        closing(intake(targets, options, shards.report)) as batches,
    ):
        try:
            for batch in batches:
                more = shards.put(batch)
                bar.add(len(batch))
                del batch
                if not more:
                    break
            shards.close()
        except BaseException:
            shards.abort()
            raise
    return Made(shards.done, shards.report)


def pattern(text: str) -> str:
    """The names of outputs as `writer.Names` reads them.

    >>> pattern("imagenet_train"), pattern("s-%04d.tar"), pattern("a.tar.gz")
    ('imagenet_train-{shard:06d}.tar', 's-%04d.tar', 'a-{shard:06d}.tar.gz')
    """
    if counted(text) or "{" in text or text == "-" or is_command(text):
        return text
    suffix = next((suffix for suffix in sorted(SHARD_SUFFIXES, key=len, reverse=True) if text.endswith(suffix)), "")
    return f"{text.removesuffix(suffix)}-{{shard:06d}}{suffix or '.tar'}"


class _Shards:
    """Outputs one after the other; `put` says whether there may be more."""

    def __init__(
        self,
        names: Names,
        count: int | None,
        limit: int | None,
        start: int,
        most: int | None,
        command: str | None,
        skip: bool,
        inputs: Inputs,
        exists: Exists,
    ) -> None:
        if not names.counts and names.text != "-" and not is_command(names.text):
            raise UsageError(f"{redact(names.text)!r} has no counter.", hint="Write {shard:06d} or %06d.")
        self.names, self.count, self.limit, self.start, self.most = names, count, limit, start, most
        self.command, self.skip, self.inputs, self.exists = command, skip, inputs, exists
        inputs.refuse_any(names, first=start, count=most)
        if exists == "error":
            names.refuse_taken()
        if command is not None:
            line(command)  # says what is wrong with it before anything is read
        self.report = ReadReport()
        self.form = field_selection.Form(report=self.report)
        self.done: list[Tar] = []
        self.outlet: TarOutput | None = None

    def put(self, batch: Batch) -> bool:
        ends = np.cumsum(_sizes(batch))
        first = 0
        while first < len(batch):
            if self.outlet is None:
                if self.most is not None and len(self.done) >= self.most:
                    return False
                self.outlet = TarOutput(self.names.at(self.start + len(self.done)), inputs=self.inputs, exists=self.exists)
                self.form.forget()
            last = self._fit(ends, first)
            if last > first:
                self.form.put(self.outlet, batch.part(first, last))
                first = last
            if last < len(batch) or self.outlet.records == self.count:
                self.close()
        return self.most is None or len(self.done) < self.most

    def _fit(self, ends: NDArray[np.int64], first: int) -> int:
        """Up to which record the open shard takes; an empty one takes one of any size."""
        assert self.outlet is not None
        last = len(ends)
        if self.limit is not None:
            room = self.limit - len(TAR_END) - self.outlet.bytes
            last = int(np.searchsorted(ends, (int(ends[first - 1]) if first else 0) + room, side="right"))
        if self.count is not None:
            last = min(last, first + self.count - self.outlet.records)
        return max(last, first + (self.outlet.records == 0))

    def close(self) -> None:
        """Finish the open shard, then run the command on it."""
        if self.outlet is None:
            return
        self.outlet.commit()
        tar = Tar(self.outlet.url, self.outlet.records, self.outlet.bytes)
        self.done.append(tar)
        self.outlet = None
        if self.command is not None:
            code = run_for(self.command, tar.url)
            if code:
                text = f"the command ended with {code} on this shard, which is written."
                if not self.skip:
                    raise StoreError(text, code="E_COMMAND", shard=tar.url)
                self.report.add(Fault("E_COMMAND", text, tar.url), skipped=True)

    def abort(self) -> None:
        """Drop the open shard; those before it stay."""
        if self.outlet is not None:
            self.outlet.abort()


def _sizes(batch: Batch) -> NDArray[np.int64]:
    """Bytes of tar that each record takes."""
    begin, end, row = pieces(batch)
    own = np.concatenate(([0], np.cumsum(np.bincount(row, end - begin, len(batch.block.members)).astype(np.int64))))
    taken: NDArray[np.int64] = own[batch.block.rows[1:]] - own[batch.block.rows[:-1]]
    return taken


@verb_base.verb(
    "split", example=["tarviz split -n 25000 -o 's-{shard:04d}.tar' all.tar", "tar -cf - --sort=name train | tarviz split -s 1GB -o train"]
)
@inputs_argument
@click.option("-o", "--output", default="split-{shard:06d}.tar", show_default=True, metavar="PATTERN", help="Names: {shard:06d}, %06d, {}.")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Records of a shard at most.")
@click.option("-s", "--size", type=verb_base.SIZE, metavar="BYTES", help="Bytes of a shard at most: 1e9, 1GB, 500MiB.")
@click.option("--maxshards", type=click.IntRange(min=1), metavar="N", help="Stop after this many shards.")
@click.option("--start", type=click.IntRange(min=0), default=0, metavar="N", help="The first shard's number.")
@click.option("-C", "--command", "ready", metavar="COMMAND", help="A line for bash, run on each finished shard.")
@click.option("-T", "--files", metavar="FILE", help="Read the names of shards from a list, one per line.")
@click.option(
    "--exists", type=click.Choice(["replace", "error"]), default="replace", show_default=True, help="What happens to outputs that exist."
)
@tool_options
def command(urls: tuple[str, ...], ready: str | None, as_json: bool, **options: Any) -> Any:
    """Split records into shards of a given number of records or bytes each, by default 100 000 and 1 GB.

    Bytes are those of the tar file; only a record that is larger by itself makes a larger one. Records are never cut. Each shard gets its
    name when it is complete. In the command of -C {shard}, {abspath}, {basename}, {dirname}, {base} and {ext} (with its dot) stand for
    parts of the name and need no quotes; a plain command without them gets the name as its last argument.
    """
    return verb_base.emit(split(urls, command=ready, **options), as_json)
