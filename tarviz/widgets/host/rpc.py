"""Requests from a view to its controller: an allow-list of methods, errors as data, a binary frame for HTTP.

A request is `{k: "tvz:req", id, session, name, msg}`, its answer `{k: "tvz:res", id, r}` or `{…, err: {type, msg, hint, code}}`,
each with binary buffers beside the JSON.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from tarviz.model.errors import TarvizError, UsageError, redact, safe
from tarviz.model.types import Buffer

log = logging.getLogger(__name__)
Message: TypeAlias = dict[str, Any]
Answer: TypeAlias = tuple[Message, list[Buffer]]
Method = TypeVar("Method", bound=Callable[..., Any])

MAX_FRAME = 1 << 20
VIEW = "application/vnd.jupyter.widget-view+json"
STANDS_FOR = "tarviz-stands-for"
"""In the metadata of an output: the model of the widget beside it, for which it stands where the widget cannot run."""


def rpc(method: Method) -> Method:
    """Allow a view to call this method: it takes the message's items by keyword and returns JSON, or (JSON, buffers)."""
    method.tvz_rpc = True  # type: ignore[attr-defined]
    return method


@dataclass(frozen=True, slots=True)
class Media:
    """A payload to be played or saved: `read(offset, length)` gives its bytes, fewer only at its end."""

    mime: str
    size: int
    read: Callable[[int, int], bytes]


class Controller:
    """Base of what widgets show: a plain object whose methods marked `@rpc` a view may call, from any thread."""

    script = ""
    """Name of the ES module that draws it: `browse` for `browse.mjs`."""

    opener: Callable[[str], str] | None = None
    """Where a page serves it for its reader alone: what opens other shards beside it, and gives their address."""

    def beside(self, urls: str) -> Controller:
        """A controller of the same kind over other shards. `UsageError` where there is none such."""
        raise UsageError("Nothing else can be opened here.")

    def parts(self, session: str) -> Iterable[object]:
        """The objects whose methods marked `@rpc` a page may call. `session` names the page: each has one of its own."""
        return (self,)

    def first(self, session: str = "") -> Answer:
        """All a view needs to draw its first picture without asking: JSON and the buffers it refers to."""
        return {}, []

    def still(self, budget: int) -> Answer:
        """What `first` gives, for a page without a kernel: as much as about `budget` bytes of pictures hold."""
        return self.first()

    def text(self) -> str:
        """A useful summary for where nothing can be drawn."""
        return f"<{type(self).__name__}>"

    def picture(self) -> bytes:
        """A PNG of at most 150 kB that stands for the widget where it cannot run; empty when there is none."""
        return b""

    def media(self, path: str) -> Media | None:
        """The payload a stand-alone page plays under `/m/` + `path`; None where there is none."""
        return None

    def likely(self) -> Iterator[tuple[str, Message | None]]:
        """Requests (name, message) a reader is likely to make where there is no kernel, most likely first; what is answered beforehand
        is saved with a deck. A message of None stands for any request of that name."""
        return iter(())

    def remember(self, state: Message, session: str = "") -> None:
        """Keep a page's state (what is selected, filtered); the default forgets it."""

    def close(self) -> None:
        """Stop threads and let go of memory."""


def answer(controller: Controller, request: Mapping[str, Any]) -> Answer:
    """The answer to one request. Never raises: whatever goes wrong is in the answer, with secrets taken out."""
    name = request.get("name")
    head: Message = {"k": "tvz:res", "id": request.get("id")}
    try:
        parts = controller.parts(session_of(request)) if isinstance(name, str) else ()
        allowed = (part for part in parts if getattr(getattr(type(part), str(name), None), "tvz_rpc", False))
        if (part := next(allowed, None)) is None:
            raise UsageError(f"A view may not call {str(name)[:60]!r}.")
        message = request.get("msg") or {}
        if not isinstance(message, Mapping):
            raise UsageError("The message of a request is an object.")
        result = getattr(part, str(name))(**{str(key): value for key, value in message.items()})
    except Exception as error:  # noqa: BLE001 - the rim: a view must get an answer, whatever happened
        return {**head, "err": error_message(error)}, []
    value, buffers = result if isinstance(result, tuple) else (result, [])
    return {**head, "r": value}, list(buffers)


def session_of(request: Mapping[str, Any]) -> str:
    """The page a request comes from."""
    session = request.get("session")
    return session[:64] if isinstance(session, str) else ""


def error_message(error: BaseException) -> Message:
    """An error as a view shows it: `type`, `msg`, `hint`, `code`."""
    if isinstance(error, TarvizError):
        message = redact(safe(error.message))
        return {"type": type(error).__name__, "msg": message, "hint": redact(safe(error.hint or "")), "code": error.code}
    log.debug("a request failed", exc_info=error)
    return {"type": type(error).__name__, "msg": redact(safe(str(error)))[:500], "hint": "", "code": "E_INTERNAL"}


def pack(message: Mapping[str, Any], buffers: Sequence[Buffer] = ()) -> bytes:
    """JSON and buffers as one frame: `[u32 length][json][u32 count]([u32 length][bytes])…`, little endian.

    >>> unpack(pack({"a": 1}, [b"xy"]))
    ({'a': 1}, [b'xy'])
    """
    text = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    parts: list[Buffer] = [struct.pack("<I", len(text)), text, struct.pack("<I", len(buffers))]
    for buffer in buffers:
        parts += [struct.pack("<I", memoryview(buffer).nbytes), buffer]
    return b"".join(parts)


def unpack(frame: bytes) -> tuple[Message, list[bytes]]:
    """The message and buffers of a frame. `UsageError` where it is none."""
    try:
        length = struct.unpack_from("<I", frame)[0]
        message = json.loads(frame[4 : 4 + length])
        at = 4 + length
        buffers = []
        for _ in range(struct.unpack_from("<I", frame, at)[0]):
            size = struct.unpack_from("<I", frame, at + 4)[0]
            buffers.append(frame[at + 8 : at + 8 + size])
            at += 4 + size
            if at + 4 > len(frame):
                raise ValueError("cut short")
    except (struct.error, ValueError, RecursionError) as error:
        raise UsageError(f"This is not a request frame ({error}).") from error
    if not isinstance(message, dict):
        raise UsageError("This is not a request frame (no object).")
    return message, buffers
