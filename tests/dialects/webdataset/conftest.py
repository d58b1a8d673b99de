"""What the tests of the WebDataset dialect find."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _little_to_collect() -> Iterator[None]:
    """Scripts collect garbage, since webdataset leaves files open: what TensorFlow and torch have brought is passed over then."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
