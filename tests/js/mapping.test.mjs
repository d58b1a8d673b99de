// The map beside the grid by itself: what it offers, asks and draws, its axes and colours, the card of a point, a line around some.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { RpcError } from "../../tarviz/widgets/host/requests.mjs";
import { MapView } from "../../tarviz/widgets/map/map_view.mjs";
import { click, placed, put, test, until } from "./dom.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

const CHOICES = {
  fields: [
    { name: "emb.npy", kind: "npy" },
    { name: "png", kind: "image" },
  ],
  columns: ["size", "cls", "u", "json.w", "json.h", "png.size"].map((name) => ({ name, type: name === "u" ? "" : "bigint" })),
  numeric: ["size", "cls", "u", "json.w", "json.h", "png.size"],
  by: ["pca", "umap"],
  note: "",
  state: "ready",
};
const POINTS = { count: 3, low: [0, 10], high: [100, 10], axes: ["json.w", "json.h"], note: "1 lacks one", number: 5 };
const LEGEND = {
  legend: [
    { code: 1, name: "", count: 1200 },
    { code: 2, name: "b", count: 2 },
  ],
  ends: null,
};
const PALETTE = Uint8Array.of(0, 0, 0, 255, 0, 0, 0, 0, 255, ...new Array(759).fill(9));
/** Bytes as they come in a message, at an odd place. */
const sent = (data) => {
  const bytes = new Uint8Array(data.byteLength + 1);
  bytes.set(new Uint8Array(data.buffer), 1);
  return new DataView(bytes.buffer, 1);
};
const places = () => sent(Float32Array.of(-1, -1, 0, 0, 1, 1));
const fault = (more) => new RpcError({ type: "X", msg: "no", hint: "try", code: "E_X", ...more });

/** A map that is open, on a page that keeps what it asks and does; `answers` by name, as they are or worked out. */
function mapping(answers = {}, more = {}) {
  const told = { asked: [], searched: [], selected: [], opened: [], woken: 0 };
  const all = {
    map_choices: { r: CHOICES },
    map_points: { r: POINTS, buffers: [places()] },
    map_colours: { r: LEGEND, buffers: [sent(Uint8Array.of(1, 2, 2)), sent(PALETTE)] },
    map_shown: { r: {} },
    ...answers,
  };
  const end = new AbortController();
  const view = {
    signal: end.signal,
    model: {},
    look: { label: "cls" },
    records: { query: 7, done: true },
    scan: { columns: { version: 1 }, wake: () => (told.woken += 1) },
    searches: { next: {}, run: (wish) => told.searched.push(wish) },
    rpc: async (name, msg, options) => {
      told.asked.push(options ? [name, msg, options] : [name, msg]);
      const answer = all[name] instanceof Function ? await all[name](msg) : all[name];
      if (answer instanceof Error) throw answer;
      return { buffers: [], ...answer };
    },
    select: (...place) => told.selected.push(place),
    open: (...row) => told.opened.push(row),
    ...more,
  };
  const map = new MapView(view);
  const place = placed(map.root);
  ends.push(() => (end.abort(), place.remove()));
  const texts = (element) => [...element.children].map((one) => one.textContent);
  const asked = (name) => told.asked.filter(([one]) => one === name).map(([, msg]) => msg);
  const open = async () => {
    map.root.hidden = false;
    map.open();
    await until(() => map.points && asked("map_shown").length);
    return map;
  };
  return { map, view, told, all, texts, asked, open, note: () => map.note.textContent };
}

test("what a map can be of: vectors, looks, two columns; those of numbers that are neither sizes nor the label come first", async () => {
  const { map, open, told, texts, note } = mapping();
  assert.ok(!map.shown);
  await open();
  await until(() => map.colours);

  assert.deepEqual(
    [
      ["embeddings", "emb.npy, PCA", "emb.npy, UMAP"],
      ["looks", "png: colour and shape, PCA", "png: colour and shape, UMAP"],
      ["columns", "two columns"],
    ],
    [...map.of.querySelectorAll("optgroup")].map((group) => [group.label, ...texts(group)]),
  );
  assert.deepEqual(CHOICES.numeric, texts(map.x));
  assert.deepEqual(CHOICES.numeric, texts(map.y));
  assert.deepEqual(["one colour", ...CHOICES.numeric], texts(map.colour));
  assert.deepEqual(
    ["pca emb.npy", "json.w", "json.h", "cls"],
    [map.of, map.x, map.y, map.colour].map((one) => one.value),
  );
  assert.deepEqual([true, true, "3 points · 1 lacks one"], [map.x.hidden, map.y.hidden, note()]);
  assert.deepEqual(
    [
      ["map_choices", undefined],
      ["map_points", { x: "emb.npy", by: "pca" }],
      ["map_colours", { column: "cls" }],
      ["map_shown", { query: 7 }],
    ],
    told.asked,
  );
  put(map.of, "columns");
  assert.deepEqual([false, false], [map.x.hidden, map.y.hidden]);
  await until(() => told.asked.at(-1)[0] === "map_shown" || told.asked.length > 6);
  assert.ok(told.asked.some(([name, msg]) => name === "map_points" && msg.x === "json.w" && msg.y === "json.h"));
  map.open();
  await new Promise(setImmediate);
  assert.equal(1, told.asked.filter(([name]) => name === "map_choices").length, "it is known by now");
});

test("the reader's own choices stay when more columns are offered; without a column of numbers there is no axis", async () => {
  const { map, view, all, asked, open } = mapping();
  await open();
  await until(() => map.colours);
  put(map.colour, "");
  await until(() => !map.colours);
  for (const [one, value] of [
    [map.of, "umap png"],
    [map.x, "u"],
    [map.y, "cls"],
  ])
    one.value = value;
  all.map_choices = {
    r: { ...CHOICES, columns: [...CHOICES.columns, { name: "new", type: "double" }], numeric: [...CHOICES.numeric, "new"] },
  };
  view.scan.columns.version = 2;
  const { length } = asked("map_colours");
  map.follow();
  await until(() => map.x.options.length === 7);

  assert.deepEqual(
    ["umap png", "u", "cls", ""],
    [map.of, map.x, map.y, map.colour].map((one) => one.value),
  );
  assert.equal(length, asked("map_colours").length);
  assert.equal(2, asked("map_choices").length);

  const other = mapping({ map_choices: { r: { ...CHOICES, fields: [], numeric: ["size"], columns: [{ name: "size", type: "bigint" }] } } });
  other.map.open();
  await until(() => other.note());
  assert.equal(0, other.map.of.options.length);
  assert.match(other.note(), /^These records hold nothing that a map can be of/);
  assert.deepEqual(
    ["size", "", ""],
    [other.map.x, other.map.y, other.map.colour].map((one) => one.value),
  );
  assert.deepEqual([], other.asked("map_points"));
  const two = mapping({ map_choices: { r: { ...CHOICES, fields: [], numeric: ["size", "png.size"] } } });
  two.map.open();
  await until(() => two.map.of.options.length);
  put(two.map.of, "columns");
  assert.deepEqual([{ x: "size", y: "png.size" }], two.asked("map_points"));
  const refused = mapping({ map_choices: { r: { ...CHOICES, fields: [], numeric: [], columns: [], note: "Install it." } } });
  refused.map.open();
  await until(() => refused.note() === "Install it.");
});

test("while columns are read it is asked again; vectors are shown at once, and their map stays", async () => {
  const states = ["scanning", "making", "ready"];
  const { map, all, asked, note } = mapping();
  all.map_choices = () => ({ r: { ...CHOICES, fields: [], numeric: [], state: states.shift() } });
  map.root.hidden = false;
  map.open();
  map.open();
  await until(() => note() === "reading columns");
  assert.ok(map.note.querySelector(".tvz-busy"));
  await until(() => /^These records hold nothing/.test(note()));
  assert.equal(3, asked("map_choices").length);

  const early = mapping();
  let left = 2;
  early.all.map_choices = () => ({ r: left-- > 0 ? { ...CHOICES, columns: [], numeric: [], state: "making" } : CHOICES });
  await early.open();
  await until(() => left < 0);
  assert.deepEqual(["3 points · 1 lacks one", 1], [early.note(), early.asked("map_points").length]);
  await until(() => early.map.colours);
  assert.deepEqual([{ column: "cls" }], early.asked("map_colours"), "once its column is there");
});

test("points that are being made are waited for; a fault is told, a request that was overtaken is none", async () => {
  let left = 2;
  const { map, asked, note, open, all } = mapping({
    map_points: () => (left-- > 0 ? { r: { making: "reading 3 of 9" } } : { r: { ...POINTS, note: "" }, buffers: [places()] }),
  });
  await open();
  assert.deepEqual([3, "3 points"], [asked("map_points").length, note()]);
  all.map_points = fault();
  map.make();
  await until(() => note() === "no try");
  assert.ok(map.note.querySelector(".tvz-bad"));
  assert.equal(4, asked("map_points").length, "it is not asked again by itself");
  all.map_points = fault({ msg: "late", code: "overtaken" });
  map.make();
  await until(() => asked("map_points").length === 5);
  await new Promise(setImmediate);
  assert.equal("no try", note());
  all.map_points = fault({ hint: "" });
  map.make();
  await until(() => note() === "no");
});

test("the axes have the values at the edges of what is in view; one that has a single value has none", async () => {
  const { map, texts, open } = mapping();
  map.drawAxes();
  assert.deepEqual([], texts(map.across));
  await open();
  assert.deepEqual(
    [
      ["−2", "json.w", "102"],
      ["", "json.h", ""],
    ],
    [texts(map.across), texts(map.upward)],
  );
  map.scatter.zoomBy(10, [500, 300]);
  await until(() => texts(map.across)[0] === "45");
  assert.deepEqual(["45", "json.w", "55"], texts(map.across));
  map.points = { ...map.points, low: [0, -5], high: [100, 5] };
  map.drawAxes();
  assert.deepEqual(["−0.5", "json.h", "0.5"], texts(map.upward), "from the bottom to the top");
});

test("points have one colour of the page, or those of a column; many are drawn a little thinner", async () => {
  const { map, all, open } = mapping({ map_colours: { r: { making: "reading cls" } } }, { look: { label: "nothing" } });
  await open();
  map.scatter.over.style.color = "rgb(1, 2, 3)";
  map.repaint();
  assert.deepEqual([0xff030201, 0xff030201, 0xff030201], [...map.scatter.drawnColours]);
  for (const [count, colour] of [
    [20_000, 0xff030201],
    [20_001, 0xd0030201],
  ]) {
    map.points = { ...map.points, count };
    map.repaint();
    assert.equal(colour, map.scatter.drawnColours[0]);
  }
  map.points = { ...map.points, count: 3 };
  put(map.colour, "cls");
  await until(() => map.legend.textContent === "reading cls");
  all.map_colours = { r: LEGEND, buffers: [sent(Uint8Array.of(1, 2, 2)), sent(PALETTE)] };
  await until(() => map.legend.children.length === 2);
  assert.deepEqual([0xff0000ff, 0xffff0000, 0xffff0000], [...map.scatter.drawnColours]);
  assert.deepEqual(
    ["(empty) 1,200", "b 2"],
    [...map.legend.children].map((one) => one.textContent),
  );
  assert.deepEqual(
    [
      ["rgb(255, 0, 0)", "1,200 points"],
      ["rgb(0, 0, 255)", "2 points"],
    ],
    [...map.legend.children].map((one) => [one.querySelector(".tvz-map-dot").style.background, one.title]),
  );
  const grey = Uint8Array.from({ length: 768 }, (_, at) => Math.floor(at / 3));
  all.map_colours = { r: { legend: [], ends: [1000.5, 1001.25] }, buffers: [sent(Uint8Array.of(1, 2, 2)), sent(grey)] };
  put(map.colour, "json.w");
  await until(() => map.legend.querySelector(".tvz-map-bar"));
  assert.deepEqual(
    ["1000.5", "", "1001.25"],
    [...map.legend.children].map((one) => one.textContent),
  );
  assert.deepEqual(
    ["1", "64", "128", "192", "255"],
    [...map.legend.querySelector(".tvz-map-bar").style.background.matchAll(/rgb\((\d+), \1, \1\)/g)].map(([, shade]) => shade),
  );
  put(map.colour, "");
  await until(() => !map.legend.children.length);
  assert.equal(undefined, map.colours);
});

test("a colour that is no longer asked for is not taken, and one that fails is told", async () => {
  const waiting = [];
  const { map, open, note, all } = mapping({ map_colours: () => new Promise((go) => waiting.push(go)) });
  await open();
  await until(() => waiting.length === 1);
  put(map.colour, "json.w");
  await until(() => waiting.length === 2);
  const [first, second] = waiting;
  second({ r: { legend: [], ends: [0, 1] }, buffers: [sent(Uint8Array.of(1, 1, 1)), sent(PALETTE)] });
  await until(() => map.legend.querySelector(".tvz-map-bar"));
  first({ r: LEGEND, buffers: [sent(Uint8Array.of(2, 2, 2)), sent(PALETTE)] });
  await new Promise(setImmediate);
  assert.deepEqual([1, 1, 1], [...map.colours.codes]);
  put(map.colour, "cls");
  await until(() => waiting.length === 3);
  map.make();
  await until(() => waiting.length === 4);
  waiting[2]({ r: LEGEND, buffers: [sent(Uint8Array.of(2, 2, 2)), sent(PALETTE)] });
  await new Promise(setImmediate);
  assert.equal(undefined, map.colours, "those were of the points before");
  let making = true;
  all.map_colours = () => (making ? { r: { making: "counting" } } : Promise.reject(new Error("no try")));
  put(map.colour, "cls");
  await until(() => map.legend.querySelector(".tvz-busy"));
  making = false;
  await until(() => note() === "Error: no try");
  assert.equal("", map.legend.textContent, "nothing is counted any more");
});

test("points whose records do not show are faint; it is asked once for each search, and again when it is done", async () => {
  const shown = (...mask) => ({ r: { shown: 2 }, buffers: [sent(Uint8Array.from(mask))] });
  const { map, view, all, asked, open } = mapping({ map_shown: shown(1, 0, 1) });
  map.follow();
  assert.deepEqual([], asked("map_shown"), "no map is shown");
  await open();
  await until(() => map.scatter.faint === 1);
  map.follow();
  assert.equal(1, asked("map_shown").length);
  all.map_shown = shown(0, 0, 1);
  view.records.done = false;
  map.follow();
  await until(() => map.scatter.faint === 2);
  all.map_shown = shown(0, 0);
  view.records.query = 8;
  map.follow();
  await until(() => asked("map_shown").at(-1).query === 8);
  await new Promise(setImmediate);
  assert.equal(2, map.scatter.faint, "that is of another map");
  all.map_shown = { r: { stale: true } };
  view.records.query = 9;
  map.follow();
  await until(() => asked("map_shown").at(-1).query === 9);
  await new Promise(setImmediate);
  assert.equal(2, map.scatter.faint);
  all.map_shown = { r: {} };
  view.records.query = 10;
  map.follow();
  await until(() => map.scatter.faint === 0);
  map.root.hidden = true;
  view.records.query = 11;
  map.follow();
  assert.equal(10, asked("map_shown").at(-1).query);
});

test("on a page of its own a map is painted as the address says", async (t) => {
  const { getContext } = HTMLCanvasElement.prototype;
  const words = { getParameter: () => "llvmpipe", getProgramParameter: () => true };
  const card = new Proxy({}, { get: (_, name) => words[name] ?? (() => null) });
  HTMLCanvasElement.prototype.getContext = function (kind) {
    return kind === "2d" ? getContext.call(this, kind) : card;
  };
  history.replaceState(null, "", "/#painter=webgl");
  t.after(() => (history.replaceState(null, "", "/"), (HTMLCanvasElement.prototype.getContext = getContext)));
  const [own, beside] = [mapping({}, { model: { media: true } }), mapping()];
  for (const { map } of [own, beside]) map.open();
  assert.deepEqual(["webgl", "canvas"], [own.map.scatter.painter.kind, beside.map.scatter.painter.kind]);
});

const RECORD = { r: { rows: [{ id: 70, key: "set/k1", label: "cat", tile: { text: "some words", reason: "" } }], position: 4 } };
const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13);

test("the card of the point under the pointer lies beside it, within the frame", async () => {
  const { map, open, asked, all } = mapping({ map_record: RECORD });
  await open();
  const lies = (...place) => (map.hover(...place), ["left", "right", "top"].map((side) => map.card.style[side]));
  assert.deepEqual(["530px", "", "0px"], lies(1, 500, 5));
  assert.ok(map.scatter.root.classList.contains("tvz-map-hit"));
  assert.deepEqual(["", "413px", "450px"], lies(1, 601, 599));
  assert.deepEqual(["40px", "", "80px"], lies(1, 10, 100));
  await until(() => !map.card.hidden);
  assert.deepEqual([{ at: 1 }], asked("map_record"), "once, when the pointer rests");
  assert.deepEqual(
    ["some words", "cat", "set/k1"],
    [...map.card.children].map((one) => one.textContent),
  );
  all.map_record = { r: { rows: [{ id: 70, key: "set/k2", label: "", tile: { buffer: 0 } }], position: 4 }, buffers: [sent(PNG)] };
  await map.showCard();
  const [picture] = map.card.children;
  assert.deepEqual([2, "img", "set/k2"], [map.card.children.length, picture.localName, map.card.textContent]);
  const before = picture.src;
  await map.showCard();
  assert.deepEqual([1, true], [map.blobs.items.size, before !== map.card.firstChild.src], "the one before is let go");
  all.map_record = () => ((map.pointed = 2), RECORD);
  await map.showCard();
  assert.equal("set/k2", map.card.textContent, "the pointer went on meanwhile");
  map.hover(-1, 0, 0);
  assert.deepEqual([true, false], [map.card.hidden, map.scatter.root.classList.contains("tvz-map-hit")]);
  const { length } = asked("map_record");
  await map.showCard();
  assert.equal(length, asked("map_record").length);
  map.hover(0, 0, 0);
  assert.ok(map.scatter.root.classList.contains("tvz-map-hit"), "the first point is one, too");
  all.map_record = RECORD;
  await map.showCard();
  assert.ok(!map.card.hidden);
});

test("a point that is picked is selected where its record shows, else its record is opened", async () => {
  const { map, open, told, all, note } = mapping({ map_record: RECORD });
  await open();
  await map.pick(2);
  assert.deepEqual([["map_record", { at: 2 }, { keep: true }], [[4, 70]], []], [told.asked.at(-1), told.selected, told.opened]);
  all.map_record = { r: { ...RECORD.r, position: null } };
  await map.pick(2);
  assert.deepEqual([1, [[70]]], [told.selected.length, told.opened]);
  all.map_record = fault();
  await map.pick(2);
  assert.equal("no try", note());
});

test("a line around points filters, is drawn, stays while these points come again, and is let go with the map it was drawn on", async () => {
  const { map, all, asked, open, told, view } = mapping();
  map.trace([0, 0]);
  map.showLasso(true);
  assert.equal("false", map.lasso.getAttribute("aria-pressed"), "there is no map yet");
  await open();
  click(map.lasso);
  assert.deepEqual(
    [true, "true", true],
    [map.scatter.lassoing, map.lasso.getAttribute("aria-pressed"), map.scatter.root.classList.contains("tvz-map-lasso")],
  );
  assert.equal(map.scatter.root, document.activeElement);
  click(map.lasso);
  assert.deepEqual([false, "false"], [map.scatter.lassoing, map.lasso.getAttribute("aria-pressed")]);
  map.circle([0, 0, 1, 0, 1, 1]);
  assert.deepEqual([[{ area: [0, 0, 1, 0, 1, 1] }], [0, 0, 1, 0, 1, 1]], [told.searched, map.scatter.line]);
  map.uncircle();
  assert.deepEqual([1, []], [told.searched.length, map.scatter.line], "nothing was filtered by it");
  view.searches.next.area = [0, 0, 1, 0, 1, 1];
  const { length } = asked("map_shown");
  map.make();
  await until(() => asked("map_shown").length > length);
  assert.equal(1, told.searched.length, "the same points");
  all.map_points.r = { ...POINTS, number: 6 };
  map.make();
  await until(() => told.searched.length === 2);
  assert.deepEqual({ area: null }, told.searched[1]);
  const [inView, fit] = ["in view", "fit"].map((text) => [...map.tools.querySelectorAll("button")].find((one) => one.textContent === text));
  map.scatter.zoomBy(4);
  click(inView);
  assert.equal(8, told.searched[2].area.length);
  click(fit);
  assert.equal(1, map.scatter.zoom);
});
