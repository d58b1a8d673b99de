"""KITTI's lines, OpenImages' CSV, the lines of hOCR and ALTO: read as boxes, over a picture of another size, and as objects of a table."""

from __future__ import annotations

import io

import pytest
from PIL import Image

import tarviz
from tarviz.looks.shapes import Shape, read
from tarviz.looks.written import page
from tarviz.widgets.panes.overlays import Overlays

KITTI = b"Car 0.00 0 1.55 10.5 20 30 40.25 1.5 1.6 4 1 2 8 0.1 0.9\nDontCare -1 -1 -10 50 10 60 20 -1 -1 -1 -1000 -1000 -1000 -10 0.5\n"
OPEN = b"ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded\na,x,/m/01,1,0.1,0.3,0.2,0.4,0\na,x,/m/02,0.5,0,1,0,1,0\n"
HOCR = (
    b"<?xml version='1.0'?><html><div class='ocr_page' title='image \"a.png\"; bbox 0 0 200 100'><span class='ocr_line' "
    b"title=\"bbox 20 10 120 30; baseline 0 -5\"><span class='ocrx_word' title='bbox 20 10 50 30'>a</span></span></div></html>"
)
ALTO = (
    b'<?xml version="1.0"?><alto xmlns="http://www.loc.gov/standards/alto/ns-v3#"><Layout><Page ID="p" WIDTH="200" HEIGHT="100">'
    b'<TextLine HPOS="20" VPOS="10" WIDTH="100" HEIGHT="20"><String HPOS="20" VPOS="10" WIDTH="30" HEIGHT="20"/></TextLine>'
    b"</Page></Layout></alto>"
)
OPENED = [Shape("box", (10.0, 10.0, 20.0, 10.0), "/m/01", 1.0), Shape("box", (0.0, 0.0, 100.0, 50.0), "/m/02", 0.5)]
LINE = [Shape("box", (10.0, 5.0, 50.0, 10.0), "line")]


@pytest.mark.parametrize(
    ("ext", "payload", "shapes"),
    [
        (
            "label_2.txt",
            KITTI,
            [Shape("box", (10.5, 20.0, 19.5, 20.25), "Car", 0.9), Shape("box", (50.0, 10.0, 10.0, 10.0), "DontCare", 0.5)],
        ),
        ("label_2", KITTI.partition(b"\n")[0], [Shape("box", (10.5, 20.0, 19.5, 20.25), "Car", 0.9)]),
        ("csv", OPEN, OPENED),
        ("csv", OPEN.replace(b",", b", "), OPENED),
        ("csv", b'"' + OPEN.strip().replace(b",", b'","').replace(b"\n", b'"\r\n"') + b'"\r\n', OPENED),
        ("csv", b"\xef\xbb\xbf" + OPEN + b"a,x,/m/03,1,none,1,0,1,0\na,x,/m/03,1,nan,1,0,1,0\na,x\n\n", OPENED),
        ("csv", OPEN.replace(b",0.5,", b",?,"), [OPENED[0], Shape("box", (0.0, 0.0, 100.0, 50.0), "/m/02")]),
        ("hocr", HOCR, LINE),
        ("html", HOCR.partition(b"?>")[2], LINE),
        ("alto", ALTO, LINE),
        ("xml", ALTO, LINE),
        ("xml", ALTO.replace(b"<TextLine", b"<a:TextLine"), LINE),
    ],
)
def test_boxes_are_read_over_a_picture_and_as_objects(make, ext, payload, shapes):
    assert shapes == read(payload, ext, 100, 50)

    out = io.BytesIO()
    Image.new("L", (100, 50)).save(out, "PNG")
    rows = tarviz.table(make([("a", {"png": out.getvalue(), ext: payload})])).sql(
        "SELECT label, score, x0, y0, x1 - x0, y1 - y0 FROM objects"
    )

    assert [(each.name, each.score, *each.numbers) for each in shapes] == rows.fetchall()
    assert [ext] == Overlays().fields({"png": 9, ext: 9}, "png")


@pytest.mark.parametrize("ext", ["hocr", "alto"])
def test_the_page_is_the_size_where_there_is_no_picture(make, ext):
    rows = (
        tarviz.table(make([("a", {ext: HOCR if ext == "hocr" else ALTO})]))
        .sql("SELECT x0, y0, x1, y1, width, height FROM objects")
        .fetchall()
    )

    assert [(20.0, 10.0, 120.0, 30.0, 200, 100)] == rows


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('<Page WIDTH="200" HEIGHT="1">', (200, 1)),
        ('<Page WIDTH="200" HEIGHT="0">', None),
        ('<Page WIDTH="200">', None),
        ("<div class='ocr_page' title='bbox 10 20 12 60'>", (2, 40)),
        ("<div class='ocr_page'>", None),
    ],
)
def test_a_page_has_a_size_where_both_its_sides_are_said(text, size):
    assert size == page(text)


@pytest.mark.parametrize(
    ("ext", "payload"),
    [
        ("txt", b"Car 0.00 0 1.55 10.5 20 30 40.25 1.5 1.6 4 1 2 8"),
        ("txt", KITTI + b"a boat at sea\n"),
        ("csv", b"LabelName,XMin,XMax,YMin\na,0,1,0\n"),
        ("csv", b"LabelName,XMin,XMax,YMin,YMax\na,zero,1,0,1\n"),
        ("csv", b"x" * 200_000),
        ("txt", b"a caption\rof two\nlines"),
        ("html", b"<p class='line' title='bbox 1 2 3 4'>"),
        ("hocr", b"<span class='ocr_line' title='baseline 0 0'>"),
        ("alto", b'<TextLine HPOS="1" VPOS="2">'),
    ],
)
def test_what_is_none_of_them_has_no_boxes(ext, payload):
    assert [] == read(payload, ext, 100, 50)
