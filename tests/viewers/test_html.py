"""What notebooks show: records, indexes, tables, chains and pipelines as HTML, within limits."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.viewers import html


def png(side: int = 4) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (side, side), (200, 0, 0)).save(out, "PNG")
    return out.getvalue()


def plain(text: str) -> str:
    """Without tags and data of pictures, a tag being a space."""
    return " ".join(re.sub("<[^>]*>", " ", re.sub(r'"data:[^"]*"', "", text)).split())


def shown(found: object) -> str:
    return plain(found._repr_mimebundle_()["text/html"])  # type: ignore[attr-defined]


@pytest.fixture
def path(make) -> Path:
    return make([(f"k{at:02}", {"png": png(), "txt": b"<b>%d" % at}) for at in range(12)])


def test_the_last_record_of_a_shard_that_lacks_its_end_is_shown(make):
    path = make([(key, {"txt": key.encode()}) for key in ("one", "two")])
    path.write_bytes((data := path.read_bytes().rstrip(b"\0")) + bytes(-len(data) % 512))

    assert shown(tarviz.records(path)).endswith("txt 3 B one txt 3 B two")


class TestField:
    def test_a_picture_a_text_and_a_reason(self):
        assert f"png {len(png())} B" == plain(html.field("png", png()))
        assert 'src="data:image/png;base64,' in html.field("png", png())
        assert "txt 2 B hi" == plain(html.field("txt", b"hi"))
        assert "jpg 4 B E_DECODE: .jpg is not a picture: no picture format PIL knows, or cut short." == plain(html.field("jpg", b"none"))

    def test_what_is_too_large_is_not_decoded(self):
        assert "too large for this preview" not in html.field("txt", b"x" * (4 << 20))
        assert "txt 4.19 MB too large for this preview" == plain(html.field("txt", b"x" * ((4 << 20) + 1)))

    def test_a_text_is_cut_and_its_marks_are_spelled_out(self):
        assert "a" * 400 == html.text("a" * 400)
        assert "a" * 399 + "…" == html.text("a" * 401)
        assert "&lt;b&gt; \\u202e" == html.text("<b> \u202e")

    @pytest.mark.parametrize(("form", "kind"), [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp")])
    def test_a_picture_is_told_by_its_bytes(self, form, kind):
        out = io.BytesIO()
        Image.new("RGB", (4, 4)).save(out, form)

        assert f'<img alt="x&quot;" style="max-width:160px;max-height:160px" src="data:image/{kind};base64,' in html.picture(
            out.getvalue(), 'x"'
        )


def test_a_table_has_its_numbers_to_the_right():
    found = html.table([{"a": "<1>", "n": 2}, {"a": "", "n": 30}], right=("n",))

    assert "" == html.table([])
    assert "a n &lt;1&gt; 2 30" == plain(found)
    assert 3 == found.count("text-align:right") == found.count("text-align:left")
    assert 2 == found.count("</td></tr>")


class TestWhole:
    def test_a_record_has_a_card_for_each_field(self, path):
        record = next(iter(tarviz.records(path)))
        cards = shown(record)

        assert cards.startswith("k00 record 0 of ")
        assert cards.endswith("txt 4 B &lt;b&gt;0")
        assert "may be incomplete" not in cards

    def test_of_very_many_fields_and_bytes_the_first_are_shown(self, make):
        noise = np.random.default_rng(0).integers(0, 255, (160, 160, 3), np.uint8)
        out = io.BytesIO()
        Image.fromarray(noise).save(out, "PNG")
        many = shown(next(iter(tarviz.records(make([("a", {f"f{at:02}": b"x" for at in range(20)})])))))
        large = shown(next(iter(tarviz.records(make([("a", {f"f{at}.png": out.getvalue() for at in range(9)})], "b.tar")))))

        assert ["f00", "f11"] == [name for name in ("f00", "f11", "f12") if name in many]
        assert 1 == large.count("cut here: this preview stays below 64 kB")
        assert "cut here" not in many

    def test_an_index_names_its_shards_and_shows_the_first_records(self, make, path):
        found = shown(tarviz.index(path))

        assert found.startswith(f"12 records png 12, txt 12 shard records {path} 12 png ")
        assert 6 == found.count(f"png {len(png())} B")
        others = [make([("a", {"txt": b"x"})], f"{at:02}.tar") for at in range(12)]
        many = shown(tarviz.index(others))
        assert "and 2 more shards" in many
        assert others[9].name in many
        assert others[10].name not in many
        assert "more shards" not in shown(tarviz.index(others[:10]))

    def test_records_that_are_read_are_not_used_up_by_looking(self, make, path):
        run = tarviz.records(path)
        found = shown(run)

        assert found.startswith(f"records so far {run.report} shard {path} png {len(png())} B")
        assert 6 == found.count(f"png {len(png())} B")
        assert 12 == len(list(run))
        assert "and 1 more shards" in shown(tarviz.records([make([("a", {"txt": b"x"})], f"{at:02}.tar") for at in range(11)]))

    def test_a_table_shows_the_columns_made_so_far(self, make):
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
        table = tarviz.table(make([(f"k{at}", {"cls": b"%d" % at, 'a"b': b"x"}) for at in range(9)]))
        found = shown(table)

        assert found.startswith("9 records in 1 shard(s) key shard n size cls.size a&quot;b.size k0 ")
        assert found.endswith("made when they are asked for: cls, cls.checksum, a&quot;b.checksum")
        assert "k7" in found
        assert "k8" not in found

    def test_a_chain_and_a_pipeline_say_what_they_do(self, make, path):
        chain = shown(tarviz.Pipeline(str(path), "decode(png)|resize(png, (2, 2))").chain)
        assert chain.startswith("chain decode(png)|resize(png, (2, 2)) op does decode(png) ")
        pipeline = tarviz.Pipeline([str(path)] * 7, "decode(png)", select=("png", "txt"), seed=3)
        found = shown(pipeline)

        assert found.startswith(f"pipeline value shards {path} {path} {path} {path} {path} and 2 more chain decode(png) yields ")
        assert "seed 3 schema (uint8[" in found
        assert "none: raw records" in shown(tarviz.Pipeline(str(path)))
        assert "seed" not in shown(tarviz.Pipeline(str(path)))

    def test_what_went_away_is_said_in_plain_text(self, path):
        index = tarviz.index(path)
        path.unlink()
        bundle = index._repr_mimebundle_()

        assert ["text/plain"] == list(bundle)
        assert repr(index) == bundle["text/plain"].splitlines()[0]


def test_a_packed_field_is_shown_as_what_is_inside():
    assert "txt.gz 22 B hi" == plain(html.field("txt.gz", gzip.compress(b"hi", mtime=0)))
