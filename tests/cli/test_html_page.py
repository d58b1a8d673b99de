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


class TestWhole:
    """Every byte of what verbs put together."""

    def test_a_tile_is_a_picture_or_words_above_its_caption(self):
        assert (
            '<figure><div class="well"><img class="small" alt="a&lt;b" src="data:image/png;base64,iVBORw=="></div>'
            "<figcaption><b>a&lt;b</b>x<br>&lt;y<br></figcaption></figure>"
        ) == html_page.tile(b"\x89PNG", title="a<b", lines=["x", "<y"], small=True)
        for bad, tone in ((True, "bad"), (False, "soft")):
            assert (
                f'<figure><div class="well"><span class="{tone}">no<br>picture</span></div><figcaption><b>t</b></figcaption></figure>'
            ) == html_page.tile("no\npicture", title="t", bad=bad)

    def test_a_picture_says_its_kind_and_what_stands_for_it(self):
        assert '<img alt="&quot;" src="data:image/jpeg;base64,/9j/">' == html_page.picture(memoryview(b"\xff\xd8\xff"), alt='"')
        assert '<img alt="" src="data:image/png;base64,P28=">' == html_page.picture(b"?o")

    def test_a_sheet_and_a_table(self):
        assert '<div class="sheet" style="--tile: 148px"><i></i><b></b></div>' == html_page.sheet(["<i></i>", "<b></b>"])
        assert ("<table><tr><th>k</th><th class=right>v</th></tr><tr><td>&lt;a</td><td class=right>1</td></tr></table>") == html_page.table(
            [("<a", 1)], header=("k", "v"), right=[1]
        )
        assert "<table><tr><td class=right>1</td></tr></table>" == html_page.table([(1,)], right=[0])
        assert "<table></table>" == html_page.table([])

    def test_a_fragment_brings_its_style_and_a_page_more_of_it(self):
        assert f'<div class="tarviz"><style>{html_page.style()}</style><p></p></div>' == html_page.fragment("<p></p>")
        whole = html_page.page("t", "<p></p>", more="i{}")
        assert whole.startswith(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="'
        )
        assert f"<title>t</title><style>{html_page.style()}" in whole
        assert whole.endswith('i{}</style></head>\n<body><main class="tarviz"><p></p></main></body></html>\n')
        assert html_page.style() in whole
        assert ".tarviz" in html_page.style()
