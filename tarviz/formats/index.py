"""The index of one shard: its members and records as columns, kept as a file, or as NVIDIA DALI's text.

The file is a line of JSON and then the columns as they lie in memory; each has its CRC32C, compared when the file is opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast, overload

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from tarviz.formats import header_scan
from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import Block, Buffer, Members, to_bytes, to_text

MAGIC = b"tarviz index 2\n"
_ALIGN = 64
_NOTHING = memoryview(b"")


@dataclass(eq=False)
class ShardIndex:
    """Members and records of one shard. Record *k* owns the rows `rows[k]:rows[k + 1]` of the members.

    `identity` says of which bytes this is the index (size, etag or time); `warnings` and `error` what the scan met
    (an index of a damaged shard ends before the damage), `pending` the records that may lack a member. `packed` names the compression
    the shard lies in: places are then those of the inflated tar. `numbers` is of an index of some records: which of the shard they
    are. `claimed` names the file of somebody else that says where the members are: what is read by it is held against it.
    """

    members: Members
    rows: NDArray[np.int64]
    ext: NDArray[np.int32]
    exts: tuple[str, ...]
    hash: NDArray[np.uint64]
    identity: dict[str, Any] = field(default_factory=dict)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    pending: tuple[int, ...] = ()
    packed: str | None = None
    numbers: NDArray[np.int64] | None = None
    claimed: str | None = None

    def __len__(self) -> int:
        return len(self.rows) - 1

    @cached_property
    def order(self) -> NDArray[np.uint32]:
        """Records in ascending order of their key's hash."""
        return np.argsort(self.hash, kind="stable").astype(np.uint32)

    @cached_property
    def beside(self) -> int:
        """The most bytes that a member which is in no record may have: the largest room between members, and behind the last."""
        start, end = np.sort(self.members.start), np.sort(self.members.end)
        size = self.identity.get("size") if self.packed is None else None
        rooms = np.append(start, size if size is not None else end[-1:]) - np.append(0, end)
        return int(rooms.max(initial=0))

    @cached_property
    def _sorted(self) -> NDArray[np.uint64]:
        return self.hash[self.order]

    def key(self, record: int) -> bytes:
        """The key of record `record`, byte-exact."""
        row = self.rows.item(record)
        return self.key_of(self.members.name.item(row), self.exts[self.ext.item(row)])

    @staticmethod
    def key_of(name: bytes, ext: str) -> bytes:
        """The key in a member's name, given its extension."""
        while name.startswith(b"./"):
            name = name[2:]
        return name[: len(name) - len(to_bytes(ext)) - 1]

    def keys(self, first: int = 0, stop: int | None = None) -> list[bytes]:
        """Keys of the records `first`…`stop`."""
        stop = len(self) if stop is None else min(stop, len(self))
        rows = self.rows[first:stop]
        names = self.members.name[rows].tolist()
        return [self.key_of(name, self.exts[code]) for name, code in zip(names, self.ext[rows].tolist(), strict=True)]

    def number(self, record: int) -> int:
        """Which record of the shard `record` is."""
        return record if self.numbers is None else int(self.numbers[record])

    def find(self, key: bytes) -> int | None:
        """The record of this key, the first when there are several."""
        return self.find_hashed(key, header_scan.hash_one(key))

    def find_hashed(self, key: bytes, wanted: int) -> int | None:
        """The same where the key's hash is known: one is enough for many shards."""
        hashes = self._sorted
        at = int(hashes.searchsorted(np.uint64(wanted)))
        while at < len(hashes) and hashes.item(at) == wanted:
            record: int = self.order.item(at)
            if self.key(record) == key:
                return record
            at += 1
        return None

    def span(self, record: int) -> tuple[int, int]:
        """Bytes of the tar from the record's first header to the end of its last payload's padding."""
        return self.members.start.item(self.rows.item(record)), self.members.end.item(self.rows.item(record + 1) - 1)

    def fields(self) -> dict[str, int]:
        """Extension → number of records that have it."""
        counts = np.bincount(self.ext, minlength=len(self.exts))
        return {ext: int(counts[code]) for code, ext in enumerate(self.exts) if counts[code]}

    def block(self, shard: str, first: int, stop: int, data: memoryview = _NOTHING, base: int = 0) -> Block:
        """Records `first`…`stop` as a block of these bytes; without them, its places are those in the tar."""
        low, high = self.rows.item(first), self.rows.item(stop)
        members = self.members.part(low, high)
        return Block(
            shard=shard,
            data=data,
            base=base,
            first=self.number(first),
            keys=cast("list[bytes]", _LazyKeys(self, first, stop)),
            rows=self.rows[first : stop + 1] - low,
            offset=members.data - base,
            size=members.size,
            ext=self.ext[low:high],
            exts=self.exts,
            members=members,
            pending=next((row - first for row in self.pending if first <= row < stop), -1),
        )

    def dump(self) -> Iterator[bytes]:
        """The index as the bytes of a file, piece by piece."""
        arrays: dict[str, NDArray[Any]] = {name: getattr(self.members, name) for name in ("start", "data", "size", "end")}
        arrays |= {"rows": self.rows, "ext": self.ext, "hash": self.hash, "order": self.order}
        if (names := self.members.name).dtype == object:
            joined = [bytes(item) for item in names]
            arrays["name_text"] = np.frombuffer(b"".join(joined), np.uint8)
            arrays["name_end"] = np.cumsum([len(item) for item in joined], dtype=np.int64)
        else:
            arrays["name"] = names
        place = 0
        table = []
        for key, array in arrays.items():
            table.append([key, array.dtype.str, len(array), place, _crc(array)])
            place += -(-array.nbytes // _ALIGN) * _ALIGN
        sparse = {str(row): pieces for row, pieces in self.members.sparse.items()}
        head = {"arrays": table, "exts": [to_bytes(ext).hex() for ext in self.exts], "identity": self.identity, "sparse": sparse}
        pending = self.pending[0] if len(self.pending) == 1 else self.pending or -1  # a number, but for several
        head |= {"warnings": self.warnings, "error": self.error, "pending": pending, "packed": self.packed}
        text = json.dumps(head).encode()
        begin = MAGIC + b"%12d %10d\n" % (len(text), google_crc32c.value(text)) + text
        yield begin + b"\n" * (-len(begin) % _ALIGN)
        for array in arrays.values():
            yield array.tobytes()
            yield b"\0" * (-array.nbytes % _ALIGN)

    @classmethod
    def load(cls, data: Buffer) -> ShardIndex:
        """The index out of the bytes of a file (a memory map will do: columns are views on it)."""
        view = memoryview(data)
        try:
            if bytes(view[: len(MAGIC)]) != MAGIC:
                raise ValueError("no index file")
            length = int(bytes(view[len(MAGIC) : len(MAGIC) + 12]))
            begin = len(MAGIC) + 24
            text = bytes(view[begin : begin + length])
            if google_crc32c.value(text) != int(bytes(view[len(MAGIC) + 13 : begin])):
                raise ValueError("damaged")
            head = json.loads(text)
            body = view[-(-(begin + length) // _ALIGN) * _ALIGN :]
            arrays = {}
            for key, dtype, count, place, crc in head["arrays"]:
                arrays[key] = np.frombuffer(body, np.dtype(dtype), count, place) if count else np.zeros(0, np.dtype(dtype))
                if _crc(arrays[key]) != crc:
                    raise ValueError(f"the column {key} is damaged")
            exts = tuple(to_text(bytes.fromhex(ext)) for ext in head["exts"])
            if "name_text" in arrays:
                names, ends = arrays["name_text"].tobytes(), arrays["name_end"].tolist()
                name = np.empty(len(ends), object)
                name[:] = [names[a:b] for a, b in zip([0, *ends], ends, strict=False)]
            else:
                name = arrays["name"]
            sparse = {int(row): [(a, b) for a, b in pieces] for row, pieces in head["sparse"].items()}
            types = np.zeros(len(name), np.uint8)
            members = Members(name, types, arrays["start"], arrays["data"], arrays["size"], arrays["end"], sparse=sparse)
            index = cls(
                members,
                arrays["rows"],
                arrays["ext"],
                exts,
                arrays["hash"],
                head["identity"],
                head["warnings"],
                head["error"],
                tuple(pending) if isinstance(pending := head["pending"], list) else (pending,) * (pending >= 0),
                head["packed"],
            )
            index.__dict__["order"] = arrays["order"]
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise DataError(f"this is not an index of this version ({error}).", code="E_INDEX", hint="Build it again.") from error
        return index

    def to_dali(self) -> str:
        """The text of NVIDIA DALI's `wds2idx`, version 1.2: a line per record, `ext offset size name` a member.

        Names with white space cannot be told apart in that format; `UsageError` names the first one.
        """
        lines = [f"v1.2 {len(self)}"]
        names = [to_text(bytes(name)) for name in self.members.name]
        for record in range(len(self)):
            words = []
            for row in range(int(self.rows[record]), int(self.rows[record + 1])):
                if len(names[row].split()) != 1:
                    raise UsageError(
                        f"the name {names[row]!r} has white space, which DALI's index cannot hold.", hint="Rename the member first."
                    )
                ext = names[row][-len(self.exts[int(self.ext[row])]) :]  # in the case it has: DALI tells cases apart
                words.append(f"{ext} {int(self.members.data[row])} {int(self.members.size[row])} {names[row]}")
            lines.append(" ".join(words))
        return "\n".join(lines) + "\n"


class _LazyKeys(Sequence[bytes]):
    """Keys of a block, made out of the members' names when somebody looks at them."""

    def __init__(self, index: ShardIndex, start: int, stop: int) -> None:
        self._index, self._start, self._stop = index, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        found = range(self._start, self._stop)[at]
        return list(map(self._index.key, found)) if isinstance(found, range) else self._index.key(found)

    def __reduce__(self) -> tuple[type[list[bytes]], tuple[list[bytes]]]:
        return list, (self[:],)  # the keys, not all of the index


def _crc(array: NDArray[Any]) -> int:
    """CRC32C of a column's bytes."""
    return google_crc32c.value(np.ascontiguousarray(array).view(np.uint8)) if array.nbytes else 0


def parse_dali(text: str) -> list[list[tuple[str, int, int, str | None]]]:
    """Records of a DALI index (v1.1 or v1.2): per member (extension, data offset, size, name or None).

    >>> parse_dali("v1.1 1\\njpg 512 10 cls 1536 1\\n")
    [[('jpg', 512, 10, None), ('cls', 1536, 1, None)]]
    """
    lines = text.splitlines()
    head = lines[0].split() if lines else []
    if len(head) != 2 or head[0] not in ("v1.0", "v1.1", "v1.2") or not head[1].isdigit():
        raise DataError(f"a DALI index begins with 'v1.2 COUNT', this with {lines[0][:40] if lines else ''!r}.", code="E_INDEX")
    width = 4 if head[0] == "v1.2" else 3
    records: list[list[tuple[str, int, int, str | None]]] = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        if not words:
            continue
        if len(words) % width:
            raise DataError(f"line {number} of the DALI index has {len(words)} words, not a multiple of {width}.", code="E_INDEX")
        try:
            parts = [words[at : at + width] for at in range(0, len(words), width)]
            records.append([(part[0], int(part[1]), int(part[2]), part[3] if width == 4 else None) for part in parts])
        except ValueError as error:
            raise DataError(f"line {number} of the DALI index holds {error}.", code="E_INDEX") from error
    if len(records) != int(head[1]):
        raise DataError(f"the DALI index promises {head[1]} records and holds {len(records)}.", code="E_INDEX")
    return records
