"""JavaScript that looks at a page from the outside: what shows, how well it reads, what has no name."""

from __future__ import annotations

SHOWN = """() => {
  const grid = document.querySelector('.tvz-grid').getBoundingClientRect();
  const tiles = [...document.querySelectorAll('.tvz-tile')].map((t) => [t.getBoundingClientRect(), t.querySelector('.tvz-key')?.title]);
  const inside = tiles.filter(([box, key]) => key && box.bottom > grid.top + 2 && box.top < grid.bottom - 2);
  return inside.sort(([a], [b]) => a.top - b.top || a.left - b.left).map(([, key]) => key);
}"""

COLUMNS = """() => {
  const tops = [...document.querySelectorAll('.tvz-tile')].map((t) => t.getBoundingClientRect().top);
  return tops.filter((top) => top === tops[0]).length;
}"""

FRAMES = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => go(true))))"
"""True once what the page was told to draw is drawn: the second frame begins behind the end of the first."""

UNNAMED = """() => [...document.querySelectorAll('.tvz button, .tvz input, .tvz select')]
  .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.title || e.closest('label')))
  .map((e) => e.outerHTML.slice(0, 80))"""

STICKING_OUT = """() => [...document.querySelectorAll('.tvz-head, .tvz-tools, .tvz-main, .tvz-status, .tvz-grid, .tvz-pane')]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className)"""

# WCAG 2.1: 4.5 for text, 3 for large text; colours may be any CSS colour, so a canvas turns them into sRGB
CONTRAST = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const paint = (layers) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of layers) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return pen.getImageData(0, 0, 1, 1).data;
  };
  const part = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const poor = [];
  for (const e of document.querySelectorAll('.tvz *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.offsetParent || e.disabled) continue;
    const layers = ['white'];
    for (let up = e; up; up = up.parentElement) layers.splice(1, 0, getComputedStyle(up).backgroundColor);
    const style = getComputedStyle(e);
    const [back, ink] = [light(paint(layers)), light(paint([...layers, style.color]))];
    const ratio = (Math.max(back, ink) + 0.05) / (Math.min(back, ink) + 0.05);
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) poor.push([e.className, e.textContent.slice(0, 20), ratio]);
  }
  return poor;
}"""

RUN_ALL = """async () => {
  const session = jupyterapp.shell.currentWidget.context.sessionContext;
  await session.ready;
  await session.session.kernel.info;
  for (let i = 0; i < 400 && session.session.kernel.status !== 'idle'; i++) await new Promise((go) => setTimeout(go, 50));
  jupyterapp.commands.execute('notebook:run-all-cells');
}"""

PRESS_NEXT = """([pressed, within]) => {
  const shown = (element) => element.getClientRects().length && getComputedStyle(element).visibility !== 'hidden' && !element.disabled;
  for (const control of document.querySelectorAll('.tvz :is(button, select, summary, [role=button], th[tabindex])')) {
    if (!control.closest(within)) continue;
    const choices = control.localName === 'select' ? [...control.options].map((choice) => choice.value) : [''];
    // The words of a chooser may change.
    const text = control.localName === 'select' ? '' : control.textContent.replace(/ [↑↓]$/, '').slice(0, 60);
    const name = `${text}|${control.title.slice(0, 60)}|${control.getAttribute('aria-label') ?? ''}`;
    for (const choice of choices) {
      if (!shown(control) || pressed.includes(`${name}|${choice}`)) continue;
      if (control.localName === 'select') {
        control.value = choice;
        control.dispatchEvent(new Event('change', { bubbles: true }));
      } else control.click();
      return `${name}|${choice}`;
    }
  }
  return null;
}"""
"""Press the next control that shows, or make the next choice of a chooser, if it is not among those pressed: its name, null at the end."""

NO_WORDS = r"""() => {
  const found = [];
  for (const text = document.createTreeWalker(document.querySelector('.tvz') ?? document, NodeFilter.SHOW_TEXT); text.nextNode();) {
    const { data, parentElement } = text.currentNode;
    if (parentElement.closest('.tvz-tree, .tvz-dump, .tvz-sql-answer')) continue;
    if (/^(null|true|false)$|undefined|.NaN|NaN.|\[object /.test(data)) found.push(data);
  }
  return found;
}"""
"""Text that a program shows by mistake: null, undefined, NaN, [object Object]."""
