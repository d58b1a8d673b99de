"""`group="shard"`: a record is all members of its key, wherever in the shard they stand.

The index tells whether any key comes back; mostly none does, and the shard streams as ever. Where one does, or
where the shard can be read only once, the records are gathered in memory, as tar2tf and go-tfdata always did.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from tarviz import stores
from tarviz.formats.member_table import join
from tarviz.model.errors import DataError
from tarviz.model.types import URL, Block, to_text
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.read.shard import adjacent_blocks
from tarviz.read.shard_index import entered_blocks, shard_index

_RECORDS = 1024  # gathered records in a block


def gather(url: URL, options: ReadOptions, report: ReadReport, start: int, stop: int | None) -> Generator[Block, None, None]:
    """The blocks of one shard, keys gathered, in order of their first member."""
    index = shard_index(url, options, may_stream=stores.is_local(url)) if url != "-" else None
    if index is not None and not any(fault["code"] == "W_SPLIT_RECORD" for fault in index.warnings):
        yield from entered_blocks(url, options, report, start, stop)
        return
    held: dict[bytes, list[tuple[Block, int]]] = {}
    for block in adjacent_blocks(url, options, report, returning=True):
        report.records -= len(block)
        for row, key in enumerate(block.keys):
            for at in range(int(block.rows[row]), int(block.rows[row + 1])):
                held.setdefault(key, []).append((block, at))
    keys = list(held)[start:stop]
    for low in range(0, len(keys), _RECORDS):
        part = keys[low : low + _RECORDS]
        block = _block(url, part, [_settle(url, key, held[key], options) for key in part], start + low)
        report.records += len(block)
        yield block


def _settle(url: URL, key: bytes, rows: list[tuple[Block, int]], options: ReadOptions) -> list[tuple[Block, int]]:
    """One row per extension, as `duplicates` decides."""
    chosen: dict[str, tuple[Block, int]] = {}
    for block, at in rows:
        ext = block.exts[int(block.ext[at])]
        if ext in chosen:
            if options.duplicates == "error":
                raise DataError(
                    f"the field {ext!r} appears twice.",
                    code="E_DUP_FIELD",
                    shard=url,
                    key=to_text(key),
                    member=block.members[at].name,
                    offset=int(block.members.start[at]),
                    hint='Choose with duplicates="first" or duplicates="last".',
                )
            if options.duplicates == "first":
                continue
        chosen[ext] = block, at
    return list(chosen.values())


def _block(url: URL, keys: list[bytes], records: list[list[tuple[Block, int]]], first: int) -> Block:
    flat = [row for rows in records for row in rows]
    pieces = [block.data[int(block.offset[at]) : int(block.offset[at] + block.size[at])] for block, at in flat]
    size = np.array([len(piece) for piece in pieces], np.int64)
    exts = tuple(dict.fromkeys(block.exts[int(block.ext[at])] for block, at in flat))
    codes = {ext: code for code, ext in enumerate(exts)}
    return Block(
        shard=url,
        data=memoryview(b"".join(pieces)),
        base=0,
        first=first,
        keys=keys,
        rows=np.cumsum([0, *(len(rows) for rows in records)], dtype=np.int64),
        offset=np.cumsum(size) - size,
        size=size,
        ext=np.array([codes[block.exts[int(block.ext[at])]] for block, at in flat], np.int32),
        exts=exts,
        members=join([block.members.part(at, at + 1) for block, at in flat]),
    )
