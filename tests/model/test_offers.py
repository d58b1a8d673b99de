"""Offers to another thread: taken when there is room, given up when nobody wants them."""

from __future__ import annotations

import queue
import threading

from tarviz.model.offers import offer


def test_it_waits_for_room():
    to: queue.Queue[int] = queue.Queue(1)
    to.put(1)
    asked = threading.Event()

    def take():
        asked.wait(60)
        to.get()

    thread = threading.Thread(target=take)
    thread.start()

    assert offer(to, 2, lambda: asked.set())  # `set` gives None: not stopped
    assert 2 == to.get()
    thread.join()


def test_what_is_stopped_is_not_put():
    to: queue.Queue[int] = queue.Queue(1)

    assert not offer(to, 1, lambda: True)
    assert to.empty()


def test_it_is_given_up_while_there_is_no_room():
    to: queue.Queue[int] = queue.Queue(1)
    to.put(1)
    looks = iter((False, False, True))

    assert not offer(to, 2, lambda: next(looks))
    assert 1 == to.get()
    assert to.empty()
