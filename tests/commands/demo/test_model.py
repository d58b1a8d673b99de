"""What the demo trains and compares: accuracy, what Keras runs on, two paths told apart where they differ."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tarviz.commands.convert import convert
from tarviz.commands.demo import model
from tarviz.commands.demo.model import Comparison, Training, backend, compare
from tarviz.model.errors import MissingPackageError
from tests.commands.conftest import plain


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`installed("torch", "keras")`: these packages are here, no others that the demo looks for."""
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")

    def there(*names: str) -> None:
        monkeypatch.setattr(model, "find_spec", lambda name: name in names or None)

    return there


class TestTraining:
    def test_the_answer_is_the_likeliest_class(self):
        made = Training(labels=np.array([1, 2, 3, 3]), chances=np.eye(10, dtype=np.float32)[[1, 2, 3, 4]])

        assert ([1, 2, 3, 4], 0.75) == (made.answers.tolist(), made.accuracy)

    def test_nothing_is_recognised_before(self):
        assert ([], 0.0) == (Training().answers.tolist(), Training().accuracy)


class TestBackend:
    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (("jax", "torch", "tensorflow", "keras"), "tensorflow"),
            (("jax", "torch", "keras"), "torch"),
            (("jax", "keras"), "jax"),
        ],
    )
    def test_is_the_first_that_is_installed(self, installed: Callable[..., None], names: tuple[str, ...], expected: str):
        installed(*names)

        assert expected == backend()

    def test_the_environment_says_another(self, installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch):
        installed("tensorflow", "jax", "keras")
        monkeypatch.setenv("KERAS_BACKEND", "jax")

        assert "jax" == backend()

    @pytest.mark.parametrize(("names", "match"), [(("keras",), "tensorflow"), (("jax",), "keras")])
    def test_what_is_missing_is_named(self, installed: Callable[..., None], names: tuple[str, ...], match: str):
        installed(*names)
        with pytest.raises(MissingPackageError, match=match):
            backend()


class TestCompare:
    @pytest.fixture
    def digit(self, digits: Path) -> list[dict[str, bytes]]:
        return [fields for _, fields in plain(digits / "test-0000.tar")[:8]]

    @pytest.fixture
    def differing(self, make: Callable[..., Path], digit: list[dict[str, bytes]], tmp_path: Path) -> tuple[str, list[str]]:
        """Four records as tars, and as a file: one with another class, one gone."""
        shard = make([(f"k{at}", digit[at]) for at in range(4)])
        other = make([("k0", digit[0]), ("k1", {**digit[1], "cls": b"7" if digit[1]["cls"] != b"7" else b"8"}), ("k2", digit[2])], "o.tar")
        return str(shard), [str(path) for path in convert(other, tmp_path / "o.tfrecord", types={"cls": "int64"})]

    def test_without_tensorflow_fields_are_compared(self, differing: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(model, "find_spec", lambda name: None if name == "tensorflow" else find_spec(name))

        assert Comparison(4, 2) == compare(*differing)

    def test_with_it_keys_classes_and_pixels(self, differing: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch):
        pytest.importorskip("tensorflow", reason="TFRecord files are read by TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        monkeypatch.setattr(model, "PASSES", 1)
        found = compare(*differing)

        assert (4, 2) == (found.records, found.equal)
        assert found.seconds is not None
        assert all(0 < seconds < 60 for seconds in found.seconds)
