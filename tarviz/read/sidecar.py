"""The index that NVIDIA DALI's `wds2idx` has written beside a shard: believed where the shard bears it out, refused where it does not.

It names the members, so that a shard far away need not be streamed to be indexed. What it says is held against the shard's size and
against the headers of some members when it is read, and of every record when that is read.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.compression import kind
from tarviz.formats.header_scan import BLOCK
from tarviz.formats.index import ShardIndex, parse_dali
from tarviz.formats.tar import FILE, Scanner
from tarviz.model.errors import DataError, StoreError, redact
from tarviz.model.types import URL, Members, to_bytes, to_text
from tarviz.model.urls import without_query
from tarviz.stores import Stat
from tarviz.stores.base import take

_WORTH = 1 << 20  # bytes of a shard from which on the question for a sidecar costs less than reading it
_LARGEST = 256 << 20  # bytes of a sidecar
_GAP = 64 << 10  # bytes before a member that its extension headers may take
_TAIL = 1 << 20  # bytes after the last member
_SAMPLE = 8  # members looked at for each of two reasons, eight at a time
_HINT = "Write it again (tarviz index SHARD --dali FILE), or take it away."


def places(url: URL) -> list[URL]:
    """Where the sidecar of a shard may lie: named as `tarviz index --dali` and as `wds2idx` name it.

    >>> places(URL("s3://data/train-0.v2.tar"))
    ['s3://data/train-0.v2.idx', 's3://data/train-0.idx']
    """
    folder, slash, name = url.rpartition("/")
    if not slash or without_query(url)[1] or name.lower().endswith(stores.SHARD_SUFFIXES[1:]):
        return []  # a signature is of one object, and no sidecar of a packed shard
    stems = (name.rpartition(".")[0], name[: name.find(".", 1)])
    return [URL(f"{folder}/{stem}.idx") for stem in dict.fromkeys(stems) if stem]


def members_of(stat: Stat) -> tuple[URL, Members] | None:
    """The sidecar of a shard far away, and the members it names; None where there is none or where it does not pay.

    `DataError` (`E_INDEX`) for one that does not fit the shard.
    """
    if stores.is_local(stat.url) or not stat.ranges or stat.size is None or stat.size < _WORTH or not stat.etag:
        return None
    for place in places(stat.url):
        text = _text(place)
        if text is not None and text.startswith("v1.2 "):  # earlier versions name no members
            members = _columns(text, stat.size, place)
            return (place, members) if _is_borne_out(stat, members, place) else None
    return None


def tail_of(stat: Stat, members: Members, place: URL) -> memoryview:
    """The bytes of the shard after the last member."""
    end, size = int(members.end[-1]), stat.size or 0
    if size - end > _TAIL:
        _refuse(place, f"it ends {size - end} bytes before the shard")
    return memoryview(stores.of(stat.url).read(stat.url, end, size - end, etag=stat.etag))


def hold(url: URL, index: ShardIndex, record: int, data: bytes, begin: int) -> None:
    """Hold a record that was read against the sidecar that said where it lies: `DataError` (`E_INDEX`) where that was not so."""
    assert index.claimed is not None
    low, high = int(index.rows[record]), int(index.rows[record + 1])
    if not _stand(url, index.members.part(low, high), data, begin):
        _refuse(URL(index.claimed), f"record {record} is not where it says, byte {begin}", shard=url)


def _text(place: URL) -> str | None:
    try:
        with stores.of(place).open(place) as stream:
            size = stream.stat.size
            if size is None or size > _LARGEST:
                return None
            return to_text(take(stream, size))
    except (StoreError, OSError):
        return None  # none there, or none for us


def _columns(text: str, size: int, place: URL) -> Members:
    """The members that a sidecar names, in order; each begins where the one before it ends."""
    try:
        rows = [member for record in parse_dali(text) for member in record]
    except DataError as error:
        _refuse(place, error.message.rstrip("."))
    if not rows:
        _refuse(place, "it names no member")
    for _, place_of, length, name in rows:
        if not (0 <= place_of <= size and 0 <= length <= size):
            _refuse(place, f"{name!r} cannot be {length} bytes from byte {place_of} on in a shard of {size}")
    names = [to_bytes(str(row[3])) for row in rows]
    data, sizes = (np.array([row[at] for row in rows], np.int64) for at in (1, 2))
    end = data + (sizes + BLOCK - 1) // BLOCK * BLOCK
    start: NDArray[np.int64] = np.concatenate([np.zeros(1, np.int64), end[:-1]])
    wrong = np.flatnonzero((data % BLOCK != 0) | (data < start + BLOCK) | (data + sizes > size))
    if len(wrong):
        row = int(wrong[0])
        _refuse(place, f"{rows[row][3]!r} cannot be {int(sizes[row])} bytes from byte {int(data[row])} on")
    column = np.empty(len(names), object)
    column[:] = names
    return Members(column, np.full(len(names), FILE, np.uint8), start, data, sizes, np.minimum(end, size))


def _is_borne_out(stat: Stat, members: Members, place: URL) -> bool:
    """Look at the headers of some members: the last, some over all the shard, and those before which there is most.

    False where the shard is packed: the sidecar is of what is in it.
    """
    gaps = members.data - members.start
    if int(gaps.max()) > _GAP:
        row = int(gaps.argmax())
        _refuse(place, f"it says nothing of {int(gaps[row])} bytes before {bytes(members.name[row])!r}")
    even = np.linspace(0, len(members) - 1, _SAMPLE).astype(int).tolist()
    rows = sorted({*even, *np.argsort(-gaps, kind="stable")[:_SAMPLE].tolist()})
    store = stores.of(stat.url)

    from concurrent.futures import ThreadPoolExecutor  # with logging it takes as long to import as this module's neighbours together

    def look(row: int) -> bytes:
        start = int(members.start[row])
        return store.read(stat.url, start, int(members.data[row]) - start, etag=stat.etag)

    with ThreadPoolExecutor(_SAMPLE, thread_name_prefix="tarviz-sidecar") as pool:
        heads = list(pool.map(look, rows))
    if kind(heads[0][:6]) is not None:
        return False
    for row, head in zip(rows, heads, strict=True):
        if not _stand(stat.url, members.part(row, row + 1), head, int(members.start[row])):
            _refuse(place, f"{bytes(members.name[row])!r} is not at byte {int(members.data[row])}")
    return True


def _stand(url: URL, members: Members, data: bytes, begin: int) -> bool:
    """Whether the files whose headers lie in `data`, from byte `begin` of the shard on, are just these."""
    scanner = Scanner(url, strict=False)
    scanner.at = begin
    found = scanner.scan(memoryview(data), begin)
    files = np.flatnonzero(found.type == FILE)
    if scanner.error is not None or found.sparse or len(files) != len(members):
        return False
    same = np.array_equal(found.data[files], members.data) and np.array_equal(found.size[files], members.size)
    return same and [bytes(name) for name in found.name[files]] == [bytes(name) for name in members.name]


def _refuse(place: URL, why: str, shard: str | None = None) -> NoReturn:
    raise DataError(f"the index {redact(place)} does not fit the shard: {why}.", code="E_INDEX", shard=shard, hint=_HINT)
