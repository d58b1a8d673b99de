"""Sizes of pictures, lengths of sound and film out of the first bytes of a file."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
from PIL import Image

from tarviz.table.making.headers import picture, sound


def test_a_webp_is_measured_by_its_first_bytes_alone():
    out = io.BytesIO()
    Image.new("RGB", (33, 21)).save(out, "WEBP")

    found = picture(out.getvalue()[:30], len(out.getvalue()))

    assert found is not None
    assert (33, 21) == found[:2]


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
            picture = np.full((16, 32, 3), 10 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())

    assert (0.5, 8000.0) == sound(out.getvalue(), len(out.getvalue()))
    assert b"RIFF" == film.getvalue()[:4]
    assert pytest.approx((2.0, 10.0)) == sound(film.getvalue(), len(film.getvalue()))
