"""Pascal VOC's XML, read by its few tags."""

from __future__ import annotations

import pytest

from tarviz.looks import voc


def box(*numbers: object) -> str:
    return "<bndbox>" + "".join(f"<{name}> {n} </{name}>" for name, n in zip(voc.CORNERS, numbers, strict=False)) + "</bndbox>"


def test_objects_have_their_own_name_and_box():
    text = f"<object><name> a &amp; b\n</name><part><name>head</name>{box(9, 9, 9, 9)}</part>{box(1, 2.5, 3, 4e1)}</object>"
    text += f"<object>{box(5, 6, 7, 8)}</object><object><name>none</name></object><object><name>cut</name>{box(1, 2, 3)}</object>"
    text += f"<object><name>odd</name>{box(1, 2, 3, 'x')}</object><object><name>endless</name>{box(1, 2, 3, 'inf')}</object>"
    text += f"<object><name>none</name>{box('nan', 2, 3, 4)}</object>"

    assert [("a & b", (1, 2.5, 3, 40)), ("", (5, 6, 7, 8))] == voc.objects(text)


@pytest.mark.parametrize(
    ("width", "height", "size", "scale"),
    [
        (200, 50, (200, 50), (0.5, 2)),
        ("200.0", " 50 ", (200, 50), (0.5, 2)),
        (1, 1, (1, 1), (100, 100)),
        (0, 50, None, (1, 1)),
        (200, -50, None, (1, 1)),
        ("nan", 50, None, (1, 1)),
        ("wide", 50, None, (1, 1)),
    ],
)
def test_the_size_is_what_the_file_says_where_it_says_one(width, height, size, scale):
    text = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"

    assert size == voc.size(text)
    assert scale == voc.scale(text, 100, 100)
    assert (voc.size(""), voc.scale("", 100, 100)) == (None, (1, 1))
