"""Loops of a process that reaches a cluster through Ray's client alone: `python client_loops.py ADDRESS SHARDS CASE FOLDER` prints JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
import zlib
from pathlib import Path

import numpy as np

from tarviz.model.errors import TarvizError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline

ADDRESS, SHARDS, CASE, FOLDER = sys.argv[1:]
CHAIN = "decode(jpg)|random_crop(jpg, (24, 24))|flip(jpg)|decode(cls)"
AWAY = {"engine": "ray", "address": ADDRESS}


def pipeline(chain=CHAIN):
    return Pipeline(SHARDS, chain, select=("jpg", "cls"), seed=3)


def told(values):
    """Label and checksum of each picture, or of each batch of them."""
    return [[np.asarray(label).tolist(), zlib.crc32(np.ascontiguousarray(image).tobytes())] for image, label in values]


def pair(runner, **options):
    """What a runner gives here and there."""
    here, away = pipeline().run(runner, **options), pipeline().run(runner, **options, **AWAY)
    return told(here), told(away)


def tf():
    here, away = pipeline().tf(batch=16, graph=False), pipeline().tf(batch=16, **AWAY)
    assert here.element_spec == away.element_spec
    return told(here.as_numpy_iterator()), told(away.as_numpy_iterator())


def slow(record):
    (Path(FOLDER) / f"pid-{os.getpid()}").touch()
    time.sleep(0.01)


def killed():
    """Every worker is killed after twenty records."""
    found = []
    for image, label in pipeline([Func(slow)]).eager(**AWAY, num_workers=2, send_functions=True):
        found.append([int(label), zlib.crc32(bytes(image))])
        if len(found) == 20:
            for path in Path(FOLDER).glob("pid-*"):
                os.kill(int(path.name[4:]), signal.SIGKILL)
    return [[int(label), zlib.crc32(bytes(image))] for image, label in pipeline([Func(lambda record: None)]).eager()], found


def left():
    """A loop that is left early, and another within a third."""
    values = iter(pipeline().eager(**AWAY, num_workers=1))
    first = [int(next(values)[1]) for _ in range(3)]
    values.close()
    outer, inner = [], []
    for _, label in pipeline().eager(**AWAY):
        outer.append(int(label))
        if len(outer) == 2:
            inner = [int(number) for _, number in pipeline().eager(**AWAY, shuffle=5)]
    return first, outer, sorted(inner)


def wrong():
    """The error of a damaged record."""

    def fails(record):
        if record["cls"] == b"60":
            raise ZeroDivisionError("nothing")

    found = []
    try:
        found += (int(label) for _, label in pipeline([Func(fails)]).eager(**AWAY, send_functions=True))
    except TarvizError as error:
        return found, str(error)
    return found, ""


CASES = {
    "eager": lambda: pair("eager"),
    "shuffle": lambda: pair("eager", shuffle=30, batch=16, repeat=2),
    "tf": tf,
    "torch": lambda: pair("torch", shuffle=20),
    "killed": killed,
    "left": left,
    "wrong": wrong,
}


warnings.simplefilter("ignore")
print("\n" + json.dumps([case() for case in map(CASES.__getitem__, CASE.split(","))]))
