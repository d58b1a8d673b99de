"""What a notebook shows of records, chains and pipelines without any magic."""

from __future__ import annotations

from pathlib import Path

import pytest

import tarviz
from tarviz.ops import Chain, Func
from tests.widgets.conftest import png, tar

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return tar(tmp_path / "a.tar", [(f"p/n{n}", {"png": png((n * 40, 9, 90)), "txt": EVIL.encode()}) for n in range(8)])


def shown(value: object) -> str:
    bundle = value._repr_mimebundle_()  # type: ignore[attr-defined]
    assert bundle["text/plain"] == repr(value)
    assert "<script" not in bundle["text/html"]
    assert "<style" not in bundle["text/html"]  # the sanitiser would take it out and leave the rest bare
    assert "onerror=" not in bundle["text/html"].replace("onerror=&quot;", "")
    return bundle["text/html"]


def test_an_iterator_shows_its_first_records_and_uses_none_up(shard: Path):
    found = tarviz.records(shard)
    next(found)
    text = shown(found)

    assert 6 == text.count("<img alt=")
    assert "p/n1" == next(found).key


def test_a_chain_says_what_each_op_does():
    text = shown(Chain.of("decode(jpg)|resize(jpg, (8, 8))"))

    assert "resize(jpg, (8, 8))" in text
    assert 3 == text.count("<tr>")


def test_a_pipeline_says_what_it_yields(shard: Path):
    text = shown(tarviz.Pipeline(shard, "decode(png)|resize(png, (4, 4))", select=("png", "txt"), seed=3))

    for word in ("a.tar", "resize(png, (4, 4))", "uint8[4, 4, 3]", "seed"):
        assert word in text


def test_no_function_is_run_to_be_shown(shard: Path):
    calls: list[int] = []
    text = shown(tarviz.Pipeline(shard, [Func(lambda record: (calls.append(1), record)[1])]))

    assert [] == calls
    assert "schema" not in text


def test_a_chain_that_does_not_fit_is_shown_with_the_reason(shard: Path):
    assert "E_SCHEMA" in shown(tarviz.Pipeline(shard, "decode(jpg)"))


def test_a_shard_that_went_away_is_said(shard: Path):
    found = tarviz.records(shard)
    shard.unlink()
    bundle = found._repr_mimebundle_()

    assert "E_NOT_FOUND" in bundle["text/plain"]


def test_many_shards_are_cut(tmp_path: Path):
    for number in range(12):
        tar(tmp_path / f"s-{number:02d}.tar", [("a", {"png": png()})])

    assert "and 2 more" in shown(tarviz.records(tmp_path))
    assert "and 7 more" in shown(tarviz.Pipeline([tmp_path / f"s-{number:02d}.tar" for number in range(12)]))


def test_numbers_are_set_to_the_right_and_names_never(tmp_path: Path):
    html = shown(tarviz.index(tar(tmp_path / "0001.tar", [("a", {"png": png()})])))

    assert "text-align:right;padding-right:14px'>1</td>" in html
    assert "text-align:left;padding-right:14px'>" in html.partition("0001.tar</td>")[0][-400:]
