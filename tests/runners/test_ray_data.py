"""The runner of Ray Data where Ray is not installed; what it does is tested in `tests/engines/test_ray_data.py`."""

from __future__ import annotations

import sys

import pytest

import tarviz
from tarviz.model.errors import MissingPackageError
from tarviz.samples import write_shard


def test_a_missing_package_is_named_when_it_is_needed(tmp_path, monkeypatch: pytest.MonkeyPatch):
    write_shard(tmp_path / "a.tar", [("r0", {"cls": b"1"})])
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(MissingPackageError, match=r"ray-data"):
        tarviz.read_ray(tmp_path / "a.tar")
