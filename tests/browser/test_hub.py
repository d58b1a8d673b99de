"""JupyterHub with a proxy and a base URL: two people, each with a server and shards of their own, and nobody else let in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser import probes
from tests.browser.conftest import LIMIT, ROOT, Watched, as_installed, end, free_port, watch, write_notebook
from tests.browser.test_browse_lab import STILL
from tests.browser.test_lab_files import item, shown
from tests.conftest import wait_until
from tests.widgets.conftest import records, tar

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PROXY = Path(sys.prefix) / ".stamps" / "proxy" / "node_modules" / ".bin" / "configurable-http-proxy"
FIRST = {"ann": 0, "bob": 500}
"""People, and the number of the first record in what is theirs."""
PASSWORD = "open sesame"
CONFIG = """
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{ports[0]}/hub-test/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{ports[1]}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports[2]}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.cookie_secret_file = {secret!r}
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = {password!r}
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r}
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root", "--LabApp.expose_app_in_browser=True", "--log-level=DEBUG"]
c.Spawner.environment = {environment!r}
c.Spawner.default_url = "/lab"
c.Spawner.http_timeout = c.Spawner.start_timeout = 120
"""


@dataclass
class Hub:
    """A hub: its `url`, the `folder` with the homes of its people, and the `log` of the hub, its proxy and their servers."""

    url: str
    folder: Path
    log: Path

    def home(self, name: str) -> Path:
        return self.folder / "homes" / name

    def sign_in(self, chromium: Any, name: str) -> Watched:
        """A browser of somebody's own, signed in, on the file browser of their server."""
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        found = watch(context.new_page(), self.url)
        found.tab.set_default_timeout(120_000)
        found.tab.goto(f"{self.url}/hub/login")
        found.tab.get_by_label("Username").fill(name)
        found.tab.get_by_label("Password").fill(PASSWORD)
        found.tab.get_by_role("button", name="Sign in").click()
        found.tab.locator(".jp-DirListing-item", has_text="a.tar").wait_for()
        return found


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    pytest.importorskip("jupyterhub", reason="jupyterhub is not installed (make test-browser installs it)")
    proxy = shutil.which("configurable-http-proxy") or (str(PROXY) if PROXY.is_file() else None)
    if proxy is None:
        pytest.skip("configurable-http-proxy is not installed (make test-browser installs it)")
    folder = tmp_path_factory.mktemp("hub")
    for name, first in FIRST.items():
        home = folder / "homes" / name
        (home / "train").mkdir(parents=True)
        tar(home / "a.tar", records(first, 40))
        tar(home / "train" / "t-0.tar", records(first + 100, 40))
        cell = "import tarviz\ntarviz.browse('a.tar')"
        write_notebook(home / "look.ipynb", cell, "%load_ext tarviz")
    ports = [free_port() for _ in range(3)]
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]), **as_installed(folder / "installed")}
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    config = folder / "hub.py"
    names = {"homes": str(folder / "homes" / "{username}"), "secret": str(folder / "cookie"), "python": sys.executable}
    config.write_text(CONFIG.format(ports=ports, proxy=proxy, environment=environment, password=PASSWORD, **names), "utf-8")
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-m", "jupyterhub", "-f", str(config)]
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(lambda: "JupyterHub is now running" in (folder / "log").read_text("utf-8") or server.poll() is not None)
        yield Hub(f"http://127.0.0.1:{ports[0]}/hub-test", folder, folder / "log")
    finally:
        server.terminate()  # it ends its proxy and its servers, which have sessions of their own
        with suppress(subprocess.TimeoutExpired):
            server.wait(LIMIT)
        end(server)


@pytest.fixture(scope="module")
def people(hub: Hub, chromium: Any) -> Iterator[dict[str, Watched]]:
    found = {name: hub.sign_in(chromium, name) for name in FIRST}
    yield found
    for page in found.values():
        page.tab.context.close()


def key(name: str, more: int = 0) -> str:
    return f"set/n{FIRST[name] + more:06}"


@pytest.mark.parametrize("name", FIRST)
def test_a_double_click_shows_each_their_own(hub: Hub, people: dict[str, Watched], name: str):
    page = people[name]
    item(page, "a.tar").dblclick()

    assert key(name) == shown(page, "a.tar").locator(".tvz-key").first.get_attribute("title")
    assert f"/hub-test/user/{name}/tarviz/" in page.tab.locator("iframe[title='a.tar']").evaluate(
        "(frame) => frame.contentDocument.baseURI"
    )


def test_a_folder_opens_from_its_menu(people: dict[str, Watched]):
    page = people["ann"]
    item(page, "train").click(button="right")
    page.tab.locator(".lm-Menu-itemLabel", has_text="Open with tarviz").click()

    assert key("ann", 100) == shown(page, "train").locator(".tvz-key").first.get_attribute("title")


def test_a_notebook_browses_completes_and_shows_it_again(hub: Hub, people: dict[str, Watched]):
    context = people["ann"].tab.context
    page = watch(context.new_page(), hub.url)
    page.tab.goto(f"{hub.url}/user/ann/lab/workspaces/one/tree/look.ipynb")
    page.until("window.jupyterapp?.shell?.currentWidget?.context?.isReady")
    page.tab.evaluate(probes.RUN_ALL)
    page.until("document.querySelectorAll('.jp-OutputArea .tvz-tile img').length >= 6")
    page.tab.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    page.tab.evaluate("jupyterapp.commands.execute('notebook:insert-cell-below')")
    page.tab.evaluate("jupyterapp.commands.execute('notebook:enter-edit-mode')")
    page.tab.keyboard.type("%tv bro")
    page.again(lambda: page.key("Tab"), "/browse/.test(document.querySelector('.jp-Completer:not(.lm-mod-hidden)')?.textContent ?? '')")
    page.key("Escape")
    page.tab.evaluate("jupyterapp.commands.execute('docmanager:save')")
    wait_until(lambda: "image/png" in (hub.home("ann") / "look.ipynb").read_text("utf-8"))
    page.tab.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
    page.tab.close()
    again = watch(context.new_page(), hub.url)
    again.tab.goto(f"{hub.url}/user/ann/lab/workspaces/two/tree/look.ipynb")

    again.until(STILL)
    assert [] == again.elsewhere
    again.tab.close()


def test_nobody_sees_what_is_anothers(hub: Hub, people: dict[str, Watched]):
    for place in ("tarviz/?path=a.tar", "tarviz/state?path=a.tar", "tarviz/m/0/png?path=a.tar"):
        mine, others = (people[name].tab.context.request.get(f"{hub.url}/user/ann/{place}") for name in ("ann", "bob"))

        assert 200 == mine.status
        assert 403 == others.status
        assert "set/n0000" not in others.text()


def test_what_another_site_could_ask_is_refused(hub: Hub, people: dict[str, Watched]):
    """The cookies alone are not enough: a page that cannot read them does not get in."""
    asked, url = people["ann"].tab.context.request, f"{hub.url}/user/ann/tarviz"
    for token in ({}, {"X-XSRFToken": "guessed"}):
        assert 403 == asked.post(f"{url}/rpc?path=a.tar", data=b"{}", headers={"X-Tarviz": "1", **token}).status
    read = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "cross-site"}
    refused = asked.get(f"{url}/state?path=a.tar", headers=read, max_redirects=0)

    assert 302 == refused.status
    assert b"" == refused.body()


def test_no_token_is_in_an_address_or_a_log(hub: Hub, people: dict[str, Watched]):
    frame = people["ann"].tab.locator("iframe[title='a.tar']").element_handle().content_frame()
    assert "token" not in frame.evaluate("location.href + document.baseURI")
    assert "token" not in people["ann"].tab.url
    lines = [line for line in hub.log.read_text("utf-8").splitlines() if "/tarviz/" in line]

    assert lines
    assert [] == [line for line in lines if re.search(r"token=(?!\[secret\])|_xsrf=(?!\[secret\])", line)]
    assert [] == [error for page in people.values() for error in page.errors if "tarviz" in error or "tvz" in error]
