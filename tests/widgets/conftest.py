"""Small shards for the browser's tests."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from PIL import Image


def tar(path: Path, records: Iterable[tuple[str, dict[str, bytes]]], *, mode: str = "w") -> Path:
    """A tar with a member for each field of each (key, {extension: payload})."""
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as file:
        for key, fields in records:
            for ext, payload in fields.items():
                member = tarfile.TarInfo(f"{key}.{ext}")
                member.size = len(payload)
                file.addfile(member, io.BytesIO(payload))
    return path


def png(colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (12, 8)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def records(first: int, count: int) -> list[tuple[str, dict[str, bytes]]]:
    """Pictures of one colour; every seventh record has no json, class is number modulo 3."""
    found = []
    for number in range(first, first + count):
        fields = {"png": png((number % 256, 80, 120)), "cls": str(number % 3).encode()}
        if number % 7:
            fields["json"] = json.dumps({"w": number * 10, "label": ["cat", "dog", "owl"][number % 3], "meta": {"n": number}}).encode()
        found.append((f"set/n{number:06d}", fields))
    return found


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """Three shards of 20 records each, `s-0.tar` … `s-2.tar`."""
    return [tar(tmp_path / f"s-{number}.tar", records(number * 20, 20)) for number in range(3)]
