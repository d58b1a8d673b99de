"""A Ray in this process, in place of the package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.engines.ray.here import RayHere


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayHere]:
    """Tasks are done here. Folder and variables, which a worker takes over, are those of this process and stay."""
    here = RayHere()
    monkeypatch.setitem(sys.modules, "ray", here)  # type: ignore[arg-type]
    before = dict(os.environ)
    yield here
    os.environ.clear()
    os.environ.update(before)
