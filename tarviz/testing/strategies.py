"""Hypothesis strategies for tar shards, and the shards themselves as `tarfile` writes them (an oracle, not the engine)."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

Records = list[tuple[str, dict[str, bytes]]]

_LETTERS = st.characters(codec="utf-8", exclude_characters="./\0", exclude_categories=("Cs", "Cc"))
_PARTS = st.text(_LETTERS, min_size=1, max_size=12).filter(lambda text: not text.startswith("__"))
_EXTENSIONS = st.one_of(st.sampled_from(["jpg", "cls", "json", "seg.png", "txt"]), st.text("abcdefghij0123456789", min_size=1, max_size=20))
_PAYLOADS = st.one_of(st.binary(max_size=40), st.binary(min_size=500, max_size=1200), st.integers(0, 3).map(lambda n: b"\0" * 512 * n))


def keys() -> st.SearchStrategy[str]:
    """Keys as people write them, and as they do not: folders, dots in folders, any letter of Unicode, long ones."""
    folders = st.lists(st.one_of(_PARTS, _PARTS.map(lambda part: part + ".v2")), max_size=3)
    names = st.one_of(_PARTS, st.integers(0, 10**8).map(lambda n: f"n{n:08d}"), st.integers(90, 240).map(lambda n: "k" * n))
    return st.builds(lambda parts, name: "/".join([*parts, name]), folders, names)


def records(*, max_size: int = 8) -> st.SearchStrategy[Records]:
    """Records with keys of their own, (key, {extension: payload}) each, at least one field."""
    fields = st.dictionaries(_EXTENSIONS, _PAYLOADS, min_size=1, max_size=4)
    return st.lists(st.tuples(keys(), fields), max_size=max_size, unique_by=lambda record: record[0])


def shard(content: Iterable[tuple[str, Mapping[str, bytes]]], *, format: int = tarfile.USTAR_FORMAT, mtime: float = 0) -> bytes:
    """A tar of these records, written by Python's `tarfile` (`format` is one of its constants)."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format, encoding="utf-8", errors="surrogateescape") as tar:
        for key, fields in content:
            for ext, payload in fields.items():
                member = tarfile.TarInfo(f"{key}.{ext}")
                member.size, member.mtime = len(payload), mtime
                tar.addfile(member, io.BytesIO(payload))
    return file.getvalue()


def numbered_records(count: int, *, payload: bytes = b"x" * 600, prefix: str = "train/n") -> Records:
    """`count` records `train/n00000000` … with a `png` and a `cls` field."""
    return [(f"{prefix}{number:08d}", {"png": payload, "cls": b"%d" % (number % 10)}) for number in range(count)]
