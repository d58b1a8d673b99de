"""The runner of Ray Data where Ray is not installed; what it does is tested in `tests/engines/test_ray_data.py`."""

from __future__ import annotations

import sys

import pytest

import tarviz
from tarviz.model.errors import MissingPackageError, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard


def test_a_missing_package_is_named_when_it_is_needed(tmp_path, monkeypatch: pytest.MonkeyPatch):
    write_shard(tmp_path / "a.tar", [("r0", {"cls": b"1"})])
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(MissingPackageError, match=r"ray-data"):
        tarviz.read_ray(tmp_path / "a.tar")


def test_what_has_no_place_there(tmp_path):
    write_shard(tmp_path / "a.tar", [("r0", {"cls": b"1"})])
    url = tmp_path / "a.tar"

    with pytest.raises(UsageError, match="rows of Ray Data have names"):
        Pipeline(url, select="cls").run("ray_data")
    for read in (lambda: tarviz.read_ray(url, [Func(print)]), lambda: Pipeline(url, [Func(print)]).run("ray_data")):
        with pytest.raises(UsageError, match="only where that is allowed"):
            read()
