"""Which viewer shows what, HTML of hostile fields, and the corpus of hostile payloads."""

from __future__ import annotations

import io
import json
import os
import warnings

import pytest
from PIL import Image

from tarviz import viewers
from tarviz.model.errors import UsageError
from tarviz.viewers import Meta
from tarviz.viewers.html import field, text
from tests.conftest import DATA


def test_a_tile_is_of_160_pixels_unless_another_size_is_asked_for():
    out = io.BytesIO()
    Image.new("RGB", (400, 100)).save(out, "PNG")
    tiles = [viewers.tile(out.getvalue(), Meta("png")), viewers.tile(out.getvalue(), Meta("png"), 90)]

    assert [160, 90] == [max(Image.open(io.BytesIO(each)).size) for each in tiles if isinstance(each, bytes)]


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
    from tarviz.read import stream

    monkeypatch.delenv("TARVIZ_CANARY", raising=False)
    seen = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in stream.records(path, strict=False):
            for ext, blob in record.items():
                panel = viewers.view(blob, Meta(ext, record.key))
                seen[f"{record.key}.{ext}"] = panel
                json.dumps(panel.to_message()[0], allow_nan=False).encode()
    assert "TARVIZ_CANARY" not in os.environ
    if name.startswith("D00"):
        expected = {"d01.png": "E_IMAGE_TOO_LARGE", "d05.jpg": "E_IMAGE_TOO_LARGE", "d10.npy": "E_UNSAFE_DECODER", "d11.npy": "E_LIMIT"}
        expected |= {"d12.npy": "E_DECODE", "d13.npy": "E_DECODE", "d14.npz": "E_LIMIT", "d26.json.gz": "E_LIMIT", "d18.json": "E_DECODE"}
        expected |= {
            "d22.cls": "cat",
            "d23.cls": "E_DECODE",
            "d28.mp4": "E_DECODE",
            "d29.wav": "E_DECODE",
            "d30.ten": "E_DECODE",
            "d35.tif": "E_DECODE",
            "d21.cls": "7",
        }
        expected |= {"d06.jpg": "E_DECODE", "d07.jpg": "E_DECODE", "d02.png": "E_IMAGE_TOO_LARGE", "d09.bmp": "E_IMAGE_TOO_LARGE"}
        for member, begin in expected.items():
            assert seen[member].summary.startswith(begin), (member, seen[member].summary)
        assert "still readable" in str(seen["last.txt"])
