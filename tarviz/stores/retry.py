"""When to try again, how long to wait, and when to give up. The bound is ours, not a library's."""

from __future__ import annotations

import email.utils
import itertools
import logging
import random
import threading
import time
from dataclasses import KW_ONLY, dataclass

from tarviz.model.errors import StoreError, redact
from tarviz.model.wording import plural

_log = logging.getLogger(__name__)

RETRY_AFTER_CAP = 60.0
UNREACHED_TIMEOUT = 15.0
REFUSED_TIMEOUT = 1.5
PACE_WINDOW = 60.0
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0


class Clock:
    """Time and chance; tests put their own in its place."""

    def now(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def random(self) -> float:
        """A number in [0, 1)."""
        return random.random()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Sleep, unless `stop` is set meanwhile."""
        stop.wait(seconds)


@dataclass(eq=False)
class RetryError(Exception):
    """An attempt that failed in a way that may pass: never seen outside of the stores.

    `after`: seconds the server asks to wait. `at_once`: nothing speaks against an immediate first retry.
    `unreached`: no server was there at all; `refused`: this machine or a name server said so at once. `limit`: seconds after which
    it is no longer taken to pass.
    """

    reason: str
    _: KW_ONLY
    code: str = "E_NETWORK"
    after: float | None = None
    at_once: bool = False
    unreached: bool = False
    refused: bool = False
    limit: float = float("inf")

    def __post_init__(self) -> None:
        self.reason = redact(self.reason)
        super().__init__(self.reason)


_waiting: dict[str, str] = {}


def waiting(url: str) -> str:
    """What a read of `url` waits for, for whoever watches: "Connection refused; attempt 25 in 5.9 s". "" where none waits."""
    return _waiting.get(url, "")


class Attempts:
    """The failed attempts of one read since its last progress, held against `timeout` seconds.

    A transfer that breaks often but moves on never runs out; one that stands still does.
    """

    def __init__(self, url: str, timeout: float, clock: Clock, stop: threading.Event | None = None) -> None:
        self._url = url
        self._timeout = timeout
        self._clock = clock
        self._stop = stop or threading.Event()
        self._since = clock.now()
        self._failed: list[tuple[int | None, str]] = []

    def progress(self) -> None:
        """Bytes have arrived, or a read begins: what failed before counts no more."""
        self._failed.clear()
        self._since = self._clock.now()
        _waiting.pop(self._url, None)

    def begin(self) -> None:
        """A read begins; the reader's own pause is not held against the server."""
        if not self._failed:
            self._since = self._clock.now()

    def excuse(self, seconds: float) -> None:
        """Time in which bytes arrived that had been read before."""
        self._since += seconds

    def fail(self, error: RetryError, offset: int | None, *, reached: bool) -> None:
        """Note a failure and wait for the next attempt; `StoreError` when the time is used up."""
        self._failed.append((offset, error.reason))
        count = len(self._failed)
        if error.after is not None:
            wait = min(error.after, RETRY_AFTER_CAP)
        elif error.at_once and count == 1:
            wait = 0.0
        else:
            longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(count - 1, 16))
            wait = longest * (0.5 + 0.5 * self._clock.random())
        timeout = min(self._timeout, error.limit)
        if error.unreached and not reached:
            timeout = min(timeout, REFUSED_TIMEOUT if error.refused else UNREACHED_TIMEOUT)
        spent = self._clock.now() - self._since
        if spent + wait > timeout:
            _waiting.pop(self._url, None)
            raise self._error(error, spent, timeout) from error.__cause__
        level = logging.WARNING if wait >= 5 else logging.INFO
        text = _waiting[self._url] = f"{error.reason}; attempt {count + 1} in {wait:.1f} s"
        _log.log(level, "%s: %s", redact(self._url), text)
        if wait:
            self._clock.wait(wait, self._stop)

    def _error(self, error: RetryError, spent: float, timeout: float) -> StoreError:
        count = len(self._failed)
        reasons = (reason if at is None else f"at byte {at} {reason}" for at, reason in self._failed)
        runs = [(reason, len(list(run))) for reason, run in itertools.groupby(reasons)]
        shown = "; ".join(f"{reason} (×{times})" if times > 1 else reason for reason, times in runs[:6])
        more = f"; … ({len(runs) - 6} more)" if len(runs) > 6 else ""
        times = plural(count, "attempt")
        asked = f"; the server asks to wait {error.after:.0f} s" if error.after is not None else ""
        what = f"gave up after {times} in {spent:.0f} s without progress (limit {timeout:.0f} s): {shown}{more}{asked}."
        hint = "Check address and network." if error.unreached else "Try later, or raise retry_timeout."
        details = {"attempts": [{"offset": offset, "reason": reason} for offset, reason in self._failed]}
        return StoreError(what, code=error.code, shard=self._url, hint=hint, details=details)


class Pace:
    """How fast bytes come, minute by minute, held against the slowest rate borne (bytes a second; 0: any).

    Only the time spent waiting for bytes counts: a reader that pauses makes no server slow.
    """

    def __init__(self, slowest: float) -> None:
        self._slowest = slowest
        self._seconds = self._bytes = 0.0

    def count(self, seconds: float, size: int) -> None:
        """Note `size` bytes that took `seconds`; `RetryError` after a minute that was too slow."""
        self._seconds += seconds
        self._bytes += size
        if self._seconds >= PACE_WINDOW:
            rate, self._seconds, self._bytes = self._bytes / self._seconds, 0.0, 0.0
            if rate < self._slowest:
                raise RetryError(f"{rate:.3g} bytes a second came, fewer than min_rate ({self._slowest:g})", code="E_STALL", at_once=True)


def retry_after(value: str | None, date: str | None, clock: Clock) -> float | None:
    """Seconds to wait by a `Retry-After` header, which holds seconds or a date (RFC 9110 §10.2.3); None if unreadable.

    A date is held against the server's own `Date`, where it tells one, so that a wrong clock here does no harm.
    """
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value[:12])
    until = http_date(value)
    if until is None:
        return None
    now = http_date(date) if date else None
    return max(0.0, until - (clock.wall() if now is None else now))


def http_date(date: str) -> float | None:
    """Seconds since 1970 of a date as HTTP writes it; None if unreadable."""
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
