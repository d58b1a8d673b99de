"""Progress of a verb: a line on stderr, only on a terminal, only after a second, never with `-q`."""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType

from tarviz.model import config
from tarviz.model.errors import TarvizWarning, safe

Clock = Callable[[], float]
TICK = 0.25  # seconds

quiet: contextvars.ContextVar[bool] = contextvars.ContextVar("tarviz_quiet", default=False)
"""Whether nothing is to be drawn: `-q`, and verbs within a verb."""


class Progress:
    """A count that grows, shown on stderr once a second has passed; use as a context manager."""

    def __init__(self, total: float | None, unit: str, label: str = "", *, delay: float = 1.0, clock: Clock = time.monotonic) -> None:
        self.total, self.unit, self.label, self.done = total, unit, label, 0.0
        self._clock, self._start, self._drawn = clock, clock(), False
        self._next = self._start + delay
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None
        mode = config.options().progress
        self._on = not quiet.get() and (mode == "on" or (mode == "auto" and sys.stderr.isatty()))

    def add(self, count: float = 1, label: str | None = None) -> None:
        """`count` more units are done; `label` says what is being worked on."""
        self.done += count
        if label is not None:
            self.label = label
        if self._on and (now := self._clock()) >= self._next:
            self._next = now + 0.1
            self._draw(now)

    def _amount(self, value: float) -> str:
        return config.format_size(value) if self.unit == "bytes" else f"{value:,.0f}"

    def text(self, now: float) -> str:
        """The line that is shown."""
        rate = self.done / max(now - self._start, 1e-9)
        unit = "" if self.unit == "bytes" else f" {self.unit}"
        speed = f"{self._amount(rate)}/s" if self.unit == "bytes" or rate >= 10 else f"{rate:.1f}/s"
        label = f"{safe(self.label)}  " if self.label else ""
        if not self.total or not self.done:
            return f"{label}{self._amount(self.done)}{unit}  {speed}  {now - self._start:.0f} s"
        share = min(self.done / self.total, 1.0)
        bar = f"{'━' * round(share * 24):╌<24}"
        amount = f"{self._amount(self.done)} of {self._amount(self.total)}{unit}"
        return f"{label}{bar} {share:4.0%}  {amount}  {speed}  {max((self.total - self.done) / rate, 0):.0f} s left"

    def _draw(self, now: float) -> None:
        import shutil  # with all that packs archives

        line = self.text(now)
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{line if len(line) <= width else line[: width - 1] + '…'}")
        sys.stderr.flush()
        self._drawn = True

    def _tick(self) -> None:
        """Draw now and then while the work reports nothing, so that a long step is seen to go on."""
        while not self._over.wait(TICK):
            if (now := self._clock()) >= self._next:
                self._draw(now)

    def __enter__(self) -> Progress:
        if self._on:
            self._ticker = threading.Thread(target=self._tick, name="tarviz-progress", daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def progress(total: float | None = None, unit: str = "records", *, label: str = "") -> Progress:
    """`with progress(total, "bytes") as bar: bar.add(n)`: on stderr, only on a terminal, only after a second, never with `-q`."""
    return Progress(total, unit, label)


@contextlib.contextmanager
def hush() -> Iterator[None]:
    """No progress is drawn inside: a verb within a verb, which shows its own."""
    token = quiet.set(True)
    try:
        yield
    finally:
        quiet.reset(token)


@contextlib.contextmanager
def silent_warnings() -> Iterator[None]:
    """No `TarvizWarning` through `warnings` inside: the result lists them all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TarvizWarning)
        yield
