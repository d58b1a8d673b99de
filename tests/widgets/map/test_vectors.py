"""Vectors for a map: fields as they are, pictures by their likeness, and what cannot lie among the others."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tarviz.model.errors import LimitError, UsageError
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.map import vectors
from tests.widgets.browse.test_controller import settle
from tests.widgets.conftest import png, tar


def npy(array) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(array))
    return out.getvalue()


def read(tmp_path, payloads, ext="npy"):
    """The vectors of records with these payloads; None: without the field. And what was said meanwhile."""
    records = [(f"n{at:03d}", {"txt": b"x"} | ({} if blob is None else {ext: blob})) for at, blob in enumerate(payloads)]
    browser = settle(Browser([tar(tmp_path / "s.tar", records)], cache=False))
    said = []
    try:
        return vectors.read(browser.shards.rows, np.arange(len(records)), ext, lambda done, of: said.append((done, of))), said
    finally:
        browser.close()


def test_vectors_are_the_fields_of_the_records_that_have_a_good_one(tmp_path):
    found, said = read(tmp_path, [npy([[1, 2]]), None, npy([[3.0, np.inf]]), b"no array", npy([[5, 6]])])

    assert ([0, 4], [[1, 2], [5, 6]]) == (found.ids.tolist(), found.values.tolist())
    assert ("1 without the field, 2 unreadable", np.float32) == (found.note, found.values.dtype)
    assert [(5, 5)] == said


def test_where_all_are_good_there_is_nothing_to_note(tmp_path):
    found, said = read(tmp_path, [npy([at, 1]) for at in range(300)])

    assert ("", list(range(300)), [(256, 300), (300, 300)]) == (found.note, found.ids.tolist(), said)
    assert list(range(300)) == found.values[:, 0].tolist()


@pytest.mark.parametrize(
    ("payloads", "said"),
    [
        ([None], "No record has a .npy that can be read."),
        ([npy(["a"])], ".npy of n000 is <U1[1]: not a vector of numbers."),
        ([npy(np.zeros(0))], ".npy of n000 is float64[0]: not a vector of numbers."),
        ([npy([True])], ".npy of n000 is bool[1]: not a vector of numbers."),
        ([npy(np.zeros(8193, np.uint8))], ".npy of n000 has 8,193 numbers: too long for a map, which takes at most 8,192."),
        ([npy([1]), npy([1, 2])], ".npy holds arrays of different shapes: [1] in n000, [2] in n001."),
    ],
)
def test_what_has_no_place_on_a_map_is_refused(tmp_path, payloads, said):
    with pytest.raises(UsageError) as refused:
        read(tmp_path, payloads)
    assert said == refused.value.message


def test_no_more_is_held_than_two_gibibytes(tmp_path, monkeypatch):
    assert 2 << 30 == vectors.MOST_BYTES
    monkeypatch.setattr(vectors, "MOST_BYTES", 23)

    with pytest.raises(LimitError, match=r"2 vectors of 3 numbers need 24 bytes; at most 23\."):
        read(tmp_path, [npy([1, 2, 3])] * 2)
    monkeypatch.setattr(vectors, "MOST_BYTES", 24)
    assert 2 == len(read(tmp_path, [npy([1, 2, 3])] * 2)[0].ids)


def test_pictures_lie_by_what_they_look_like(tmp_path):
    found, _ = read(tmp_path, [png((200, 30, 30)), png((200, 30, 30), (99, 99)), png((10, 200, 30)), b"no picture"], "png")

    assert ([0, 1, 2], "1 unreadable") == (found.ids.tolist(), found.note)
    near, far = np.abs(found.values[0] - found.values[1]).sum(), np.abs(found.values[0] - found.values[2]).sum()
    assert near < far


def test_of_many_pictures_some_at_even_steps_are_taken(tmp_path, monkeypatch):
    assert 20_000 == vectors.MOST_PICTURES
    monkeypatch.setattr(vectors, "MOST_PICTURES", 3)

    assert ([0, 2, 4], "3 records at even steps") == ((found := read(tmp_path, [png()] * 5, "png")[0]).ids.tolist(), found.note)
    assert ([0, 1, 2], "") == ((found := read(tmp_path, [png()] * 3, "png")[0]).ids.tolist(), found.note)
