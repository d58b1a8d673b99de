"""PAX records and sparse maps: the parts of a tar header that need careful reading.

Sources: POSIX.1-2017 pax(1), "pax Extended Header"; GNU tar manual, "Storing Sparse Files".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tarviz.model.errors import DataError

MAX_SPECIAL = 1 << 20  # bytes of one PAX or long-name body, as Go's archive/tar caps it
MAX_PIECES = 1 << 16  # pieces of a sparse file

# A body whose keywords change nothing a reader of data sets needs, times in the range of a calendar.
_HARMLESS = re.compile(
    rb"(?:\d{1,6} (?:[acm]time=-?\d{1,11}(?:\.\d{1,12})?"
    rb"|(?:comment|uid|gid|uname|gname|SCHILY\.[\w.]{1,40}|LIBARCHIVE\.[\w.]{1,40})=[^\n]{0,400})\n)+"
)


def harmless(body: bytes) -> bool:
    """Whether a PAX body is well formed and sets neither path, size nor anything else that moves data."""
    if _HARMLESS.fullmatch(body) is None:
        return False
    at = 0
    while at < len(body):
        at_next = at + int(body[at : body.index(b" ", at)])
        if at_next > len(body) or body[at_next - 1 : at_next] != b"\n" or body.find(b"\n", at) != at_next - 1:
            return False
        at = at_next
    return True


def records(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(keyword, value) of a PAX body. `DataError` E_PAX says what is wrong with a malformed one.

    >>> list(records(b"12 size=512\\n"))
    [(b'size', b'512')]
    """
    at = 0
    while at < len(body):
        if body[at] == 0:
            if body[at:].strip(b"\0"):
                raise DataError("a NUL stands between PAX records.", code="E_PAX")
            return
        space = body.find(b" ", at, at + 12)
        digits = body[at:space] if space > 0 else b""
        if not digits.isdigit():
            raise DataError(f"a PAX record begins with {body[at : at + 12]!r}, not with its length.", code="E_PAX")
        end = at + int(digits)
        if end > len(body) or end <= space + 1:
            raise DataError(f"a PAX record claims {int(digits)} bytes, {len(body) - at} are there.", code="E_PAX")
        if body[end - 1 : end] != b"\n":
            raise DataError(f"a PAX record of {int(digits)} bytes does not end in a newline.", code="E_PAX")
        keyword, equals, value = body[space + 1 : end - 1].partition(b"=")
        if not equals or not keyword:
            raise DataError(f"a PAX record has no keyword=value: {body[space + 1 : end - 1][:40]!r}.", code="E_PAX")
        yield keyword, value
        at = end


def number(field: bytes) -> int | None:
    """A numeric header field: octal digits, padded by spaces or NULs, or base-256; None when it is neither.

    >>> number(b"0000644\\0"), number(b"\\x80" + bytes(10) + b"\\x05"), number(b"9z")
    (420, 5, None)
    """
    if field[:1] >= b"\x80":
        value = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
        return value - (1 << (8 * len(field) - 1)) if field[0] & 0x40 else value
    text = field.split(b"\0", 1)[0].strip(b" ")
    if not text:
        return 0
    return None if text.strip(b"01234567") else int(text, 8)


def decimal(text: bytes) -> int | None:
    """A size in PAX records: decimal digits, leading zeros or not; None when it is none, or has more than 19 without them.

    >>> decimal(b"0000000000000000000000999"), decimal(b"-1"), decimal(b"")
    (999, None, None)
    """
    digits = text.lstrip(b"0")
    return int(text) if text.isdigit() and len(digits) <= 19 else None


def checksum_right(header: bytes) -> bool:
    """The checksum as POSIX sums it, or over signed bytes as old Sun tars did."""
    stored = number(header[148:156])
    if stored is None:
        return False
    rest = header[:148] + header[156:]
    unsigned = sum(rest) + 8 * 32
    return stored == unsigned or stored == unsigned - 256 * sum(byte > 127 for byte in rest)


def pieces_right(pieces: list[tuple[int, int]], size: int, stored: int) -> None:
    """Refuse a sparse map that is negative, out of order, overlapping, too long, or not what is stored."""
    at = 0
    for offset, length in pieces:
        if offset < 0 or length < 0:
            raise DataError(f"a sparse piece of {length} bytes at {offset} is impossible.", code="E_SPARSE")
        if offset < at or offset + length > size:
            raise DataError(f"sparse pieces overlap or leave the file at {offset}.", code="E_SPARSE")
        at = offset + length
    if sum(length for _, length in pieces) > stored:
        raise DataError(f"the sparse map speaks of more bytes than the {stored} that are stored.", code="E_SPARSE")


def gnu_pieces(header: bytes, first: int, count: int) -> list[tuple[int, int]]:
    """Sparse entries (offset, length) of an old GNU header or its extension, up to the first empty one."""
    pieces = []
    for at in range(first, first + 24 * count, 24):
        if not header[at : at + 24].strip(b"\0"):
            break
        offset, length = number(header[at : at + 12]), number(header[at + 12 : at + 24])
        if offset is None or length is None:
            raise DataError(f"a sparse entry is not a number: {header[at : at + 24]!r}.", code="E_SPARSE")
        pieces.append((offset, length))
    return pieces


def listed_pieces(numbers: list[bytes]) -> list[tuple[int, int]]:
    """Sparse entries of a PAX map: offset and length in turn, decimal."""
    values = [value for text in numbers if (value := decimal(text)) is not None]
    if len(numbers) % 2 or len(values) < len(numbers):
        raise DataError("the PAX sparse map is not a list of numbers in pairs.", code="E_SPARSE")
    return list(zip(values[::2], values[1::2], strict=True))
