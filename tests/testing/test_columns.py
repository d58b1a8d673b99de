"""Columns hold what libraries of the world read of the same payloads; the contract fails for a column that does not."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.testing.columns import ColumnTests
from tarviz.testing.strategies import shard

pytest.importorskip("duckdb", reason="the extra `table`")

TEXTS = ("a boat at sea", "", "grün, 猫", "it's", "Boat", "007", "two\nlines")
TREES: tuple[dict[str, Any], ...] = ({"a": 3, "t": "x"}, {"a": -2}, {"a": None, "t": "ünï"}, {}, {"a": 2**53 + 1, "t": ""})


def picture(width: int, form: str = "PNG") -> bytes:
    Image.new("RGB", (width, 5)).save(file := io.BytesIO(), form)
    return file.getvalue()


def array(values: Any) -> bytes:
    np.save(file := io.BytesIO(), values)
    return file.getvalue()


PICTURES = (picture(7), picture(300, "JPEG"), picture(41, "WEBP"), b"no picture")
ARRAYS = (array(np.zeros(3, np.float32)), array(np.zeros((2, 2), ">i2")), b"no array")


def sound(seconds: float) -> bytes:
    data = bytes(round(8000 * seconds))
    return struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVEfmt ", 16, 1, 1, 8000, 8000, 1, 8, b"data", len(data)) + data


class Wrong(ColumnTests):
    ext = "cls"
    payloads = (b"3", b"4")
    expected = (3, 5)


def test_a_column_of_other_values_is_found(tmp_path: Path):
    path = tmp_path / "a.tar"
    path.write_bytes(shard([(f"k{at}", {"cls": payload}) for at, payload in enumerate(Wrong.payloads)]))

    with pytest.raises(AssertionError):
        Wrong().test_another_library_reads_the_same_values(path)
    with pytest.raises(AssertionError, match="cls <> 5"):
        Wrong().test_conditions_fit_what_duckdb_finds(path)


class TestNumbers(ColumnTests):
    ext = "cls"
    payloads = (b"3", b" 4\n", b"-1", b"9007199254740993")
    expected = tuple(map(int, payloads))


class TestTexts(ColumnTests):
    ext = "txt"
    payloads = tuple(text.encode() for text in TEXTS)
    expected = TEXTS


class TestLengths(ColumnTests):
    ext, column, streams = "txt", "txt.length", False
    payloads = TestTexts.payloads
    expected = tuple(map(len, TEXTS))


class TestNumbersOfJson(ColumnTests):
    ext, column = "json", "json.a"
    payloads = tuple(json.dumps(tree).encode() for tree in TREES)
    expected = tuple(tree.get("a") for tree in TREES)


@pytest.mark.matrix
class TestTextsOfJson(ColumnTests):
    ext, column = "json", "json.t"
    payloads = TestNumbersOfJson.payloads
    expected = tuple(tree.get("t") for tree in TREES)


class TestWidths(ColumnTests):
    ext, column = "png", "png.width"
    payloads = PICTURES
    expected = (*tuple(Image.open(io.BytesIO(each)).width for each in PICTURES[:3]), None)


@pytest.mark.matrix
class TestModes(ColumnTests):
    ext, column = "png", "png.mode"
    payloads = PICTURES
    expected = (*tuple(Image.open(io.BytesIO(each)).mode for each in PICTURES[:3]), None)


@pytest.mark.matrix
class TestDtypes(ColumnTests):
    ext, column = "npy", "npy.dtype"
    payloads = ARRAYS
    expected = (*tuple(np.load(io.BytesIO(each)).dtype.str for each in ARRAYS[:2]), None)


class TestDurations(ColumnTests):
    ext, column = "wav", "wav.duration"
    payloads = tuple(map(sound, (0.5, 1, 2.25)))

    @property
    def expected(self) -> tuple[float, ...]:  # type: ignore[override]
        soundfile = pytest.importorskip("soundfile", reason="the extra `media`")
        return tuple(soundfile.info(io.BytesIO(each)).duration for each in self.payloads)


@pytest.mark.matrix
class TestSizes(ColumnTests):
    ext, column = "bin", "bin.size"
    payloads = (b"", b"123", bytes(700))
    expected = tuple(map(len, payloads))
