"""Places that show our widgets: each a server of its own with one cell that browses a shard, and the rules that VS Code sets, on a page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser import probes
from tests.browser.conftest import ROOT, Watched, answers, as_installed, end, free_port, watch, write_notebook

TOKEN = "tarviz"


def cell(shard: str) -> str:
    return f"import tarviz\ntarviz.browse({shard!r})"


@contextmanager
def server(folder: Path, command: list[str], ready: str, port: int) -> Iterator[str]:
    """A program of this Python that serves on `port`, with a home, settings and a cache of its own below `folder`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    for name in (
        "HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "IPYTHONDIR",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
    ):
        place = folder / "home" / name.lower()
        place.mkdir(parents=True, exist_ok=True)
        environment[name] = str(place)
    environment |= as_installed(folder / "installed")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-m", *command], start_new_session=True, env=environment, cwd=folder, **quiet)  # type: ignore[call-overload]
    try:
        answers(f"http://127.0.0.1:{port}{ready}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        end(process)


@contextmanager
def voila(folder: Path, shard: str, context: Any) -> Iterator[Watched]:
    source = write_notebook(folder / "voila.ipynb", cell(shard))
    port = free_port()
    command = ["voila", str(source), "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    with server(folder, command, "/voila/static/voila.js", port) as url:
        page = watch(context.new_page(), url)
        page.tab.goto(url, timeout=90_000)
        yield page


@contextmanager
def notebook(folder: Path, shard: str, context: Any) -> Iterator[Watched]:
    """Notebook 7."""
    source = write_notebook(folder / "notebook.ipynb", cell(shard))
    port = free_port()
    options = ["--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"]
    command = ["notebook", *options, f"--ServerApp.root_dir={folder}", "--expose-app-in-browser"]
    with server(folder, command, f"/api/status?token={TOKEN}", port) as url:
        page = watch(context.new_page(), url)
        page.tab.goto(f"{url}/notebooks/{source.name}?token={TOKEN}")
        page.until("window.jupyterapp?.shell?.currentWidget?.context?.isReady", 60)
        page.tab.evaluate(probes.RUN_ALL)
        yield page


@contextmanager
def marimo(folder: Path, shard: str, context: Any) -> Iterator[Watched]:
    """marimo, as an app that is run."""
    lines = "\n    ".join(cell(shard).splitlines())
    source = folder / "marimo_app.py"
    source.write_text(f'import marimo\n\napp = marimo.App(width="full")\n\n\n@app.cell\ndef _():\n    {lines}\n    return\n', "utf-8")
    port = free_port()
    command = ["marimo", "run", str(source), "--headless", "--no-token", "--host=127.0.0.1", f"--port={port}"]
    with server(folder, command, "/health", port) as url:
        page = watch(context.new_page(), url)
        page.tab.goto(url)
        yield page


# What a notebook's output in VS Code lives in: a frame of another origin with these rights, a class and variables of the theme. VS Code
# sets no Content-Security-Policy there unless `notebook.experimental.enableCsp` is on; this one is stricter than any it could set for a
# module that anywidget loads from a blob: no eval, nothing inline but styles, nothing from the network but the answers of the kernel.
SANDBOX = "allow-same-origin allow-scripts allow-forms allow-pointer-lock allow-downloads"
CSP = (
    "default-src 'none'; script-src 'nonce-tvz' blob:; style-src 'unsafe-inline'; img-src data: blob:; media-src blob:; connect-src 'self'"
)
THEMES = {
    "dark": "--vscode-editor-background: #1f1f1f; --vscode-editor-foreground: #cccccc",
    "light": "--vscode-editor-background: #ffffff; --vscode-editor-foreground: #3b3b3b",
}
_FRAME = """<!doctype html><html lang="en" style="{theme}">
<body class="vscode-{scheme}" style="margin: 0; background: var(--vscode-editor-background)">
<div id="output"></div><style id="css"></style>
<script nonce="tvz" type="module">
const load = async (name) => {{
  const text = await (await fetch(name)).text();
  return import(URL.createObjectURL(new Blob([text], {{ type: "text/javascript" }})));
}};
document.getElementById("css").textContent = await (await fetch("/widget.css")).text();
const [{{ pageModel, mount }}, {{ default: widget }}] = await Promise.all([load("/host.mjs"), load("/widget.mjs")]);
mount(widget, await pageModel(), document.getElementById("output"));
try {{ new Function("return 1")(); }} catch {{ document.body.dataset.noEval = "true"; }}
</script></body></html>"""


@contextmanager
def vscode(folder: Path, shard: str, context: Any, scheme: str = "dark") -> Iterator[Watched]:
    """Our module under the rules of VS Code's notebooks, on a page that stands for its window; the kernel's answers come by HTTP."""
    from tarviz.widgets.browse.controller import Browser
    from tarviz.widgets.host.page import ControllerPage

    def give(body: str, **headers: str) -> Callable[[Any], None]:
        return lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8", headers=headers)

    with ControllerPage(Browser(shard, cache=False)).start() as served:
        page = watch(context.new_page(), served.origin)
        page.tab.goto(served.url)  # for its cookie
        outer = f'<iframe sandbox="{SANDBOX}" src="/frame" style="border: 0; width: 100%; height: 97vh"></iframe>'
        page.tab.route(f"{served.origin}/window", give(f'<!doctype html><html lang="en"><body style="margin: 0">{outer}</body></html>'))
        frame = _FRAME.format(scheme=scheme, theme=THEMES[scheme])
        page.tab.route(f"{served.origin}/frame", give(frame, **{"content-security-policy": CSP}))
        page.tab.goto(f"{served.origin}/window")
        yield page


HOSTS: dict[str, Callable[..., Any]] = {"voila": voila, "notebook": notebook, "marimo": marimo, "vscode": vscode}
