"""What a comparison says: its status line, its table, its JSON and the cells of its picture, word for word."""

from __future__ import annotations

import math

import pytest

from tarviz.model.errors import DataError, UsageError
from tarviz.ops import Chain
from tarviz.widgets.compare.chain_preview import Column, StepTile, Strip
from tarviz.widgets.compare.text import Pictures, align, apart, cells, column_message, milliseconds, plain, reason, status, table
from tarviz.widgets.compare.value_picture import ShownValue
from tarviz.widgets.host.contact_sheet import Cell
from tarviz.widgets.panes.overlays import Overlays

RECORDS = [{"__key__": "a/n0", "__shard__": "s.tar", "__index__": 0}, {"__key__": "a/n1", "__shard__": "s.tar", "__index__": 1}]
ERROR = DataError("it is no picture.", hint="Look at it.", code="E_DECODE")


def tile(op="", ext="png", feature="uint8 [8, 12, 3]", seconds=0.0, **more):
    return StepTile(op, ext, more.pop("drawn", ""), seconds, more.pop("value", None), ShownValue(feature, "0…9"), b"", "", **more)


def columns():
    """A chain whose second record fails, and its other runner, which has done one of two."""
    steps = [tile("decode(png)", seconds=0.0021), tile("flip(png)", seconds=0.00005, drawn="flip=True")]
    eager = Column(
        "one", Chain.of("decode(png)"), 7, strips=[Strip(steps, 0.00215), Strip([tile("decode(png)", error=ERROR)], error=ERROR)]
    )
    other = Column("one", eager.chain, 7, "tf", [Strip([tile("tf.data: the whole chain")], 0.5, difference=0.25), None])
    return [eager, other]


ORIGINALS = [tile(), tile()]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0.0, "0.000 ms"), (0.00099, "0.990 ms"), (0.001, "1.00 ms"), (0.00999, "9.99 ms"), (0.01, "10.0 ms"), (0.1, "100 ms")],
)
def test_times_have_three_digits(seconds, text):
    assert text == milliseconds(seconds)


@pytest.mark.parametrize(
    ("difference", "text"),
    [(None, ""), (0.0, "no difference"), (0.25, "largest difference 0.25"), (math.inf, "not the same shape or text")],
)
def test_a_difference_in_words(difference, text):
    assert text == apart(difference)


def test_an_error_with_its_hint():
    assert ("E_DECODE: it is no picture. Look at it.", "E_USAGE: no.") == (reason(ERROR), reason(UsageError("no.")))


@pytest.mark.parametrize(
    ("running", "warned", "fault", "line"),
    [
        (True, {}, None, "2 records × 1 chain · running, 3 of 4 done · 1 failed · one, tf.data: largest difference 0.25"),
        (
            False,
            {"W_A": 1, "E_DECODE": 2},
            ERROR,
            "2 records × 1 chain · every op ran once per record · 1 failed · one, tf.data: largest difference 0.25 · W_A"
            " · E_DECODE: it is no picture. Look at it.",
        ),
    ],
)
def test_the_status_is_one_sentence(running, warned, fault, line):
    assert line == status(columns(), RECORDS, running, warned, fault)


def test_of_one_chain_over_one_record_nothing_is_plural():
    column = Column("one", Chain.of("decode(png)"), 7, strips=[None])

    assert "1 record × 1 chain · running, 0 of 1 done" == status([column], RECORDS[:1], True, {}, None)


def test_every_step_is_a_line_of_the_table():
    lines = table("s.tar", columns(), RECORDS, ORIGINALS, "the status").splitlines()

    assert lines == [
        "tarviz compare s.tar",
        "the status",
        "",
        "a/n0",
        "  original                                png  uint8 [8, 12, 3]  0…9",
        "  one           decode(png)               png  uint8 [8, 12, 3]  0…9  2.10 ms",
        "                flip(png)                 png  uint8 [8, 12, 3]  0…9  0.050 ms  flip=True",
        "  one, tf.data  tf.data: the whole chain  png  uint8 [8, 12, 3]  0…9  500 ms    largest difference 0.25",
        "a/n1",
        "  original                                png  uint8 [8, 12, 3]  0…9",
        "  one           decode(png)               failed: E_DECODE: it is no picture. Look at it.",
    ]


def test_the_comparison_is_data_too():
    found = plain(columns(), RECORDS)
    step = {"field": "png", "feature": "uint8 [8, 12, 3]", "range": "0…9", "shown": "", "drawn": "", "seconds": 0.0}

    assert found == [
        {
            "key": "a/n0",
            "chain": "one",
            "runner": "eager",
            "seed": 7,
            "seconds": 0.00215,
            "steps": [
                {"op": "decode(png)", **step, "seconds": 0.0021},
                {"op": "flip(png)", **step, "drawn": "flip=True", "seconds": 0.00005},
            ],
        },
        {
            "key": "a/n0",
            "chain": "one",
            "runner": "tf.data",
            "seed": 7,
            "seconds": 0.5,
            "largest_difference": 0.25,
            "steps": [{"op": "tf.data: the whole chain", **step}],
        },
        {
            "key": "a/n1",
            "chain": "one",
            "runner": "eager",
            "seed": 7,
            "seconds": 0.0,
            "steps": [{"op": "decode(png)", **step, "error": ERROR.to_dict()}],
        },
    ]
    assert [found[1], found[0], found[2]] == plain(columns()[::-1], RECORDS)


def test_what_is_infinitely_far_is_no_number_of_json():
    column = Column("one", Chain.of("decode(png)"), 7, "tf", [Strip([], difference=math.inf)])

    assert [None] == [each["largest_difference"] for each in plain([column], RECORDS[:1])]


def test_a_picture_of_several_columns_has_the_last_step_of_each():
    found, width = cells(columns(), RECORDS, ORIGINALS, Overlays())
    nothing = Cell(b"", "", "")

    assert 3 == width
    assert [Cell(b"", "", "n0"), Cell(b"", "", "one"), Cell(b"", "", "one tf.data")] == found[:3]
    assert [Cell(b"", "", "n1"), Cell(b"", reason(ERROR), "one", True), nothing] == found[3:]


def test_a_picture_of_one_chain_has_all_its_steps():
    found, width = cells(columns()[:1], RECORDS, ORIGINALS, Overlays())

    assert (3, ["n0", "decode", "flip", "n1", "decode", ""]) == (width, [cell.caption for cell in found])
    assert ([], 1) == cells([], [], [], Overlays())


def test_the_head_of_a_column_counts_what_is_done():
    message = column_message(columns()[0])

    assert ("one", 7, "eager", "2.15 ms", "uint8 [8, 12, 3]", "", 1, 2) == tuple(
        message[name] for name in ("name", "seed", "runner", "ms", "out", "apart", "failed", "done")
    )
    message = column_message(Column("one", Chain.of("decode(png)"), 7, "tf", [None]))
    assert ("tf.data", "", "", "", 0, 0) == tuple(message[name] for name in ("runner", "ms", "out", "apart", "failed", "done"))


def test_a_picture_that_comes_again_is_sent_once():
    pictures = Pictures()

    assert [0, None, 1, 0] == [pictures.put(one) for one in (b"a", b"", b"b", b"a")]
    assert [b"a", b"b"] == pictures.buffers


def test_rows_with_fewer_cells_do_not_widen_the_table():
    assert ["a very long line", "a   b  c", "dd  1  e"] == align([("a very long line",), ("a", "b", "c"), ("dd", "1", "e")])
    assert [] == align([])
    assert ["a    b", "cc  dd"] == align([("a", "b"), ("cc", "dd")], right={1})
