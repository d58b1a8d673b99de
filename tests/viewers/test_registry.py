"""Which viewer shows what, HTML of hostile fields, and the corpus of hostile payloads."""

from __future__ import annotations

import io
import json
import os
import warnings
from types import SimpleNamespace

import pytest
from PIL import Image

from tarviz import viewers
from tarviz.model.errors import DataError, TarvizWarning, UsageError
from tarviz.viewers import Meta, registry
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
    assert "image" == viewers.choose("unknown", b"\0\0\0\x18ftypavif")
    assert "bytes" == viewers.choose("photo.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
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
        expected |= {"d12.npy": "E_DECODE", "d13.npy": "E_DECODE", "d18.json": "E_DECODE"}
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


class TestText:
    @pytest.mark.parametrize(
        ("head", "viewer"),
        [
            (b"two words", "text"),
            (b"a\tb\r\n\f\x1b[0m", "text"),
            (b"a\0b", "bytes"),
            (b"a\x08b", "bytes"),
            ("é".encode()[:1], "bytes"),
            (b"a" * 4095 + "é".encode(), "text"),
            (b"a" * 4094 + "€".encode(), "text"),
            (b"a" * 4090 + b"\xff" + b"a" * 9, "bytes"),
            (b"a" * 4092 + b"\xff" + b"a" * 9, "bytes"),
        ],
    )
    def test_bytes_of_no_known_name_are_text_where_they_read_so(self, head, viewer):
        assert viewer == viewers.choose("unknown", head)

    def test_the_last_two_parts_of_a_name_come_before_the_last(self):
        assert ["volume", "compressed", "cloud", "bytes"] == [
            viewers.choose(ext) for ext in ("T1.NII.GZ", "txt.gz", "a.velodyne.bin", "bin")
        ]


class TestForeign:
    """Viewers of other packages, here as modules of ours."""

    @pytest.fixture
    def plugin(self, monkeypatch):
        def add(name: str, **attributes: object) -> None:
            monkeypatch.setitem(registry._modules(), name, SimpleNamespace(**attributes))
            registry._by_extension.cache_clear()

        yield add
        registry._by_extension.cache_clear()

    def test_one_without_a_tile_has_its_summary_in_the_grid(self, plugin):
        plugin("mine", EXTENSIONS=("mine",), view=lambda blob, meta: viewers.Panel(f"{len(blob)} of mine"))

        assert "3 of mine" == viewers.tile(b"abc", Meta("mine"))
        assert ("3 of mine", "mine") == ((panel := viewers.view(b"abc", Meta("mine"))).summary, panel.viewer)

    def test_what_it_raises_is_a_note(self, plugin):
        def broken(blob: object, meta: object, size: int = 0) -> None:
            raise ZeroDivisionError("no")

        plugin("mine", EXTENSIONS=("mine",), view=broken, tile=broken)
        panel = viewers.view(b"abc", Meta("mine"))

        assert "E_DECODE: .mine cannot be decoded (ZeroDivisionError: no)." == panel.summary
        assert ("bad", [("size", "3 bytes")]) == (panel.blocks[0].tone, panel.facts)
        with pytest.raises(DataError, match="ZeroDivisionError"):
            viewers.tile(b"abc", Meta("mine"))

    def test_of_two_for_one_extension_the_first_by_name_has_it_with_a_warning(self, plugin, monkeypatch):
        plugin("zzz", EXTENSIONS=("npy",), view=lambda blob, meta: viewers.Panel("mine"))

        with pytest.warns(TarvizWarning, match=r"W_PLUGIN the viewers npy and zzz both show \.npy; npy does"):
            assert "npy" == viewers.choose("npy")
        monkeypatch.setenv("TARVIZ_OVERRIDE", "viewers.zzz")
        plugin("zzz", EXTENSIONS=("npy",), view=lambda blob, meta: viewers.Panel("mine"))
        assert "zzz" == viewers.choose("npy")

    @pytest.mark.parametrize("wrong", [{"MAGIC": b"GIF"}, {"claims": lambda head: head[9] == 1}])
    def test_one_that_cannot_tell_what_it_shows_leaves_it_to_the_others(self, plugin, wrong):
        plugin("aaa", view=lambda blob, meta: viewers.Panel("mine"), **wrong)

        assert ["image", "text", "bytes"] == [viewers.choose("unknown", head) for head in (b"GIF89a", b"hello", b"")]

    def test_one_that_gives_no_panel_is_a_note(self, plugin):
        plugin("mine", EXTENSIONS=("mine",), view=lambda blob, meta: None)
        panel = viewers.view(b"abc", Meta("mine"))

        assert ("mine", "E_DECODE") == (panel.viewer, panel.error.code)
