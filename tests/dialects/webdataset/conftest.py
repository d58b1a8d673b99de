"""What the tests of the WebDataset dialect find."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _little_to_collect() -> None:
    """Scripts collect garbage, since webdataset leaves files open: what TensorFlow and torch have brought is passed over then."""
    gc.collect()
    gc.freeze()  # to the end of all tests: what is collected later is looked through sooner
