"""What `proc` does to a record: a command in a private folder, or a chain of ops."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, TypeAlias

from tarviz.model import config
from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import PLACES, to_bytes, to_text
from tarviz.read.spans import Batch
from tarviz.tools import field_selection
from tarviz.tools.record_files import Collecting, check_names
from tarviz.tools.record_shell import Came, Given, Left, Worker

Work: TypeAlias = Callable[[Batch, int], Came]


def script_line(path: str, interpreter: str | None) -> str:
    """The line that runs a script file, whatever folder it runs in."""
    if not os.path.isfile(path):
        raise UsageError(f"there is no script {path!r}.")
    full = shlex.quote(os.path.abspath(path))
    if interpreter:
        return f"exec {' '.join(map(shlex.quote, shlex.split(interpreter)))} {full}"
    return f"exec {full}" if os.access(path, os.X_OK) else f". {full}"


@dataclass(frozen=True, slots=True)
class FieldFiles:
    """Which fields become files. `required`: a record needs all of them; `alone`: the other fields are not written."""

    picks: tuple[field_selection.Pick, ...]
    required: bool
    alone: bool

    def __contains__(self, ext: str) -> bool:
        return any(ext in pick.exts for pick in self.picks)

    def check(self, exts: list[str]) -> None:
        """`DataError` E_MISSING_FIELD when a field that is required is not among those given."""
        for pick in self.picks:
            if self.required and not pick.optional and not set(pick.exts) & set(exts):
                raise DataError(f"the record has no field {' or '.join(pick.exts)!r}.", code="E_MISSING_FIELD")


@dataclass(eq=False, repr=False)
class Commands:
    """Commands in private folders: one folder and one shell for each thread."""

    line: str
    collecting: Collecting
    shown: FieldFiles | None
    _: KW_ONLY
    any_key: bool
    timeout: float | None
    tmp: str | PathLike[str] | None
    limit: int = field(default_factory=lambda: config.options().max_member_bytes)
    _local: threading.local = field(default_factory=threading.local)
    _workers: list[Worker] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: bool = False

    def __enter__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="tarviz-proc-", dir=self.tmp)  # mode 0700

    def __exit__(self, *_: object) -> None:
        self.kill()
        for worker in self._workers:
            worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        with self._lock:
            self._over = True  # a thread that has not begun yet does not begin a command that nobody would end
        for worker in self._workers:
            worker.kill()

    def _worker(self) -> Worker:
        worker: Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            with self._lock:
                if self._over:
                    raise DataError("the work was stopped.", code="E_COMMAND")
                folder = os.path.join(self._folder, str(len(self._workers)))
                worker = self._local.worker = Worker(folder, self.line, self.collecting, self.limit, self.timeout)
                self._workers.append(worker)
        return worker

    def work(self, batch: Batch, record: int) -> Came:
        every = batch.rows(record)
        rows = [row for row in every if self.shown is None or batch.ext(row) in self.shown]
        exts = [batch.ext(row) for row in rows]
        if self.shown is not None:
            self.shown.check(exts)
        key = batch.block.keys[record]
        check_names(key, exts, any_key=self.any_key)
        came = self._worker().run(key, [Given(ext, batch.payload(row)) for ext, row in zip(exts, rows, strict=True)])
        for each in came.left:
            each.fields = [(ext, value if isinstance(value, bytes) else rows[value] - every.start) for ext, value in each.fields]
        passed = [(batch.ext(row), row - every.start) for row in every if row not in rows]
        if passed and not (self.shown and self.shown.alone):
            if not came.left or came.left[0].suffix:
                came.left.insert(0, Left(b"", []))
            came.left[0].fields = sorted([*came.left[0].fields, *passed], key=_place)
        return came


def _place(field: tuple[str, bytes | int]) -> int:
    """Fields that were there stand in their order, new ones after them."""
    return field[1] if isinstance(field[1], int) else 1 << 30


class ChainWork(nullcontext[None]):
    """A chain of ops instead of a command."""

    def __init__(self, op: Any, seed: int, epoch: int) -> None:
        from tarviz.ops import Chain, draws

        super().__init__()
        self.chain = Chain.of(op)
        self._draws, self.seed, self.epoch = draws, seed, epoch

    def kill(self) -> None:
        return

    def work(self, batch: Batch, record: int) -> Came:
        block, rows = batch.block, batch.rows(record)
        given = {batch.ext(row): batch.payload(row) for row in rows}
        key = block.keys[record]
        facts = {"__key__": to_text(key), "__shard__": block.shard, "__index__": block.first + record}
        drawn = self._draws(self.chain, [key], self.seed, self.epoch)[0] if self.chain.draws else None
        made = self.chain.run({**facts, **given}, drawn)
        places = {id(payload): (ext, at) for at, (ext, payload) in enumerate(given.items())}
        fields: list[tuple[str, bytes | int]] = []
        for ext, value in made.items():
            if ext not in PLACES:
                same = places.get(id(value))
                fields.append((ext, same[1] if same is not None and same[0] == ext else _payload(ext, value)))
        return Came([Left(b"", fields)], [])


def _payload(ext: str, value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return to_bytes(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value).encode()
    what = type(value).__name__
    raise DataError(
        f"the field {ext!r} is a {what} after the chain, not bytes.", code="E_SCHEMA", hint=f"End the chain with encode({ext})."
    )
