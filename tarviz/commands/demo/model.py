"""What the demo trains and measures: a model fed from tar shards, TFRecord files read back, the two held against each other."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.commands.convert import convert
from tarviz.commands.diff import diff
from tarviz.model.errors import MissingPackageError
from tarviz.model.processors import processors
from tarviz.pipeline import Pipeline

CHAIN = "decode(png, channels=1)|resize(png, (28, 28))|convert(png, float32)|decode(cls)"
EPOCHS, BATCH, PASSES = 8, 64, 4
WITH_TENSORFLOW = sys.version_info < (3, 14)  # newer ones have none yet


@dataclass
class Training:
    """What training gave: a line an epoch, and what the model says about every test picture."""

    epochs: list[dict[str, float]] = field(default_factory=list)
    runs_on: str = ""
    seconds: float = 0.0
    keys: list[str] = field(default_factory=list)
    images: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    chances: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 10), np.float32))

    @property
    def answers(self) -> NDArray[np.int64]:
        """The class the model finds most likely, per test picture."""
        return self.chances.argmax(1) if len(self.chances) else self.labels

    @property
    def accuracy(self) -> float:
        """Share of the test pictures that are recognised, 0…1."""
        return float((self.answers == self.labels).mean()) if len(self.labels) else 0.0


@dataclass(frozen=True)
class Comparison:
    """The same records through tars and through TFRecord files; `seconds` of a pass of each where TensorFlow reads both."""

    records: int
    equal: int
    seconds: tuple[float, float] | None = None


def backend() -> str:
    """What Keras runs on here: `KERAS_BACKEND`, or TensorFlow, torch or JAX, the first that is installed."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # the same numbers everywhere, and one line less of start-up talk
    found = [name for name in ("tensorflow", "torch", "jax") if find_spec(name)]
    if not found:
        raise MissingPackageError.of("tensorflow (or torch, or jax)", "Training a model", "tensorflow" if WITH_TENSORFLOW else "demo")
    if not find_spec("keras"):
        raise MissingPackageError.of("keras", "Training a model")
    return os.environ.setdefault("KERAS_BACKEND", found[0])


def _batches(shards: str, **options: Any) -> Any:
    """Batches of pictures and classes: a `tf.data.Dataset`, or NumPy's arrays where there is no TensorFlow."""
    pipeline = Pipeline(shards, CHAIN, select=("png", "cls"))
    return pipeline.tf(batch=BATCH, **options) if find_spec("tensorflow") else pipeline.eager(batch=BATCH, **options)


def train(training: Training, shards: str, test: str) -> Iterator[str]:
    """Trains a small convolutional network; a line of text per epoch as it goes, the rest in `training`."""
    training.runs_on = backend()
    import keras

    yield f"Keras {keras.__version__} runs on {training.runs_on}"
    keras.utils.set_random_seed(0)
    images, held_out = _batches(shards, shuffle=1500), _batches(test)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of Keras, about data sets whose length is not known, and generators' order
            fed = [each if find_spec("tensorflow") else (batch for batch in each) for each in (images, held_out)]
            history = model.fit(fed[0], epochs=1, validation_data=fed[1], verbose=0).history
        line = {name: float(values[-1]) for name, values in history.items()}
        training.epochs.append(line)
        yield f"epoch {epoch + 1} of {EPOCHS}   loss {line['loss']:.3f}   train {line['accuracy']:.3f}   test {line['val_accuracy']:.3f}"
    training.seconds = time.perf_counter() - begin
    keyed = list(Pipeline(test, CHAIN, select=("__key__", "png", "cls")).eager(batch=BATCH))
    training.keys = [key for keys, _, _ in keyed for key in keys]
    training.images = np.concatenate([pictures for _, pictures, _ in keyed])
    training.labels = np.concatenate([labels for _, _, labels in keyed])
    training.chances = np.asarray(model.predict(training.images, verbose=0))


def read_back(paths: Sequence[str], select: Sequence[str], calls: int | None = None) -> Any:
    """What is selected of the TFRecord files, as any TensorFlow program reads them, tarviz not involved: images are 0…1."""
    import tensorflow as tf

    features = {name: tf.io.FixedLenFeature((), tf.int64 if name == "cls" else tf.string) for name in select}

    def parse(example: Any) -> Any:
        record = tf.io.parse_single_example(example, features)
        image = tf.ensure_shape(tf.io.decode_png(record["png"], channels=1), (28, 28, 1))
        record["png"] = tf.image.convert_image_dtype(image, tf.float32)
        return tuple(record[name] for name in select)

    return tf.data.TFRecordDataset(list(paths)).map(parse, num_parallel_calls=calls)


def compare(shards: str, paths: Sequence[str]) -> Comparison:
    """Every record through the tars and through the TFRecord files: keys, classes and pixels must be equal.

    Without TensorFlow the files are made tars again, and these compared: field by field, byte by byte.
    """
    if not find_spec("tensorflow"):
        with tempfile.TemporaryDirectory() as folder:
            convert(list(paths), f"{folder}/back-{{}}.tar")
            found = diff(shards, folder)
        equal = found.equal + sum(fields == ["features.json"] for fields in found.changed.values())  # the types, which only TFRecord has
        return Comparison(found.equal + len(found.changed) + len(found.gone), equal)
    select = ("__key__", "png", "cls")
    tars = Pipeline(shards, CHAIN, select=select).tf().as_numpy_iterator()
    pairs = list(zip_longest(tars, read_back(paths, select).as_numpy_iterator()))
    equal = sum(None not in pair and all(map(np.array_equal, *pair)) for pair in pairs)
    return Comparison(len(pairs), equal, _seconds(shards, paths))


def _seconds(shards: str, paths: Sequence[str]) -> tuple[float, float]:
    """A pass over the tars and over the files into the same batches: each by every number of threads, in turns, the best of each."""
    import tensorflow as tf

    ahead = tf.data.AUTOTUNE
    ways = [
        [_batches(shards, num_workers=count).prefetch(ahead) for count in (0, 1, processors())],
        [read_back(paths, ("png", "cls"), calls).batch(BATCH).prefetch(ahead) for calls in (None, processors(), ahead)],
    ]
    passes = [[min(map(_drain, datasets)) for datasets in ways] for _ in range(PASSES)]
    tar, tfrecord = map(min, zip(*passes, strict=True))
    return tar, tfrecord


def _drain(dataset: Any) -> float:
    begin = time.perf_counter()
    for _ in dataset:
        pass
    return time.perf_counter() - begin
