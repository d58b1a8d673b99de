"""The part of the demo that needs TensorFlow: train on tar shards, read TFRecord files back, hold the two against each other."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import MissingPackageError
from tarviz.pipeline import Pipeline

CHAIN = "decode(png, channels=1)|resize(png, (28, 28))|convert(png, float32)|decode(cls)"
EPOCHS, BATCH = 8, 64


@dataclass
class Training:
    """What training gave: a line an epoch, and what the model says about every test picture."""

    epochs: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    keys: list[str] = field(default_factory=list)
    images: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 28, 28, 1), np.float32))
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
    """The same records through tars and through TFRecord files."""

    records: int
    equal: int
    largest_difference: float
    tar_seconds: float
    tfrecord_seconds: float


def tensorflow() -> Any:
    """TensorFlow, with its start-up talk turned off."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # the same numbers everywhere, and one line less of start-up talk
    try:
        import tensorflow
    except ImportError as error:
        raise MissingPackageError.of("tensorflow", "Training a model", "tensorflow") from error
    return tensorflow


def train(training: Training, shards: str, test: str) -> Iterator[str]:
    """Trains a small convolutional network; a line of text per epoch as it goes, the rest in `training`."""
    tf = tensorflow()
    keras = tf.keras
    keras.utils.set_random_seed(0)
    images = Pipeline(shards, CHAIN, select=("png", "cls")).tf(batch=BATCH, shuffle=1500).prefetch(2)
    held_out = Pipeline(test, CHAIN, select=("png", "cls")).tf(batch=BATCH)
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
            warnings.simplefilter("ignore", UserWarning)  # of Keras, about data sets whose length is not known
            history = model.fit(images, epochs=1, validation_data=held_out, verbose=0).history
        line = {name: float(values[-1]) for name, values in history.items()}
        training.epochs.append(line)
        yield f"epoch {epoch + 1} of {EPOCHS}   loss {line['loss']:.3f}   train {line['accuracy']:.3f}   test {line['val_accuracy']:.3f}"
    training.seconds = time.perf_counter() - begin
    keyed = list(Pipeline(test, CHAIN, select=("__key__", "png", "cls")).tf(batch=BATCH).as_numpy_iterator())
    training.keys = [key.decode() for keys, _, _ in keyed for key in keys.tolist()]
    training.images = np.concatenate([pictures for _, pictures, _ in keyed])
    training.labels = np.concatenate([labels for _, _, labels in keyed])
    training.chances = model.predict(training.images, verbose=0)


def read_back(paths: Sequence[str]) -> Any:
    """The TFRecord files as any TensorFlow program reads them, tarviz not involved: (key, image 0…1, class)."""
    tf = tensorflow()
    features = {
        "__key__": tf.io.FixedLenFeature((), tf.string),
        "png": tf.io.FixedLenFeature((), tf.string),
        "cls": tf.io.FixedLenFeature((), tf.int64),
    }

    def parse(example: Any) -> Any:
        record = tf.io.parse_single_example(example, features)
        image = tf.io.decode_png(record["png"], channels=1)
        return record["__key__"], tf.image.convert_image_dtype(image, tf.float32), record["cls"]

    return tf.data.TFRecordDataset(list(paths)).map(parse, num_parallel_calls=2)


def compare(shards: str, paths: Sequence[str]) -> Comparison:
    """Every record through the tars and through the TFRecord files: keys, classes and pixels must be equal."""
    tars = Pipeline(shards, CHAIN, select=("__key__", "png", "cls")).tf().as_numpy_iterator()
    files = read_back(paths).as_numpy_iterator()
    records, equal, largest = 0, 0, 0.0
    for one, other in zip_longest(tars, files):
        records += 1
        if one is None or other is None:
            continue
        difference = float(np.abs(one[1] - other[1]).max()) if one[1].shape == other[1].shape else float("inf")
        equal += bool(one[0] == other[0] and one[2] == other[2] and difference == 0)
        largest = max(largest, difference)
    ours = Pipeline(shards, CHAIN, select=("png", "cls")).tf(batch=BATCH)
    theirs = read_back(paths).batch(BATCH)
    seconds = [(_drained(ours), _drained(theirs)) for _ in range(3)]
    return Comparison(records, equal, largest, min(a for a, _ in seconds), min(b for _, b in seconds))


def _drained(dataset: Any) -> float:
    begin = time.perf_counter()
    for _ in dataset:
        pass
    return time.perf_counter() - begin
