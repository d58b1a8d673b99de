"""Which viewer shows a payload, and the rim where whatever a decoder raises becomes a note."""

from __future__ import annotations

import codecs
import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

from tarviz.model import config, plugins
from tarviz.model.errors import DataError, TarvizError, TarvizWarning, UsageError, safe
from tarviz.viewers.panel import Hex, Meta, Note, Panel

log = logging.getLogger(__name__)
_FALLBACK = "bytes"
_NO_DAMAGE = ("E_NOT_SHOWN", "E_MISSING_PACKAGE")  # whole, as far as can be told, and of a form that no viewer here draws


def _modules() -> dict[str, ModuleType | Any]:
    return _load(config.options().override)


@cache
def _load(override: str) -> dict[str, ModuleType | Any]:
    """The viewers by name, where the option `override` is this."""
    found: dict[str, ModuleType | Any] = {}
    for name in plugins.names("viewers"):
        try:
            found[name] = plugins.load("viewers", name)
        except (ImportError, UsageError) as error:
            log.warning("viewer %s cannot be loaded: %s", name, error)
    return found


@cache
def _by_extension(override: str) -> dict[str, str]:
    """Extension → the viewer that shows it. Where two claim one, the first by name has it, and the other is warned of; a viewer that
    the option `override` names comes before all others."""
    wanted = [name.removeprefix("viewers.") for name in override.split(",") if name.startswith("viewers.")]
    found: dict[str, str] = {}
    for name in sorted(_modules(), key=lambda name: (name not in wanted, plugins.is_foreign("viewers", name), name)):
        for ext in getattr(_modules()[name], "EXTENSIONS", ()):
            if found.setdefault(ext, name) != name and found[ext] not in wanted:
                message = (
                    f"W_PLUGIN the viewers {found[ext]} and {name} both show .{ext}; {found[ext]} does. "
                    f"Set the option override to viewers.{name} to have it show them."
                )
                warnings.warn(message, TarvizWarning, stacklevel=2)
    return found


def kinds() -> dict[str, tuple[str, ...]]:
    """Viewer name → the extensions it shows."""
    return {name: tuple(getattr(module, "EXTENSIONS", ())) for name, module in _modules().items()}


def choose(ext: str, head: bytes | memoryview = b"", *, as_: str | None = None) -> str:
    """The name of the viewer for a field: by `as_`, extension (its last two parts, its last), magic bytes of `head`, UTF-8 test, else
    `bytes`.

    >>> choose("seg.png"), choose("unknown", b"GIF89a"), choose("unknown", b"hello"), choose("unknown", b"\\x00\\xff")
    ('image', 'image', 'text', 'bytes')
    """
    if as_:
        plugins.load("viewers", as_)
        return as_
    parts = ext.lower().rsplit(".", 2)
    owners = _by_extension(config.options().override)
    return owners.get(".".join(parts[-2:])) or owners.get(parts[-1]) or _by_magic(bytes(head[:4096]))


def _by_magic(head: bytes) -> str:
    for name, module in _modules().items():
        claims: Callable[[bytes], bool] = getattr(module, "claims", lambda head: False)
        try:
            if head.startswith(tuple(getattr(module, "MAGIC", ()))) or claims(head):
                return name
        except Exception as error:  # noqa: BLE001 - the rim, as in `view`: one viewer that cannot tell hides no payload from the others
            log.warning("viewer %s cannot tell what it shows: %s: %s", name, type(error).__name__, error)
    return "text" if head and _is_text(head) else _FALLBACK


def _is_text(head: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < 4096)  # what is longer may be cut within a character
    except UnicodeDecodeError:
        return False
    return not any(letter < " " and letter not in "\t\n\r\f\x1b" for letter in text)


def view(blob: bytes | memoryview, meta: Meta, *, as_: str | None = None) -> Panel:
    """The panel for one payload. Never raises for what the bytes hold: a broken one is a note and its bytes in hex.

    `UsageError` where `as_` names no viewer.
    """
    blob = memoryview(blob)
    name = choose(meta.ext, blob[:4096], as_=as_)
    try:
        panel: Panel = replace(_modules()[name].view(blob, meta), viewer=name)
    except TarvizError as error:
        panel = _refusal_panel(name, error, blob)
    except Exception as error:  # noqa: BLE001 - the rim: decoders and plugins raise anything on hostile bytes
        panel = _refusal_panel(name, _decode_error(meta.ext, error), blob)
    return panel


def refusal(blob: bytes | memoryview, meta: Meta) -> TarvizError | None:
    """Why a payload is damaged; None where it can be decoded, where it is only not shown, or is of no kind that is decoded."""
    error = view(blob, meta).error
    return None if error is None or error.code in _NO_DAMAGE else error


def _decode_error(ext: str, error: BaseException) -> DataError:
    """What a decoder raised, as an error of ours (`E_DECODE`) that names the field."""
    text = safe(f"{type(error).__name__}: {error}")[:200]
    return DataError(f".{ext} cannot be decoded ({text}).", code="E_DECODE")


def _refusal_panel(viewer: str, error: TarvizError, blob: memoryview) -> Panel:
    return Panel(
        f"{error.code}: {error.message}",
        [Note(f"{error.code}: {error.words}", "warn" if error.code in _NO_DAMAGE else "bad"), Hex()],
        [("size", f"{len(blob):,} bytes")],
        viewer=viewer,
        error=error,
    )


def tile(blob: bytes | memoryview, meta: Meta, size: int = 160, *, as_: str | None = None) -> bytes | str:
    """What stands for the payload in a grid: an encoded picture of at most `size` pixels a side, or short text.

    Raises `DataError` with the reason where it cannot be shown.
    """
    blob = memoryview(blob)
    module = _modules()[choose(meta.ext, blob[:4096], as_=as_)]
    make: Callable[[memoryview, Meta, int], bytes | str] = getattr(module, "tile", lambda blob, meta, size: module.view(blob, meta).summary)
    try:
        return make(blob, meta, size)
    except TarvizError:
        raise
    except Exception as error:
        raise _decode_error(meta.ext, error) from error


def picture_size(blob: bytes | memoryview, ext: str) -> tuple[int, int]:
    """Width and height in pixels of a picture by its header; (0, 0) where it is none that can be read."""
    from tarviz.viewers.image import open_picture

    try:
        return open_picture(memoryview(blob), ext).size
    except TarvizError:
        return 0, 0
