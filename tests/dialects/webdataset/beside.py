"""Scripts run with webdataset and with the dialect, and what they give compared, item by item."""

from __future__ import annotations

import gc
import io
import json
import tarfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Script = Callable[[Any, str], Iterable[Any]]


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal, of one kind, and hold equal numbers. The order of a dict's names does not count."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and set(ours) == set(theirs) and all(same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, tuple | list):
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, np.ndarray):
        return isinstance(ours, np.ndarray) and ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    if isinstance(theirs, Image.Image):
        return isinstance(ours, Image.Image) and ours.mode == theirs.mode and same(np.asarray(ours), np.asarray(theirs))
    if hasattr(theirs, "detach"):
        return hasattr(ours, "detach") and ours.dtype == theirs.dtype and same(ours.numpy(), theirs.numpy())
    return type(ours) is type(theirs) and ours == theirs


def outcome(script: Script, module: Any, folder: str) -> list[Any] | type:
    """All that a script yields, or the kind of its error: ValueError, OSError, KeyError, TypeError, or Exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return list(script(module, folder))
        except Exception as error:  # noqa: BLE001  compared with the other's
            return next(kind for kind in (OSError, KeyError, ValueError, TypeError, Exception) if isinstance(error, kind))
        finally:
            if module.__name__ == "webdataset":
                gc.collect()  # it leaves files open: let them go here, where no warning is an error


def differences(script: Script, ours: Any, theirs: Any, folder: str, *, ordered: bool = True) -> list[Any]:
    """The first item that differs (ours, theirs), or the two outcomes; nothing where an `except` for theirs catches ours."""
    expected, actual = outcome(script, theirs, folder), outcome(script, ours, folder)
    if isinstance(expected, type) or isinstance(actual, type):
        both = isinstance(expected, type) and isinstance(actual, type) and issubclass(actual, expected)
        return [] if both else [actual, expected]
    if not ordered:
        expected, actual = (sorted(items, key=_name) for items in (expected, actual))
    if len(expected) != len(actual):
        return [f"{len(actual)} items", f"{len(expected)} items"]
    return [(mine, other) for mine, other in zip(actual, expected, strict=True) if not same(mine, other)][:1]


def _name(item: Any) -> str:
    return str(item.get("__key__", item.get("n")) if isinstance(item, dict) else item)


def picture(number: int, form: str = "PNG", size: tuple[int, int] = (8, 6)) -> bytes:
    """A small picture that depends on `number`."""
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form)
    return out.getvalue()


def tar(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """A tar of files, packed as its name says."""
    mode = {".tgz": "w:gz", ".gz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as out:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))


def record(number: int) -> list[tuple[str, bytes]]:
    """The files of one record: png, cls, json, txt."""
    tree = json.dumps({"n": number, "tags": ["a", "b"]}).encode()
    fields = {"cls": b"%d" % (number % 10), "json": tree, "png": picture(number), "txt": b"no %d" % number}
    return [(f"{number:06d}.{ext}", data) for ext, data in fields.items()]


def make(folder: Path) -> None:
    """The shards that scripts read."""
    for shard in range(4):
        files = [file for number in range(shard * 12, shard * 12 + 12) for file in record(number)]
        tar(folder / f"im-{shard:04d}.tar", files)
    tar(folder / "one.tgz", [file for number in range(5) for file in record(number)])
    tar(folder / "one.tar.gz", [file for number in range(5) for file in record(number)])
    tar(folder / "one.tar.bz2", [file for number in range(5) for file in record(number)])
    tar(folder / "one.tar.xz", [file for number in range(5) for file in record(number)])
    odd = [(f"{n:03d}.{'jpg' if n % 2 else 'png'}", picture(n, "JPEG" if n % 2 else "PNG")) for n in range(8)]
    tar(folder / "odd.tar", sorted([*odd, *((f"{n:03d}.cls", b"%d" % n) for n in range(8))]))
    broken = [(f"{n:03d}.jpg", picture(n, "JPEG") if n % 3 else b"\xff\xd8\xff no picture") for n in range(10)]
    tar(folder / "broken.tar", broken)
    some = [(f"{n:03d}.{ext}", b"%d" % n) for n in range(8) for ext in (("a", "b") if n % 2 else ("a",))]
    tar(folder / "some.tar", some)
    arrays = io.BytesIO()
    np.save(arrays, np.arange(6, dtype=np.float32).reshape(2, 3))
    packed = io.BytesIO()
    np.savez(packed, x=np.arange(3), y=np.eye(2))
    tar(folder / "arrays.tar", [(f"{n}.{ext}", data.getvalue()) for n in range(3) for ext, data in (("npy", arrays), ("npz", packed))])
    tar(
        folder / "names.tar",
        [("x/a.seg.PNG", picture(1)), ("x/a.left.json", b"[1]"), ("x/b.seg.PNG", picture(2)), ("x/b.left.json", b"[2]")],
    )
    tar(folder / "meta.tar", [("__index__", b"x"), ("a.cls", b"1"), ("folder/__meta__", b"y"), ("b.cls", b"2"), ("nodot", b"z")])
    tar(folder / "sources.tar", [("a.__source__", "grün.tar".encode()), ("a.cls", b"1"), ("b.__source__", b"\xff"), ("b.cls", b"2")])
    tar(folder / "classes.tar", [(f"{n}.{ext}", b"%d" % n) for n in range(4) for ext in ("cls", "cls2", "id", "index", "inx")])
    tar(
        folder / "texts.tar", [("a.txt", "grün\n".encode()), ("a.text", b"x"), ("a.transcript", b"y"), ("a.html", b"<p>"), ("a.bin", b"\0")]
    )
    tar(folder / "empty.tar", [])
    (folder / "cut.tar").write_bytes((folder / "im-0000.tar").read_bytes()[:9000])
    (folder / "text.tar").write_text("this is not a tar\n" * 100)
