"""Workers agree on the epoch without a word between them."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard

torch = pytest.importorskip("torch", reason="torch: make test-torch")
from torch.utils.data import DataLoader  # noqa: E402

from tarviz.runners.torch import safe_context  # noqa: E402
from tarviz.runners.torch.epochs import SIZE, Epochs  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")]


def test_workers_that_begin_at_once_agree() -> None:
    usual = sys.getswitchinterval()
    memory = np.zeros(SIZE, np.int64)
    Epochs(memory, 1).go_on(7)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for iteration in range(200):
                together = threading.Barrier(8)

                def begin(worker: int, together: threading.Barrier = together, iteration: int = iteration) -> int:
                    together.wait()
                    return Epochs(memory, 1).begin_in(worker, iteration % 2)  # numbered alike where torch is seeded alike

                assert {7 + iteration} == set(pool.map(begin, range(8)))
    finally:
        sys.setswitchinterval(usual)


def test_more_workers_seeded_alike_begin_one_epoch(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tar", ((f"r{number:02d}", {"cls": b"%d" % number}) for number in range(64)))
    dataset = Pipeline(tmp_path / "a.tar", "decode(cls)", select="cls").torch(shuffle=64)

    def drained(workers: int) -> list[int]:
        context = safe_context() if workers else None
        return [int(value) for value in DataLoader(dataset, num_workers=workers, multiprocessing_context=context)]

    for workers in (1, 3):
        torch.manual_seed(0)
        found = drained(workers)
        assert list(range(64)) == sorted(found)

    dataset.set_epoch(1)
    assert found == drained(3)
