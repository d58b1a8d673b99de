"""Every viewer keeps the contract; each kind shows what it promises; hostile payloads are refused by their headers."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import struct
import warnings
import wave
import zipfile
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from tarviz import viewers
from tarviz.errors import UsageError
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta
from tarviz.viewers._html import field, text
from tarviz.viewers._panel import node, node_text
from tarviz.viewers.pickle import opcodes
from tests.conftest import DATA


def encoded(kind: str, size: tuple[int, int] = (20, 10), mode: str = "RGB", **options: object) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 4), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, kind, **options)
    return out.getvalue()


def saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def zipped(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def sound(seconds: float = 0.1, width: int = 2) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(bytes(range(256)) * int(seconds * 8000 * 2 * width / 256))
    return out.getvalue()


def tenbin(*arrays: np.ndarray) -> bytes:
    out = b""
    for array in arrays:
        head = struct.pack("<8s8sq", array.dtype.str[1:].encode(), b"", array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
        for chunk in (head, array.tobytes()):
            out += b"~TenBin~" + struct.pack("<q", len(chunk)) + chunk + b"\0" * (-len(chunk) % 64)
    return out


def box(kind: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload) + 8) + kind + payload


class TestImage(ViewerTests):
    viewer = "image"
    good: ClassVar = {
        "jpg": encoded("JPEG"),
        "png": encoded("PNG", mode="RGBA"),
        "gif": encoded("GIF", mode="P"),
        "webp": encoded("WEBP"),
        "bmp": encoded("BMP"),
        "tif": encoded("TIFF"),
        "seg.png": encoded("PNG", mode="1"),
        "la.png": encoded("PNG", mode="LA"),
        "cmyk.jpg": encoded("JPEG", mode="CMYK"),
    }
    bad: ClassVar = {"jpg": b"", "png": b"<html><script>1</script>", "jpeg": encoded("JPEG")[:200]}

    def test_facts_say_size_mode_and_format(self):
        assert [("size", "20×10"), ("mode", "RGB"), ("format", "JPEG")] == self.panel("jpg", self.good["jpg"]).facts[:3]

    def test_what_a_browser_shows_travels_as_it_is(self):
        image = self.panel("png", self.good["png"]).blocks[0]

        assert self.good["png"] == bytes(image.data)
        assert "image/png" == image.mime

    def test_tiff_becomes_png(self):
        image = self.panel("tif", self.good["tif"]).blocks[0]

        assert bytes(image.data).startswith(b"\x89PNG")

    def test_a_large_picture_has_a_small_tile(self):
        tile = viewers.tile(encoded("JPEG", (500, 375)), Meta("jpg"), 96)

        assert (96, 72) == Image.open(io.BytesIO(tile)).size

    def test_orientation_is_shown_and_tiles_stand_upright(self):
        exif = Image.Exif()
        exif[0x0112] = 6
        blob = encoded("JPEG", (40, 20), exif=exif)

        assert ("EXIF orientation", "6") in self.panel("jpg", blob).facts
        assert (10, 20) == Image.open(io.BytesIO(viewers.tile(blob, Meta("jpg"), 20))).size

    def test_sixteen_bit_pictures_are_stretched(self):
        out = io.BytesIO()
        Image.fromarray((np.arange(400, dtype=np.uint16) * 100).reshape(20, 20)).save(out, "PNG")
        tile = Image.open(io.BytesIO(viewers.tile(out.getvalue(), Meta("png"), 96)))

        assert (0, 255) == tile.getextrema()


class TestText(ViewerTests):
    viewer = "text"
    good: ClassVar = {
        "txt": "Zeile 1\nשלום\n🎉".encode(),
        "md": b"# heading <script>",
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
        "html": b"<script>window.tarviz_pwned=1</script>",
        "csv": b"a,b\n1,2\n",
    }

    def test_encodings_are_named(self):
        names = [dict(self.panel("txt", blob).facts)["encoding"] for blob in (b"a", b"\xef\xbb\xbfhi", "hü".encode("utf-16"), b"caf\xe9")]

        assert ["UTF-8", "UTF-8 with BOM", "UTF-16", "not UTF-8 (byte 3), read as Latin-1"] == names

    def test_long_text_is_cut_with_a_remark(self):
        panel = self.panel("txt", "é".encode() * 50_000)

        assert 65_536 >= len(panel.blocks[0].text.encode())
        assert "Cut" in panel.blocks[1].text

    def test_only_svg_may_be_previewed_as_a_picture(self):
        assert "image/svg+xml" == self.panel("svg", self.good["svg"]).blocks[0].preview
        assert "" == self.panel("html", self.good["html"]).blocks[0].preview


class TestJson(ViewerTests):
    viewer = "json"
    good: ClassVar = {
        "json": b'{"a": [1, 2.50, null, true, "x"], "a": 12345678901234567890, "n": NaN, "i": -Infinity}',
        "jsonl": b'{"a": 1}\n\nbroken\n{"a": 2}\n',
    }
    bad: ClassVar = {"json": b"{", "geojson": b"[" * 100_000}

    def test_digits_and_repeated_names_stay(self):
        tree = self.panel("json", self.good["json"]).blocks[0]

        assert '{"a": [1, 2.50, null, true, "x"], "a": 12345678901234567890, "n": NaN, "i": -Infinity}' == node_text(tree.root)

    def test_a_number_of_5000_digits_is_cut(self):
        assert "(5000 digits)" in str(self.panel("json", b'{"b": ' + b"9" * 5000 + b"}"))

    def test_bad_lines_are_counted(self):
        assert "1 of 3 lines are no JSON." == self.panel("jsonl", self.good["jsonl"]).blocks[1].text

    def test_utf16_is_read(self):
        assert '{"ü": 1}' == self.panel("json", '{"ü": 1}'.encode("utf-16")).summary

    def test_wide_trees_are_cut_and_say_how_much(self):
        root = node(list(range(20_000)))

        assert 20_000 == len(root[1]) + root[2]
        assert root[2] > 10_000


class TestCls(ViewerTests):
    viewer = "cls"
    good: ClassVar = {"cls": b" 7\n", "index": b"-3", "label": b"cat"}
    bad: ClassVar = {"cls": b"cat", "cls2": b"9" * 10_000, "count": b"1_0"}

    def test_the_name_and_the_place_in_the_histogram_are_shown(self):
        meta = Meta("cls", options={"classes": ["cat", "dog"], "histogram": {"1": 30, "0": 10}})
        panel = viewers.view(b"1", meta)

        assert "1 dog" == panel.summary
        assert ("records of this class", "30 of 40 sampled") in panel.facts


class TestNpy(ViewerTests):
    viewer = "npy"
    good: ClassVar = {
        "npy": saved(np.arange(12.0).reshape(3, 4)),
        "line.npy": saved(np.arange(5000)),
        "rgb.npy": saved(np.zeros((8, 8, 3), np.uint8)),
        "volume.npy": saved(np.zeros((5, 4, 3, 2), np.float32)),
        "scalar.npy": saved(np.float64(3)),
        "empty.npy": saved(np.zeros((0, 3))),
        "text.npy": saved(np.array(["a", "b"])),
        "rows.npy": saved(np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])),
        "nan.npy": saved(np.array([[np.nan, np.inf], [1, 2]])),
        "complex.npy": saved(np.ones((3, 3), np.complex64)),
        "bool.npy": saved(np.ones((3, 3), bool)),
        "npz": zipped(a=np.eye(4), b=np.arange(3)),
        "ten": tenbin(np.eye(3, dtype=np.float32), np.arange(4)),
    }
    bad: ClassVar = {"npy": b"\x93NUMPY\x01\x00v\x00", "npz": b"PK\x03\x04 cut", "ten": b"~TenBin~" + struct.pack("<q", 1 << 60)}

    def test_statistics_count_nans(self):
        assert {"min": "1", "max": "inf", "NaN": "1"}.items() <= dict(self.panel("npy", self.good["nan.npy"]).facts).items()

    def test_fortran_order_is_kept(self):
        array = np.asfortranarray(np.arange(6.0).reshape(2, 3))

        assert ("shape", "2×3") in self.panel("npy", saved(array)).facts

    def test_slices_are_chosen_by_the_reader(self):
        volume = np.arange(2 * 3 * 2 * 2, dtype=float).reshape(2, 3, 2, 2)
        panel = viewers.view(saved(volume), Meta("npy", options={"slice": [1, 99]}))

        assert [(1, 1), (2, 2)] == [(control.value, control.high) for control in panel.controls]
        assert "20 dark … 23 bright" == panel.blocks[0].label

    def test_arrays_of_an_npz_are_chosen_by_name(self):
        panel = viewers.view(self.good["npz"], Meta("npz", options={"array": "b"}))

        assert "2 arrays, b: int64[3]" == panel.summary

    def test_objects_are_never_unpickled(self):
        class Canary:
            def __reduce__(self):
                return os.putenv, ("TARVIZ_CANARY", "set")

        panel = self.panel("npy", saved(np.array([Canary()], dtype=object)))

        assert panel.summary.startswith("E_UNSAFE_DECODER")

    def test_a_shape_larger_than_the_member_is_refused_by_header(self):
        blob = saved(np.zeros(4)).replace(b"(4,), }            ", b"(999999999999,), } "[:19])

        assert self.panel("npy", blob).summary.startswith("E_LIMIT")

    def test_the_formats_of_webdataset_agree(self):
        tenbin_ = pytest.importorskip("webdataset.tenbin", reason="webdataset is the oracle for .ten")
        blob = bytes(tenbin_.encode_buffer([np.arange(6, dtype=np.int32).reshape(2, 3)]))

        assert "int32[2, 3]" == self.panel("ten", blob).summary


class TestAudio(ViewerTests):
    viewer = "audio"
    good: ClassVar = {
        "wav": sound(),
        "low.wav": sound(width=1),
        "flac": b"fLaC" + bytes(40),
        "mp3": b"ID3" + bytes(40),
        "ogg": b"OggS" + bytes(40),
    }
    bad: ClassVar = {"wav": b"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00", "flac": b"<html>"}

    def test_length_and_waveform_are_shown(self):
        panel = self.panel("wav", sound(1.0))

        assert "1.00 s, 8000 Hz, 2 ch" == panel.summary
        assert "envelope" == panel.blocks[1].kind


class TestVideo(ViewerTests):
    viewer = "video"
    good: ClassVar = {"mp4": box(b"ftyp", b"isom") + box(b"mdat", bytes(32)), "webm": b"\x1aE\xdf\xa3" + bytes(20)}
    bad: ClassVar = {"mp4": b"\x00\x00\x00\x18ftypmp42\xff\xff", "webm": b"<html>"}


class TestCompressed(ViewerTests):
    viewer = "compressed"
    good: ClassVar = {
        "json.gz": gzip.compress(b'{"a": 1}'),
        "txt.bz2": bz2.compress(b"text"),
        "txt.xz": lzma.compress(b"text"),
        "png.gz": gzip.compress(encoded("PNG")),
        "gz": gzip.compress(b"two ") + gzip.compress(b"members"),
    }
    bad: ClassVar = {"txt.gz": gzip.compress(b"text" * 99)[:-9], "gz": b"plain", "xz": b"\xfd7zXZ\0"}

    def test_what_is_inside_is_shown(self):
        panel = self.panel("json.gz", self.good["json.gz"])

        assert 'gzip: {"a": 1}' == panel.summary
        assert ("compression", "gzip, 28 → 8 bytes") == panel.facts[0]

    def test_zstd_is_unpacked(self):
        zstandard = pytest.importorskip("zstandard", reason="zstandard is in the extra `fast`")

        assert "zstd: 4 characters, 1 line" == self.panel("txt.zst", zstandard.compress(b"text")).summary

    def test_a_bomb_is_refused_while_it_unpacks(self):
        assert self.panel("gz", gzip.compress(bytes(64 << 20))).summary.startswith("E_LIMIT")

    def test_nothing_is_unpacked_twice(self):
        assert "twice compressed" in self.panel("txt.gz.gz", gzip.compress(gzip.compress(b"text"))).summary


class Canary:
    """A payload that would show itself if a pickle were loaded."""

    def __reduce__(self):
        return os.putenv, ("TARVIZ_CANARY", "set")


class TestPickle(ViewerTests):
    viewer = "pickle"
    good: ClassVar = {"pkl": pickle.dumps({"a": [1, 2]}), "pth": pickle.dumps(Canary()), "pyd": b"\x80\x04."}

    def test_it_says_that_it_was_not_executed(self):
        assert "not executed" in self.panel("pkl", self.good["pkl"]).blocks[0].text

    def test_opcodes_are_shown_on_request_only(self):
        shown = viewers.view(self.good["pkl"], Meta("pkl", options={"opcodes": "show"}))

        assert "PROTO" in shown.blocks[1].text
        assert "PROTO" not in str(self.panel("pkl", self.good["pkl"]))

    def test_opcodes_of_a_long_or_broken_pickle_are_cut(self):
        assert "cut here" in opcodes(memoryview(pickle.dumps(list(range(100_000)))))
        assert "unreadable here" in opcodes(memoryview(b"\x80\x04\xff"))

    def test_a_torch_archive_is_listed(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("model/data.pkl", b"x")

        assert (("model/data.pkl", "1"),) == self.panel("pth", out.getvalue()).blocks[1].rows


class TestBytes(ViewerTests):
    viewer = "bytes"
    good: ClassVar = {"bin": bytes(range(256)) * 40, "msgpack": b"\x81\xa1a\x01", "dat": b"%PDF-1.4"}

    def test_entropy_tells_random_from_plain(self):
        panel = self.panel("bin", np.random.default_rng(0).bytes(4096) + bytes(4096))
        values = dict(panel.blocks[0].series)["bits per byte"]

        assert values[0] > 7
        assert 0 == values[-1]

    def test_bytes_are_shown_as_numbers_on_request(self):
        panel = viewers.view(struct.pack("<4f", 1, 2, 3, 4), Meta("bin", options={"numbers": "<f4"}))

        assert (1.0, 2.0, 3.0, 4.0) == panel.blocks[0].series[0][1]


def test_a_viewer_is_chosen_by_name_then_extension_then_bytes_then_text():
    assert "bytes" == viewers.choose("jpg", as_="bytes")
    assert "image" == viewers.choose("jpg", b"text")
    assert "image" == viewers.choose("unknown", b"RIFF\0\0\0\0WEBP")
    assert "audio" == viewers.choose("unknown", b"RIFF\0\0\0\0WAVE")
    assert "video" == viewers.choose("unknown", b"\0\0\0\x18ftypmp42")
    assert "pickle" == viewers.choose("unknown", b"\x80\x04\x95")
    assert "compressed" == viewers.choose("unknown", b"\x1f\x8b\x08")
    assert "text" == viewers.choose("unknown", b"hello")
    assert "text" == viewers.choose("unknown", ("é" * 3000).encode()[:4096])
    assert "bytes" == viewers.choose("unknown", b"\x00\xff\xfe")
    assert "bytes" == viewers.choose("unknown", b"")


def test_an_unknown_viewer_is_refused_by_name():
    with pytest.raises(UsageError, match="picture"):
        viewers.view(b"", Meta("jpg"), as_="picture")


def test_html_of_hostile_fields_holds_no_markup_of_theirs():
    shown = field("<b>x", b"<script>alert(1)</script>", "key") + text("\u202e<img src=x onerror=y>")

    assert "<script" not in shown
    assert "<img src=x" not in shown
    assert "\u202e" not in shown
    assert "\\u202e" in shown


@pytest.mark.parametrize("name", ["D00-hostile-payloads", "S13-xss"])
def test_every_hostile_payload_is_shown_or_refused(name, monkeypatch):
    path = DATA / "corpora" / "generated" / f"{name}.tar"
    if not path.is_file():
        pytest.skip("the corpus is not here")
    from tarviz import reading

    monkeypatch.delenv("TARVIZ_CANARY", raising=False)
    seen = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in reading.records(path, strict=False):
            for ext, blob in record.items():
                panel = viewers.view(blob, Meta(ext, record.key))
                seen[f"{record.key}.{ext}"] = panel
                json.dumps(panel.to_message()[0], allow_nan=False).encode()
    assert "TARVIZ_CANARY" not in os.environ
    if name.startswith("D00"):
        expected = {"d01.png": "E_IMAGE_TOO_LARGE", "d05.jpg": "E_IMAGE_TOO_LARGE", "d10.npy": "E_UNSAFE_DECODER", "d11.npy": "E_LIMIT"}
        expected |= {"d12.npy": "E_DECODE", "d13.npy": "E_DECODE", "d14.npz": "E_LIMIT", "d26.json.gz": "E_LIMIT", "d18.json": "E_DECODE"}
        expected |= {
            "d22.cls": "E_DECODE",
            "d28.mp4": "E_DECODE",
            "d29.wav": "E_DECODE",
            "d30.ten": "E_LIMIT",
            "d35.tif": "E_DECODE",
            "d21.cls": "7",
        }
        expected |= {"d06.jpg": "E_DECODE", "d07.jpg": "E_DECODE", "d02.png": "E_IMAGE_TOO_LARGE", "d09.bmp": "E_IMAGE_TOO_LARGE"}
        for member, begin in expected.items():
            assert seen[member].summary.startswith(begin), (member, seen[member].summary)
        assert "still readable" in str(seen["last.txt"])
