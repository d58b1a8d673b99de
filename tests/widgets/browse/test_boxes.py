"""A tile for each box: the objects of the records that show, of the classes that were chosen, cut out of their pictures."""

from __future__ import annotations

import io
import json
import threading

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")

from tarviz.widgets.browse.controller import Browser
from tests.conftest import wait_until
from tests.widgets.browse.test_controller import ask, settle
from tests.widgets.conftest import png, tar

COLOURS = {"red": (220, 20, 20), "blue": (20, 20, 220)}


def picture(boxes):
    found = np.full((60, 80, 3), 90, np.uint8)
    for box in boxes:
        x, y, width, height = box["bbox"]
        found[y : y + height, x : x + width] = COLOURS[box["label"]]
    out = io.BytesIO()
    Image.fromarray(found).save(out, "PNG")
    return out.getvalue()


def box(label, x, y, score=0.5):
    return {"label": label, "bbox": [x, y, 20, 16], "score": score}


BOXES = {"a": [box("red", 4, 4, 0.9), box("blue", 40, 30)], "b": [], "c": [box("red", 50, 40)]}


@pytest.fixture
def browser(tmp_path):
    records = [(key, {"png": picture(boxes), "json": json.dumps({"annotations": boxes}).encode()}) for key, boxes in BOXES.items()]
    found = settle(Browser([tar(tmp_path / "a.tar", [*records, ("d", {"png": png()})])], cache=False))
    assert found.shards.questions.wait(60)
    yield found
    found.close()


def boxes_of(browser, **wish):
    query = ask(browser, "search", **wish)[0]["query"]
    wait_until(lambda: browser.query.done)
    return ask(browser, "fetch", query=query, start=0, stop=20)


def test_every_box_is_a_row_with_its_class_and_score(browser):
    message, buffers = boxes_of(browser, objects=[])

    assert [("a", "red 0.90"), ("a", "blue 0.50"), ("c", "red 0.50")] == [(row["key"], row["label"]) for row in message["rows"]]
    for row in message["rows"]:
        tile = Image.open(io.BytesIO(buffers[row["tile"]["buffer"]])).convert("RGB")
        middle = tile.getpixel((tile.width // 2, tile.height // 2))

        assert max(abs(a - b) for a, b in zip(middle, COLOURS[row["label"].split()[0]], strict=True)) < 30
        assert tile.width < 30


def test_classes_and_filters_leave_out_boxes(browser):
    assert ["red 0.90", "red 0.50"] == [row["label"] for row in boxes_of(browser, objects=["red"])[0]["rows"]]
    assert ["red 0.50"] == [row["label"] for row in boxes_of(browser, objects=["red"], where="key = 'c'")[0]["rows"]]
    assert [] == boxes_of(browser, objects=["green"])[0]["rows"]


def test_a_record_is_marked_and_kept_once(browser):
    boxes_of(browser, objects=[])
    ask(browser, "mark_shown", query=browser.query.number)

    assert ["a", "c"] == [ref.key for ref in browser.marked]
    assert 2 == len(browser.session.keeping.choose(browser.query.number, False))


def test_classes_are_counted_over_all_and_over_those_that_show(browser):
    query = ask(browser, "search", where="key = 'c'")[0]["query"]
    wait_until(lambda: browser.query.done)

    assert [["red", 2, 2, 1], ["blue", 1, 1, 0]] == ask(browser, "object_classes", query=query)[0]["classes"]
    assert {"stale": True} == ask(browser, "object_classes", query=query - 1)[0]


def test_sql_answers_with_columns_and_rows(browser):
    found = ask(browser, "sql", query="SELECT key, label FROM objects ORDER BY score DESC LIMIT 1")[0]

    assert {"columns": ["key", "label"], "rows": [["a", "red"]], "more": False} == found


def test_whole_numbers_that_a_page_cannot_hold_come_as_text(browser):
    found = ask(browser, "sql", query="SELECT 9007199254740993 AS a, -9007199254740993, 9007199254740991, 1::HUGEINT << 100")[0]

    assert [["9007199254740993", "-9007199254740993", 9007199254740991, str(1 << 100)]] == found["rows"]


@pytest.mark.parametrize("end", [{"name": "stop_sql"}, {"name": "sql", "query": "SELECT 1"}])
def test_a_query_without_end_is_ended_by_stop_or_by_the_next(browser, end):
    found = []
    endless = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3"
    asking = threading.Thread(target=lambda: found.append(ask(browser, "sql", query=endless)[0]))
    asking.start()
    wait_until(lambda: browser.shards.questions._running)
    wait_until(lambda: (ask(browser, **end) and found) or not asking.is_alive())

    assert ["E_STOPPED"] == [each["code"] for each in found]


def test_of_a_long_answer_the_first_rows_come(browser):
    found = ask(browser, "sql", query="SELECT a.key FROM records a, records b, records c, records d, records e, records f")[0]

    assert (500, True) == (len(found["rows"]), found["more"])
