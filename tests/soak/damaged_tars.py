"""Tars to read by every door: as Python, GNU tar and bsdtar write them, put together by hand, and damaged at random."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tarviz.formats.compression import kind as kind_of
from tests.conftest import corpus
from tests.read.tars import END, member, pax, raw

_LARGE = 60_000  # bytes of a tar of the corpora that is not fuzzed
_FORMATS = {
    "tar": [["--format=gnu"], ["--format=posix"], ["--format=oldgnu"], ["--format=posix", "--sparse-version=0.1"]],
    "bsdtar": [["--format=pax"], ["--format=ustar"], ["--format=gnutar"]],
}
TOOLS = [tool for tool in _FORMATS if shutil.which(tool)]


def corpora() -> list[bytes]:
    paths = [case.values[0] for case in corpus("generated")]
    return [path.read_bytes() for path in paths if path.stat().st_size < _LARGE and path.name.endswith(".tar")]


def written(chance: random.Random) -> bytes:
    """A tar as Python writes it: any format, some folders, links, large and long-named members, fields in any order."""
    file = io.BytesIO()
    format = chance.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    long = "" if chance.random() < 0.7 else "d" * 60 + "/" + "e" * 60 + "/"
    exts = chance.sample(["txt", "cls", "json", "seg.png", "bin"], chance.randint(1, 4))
    even = chance.random() < 0.6
    with tarfile.open(fileobj=file, mode="w", format=format) as tar:
        for number in range(chance.randint(1, 30)):
            for ext in exts if even else chance.sample(exts, chance.randint(1, len(exts))):
                info = tarfile.TarInfo(f"{long}{'ü' if chance.random() < 0.05 else 'k'}{number:03d}.{ext}")
                info.size = chance.choice((0, 1, 10, 511, 512, 513, 700, 3000, 3000, 20_000 if chance.random() < 0.1 else 5))
                info.mtime = chance.choice((0, 1.5))
                tar.addfile(info, io.BytesIO(chance.randbytes(info.size)))
                if chance.random() < 0.08:
                    other = tarfile.TarInfo(chance.choice((f"folder{number}", "README", "__index__.json", f"k{number:03d}.lnk")))
                    other.type = chance.choice((tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE))
                    other.linkname = "k000.txt"
                    tar.addfile(other)
    return file.getvalue()


def odd(chance: random.Random) -> bytes:
    """A tar put together block by block: links with data, vendor types, holes, extension headers of all kinds."""
    data = b""
    for number in range(chance.randint(2, 14)):
        key = f"k{number // 2 if chance.random() < 0.8 else chance.randint(0, 3):03d}"
        name, body = f"{key}.{chance.choice(('txt', 'cls'))}", chance.randbytes(chance.choice((0, 3, 512, 600, 1500)))
        kind = chance.random()
        if kind < 0.5:
            data += member(name, body)
        elif kind < 0.58:
            data += member(f"{key}.lnk", body, b"1", link=b"k000.txt")
        elif kind < 0.63:
            data += raw(f"{key}.lnk", 600, b"1")
        elif kind < 0.68:
            data += member(name, body, b"Z")
        elif kind < 0.8:
            data += pax((b"path", f"{'p' * chance.choice((3, 120))}/{name}".encode())) + member("short.txt", body)
        elif kind < 0.85:
            data += pax((b"path", b""), (b"size", b"")) + member(name, body)
        elif kind < 0.9:
            data += pax((b"comment", b"c"), kind=b"g") + member(name, body)
        elif kind < 0.94:
            data += pax((b"path", f"{key}.t\0xt".encode())) + member(name, body)
        elif kind < 0.97:
            data += bytes(chance.choice((512, 1024, 4096)))
        else:
            data += pax((b"GNU.sparse.major", b"0"), (b"GNU.sparse.size", b"2000"), (b"GNU.sparse.map", b"100,%d" % len(body)))
            data += member(name, body)
    return data + chance.choice((END, END, END + bytes(8192), bytes(512), b"", END + b"junk" * 200, END + member("late.txt", b"1") + END))


def by_tool(tool: str, chance: random.Random, folder: Path) -> bytes:
    """A tar as GNU tar or bsdtar writes it: sparse files and long names among others."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(chance.randint(1, 6)):
        for ext in ("txt", "bin"):
            place = folder / f"{'n' * chance.choice((3, 120))}{number}.{ext}"
            with place.open("wb") as file:
                file.write(chance.randbytes(chance.choice((0, 5, 700))))
                if chance.random() < 0.3:
                    file.seek(chance.choice((9000, 70_000)))
                    file.write(b"end")
    names = sorted(place.name for place in folder.iterdir())
    options = [*chance.choice(_FORMATS[tool]), *(["--sparse"] if tool == "tar" and chance.random() < 0.7 else [])]
    done = subprocess.run([tool, "cf", "-", *options, *names], cwd=folder, check=False, capture_output=True)
    return done.stdout if done.returncode == 0 else written(chance)  # a name that the format has no room for


def damaged(source: bytes, chance: random.Random) -> bytes:
    data = bytearray(source)
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not data:
            break
        at, kind = chance.randrange(len(data)), chance.randrange(7)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            at = at // 512 * 512 + chance.choice((0, 99, 124, 135, 136, 148, 156, 257, 345, 386, 482, 483))
            data[at : at + 1] = chance.choice((b"\0", b" ", b"\xff", b"\x80", b"7", b"x", b"L", b"g", b"S", b"9"))
        elif kind == 2:
            del data[at // 512 * 512 :][: chance.choice((512, 1024))]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            at = at // 512 * 512
            data[at : at + chance.choice((512, 1024, 4096))] = bytes(512)
        elif kind == 5:
            at = at // 512 * 512
            data[at:at] = chance.randbytes(512)
        else:
            data[at : at + 512] = chance.randbytes(min(512, len(data) - at))
    if chance.random() < 0.4:  # right again for those who only compare the checksum
        for at in range(0, len(data) - 511, 512):
            if data[at + 257 : at + 262] == b"ustar":
                data[at + 148 : at + 156] = b" " * 8
                data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    return bytes(data)


def tars(chance: random.Random, folder: Path) -> Iterator[bytes]:
    """Tars without end."""
    known = corpora()
    while True:
        kind = chance.random()
        if kind < 0.25:
            data = chance.choice(known)
        elif kind < 0.6:
            data = written(chance)
        elif kind < 0.85 or not TOOLS:
            data = odd(chance)
        else:
            data = by_tool(chance.choice(TOOLS), chance, folder)
        if chance.random() < 0.1:
            data += bytes(chance.choice((0, 512, 70_000 // 512 * 512))) + chance.choice(known)
        data = damaged(data, chance) if chance.random() < 0.6 else data
        if kind_of(data[:6]) is None:  # not one that looks packed by chance: who reads windows of a tar unpacks nothing
            yield data
