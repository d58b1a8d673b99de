"""Tar headers, found in buffers: one vectorised look where they are regular, a careful walk where they are not.

Never `tarfile`: it ends without a word on many broken tars (python/cpython#120740). Format: POSIX.1-2017 pax(1),
with GNU's long names and sparse files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tarviz.formats import header_parse, header_scan, pax, sniff
from tarviz.formats.header_scan import BLOCK
from tarviz.formats.member_table import gather, pick
from tarviz.model.errors import DataError, Fault, LimitError
from tarviz.model.types import MEMBER_TYPES, Members, to_bytes, to_text

_SPARSE = 8 << 10  # bytes from header to header from which on following beats looking at every block
BEHIND = 256 << 20  # bytes after the end mark that are looked through; a tape's blocks are far smaller
_NOTHING = memoryview(b"")
_FEW = 24  # blocks; a look at columns costs more than walking so few

FILE = MEMBER_TYPES.index("file")
_STRICT = {
    "W_SIZE_MISMATCH": "E_SIZE",
    "W_NAME_NUL": "E_HEADER",
    "W_CONTINUED": "E_TRUNCATED",
}  # strict reading refuses what readers disagree on
REFUSED_AMID = (*_STRICT, "W_ORPHAN_EXT")  # what strict reading refuses between members, and goes on behind with on_error="skip"
_ORDINARY = b"0\x007123456DSVMN"  # types of members, of no extension header

SKIPPED = frozenset(MEMBER_TYPES.index(kind) for kind in ("symlink", "hardlink", "char", "block", "fifo"))


@dataclass(frozen=True, slots=True, eq=False)
class Headers:
    """A header is next. `orphan`: an extension header stood before an end of the archive, and the member it belongs to is missing."""

    orphan: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Damaged:
    """A header cannot be read, or what it promises is not there.

    `bad` is the byte of that header, `faulty` the name and type of its member, where they could be read. `extended`: it was, or may have
    been, an extension header, and the member after it has lost its name or size with it. `go_on`: the byte where the next member
    begins, where there is no doubt of it.
    """

    error: DataError
    bad: int
    faulty: tuple[bytes, int] | None = None
    extended: bool = False
    go_on: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """The end-of-archive mark was read, or the tar is over without one (`over`).

    `open_end`: members may be missing here. `lone`: the mark was one block of zeros, and that is said. `behind`: what was found after
    it so far, zeros, bytes that are no tar, or a member, which is an `error` in strict reading; it begins at byte `at`.
    """

    open_end: bool
    over: bool = False
    lone: bool = False
    behind: Literal["zeros", "bytes", "member"] = "zeros"
    error: DataError | None = None
    at: int = 0


class Scanner:
    """Finds the members of one tar in the buffers it is handed, front to back.

    `at` is the byte of the tar where the next header must be. After each `scan` the `state` tells what follows: more bytes are
    wanted (`Headers`; `wants` says up to which byte at least), `Ended` (`behind` looks at what follows, up to the end of the file:
    then it is `over`), or `Damaged`, until `skip_to`. Where a buffer ends changes none of it.

    `notes` collects warnings as faults; `strict` turns those that may hide loss into errors. Not thread-safe.
    """

    def __init__(self, shard: str, *, strict: bool = True, concatenated: bool = False) -> None:
        self.shard = shard
        self.strict = strict
        self.concatenated = concatenated
        self.at = 0
        self.wants = BLOCK
        self.found = 0
        self.state: Headers | Damaged | Ended = Headers()
        self.notes: list[Fault] = []
        self.continued = b""  # the name of a file that began in another volume: its record lacks it
        self._spread = 0  # bytes from header to header in the last buffer
        self._tail: tuple[bytes, int, int, int, int] = (b"", FILE, 0, 0, 0)  # name, type, start, data, stored bytes of the last member

    @property
    def ended(self) -> bool:
        """Whether the end-of-archive mark was read."""
        return isinstance(self.state, Ended)

    @property
    def over(self) -> bool:
        """Whether all that follows the end mark was looked at."""
        return isinstance(self.state, Ended) and self.state.over

    @property
    def open_end(self) -> bool:
        """Whether members may be missing where the archive ended."""
        return isinstance(self.state, Ended) and self.state.open_end

    @property
    def error(self) -> DataError | None:
        return None if isinstance(self.state, Headers) else self.state.error

    def scan(self, data: memoryview, base: int, *, final: bool = False) -> Members:
        """The members whose headers lie in `data`, whose first byte is byte `base` of the tar (a multiple of 512).

        `final` says that the tar ends with `data`. Payloads need not be in `data`; the caller compares
        `Members.data + size` with what it has.
        """
        rows: list[Members | header_parse.Entry] = []
        table: header_scan.HeaderColumns | None = None
        while isinstance(self.state, Headers):
            position = self.at - base
            left = len(data) - position
            if left < BLOCK:
                self.wants = self.at + BLOCK
                if final:
                    self._stop(data, position)
                break
            if left >= _FEW * BLOCK:
                if table is None:
                    followed = self._spread > _SPARSE
                    table = self._table(data, position, followed=followed)
                if self._run(table, data, base, rows):
                    continue
                if followed:  # what leads on from here was not looked at
                    self._spread, table = 0, None
            at = self.at
            self._walk(data, base, final, rows)
            if self.at == at:  # nothing more can be done with this buffer
                break
        members = gather(rows)
        self.found += len(members)
        return members

    def _table(self, data: memoryview, position: int, *, followed: bool) -> header_scan.HeaderColumns:
        """The headers of a buffer: found by following them where payloads are large, by looking at every block else."""
        blocks = len(data) // BLOCK
        raw: NDArray[np.uint8] = np.frombuffer(data, np.uint8, blocks * BLOCK).reshape(blocks, BLOCK)
        table = header_scan.headers(raw, header_scan.follow(data, position // BLOCK) if followed else None)
        self._spread = (len(data) - position) // max(len(table.at), 1)
        return table

    def _run(self, table: header_scan.HeaderColumns, data: memoryview, base: int, rows: list[Members | header_parse.Entry]) -> bool:
        """Take the run of regular headers that begins where we are; False when there is none."""
        block = (self.at - base) // BLOCK
        first = int(np.searchsorted(table.at, block))
        if first == len(table.at) or table.at[first] != block or not table.plain[first]:
            return False
        last = int(table.breaks[np.searchsorted(table.breaks, first)])
        stop = last + 1 if table.plain[last] else last
        stop = self._harmless(table, data, first, stop)
        if stop <= first:
            return False
        run = slice(first, stop)
        at = table.at[run] * BLOCK + base
        start = at
        keep = None
        if table.pax[run].any():
            keep = ~table.pax[run]
            start = at.copy()
            start[1:][table.pax[run][:-1]] = at[:-1][table.pax[run][:-1]]
        names = table.name[run]
        if not table.ascii[run].all():
            self._note_encodings(names, table, first, base)
        name = np.ascontiguousarray(names).view(f"S{names.shape[1]}")[:, 0]
        found = Members(name, np.zeros(len(name), np.uint8), start, at + BLOCK, table.size[run], table.next[run] * BLOCK + base)
        rows.append(found if keep is None else pick(found, keep))
        self.at = int(table.next[stop - 1]) * BLOCK + base
        self._tail = (names[-1].tobytes(), FILE, int(start[-1]), int(at[-1]) + BLOCK, int(table.size[stop - 1]))
        return True

    def take(self, raw: NDArray[np.uint8], at: NDArray[np.int64]) -> Members:
        """The members of headers that were read one by one: `raw` is uint8 [headers, 512], `at` the byte of the tar each stands at.

        The first stands where we are, the others where the one before leads. Ends before the first that needs care.
        """
        rows: list[Members | header_parse.Entry] = []
        if len(at):
            self._run(header_scan.headers(raw, np.arange(len(at)), at // BLOCK), _NOTHING, 0, rows)
        members = gather(rows)
        self.found += len(members)
        return members

    def _harmless(self, table: header_scan.HeaderColumns, data: memoryview, first: int, stop: int) -> int:
        """Cut the run before the first PAX header that needs care, or that has no member after it in the run."""
        for row in (np.flatnonzero(table.pax[first:stop]) + first).tolist():
            body = (int(table.at[row]) + 1) * BLOCK
            size = int(table.size[row])
            if row + 1 == stop or table.pax[row + 1] or size > 4096 or not pax.harmless(bytes(data[body : body + size])):
                return int(row)
        return stop

    def _note_encodings(self, names: NDArray[np.uint8], table: header_scan.HeaderColumns, first: int, base: int) -> None:
        run = slice(first, first + len(names))
        for row in np.flatnonzero(~(table.ascii[run] | table.pax[run])).tolist():  # a PAX header's own name names nothing
            name = names[row].tobytes().rstrip(b"\0")
            try:
                name.decode()
            except UnicodeDecodeError:
                offset = int(table.at[first + row]) * BLOCK + base
                self._note("W_NAME_ENCODING", "the name is not UTF-8; its bytes are kept as they are.", offset, to_text(name))

    def _walk(self, data: memoryview, base: int, final: bool, rows: list[Members | header_parse.Entry]) -> None:
        """Read one member, or the end mark, with care; stays where it is when nothing more can be done with this buffer."""
        position = self.at - base
        if not data[position : position + BLOCK].tobytes().strip(b"\0"):
            self._zeros(data, position, final)
            return
        walk = header_parse.HeaderWalk(self.at, data, base, final)
        try:
            entry = header_parse.read(walk)
        except header_parse.NeedMoreError as need:
            self.wants = need.until
            if final:
                error = DataError("the tar ends inside a header.", code="E_TRUNCATED", offset=self.at, member=self._name(data, position))
                self._fail(error, data, position)
            return
        except header_parse.OrphanError:
            text = "an extension header stands before the end of the archive; the member it belongs to is missing."
            if self.strict:
                self._fail(DataError(text, code="E_HEADER", offset=self.at), data, position)
            else:
                self._note("W_ORPHAN_EXT", text, self.at)
                self.at, self.state = walk.at, Headers(orphan=True)
            return
        except DataError as error:
            self._fail(error, data, position, walk)
            return
        member = to_text(entry.name)
        for code, text in walk.notes:
            self._note(code, text, entry.start, member)
            if code in _STRICT and self.strict:
                refusal = DataError(text, code=_STRICT[code], offset=entry.start, member=member)
                refusal.at(shard=self.shard)
                faulty = {"W_SIZE_MISMATCH": entry[:2], "W_CONTINUED": (entry.name, FILE)}.get(code)
                self.state = Damaged(refusal, walk.at, faulty, go_on=entry.end)
                return
            if code == "W_CONTINUED":
                self.continued = entry.name
        rows.append(entry)
        self.at = entry.end
        stored = entry.size if entry.sparse is None else sum(length for _, length in entry.sparse)
        self._tail = (entry.name, entry.type, entry.start, entry.data, stored)

    def _zeros(self, data: memoryview, position: int, final: bool) -> None:
        """A zero block: the end mark is two of them."""
        second, lone = data[position + BLOCK : position + 2 * BLOCK].tobytes(), False
        if len(second) < BLOCK and not final:
            self.wants = self.at + 2 * BLOCK
            return
        if second.strip(b"\0"):
            if len(second) == BLOCK and pax.checksum_right(second):
                self._note("W_LONE_ZERO", f"one zero block, then a member at byte {self.at + BLOCK}; what follows is not read.", self.at)
                if self.concatenated:
                    self.at += BLOCK
                    return
                lone = True
        elif len(second) < BLOCK:
            self._note("W_NO_EOF", "one zero block ends the tar where two should.", self.at)
        elif self.at == 0:
            self._note("W_EMPTY", "the tar is valid and holds nothing.", self.at)
        self.at += 2 * BLOCK if not second.strip(b"\0") else BLOCK
        assert isinstance(self.state, Headers)
        # Something that is no header behind one block of zeros: perhaps the payload of a member whose header is lost.
        self.state = Ended(open_end=self.state.orphan or (bool(second.strip(b"\0")) and not lone), lone=lone, at=self.at)

    def behind(self, data: memoryview, base: int, *, final: bool = False) -> bool:
        """Look at bytes after the end-of-archive marker. True when a member begins there that is to be read as well (`concatenated`).

        A header among them is not padding: a second archive, or a hole of zeros in this one. It is E_TRAILING (strict), or W_TRAILING.
        """
        position = max(self.at - base, 0)
        rest = np.frombuffer(data, np.uint8)[position:]
        assert isinstance(self.state, Ended)
        if self.state.behind == "zeros" and rest.any():
            place = base + (position + int((rest != 0).argmax())) // BLOCK * BLOCK
            header = data[place - base : place - base + BLOCK].tobytes()
            if len(header) < BLOCK and not final:
                self.at, self.wants = place, place + BLOCK
                return False
            if len(header) == BLOCK and pax.checksum_right(header):
                if self.concatenated:
                    self.at, self.state = place, Headers()
                    return True
                self.state = self._member_behind(self.state, place)
            else:
                self._note("W_TRAILING", "bytes that are not a tar stand after the end of the archive.", place)
                self.at, self.state = place, replace(self.state, behind="bytes")
        if self.state.behind == "bytes" and (found := self._header_from(data, base, self.at)) is not None:
            self.state = self._member_behind(self.state, found)
        self.at = max(self.at, (base + len(data)) // BLOCK * BLOCK)
        self.wants = self.at + BLOCK
        if self.at - self.state.at > BEHIND and not final:
            self.state = self._endless(self.state)
        else:
            self.state = replace(self.state, over=final or self.state.error is not None)
        return False

    def _endless(self, state: Ended) -> Ended:
        """More stands after the end mark than any tar has: who sends it may never end."""
        what = f"more than {BEHIND >> 20} MiB follow the end of the archive: what may stand behind them is not looked for."
        error = state.error
        if self.strict:
            error = error or LimitError(what, shard=self.shard, offset=state.at, hint="Read with strict=False to stop there.")
        elif state.behind == "zeros":
            self._note("W_TRAILING", what, state.at)
        return replace(state, over=True, error=error)

    def _member_behind(self, state: Ended, place: int) -> Ended:
        error: DataError | None = None
        if self.strict:
            error = DataError(
                "another member begins after the end-of-archive blocks: a second archive, or zeros where members were.",
                code="E_TRAILING",
                shard=self.shard,
                offset=place,
                hint="Read with concatenated=True to go on there, or with strict=False to stop before it.",
            )
        elif not state.lone:
            self._note("W_TRAILING", "another member begins after the end of the archive; it is not read.", place)
        return replace(state, behind="member", open_end=True, error=error)

    def resync(self, data: memoryview, base: int) -> int | None:
        """After damage: the byte where the next member begins, None when `data` does not tell. Does not move."""
        assert isinstance(self.state, Damaged)
        return self._header_from(data, base, self.state.bad + BLOCK) if self.state.go_on is None else self.state.go_on

    @staticmethod
    def _header_from(data: memoryview, base: int, place: int) -> int | None:
        """The byte of the first valid header from byte `place` on; None when `data` holds none."""
        first, blocks = max((place - base) // BLOCK, 0), len(data) // BLOCK
        if blocks <= first:
            return None
        raw: NDArray[np.uint8] = np.frombuffer(data, np.uint8, blocks * BLOCK).reshape(blocks, BLOCK)
        for block in (header_scan.candidates(raw[first:]) + first).tolist():
            if pax.checksum_right(raw[block].tobytes()):
                return int(base + block * BLOCK)
        return None

    @property
    def damaged_name(self) -> bytes | None:
        """The name in the header that is damaged, as far as it can be read."""
        if not isinstance(self.state, Damaged) or self.state.extended or self.state.error.member is None:
            return None
        return to_bytes(self.state.error.member)

    def skip_to(self, at: int, member: tuple[bytes, int, int, int] | None = None) -> None:
        """Go on at byte `at` after an error; or after `member` (name, start, data, stored bytes), as if nothing after it was read."""
        self.at, self.wants, self.state = at, at + BLOCK, Headers()
        if member is not None:
            name, start, data, stored = member
            self._tail, self.notes = (name, FILE, start, data, stored), [note for note in self.notes if (note.offset or 0) <= start]

    def _stop(self, data: memoryview, position: int) -> None:
        """The bytes are over and no end mark came."""
        if position < 0 or position > len(data):
            self._fail_short(self.at - position + len(data))
        elif position < len(data) and not data[position:].tobytes().strip(b"\0") and self.at:
            self._no_end()
        elif position < len(data):
            text = f"the tar ends inside a header, {len(data) - position} bytes of 512 are there."
            self._fail(DataError(text, code="E_TRUNCATED", offset=self.at, member=self._name(data, position)), data, position)
        elif self.at == 0:
            self._fail(DataError("the file is empty, 0 bytes.", code="E_EMPTY", offset=0), data, position)
        else:
            self._no_end()

    def _no_end(self) -> None:
        text = "the tar ends without its end-of-archive blocks; members may be missing."
        if self.strict:
            hint = "Compare with the source, or read with strict=False."
            self.state = Damaged(DataError(text, code="E_NO_EOF", shard=self.shard, offset=self.at, hint=hint), self.at)
        else:
            self._note("W_NO_EOF", text, self.at)
            self.state = Ended(open_end=True, over=True)

    def _fail_short(self, have_until: int) -> None:
        name, type, start, place, size = self._tail
        have = max(have_until - place, 0)
        member = to_text(name.rstrip(b"\0"))
        if have >= size:
            text = "the last member's padding is cut; its data is whole."
            if self.strict:
                self.state = Damaged(DataError(text, code="E_TRUNCATED", shard=self.shard, member=member, offset=start), self.at)
            else:
                self._note("W_TRUNCATED_PADDING", text, have_until, member)
                self.state = Ended(open_end=True, over=True)
            return
        error = DataError(
            f"the header promises {size} bytes, {have} are there, the data ends at byte {have_until}.",
            code="E_TRUNCATED",
            shard=self.shard,
            member=member,
            offset=start,
            hint="Fetch it again or ask whoever wrote it.",
            details={"need": size, "have": have},
        )
        self.state = Damaged(error, self.at, (name.rstrip(b"\0"), type))

    @staticmethod
    def _name(data: memoryview, position: int) -> str | None:
        """The name in a header that cannot be trusted whole; None where not even the magic stands."""
        header = data[position : position + BLOCK].tobytes()
        return to_text(header[:100].split(b"\0", 1)[0]) if header[257:262] == b"ustar" else None

    def _fail(self, error: DataError, data: memoryview, position: int, walk: header_parse.HeaderWalk | None = None) -> None:
        head = data[position : position + BLOCK].tobytes()
        doubtful = error.code == "E_CHECKSUM" or (error.code == "E_TRUNCATED" and sniff.kind(head) is not None)
        if self.at == 0 and doubtful and head[257:262] != b"ustar":
            error = sniff.not_a_tar(head)
        if error.code == "E_CHECKSUM":
            error.at(member=self._name(data, position))
        bad, faulty = (self.at, None) if walk is None else (walk.at, walk.member)
        header = data[bad - (self.at - position) :][:BLOCK].tobytes()
        extended = faulty is None and (error.code != "E_CHECKSUM" or not _ordinary(header))
        error.at(shard=self.shard)
        self.state = Damaged(error, bad, faulty, extended)

    def _note(self, code: str, text: str, offset: int, member: str | None = None) -> None:
        self.notes.append(Fault(code, text, self.shard, None, member, offset))


def _ordinary(header: bytes) -> bool:
    """Whether a damaged header is surely a member's own: not an extension header, nor bytes that tell nothing."""
    named = b"PaxHeader" in header[:100] or b"@LongLink" in header[:100]
    return header[257:262] == b"ustar" and header[156:157] in _ORDINARY and not named
