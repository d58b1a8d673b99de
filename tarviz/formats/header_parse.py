"""Slow-path parser for one tar member: PAX, GNU long names, base-256, sparse maps, vendor types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tarviz.formats.header_scan import BLOCK
from tarviz.formats.pax import MAX_PIECES, MAX_SPECIAL, checksum_right, decimal, gnu_pieces, listed_pieces, number, pieces_right, records
from tarviz.model.errors import DataError, LimitError
from tarviz.model.types import MEMBER_TYPES, to_text

MAX_EXTENSIONS = 8  # extension headers before one member
LARGEST = 1 << 62  # bytes of a member: places after it must fit 64 bits

_TYPES = {b"\0": "file", b"0": "file", b"7": "file", b"S": "file", b"1": "hardlink", b"2": "symlink", b"3": "char"}
_TYPES |= {b"4": "block", b"5": "dir", b"6": "fifo", b"D": "dir"}
_NO_PAYLOAD = {"symlink", "char", "block", "fifo"}
_LAST_TIME = 253402300799  # 9999-12-31T23:59:59Z


class Entry(NamedTuple):
    """One member, as `tarviz.model.types.Members` holds it in columns."""

    name: bytes
    type: int
    start: int
    data: int
    size: int
    end: int
    sparse: list[tuple[int, int]] | None


@dataclass
class HeaderWalk:
    """What the headers in front of a member said, while it is read.

    `at` is the byte of the header that was looked at last; `member` the name and type (an index into `MEMBER_TYPES`) of the member
    itself, once its header could be read: an error after that is about that member and no other.
    """

    start: int
    data: memoryview  # the buffer,
    base: int  # the byte of the tar where it begins,
    final: bool  # and whether the tar ends with it
    at: int = 0
    member: tuple[bytes, int] | None = None
    path: bytes | None = None
    size: bytes | None = None
    binary: bool = False
    seen: int = 0
    sparse: dict[bytes, list[bytes]] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)  # (code, message) of warnings

    def piece(self, at: int, length: int) -> bytes:
        """Bytes from byte `at` of the tar on."""
        if at + length > self.base + len(self.data):
            raise NeedMoreError(at + length)
        return bytes(self.data[at - self.base : at - self.base + length])


class NeedMoreError(Exception):
    """The buffer ends before the member's headers do; `until` is the byte of the tar that must be in it."""

    def __init__(self, until: int) -> None:
        super().__init__(until)
        self.until = until


class OrphanError(Exception):
    """Extension headers, and then the end of the archive."""


def payload_blocks(size: int) -> int:
    """Bytes a payload of `size` takes in a tar, padding included."""
    return -(-size // BLOCK) * BLOCK


def read(walk: HeaderWalk) -> Entry:
    """The member whose first header stands at byte `walk.start` of the tar.

    Its warnings are in `walk.notes`. Raises `NeedMoreError`, `OrphanError`, or `DataError` (place filled in).
    """
    walk.at = walk.start
    try:
        while True:
            header = walk.piece(walk.at, BLOCK)
            if walk.at > walk.start and not header.strip(b"\0"):
                raise OrphanError
            if not checksum_right(header):
                raise DataError("the header's checksum is wrong.", code="E_CHECKSUM")
            kind = header[156:157]
            if kind not in b"xXLKg":
                return _member(walk, header)
            walk.at = _read_extension(walk, header, kind)
    except DataError as error:
        raise error.at(offset=walk.start) from None


def _read_extension(walk: HeaderWalk, header: bytes, kind: bytes) -> int:
    """Note what an extension header says; the byte behind it."""
    walk.seen += 1
    if walk.seen > MAX_EXTENSIONS:
        raise LimitError(f"more than {MAX_EXTENSIONS} extension headers stand before one member.")
    size = number(header[124:136])
    if size is None or size < 0:
        raise DataError(f"an extension header's size is {header[124:136]!r}.", code="E_SIZE")
    if size > MAX_SPECIAL:
        raise LimitError(f"an extension header promises {size} bytes; {MAX_SPECIAL} are allowed.")
    body = walk.piece(walk.at + BLOCK, payload_blocks(size))[:size]
    if kind == b"L":
        walk.path = body.split(b"\0", 1)[0]
    elif kind == b"g":
        if any(keyword in (b"path", b"size") for keyword, _ in records(body)):
            walk.notes.append(("W_GLOBAL_PATH_IGNORED", "a global PAX header sets path or size for all that follows; ignored."))
    elif kind != b"K":
        for keyword, value in records(body):
            _pax(walk, keyword, value)
    return walk.at + BLOCK + payload_blocks(size)


def _pax(walk: HeaderWalk, keyword: bytes, value: bytes) -> None:
    if keyword == b"path":
        walk.path = value
    elif keyword == b"size":
        walk.size = value
    elif keyword == b"hdrcharset":
        walk.binary = value == b"BINARY"
    elif keyword == b"mtime":
        try:
            right = abs(float(value)) <= _LAST_TIME
        except ValueError:
            right = False
        if not right:
            walk.notes.append(("W_MTIME", f"the time {to_text(value[:40])} is outside the calendar."))
    elif keyword.startswith(b"GNU.sparse."):
        walk.sparse.setdefault(keyword[11:], []).append(value)
        if len(walk.sparse[keyword[11:]]) > MAX_PIECES:
            raise DataError(f"the sparse map has more than {MAX_PIECES} pieces.", code="E_SPARSE")


def header_name(header: bytes) -> bytes:
    """The name that one block gives, without what extension headers before it say."""
    name = header[:100].split(b"\0", 1)[0]
    if header[257:263] == b"ustar\0" and header[345:346] != b"\0":
        name = header[345:500].split(b"\0", 1)[0] + b"/" + name
    return name


def _member(walk: HeaderWalk, header: bytes) -> Entry:
    name = walk.path or header_name(header)  # an empty path sets none, as bsdtar and Go have it
    name = walk.sparse.get(b"name", [name])[-1]
    if b"\0" in name:  # only PAX can hold one; GNU tar and bsdtar cut there
        walk.notes.append(("W_NAME_NUL", f"the name {to_text(name[:80])!r} holds a NUL byte and is cut there."))
        name = name.split(b"\0", 1)[0]
    what = _TYPES.get(header[156:157], "other")
    if what == "file" and header[156:157] != b"S" and name.endswith(b"/"):
        what = "dir"
    walk.member = name, MEMBER_TYPES.index(what)
    try:
        return _entry(walk, header, name, what)
    except DataError as error:
        raise error.at(member=to_text(name)) from None


def _entry(walk: HeaderWalk, header: bytes, name: bytes, what: str) -> Entry:
    kind = header[156:157]
    if kind == b"M":
        walk.notes.append(("W_CONTINUED", "the file is continued from another volume; its first bytes are not in this tar."))
    elif kind == b"N":
        walk.notes.append(("W_SKIPPED_TYPE", "a list of old names (GNU's type N) is skipped."))
    elif what == "other" and kind != b"V":
        walk.notes.append(("W_UNKNOWN_TYPE", f"a member of the unknown type {to_text(kind)!r} is skipped."))
    if not walk.binary:
        try:
            name.decode()
        except UnicodeDecodeError:
            walk.notes.append(("W_NAME_ENCODING", "the name is not UTF-8; its bytes are kept as they are."))
    time = number(header[136:148])
    if time is not None and abs(time) > _LAST_TIME:
        walk.notes.append(("W_MTIME", f"the time {time} is outside the calendar."))

    size = _size(walk, header)
    place = walk.at + BLOCK
    empty = what in _NO_PAYLOAD or kind == b"5" or (what == "dir" and kind != b"D")
    if empty or (what == "hardlink" and _headers_follow(walk, place)):
        size = 0
    pieces: list[tuple[int, int]] | None = None
    stored = size
    if kind == b"S":
        pieces, size, place = _gnu_pieces(walk, place, header)
    elif walk.sparse and what == "file":
        pieces, size, map_bytes = _pax_pieces(walk, place, stored)
        place, stored = place + map_bytes, stored - map_bytes
    if pieces is not None:
        pieces_right(pieces, size, stored)
    return Entry(name, MEMBER_TYPES.index(what), walk.start, place, size, place + payload_blocks(stored), pieces)


def _size(walk: HeaderWalk, header: bytes) -> int:
    own = number(header[124:136])
    if walk.size:
        size = decimal(walk.size)
        if size is None or size > LARGEST:
            raise DataError(f"the PAX size is {to_text(walk.size[:40])!r}.", code="E_SIZE")
        if (own or 0) > 0 and own != size:
            walk.notes.append(("W_SIZE_MISMATCH", f"the header says {own} bytes, PAX says {size}; readers disagree which holds, PAX wins."))
        return size
    if own is None or own < 0 or own > LARGEST:
        raise DataError(f"the header's size field is {header[124:136]!r}, which is not a size.", code="E_SIZE")
    return own


def _gnu_pieces(walk: HeaderWalk, place: int, header: bytes) -> tuple[list[tuple[int, int]], int, int]:
    """Pieces and real size of an old GNU sparse file, and where its payload begins: the map goes on in blocks behind the header."""
    real = number(header[483:495])
    if real is None or not 0 <= real <= LARGEST:
        raise DataError(f"the sparse file's size is {header[483:495]!r}.", code="E_SPARSE")
    pieces, more = gnu_pieces(header, 386, 4), header[482]
    while more:
        extra = walk.piece(place, BLOCK)
        pieces += gnu_pieces(extra, 0, 21)
        more, place = extra[504], place + BLOCK
        if len(pieces) > MAX_PIECES:
            raise DataError(f"the sparse map has more than {MAX_PIECES} pieces.", code="E_SPARSE")
    return pieces, real, place


def _headers_follow(walk: HeaderWalk, place: int) -> bool:
    """Whether a hard link that says a size holds no data (old tars) or holds it (pax -o linkdata): the next block tells.

    A header with a wrong checksum is a damaged header, and no data of the link's: it would be lost without a word.
    """
    if walk.final and place + BLOCK > walk.base + len(walk.data):
        return True
    block = walk.piece(place, BLOCK)
    return not block.strip(b"\0") or block[257:262] == b"ustar" or checksum_right(block)


def _pax_pieces(walk: HeaderWalk, place: int, stored: int) -> tuple[list[tuple[int, int]], int, int]:
    """Pieces, real size and bytes of the map itself: GNU sparse formats 0.0, 0.1 and 1.0."""
    said = walk.sparse
    real = decimal((said.get(b"realsize") or said.get(b"size") or [b""])[-1])
    if real is None or real > LARGEST:
        raise DataError("the PAX sparse file has an impossible size.", code="E_SPARSE")
    if said.get(b"major") == [b"1"]:
        text = b""
        while True:  # the map stands before the data: a count, then the numbers, one per line, padded to a block
            text += walk.piece(place + len(text), BLOCK)
            lines = text.split(b"\n")
            count = decimal(lines[0])
            if count is None or count > MAX_PIECES:
                raise DataError(f"the sparse map begins with {lines[0][:20]!r}, which is not a count of pieces.", code="E_SPARSE")
            if len(lines) > 2 * count + 1:
                return listed_pieces(lines[1 : 2 * count + 1]), real, len(text)
            if len(text) > stored:
                raise DataError("the sparse map goes on after the member's end.", code="E_SPARSE")
    if b"map" in said:
        return listed_pieces(said[b"map"][-1].split(b",") if said[b"map"][-1] else []), real, 0
    offsets, lengths = said.get(b"offset", []), said.get(b"numbytes", [])
    return listed_pieces([text for pair in zip(offsets, lengths, strict=False) for text in pair]), real, 0
