"""Text: always as text, its encoding named."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Table


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

    def test_a_csv_is_a_table_above_its_text(self):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `table`)")
        panel = self.panel("csv", b"id,name\n1,cat\n2,dog\n")

        assert Table(("id", "name"), (("1", "cat"), ("2", "dog")), (0,)) == panel.blocks[0]
        assert "id,name\n1,cat\n2,dog\n" == panel.blocks[1].text
        assert ["Text"] == [type(block).__name__ for block in self.panel("csv", b"a,b\n1\n").blocks]
