"""Sizes of pictures, lengths of sound and film, shapes of arrays out of the first bytes of a file."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.table.making.headers import LIMIT, READERS, array, picture, sound


def saved(form: str, mode: str = "RGB", **more: Any) -> bytes:
    out = io.BytesIO()
    Image.new(mode, (33, 21)).save(out, form, **more)
    return out.getvalue()


def read(kind: str, data: bytes) -> Any:
    """As a table reads: the first kilobyte, and as much more as is asked for."""
    most = 1024
    while isinstance(found := READERS[kind](data[:most], len(data)), int):
        assert most < found <= len(data)
        most = found
    return found


PICTURES = [
    ("JPEG", "RGB"), ("JPEG", "L"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "RGBA"), ("PNG", "L"), ("PNG", "LA"), ("PNG", "P"),
    ("PNG", "1"), ("PNG", "I;16"), ("GIF", "P"), ("BMP", "RGB"), ("TIFF", "L"), ("PPM", "RGB"), ("WEBP", "RGB"), ("WEBP", "RGBA"),
]  # fmt: skip


def test_a_picture_is_what_pil_opens():
    for form, mode in PICTURES:
        assert (33, 21, mode) == read("picture", saved(form, mode, **({"lossless": True} if form == "WEBP" else {})))


def test_webp_comes_in_three_forms():
    assert (33, 21, "RGB") == read("picture", saved("WEBP"))
    assert (33, 21, "RGB") == read("picture", saved("WEBP", exif=b"Exif\0\0"))  # the extended form
    assert (33, 21, "RGBA") == read("picture", saved("WEBP", "RGBA", exif=b"Exif\0\0"))
    wide = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0" + (70_000 - 1).to_bytes(3, "little") + (300 - 1).to_bytes(3, "little")
    assert (70_000, 300, "RGBA") == picture(wide, 500)
    for form in (b"VP8 ", b"VP8L", b"VP8X", b"none"):
        assert picture(b"RIFF\0\0\0\0WEBP" + form, 16) is None


def test_a_picture_by_its_bytes():
    for data, size, found in [
        (b"\xff\xd8\xff\xff\xff\xc0\0\x11\x08\0\x10\0\x20\x03", 99, (32, 16, "RGB")),  # FF may fill
        (b"\xff\xd8\xff\xff\xc0\0\x11\x08\0\x10\0\x20\x03", 99, (32, 16, "RGB")),
        (b"\xff\xd8\xff\xc2\0\x11\x08\0\x10\0\x20\x07", 99, (32, 16, "?")),
        (b"\xff\xd8\xff\xc4\0\x02\xff\xc0\0\x11\x08\x01\0\x02\x01\x01", 99, (513, 256, "L")),
        (b"\xff\xd8\xff\xda" + bytes(9), 99, None),  # pixels before a size
        (b"\xff\xd8\xff\xd9" + bytes(9), 99, None),
        (b"\xff\xd8no jpeg at all", 99, None),
        (b"\xff\xd8\xff\xe1\x10\0" + bytes(9), 9999, 4100 + 10),
        (b"\xff\xd8\xff\xe1\x10\0" + bytes(9), 4110, 4110),
        (b"\xff\xd8\xff\xe1\x10\0" + bytes(9), 4109, None),
        (b"GIF89a\x20\0\x10", 9, None),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20\0\0\0\x10\x08\x05\0\0\0", 99, None),  # a kind of colour that is none
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIDAT" + bytes(20), 99, None),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20", 99, None),
        (b"nothing known", 13, None),
        (b"nothing known", 500, 500),
        (b"nothing known", LIMIT + 9, LIMIT),
    ]:
        assert found == picture(data, size)


FMT = b"fmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"  # 8000 a second, 2 bytes each


def test_a_wave_by_its_chunks():
    for data, size, found in [
        (FMT + b"data\x80\x3e\0\0", 16_100, (1.0, 8000.0)),
        (FMT + b"data\xff\xff\xff\xff", 44 + 4000, (0.25, 8000.0)),  # a length that is none: as much as there is
        (b"LIST\x03\0\0\0abc\0" + FMT + b"data\x80\x3e\0\0", 16_100, (1.0, 8000.0)),  # of odd length
        (b"data\x80\x3e\0\0" + FMT, 16_100, None),
        (FMT + b"LIST\0\x10\0\0", 9999, 12 + 24 + 8 + 4096 + 24),
        (FMT + b"LIST\0\x10\0\0", 4000, None),
    ]:
        assert found == sound(b"RIFF\0\0\0\0WAVE" + data, size)


def test_a_flac_says_its_samples_and_another_sound_is_read_whole():
    info = (44_100 << 44 | 1 << 41 | 15 << 36 | 88_200).to_bytes(8, "big")

    assert (2.0, 44_100.0) == sound(b"fLaC" + bytes(14) + info, 500)
    assert sound(b"fLaC" + bytes(22), 500) is None
    unknown = b"fLaC" + bytes(14) + (44_100 << 44 | 1 << 41 | 15 << 36).to_bytes(8, "big")  # written into a pipe
    assert 500 == sound(unknown, 500)
    assert 500 == sound(b"ID3 something", 500)
    assert sound(b"ID3 something", 13) is None


@pytest.mark.parametrize(
    ("value", "found"), [(np.zeros((2, 3), "f4"), ("<f4", [2, 3])), (np.int64(5), ("<i8", [])), (np.zeros(4, ">u2"), (">u2", [4]))]
)
def test_an_array_by_its_header(value, found):
    out = io.BytesIO()
    np.save(out, value)

    assert found == array(out.getvalue()[:128], len(out.getvalue()))


def test_headers_of_arrays_may_be_long_or_none():
    begin = b"\x93NUMPY\x02\0"

    assert 12 + 70_000 == array(begin + (70_000).to_bytes(4, "little"), 99_999)
    assert 12 + 70_000 == array(begin + (70_000).to_bytes(4, "little"), 70_012)
    assert array(begin + (70_000).to_bytes(4, "little"), 70_011) is None
    assert array(begin + (2 * LIMIT).to_bytes(4, "little"), 9 * LIMIT) is None
    text = b"{'descr': '<f8', 'shape': (7,)}"
    assert ("<f8", [7]) == array(begin + len(text).to_bytes(4, "little") + text, 99)
    for wrong in (b"{'descr': '<f8'}", b"{'descr': '<f8', 'shape': 7}", b"not a dict", b"{'descr': '<f8', 'shape': ('a',)}"):
        assert array(begin + len(wrong).to_bytes(4, "little") + wrong, 99) is None
    assert array(b"\x93NUMPY\x01\0\x10", 99) is None
    assert array(b"no array at all", 99) is None


def test_a_picture_is_measured_by_its_first_bytes_alone():
    for data, enough in [
        (saved("JPEG")[:2] + b"\xff\xc0\0\x11\x08\0\x15\0\x21\x03", 12),
        (saved("PNG"), 29),
        (saved("GIF", "P"), 10),
        (saved("WEBP"), 30),
        (saved("WEBP", lossless=True), 25),
        (saved("WEBP", exif=b"Exif\0\0"), 30),
    ]:
        found = picture(data[:enough], len(data))

        assert isinstance(found, tuple)
        assert (33, 21) == found[:2]
        assert not isinstance(picture(data[: enough - 1], len(data)), tuple)


def test_a_wave_file_and_an_avi_are_both_riff_and_read_each_in_its_way():
    av = pytest.importorskip("av", reason="films are made by PyAV: pip install 'tarviz[media]'")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(2 * 4000))
    film = io.BytesIO()
    with av.open(film, "w", format="avi") as container:
        stream = container.add_stream("mjpeg", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 16, "yuvj420p"
        for number in range(20):
            frame = np.full((16, 32, 3), 10 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())

    assert (0.5, 8000.0) == sound(out.getvalue(), len(out.getvalue()))
    assert b"RIFF" == film.getvalue()[:4]
    assert pytest.approx((2.0, 10.0)) == sound(film.getvalue(), len(film.getvalue()))


@pytest.mark.parametrize("subtype", ["PCM_24", "FLOAT", "ULAW", "IMA_ADPCM", "MS_ADPCM", "GSM610", "G721_32"])
def test_a_wave_file_is_as_long_as_it_sounds_however_it_is_packed(subtype):
    soundfile = pytest.importorskip("soundfile", reason="soundfile writes them: pip install 'tarviz[media]'")
    out = io.BytesIO()
    soundfile.write(out, np.zeros(24_000), 8000, subtype, format="WAV")
    seconds, rate = read("sound", out.getvalue())

    assert 8000 == rate
    assert 3 == pytest.approx(seconds, rel=0.02)
