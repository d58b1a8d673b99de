"""Chromium, pages and a JupyterLab for the tests that look at the real thing. Each skips by name where it is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.browser import probes

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ROOT = Path(__file__).parents[2]
AXE = "axe-core@4.10.3"
LIMIT = 60.0  # seconds for what must happen: for a page that hangs, not for a slow machine


def chromium_path() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's chromium under Playwright."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is in the extra `test`")
    path = chromium_path()
    if path is None:
        pytest.skip("chromium is not installed (make test-browser installs it where it can)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A tab and what it did: requests to elsewhere, errors, requests to the controller."""

    tab: Any
    elsewhere: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    flying: int = 0
    peak: int = 0

    def shown(self) -> list[str]:
        """Keys of the tiles in view, top to bottom."""
        found: list[str] = self.tab.evaluate(probes.SHOWN)
        return found

    def shows(self, keys: list[str]) -> None:
        """Wait until the tiles in view are of these records."""
        end = time.monotonic() + LIMIT
        while (found := self.shown()) != keys:
            assert time.monotonic() < end, f"{found} in view for {LIMIT:.0f} s, not {keys}\n{self.errors}"
            self.tab.wait_for_timeout(30)

    def status(self) -> str:
        return str(self.tab.locator(".tvz-status").inner_text())

    def key(self, *names: str) -> None:
        for name in names:
            self.tab.keyboard.press(name)
            self.tab.wait_for_timeout(60)

    def barred(self, axe: str) -> list[tuple[str, str]]:
        """What axe-core calls serious or critical on the page: the rule, and the first element that breaks it."""
        self.tab.evaluate(axe)
        found = self.tab.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
        return [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in ("serious", "critical")]

    def pane(self) -> str:
        """The key in the record pane."""
        return str(self.tab.locator(".tvz-pane h2").get_attribute("title"))

    def _evaluated(self, script: str) -> Any:
        """What a script gives; None while the page is being replaced by another, to which a control may lead."""
        try:
            return self.tab.evaluate(script)
        except Exception as error:
            if "context was destroyed" in str(error) or "navigation" in str(error):
                return None
            raise

    def _true(self, expression: str) -> bool:
        return bool(self._evaluated(f"Boolean({expression})"))

    def copied(self, part: str) -> None:
        """Wait until the clipboard holds text with this part."""
        end = time.monotonic() + LIMIT
        while part not in (held := str(self.tab.evaluate("navigator.clipboard.readText()"))):
            assert time.monotonic() < end, f"the clipboard holds {held!r}"
            self.tab.wait_for_timeout(30)

    def until(self, expression: str, seconds: float = LIMIT) -> None:
        """Wait until a JavaScript expression is true. (Playwright's own wait needs `eval`, which our pages forbid.)"""
        end = time.monotonic() + (seconds := max(seconds, LIMIT))
        while not self._true(expression):
            assert time.monotonic() < end, f"not true within {seconds} s: {expression}\n{self.errors}"
            self.tab.wait_for_timeout(30)

    def again(self, act: Callable[[], object], expression: str) -> None:
        """Do it, and once more each second, until a JavaScript expression is true: for what is heard only once something else has come."""
        end, after = time.monotonic() + LIMIT, 0.0
        while not self._true(expression):
            assert time.monotonic() < end, f"not true within {LIMIT} s: {expression}\n{self.errors}"
            if time.monotonic() >= after:
                act()
                after = time.monotonic() + 1
            self.tab.wait_for_timeout(30)

    def settled(self) -> None:
        """Wait until what the page has asked for is answered and drawn."""
        end = time.monotonic() + LIMIT
        while self._evaluated(probes.FRAMES) is None or self.flying:
            assert time.monotonic() < end, f"{self.flying} questions without an answer for {LIMIT:.0f} s\n{self.errors}"

    def still(self) -> None:
        """Wait until what fades or moves has come to its end."""
        self.until(
            "document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getComputedTiming().endTime === Infinity)"
        )


def watch(tab: Any, own: str) -> Watched:
    """Listen to a tab whose own server is at `own`."""
    found = Watched(tab)

    def begun(request: Any) -> None:
        if not request.url.startswith((own, "data:", "blob:")):
            found.elsewhere.append(request.url)
        if request.url.endswith("/rpc"):
            found.flying += 1
            found.peak = max(found.peak, found.flying)

    def ended(request: Any) -> None:
        found.flying -= request.url.endswith("/rpc")

    tab.on("request", begun)
    tab.on("requestfinished", ended)
    tab.on("requestfailed", ended)
    tab.on("pageerror", lambda error: found.errors.append(str(error)))
    tab.on("console", lambda message: found.errors.append(message.text) if message.type == "error" else None)
    tab.on("dialog", lambda dialog: (found.errors.append(f"dialog {dialog.message}"), dialog.dismiss()))
    return found


@pytest.fixture
def open_widget(chromium: Any) -> Iterator[Callable[..., Watched]]:
    """`open_widget(controller, ready="selector", width=1280, height=800, scheme="light")`: the stand-alone page of a controller."""
    from tarviz.widgets.host.page import ControllerPage

    pages: list[ControllerPage] = []
    contexts: list[Any] = []

    def make(controller: Any, ready: str, *, width: int = 1280, height: int = 800, scheme: str = "light", **more: Any) -> Watched:
        page = ControllerPage(controller).start()
        pages.append(page)
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=page.origin)
        found = watch(context.new_page(), page.origin)
        found.tab.set_default_timeout(LIMIT * 1000)
        found.tab.goto(page.url)
        found.tab.wait_for_selector(ready)
        found.page = page  # type: ignore[attr-defined]
        return found

    yield make
    for context in contexts:
        context.close()
    for page in pages:
        page.close()


@pytest.fixture
def open_page(open_widget: Callable[..., Watched]) -> Callable[..., Watched]:
    """`open_page(urls, width=1280, height=800, scheme="light", **browser options)`: the stand-alone page on shards."""
    from tarviz.widgets.browse.controller import Browser

    def make(urls: Any, *, width: int = 1280, height: int = 800, scheme: str = "light", **wish: Any) -> Watched:
        ready = ".tvz-tile:not(.tvz-waiting), .tvz-empty:not([hidden])"
        return open_widget(Browser(urls, cache=False, **wish), ready, width=width, height=height, scheme=scheme)

    return make


@dataclass
class Lab:
    """A JupyterLab of its own: `url`, its `folder` of notebooks, its `token`, and what its server writes to the `log`."""

    url: str
    folder: Path
    token: str
    environment: dict[str, str]
    log: Path

    def open(self, context: Any, name: str, *, run: bool = True) -> Watched:
        """A notebook in a tab, run from top to bottom unless told otherwise."""
        found = watch(context.new_page(), self.url)
        found.tab.set_default_timeout(LIMIT * 1000)
        found.tab.goto(f"{self.url}/lab/tree/{name}?token={self.token}&reset")
        found.until("window.jupyterapp?.shell?.currentWidget?.context?.isReady", 60)
        if run:
            # the notebook's own indicator says idle before the kernel is there: ask the kernel itself
            found.tab.evaluate(probes.RUN_ALL)
        return found


def write_notebook(path: Path, *cells: str) -> Path:
    notebook = {
        "cells": [
            {"cell_type": "code", "id": f"c{n}", "metadata": {}, "outputs": [], "source": cell, "execution_count": None}
            for n, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook), "utf-8")
    return path


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a free port, with settings, trust and history of its own."""
    for package in ("jupyterlab", "anywidget", "ipykernel"):
        pytest.importorskip(package, reason=f"{package} is in the extra `lab`")
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@contextmanager
def running_lab(base: Path, base_url: str = "", *more: str) -> Iterator[Lab]:
    """A JupyterLab with tarviz installed into it, below the address `base_url`. It keeps everything it writes below `base`."""
    folder = base / "notebooks"
    places = {"HOME": "home", "IPYTHONDIR": "ipython"}
    places |= {f"JUPYTER_{name.upper()}_DIR": name for name in ("config", "data", "runtime")}
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(base / "cache")}
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(base / "settings")
    for name, place in places.items():
        (base / place).mkdir()
        environment[name] = str(base / place)
    environment |= as_installed(base / "installed")
    folder.mkdir()
    settings = base / "app"
    _app_dir(settings)
    port = free_port()
    options = [
        "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token=tarviz",
        f"--ServerApp.root_dir={folder}", f"--LabApp.app_settings_dir={settings}", "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.extension_manager=readonly", "--expose-app-in-browser",
        f"--ServerApp.base_url={base_url}/", *more,
    ]  # fmt: skip
    with (base / "log").open("wb") as log:
        command = [sys.executable, "-m", "jupyterlab", *options]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}{base_url}"
        answers(f"{url}/api/status?token=tarviz", server)
        yield Lab(url, folder, "tarviz", environment, base / "log")
    finally:
        end(server)


def as_installed(prefix: Path) -> dict[str, str]:
    """Lay below `prefix` what the wheel lays there for Jupyter: the environment in which Jupyter finds it, before what was installed."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in wheel["shared-data"].items():
        (prefix / target).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, prefix / target)
    return {"JUPYTER_PATH": str(prefix / "share" / "jupyter"), "JUPYTER_CONFIG_PATH": str(prefix / "etc" / "jupyter")}


def _app_dir(settings: Path) -> None:
    """Settings that are read once at the start: no news. Nothing that people do not have."""
    settings.mkdir()
    overrides = {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    }
    (settings / "overrides.json").write_text(json.dumps(overrides), "utf-8")


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answers(url: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server that was just started answers, whatever it says."""
    until = time.monotonic() + 2 * LIMIT
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=30):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"{url} does not answer; its server {'still runs' if server.poll() is None else 'ended'}")


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server that was started in a session of its own, and what it started."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, how)
        with suppress(subprocess.TimeoutExpired):
            server.wait(15)
            return


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    done = subprocess.run(["npm", "install", "--silent", "--no-save", "--prefix", str(folder), AXE], capture_output=True, timeout=100)
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    if done.returncode or not source.is_file():
        pytest.skip("axe-core could not be installed")
    return source.read_text("utf-8")
