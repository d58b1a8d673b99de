"""Records like one of them: held against NumPy, for every place a vector can be in."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import LimitError, TarvizWarning, UsageError
from tarviz.table import neighbours

VECTORS = np.random.default_rng(0).normal(size=(60, 16)).astype(np.float32)


def npy(value: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, value)
    return out.getvalue()


def nearest(at: int, count: int) -> tuple[list[int], np.ndarray]:
    exact = VECTORS.astype(np.float64)
    cosines = exact @ exact[at] / np.linalg.norm(exact, axis=1) / np.linalg.norm(exact[at])
    order = np.argsort(-cosines)[1 : count + 1]
    return order.tolist(), cosines[order]


@pytest.mark.parametrize("by", ["npy", "json.embedding", ""])
def test_the_nearest_by_cosine_are_numpys(make, by):
    content = [
        (f"{at:02}", {"npy": npy(vector), "json": json.dumps({"embedding": vector.tolist()}).encode()}) for at, vector in enumerate(VECTORS)
    ]
    table = tarviz.table([make(content[:35]), make(content[35:], "b.tar")])
    found = table.similar("07", by, 9)
    wanted, cosines = nearest(7, 9)

    assert wanted == [int(n) + 35 * int(shard) for shard, n in zip(found.shard, found.n, strict=True)]
    assert np.allclose(cosines, found.score, atol=1e-7)


def test_safetensors_of_one_tensor_are_vectors(make):
    safetensors = pytest.importorskip("safetensors.numpy")
    table = tarviz.table(make([(f"{at:02}", {"safetensors": safetensors.save({"x": vector})}) for at, vector in enumerate(VECTORS)]))

    assert nearest(3, 5)[0] == table.similar("03", count=5).n.tolist()


def test_what_has_no_vector_is_left_out_and_said_where_it_is_asked_for(make):
    odd = [b"no array", npy(np.zeros(16)), npy(np.array(["a"])), npy(np.ones(3)), npy(np.full(16, np.nan))]
    content = [(f"{at:02}", {"npy": npy(vector)}) for at, vector in enumerate(VECTORS)]
    table = tarviz.table(make([*content, *((f"odd{at}", {"npy": data}) for at, data in enumerate(odd))]))

    with pytest.warns(TarvizWarning, match="5 of 65 records have no vector of 16 numbers in npy"):
        assert nearest(0, 59)[0] == table.similar("00", count=100).n.tolist()
    with pytest.raises(UsageError, match="has nothing in npy"), pytest.warns(TarvizWarning, match="W_NO_VECTOR"):
        table.similar("odd1")
    with pytest.raises(UsageError, match="keys are in no shard"):
        table.similar("0x")
    with pytest.raises(UsageError, match="no vectors"):
        table.similar("00", "key")


@pytest.mark.parametrize(
    "bad",
    [b'{"e": "none"}', b'{"e": {"a": 1}}', b'{"e": null}', b'{"e": [1, "a"]}', b"{", b'{"e": [1e300]}', b'{"e": [%b null]}' % (b"1," * 15)],
)
def test_a_record_with_no_list_among_those_with_one_is_left_out(make, bad):
    content = [(f"{at:02}", {"json": json.dumps({"e": vector.tolist()}).encode()}) for at, vector in enumerate(VECTORS)]
    table = tarviz.table(make([*content, ("odd", {"json": bad})]))

    with pytest.warns(TarvizWarning, match="1 of 61 records have no vector"):
        assert nearest(7, 59)[0] == table.similar("07", "json.e", None).n.tolist()


def test_vectors_of_any_length_are_compared(make):
    scaled = [vector * np.float32(scale) for vector, scale in zip(VECTORS, [1e-30, 1e30, 1, 1e37] * 15, strict=True)]
    table = tarviz.table(make([(f"{at:02}", {"npy": npy(vector)}) for at, vector in enumerate(scaled)]))

    assert nearest(1, 9)[0] == table.similar("01", count=9).n.tolist()


def test_vectors_that_do_not_fit_into_memory_are_refused(make, monkeypatch):
    table = tarviz.table(make([(f"{at:02}", {"npy": npy(vector)}) for at, vector in enumerate(VECTORS)]))
    monkeypatch.setattr(neighbours, "memory_limit", lambda: VECTORS.nbytes)

    with pytest.raises(LimitError, match="vectors of 60 records do not fit"):
        table.similar("00")
    monkeypatch.setattr(neighbours, "memory_limit", lambda: 1 << 20)
    assert 3 == len(table.similar("00", count=3))


@pytest.mark.parametrize("wrong", [{"count": -1}, {"count": "3"}, {"count": 2.5}, {"by": 5}, {"by": "nosuch"}, {"key": None}, {"key": 5}])
def test_what_is_no_question_is_refused_in_our_words(make, wrong):
    table = tarviz.table(make([(f"{at:02}", {"npy": npy(vector)}) for at, vector in enumerate(VECTORS)]))

    with pytest.raises(UsageError, match=r"number of records|to be texts|no column nosuch"):
        table.similar(**{"key": "00"} | wrong)
    if "count" in wrong:
        with pytest.raises(UsageError, match="number of records"):
            table.search("00", **wrong)
    assert 0 == len(table.similar("00", count=0))


def test_pictures_without_vectors_are_compared_by_their_hash(make):
    def picture(seed: int, size: int) -> bytes:
        out = io.BytesIO()
        rough = np.random.default_rng(seed).integers(0, 255, (9, 9, 3), np.uint8)
        Image.fromarray(rough).resize((size, size), Image.Resampling.BICUBIC).save(out, "PNG")
        return out.getvalue()

    path = make([(f"{at:02}", {"png": picture(at % 20, 64 + at)}) for at in range(40)])
    found = tarviz.table(path).similar("05", count=3)

    assert 25 == found.n[0]
    assert found.score is not None
    assert found.score[0] > 0.9 > found.score[1]
    assert ["05", "25"] == [record.key for record in tarviz.show(path, like="05", count=2).records]


def test_show_puts_the_nearest_behind_the_record(make):
    content = [(f"{at:02}", {"npy": npy(vector)}) for at, vector in enumerate(VECTORS)]
    paths = [make(content[:35]), make(content[35:], "b.tar")]
    shown = tarviz.show([str(path) for path in paths], like="07", count=6)

    assert ["07", *(f"{at:02}" for at in nearest(7, 5)[0])] == [record.key for record in shown.records]
    with pytest.raises(UsageError, match="condition"):
        tarviz.show(str(paths[0]), like="07", where="n > 1")


def test_quality_is_measured_on_request(make):
    out, flat = io.BytesIO(), io.BytesIO()
    Image.fromarray(np.tile(np.array([[0, 255], [255, 0]], np.uint8), (8, 8))).save(out, "PNG")
    Image.new("L", (16, 16), 40).save(flat, "PNG")
    table = tarviz.table(
        make([("a", {"png": out.getvalue(), "txt": "Über".encode()}), ("b", {"png": flat.getvalue()}), ("c", {"png": b"x"})])
    )
    rows = table.sql("SELECT png.brightness, png.sharpness, txt.length FROM records ORDER BY key").fetchall()

    assert [(127.5, 1020.0**2, 4), (40.0, 0.0, None), (None, None, None)] == rows
    assert "png.brightness" not in tarviz.table(make([("a", {"png": out.getvalue()})], "b.tar")).sql("SELECT * FROM records").columns
