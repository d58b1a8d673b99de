"""When to try again, how long to wait, and when to give up."""

from __future__ import annotations

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores.http import HttpStore
from tarviz.stores.retry import Attempts, RetryError, http_date, retry_after
from tests.servers.clock import FakeClock


def waits(*errors: RetryError, timeout: float = 1000, reached: bool = True) -> list[float]:
    """The pauses between attempts that fail like this, until it gives up."""
    clock = FakeClock()
    attempts = Attempts("https://h/a.tar", timeout, clock)
    for error in errors:
        attempts.failed(error, None, reached=reached)
    return [round(wait, 3) for wait in clock.waits]


def failing(attempts: Attempts, error: RetryError, offset: int | None, *, reached: bool = True) -> None:
    """Attempts that fail until it gives up."""
    while True:
        attempts.failed(error, offset, reached=reached)


class TestWaits:
    def test_they_double_up_to_ten_seconds_with_chance_in_them(self):
        assert [0.15, 0.3, 0.6, 1.2, 2.4, 4.8, 7.5, 7.5] == waits(*[RetryError("x")] * 8)

    def test_a_connection_that_broke_is_tried_again_at_once_but_only_once(self):
        assert [0.3] == waits(*[RetryError("x", at_once=True)] * 2)

    def test_what_the_server_asks_for_is_waited_up_to_a_minute(self):
        assert [7.0, 60.0] == waits(RetryError("x", after=7), RetryError("x", after=1000))


class TestGivingUp:
    def test_after_the_time_without_progress_with_all_that_was_tried(self):
        clock = FakeClock()
        attempts = Attempts("https://u:secret@h/a.tar", 20, clock)
        with pytest.raises(StoreError) as caught:
            failing(attempts, RetryError("the connection broke"), 5)

        assert "E_NETWORK" == caught.value.code
        assert sum(clock.waits) <= 20
        assert "at byte 5 the connection broke (×" in caught.value.message
        assert len(clock.waits) + 1 == len(caught.value.details["attempts"])
        assert "secret" not in str(caught.value)

    def test_progress_begins_the_time_anew(self):
        clock = FakeClock()
        attempts = Attempts("https://h/a.tar", 5, clock)
        for _ in range(50):
            attempts.failed(RetryError("x", after=3), None, reached=True)
            attempts.progress()

        assert 150 == sum(clock.waits)

    def test_bytes_that_had_been_read_before_do_not_count_as_waiting(self):
        clock = FakeClock()
        attempts = Attempts("https://h/a.tar", 5, clock)
        attempts.failed(RetryError("x", after=4), None, reached=True)
        attempts.excuse(4)
        attempts.failed(RetryError("x", after=4), None, reached=True)

        assert [4, 4] == clock.waits

    @pytest.mark.parametrize(
        ("error", "reached", "most"),
        [({"unreached": True}, False, 15), ({"unreached": True, "refused": True}, False, 1.5), ({"unreached": True}, True, 1000)],
    )
    def test_a_server_that_was_never_there_is_given_up_sooner(self, error: dict[str, bool], reached: bool, most: float):
        clock = FakeClock()
        attempts = Attempts("https://h/a.tar", 1000, clock)
        with pytest.raises(StoreError, match=f"limit {most:.0f} s"):
            failing(attempts, RetryError("x", **error), None, reached=reached)

        assert sum(clock.waits) <= most


class TestPersist:
    def test_the_value_comes_after_failures_that_may_pass(self):
        left = [RetryError("a"), RetryError("b")]

        def call(stall_timeout: float) -> str:
            if left:
                raise left.pop()
            return "value"

        assert "value" == HttpStore(clock=FakeClock()).persist(URL("https://h"), call)

    def test_another_error_is_raised_at_once(self):
        clock = FakeClock()

        def call(stall_timeout: float) -> None:
            raise StoreError("no")

        with pytest.raises(StoreError, match="no"):
            HttpStore(clock=clock).persist(URL("https://h"), call)
        assert [] == clock.waits


class TestDates:
    def test_seconds_or_a_date_against_the_clock_of_the_server(self):
        clock = FakeClock()
        later, now = "Tue, 01 Jan 2030 00:01:00 GMT", "Tue, 01 Jan 2030 00:00:00 GMT"

        assert [5.0, 60.0, 0.0] == [retry_after("5", None, clock), retry_after(later, now, clock), retry_after(now, later, clock)]
        assert [None, None] == [retry_after(None, None, clock), retry_after("soon", None, clock)]

    @pytest.mark.parametrize("text", ["", "yesterday", "Tue, 99 Jan 2030 00:00:00 GMT"])
    def test_what_is_no_date_is_none(self, text: str):
        assert http_date(text) is None
        assert 0.0 == http_date("Thu, 01 Jan 1970 00:00:00 GMT")
