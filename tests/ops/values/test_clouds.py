"""Point clouds: PLY, PCD and lines, as they were written."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tarviz.model.errors import DataError
from tarviz.ops.values import clouds
from tarviz.ops.values.clouds import decode_pcd, decode_ply, decode_xyz
from tarviz.ops.values.payloads import decode_payload

PLACES = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
COLOURS = np.arange(12, dtype=np.uint8).reshape(4, 3)
ROWS = np.zeros(4, [(name, "<f4") for name in "xyz"] + [(name, "u1") for name in ("red", "green", "blue")])
for _at, _name in enumerate(ROWS.dtype.names):
    ROWS[_name] = PLACES[:, _at] if _at < 3 else COLOURS[:, _at - 3]


def ply(form: str, rows: np.ndarray = ROWS, before: str = "", head: bytes = b"", end: str = "\n") -> bytes:
    names = {"f": "float", "u": "uchar"}
    lines = ["ply", f"format {form} 1.0", "comment made here", *([before] if before else []), f"element vertex {len(rows)}"]
    lines += [f"property {names[rows.dtype[name].kind]} {name}" for name in rows.dtype.names]
    lines += ["element face 1", "property list uchar int vertex_indices", "end_header"]
    if form == "ascii":
        body = ("\n".join(" ".join(map(str, row)) for row in rows.tolist()) + "\n3 0 1 2\n").encode()
    else:
        order = ">" if "big" in form else "<"
        body = rows.astype(rows.dtype.newbyteorder(order)).tobytes() + struct.pack(f"{order}B3i", 3, 0, 1, 2)
    return (end.join(lines) + end).encode() + head + body


def pcd(form: str, body: bytes, fields: str = "x y z", size: str = "4 4 4", kind: str = "F F F") -> bytes:
    head = f"# .PCD v0.7\nVERSION 0.7\nFIELDS {fields}\nSIZE {size}\nTYPE {kind}\nCOUNT {' '.join('1' for _ in fields.split())}\n"
    return (head + f"WIDTH 4\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 4\nDATA {form}\n").encode() + body


class TestPly:
    @pytest.mark.parametrize("form", ["ascii", "binary_little_endian", "binary_big_endian"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_the_corners_come_by_property(self, form, end):
        found = decode_ply(ply(form, end=end))

        assert ["x", "y", "z", "red", "green", "blue"] == list(found)
        assert np.array_equal(PLACES, np.stack([found[name] for name in "xyz"], axis=1))
        assert np.array_equal(COLOURS[:, 1], found["green"])
        assert all(one.flags.writeable and one.flags.c_contiguous for one in found.values())

    def test_elements_before_the_corners_are_passed_over(self):
        blob = ply("binary_little_endian", before="element camera 2\nproperty float f\nproperty uchar n", head=bytes(10))

        assert np.array_equal(PLACES[:, 0], decode_ply(blob)["x"])

    @pytest.mark.parametrize(("old", "new"), [("\n", " \n"), (" ", "  "), (" ", "\t"), ("comment made here", "comment no end_header yet")])
    def test_its_header_is_read_by_words(self, old, new):
        head, _, body = ply("ascii").decode().partition("end_header\n")
        found = decode_ply((head.replace(old, new).replace("ply \n", "ply\n") + "end_header\n" + body).encode())

        assert ["x", "y", "z", "red", "green", "blue"] == list(found)
        assert np.array_equal(PLACES[:, 2], found["z"])

    def test_lists_before_the_points_are_named(self):
        blob = ply("binary_little_endian", before="element face 1\nproperty list uchar int vertex_indices")
        with pytest.raises(DataError, match="its property vertex_indices before the end of the points is a list uchar int") as caught:
            decode_payload("ply", blob)

        assert "vertex first" in caught.value.hint

    @pytest.mark.parametrize(
        "blob",
        [b"", b"ply\n", ply("ascii")[:-40], ply("binary_little_endian")[:260], ply("ascii").replace(b"vertex 4", b"vertex 999999999")],
    )
    def test_damage_is_named(self, blob):
        with pytest.raises(DataError) as caught:
            decode_payload("ply", blob)

        assert ("E_DECODE", "ply") == (caught.value.code, caught.value.details["field"])


class TestPcd:
    def test_ascii_and_binary_are_the_same(self):
        text = "\n".join(" ".join(map(str, row)) for row in PLACES.tolist()).encode()

        for blob in (pcd("ascii", text), pcd("binary", PLACES.tobytes())):
            assert np.array_equal(PLACES, np.stack(list(decode_pcd(blob).values()), axis=1))

    def test_compressed_points_stand_a_column_after_the_other(self):
        plain = np.concatenate([PLACES[:, 0], PLACES[:, 1], np.zeros(4, np.float32)]).astype("<f4").tobytes()
        literal = bytes([31]) + plain[:32]
        packed = literal + bytes([0, 0]) + bytes([7 << 5, 15 - 9, 0])  # one zero, then 15 more out of what was just written
        blob = pcd("binary_compressed", struct.pack("<II", len(packed), len(plain)) + packed)
        found = decode_pcd(blob)

        assert np.array_equal(PLACES[:, 1], found["y"])
        assert np.array_equal(np.zeros(4), found["z"])
        with pytest.raises(DataError):
            decode_pcd(blob.replace(packed, packed[:-1] + b"\xff"))

    @pytest.mark.parametrize(
        "blob", [b"", b"# .PCD v0.7\n", pcd("binary", PLACES.tobytes()[:-9]), pcd("binary_compressed", b"\1\0\0\0\2\0\0\0")]
    )
    def test_damage_is_named(self, blob):
        with pytest.raises(DataError, match=r"PCD|pcd|cut short"):
            decode_payload("pcd", blob)


def test_lines_of_numbers_are_points_and_those_of_a_molecule_are_not():
    assert ["x", "y", "z"] == list(decode_xyz(b"# x y z\n0 1 2\n3 4 5\n"))
    assert 4_500_000.34 == decode_xyz(b"500000.12 4500000.34 7\n")["y"][0]
    with pytest.raises(DataError):
        decode_payload("xyz", b"2\nwater\nO 0 0 0\nH 0 0 1\n")


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        (b"\x02abc", b"abc"),
        (b"\x00a\x20\x00", b"aaaa"),  # three more of what is one behind
        (b"\x02abc\x40\x02", b"abcabca"),
        (b"\x01ab\xe0\x03\x01", b"ab" * 7),  # a length of 7 has another byte
        (b"\x1f" + bytes(range(32)) + b"\x20\x1f", bytes(range(32)) + b"\0\1\2"),
    ],
)
def test_lzf_is_unpacked(packed, plain):
    assert plain == clouds._lzf(packed, len(plain))
    for size in (len(plain) - 1, len(plain) + 1):
        with pytest.raises(DataError, match="its compressed points are damaged"):
            clouds._lzf(packed, size)


def test_a_reference_before_the_beginning_is_damage():
    with pytest.raises(DataError, match="its compressed points are damaged"):
        clouds._lzf(b"\x00a\x20\x01", 4)


def test_a_far_reference_has_its_high_bits_in_the_control():
    far = bytes(range(256)) + b"x" * 44
    literal = b"".join(bytes([len(far[at : at + 32]) - 1]) + far[at : at + 32] for at in range(0, 300, 32))

    assert far + far[:3] == clouds._lzf(literal + bytes([0x20 | (299 >> 8), 299 & 255]), 303)


def test_columns_of_several_numbers_and_without_a_name():
    body = np.zeros(4, [("a", "<f4"), ("_1", "u1"), ("n", "<f4", 3)])
    body["n"][:, 2] = range(4)
    blob = pcd("binary", body.tobytes(), "a _ n", "4 1 4", "F U F").replace(b"COUNT 1 1 1", b"COUNT 1 1 3")

    found = decode_pcd(blob)
    assert ["a", "_1", "n"] == list(found)
    assert [0, 1, 2, 3] == found["n"][:, 2].tolist()
    assert [0, 1, 2, 3] == decode_pcd(blob.replace(b"POINTS 4\n", b""))["n"][:, 2].tolist()  # width times height


@pytest.mark.parametrize(("columns", "names"), [(3, "xyz"), (6, "xyzrgb"), (2, ""), (7, "")])
def test_lines_have_three_to_six_numbers(columns, names):
    line = " ".join(map(str, range(columns))).encode() + b"\n"
    if names:
        assert len(names) == len(decode_xyz(line * 2))
        assert 2 == decode_xyz(line * 2)["z"][0]
    else:
        with pytest.raises(DataError, match=f"it has {columns} columns"):
            decode_xyz(line)
