"""Compare and bench in a real JupyterLab: run-all, clicks, keys that stay inside, Stop, restart, saved, untrusted, exported, Voila."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Lab, Watched, answers, end, free_port, watch, write_notebook
from tests.conftest import wait_until
from tests.widgets.conftest import png, tar

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

COMPARE = "%%tv compare shard.tar -n 3\nsmall = decode(png)|resize(png, (20, 30))|convert(png, float32)\nturned = decode(png)|rotate(png)"
READY = "document.querySelectorAll('.tvz-ctile img').length === 3 * (1 + 3 + 2)"
CLICK = """async (at) => {
  const tile = document.querySelectorAll('.tvz-ctile')[at];
  const names = document.querySelector('.tvz-stage-names');
  const canvas = document.querySelector('.tvz-stage canvas');
  const before = canvas.toDataURL();
  const begin = performance.now();
  tile.click();
  while (performance.now() - begin < 60_000 && canvas.toDataURL() === before) await new Promise((go) => setTimeout(go, 1));
  return canvas.toDataURL() === before ? null : performance.now() - begin;
}"""
"""Click a tile: milliseconds until the stage shows another picture, null when it does not."""

OUTPUTS = """((cells) => Array.from({ length: cells.length }, (_, at) => cells.get(at).outputs?.toJSON() ?? []).flat())(
  jupyterapp.shell.currentWidget.context.model.cells)"""


@pytest.fixture
def context(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    yield context
    context.close()


def notebook(lab: Lab, name: str, *cells: str) -> str:
    """A notebook beside a shard of pictures that all differ."""
    folder = lab.folder / name
    folder.mkdir(exist_ok=True)
    if not (folder / "shard.tar").exists():
        tar(folder / "shard.tar", [(f"p/n{n:02d}", {"png": png((n * 40, 255 - n * 40, 90), (60, 40)), "cls": b"1"}) for n in range(6)])
    write_notebook(folder / "n.ipynb", "%load_ext tarviz", *cells)
    return f"{name}/n.ipynb"


def save(page: Watched) -> None:
    """Again where an output came while the notebook was being saved."""
    clean = "!jupyterapp.shell.currentWidget.context.model.dirty"
    wait_until(lambda: page.tab.evaluate(f"jupyterapp.commands.execute('docmanager:save').then(() => {clean})"))


def own_errors(page: Watched) -> list[str]:
    return [error for error in page.errors if "tvz" in error or "tarviz" in error]


def outputs(path: Path) -> list[dict[str, Any]]:
    """The MIME bundles of a saved notebook."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [output["data"] for cell in cells for output in cell["outputs"] if "data" in output]


def test_run_all_compare_clicks_and_keys_that_stay_inside(lab: Lab, context: Any):
    page = lab.open(context, notebook(lab, "compare", COMPARE, "1 + 1"))
    page.until(READY, 60)
    waits = [page.tab.evaluate(CLICK, at) for at in [2, 5, 8, 11, 14, 17] * 8]
    assert None not in waits
    fetched, kept = statistics.median(waits[:6]), statistics.median(waits[6:])
    print(f"\nclick to the full step on the stage: median {fetched:.0f} ms of 6 fetched, {kept:.0f} ms of {len(waits) - 6} seen before")
    cells = page.tab.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
    page.tab.locator(".tvz-strips").focus()
    for name in ("a", "b", "x", "x", "d", "d", "w", "w", "c", "v", "z", "r", "t", "t", "l", "l", "n", "p", "ArrowDown", "Space", "+", "0"):
        page.key(name)

    assert cells == page.tab.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
    assert page.tab.evaluate("document.querySelector('.tvz').contains(document.activeElement)")
    page.until("/largest|differ|same/.test(document.querySelector('.tvz-stage-words').textContent)", 10)
    page.key("b", "a", "Escape")
    assert "command" == page.tab.evaluate("jupyterapp.shell.currentWidget.content.mode")
    assert [] == page.elsewhere
    assert [] == own_errors(page)


def test_a_bench_runs_beside_other_cells_and_stops(lab: Lab, context: Any):
    measure = "%tv bench shard.tar -c 'decode(png)|flip(png)' --batch 4 --for 120 -o b"
    cells = (measure, "print('at once')", "r = b.result; print(r.state, r.rate > 0)")
    page = lab.open(context, notebook(lab, "bench", *cells), run=False)
    page.tab.evaluate(
        """async () => {
          const session = jupyterapp.shell.currentWidget.context.sessionContext;
          await session.ready;
          await session.session.kernel.info;
          const { content } = jupyterapp.shell.currentWidget;
          for (const at of [0, 1, 2]) { content.activeCellIndex = at; await jupyterapp.commands.execute('notebook:run-cell'); }
        }"""
    )
    page.until("/at once/.test(document.querySelector('.jp-NotebookPanel').textContent)", 30)
    page.until("/records\\/s/.test(document.querySelector('.tvz-readout')?.textContent)", 30)
    page.until("/is the limit/.test(document.querySelector('.tvz-verdict')?.textContent)")
    page.tab.locator(".tvz-bench").focus()
    page.key("a", "b", "d", "d", "p", "p", "s")
    page.until("/^(stopped|done)$/.test(document.querySelector('.tvz-stop').textContent)", 15)
    page.tab.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 3; jupyterapp.commands.execute('notebook:run-cell')")
    page.until("/stopped True/.test(document.querySelector('.jp-NotebookPanel').textContent)", 20)

    assert 4 == page.tab.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
    assert [] == own_errors(page)
    page.tab.locator(".jp-Cell").last.click()  # the widget has the keys no more: its picture is renewed
    page.until(f"{OUTPUTS}.some((one) => String(one.data?.['text/plain']).includes('is the limit') && one.data['image/png'])")
    save(page)
    bundle = next(each for each in outputs(lab.folder / "bench" / "n.ipynb") if "image/png" in each)
    assert "is the limit" in "".join(bundle["text/plain"])
    assert 0 < len(bundle["image/png"]) * 3 / 4 <= 150_000
    assert 1 == page.tab.locator(".tvz-bench").count()


def test_a_kernel_restart_leaves_the_tiles_and_one_clear_line(lab: Lab, context: Any):
    page = lab.open(context, notebook(lab, "restart", COMPARE))
    page.until(READY, 60)
    page.tab.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()")
    line = "/[Kk]ernel|Run the cell again/.test(document.querySelector('.tvz-status').textContent)"
    page.again(page.tab.locator("button", has_text="new seeds").click, line)

    assert page.tab.evaluate(READY)
    assert [] == own_errors(page)


SHOWN = "[...document.querySelectorAll('.jp-OutputArea-child')].filter((one) => one.offsetHeight > 0)"
"""Outputs that take room."""


def test_saved_and_reopened_untrusted_and_exported(lab: Lab, context: Any, tmp_path: Path):
    pytest.importorskip("nbconvert", reason="nbconvert is in the extra `deck`")
    name = notebook(lab, "saved", COMPARE, "%tv bench shard.tar -c 'decode(png)' --for 0.5 -o b")
    page = lab.open(context, name)
    page.until(READY, 60)
    page.until("document.querySelector('.tvz-stop')?.textContent === 'done'", 40)
    page.until(f"{OUTPUTS}.some((one) => String(one.data?.['text/plain']).includes('is the limit'))")
    page.until(f"{OUTPUTS}.filter((one) => one.data?.['image/png']).length === 2")
    save(page)
    page.tab.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
    page.tab.close()

    again = lab.open(context, name, run=False)  # trusted, no kernel
    again.until(f"{SHOWN}.filter((one) => one.querySelector('img')?.naturalWidth > 300).length === 2")
    again.until(f"{SHOWN}.length === 2")
    assert [] == again.elsewhere
    again.tab.close()

    content = (lab.folder / name).read_text("utf-8")
    (lab.folder / "saved" / "copy.ipynb").write_text(content.replace('"%load_ext', "\"# a stranger's\\n%load_ext"), "utf-8")
    copy = lab.open(context, "saved/copy.ipynb", run=False)  # untrusted: pictures
    copy.until("document.querySelectorAll('.jp-OutputArea-output img').length === 2", 30)
    assert copy.tab.evaluate("[...document.querySelectorAll('.jp-OutputArea-output img')].every((i) => i.naturalWidth > 300)")
    assert 0 == copy.tab.locator(".tvz").count()

    notebook_ = json.loads(content)
    notebook_["metadata"].pop("widgets", None)
    source = tmp_path / "export.ipynb"
    source.write_text(json.dumps(notebook_), "utf-8")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    tab = context.new_page()
    context.set_offline(True)
    tab.goto((tmp_path / "export.html").as_uri())
    sizes = tab.evaluate("[...document.querySelectorAll('.jp-OutputArea-output img')].map((i) => i.naturalWidth)")
    context.set_offline(False)
    assert 2 == len([size for size in sizes if size > 300])


def test_completion_in_the_notebook(lab: Lab, context: Any):
    page = lab.open(context, notebook(lab, "completion", ""))
    page.until("jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.status === 'idle'", 30)
    matches = page.tab.evaluate(
        """async () => {
          const { kernel } = jupyterapp.shell.currentWidget.context.sessionContext.session;
          const code = '%tv compare shard.tar -c "decode(png)|ro';
          const reply = await kernel.requestComplete({ code, cursor_pos: code.length });
          return [reply.content.matches, reply.content.cursor_start];
        }"""
    )

    assert [["rotate("], 38] == matches


def test_voila_serves_the_comparison(lab: Lab, context: Any, tmp_path: Path):
    pytest.importorskip("voila", reason="voila is not installed (pip install voila)")
    shard = tar(tmp_path / "v.tar", [(f"n{n}", {"png": png((n * 90, 9, 9))}) for n in range(3)])
    call = f"import tarviz\ntarviz.compare({str(shard)!r}, 'decode(png)|flip(png)', records=2)"
    source = write_notebook(tmp_path / "v.ipynb", call)
    port = free_port()
    command = [sys.executable, "-m", "voila", str(source), "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=lab.environment)
    try:
        page = watch(context.new_page(), f"http://127.0.0.1:{port}")
        answers(f"http://127.0.0.1:{port}/voila/static/voila.js", server)
        page.tab.goto(f"http://127.0.0.1:{port}/", timeout=90_000)
        page.until("document.querySelectorAll('.tvz-ctile img').length === 6", 60)
    finally:
        end(server)
