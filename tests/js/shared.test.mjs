// What the widgets share, on a page: elements, keys, files to save, work put off; figures at their edges.
import assert from "node:assert/strict";

import {
  bindKeys,
  BlobCache,
  drawnBy,
  formatBytes,
  h,
  hitsInLine,
  keyName,
  later,
  layOut,
  leave,
  MAX_SCROLL,
  move,
  pictureType,
  refuse,
  saveAs,
  scrollOf,
  topOf,
  visible,
} from "../../tarviz/widgets/host/core.mjs";
import { KeySheet } from "../../tarviz/widgets/host/sheet.mjs";
import { formatMs, formatRate, ticks } from "../../tarviz/widgets/bench/figures.mjs";
import { splitters } from "../../tarviz/widgets/browse/page/splitters.mjs";
import { click, placed, press, test, until } from "./dom.mjs";

test("sizes at the edges of their units have three digits", () => {
  assert.deepEqual(
    ["999 B", "1.00 kB", "9.99 kB", "10.0 kB", "99.9 kB", "100 kB", "999 kB", "1.00 MB", "1.00 TB", "5000 TB", "-2.00 kB"],
    [999.4, 999.5, 9990, 10_000, 99_900, 100_000, 999_400, 999_500, 1e12, 5e15, -2000].map(formatBytes),
  );
});

test("rates and times at their edges", () => {
  assert.deepEqual(["100", "99.9", "1,000", "0.123", ""], [100, 99.94, 999.6, 0.1234, undefined].map(formatRate));
  assert.deepEqual(["100", "99.9", "1.0", "0.999", ""], [100, 99.94, 1, 0.999, null].map(formatMs));
  assert.deepEqual(
    [
      [0, 2.5, 5, 7.5, 10, 12.5],
      [0, 1],
      [0, 1, 2, 3, 4, 5],
      [0, 0.5, 1],
    ],
    [ticks(12.5), ticks(-1), ticks(5), ticks(1, 2)],
  );
});

test("where rows lie when they are few, many, or none fits", () => {
  const layout = layOut({ width: 100, count: 5, tile: 46, caption: 10 });
  assert.deepEqual({ columns: 2, rowHeight: 64, rows: 3, height: 200, scrollHeight: 200 }, layout);
  assert.deepEqual([8_000_000, 1], [MAX_SCROLL, layOut({ width: 99, count: 1, tile: 46, caption: 0 }).columns]);
  assert.deepEqual({ first: 0, stop: 2 }, visible(layout, { top: 0, height: 0, count: 5 }));
  assert.deepEqual({ first: 0, stop: 2 }, visible(layout, { top: 0, height: 64, count: 5 }));
  assert.deepEqual({ first: 0, stop: 4 }, visible(layout, { top: 0, height: 65, count: 5 }));
  assert.deepEqual({ first: 0, stop: 4 }, visible(layout, { top: 64, height: 64, count: 4, margin: 1 }));
  const capped = { height: 1000, scrollHeight: 400 };
  assert.deepEqual(
    [500, 200, 900, 0],
    [topOf(150, capped, 100) - 0, scrollOf(600, capped, 100), topOf(300, capped, 100), topOf(0, capped, 100)].map((place, at) =>
      at === 0 ? place + 50 : place,
    ),
  );
  assert.deepEqual([600, 900], [topOf(1, { height: 1000, scrollHeight: 400 }, 400), topOf(1, { height: 1000, scrollHeight: 100 }, 100)]);
  assert.equal(0, move("End", 0, { columns: 1, rows: 1, count: 1 }));
});

test("keys are named with all that is held", () => {
  assert.equal("Ctrl+Meta+Alt+x", keyName({ key: "x", ctrlKey: true, metaKey: true, altKey: true }));
  assert.equal("x", keyName({ key: "x" }));
});

test("a line that is cut begins eight letters before its first hit, from the sixteenth letter on", () => {
  const line = (text) =>
    hitsInLine(text, ["RED", "zz"])
      .map((part) => part.textContent ?? part)
      .join("|");
  assert.equal("12345678901234|red| x", line("12345678901234red x"));
  assert.equal("…89012345|red| x", line("123456789012345red x"));
  assert.equal("…89012345|red| |zz|", line("123456789012345red zz"));
  assert.equal("|red| 5678901234567 |zz|", line("red 5678901234567 zz"));
  assert.equal("nothing that is asked for", line("nothing that is asked for"));
});

test("pictures of twelve bytes are told by the first, shorter ones are none", () => {
  const view = (size, ...bytes) => new DataView(Uint8Array.from([...bytes, ...new Array(size - bytes.length).fill(0)]).buffer);
  assert.deepEqual(
    ["image/bmp", "", "image/png", ""],
    [view(12, 0x42, 0x4d), view(11, 0x42, 0x4d), view(12, 0x89, 0x50, 0x4e, 0x47), view(12, 0x52, 0x49, 0x46, 0x46)].map(pictureType),
  );
});

test("600 pictures of 48 MB in all are kept; the same again takes the place of the one before", () => {
  const cache = new BlobCache();
  assert.deepEqual([600, 48e6], [cache.count, cache.bytes]);
  const view = (size) => new DataView(new ArrayBuffer(size));
  const small = new BlobCache({ count: 2, bytes: 20 });
  small.put("a", view(10), "image/png");
  small.put("a", view(5), "image/png");
  assert.deepEqual([5, 1], [small.used, small.items.size]);
  small.put("b", view(15), "image/png");
  assert.deepEqual([20, 2], [small.used, small.items.size]);
  small.put("c", view(1), "image/png");
  assert.deepEqual([["b", "c"], undefined], [[...small.items.keys()], small.get("a")]);
  small.drop("nothing");
  small.clear();
  assert.deepEqual([0, 0], [small.used, small.items.size]);
});

test("an element has its class, listeners, attributes and properties; what is not there is left out", () => {
  let clicks = 0;
  const box = h(
    "label",
    { class: "a b", onclick: () => (clicks += 1), "aria-label": "x", "data-n": 3, for: "y", tabIndex: 2, title: null, lang: undefined },
    "text",
    null,
    undefined,
    false,
    h("b", {}, ""),
  );
  click(box);
  assert.deepEqual(
    ["a b", 1, "x", "3", "y", 2, false],
    [
      box.className,
      clicks,
      box.getAttribute("aria-label"),
      box.dataset.n,
      box.getAttribute("for"),
      box.tabIndex,
      box.hasAttribute("title"),
    ],
  );
  assert.equal("text<b></b>", box.innerHTML);
});

test("keys of a widget stay in it, what is used is taken from the browser, who types is left alone", () => {
  const end = new AbortController();
  const [root, input, select, area] = [h("div", { tabIndex: 0 }), h("input", {}), h("select", {}), h("textarea", {})];
  root.append(input, select, area);
  const around = placed(root);
  const heard = [];
  const outside = [];
  for (const kind of ["keydown", "keyup", "keypress"]) around.addEventListener(kind, () => outside.push(kind));
  bindKeys(root, (name) => (heard.push(name), name === "a"), end.signal);
  assert.deepEqual(
    [true, false, false, false, false],
    [
      [root, "a"],
      [root, "b"],
      [input, "a"],
      [select, "a"],
      [area, "a"],
    ].map(([element, key]) => press(element, key)),
  );
  press(input, "Escape");
  for (const kind of ["keyup", "keypress"]) root.dispatchEvent(new KeyboardEvent(kind, { key: "a", bubbles: true }));
  assert.deepEqual([["a", "b", "Escape"], [], "true"], [heard, outside, root.getAttribute("data-lm-suppress-shortcuts")]);
  document.documentElement.setAttribute("data-tarviz-page", "");
  press(root, "b");
  document.documentElement.removeAttribute("data-tarviz-page");
  assert.deepEqual(["keydown"], outside, "on a page of its own they go on");
  end.abort();
  press(root, "a");
  assert.equal(4, heard.length);
  around.remove();
});

test("the notebook around a widget gets the keys back", () => {
  const inner = h("button", {});
  const root = h("div", {}, inner);
  const notebook = h("div", { class: "jp-Notebook", tabIndex: 0 }, root);
  const place = placed(notebook);
  inner.focus();
  leave(root);
  assert.equal(notebook, document.activeElement);
  place.remove();
});

test("why a tile is not shown: its code, then as many whole lines as fit, one at least", () => {
  const refused = (px) => {
    const box = h("div", { class: "tvz-box" });
    refuse(box, "E_TYPE: a png: cut short", px);
    return [box.className, box.textContent, box.lastChild.title, box.lastChild.style.getPropertyValue("--lines")];
  };
  const words = ["tvz-box tvz-refused", "E_TYPEa png: cut short", "E_TYPE: a png: cut short"];
  assert.deepEqual(
    [
      [...words, "8"],
      [...words, "1"],
    ],
    [refused(160), refused(40)],
  );
});

test("a file is saved under a name that any system takes, at most 120 letters of it", (t) => {
  const names = [];
  t.mock.method(HTMLAnchorElement.prototype, "click", function () {
    names.push([this.download, this.isConnected]);
  });
  for (const name of ["a/b: c.txt", "x".repeat(130), ""]) saveAs(name, ["x"]);
  assert.deepEqual(
    [
      ["a_b_ c.txt", true],
      ["x".repeat(120), true],
      ["member", true],
    ],
    names,
  );
  assert.equal(null, document.querySelector("a[download]"));
});

test("work is put off until nobody calls any more, and is not done after the end", async () => {
  const end = new AbortController();
  let done = 0;
  const soon = later(() => (done += 1), 15, end.signal);
  for (let times = 0; times < 3; times += 1) soon();
  await until(() => done);
  await new Promise((go) => setTimeout(go, 40));
  assert.equal(1, done);
  soon();
  end.abort();
  soon();
  await new Promise((go) => setTimeout(go, 40));
  assert.equal(1, done);
});

test("a widget ends when its host says so, in one way or the other", () => {
  const signals = [];
  class View {
    constructor(_model, el, signal) {
      signals.push(signal);
      el.append((this.root = h("p", {})));
    }
  }
  const [el, outer] = [h("div", {}), new AbortController()];
  const end = drawnBy(View)({ model: {}, el, signal: outer.signal });
  drawnBy(View)({ model: {}, el });
  assert.equal(2, el.children.length);
  end();
  assert.deepEqual([1, true, false], [el.children.length, signals[0].aborted, signals[1].aborted]);
  drawnBy(View)({ model: {}, el, signal: outer.signal });
  outer.abort();
  assert.ok(signals[2].aborted);
});

test("edges say how wide they are, move both ways, and the next page finds them again", () => {
  localStorage.clear();
  const [end, main] = [new AbortController(), h("div", {})];
  let changed = 0;
  const edges = () => splitters(main, () => (changed += 1), end.signal);
  const [rail, pane] = edges();
  const widths = () => ["rail", "pane"].map((side) => main.style.getPropertyValue(`--tvz-${side}-width`));
  assert.deepEqual([["210px", "350px"], 2], [widths(), changed]);
  assert.deepEqual(
    ["140", "560", "210", "240", "900", "350"],
    [rail, pane].flatMap((edge) => ["min", "max", "now"].map((name) => edge.getAttribute(`aria-value${name}`))),
  );
  assert.deepEqual(
    ["0", "vertical", null],
    [rail.getAttribute("tabindex") ?? String(rail.tabIndex), rail.getAttribute("aria-orientation"), localStorage.getItem("tarviz-rail")],
  );
  assert.deepEqual([true, true, false], [press(rail, "ArrowLeft"), press(pane, "ArrowLeft"), press(pane, "x")]);
  assert.deepEqual(["194px", "366px"], widths());
  click(pane, { clientX: 500 }, "pointerdown");
  click(pane, { clientX: 400.4 }, "pointermove");
  click(pane, {}, "pointerup");
  assert.deepEqual(["194px", "466px"], widths());
  assert.deepEqual(
    ["194", "466"],
    ["rail", "pane"].map((side) => localStorage.getItem(`tarviz-${side}`)),
  );
  for (const [edge, to, width] of [
    [rail, 9999, "560px"],
    [rail, -9999, "140px"],
    [pane, -9999, "900px"],
    [pane, 9999, "240px"],
  ]) {
    click(edge, { clientX: 0 }, "pointerdown");
    click(edge, { clientX: to }, "pointermove");
    click(edge, {}, "pointerup");
    assert.equal(width, widths()[edge === rail ? 0 : 1]);
  }
  edges();
  assert.deepEqual(["140px", "240px"], widths());
  localStorage.clear();
  end.abort();
});

test("a sheet of keys has a line below them where there is one to say", () => {
  const said = (...more) => {
    const root = placed();
    new KeySheet(
      [["a b", "both"]],
      () => root,
      () => {},
      ...more,
    ).toggle();
    root.remove();
    return [...root.querySelectorAll("dt, dd, p")].map((one) => `${one.localName} ${one.textContent}`);
  };
  assert.deepEqual(
    [
      ["dt a b", "dd both"],
      ["dt a b", "dd both", "p words to filter by"],
    ],
    [said(), said("words to filter by")],
  );
});
