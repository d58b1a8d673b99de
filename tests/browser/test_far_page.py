"""Shards of a server far away: a search reads on until it is stopped, a server that dies is named."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tarviz.testing.faults import FaultServer
from tests.browser.conftest import answers, end, free_port
from tests.conftest import wait_until
from tests.widgets.conftest import tar

pytestmark = pytest.mark.browser
COUNT = 3000
SIZE = 4000


@pytest.fixture
def far(tmp_path):
    records = [(f"n{number:05d}", {"txt": os.urandom(SIZE).hex().encode(), "cls": b"1"}) for number in range(COUNT)]
    with FaultServer(latency=0.02, bandwidth=4e6) as server:
        server.shard = server.put("/far.tar", tar(tmp_path / "far.tar", records).read_bytes())
        yield server


def says(page, text):
    page.until(f"document.querySelector('.tvz-status').textContent.includes({text!r})")


def test_a_search_reads_on_with_what_it_looked_at_and_finds(far, open_page):
    page = open_page([far.shard])
    says(page, "the rest is read when it is looked at")
    page.tab.locator(".tvz-filter").fill(f"n{COUNT - 1:05d}")
    says(page, "MB read")
    page.tab.get_by_role("button", name="Stop").wait_for()

    page.shows([f"n{COUNT - 1:05d}"])
    says(page, "1 shown")
    assert [] == page.errors


def test_a_search_that_is_stopped_reads_no_more(far, open_page):
    page = open_page([far.shard])
    says(page, "the rest is read when it is looked at")
    far.bandwidth = 1e6
    page.tab.locator(".tvz-filter").fill("n00001")
    page.shows(["n00001"])
    page.tab.get_by_role("button", name="Stop").click()
    wait_until(lambda: page.page.controller.shards.rows.shards[0].state == "paused")

    assert len(page.page.controller.shards.rows) < COUNT
    assert ["n00001"] == page.shown()


def test_a_server_that_dies_is_named_with_its_cause(far, tmp_path, open_page, monkeypatch):
    monkeypatch.setenv("TARVIZ_RETRY_TIMEOUT", "8")
    host = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "http.server", host.rpartition(":")[2], "--bind", "127.0.0.1", "--directory", str(tmp_path)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        answers(f"http://{host}/", server)
        page = open_page([f"http://{host}/far.tar"])
        says(page, "the rest is read when it is looked at")
    finally:
        end(server)
    page.tab.get_by_role("button", name="scan all").click()

    says(page, f"{host} does not answer")
    page.until("/refused/i.test(document.querySelector('.tvz-status').textContent)")
    page.until("document.querySelector('.tvz-dot-unreachable')")
    says(page, "1 shard unreachable")
    page.tab.get_by_role("button", name="retry").wait_for()
    assert not page.tab.evaluate("/kernel|cell/.test(document.querySelector('.tvz-status').textContent)")
