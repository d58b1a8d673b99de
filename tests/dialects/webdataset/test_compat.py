"""`webdataset.compat`: sources of any kind with the methods of a data set."""

from __future__ import annotations

import importlib

import pytest

import tarviz.dialects.webdataset as wds


def test_any_source_has_the_methods_of_a_data_set() -> None:
    assert [(2,), (3,)] == list(wds.FluidWrapper([{"n": 1}, {"n": 2}]).map(lambda s: {"n": s["n"] + 1}).to_tuple("n"))


def test_a_module_is_there_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.import_module("tarviz.dialects.webdataset.tenbin")
    monkeypatch.delattr(wds, "tenbin")

    assert found is wds.tenbin
    assert {"tenbin", "WebDataset", "gopen"} < set(dir(wds))
