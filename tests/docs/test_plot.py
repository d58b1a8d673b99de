"""The plot of the README's figures: what is faster goes right of one, what is slower left, each with its number."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from docs import plot, tables

ROWS = [
    {"what": "a < b", "against": "one", "shown": "10.0×", "value": 10.0},
    {"what": "c", "against": "two", "shown": "0.50×", "value": 0.5},
    {"what": "d", "against": "–", "shown": "52 ms", "value": 52.0},
]


def bars(text: str) -> list[tuple[float, float, str]]:
    return [
        (float(each.attrib["x"]), float(each.attrib["width"]), each.attrib["fill"])
        for each in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect")
    ]


def test_a_bar_runs_from_one_to_the_ratio_and_what_is_none_has_no_bar():
    (fast, slow), one = bars(plot.svg(ROWS)), plot.place(1)

    assert (one, round(plot.place(10) - one, 1), plot.FAST) == fast
    assert (plot.place(0.5), round(one - plot.place(0.5), 1), plot.SLOW) == slow


def test_a_ratio_beyond_the_scale_ends_at_its_rim_with_its_number():
    text = plot.svg([{"what": "e", "against": "f", "shown": "400×", "value": 400.0}])

    ((at, width, _),) = bars(text)
    assert plot.place(100) == round(at + width, 1)
    assert ">400×</text>" in text


def test_the_picture_of_the_readme_is_of_the_figures_in_its_table():
    saved = plot.PLACE.read_text("utf-8")

    assert plot.svg(tables.in_short()) == saved
    shown = [each["shown"] for each in tables.in_short() if each["shown"].endswith("×")]
    assert sorted(shown) == sorted(re.findall(r'font-weight="600">([^<]+)<', saved))


def test_no_line_of_the_scale_crosses_a_word():
    long = {"what": "a long name of what was measured", "against": "a peer of a long name", "shown": "8.00×", "value": 8.0}
    text = plot.svg([*ROWS, long])
    said = re.findall(r'<text x="([\d.]+)" y="(\d+)"[^m]*?>([^<]+)<', text)
    words = [(float(x), float(x) + 6 * len(what), int(y)) for x, y, what in said]
    lines = [tuple(map(float, line)) for line in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", text)]

    assert len(lines) > 8
    assert [] == [(word, line) for word in words for line in lines if word[0] < line[0] < word[1] and line[1] < word[2] - 3 < line[2]]
