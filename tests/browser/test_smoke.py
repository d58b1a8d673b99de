"""The quickest look at the real thing, part of `make test` where chromium is there."""

from __future__ import annotations

from tests.widgets.conftest import records, tar


def test_the_page_draws_its_tiles_and_asks_nobody_else(tmp_path, open_page):
    page = open_page(tar(tmp_path / "a.tar", records(0, 30)))
    page.until("document.querySelectorAll('.tvz-tile img').length >= 8 && document.querySelector('.tvz-pane h2')")
    sizes = page.tab.evaluate("[...document.querySelectorAll('.tvz-tile img')].map((image) => image.naturalWidth)")

    assert {12} == set(sizes)
    assert "set/n000000" == page.pane()
    assert "scanned · 30 records" in page.status()
    assert [] == page.elsewhere
    assert [] == page.errors
    assert page.peak <= 3  # two, and a poll
