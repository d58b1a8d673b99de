"""The shard browser in a real JupyterLab: drawn, clicked, keys kept in, kernel restarted, saved, untrusted, exported."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys

import pytest

from tests.browser import probes
from tests.browser.conftest import answers, end, free_port, watch, write_notebook
from tests.widgets.conftest import records, tar

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

CLICK = """async (at) => {
  const tile = document.querySelectorAll('.tvz-tile')[at];
  const key = tile.querySelector('.tvz-key').title;
  const begin = performance.now();
  tile.click();
  while (performance.now() - begin < 60_000) {
    const frame = document.querySelector('.tvz-pane .tvz-frame');
    if (document.querySelector('.tvz-pane h2')?.title === key && frame?.view?.picture) return performance.now() - begin;
    await new Promise((go) => setTimeout(go, 1));
  }
  return null;
}"""
"""Click a tile: milliseconds until its record's picture is in the pane, null when it does not come."""
VISIBLE = "[...document.querySelector('.jp-Cell').querySelectorAll('.jp-OutputArea-child')].filter((one) => one.offsetHeight > 0).length"
"""Outputs of the first cell that take room."""
STILL = "[...document.querySelectorAll('.jp-OutputArea-output img')].some((one) => one.naturalWidth > 400 && one.offsetHeight > 100)"
PICTURES = "[...document.querySelectorAll('.tvz-tile img')].filter((i) => i.naturalWidth === 12).length"


@pytest.fixture
def context(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    yield context
    context.close()


@pytest.fixture
def notebook(lab, request):
    name = f"{request.node.name}.ipynb"
    shard = tar(lab.folder / f"{request.node.name}.tar", records(0, 60))
    write_notebook(
        lab.folder / name, f"import tarviz\nw = tarviz.browse({str(shard)!r})\nw", "print('selected', w.selected, len(w.marked))"
    )
    return name


def test_run_all_click_and_keys_that_stay_inside(lab, context, notebook):
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6 && document.querySelector('.tvz-pane h2')", 60)
    cells = page.tab.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
    page.tab.locator(".tvz-grid").focus()
    for name in ("a", "b", "x", "x", "d", "d", "z", "c", "v", "j", "l", "Space", "m", "m", "Enter", "Escape", "ArrowDown"):
        page.key(name)

    assert cells == page.tab.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
    assert page.tab.evaluate("document.querySelector('.tvz').contains(document.activeElement)")
    page.tab.locator(".tvz-grid").focus()
    page.key("Escape", "Escape")
    assert "command" == page.tab.evaluate("jupyterapp.shell.currentWidget.content.mode")

    page.until(f"{PICTURES} >= 6")
    waits = [page.tab.evaluate(CLICK, at % 6) for at in range(1, 51)]
    assert None not in waits
    print(f"\nclick to full picture: median {statistics.median(waits):.0f} ms of {len(waits)}, worst {max(waits):.0f} ms")
    assert [] == page.elsewhere
    assert [] == [error for error in page.errors if "tvz" in error or "tarviz" in error]


PAINTED = """(() => {
  const canvas = document.querySelector('.tvz-map-points');
  const pen = canvas?.width ? canvas.getContext('2d') : null;
  return pen ? new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer).filter(Boolean).length : 0;
})()"""


def test_the_map_draws_and_filters_in_a_notebook_as_on_the_page(lab, context, notebook):
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6", 60)
    page.tab.locator(".tvz-tools button", has_text="map").click()
    page.until("/^60 points/.test(document.querySelector('.tvz-map-note').textContent)", 30)
    page.until(f"{PAINTED} > 20", 20)  # pictures that look alike lie in one place
    page.tab.locator(".tvz-map-tools select").first.select_option("columns")
    page.tab.locator("select[aria-label='across']").select_option("json.w")
    page.tab.locator("select[aria-label='upward']").select_option("json.meta.n")
    # The points of both columns: those of each choice before are replaced when they come, and with them what was in view.
    page.until(
        "['json.w', 'json.meta.n'].every((name) => [...document.querySelectorAll('.tvz-cut')].some((e) => e.textContent === name))", 30
    )
    page.until("/^51 points/.test(document.querySelector('.tvz-map-note').textContent)", 30)
    page.until(f"{PAINTED} > 400", 20)
    page.tab.locator(".tvz-map-tools button", has_text="in view").click()
    page.until("document.querySelector('.tvz-status').textContent.includes('51 shown')", 20)

    assert [] == page.elsewhere
    assert [] == [error for error in page.errors if "tvz" in error or "tarviz" in error]


LOOK = """() => {
  const cell = document.querySelector('.tarviz td');
  const { textAlign, color } = getComputedStyle(cell);
  return [textAlign, Math.max(...color.match(/\\d+/g).slice(0, 3).map(Number))];
}"""


def test_tables_follow_the_theme_of_the_notebook_not_of_the_system(lab, context, notebook):
    write_notebook(lab.folder / "table.ipynb", f"%load_ext tarviz\n%tv ls {notebook.replace('.ipynb', '.tar')}")
    page = lab.open(context, "table.ipynb")
    page.until("document.querySelector('.tarviz td')", 60)
    light = page.tab.evaluate(LOOK)
    change = "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })"
    page.tab.evaluate(change, "JupyterLab Dark")
    page.until("document.body.dataset.jpThemeLight === 'false'")
    dark = page.tab.evaluate(LOOK)
    page.tab.evaluate(change, "JupyterLab Light")

    assert ("left", "left") == (light[0], dark[0])
    assert light[1] < 100 < 200 < dark[1]


def test_the_filter_and_the_columns_work_as_on_a_page(lab, context, notebook):
    write_notebook(
        lab.folder / notebook,
        f"import tarviz\nw = tarviz.browse({str(lab.folder / notebook.replace('.ipynb', '.tar'))!r})\nw",
        "print('kept', w.export('kept.txt', exists='replace'))",
    )
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6 && document.querySelectorAll('.tvz-hist').length", 90)
    if page.tab.locator(".tvz-rail-button").is_visible():  # the rail is folded away in a narrow cell
        page.tab.locator(".tvz-rail-button").click()
    page.until("document.querySelectorAll('.tvz-facets .tvz-bar')[1]?.textContent.includes('20')")  # bars are drawn anew as counts come
    page.tab.locator(".tvz-facets .tvz-bar").nth(1).click()  # cls = 1
    page.until("document.querySelector('.tvz-status').textContent.includes('20 shown')", 30)
    page.until("document.querySelector('.tvz-facets .tvz-bar[aria-pressed=true]')?.textContent.includes('20 / 20')", 30)
    page.tab.locator(".tvz-filter").fill("json.w > 300")
    page.until("document.querySelector('.tvz-status').textContent.includes('9 shown')", 30)
    page.until("document.querySelector('.tvz-facets .tvz-bar[aria-pressed=true]')?.textContent.includes('9 / 20')", 30)
    page.tab.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    page.tab.evaluate("jupyterapp.commands.execute('notebook:run-cell')")
    page.until("[...document.querySelectorAll('.jp-OutputArea-output')].some((o) => o.textContent.includes('kept 9'))", 30)

    keys = (lab.folder / "kept.txt").read_text().split()
    assert [f"set/n{at:06d}" for at in range(31, 60) if at % 3 == 1 and at % 7] == keys
    assert [] == [error for error in page.errors if "tvz" in error or "tarviz" in error]


def test_what_is_selected_is_known_in_python(lab, context, notebook):
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6", 60)
    page.tab.locator(".tvz-tile").nth(2).click()
    page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000002'")
    page.tab.locator(".tvz-grid").focus()
    page.key("Space")
    run = "jupyterapp.shell.currentWidget.content.activeCellIndex = 1; jupyterapp.commands.execute('notebook:run-cell')"
    page.again(lambda: page.tab.evaluate(run), "document.querySelector('.jp-NotebookPanel').textContent.includes(\"key='set/n000002') 1\")")


def test_a_kernel_restart_leaves_pictures_and_one_clear_line(lab, context, notebook):
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6 && document.querySelector('.tvz-pane h2')", 60)
    page.tab.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()")
    tiles = itertools.cycle([3, 2])
    line = "/Run the cell again/.test(document.querySelector('.tvz-status').textContent)"
    page.again(lambda: page.tab.locator(".tvz-tile").nth(next(tiles)).click(), line)

    assert page.tab.evaluate(PICTURES) >= 6
    assert "saved thumbnail" in page.tab.locator(".tvz-pane").inner_text() or "set/n00000" in page.pane()


def saved(page):
    """Save the notebook with what its first cell shows, its picture among it."""
    page.until("jupyterapp.shell.currentWidget.context.model.cells.get(0).outputs.toJSON().some((one) => one.data?.['image/png'])")
    page.tab.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.until("!jupyterapp.shell.currentWidget.context.model.dirty")


def test_saved_and_reopened_without_its_kernel_it_shows_its_pictures(lab, context, notebook):
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6 && document.querySelector('.tvz-pane h2')", 60)
    saved(page)
    content = json.loads((lab.folder / notebook).read_text("utf-8"))
    still, widget, style = [output["data"] for output in content["cells"][0]["outputs"]]
    assert ["image/png", "text/plain"] == sorted(still)
    assert ["application/vnd.jupyter.widget-view+json", "text/plain"] == sorted(widget)
    assert ["text/html"] == list(style)
    bundle = still
    assert "widgets" not in content["metadata"]
    assert len(bundle["image/png"]) * 3 / 4 <= 150_000
    assert "60 records" in "".join(bundle["text/plain"])

    page.tab.evaluate("jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
    page.tab.close()
    again = lab.open(context, notebook, run=False)
    again.until(STILL)
    again.until(f"{VISIBLE} === 1")
    assert "rror" not in again.tab.evaluate("document.querySelector('.jp-Cell').innerText")
    assert [] == again.elsewhere


def test_an_untrusted_copy_shows_the_contact_sheet(lab, context, notebook):
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6", 60)
    saved(page)
    content = (lab.folder / notebook).read_text("utf-8")
    (lab.folder / f"copy-{notebook}").write_text(content.replace('"print(', "\"# a stranger's\\nprint("), "utf-8")
    copy = lab.open(context, f"copy-{notebook}", run=False)
    copy.until("document.querySelector('.jp-OutputArea-output img')?.naturalWidth > 400", 30)

    assert copy.tab.evaluate("document.querySelector('.tvz') === null")
    assert [] == copy.elsewhere


def test_exported_html_shows_a_picture_with_no_network(lab, context, notebook, tmp_path):
    pytest.importorskip("nbconvert", reason="nbconvert is in the extra `deck`")
    page = lab.open(context, notebook)
    page.until(f"{PICTURES} >= 6", 60)
    saved(page)
    content = json.loads((lab.folder / notebook).read_text("utf-8"))
    content["metadata"].pop("widgets", None)
    source = tmp_path / "export.ipynb"
    source.write_text(json.dumps(content), "utf-8")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    tab = context.new_page()
    context.set_offline(True)
    tab.goto((tmp_path / "export.html").as_uri())
    sizes = tab.evaluate("[...document.querySelectorAll('.jp-OutputArea-output img')].map((i) => i.naturalWidth)")
    context.set_offline(False)

    assert max(sizes) > 400


def test_voila_serves_the_same_widget(lab, context, tmp_path):
    pytest.importorskip("voila", reason="voila is not installed (pip install voila)")
    shard = tar(tmp_path / "v.tar", records(0, 30))
    source = write_notebook(tmp_path / "v.ipynb", f"import tarviz\ntarviz.browse({str(shard)!r})")
    port = free_port()
    command = [sys.executable, "-m", "voila", str(source), "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=lab.environment)
    try:
        page = watch(context.new_page(), f"http://127.0.0.1:{port}")
        answers(f"http://127.0.0.1:{port}/voila/static/voila.js", server)
        page.tab.goto(f"http://127.0.0.1:{port}/", timeout=90_000)
        page.until("document.querySelectorAll('.tvz-tile img').length >= 6", 60)
        page.tab.locator(".tvz-tile").nth(1).click()
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000001'", 20)
    finally:
        end(server)


def test_notebook_7_shows_the_same_widget(lab, context, notebook):
    pytest.importorskip("notebook", minversion="7", reason="Notebook 7 is not installed (pip install notebook)")
    port = free_port()
    options = ["--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token=tarviz"]
    command = [sys.executable, "-m", "notebook", *options, f"--ServerApp.root_dir={lab.folder}", "--expose-app-in-browser"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=lab.environment)
    try:
        page = watch(context.new_page(), f"http://127.0.0.1:{port}")
        answers(f"http://127.0.0.1:{port}/api/status?token=tarviz", server)
        page.tab.goto(f"http://127.0.0.1:{port}/notebooks/{notebook}?token=tarviz")
        page.until("window.jupyterapp?.shell?.currentWidget?.context?.isReady", 60)
        page.tab.evaluate(probes.RUN_ALL)
        page.until(f"{PICTURES} >= 6", 60)
        page.tab.locator(".tvz-tile").nth(1).click()
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000001'", 20)
        cells = page.tab.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
        page.tab.locator(".tvz-grid").focus()
        page.key("a", "b", "x", "d", "d", "l", "Space")

        assert cells == page.tab.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
        assert [] == page.elsewhere
    finally:
        end(server)
