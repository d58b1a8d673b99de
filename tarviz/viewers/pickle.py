"""Pickles and what hides them (`pth`, `joblib`): never executed, shown as bytes; their opcodes as text on request."""

from __future__ import annotations

import io
import pickletools
import zipfile

from tarviz.viewers.panel import Control, Hex, Meta, Note, Panel, Table, Text

EXTENSIONS = ("pkl", "pickle", "pyd", "pth", "pt", "joblib", "ckpt", "dill")
MAX_OPCODES_TEXT = 64 << 10


def claims(head: bytes) -> bool:
    return len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5 and head[2:3] in (b"\x95", b"}", b"]", b"c", b"K", b"X", b"(", b"\x8c")


class _FullError(Exception):
    pass


class _Short(io.StringIO):
    def write(self, text: str) -> int:
        if self.tell() > MAX_OPCODES_TEXT:
            raise _FullError
        return super().write(text)


def opcodes(blob: memoryview) -> str:
    """The pickle's opcodes as text (`pickletools.dis`), nothing of it executed, cut at 64 kB."""
    out = _Short()
    try:
        pickletools.dis(bytes(blob[: 1 << 20]), out)
    except _FullError:
        return out.getvalue() + "\n… cut here"
    except (ValueError, IndexError, KeyError, OverflowError, RecursionError) as error:
        return out.getvalue() + f"\n… unreadable here: {error}"
    return out.getvalue()


def view(blob: memoryview, meta: Meta) -> Panel:
    size = f"{len(blob):,} bytes"
    panel = Panel(
        f"pickle, {size}, not decoded", [Note("A pickle can run any program when it is loaded: not executed.", "bad")], [("size", size)]
    )
    if bytes(blob[:4]) == b"PK\x03\x04":
        panel.blocks.append(_names(blob))
    elif meta.options.get("opcodes") == "show":
        panel.blocks.append(Text(opcodes(blob)))
    panel.controls.append(Control("opcodes", "opcodes", meta.options.get("opcodes", "hide"), choices=("hide", "show")))
    panel.blocks.append(Hex())
    return panel


def _names(blob: memoryview) -> Table | Note:
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            return Table(("inside", "bytes"), tuple((info.filename, f"{info.file_size:,}") for info in archive.infolist()[:200]), (1,))
    except (zipfile.BadZipFile, RuntimeError, OSError, ValueError) as error:
        return Note(f"A damaged zip file: {error}.", "warn")
