"""Work done ahead by threads comes in the order in which it was given."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tarviz.model.errors import DataError
from tarviz.model.in_order import in_order


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


class TestInOrder:
    def test_order_is_kept_whichever_is_ready_first(self, pool: ThreadPoolExecutor) -> None:
        late = threading.Event()

        def load(number: int) -> int:
            if number == 1:
                late.set()
            elif number == 0:
                assert late.wait(30)  # until the one behind it is done
            return number * number

        assert [0, 1, 4, 9, 16] == list(in_order(iter(range(5)), load, pool, 2))

    def test_what_stands_before_an_error_comes_first(self, pool: ThreadPoolExecutor) -> None:
        def parts() -> Iterator[int]:
            yield from (1, 2)
            raise DataError("damaged", code="E_TRUNCATED")

        made: list[int] = []
        with pytest.raises(DataError):
            made.extend(in_order(parts(), lambda number: number, pool, 2))

        assert [1, 2] == made

    def test_leaving_does_no_more_than_was_begun(self, pool: ThreadPoolExecutor) -> None:
        begun, go = [], threading.Event()

        def work(number: int) -> int:
            begun.append(number)
            assert number == 0 or go.wait(30)
            return number

        with closing(in_order(iter(range(1000)), work, pool, 8)) as run:
            assert 0 == next(run)
        go.set()
        pool.shutdown()

        assert max(begun) <= 2
