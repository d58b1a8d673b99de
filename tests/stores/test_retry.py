"""When to try again, how long to wait, and when to give up."""

from __future__ import annotations

import logging
import time

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores.http import HttpStore
from tarviz.stores.retry import Attempts, Clock, Pace, RetryError, http_date, retry_after, waiting
from tests.conftest import each_case
from tests.servers.clock import FakeClock


def waits(*errors: RetryError, timeout: float = 1000, reached: bool = True) -> list[float]:
    """The pauses between attempts that fail like this, until it gives up."""
    clock = FakeClock()
    attempts = Attempts("https://h/a.tar", timeout, clock)
    for error in errors:
        attempts.fail(error, None, reached=reached)
    return [round(wait, 3) for wait in clock.waits]


def failing(attempts: Attempts, error: RetryError, offset: int | None, *, reached: bool = True) -> None:
    """Attempts that fail until it gives up."""
    while True:
        attempts.fail(error, offset, reached=reached)


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
            attempts.fail(RetryError("x", after=3), None, reached=True)
            attempts.progress()

        assert 150 == sum(clock.waits)

    def test_bytes_that_had_been_read_before_do_not_count_as_waiting(self):
        clock = FakeClock()
        attempts = Attempts("https://h/a.tar", 5, clock)
        attempts.fail(RetryError("x", after=4), None, reached=True)
        attempts.excuse(4)
        attempts.fail(RetryError("x", after=4), None, reached=True)

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


class TestWaiting:
    def test_what_is_waited_for_is_known_while_it_is(self):
        url, clock = "https://h/waits.tar", FakeClock()
        attempts = Attempts(url, 20, clock)
        told = [waiting(url)]
        attempts.fail(RetryError("Connection refused"), None, reached=True)
        told.append(waiting(url))
        attempts.fail(RetryError("no answer"), None, reached=True)
        told.append(waiting(url))
        attempts.progress()
        told.append(waiting(url))
        with pytest.raises(StoreError):
            failing(attempts, RetryError("x"), None)
        told.append(waiting(url))

        assert ["", "Connection refused; attempt 2 in 0.2 s", "no answer; attempt 3 in 0.3 s", "", ""] == told

    @pytest.mark.parametrize(("after", "level"), [(4.9, "INFO"), (5, "WARNING")])
    def test_a_long_wait_is_a_warning(self, caplog, after: float, level: str):
        with caplog.at_level("INFO", "tarviz"):
            Attempts("https://u:secret@h/a.tar?sig=secret", 20, FakeClock()).fail(RetryError("x", after=after), None, reached=True)

        ((_, found, text),) = caplog.record_tuples
        assert (level, True, False) == (logging.getLevelName(found), text.endswith(f"x; attempt 2 in {after:.1f} s"), "secret" in text)

    def test_the_last_words_say_all_that_was_tried(self):
        attempts = Attempts("https://h/a.tar", 9.4, FakeClock())
        for error, offset in ((RetryError("a", after=3), 5), (RetryError("a", after=3), 5), (RetryError("b", after=3), None)):
            attempts.fail(error, offset, reached=True)
        with pytest.raises(StoreError) as caught:
            attempts.fail(RetryError("c", code="E_STALL", after=90), 7, reached=True)

        said = (
            "gave up after 4 attempts in 9 s without progress (limit 9 s): at byte 5 a (×2); b; at byte 7 c; the server asks to wait 90 s."
        )
        assert (said, "E_STALL", "Try later, or raise retry_timeout.") == (caught.value.message, caught.value.code, caught.value.hint)
        attempts = [(5, "a"), (5, "a"), (None, "b"), (7, "c")]
        assert {"attempts": [{"offset": at, "reason": reason} for at, reason in attempts]} == caught.value.details

    def test_of_very_many_the_first_six_are_shown(self):
        attempts = Attempts("https://h/a.tar", 60, FakeClock())
        for at in range(8):
            attempts.fail(RetryError(f"r{at}", after=0), None, reached=True)
        with pytest.raises(StoreError, match=r": r0; r1; r2; r3; r4; r5; … \(3 more\); the server asks to wait 61 s\."):
            attempts.fail(RetryError("r8", after=61), None, reached=True)

    def test_one_attempt_is_one(self):
        with pytest.raises(StoreError, match=r"after 1 attempt in 0 s.*Check address and network"):
            Attempts("https://h/a.tar", 60, FakeClock()).fail(RetryError("r", after=61, unreached=True), None, reached=True)

    def test_a_refusal_may_be_borne_for_less(self):
        clock = FakeClock()
        with pytest.raises(StoreError, match="limit 10 s"):
            failing(Attempts("https://h/a.tar", 60, clock), RetryError("x", after=4, limit=10), None)

        assert [4, 4] == clock.waits


class TestPace:
    def test_a_minute_below_the_rate_is_too_slow(self):
        pace = Pace(100)
        pace.count(59.9, 10)
        with pytest.raises(RetryError, match=r"0.167 bytes a second came, fewer than min_rate \(100\)") as caught:
            pace.count(0.1, 0)

        assert ("E_STALL", True) == (caught.value.code, caught.value.at_once)

    def test_each_minute_is_one_of_its_own(self):
        pace = Pace(100)
        pace.count(60, 6000)
        pace.count(59, 0)
        with pytest.raises(RetryError, match=r"98\.4 bytes"):
            pace.count(2, 6000)
        pace.count(59, 0)

    def test_any_rate_will_do_where_none_is_asked(self):
        Pace(0).count(1000, 0)


def test_the_clock_is_that_of_this_machine():
    clock = Clock()

    assert time.time() - 5 < clock.wall() < time.time() + 5
    assert time.monotonic() - 5 < clock.now() < time.monotonic() + 5
    assert len({clock.random() for _ in range(5)}) > 1
    assert all(0 <= clock.random() < 1 for _ in range(50))


@each_case(("text", "seconds"), [("0", 0.0), (" 12 ", 12.0), ("9" * 40, 999999999999.0), ("1.5", None), ("-3", None)])
def test_patience_is_asked_for_in_whole_seconds(text: str, seconds: float | None):
    assert seconds == retry_after(text, None, FakeClock())


def test_a_date_without_one_of_the_server_is_held_against_ours():
    class Fixed(FakeClock):
        def wall(self) -> float:
            return 1893456000.0  # the first of 2030

    assert 60.0 == retry_after("Tue, 01 Jan 2030 00:01:00 GMT", None, Fixed())
    assert 60.0 == retry_after("Tue, 01 Jan 2030 00:01:00 GMT", "no date", Fixed())
