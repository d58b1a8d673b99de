"""Work done ahead by threads comes in the order in which it was given."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from tarviz.model.errors import DataError
from tarviz.runners.in_order import in_order
from tests.conftest import wait_until


class TestInOrder:
    def test_order_is_kept_whichever_is_ready_first(self) -> None:
        late = threading.Event()

        def load(number: int) -> int:
            if number == 1:
                late.set()
            elif number == 0:
                assert late.wait(30)  # until the one behind it is done
            return number * number

        assert [0, 1, 4, 9, 16] == list(in_order(iter(range(5)), load, 2, 2, "test"))

    def test_what_stands_before_an_error_comes_first(self) -> None:
        def parts() -> Iterator[int]:
            yield from (1, 2)
            raise DataError("damaged", code="E_TRUNCATED")

        made: list[int] = []
        with pytest.raises(DataError):
            made.extend(in_order(parts(), lambda number: number, 2, 2, "test"))

        assert [1, 2] == made

    def test_leaving_ends_the_threads(self) -> None:
        before = threading.active_count()
        with closing(in_order(iter(range(1000)), lambda number: number, 2, 2, "test")) as run:
            assert 0 == next(run)
            assert threading.active_count() > before

        wait_until(lambda: threading.active_count() == before)
