"""Members gathered into records: the run of files whose names agree up to the dot.

Key rule and grouping as WebDataset has them: the first dot of the base name cuts key from extension, extensions
are lower-cased, a leading `./` is dropped. `key_split="last-dot"` cuts at the last dot, as tar2tf and go-tfdata do.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.formats import header_scan
from tarviz.formats.member_table import pick
from tarviz.formats.tar import FILE, SKIPPED
from tarviz.model.errors import DataError, Fault
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import MEMBER_TYPES, Duplicates, KeySplit, Members, to_text


def split_name(name: bytes, key_split: KeySplit = "first-dot") -> tuple[bytes, str] | None:
    """(key, extension) of one member name; None for a name that has no key or no extension.

    >>> split_name(b"./a.v2/b.seg.PNG")
    (b'a.v2/b', 'seg.png')
    >>> split_name(b"a/.hidden") is None
    True
    """
    while name.startswith(b"./"):
        name = name[2:]
    folder, slash, base = name.rpartition(b"/")
    dot = base.find(b".") if key_split == "first-dot" else base.rfind(b".")
    if dot <= 0 or dot == len(base) - 1:
        return None
    return folder + slash + base[:dot], to_text(base[dot + 1 :]).lower()


def is_meta(name: bytes) -> bool:
    """macOS's AppleDouble files and WebDataset's `__…__` members: about the shard, not of a record."""
    base = name.rpartition(b"/")[2]
    return base.startswith(b"._") or (base.startswith(b"__") and base.partition(b".")[0].endswith(b"__") and len(base) > 4)


@dataclass(eq=False)
class Grouped:
    """Records as columns: record *r* is the rows `rows[r]:rows[r + 1]` of `members`, which holds files only."""

    members: Members
    keys: NDArray[Any]
    rows: NDArray[np.int64]
    ext: NDArray[np.int32]
    exts: list[str]
    key_hash: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(eq=False)
class Grouper:
    """Groups the members of one shard, buffer by buffer; remembers which keys have been.

    `notes` collects warnings, `twice` counts fields left out for being there twice. A record that
    returns under the same key is reported by `returns`.
    """

    shard: str
    key_split: KeySplit = "first-dot"
    duplicates: Duplicates = "error"
    notes: list[Fault] = field(default_factory=list)
    twice: int = 0
    _codes: dict[bytes, int] = field(default_factory=dict)
    exts: list[str] = field(default_factory=list)
    _seen: _Seen = field(default_factory=lambda: _Seen())

    __repr__ = redacted_repr

    def group(self, members: Members, *, quiet_before: int = 0) -> Grouped:
        """The records among `members`, adjacent rows of one key together; what has no key is noted and dropped.

        `quiet_before`: members that begin before this byte were noted already.
        """
        members = self._files(members, quiet_before)
        if members.name.dtype == object:
            return self._one_by_one(members, quiet_before)
        names = header_scan.matrix(members.name) if len(members) else np.zeros((0, 1), np.uint8)
        if names.shape[1] > 1 and ((names[:, 0] == 46) & (names[:, 1] == 47)).any():
            return self._one_by_one(members, quiet_before)
        base = header_scan.base(names == 47)
        cut = header_scan.split(names, base, last=self.key_split == "last-dot")
        suspicious = ~cut.valid | self._meta_candidates(names, base)
        if suspicious.any():
            keep = self._with_key(members, np.flatnonzero(suspicious), quiet_before)
            members = pick(members, keep)
            cut = header_scan.Keys(cut.key[keep], cut.length[keep], cut.ext[keep], cut.valid[keep])
        begins = header_scan.starts(cut.key, cut.length)
        first = np.flatnonzero(begins)
        rows = np.append(first, len(members))
        key = np.ascontiguousarray(cut.key[first])
        codes, found = header_scan.distinct(cut.ext)
        ext = np.array([self._code(each) for each in found], np.int32)[codes]
        return Grouped(members, key.view(f"S{key.shape[1]}")[:, 0], rows, ext, self.exts, header_scan.hashes(key))

    def _files(self, members: Members, quiet_before: int) -> Members:
        if not members.type.any():
            return members
        for row in np.flatnonzero(members.type).tolist():
            if int(members.type[row]) in SKIPPED and members.start[row] >= quiet_before:
                text = f"a {MEMBER_TYPES[members.type[row]]} is skipped; links are never followed."
                self._note("W_SKIPPED_TYPE", text, members, row)
        return pick(members, members.type == FILE)

    @staticmethod
    def _meta_candidates(names: NDArray[np.uint8], base: int | NDArray[np.int64]) -> NDArray[np.bool_]:
        """Rows whose base name begins with a dot or an underscore twice."""
        last = names.shape[1] - 1
        rows: Any = slice(None) if isinstance(base, int) else np.arange(len(names))
        first, second = names[rows, np.minimum(base, last)], names[rows, np.minimum(base + 1, last)]
        found: NDArray[np.bool_] = (first == 46) | ((first == 95) & (second == 95))
        return found

    def _with_key(self, members: Members, rows: NDArray[Any], quiet_before: int) -> NDArray[np.bool_]:
        """Which members belong to records; those in `rows` may not."""
        keep = np.ones(len(members), np.bool_)
        keep[rows] = [self._keeps(members, row, quiet_before) for row in rows.tolist()]
        return keep

    def _keeps(self, members: Members, row: int, quiet_before: int) -> bool:
        name = bytes(members.name[row])
        meta = is_meta(name)
        if not meta and split_name(name, self.key_split) is not None:
            return True
        if members.start[row] >= quiet_before:
            if meta:
                self._note("W_SKIPPED_META", "a file about the shard, of no record, is skipped.", members, row)
            else:
                self._note("W_NO_KEY", "the name has no key or no extension; the file belongs to no record.", members, row)
        return False

    def _one_by_one(self, members: Members, quiet_before: int) -> Grouped:
        """The same for names that do not fit a column: very long ones, a NUL inside, `./` before some."""
        members = pick(members, self._with_key(members, np.arange(len(members)), quiet_before))
        cut = [split_name(bytes(name), self.key_split) or (b"", "") for name in members.name]
        first = [row for row in range(len(cut)) if row == 0 or cut[row][0] != cut[row - 1][0]]
        keys = np.empty(len(first), object)
        keys[:] = [cut[row][0] for row in first]
        rows = np.array([*first, len(cut)], np.int64)
        ext = np.array([self._code(ext.encode("utf-8", "surrogateescape")) for _, ext in cut], np.int32)
        hashed = [header_scan.hash_one(key) for key in keys]
        return Grouped(members, keys, rows, ext, self.exts, np.array(hashed, np.uint64))

    def _code(self, ext: bytes) -> int:
        code = self._codes.get(ext)
        if code is None:
            code = self._codes[ext] = len(self.exts)
            self.exts.append(to_text(ext).lower())
        return code

    def settle(self, grouped: Grouped) -> tuple[Grouped, DataError | None]:
        """Each field once: a repeated field is an error that ends the records before it, or the first or last stays."""
        if _uniform(grouped):
            return grouped, None
        record = np.repeat(np.arange(len(grouped)), np.diff(grouped.rows))
        code = record * (len(self.exts) + 1) + grouped.ext
        order = np.argsort(code, kind="stable")
        again = np.flatnonzero(code[order][1:] == code[order][:-1]) + 1
        if not len(again):
            return grouped, None
        if self.duplicates == "error":
            row = int(order[again].min())
            owner = int(record[row])
            name = to_text(bytes(grouped.members.name[row]))
            error = DataError(
                f"the field {self.exts[int(grouped.ext[row])]!r} appears twice.",
                code="E_DUP_FIELD",
                shard=self.shard,
                key=to_text(bytes(grouped.keys[owner])),
                member=name,
                offset=int(grouped.members.start[row]),
                hint='Choose with duplicates="first" or duplicates="last".',
            )
            return part(grouped, 0, owner), error
        self.twice += len(again)
        drop = order[again] if self.duplicates == "first" else order[again - 1]
        keep = np.ones(len(grouped.ext), np.bool_)
        keep[drop] = False
        rows = np.append(0, np.cumsum(keep))[grouped.rows]
        return replace(grouped, members=pick(grouped.members, keep), rows=rows, ext=grouped.ext[keep]), None

    def returns(self, grouped: Grouped) -> list[tuple[int, int]]:
        """Records whose key was seen before in the shard: (record, byte where the key was first)."""
        return self._seen.add(grouped)

    def split(self, name: bytes) -> tuple[bytes, str] | None:
        """`split_name` by this shard's rule."""
        return split_name(name, self.key_split)

    def key_of(self, name: bytes, type: int) -> bytes | None:
        """The key of the record a member is of; None for a link, a file about the shard, a name without a key: members of no record."""
        cut = None if type != FILE or is_meta(name) else split_name(name, self.key_split)
        return None if cut is None else cut[0]

    def _note(self, code: str, text: str, members: Members, row: int) -> None:
        self.notes.append(Fault(code, text, self.shard, None, to_text(bytes(members.name[row])), int(members.start[row])))


def _uniform(grouped: Grouped) -> bool:
    """Whether every record has the fields of the first one, each once (the usual case, told cheaply)."""
    width = int(grouped.rows[1]) if len(grouped) else 0
    if not len(grouped) or width * len(grouped) != len(grouped.ext) or (np.diff(grouped.rows) != width).any():
        return False
    first = grouped.ext[:width]
    return len(set(first.tolist())) == width and bool((grouped.ext.reshape(-1, width) == first).all())


def without(grouped: Grouped, record: int) -> Grouped:
    """The same without one record."""
    keep = np.arange(len(grouped)) != record
    rows = np.repeat(keep, np.diff(grouped.rows))
    counts = np.diff(grouped.rows)[keep]
    members = pick(grouped.members, rows)
    return Grouped(members, grouped.keys[keep], np.append(0, np.cumsum(counts)), grouped.ext[rows], grouped.exts, grouped.key_hash[keep])


def part(grouped: Grouped, first: int, stop: int) -> Grouped:
    """Records `first`…`stop` of a group."""
    if first == 0 and stop == len(grouped):
        return grouped
    low, high = int(grouped.rows[first]), int(grouped.rows[stop])
    return Grouped(
        grouped.members.part(low, high),
        grouped.keys[first:stop],
        grouped.rows[first : stop + 1] - low,
        grouped.ext[low:high],
        grouped.exts,
        grouped.key_hash[first:stop],
    )


class _Seen:
    """Keys that have been, as 64-bit hashes: 16 bytes a record; keys in ascending order cost no look-up."""

    def __init__(self) -> None:
        self._sorted: list[tuple[NDArray[np.uint64], NDArray[np.int64]]] = []  # runs of doubling length
        self._unsorted: list[tuple[NDArray[np.uint64], NDArray[np.int64]]] = []  # nobody had to look yet
        self._last = b""
        self._ascending = True

    def add(self, grouped: Grouped) -> list[tuple[int, int]]:
        if not len(grouped):
            return []
        keys, hashed = grouped.keys, grouped.key_hash
        places = grouped.members.start[grouped.rows[:-1]]
        # Ascending so far and in this block: everything is greater than all before, so nothing returned.
        self._ascending = self._ascending and bytes(keys[0]) > self._last and bool((keys[1:] > keys[:-1]).all())
        self._last = bytes(keys[-1])
        if self._ascending:
            self._unsorted.append((hashed, places))
            return []
        if self._unsorted:
            self._keep(*(np.concatenate(columns) for columns in zip(*self._unsorted, strict=True)))
            self._unsorted = []
        order = np.argsort(hashed, kind="stable")
        first = places[order[np.searchsorted(hashed[order], hashed)]]
        for values, offsets in self._sorted:
            near = np.minimum(np.searchsorted(values, hashed), len(values) - 1)
            first = np.where(values[near] == hashed, np.minimum(first, offsets[near]), first)
        self._keep(hashed, places)
        again = np.flatnonzero(first != places)
        return list(zip(again.tolist(), first[again].tolist(), strict=True))

    def _keep(self, hashed: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
        order = np.argsort(hashed, kind="stable")
        self._sorted.append((hashed[order], places[order]))
        while len(self._sorted) > 1 and len(self._sorted[-2][0]) <= 2 * len(self._sorted[-1][0]):
            (a, b), (c, d) = self._sorted.pop(-2), self._sorted.pop()
            merged = np.concatenate((a, c))
            order = np.argsort(merged, kind="stable")
            self._sorted.append((merged[order], np.concatenate((b, d))[order]))
