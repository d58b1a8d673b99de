"""Which fields of a record the tar tools keep, and under which names: field lists, key templates.

A field list is `"jpg;png cls"`: fields apart by spaces, `;` between alternatives of which the first that is there is
taken. `image:jpg;png` gives what is taken a new name, `json?` may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.pax import number
from tarviz.formats.tar_header import tar_header
from tarviz.model.errors import DataError, Fault, UsageError
from tarviz.model.types import to_bytes, to_text
from tarviz.model.urls import without_query
from tarviz.outputs.tar_output import Piece, Range, TarOutput
from tarviz.read.spans import Batch, ranges
from tarviz.read.spans import pieces as raw_pieces
from tarviz.read.stream import ReadReport
from tarviz.tools.record_faults import settle

_TOKEN = re.compile(r"\{(\w+)(?::0?(\d{1,2})d?)?\}")
_WORDS = ("key", "folder", "base", "shard", "n")
_HINT = 'Fields are apart by spaces: "jpg;png cls", "image:jpg;png json?".'
_ABSENT = 1 << 30
_TOGETHER = 256  # single records written at once


@dataclass(frozen=True, slots=True)
class Pick:
    """One field to keep: the extensions that will do, its new name if it gets one, and whether it may be missing."""

    exts: tuple[str, ...]
    name: str | None = None
    optional: bool = False

    @property
    def title(self) -> str:
        """What the field is called: its new name, or the first extension."""
        return self.name or self.exts[0]

    def row(self, fields: dict[str, int]) -> int | None:
        """The row of the first extension that is in `fields`."""
        return next((fields[ext] for ext in self.exts if ext in fields), None)


def picks(text: str) -> tuple[Pick, ...]:
    """The fields of a list.

    >>> picks("image:jpg;png cls?")
    (Pick(exts=('jpg', 'png'), name='image', optional=False), Pick(exts=('cls',), name=None, optional=True))
    """
    found = []
    for word in text.split():
        name, colon, rest = word.rpartition(":")
        optional = rest.endswith("?")
        exts = tuple(rest.removesuffix("?").lower().split(";"))
        if not all(exts) or (colon and not name) or "/" in word or ":" in name:
            raise UsageError(f"{word!r} names no field.", hint=_HINT)
        found.append(Pick(exts, name.lower() or None, optional))
    if not found:
        raise UsageError("the list of fields is empty.", hint=_HINT)
    read = [ext for pick in found for ext in pick.exts]
    written = [name for pick in found for name in ((pick.name,) if pick.name else pick.exts)]
    if len(set(read)) < len(read) or len(set(written)) < len(written):
        raise UsageError(f"the field list {text!r} has one extension, or one name, twice.", hint=_HINT)
    return tuple(found)


def key_template(template: str) -> Callable[[bytes, str, int], bytes]:
    """New keys out of old: `{key}`, `{folder}`, `{base}`, `{shard}` (its name), `{n}` or `{n:06d}` (records written so far).

    >>> key_template("new/{base}_{n:03d}")(b"train/0001", "a/b.tar", 7)
    b'new/0001_007'
    """
    for token in _TOKEN.finditer(template):
        if token[1] not in _WORDS or (token[2] and token[1] != "n"):
            raise UsageError(f"{token[0]} in the key template is not known.", hint=f"There are {{{'}, {'.join(_WORDS)}}} and {{n:06d}}.")
    if "{" in _TOKEN.sub("", template) or "}" in _TOKEN.sub("", template):
        raise UsageError(f"the key template {template!r} has braces that name nothing.")

    def make(key: bytes, shard: str, number: int) -> bytes:
        folder, _, base = key.rpartition(b"/")
        path = without_query(shard)[0]  # a signature may hold a slash
        name = path.rpartition("/")[2].partition(".")[0]
        words = {"key": key, "folder": folder, "base": base, "shard": to_bytes(name)}
        parts = _TOKEN.split(template)
        made = to_bytes(parts[0])
        for word, width, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            made += b"%0*d" % (int(width or 0), number) if word == "n" else words[word]
            made += to_bytes(text)
        return made

    return make


def columns(pairs: Sequence[str]) -> dict[str, str]:
    """Field by column, of `FIELD=COLUMN` each."""
    fields = {column: field for field, _, column in (pair.partition("=") for pair in pairs)}
    if not all(fields) or not all(fields.values()) or len(fields) < len(pairs):
        raise UsageError("--as names a field and a column each.", hint="For example --as cls=label.")
    return fields


def merge_warning(place: str, key: bytes) -> Fault:
    """The warning of neighbours of one key in an output."""
    text = (
        "two records of this key stand side by side now and will be read as one, or refused where both have the same field;"
        " give them other keys (cat --key)."
    )
    return Fault("W_MERGED_RECORD", text, place, to_text(key))


def substitution(pattern: str, replacement: str) -> Callable[[bytes], bytes]:
    """A regular expression replaced in keys.

    >>> substitution("^train/", "val/")(b"train/0001")
    b'val/0001'
    """
    try:
        compiled = re.compile(to_bytes(pattern))
        compiled.sub(to_bytes(replacement), b"")
    except (re.error, IndexError) as error:
        raise UsageError(f"{pattern!r} → {replacement!r} is not a substitution: {error}.") from error
    return lambda key: compiled.sub(to_bytes(replacement), key)


@dataclass
class Form:
    """What becomes of each record: fields kept or dropped, new keys. With nothing set, records pass as they are.

    A record that lacks a field is a fault of code E_SCHEMA, raised or, with `skip`, reported and left out.
    """

    fields: tuple[Pick, ...] = ()
    drop: frozenset[str] = frozenset()
    key: Callable[[bytes, str, int], bytes] | None = None
    skip: bool = False
    report: ReadReport = field(default_factory=ReadReport)
    _last: bytes | None = None
    _held: list[Piece] = field(default_factory=list)

    @property
    def trivial(self) -> bool:
        """Whether records pass as they are."""
        return not self.fields and not self.drop and self.key is None

    def put(self, outlet: TarOutput, batch: Batch, records: NDArray[np.int64] | None = None) -> None:
        """Write the records of a batch, those numbered `records` of it or all."""
        if records is None and self.trivial:
            rows, kept = np.arange(len(batch.block.members)), np.arange(len(batch))
        else:
            rows, kept = self._rows(batch, records)
        if not len(kept):
            return
        if batch.block.pending >= 0 and batch.block.pending in kept:
            key = to_text(batch.block.keys[batch.block.pending])
            self.report.add(Fault("W_PENDING", "the record may lack a member; it is kept.", batch.block.shard, key))
        if self.key is not None or self._names:
            outlet.write(self._rewritten(batch, rows, kept, outlet.records))
        else:
            begin, end, _ = raw_pieces(batch, rows)
            outlet.copy(batch, begin, end)
            self.beside(batch, int(kept[0]))
            for record, after in zip(*_new_neighbours(batch, kept), strict=True):
                self._last = batch.block.keys[record]
                self.beside(batch, after)
            self._last = batch.block.keys[int(kept[-1])]
        outlet.records += len(kept)

    def put_one(self, outlet: TarOutput, batch: Batch, record: int) -> None:
        """Write one record of a batch, some time before `flush`."""
        begin, end, whole = batch.block.spans
        if not self.trivial or not whole[record] or len(batch.block.array) != int(end[-1]):
            self.flush(outlet)
            self.put(outlet, batch.part(record, record + 1))
            return
        self._held.append(batch.block.data[int(begin[record]) : int(end[record])])
        self.beside(batch, record)
        outlet.records += 1
        if len(self._held) >= _TOGETHER:
            self.flush(outlet)

    def put_each(
        self,
        outlet: TarOutput,
        records: Iterable[tuple[Batch, int]],
        added: Callable[[], None],
        *,
        start: int = 0,
        stop: int | None = None,
        step: int = 1,
    ) -> None:
        """Write records that come one by one: every `step`-th from `start` to before `stop`; `added` hears of each."""
        for batch, record in islice(records, start, stop, step):
            self.put_one(outlet, batch, record)
            added()
        self.flush(outlet)

    def flush(self, outlet: TarOutput) -> None:
        """Write what `put_one` holds back."""
        if self._held:
            outlet.write(self._held)
            self._held = []

    def forget(self) -> None:
        """Another output begins: its first record has no neighbour."""
        self._last = None

    def beside(self, batch: Batch, record: int, key: bytes | None = None) -> None:
        """Take note of the key written next: neighbours of one key are read as one record, which is warned of."""
        key = batch.block.keys[record] if key is None else key
        if key == self._last:
            self.report.add(merge_warning(batch.block.shard, key))
        self._last = key

    @cached_property
    def _names(self) -> dict[str, str]:
        return {ext: pick.name for pick in self.fields if pick.name for ext in pick.exts}

    def _rows(self, batch: Batch, records: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Members to write, as rows, and the records they are of."""
        block = batch.block
        chosen = np.ones(len(block), np.bool_)
        if records is not None:
            chosen[:] = False
            chosen[records] = True
        owner = np.repeat(np.arange(len(block)), np.diff(block.rows))
        keep = chosen[owner]
        if self.fields:
            wanted = np.zeros(len(owner), np.bool_)
            for pick in self.fields:
                rank = np.full(len(block.exts), _ABSENT, np.int64)
                for place, ext in enumerate(pick.exts):
                    if ext in block.exts:
                        rank[block.exts.index(ext)] = place
                ranks = rank[block.ext]
                best = np.minimum.reduceat(ranks, block.rows[:-1])
                wanted |= (ranks == best[owner]) & (ranks < _ABSENT)
                if not pick.optional:
                    self._lacking(batch, np.flatnonzero(chosen & (best == _ABSENT)), pick)
                    chosen &= best < _ABSENT
            keep &= wanted & chosen[owner]
        if self.drop:
            gone = np.array([ext in self.drop for ext in block.exts], np.bool_)
            keep &= ~gone[block.ext]
        rows = np.flatnonzero(keep)
        kept = np.unique(owner[rows])
        if self.drop and len(kept) < int(chosen.sum()):
            for record in np.setdiff1d(np.flatnonzero(chosen), kept).tolist():
                self._fault(batch, record, "nothing is left of the record when its fields are dropped.", "--on-error skip leaves it out.")
        return rows, kept

    def _lacking(self, batch: Batch, records: NDArray[np.int64], pick: Pick) -> None:
        for record in records.tolist():
            there = " ".join(batch.fields(record))
            text = f"the record has no field {' or '.join(pick.exts)}; it has {there}."
            self._fault(batch, record, text, f'write "{";".join(pick.exts)}?" for a field that may be missing, or --on-error skip.')

    def _fault(self, batch: Batch, record: int, text: str, hint: str) -> None:
        settle(DataError(text, code="E_SCHEMA", hint=hint), batch, record, self.report, skip=self.skip)

    def _rewritten(self, batch: Batch, rows: NDArray[np.int64], kept: NDArray[np.int64], number: int) -> list[Piece]:
        """Members under new headers; payloads stay as they are."""
        block = batch.block
        pieces: list[Piece] = []
        bounds = np.searchsorted(rows, block.rows).tolist()
        for at, record in enumerate(kept.tolist()):
            old = block.keys[record]
            key = old if self.key is None else check_new_key(self.key(old, block.shard, number + at), old)
            self.beside(batch, record, key)
            for row in rows[bounds[record] : bounds[record + 1]].tolist():
                pieces += member(batch, row, key, self._names.get(batch.ext(row)) or extension(batch, record, row))
        return pieces


def check_new_key(key: bytes, old: bytes) -> bytes:
    """A new key, refused where it would not be read back as that key."""
    base = key.rpartition(b"/")[2]
    if not base or b"." in base or b"\0" in key:
        raise UsageError(
            f"the new key {to_text(key)!r} cannot be a key.",
            key=to_text(old),
            hint="Its last part must not be empty, and hold no dot and no NUL.",
        )
    return key


def extension(batch: Batch, record: int, row: int) -> str:
    """A member's extension as its name has it, upper case and all."""
    name = bytes(batch.block.members.name[row])
    while name.startswith(b"./"):
        name = name[2:]
    return to_text(name[len(batch.block.keys[record]) + 1 :])


def keep_members(batch: Batch, rows: Sequence[int]) -> list[Piece]:
    """Members of a batch as they are; neighbours are one piece."""
    begin, end, _ = raw_pieces(batch, np.array(rows))
    spans = zip(*(each.tolist() for each in ranges(begin, end)), strict=True)
    return [batch.raw(low, high) if batch.source is None else Range(batch.source, low, high) for low, high in spans]


def member(batch: Batch, row: int, key: bytes, ext: str) -> list[Piece]:
    """A member of a batch under a new header; time and mode are kept."""
    size = int(batch.block.size[row])
    head = header(batch, row, key, ext, size)
    padding = bytes(-size % 512)
    if batch.source is not None:
        start = int(batch.block.offset[row])
        return [head, Range(batch.source, start, start + size), padding]
    return [head, batch.payload(row), padding]


def header(batch: Batch, row: int, key: bytes, ext: str, size: int) -> bytes:
    """A new header for `size` bytes, with the time and mode of a member."""
    members = batch.block.members
    time, mode = 0, 0o644
    if row not in members.sparse:  # a map may stand between header and payload there
        old = bytes(batch.raw(int(members.data[row]) - 512, int(members.data[row])))
        time, mode = number(old[136:148]) or 0, (number(old[100:108]) or 0) & 0o7777 or 0o644
    return tar_header(key + b"." + to_bytes(ext), size, time if abs(time) < 1 << 40 else 0, mode=mode)


def _new_neighbours(batch: Batch, kept: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Records that come to stand side by side, since what stood between them is left out: each and the one after it."""
    block = batch.block
    apart = block.members.start[block.rows[kept[1:]]] != block.members.end[block.rows[kept[:-1] + 1] - 1]
    return kept[:-1][apart].tolist(), kept[1:][apart].tolist()
