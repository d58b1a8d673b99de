"""The columns of one shard: numbers and texts as they are written, what a picture's bytes say, beginnings while a shard is read."""

from __future__ import annotations

import hashlib
import io
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.read.stream import ReadOptions
from tarviz.table.columns import MAX_FIELDS, NAMES, Part
from tarviz.table.making import shard_columns
from tarviz.table.making.shard_columns import make_columns


def png(values: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.asarray(values)).save(out, "PNG")
    return out.getvalue()


def npy(value: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(value), allow_pickle=True)
    return out.getvalue()


def columns(path, *parts: Part, **options: object) -> dict[str, list[object]]:
    found = make_columns(str(path), ReadOptions(**options), set(parts))
    return {name: column.to_pylist() for name, column in found.columns.items()}


def test_the_names_of_a_shard_say_keys_numbers_and_sizes(make):
    path = make([("b/1", {"txt": b"abc", "cls": b"1"}), ("a", {"cls": b"22"}), ("gr\udcf6", {"txt": b""})])

    assert {
        "key": ["b/1", "a", "gr�"],
        "n": [0, 1, 2],
        "size": [4, 2, 0],
        "txt.size": [3, None, 0],
        "cls.size": [1, 2, None],
    } == columns(path, NAMES)


def test_classes_are_whole_numbers_else_numbers_else_texts(make):
    for payloads, values in [
        ([b"3\n", b" -4 ", b""], [3, -4, None]),
        ([b"3", b"2.5", b"  "], [3.0, 2.5, None]),
        ([b"3", b"cat", b"\xef\xbb\xbf4"], ["3", "cat", "4"]),
        ([b"9223372036854775808", b"1"], [9223372036854775808.0, 1.0]),
        (["ü".encode("utf-16"), b"\xff", b"1"], ["ü", "�", "1"]),
    ]:
        path = make([(f"{at}", {"cls": payload}) for at, payload in enumerate(payloads)])

        assert {"cls": values} == columns(path, Part("value", "cls"))


def test_a_text_loses_its_mark_and_nothing_else(make):
    texts = ["\ufeffcat ".encode(), " dog\n".encode("utf-16"), b"caf\xe9", b""]
    path = make([(f"{at}", {"txt": text}) for at, text in enumerate(texts)])

    assert {"txt": ["cat ", " dog\n", "caf�", ""], "txt.length": [4, 5, 4, 0]} == columns(
        path, Part("value", "txt"), Part("quality", "txt")
    )


def test_a_picture_has_its_grey_its_edges_and_its_check_sum(make):
    ramp = np.arange(72, dtype=np.uint8).reshape(8, 9) * 3
    ramp[1::2] = ramp[1::2, ::-1]
    wide = np.repeat(np.array([[0, 1000]], np.uint16), 8, axis=0)
    blobs = [png(ramp), b"none", png(wide)]
    found = columns(make([(f"{at}", {"png": blob}) for at, blob in enumerate(blobs)]), Part("content", "png"), Part("quality", "png"))

    assert [hashlib.blake2b(blob, digest_size=16).hexdigest() for blob in blobs] == found["png.checksum"]
    assert [True, False, True] == found["png.decodable"]
    assert [float(ramp.mean()), None, 127.5] == found["png.brightness"]
    assert [0xFF00FF00FF00FF00, None] == found["png.phash"][:2]
    assert [float(ramp.mean()), None] == found["png.mean"][:2]
    assert 0.0 == found["png.sharpness"][2]  # two columns have no inside
    assert [3 * 24 * 24, None, 3 * 24 * 24] == [each and len(each) for each in found["png:small"]]


def test_a_vector_is_the_one_array_of_numbers(make):
    safetensors = pytest.importorskip("safetensors.numpy")
    one, two = ({name: np.array([1, 2], np.float16) for name in names} for names in ("a", "ab"))
    arrays = [npy([[1, 2], [3, 4]]), npy(["x"]), npy(np.array([None], object)), b"none"]
    path = make([(f"{at}", {"npy": blob, "safetensors": safetensors.save(two if at else one)}) for at, blob in enumerate(arrays)])

    assert {
        "npy.vector": [[1, 2, 3, 4], None, None, None],
        "safetensors.vector": [[1, 2], None, None, None],
    } == columns(path, Part("vector", "npy"), Part("vector", "safetensors"))


def test_records_of_several_blocks_are_one_column_with_holes(make):
    path = make([(f"k{at}", {"bin": bytes(3000), **({"cls": b"%d" % at} if at in (2, 5) else {})}) for at in range(8)])
    found = columns(path, NAMES, Part("value", "cls"), block_size=4096)

    assert [None, None, 2, None, None, 5, None, None] == found["cls"]
    assert [*range(8)] == found["n"]
    assert [None, None, 1, None, None, 1, None, None] == found["cls.size"]


def test_of_very_many_fields_the_first_have_columns_and_one_more_is_known(make):
    found = make_columns(str(make([("a", {f"f{at}": b"x" for at in range(MAX_FIELDS + 9)})])), ReadOptions(), {NAMES})

    assert MAX_FIELDS + 4 - 1 == len(found.columns)
    assert MAX_FIELDS + 1 == len(found.exts)


def test_the_beginning_of_a_shard_is_shown_the_later_the_rarer(make, monkeypatch):
    path = make([(f"k{at}", {"bin": bytes(5000)}) for at in range(20)])
    clock, grown = itertools.count(), []
    monkeypatch.setattr(shard_columns, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    whole = make_columns(str(path), ReadOptions(block_size=4096), {NAMES, Part("content", "bin")}, grown=grown.append)
    begun = [part() for part in grown]

    assert 20 == whole.records
    assert [1, 2, 4, 8, 16] == [each.records for each in begun]
    assert [each.records for each in begun] == [len(each.columns["n"]) for each in begun]
    assert [[0], [0, 1]] == [each.columns["n"].to_pylist() for each in begun[:2]]


def test_a_damaged_shard_has_what_stands_before_the_damage(make):
    path = make([(f"k{at}", {"cls": b"%d" % at}) for at in range(4)])
    path.write_bytes(path.read_bytes()[:2300])
    found = make_columns(str(path), ReadOptions(strict=False), {NAMES, Part("value", "cls")})

    assert found.error is not None
    assert "E_TRUNCATED" == found.error["code"]
    assert found.records == len(found.columns["cls"])
    assert found.records == len(tarviz.table(path))


def jpeg(profile: int) -> bytes:
    """A picture of 33 × 21 whose size stands behind so many bytes."""
    out = io.BytesIO()
    Image.new("RGB", (33, 21)).save(out, "JPEG")
    segments = b"".join(
        b"\xff\xef" + (2 + len(part)).to_bytes(2, "big") + part for part in itertools.repeat(bytes(60_000), profile // 60_000)
    )
    return (
        out.getvalue()[:2]
        + segments
        + b"\xff\xef"
        + (2 + profile % 60_000).to_bytes(2, "big")
        + bytes(profile % 60_000)
        + out.getvalue()[2:]
    )


def test_what_stands_behind_the_first_kilobyte_is_read_too(make):
    for profile in [0, 900, 1000, 1018, 1024, 5000, 150_000]:
        sound = b"RIFF\0\0\0\0WAVELIST" + profile.to_bytes(4, "little") + bytes(profile + profile % 2)
        sound += b"fmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x80\x3e\0\0" + bytes(16_000)
        text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (7, 2), }" + b" " * profile
        array = b"\x93NUMPY\x02\0" + len(text).to_bytes(4, "little") + text + bytes(112)
        path = make([("a", {"jpg": jpeg(profile), "wav": sound, "npy": array}), ("b", {"cls": b"1"}), ("c", {"jpg": jpeg(0)[:9]})])

        assert {
            "jpg.width": [33, None, None],
            "jpg.height": [21, None, None],
            "jpg.mode": ["RGB", None, None],
            "wav.duration": [1.0, None, None],
            "wav.rate": [8000.0, None, None],
            "npy.dtype": ["<f8", None, None],
            "npy.shape": [[7, 2], None, None],
        } == columns(path, Part("head", "jpg"), Part("head", "wav"), Part("head", "npy"))


def test_a_picture_whose_size_stands_nowhere_within_two_mebibytes_has_none(make):
    path = make([("a", {"jpg": jpeg(1_000_000)}), ("b", {"jpg": jpeg(2_200_000)})])

    assert [33, None] == columns(path, Part("head", "jpg"))["jpg.width"]
