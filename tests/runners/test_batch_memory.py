"""Memory of batches comes back when nobody holds anything of it, and not before."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tarviz.runners.batch_memory import ALIGNED, LEAST, BatchMemory

SHAPE = (16, 256, 512)  # 2 MiB of uint8


def place(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


class TestBatchMemory:
    @pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 7, 11), SHAPE, (LEAST,)])
    @pytest.mark.parametrize("dtype", ["uint8", "float32", "int64", "bool"])
    def test_arrays_are_aligned_and_writable(self, shape: tuple[int, ...], dtype: str) -> None:
        made = BatchMemory().empty(shape, dtype)
        made[...] = 1

        assert (shape, np.dtype(dtype)) == (made.shape, made.dtype)
        assert made.flags.c_contiguous
        assert 0 == place(made) % ALIGNED

    @pytest.mark.parametrize(
        "held",
        [
            lambda array: array[3],
            lambda array: array.reshape(-1).view(np.float32)[7:8],
            lambda array: memoryview(array),
            lambda array: memoryview(array)[2:3],
            lambda array: np.asarray(memoryview(array)),
            lambda array: array.T[::-1],
            lambda array: {"deep": [(array[:1],)]},
        ],
        ids=("row", "other dtype", "buffer", "part of a buffer", "array of a buffer", "turned", "in a structure"),
    )
    def test_it_is_not_given_out_again_while_anything_of_it_is_held(self, held: Any) -> None:
        memory = BatchMemory()
        first = memory.empty(SHAPE, np.uint8)
        first[...] = 5
        at, kept = place(first), held(first)
        del first
        gc.collect()

        others = [memory.empty(SHAPE, np.uint8) for _ in range(3)]

        assert at not in map(place, others)
        del kept, others
        gc.collect()
        assert at in {place(array) for array in [memory.empty(SHAPE, np.uint8) for _ in range(4)]}

    def test_a_tensor_of_torch_holds_it(self) -> None:
        torch = pytest.importorskip("torch", reason="torch: pip install 'tarviz[torch]'")
        memory = BatchMemory()
        first = memory.empty(SHAPE, np.uint8)
        at, tensor = place(first), torch.from_numpy(first)[2]
        del first

        assert at != place(memory.empty(SHAPE, np.uint8))
        del tensor
        assert at == place(memory.empty(SHAPE, np.uint8)) or at == place(memory.empty(SHAPE, np.uint8))

    def test_another_size_is_other_memory(self) -> None:
        memory = BatchMemory()
        memory.empty(SHAPE, np.uint8)

        assert (17, 256, 512) == memory.empty((17, 256, 512), np.uint8).shape

    def test_what_waits_goes_with_the_iteration(self) -> None:
        memory = BatchMemory()
        array = memory.empty(SHAPE, np.uint8)
        gone = weakref.ref(memory)
        del memory
        gc.collect()

        assert gone() is None
        array[...] = 1  # what is held stays

    def test_few_pieces_wait(self) -> None:
        memory = BatchMemory()
        arrays = [memory.empty(SHAPE, np.uint8) for _ in range(20)]
        del arrays

        assert len(memory._spare) < 10

    @pytest.mark.parametrize("length", [LEAST, 50 << 20, 100 << 20, 300 << 20])
    def test_what_waits_is_a_quarter_of_a_gigabyte_or_one_piece(self, length: int) -> None:
        memory = BatchMemory()
        arrays = [memory.empty((length,), np.uint8) for _ in range(9)]
        places = set(map(place, arrays))
        del arrays

        waiting = len(memory._spare)
        kept = [memory.empty((length,), np.uint8) for _ in range(waiting)]

        assert max(1, min(6, (256 << 20) // length)) == waiting
        assert places >= set(map(place, kept))

    def test_columns_of_two_sizes_wait_each(self) -> None:
        memory = BatchMemory()
        arrays = [memory.empty((length,), np.uint8) for length in (150 << 20, 120 << 20) * 2]
        del arrays

        assert [120 << 20, 120 << 20, 150 << 20] == sorted(len(raw) - ALIGNED for raw in memory._spare)

    @pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda memory: pickle.loads(pickle.dumps(memory))])
    def test_a_copy_begins_with_nothing(self, again: Any) -> None:
        memory = BatchMemory()
        memory.empty(SHAPE, np.uint8)
        assert memory._spare

        assert not again(memory)._spare

    def test_threads_never_get_the_same(self) -> None:
        memory, clashes = BatchMemory(), []

        def work(number: int) -> None:
            for _ in range(30):
                array = memory.empty((LEAST,), np.uint8)
                array[:] = number
                threading.Event().wait(0.0001)
                if (array != number).any():
                    clashes.append(number)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))

        assert not clashes
