"""Shards from JupyterLab's own file browser, menus and launcher, in a stock JupyterLab below a base URL."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import hosts
from tests.browser.conftest import Lab, Watched, free_port, running_lab, watch
from tests.conftest import wait_until
from tests.widgets.conftest import records, tar

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

HUGE = 3 << 30
CURRENT = "window.jupyterapp.shell.currentWidget?.title.label"


def huge(path: Path) -> Path:
    """A shard of 3 GB, nearly all of it a hole in the file: its last record has a field of that size."""
    tar(path, records(0, 30))
    with tarfile.open(path) as archive:
        end = max(each.offset_data + -(-each.size // 512) * 512 for each in archive)
    field = tarfile.TarInfo("zzz/huge.bin")
    field.size = HUGE
    with path.open("r+b") as file:
        file.seek(end)
        file.write(field.tobuf())
        file.truncate(end + 512 + HUGE + 1024)
    return path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    pytest.importorskip("jupyterlab", reason="jupyterlab is in the extra `lab`")
    with running_lab(tmp_path_factory.mktemp("files"), "/hub/user/x", "--ServerApp.log_level=DEBUG") as lab:
        (lab.folder / "train").mkdir()
        for name, first in (("a.tar", 0), ("train/t-0.tar", 200), ("train/t-1.tar", 300)):
            tar(lab.folder / name, records(first, 40))
        tar(lab.folder / "b.tar.gz", records(100, 40), mode="w:gz")
        huge(lab.folder / "huge.tar")
        yield lab


@pytest.fixture
def page(lab: Lab, chromium: Any) -> Iterator[Watched]:
    """JupyterLab's file browser."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    found = watch(context.new_page(), lab.url)
    found.tab.goto(f"{lab.url}/lab?token={lab.token}&reset")
    found.tab.locator(".jp-DirListing-item", has_text="a.tar").wait_for()
    yield found
    assert [] == found.elsewhere
    assert [] == [error for error in found.errors if "tarviz" in error or "tvz" in error]
    context.close()


def item(page: Watched, name: str) -> Any:
    return page.tab.locator(".jp-DirListing-item", has=page.tab.get_by_text(name, exact=True))


def shown(page: Watched, title: str) -> Any:
    """The page in the frame of this title, once it shows tiles."""
    frame = page.tab.frame_locator(f"iframe[title='{title}']")
    frame.locator(".tvz-tile:not(.tvz-waiting)").first.wait_for()
    return frame


def test_double_click_on_a_shard_shows_its_records(page: Watched):
    item(page, "a.tar").dblclick()
    frame = shown(page, "a.tar")

    assert frame.locator(".tvz-tile:not(.tvz-waiting)").count() >= 6
    page.until(f"{CURRENT} === 'a.tar'")


def test_no_byte_of_a_large_shard_passes_the_contents_api(lab: Lab, page: Watched):
    item(page, "huge.tar").dblclick()
    shown(page, "huge.tar")
    page.until("window.jupyterapp.shell.currentWidget?.context?.isReady")
    asked = re.findall(r"\b([A-Z]+ /hub/user/x/(?:api/contents|files)/huge\.tar\S*)", lab.log.read_text("utf-8"))
    told = [
        line for line in asked if line.startswith("GET") and (("content=0" in line and "hash=1" not in line) or "/checkpoints?" in line)
    ]

    assert asked
    assert asked == told  # its size and date, and that it has no checkpoints
    assert [] == list(lab.folder.rglob("huge-checkpoint*"))


def test_two_shards_at_once_each_show_their_own(page: Watched):
    for name in ("a.tar", "b.tar.gz"):
        item(page, name).dblclick()
        shown(page, name)

    one, other = (page.tab.frame_locator(f"iframe[title='{name}']").locator(".tvz-key").first for name in ("a.tar", "b.tar.gz"))
    assert ("set/n000000", "set/n000100") == (one.get_attribute("title"), other.get_attribute("title"))


def test_a_folder_of_shards_opens_from_its_menu(page: Watched):
    item(page, "train").click(button="right")
    page.tab.locator(".lm-Menu-itemLabel", has_text="Open with tarviz").click()
    frame = shown(page, "train")

    assert ["all shards", "t-0.tar", "t-1.tar"] == frame.locator(".tvz-shard-name").all_inner_texts()
    page.until(f"{CURRENT} === 'train'")


def test_the_launcher_has_a_card_and_its_page_opens_shards(page: Watched):
    page.tab.locator(".jp-LauncherCard[title='Look through tar shards']").click()
    frame = page.tab.frame_locator("iframe[title='tarviz']")
    frame.get_by_label("shards to open").fill("train/t-{0..1}.tar")
    frame.get_by_label("shards to open").press("Enter")

    assert ["all shards", "t-0.tar", "t-1.tar"] == shown(page, "tarviz").locator(".tvz-shard-name").all_inner_texts()


def test_what_is_hidden_or_outside_is_told_and_not_shown(page: Watched):
    page.tab.evaluate("window.jupyterapp.commands.execute('tarviz:open', { path: '../secret.tar' })")
    told = page.tab.frame_locator("iframe[title='../secret.tar']").get_by_role("alert")

    assert "no such file or folder in the folder of this Jupyter server" in told.inner_text()
    page.errors.clear()  # the browser names what was 404


def test_it_follows_the_theme_and_leaves_jupyterlab_its_shortcuts(page: Watched):
    item(page, "a.tar").dblclick()
    frame = shown(page, "a.tar")
    colour = "(root) => [getComputedStyle(root).backgroundColor, getComputedStyle(root).colorScheme]"
    light = frame.locator(".tvz").evaluate(colour)
    page.tab.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.until("document.querySelector('iframe').contentDocument.body.dataset.jpThemeLight === 'false'")
    dark = frame.locator(".tvz").evaluate(colour)
    page.tab.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' })")
    frame.locator(".tvz-tile").first.click()
    page.key("Control+b")

    assert ("light", "dark") == (light[1], dark[1])
    assert light[0] != dark[0]
    page.until("window.jupyterapp.shell.leftCollapsed")
    page.key("Control+b")
    page.until("!window.jupyterapp.shell.leftCollapsed")


def test_a_reloaded_jupyterlab_shows_again_what_was_open(lab: Lab, page: Watched):
    item(page, "a.tar").dblclick()
    shown(page, "a.tar")
    item(page, "train").click(button="right")
    page.tab.locator(".lm-Menu-itemLabel", has_text="Open with tarviz").click()
    shown(page, "train")
    kept = "window.jupyterapp.serviceManager.workspaces.fetch('default').then(JSON.stringify)"
    wait_until(lambda: {"tarviz:a.tar", "tarviz:train"} <= set(re.findall(r"tarviz:[\w.]+", page.tab.evaluate(kept))))
    page.tab.goto(f"{lab.url}/lab")

    shown(page, "train")
    page.tab.locator(".lm-TabBar-tabLabel", has_text="a.tar").click()
    shown(page, "a.tar")


def test_a_shard_that_is_renamed_stays_open(lab: Lab, page: Watched):
    tar(lab.folder / "before.tar", records(0, 5))
    page.tab.evaluate("window.jupyterapp.commands.execute('filebrowser:refresh')")
    item(page, "before.tar").dblclick()
    shown(page, "before.tar")
    page.tab.evaluate("window.jupyterapp.serviceManager.contents.rename('before.tar', 'after.tar')")

    page.until(f"{CURRENT} === 'after.tar'")
    page.until("document.querySelector('iframe').contentDocument.baseURI.endsWith('path=after.tar')")
    shown(page, "after.tar")


def test_notebook_7_opens_a_shard_in_a_tab_of_the_browser(chromium: Any, tmp_path: Path):
    pytest.importorskip("notebook", reason="notebook is not installed (make test-browser installs it)")
    tar(tmp_path / "a.tar", records(0, 40))
    port = free_port()
    options = ["--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={hosts.TOKEN}"]
    context = chromium.new_context()
    with hosts.server(tmp_path, ["notebook", *options, f"--ServerApp.root_dir={tmp_path}"], "/api", port) as url:
        tree = watch(context.new_page(), url)
        tree.tab.goto(f"{url}/tree?token={hosts.TOKEN}")
        with context.expect_page() as opened:
            item(tree, "a.tar").dblclick()

        shown(watch(opened.value, url), "a.tar")
    context.close()
