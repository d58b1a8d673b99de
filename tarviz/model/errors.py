"""Every error tarviz raises, and the faults and warnings it reports.

::

    TarvizError
    ├── UsageError (ValueError)          a call that cannot work: template, option, missing field
    │   ├── ChainError                   chain text or an op that does not fit the one before it
    │   └── SchemaError                  what a field holds is not what is asked of it
    ├── DataError (ValueError)           the bytes of a shard or TFRecord are damaged or hostile
    │   └── LimitError                   … or larger than the limit that was set
    ├── NotFoundError (FileNotFoundError)
    ├── StoreError (OSError)             network, permission, disk
    │   └── ChangedError                 the object was replaced while it was read
    └── MissingPackageError (ImportError)

Codes (`E_…` for errors, `W_…` for warnings) are stable: scripts may rely on them. Those of the stores:
`E_NOT_FOUND`; `E_NETWORK` (no answer, or none that helps, until the time for retries was used up), `E_STALL`
(the same, because no byte came), `E_LENGTH` and `E_RANGE` (a server sends other bytes than it says), `E_AUTH`,
`E_CHANGED`; `E_READ` and `E_WRITE` (a file, a pipe, a disk), `E_EXISTS` (a write that may replace nothing).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tarviz.model.redaction import redact as redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.redaction import safe as safe


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing found wrong, as data: what (`code`, `message`) and where."""

    code: str
    message: str
    shard: str | None = None
    key: str | None = None
    member: str | None = None
    offset: int | None = None

    __repr__ = redacted_repr

    @classmethod
    def of(cls, found: dict[str, Any], shard: str) -> Fault:
        """A fault of a shard out of its JSON form."""
        return cls(found["code"], found["message"], shard, found.get("key"), found.get("member"), found.get("offset"))

    def __str__(self) -> str:
        place = f" {redact(safe(self.shard))}" if self.shard else ""
        where = "".join(
            f", {word} {safe(str(value))!r}" if word != "byte" else f" at byte {value}"
            for word, value in (("record", self.key), ("member", self.member), ("byte", self.offset))
            if value is not None
        )
        return f"{self.code}{place}{where}: {redact(safe(self.message))}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without secrets."""
        return {name: redact(value) if isinstance(value, str) else value for name, value in asdict(self).items() if value is not None}


class TarvizError(Exception):
    """Anything tarviz refuses or finds broken: what, where, why, and what to do next.

    `shard`, `key`, `member`, `offset` (byte in the uncompressed file) name the place; `records_before` how many
    records lie whole before it; `details` further figures by name (`need`, `have`, `resync_at`, …); `hint`
    the next step, or what finds it out when somebody reads it. `str()` is one line with secrets and control characters taken out.
    """

    code = "E_USAGE"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        shard: str | None = None,
        key: str | None = None,
        member: str | None = None,
        offset: int | None = None,
        compressed_offset: int | None = None,
        records_before: int | None = None,
        hint: str | Callable[[], str | None] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(redact(message))
        self.message = message
        if code is not None:
            self.code = code
        self.shard = shard
        self.key = key
        self.member = member
        self.offset = offset
        self.compressed_offset = compressed_offset
        self.records_before = records_before
        self._hint = hint
        self.details = dict(details or {})

    _PLACES = ("shard", "key", "member", "offset", "compressed_offset", "records_before", "hint")

    def at(self, **place: Any) -> TarvizError:
        """The same error with places filled in that were not known where it was raised."""
        for name, value in place.items():
            if name not in self._PLACES:
                raise TypeError(f"no place named {name}")
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self

    @property
    def hint(self) -> str | None:
        """The next step."""
        if callable(self._hint):
            self._hint = self._hint()
        return self._hint

    @hint.setter
    def hint(self, text: str | None) -> None:
        self._hint = text

    @property
    def words(self) -> str:
        """What is wrong, and the next step."""
        return f"{self.message} {self.hint or ''}".strip()

    @property
    def fault(self) -> Fault:
        return Fault(self.code, self.message, self.shard, self.key, self.member, self.offset)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without secrets: code, message and every place that is known."""
        places = {name: getattr(self, name) for name in self._PLACES if getattr(self, name) is not None}
        found = {"code": self.code, "message": self.message, **places, **self.details}
        return {name: redact(value) if isinstance(value, str) else value for name, value in found.items()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __str__(self) -> str:
        place = f"{self.code} {self.shard}" if self.shard else self.code
        where = ", ".join(
            f'{word} "{value}"' if word != "byte" else f"byte {value}"
            for word, value in (("record", self.key), ("member", self.member), ("byte", self.offset))
            if value is not None
        )
        text = f"{place}: {where}: {self.message}" if where else f"{place}: {self.message}"
        if self.records_before is not None:
            text += f" {self.records_before} record{'' if self.records_before == 1 else 's'} read before."
        if self.hint:
            text += f" Hint: {self.hint}"
        return redact(safe(text))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.code, {name: getattr(self, name) for name in self._PLACES}, self.details)


def _rebuild(kind: type[TarvizError], message: str, code: str, places: dict[str, Any], details: dict[str, Any]) -> TarvizError:
    return kind(message, code=code, details=details, **places)


class UsageError(TarvizError, ValueError):
    """A call that cannot work as it stands."""


class ChainError(UsageError):
    """A chain that cannot be read, or an op that does not fit where it stands."""

    code = "E_CHAIN"


class SchemaError(UsageError):
    """A field that holds something else than what is asked of it."""

    code = "E_SCHEMA"


class DataError(TarvizError, ValueError):
    """Bytes that are damaged, incomplete or hostile."""

    code = "E_CORRUPT"


class LimitError(DataError):
    """Bytes that are larger than a limit allows."""

    code = "E_LIMIT"


class NotFoundError(TarvizError, FileNotFoundError):
    """Nothing is at that URL."""

    code = "E_NOT_FOUND"


class StoreError(TarvizError, OSError):
    """A store failed: network, permission, disk."""

    code = "E_NETWORK"


class ChangedError(StoreError):
    """The object was replaced, grew or shrank while it was read."""

    code = "E_CHANGED"


class MissingPackageError(TarvizError, ImportError):
    """An optional package is needed and not installed."""

    code = "E_MISSING_PACKAGE"

    @classmethod
    def of(cls, package: str, what: str, extra: str | None = None) -> MissingPackageError:
        """The error for `what` needing `package`, which the extra named brings; without one, the package is installed by its name."""
        text = f"{what} needs the package {package}, which is not installed."
        if package == "tensorflow" and sys.version_info >= (3, 14):
            return cls(text, hint="There is none for this Python yet: take .torch() or .eager(), or an environment of Python 3.13.")
        return cls(text, hint=f"pip install {package}" if extra is None else f"pip install 'tarviz[{extra}]'")


def require(module: str, what: str, extra: str | None = None, *, package: str = "") -> Any:
    """The module of an optional package, which `package` names where it is called otherwise; `MissingPackageError` says `what` needs it.

    >>> require("json", "An answer").loads("[1]")
    [1]
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError.of(package or module, what, extra) from error


class TarvizWarning(UserWarning):
    """Something found that did not stop the work; its text begins with a `W_…` code."""
