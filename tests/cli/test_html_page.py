"""HTML of the verbs: data stays data."""

from __future__ import annotations

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from tarviz.cli import html_page


@given(st.text())
def test_text_holds_no_markup_and_no_control_characters(value: str):
    shown = html_page.text(value)

    assert not set(shown) & set("<>\"'")
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_pictures_carry_their_bytes_and_kind():
    from PIL import Image

    for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP"):
        out = io.BytesIO()
        Image.new("RGB", (3, 3)).save(out, kind)

        assert f"data:image/{kind.lower()};base64," in html_page.picture(out.getvalue())


def test_lines_of_a_tile_without_a_picture_stay_lines():
    assert "user: &lt;b&gt;<br>assistant: 1</span>" in html_page.tile("user: <b>\nassistant: 1", title="a")


def test_the_title_of_a_tile_is_escaped():
    assert "&lt;b&gt;" in html_page.tile("x", title="<b>", lines=["<i>"])
    assert "<i>" not in html_page.tile("x", title="<b>", lines=["<i>"])


def test_code_keeps_its_lines():
    assert "<pre>a\nb &lt; c</pre>" == html_page.code("a\nb < c")


def test_tables_align_numbers():
    assert '<td class=right>12</td>' in html_page.table([("a", 12)], header=("x", "y"), right=[1])  # fmt: skip


def test_a_page_forbids_everything_but_its_own_pictures_and_style():
    page = html_page.page("<t>", "<p>x</p>")

    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert "<title>&lt;t&gt;</title>" in page
    assert "prefers-color-scheme: dark" in page
