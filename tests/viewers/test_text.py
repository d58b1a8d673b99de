"""Text: always as text, its encoding named."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, Table


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

    def test_its_lines_are_numbered(self):
        assert self.panel("txt", b"a\nb").blocks[0].numbered

    def test_only_svg_may_be_previewed_as_a_picture(self):
        assert "image/svg+xml" == self.panel("svg", self.good["svg"]).blocks[0].preview
        assert "" == self.panel("html", self.good["html"]).blocks[0].preview

    def test_a_csv_is_a_table_above_its_text(self):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `table`)")
        panel = self.panel("csv", b"id,name\n1,cat\n2,dog\n")

        assert Table(("id", "name"), (("1", "cat"), ("2", "dog")), (0,)) == panel.blocks[0]
        assert "id,name\n1,cat\n2,dog\n" == panel.blocks[1].text
        assert ["Text"] == [type(block).__name__ for block in self.panel("csv", b"a,b\n1\n").blocks]

    @pytest.mark.parametrize(
        ("text", "lines"),
        [("", "0 characters, 0 lines"), ("a", "1 character, 1 line"), ("a\n", "2 characters, 1 line"), ("a\nb", "3 characters, 2 lines")],
    )
    def test_characters_and_lines_are_counted(self, text, lines):
        assert lines == self.panel("txt", text.encode()).summary

    def test_64_kibibytes_are_shown_and_no_half_character(self):
        whole, more = self.panel("txt", b"a" * 65_535 + b"\n"), self.panel("txt", b"a" * 65_535 + "é".encode())

        assert (1, "65,536 characters, 1 line") == (len(whole.blocks), whole.summary)
        assert "65,535 characters, 1 line (first 64 kB)" == more.summary
        assert [("encoding", "UTF-8"), ("lines", "1+")] == more.facts
        assert "Cut: the first 65,536 of 65,537 bytes are shown." == more.blocks[1].text
        assert ("encoding", "not UTF-8 (byte 2), read as Latin-1") == self.panel("txt", b"ab\xc3").facts[0]
        assert ("encoding", "not UTF-8 (byte 65535), read as Latin-1") == self.panel("txt", b"a" * 65_535 + b"\xc3").facts[0]
        marked = self.panel("txt", b"\xef\xbb\xbf" + "é".encode() * 40_000)
        assert (("encoding", "UTF-8 with BOM"), 32_766) == (marked.facts[0], len(marked.blocks[0].text))

    def test_a_large_svg_is_text_alone(self):
        assert ("image/svg+xml", b"<svg>") == ((text := self.panel("txt", b"<svg>").blocks[0]).preview, bytes(text.data))
        assert ("", b"") == ((text := self.panel("svg", b"<svg>" + b" " * 65_536).blocks[0]).preview, text.data)

    def test_a_tile_is_the_first_200_characters(self):
        assert "x" * 200 == viewers.tile(b"  " + b"x" * 900, Meta("txt"), 96)
        assert "é" * 200 == viewers.tile("é".encode() * 900, Meta("txt"), 96)
        assert "a" + "é" * 199 == viewers.tile(b"a" + "é".encode() * 900, Meta("txt"), 96)
        assert "caf\xe9" == viewers.tile(b"caf\xe9", Meta("txt"))
