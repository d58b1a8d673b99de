"""The words of tarviz as types: URL, key, extension, feature, schema, members, block, record.

Nothing here reads or decodes; `formats` fills these shapes and everything above works on them.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NewType, TypeAlias

from tarviz.model.redaction import redact

if TYPE_CHECKING:  # whoever makes a block has it; a list of verbs needs none
    import numpy as np
    from numpy.typing import NDArray

URL = NewType("URL", str)
Key = NewType("Key", str)

Buffer: TypeAlias = bytes | bytearray | memoryview
KeySplit: TypeAlias = Literal["first-dot", "last-dot"]
Grouping: TypeAlias = Literal["adjacent", "shard"]
Duplicates: TypeAlias = Literal["error", "first", "last"]
OnError: TypeAlias = Literal["raise", "skip"]

PLACES = ("__key__", "__shard__", "__index__")  # what a record as a dict says of itself beside its fields

MEMBER_TYPES = ("file", "dir", "symlink", "hardlink", "char", "block", "fifo", "other")


def to_text(name: bytes) -> str:
    """Name bytes as text; bytes that are not UTF-8 survive as surrogate escapes (PEP 383).

    >>> to_text(b"gr\\xf6\\xdfe").encode("utf-8", "surrogateescape")
    b'gr\\xf6\\xdfe'
    """
    return name.decode("utf-8", "surrogateescape")


def lines_of(data: bytes | bytearray) -> list[str]:
    """The lines of a list that people or programs wrote. They end at LF or CR LF alone; a byte order mark is passed over.

    >>> lines_of(b"\\xef\\xbb\\xbfone\\r\\ntwo\\xe2\\x80\\xa8lines\\n")
    ['one', 'two\\u2028lines', '']
    """
    return [line.removesuffix("\r") for line in data.decode("utf-8-sig", "surrogateescape").split("\n")]


def to_bytes(name: str) -> bytes:
    """The bytes after a name made by `to_text`."""
    return name.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Feature:
    """What one field holds: a dtype and a shape, None where a dimension is not known before decoding.

    `dtype` is a NumPy name (`uint8`, `float32`, `int64`, …), `bytes` for an undecoded payload, `str` for
    text, or `object` for any other Python value (a decoded JSON tree).

    >>> print(Feature("uint8", (None, None, 3)))
    uint8[?, ?, 3]
    """

    dtype: str
    shape: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        if not self.shape:
            return self.dtype
        return f"{self.dtype}[{', '.join('?' if n is None else str(n) for n in self.shape)}]"


class Schema(dict[str, Feature]):
    """Extension → feature, in field order: what a record holds at one point of a chain.

    >>> print(Schema(jpg=Feature("uint8", (32, 32, 3)), cls=Feature("bytes")))
    jpg: uint8[32, 32, 3], cls: bytes
    """

    def __str__(self) -> str:
        return ", ".join(f"{ext}: {feature}" for ext, feature in self.items())


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of a tar. Offsets count bytes of the uncompressed tar; `size` is the logical size in bytes.

    `header_offset` is the member's first header block, which may be a PAX or GNU extension header; the
    payload begins at `data_offset`.
    """

    name: str
    type: str
    size: int
    header_offset: int
    data_offset: int


@dataclass(slots=True, eq=False)
class Members:
    """Members as columns, one row each, in file order.

    `name` is an array of bytes (dtype `S…`, or object where a name is very long); `type` holds an index into
    `MEMBER_TYPES`. `start` is where the member begins, its extension headers (PAX, GNU long name) counted in;
    `data` is its payload, `end` the block after that, padding counted in. All three count bytes from the
    beginning of the uncompressed tar. `size` is what a reader gets; a sparse member's payload in the tar is
    shorter, and `sparse` maps its row to the (offset, length) pieces that are stored there, one after the other.
    """

    name: NDArray[Any]
    type: NDArray[np.uint8]
    start: NDArray[np.int64]
    data: NDArray[np.int64]
    size: NDArray[np.int64]
    end: NDArray[np.int64]
    sparse: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.size)

    def __getitem__(self, row: int) -> Member:
        places = int(self.size[row]), int(self.start[row]), int(self.data[row])
        return Member(to_text(bytes(self.name[row])), MEMBER_TYPES[int(self.type[row])], *places)

    def part(self, low: int, high: int) -> Members:
        """Rows `low`…`high`, as views on the same columns."""
        at = slice(low, high)
        sparse = {row - low: pieces for row, pieces in self.sparse.items() if low <= row < high} if self.sparse else {}
        return Members(self.name[at], self.type[at], self.start[at], self.data[at], self.size[at], self.end[at], sparse)

    def __iter__(self) -> Iterator[Member]:
        return (self[row] for row in range(len(self)))


@dataclass(eq=False)
class Block:
    """A contiguous run of a shard's bytes holding whole records, with the columns of their members.

    `data` (read-only) is the bytes; `base` the place of `data[0]` in the uncompressed tar. Per member, in
    file order, `offset` and `size` cut a payload out of `data`, and `ext` is its index into `exts`. Record
    *r* of the block owns the rows `rows[r]:rows[r + 1]`; it is record `first + r` of the shard.
    `members` has the same rows as `offset`, with places in the tar. `pending` is the record that may lack a
    member (lenient reading only), -1 when all are whole. `spans` cuts raw tar bytes.
    A block owns its memory: it stays valid as long as somebody holds it or a view on it.
    """

    shard: str
    data: memoryview
    base: int
    first: int
    keys: list[bytes]
    rows: NDArray[np.int64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    ext: NDArray[np.int32]
    exts: tuple[str, ...]
    members: Members
    pending: int = -1

    def __post_init__(self) -> None:
        # Field → where its payloads begin and end, a number each record; empty where records differ, None until a payload is asked for.
        # An attribute that the class does not have: Python finds it in half the time of a cached property.
        self._cuts: dict[str, tuple[list[int], list[int]]] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        records = f"{len(self)} record{'' if len(self) == 1 else 's'}"
        return f"<Block of {records}, from number {self.first} of {redact(self.shard)} ({len(self.data)} bytes)>"

    def __iter__(self) -> Iterator[Record]:
        return map(Record, [self] * len(self.keys), range(len(self.keys)))

    def __getitem__(self, row: int) -> Record:
        return Record(self, row)

    def part(self, low: int, high: int) -> Block:
        """Records `low`…`high` of this block, as a block on the same bytes."""
        a, b = int(self.rows[low]), int(self.rows[high])
        members = self.members.part(a, b)
        pending = self.pending - low if low <= self.pending < high else -1
        return replace(
            self,
            first=self.first + low,
            keys=self.keys[low:high],
            rows=self.rows[low : high + 1] - a,
            offset=self.offset[a:b],
            size=self.size[a:b],
            ext=self.ext[a:b],
            members=members,
            pending=pending,
        )

    @cached_property
    def array(self) -> NDArray[np.uint8]:
        """`data` as uint8 [bytes], without a copy."""
        import numpy as np

        return np.frombuffer(self.data, np.uint8)

    @cached_property
    def fields(self) -> tuple[str, ...] | None:
        """The extensions every record of the block has, in the same order; None when records differ."""
        import numpy as np

        if not len(self) or not np.array_equal(self.rows, np.arange(len(self) + 1) * self.rows[1]):
            return None
        table = self.ext.reshape(len(self), -1)
        return None if (table != table[0]).any() else tuple(self.exts[code] for code in table[0])

    @cached_property
    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Per record: begin and end of its raw tar bytes in `data`, and whether nothing else lies between.

        Where the third is true, `data[begin:end]` is a piece of tar holding exactly this record.
        """
        import numpy as np

        first, last = self.rows[:-1], self.rows[1:] - 1
        begin, end = self.members.start[first] - self.base, self.members.end[last] - self.base
        own = np.concatenate(([0], np.cumsum(self.members.end - self.members.start)))
        return begin, end, own[self.rows[1:]] - own[self.rows[:-1]] == end - begin

    @cached_property
    def _lists(self) -> tuple[list[int], list[int]]:
        return self.offset.tolist(), (self.offset + self.size).tolist()

    def _cut(self) -> dict[str, tuple[list[int], list[int]]]:
        starts, ends = self._lists
        fields = self.fields or ()
        self._cuts = {ext: (starts[at :: len(fields)], ends[at :: len(fields)]) for at, ext in enumerate(fields)}
        return self._cuts


class Record(Mapping[str, memoryview]):
    """One record of a block: extension → payload (a read-only memoryview on the block, no copy).

    `key` and `shard` say where it comes from, `index` counts records in the shard from 0. `pending` marks a
    record that lenient reading yields although a member may be missing. Holding a record or a payload keeps
    its block (4 MiB; 8 of large members, and from far away); `bytes(record["jpg"])` makes a copy of its own.
    """

    __slots__ = ("_block", "_places", "_row")
    _places: dict[str, int]  # where each field is, made for the first one that is looked at

    def __init__(self, block: Block, row: int) -> None:
        self._block = block
        self._row = row

    @property
    def key(self) -> Key:
        return Key(self._block.keys[self._row].decode("utf-8", "surrogateescape"))

    @property
    def shard(self) -> str:
        return self._block.shard

    @property
    def index(self) -> int:
        return self._block.first + self._row

    @property
    def pending(self) -> bool:
        return self._block.pending == self._row

    def __getitem__(self, ext: str) -> memoryview:
        block = self._block
        if (cuts := block._cuts) is None:
            cuts = block._cut()
        if cuts:
            starts, ends = cuts[ext]
            at = self._row
        else:
            starts, ends = block._lists
            if (at := self._find(ext)) < 0:
                raise KeyError(ext)
        return block.data[starts[at] : ends[at]]

    def _find(self, ext: str) -> int:
        try:
            places = self._places
        except AttributeError:  # a record may have as many fields as a film has frames
            block = self._block
            low, high = int(block.rows[self._row]), int(block.rows[self._row + 1])
            places = {block.exts[code]: row for row, code in enumerate(block.ext[low:high].tolist(), low)}
            self._places = places
        return places.get(ext, -1)

    def __iter__(self) -> Iterator[str]:
        block = self._block
        if block.fields is not None:
            return iter(block.fields)
        return (block.exts[code] for code in block.ext[block.rows[self._row] : block.rows[self._row + 1]])

    def __len__(self) -> int:
        return int(self._block.rows[self._row + 1] - self._block.rows[self._row])

    def keys(self) -> KeysView[str]:
        """The fields in order; those of a dict, where it can be, which `dict(record)` goes through in less time than `Mapping`'s."""
        cuts = self._block._cuts or self._block._cut()
        return cuts.keys() if cuts else super().keys()

    @property
    def members(self) -> tuple[Member, ...]:
        """The tar entries behind the fields, in file order."""
        block = self._block
        return tuple(block.members[at] for at in range(int(block.rows[self._row]), int(block.rows[self._row + 1])))

    def block(self) -> Block:
        """A block holding just this record, on the same bytes."""
        return self._block.part(self._row, self._row + 1)

    def __repr__(self) -> str:
        fields = ", ".join(f"{ext}: {len(self[ext])} bytes" for ext in self)
        return f"<Record {self.key!r} of {redact(self.shard)} ({fields})>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return rich_form(self)


def rich_form(found: Any) -> dict[str, str]:
    """What a notebook shows for a record or an index: the viewers make it, looked up on first use."""
    from tarviz.model import plugins

    bundle: dict[str, str] = plugins.load("notebook", "rich").bundle(found)
    return bundle
