"""From the call of an interpreter to an answer: `import tarviz`, a verb on a small shard, the first batch of a chain."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import Figure, Value
from bench._data import PHOTO

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 9
RECORDS = 1_000  # of the small shard

_BATCH = """
import sys, time
import tensorflow as tf
tf.data.Dataset.range(1).batch(1)  # what TensorFlow imports when it is first used
begin = time.perf_counter()
from tarviz import Pipeline
pipeline = Pipeline(sys.argv[1], "decode(jpg)|resize(jpg, (224, 224))", select=("jpg", "cls"))
images, _ = next(iter(pipeline.tf(batch=32)))
assert images.shape == (32, 224, 224, 3)
print(1000 * (time.perf_counter() - begin))
"""


def run(*argv: object) -> tuple[str, float]:
    """What an interpreter of its own prints, and its milliseconds from call to end. Compiled modules are kept, as they are of a package."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TARVIZ_PROGRESS": "off"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, *map(str, argv)], env=environment, check=True, capture_output=True, text=True)
    return done.stdout, 1000 * (time.perf_counter() - begin)


def beyond(less: tuple[object, ...], argv: tuple[object, ...]) -> float:
    """How much longer an interpreter takes with `argv` than with `less`: the median over rounds in turns, after one that does not count."""
    run(*argv)
    return statistics.median(run(*argv)[1] - run(*less)[1] for _ in range(ROUNDS))


def imported(_: Path) -> float:
    """Milliseconds of `import tarviz`."""
    return beyond(("-c", ""), ("-c", "import tarviz"))


def ls(data: Path) -> float:
    """Milliseconds of `tarviz ls` of a shard that nobody has opened before, the start of Python and all."""
    from tarviz import samples

    with tempfile.TemporaryDirectory() as folder:
        shard = Path(folder) / "small-0.tar"
        samples.write_shard(shard, ((f"small/{number:06d}", {"png": bytes(560), "cls": b"7"}) for number in range(RECORDS)))
        run("-m", "tarviz", "ls", "--no-cache", shard)
        return statistics.median(run("-m", "tarviz", "ls", "--no-cache", shard)[1] for _ in range(ROUNDS))


def first_batch(data: Path) -> float:
    """Milliseconds from `import tarviz` to the first batch of a chain in tf.data; TensorFlow is imported before."""
    shard = data / PHOTO.replace("{0..3}", "0")
    return statistics.median(float(run("-c", _BATCH, shard)[0]) for _ in range(ROUNDS + 1))


FIGURES = [
    Figure("start-import", "import tarviz, beyond the start of Python", Value(imported, "ms"), at_most=60),
    Figure("start-ls", "tarviz ls of a shard of 1,000 records, from call to end", Value(ls, "ms"), at_most=150),
    Figure(
        "start-tf",
        "first batch of 32 photos, decoded and resized in tf.data, beyond TensorFlow's import",
        Value(first_batch, "ms"),
        at_most=400,
        sets=("photo",),
        packages=("tensorflow",),
    ),
]
