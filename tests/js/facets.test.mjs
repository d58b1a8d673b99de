// The columns and the classes of the rail by themselves: their figures and bars, what a click or a brush asks for, what is read when.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Facets } from "../../tarviz/widgets/browse/filters/facets.mjs";
import { ObjectClasses } from "../../tarviz/widgets/browse/filters/object_classes.mjs";
import { figure } from "../../tarviz/widgets/browse/filters/facet_figures.mjs";
import { Rail } from "../../tarviz/widgets/browse/page/rail.mjs";
import { paint, shortValue } from "../../tarviz/widgets/map/map_values.mjs";
import { click, placed, press, test, until } from "./dom.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));
const shown = (root) => {
  const place = placed(root);
  ends.push(() => place.remove());
};

/** Facets of columns on a page that keeps what they ask and pick. */
function faceted(more = {}) {
  const told = { asked: [], picked: [], offered: [], woken: 0, trouble: [], roved: 0 };
  const view = {
    records: { query: 3, picks: new Map() },
    scan: {
      exact: true,
      lost: false,
      columns: { state: "ready", version: 1, note: "", bytes: 2e6 },
      wake: () => (told.woken += 1),
    },
    signal: new AbortController().signal,
    rpc: async (name, msg) => (told.asked.push([name, msg?.column ?? msg]), view.answer(name, msg)),
    answer: () => ({ r: {} }),
    status: { trouble: (error) => told.trouble.push(error.message) },
    searches: { pick: (...choice) => told.picked.push(choice) },
    rail: { rove: () => (told.roved += 1) },
    offer: (names) => told.offered.push(names),
    ...more,
  };
  const facets = new Facets(view);
  shown(facets.root);
  return { facets, view, told, all: (selector) => [...facets.root.querySelectorAll(selector)] };
}
const columnsOf = (...names) => names.map((name) => ({ name, type: "bigint" }));
const VALUES = {
  type: "varchar",
  all: { records: 40, distinct: 9, missing: 3 },
  kept: { records: 40, missing: 3 },
  other: [5, 2],
  bars: [
    ["cat", 20, 8],
    ["", 10, 1],
  ].map(([text, all, kept]) => ({ text, where: `c = '${text}'`, all, kept, low: null, high: null })),
};
const BARS = {
  type: "double",
  all: { records: 40, distinct: 9, missing: 0, min: 0, max: 8, mean: 4 },
  kept: { records: 40, missing: 0 },
  other: [0, 0],
  bars: [4, 8, 2, 0].map((all, at) => ({ text: `${2 * at} … ${2 * at + 2}`, low: 2 * at, high: 2 * at + 2, all, kept: all / 2 })),
};

test("the first five columns are unfolded, what each holds is asked for, and again after another search", async () => {
  const { facets, view, told } = faceted();
  const columns = [{ name: "png.size", type: "bigint" }, { name: "l", type: "list" }, { name: "u", type: "" }, ...columnsOf(..."abcdef")];
  view.answer = (name) => ({ r: name === "facets" ? { columns } : VALUES });
  assert.ok(!facets.settled);
  facets.follow();
  await until(() => facets.settled && !facets.busy);
  assert.deepEqual([["facets", undefined], ...[..."abcde"].map((name) => ["facet", name])], told.asked.splice(0, 9));
  assert.deepEqual([columns.map(({ name }) => name)], told.offered);
  assert.deepEqual([5, 1], [facets.known.size, told.woken]);
  facets.follow();
  assert.deepEqual([], told.asked, "nothing has changed");
  facets.asked = "";
  facets.follow();
  facets.follow();
  await until(() => facets.settled && !facets.busy);
  assert.equal(5, told.asked.splice(0, 99).length, "asked for once, though a poll came meanwhile");
  view.records.query = 4;
  assert.ok(!facets.settled);
  facets.follow();
  await until(() => facets.settled && !facets.busy);
  assert.deepEqual(
    [..."abcde"],
    told.asked.splice(0, 9).map(([, column]) => column),
  );
  const heads = facets.root.querySelectorAll(".tvz-facet-head");
  assert.deepEqual(
    ["f", "false", "what it holds"],
    [heads[8].firstChild.textContent, heads[8].getAttribute("aria-expanded"), heads[8].title],
  );
  assert.equal("what it holds; it is read first", heads[2].title);
  click(heads[8]);
  await until(() => facets.settled && !facets.busy);
  assert.deepEqual(
    [..."abcdef"],
    told.asked.splice(0, 9).map(([, column]) => column),
  );
  assert.equal("fold", facets.root.querySelectorAll(".tvz-facet-head")[8].title);
  click(facets.root.querySelectorAll(".tvz-facet-head")[3]);
  await until(() => facets.settled && !facets.busy);
  assert.deepEqual(
    [..."bcdef"],
    told.asked.splice(0, 9).map(([, column]) => column),
  );
  view.scan.columns = { ...view.scan.columns, version: 2 };
  facets.follow();
  await until(() => facets.settled && !facets.busy);
  assert.deepEqual(
    ["facets", "facet"],
    told.asked.slice(0, 2).map(([name]) => name),
  );
  assert.deepEqual([..."bcdef"], [...facets.open], "what somebody has chosen stays");
});

test("a column that is unfolded while others are asked for is asked for, too", async () => {
  const { facets, view, told, all } = faceted();
  let go;
  view.answer = (name) =>
    name === "facets" ? { r: { columns: columnsOf(..."abcdef") } } : new Promise((answer) => (go = () => answer({ r: VALUES })));
  facets.follow();
  await until(() => go);
  facets.draw();
  click(all(".tvz-facet-head")[5]);
  view.answer = () => ({ r: VALUES });
  go();
  await until(() => facets.settled && !facets.busy);
  assert.deepEqual(
    [..."abcdef"],
    told.asked.slice(1).map(([, column]) => column),
  );
});

test("while columns are read the first whose type is known are unfolded; once all are known that stays so", async () => {
  const { facets, view } = faceted();
  const opened = async (state, ...columns) => {
    view.scan.columns = { ...view.scan.columns, state, version: view.scan.columns.version + 1 };
    view.answer = (name) => ({ r: name === "facets" ? { columns } : VALUES });
    await facets.refresh();
    return [...facets.open].join("");
  };
  const [a, b, c] = columnsOf(..."abc");
  assert.deepEqual(
    ["", "b", "abc", "abc"],
    [
      await opened("making", { ...a, type: "" }, { ...b, type: "" }),
      await opened("making", { ...a, type: "" }, b),
      await opened("ready", a, b, c),
      await opened("ready", c),
    ],
  );
});

test("what another search or another table has made old is not shown, and not asked for to the end", async () => {
  const { facets, view, told } = faceted();
  const answers = [() => ({ ...VALUES, stale: true }), () => ({ ...VALUES, making: true }), () => ((view.records.query = 4), VALUES)];
  view.answer = (name) => ({ r: name === "facets" ? { columns: columnsOf(..."abcde") } : (answers.shift() ?? (() => VALUES))() });
  await facets.refresh();
  assert.deepEqual([["c"], false], [[...facets.known.keys()], facets.settled]);
  assert.equal(
    "abc",
    told.asked
      .splice(0, 9)
      .slice(1)
      .map(([, column]) => column)
      .join(""),
  );
  await facets.refresh();
  assert.equal("abcde", told.asked.map(([, column]) => column).join(""));
});

test("while columns are read nothing is settled; nothing is asked of a server that is gone; an error is told once", async () => {
  const { facets, view, told } = faceted();
  for (const [state, settled] of [
    ["making", false],
    ["scanning", false],
    ["none", true],
    ["costly", true],
  ]) {
    view.scan.columns.state = state;
    assert.equal(settled, facets.settled, state);
  }
  view.scan.columns = { ...view.scan.columns, state: "making", note: "reading cls" };
  view.answer = () => Promise.reject(new Error("gone"));
  view.scan.lost = true;
  facets.follow();
  assert.deepEqual(
    [[], "reading cls", "tvz-busy", false],
    [told.asked, facets.note.textContent, facets.note.firstChild.className, facets.note.hidden],
  );
  view.scan.lost = false;
  view.scan.columns = { ...view.scan.columns, state: "ready", note: "" };
  facets.follow();
  await until(() => told.trouble.length);
  assert.deepEqual([["gone"], true, false, true], [told.trouble, facets.settled, facets.busy, facets.note.hidden]);
});

test("columns that cost much are counted when somebody asks", async () => {
  const { facets, view, told } = faceted();
  view.scan.columns.state = "costly";
  facets.follow();
  const button = facets.note.querySelector("button");
  assert.deepEqual(["count all columns (reads 2.00 MB)", false], [button.textContent, facets.note.hidden]);
  click(button);
  await until(() => told.woken === 1);
  assert.deepEqual([["prepare", undefined]], told.asked);
  view.answer = () => Promise.reject(new Error("no"));
  click(button);
  await until(() => told.trouble[0] === "no");
});

test("fourteen columns are listed, those unfolded and four more at least, then all", () => {
  const { facets, told, all } = faceted();
  facets.columns = columnsOf(...Array.from({ length: 30 }, (_, at) => `c${at}`));
  facets.draw();
  const rows = () => all(".tvz-facet").length;
  const more = () => all("[data-name='more columns']")[0];
  assert.deepEqual([14, "16 more"], [rows(), more().textContent]);
  facets.open = new Set(facets.columns.slice(0, 11).map(({ name }) => name));
  facets.draw();
  assert.deepEqual([15, "15 more"], [rows(), more().textContent]);
  assert.equal("", all(".tvz-facet p")[0].textContent);
  facets.columns[0].type = "";
  facets.draw();
  assert.equal("being read …", all(".tvz-facet p")[0].textContent);
  all("[data-name='facet c3']")[0].focus();
  const { roved } = told;
  facets.draw();
  assert.deepEqual(["facet c3", roved + 1], [document.activeElement.dataset.name, told.roved]);
  click(more());
  assert.deepEqual([30, undefined], [rows(), more()]);
  facets.dragged = true;
  facets.columns = [];
  facets.draw();
  assert.equal(30, rows(), "nothing is replaced under the pointer");
  facets.dragged = false;
  facets.draw();
  assert.equal("", facets.list.textContent);
  facets.columns = columnsOf(..."abcdefghijklmnop");
  facets.all = false;
  facets.draw();
  assert.equal("1 more", more().textContent);
});

test("a bar that is being clicked stays until the click has come", async () => {
  const { facets, all } = faceted();
  facets.columns = columnsOf("c");
  facets.open = new Set(["c"]);
  facets.known.set("c", VALUES);
  facets.draw();
  const bar = () => all(".tvz-bar")[0];
  for (const [event, on] of [
    ["pointerup", window],
    ["pointercancel", window],
    ["pointermove", facets.list],
  ]) {
    const before = bar();
    before.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    facets.draw();
    assert.equal(before, bar(), event);
    on.dispatchEvent(new PointerEvent(event, { buttons: 0 }));
    await until(() => bar() !== before);
  }
  const still = bar();
  facets.list.dispatchEvent(new PointerEvent("pointermove", { buttons: 0 }));
  assert.equal(still, bar(), "nothing waits to be drawn");
});

test("values: how many have each, of them those shown; how many rarer there are; what lacks one", () => {
  const { facets, view, told } = faceted();
  const box = (facet) => {
    const place = document.createElement("div");
    place.append(...facets.body("c", { ...VALUES, ...facet }));
    return place;
  };
  const texts = (place, selector) => [...place.querySelectorAll(selector)].map((one) => one.textContent);
  const plain = box({});
  assert.deepEqual(["cat20", "(empty)10"], texts(plain, ".tvz-bar"));
  assert.deepEqual(
    [
      ["1", "0.4"],
      ["0.5", "0.05"],
    ],
    [...plain.querySelectorAll(".tvz-bar")].map((bar) => ["--share", "--kept"].map((name) => bar.style.getPropertyValue(name))),
  );
  assert.deepEqual(["3 missing", "and 7 rarer: 5 records"], [plain.querySelector(".tvz-link").textContent, plain.lastChild.textContent]);
  const filtered = box({ kept: { records: 9, missing: 2, distinct: 1, min: "a", max: "b" } });
  assert.deepEqual(["cat8 / 20", "(empty)1 / 10"], texts(filtered, ".tvz-bar"));
  assert.deepEqual(
    ["2 of 3 missing", "and 7 rarer: 2 / 5 records"],
    [filtered.querySelector(".tvz-link").textContent, filtered.lastChild.textContent],
  );
  assert.match(filtered.textContent, /shown: 1 value/);
  assert.match(box({ kept: { records: 2, missing: 2 } }).textContent, /shown: none has it/);
  assert.match(box({ of: 1234 }).firstChild.textContent, /^of the first 1,234 records read$/);
  const single = VALUES.bars[0];
  const alone = (count) =>
    texts(box({ other: [0, 0], bars: Array.from({ length: count }, () => ({ ...single, all: 1 })) }), ".tvz-bar").length;
  assert.deepEqual([3, 0], [alone(3), alone(4)], "each value once tells nothing");
  assert.equal(null, box({ all: { ...VALUES.all, missing: 0 } }).querySelector(".tvz-link"));
  click(plain.querySelector(".tvz-link"));
  facets.known.set("c", VALUES);
  const pick = (at, more) => (click(plain.querySelectorAll(".tvz-bar")[at], more), told.picked.at(-1));
  assert.deepEqual([["c", "c is null", "no c"]], told.picked);
  assert.deepEqual(["c", "c = 'cat'", "c: cat", ["c = 'cat'"]], pick(0));
  view.records.picks.set("c", { parts: ["c = 'cat'"] });
  assert.deepEqual(["c", "", "c: ", []], pick(0));
  assert.deepEqual(["c", "c = ''", "c: ", ["c = ''"]], pick(1));
  assert.deepEqual(["c", "c = 'cat' or c = ''", "c: cat, ", ["c = 'cat'", "c = ''"]], pick(1, { shiftKey: true }));
  assert.deepEqual(["c", "", "c: ", []], pick(0, { metaKey: true }));
  assert.deepEqual(
    ["true", "false"],
    [...box({}).querySelectorAll(".tvz-bar")].map((bar) => bar.getAttribute("aria-pressed")),
  );
  view.records.picks.set("c", { parts: ["c = 'old'"] });
  assert.deepEqual(["c", "c = 'old' or c = 'cat'", "c: c = 'old', cat", ["c = 'old'", "c = 'cat'"]], pick(0, { ctrlKey: true }));
});

test("bars: as high as the highest, brushed from one to the other, walked by arrows within their ends", () => {
  const { facets, view, told } = faceted();
  const place = document.createElement("div");
  shown(place);
  const draw = (more = {}) => (place.replaceChildren(...facets.body("w", { ...BARS, ...more })), place.querySelector(".tvz-hist"));
  let bars = draw();
  const on = () => [...bars.children].map((bar) => Number(bar.classList.contains("tvz-on"))).join("");
  assert.deepEqual(
    ["0.5", "1", "0.25", "0"],
    [...bars.children].map((bar) => bar.style.getPropertyValue("--all")),
  );
  assert.equal("0.25", bars.firstChild.style.getPropertyValue("--kept"));
  assert.deepEqual(
    ["0", "3", "0", "0 … 2", -1],
    [...["min", "max", "now", "text"].map((name) => bars.getAttribute(`aria-value${name}`)), bars.tabIndex],
  );
  assert.deepEqual(
    ["0 … 2\n4", "0", "8"],
    [bars.firstChild.title, ...[...place.querySelectorAll(".tvz-ends span")].map((one) => one.textContent)],
  );
  assert.equal("0 … 2\n2 of 4", draw({ kept: { records: 9, missing: 0, min: 0, max: 8, mean: 1 } }).firstChild.title);
  assert.deepEqual(["0", "log", "8"], (draw({ log: true }), [...place.querySelectorAll(".tvz-ends span")].map((one) => one.textContent)));
  const flat = { ...BARS.bars[0], high: 0, where: "w = 0" };
  draw({ bars: [flat] });
  assert.equal(null, place.querySelector(".tvz-hist"), "one value is no range");
  bars = draw();
  bars.getBoundingClientRect = () => ({ left: 100, width: 1000 });
  const steps = [
    ["ArrowRight", { shiftKey: true }],
    ["ArrowLeft"],
    ["ArrowLeft"],
    ["ArrowRight"],
    ["ArrowRight", { shiftKey: true }],
    ["ArrowRight", { shiftKey: true }],
    ["ArrowRight", { shiftKey: true }],
  ].map(([key, more]) => (press(bars, key, more), on()));
  assert.deepEqual(["1100", "1000", "1000", "0100", "0110", "0111", "0111"], steps);
  assert.deepEqual(["3", "w 2 … 8: 5 records"], [bars.getAttribute("aria-valuenow"), bars.getAttribute("aria-valuetext")]);
  assert.deepEqual([true, false], [press(bars, " "), press(bars, "x")]);
  assert.deepEqual(["w", "w >= 2 and w <= 8", [1, 3]], [told.picked[0][0], told.picked[0][1], told.picked[0][4]]);
  const at = (x, kind, more) => click(bars, { clientX: 100 + x, ...more }, kind);
  at(400, "pointermove");
  at(400, "pointerup");
  at(400, "pointerdown", { button: 2 });
  assert.deepEqual(["0111", 1, false], [on(), told.picked.length, facets.dragged]);
  at(700, "pointerdown");
  assert.deepEqual(["0010", true], [on(), facets.dragged]);
  at(-50, "pointermove");
  assert.equal("1110", on());
  at(5000, "pointermove");
  assert.equal("0011", on());
  at(250, "pointermove");
  at(250, "pointerup");
  assert.deepEqual([false, "w >= 2 and w < 6", [1, 2]], [facets.dragged, told.picked[1][1], told.picked[1][4]]);
  view.records.picks.set("w", { span: [1, 2] });
  bars = draw();
  assert.deepEqual(["0110", "2"], [on(), bars.getAttribute("aria-valuenow")]);
  press(bars, "Enter");
  assert.deepEqual(["w", ""], told.picked[2].slice(0, 2), "the same again");
  view.records.picks.set("w", { span: [1, 4] });
  bars = draw();
  assert.deepEqual(["0000", "0"], [on(), bars.getAttribute("aria-valuenow")], "of an address, where there were more bars");
  at(10, "pointerdown");
  at(10, "pointercancel");
  assert.ok(!facets.dragged);
});

/** Classes of objects with these answers. */
function classed(state, classes, picked = []) {
  const told = { asked: 0, picks: [], trouble: [] };
  const objects = new ObjectClasses({
    rpc: async () => (
      (told.asked += 1),
      classes instanceof Error ? Promise.reject(classes) : { r: { classes, version: 1, stale: state.stale } }
    ),
    records: { query: state.query, done: true, wish: { objects: state.boxes } },
    scan: { total: state.total, exact: state.ready, columns: { state: "ready", version: state.version } },
    layers: { colours: {}, colour: () => "#123456" },
    searches: { pickClasses: (names) => told.picks.push(names), pickedClasses: () => picked },
    rail: { rove: () => {} },
    status: { trouble: (error) => told.trouble.push(error.message) },
  });
  return { objects, told, texts: () => [...objects.root.querySelectorAll("button")].map((one) => one.textContent) };
}
const STATE = { query: 1, version: 1, total: 5000, ready: true, boxes: true };

test("the classes of objects: counted at once where records are few, twelve listed, one picked or more", async () => {
  const classes = Array.from({ length: 13 }, (_, at) => [`c${at}`, 30, 20 - at, at ? 20 - at : 5]);
  const { objects, told, texts } = classed(STATE, classes, ["c1"]);
  assert.ok(!objects.settled);
  await objects.follow();
  assert.deepEqual([true, 13, "c05 / 20", "c119", "1 more"], [objects.settled, texts().length, texts()[0], texts()[1], texts()[12]]);
  const bar = (at) => objects.root.querySelectorAll(".tvz-bar")[at];
  assert.deepEqual(
    ["1", "0.25", "0.95", "false", "true"],
    [
      bar(0).style.getPropertyValue("--share"),
      bar(0).style.getPropertyValue("--kept"),
      bar(1).style.getPropertyValue("--share"),
      bar(0).getAttribute("aria-pressed"),
      bar(1).getAttribute("aria-pressed"),
    ],
  );
  for (const [at, more] of [[0], [0, { ctrlKey: true }], [1], [1, { shiftKey: true }], [2, { metaKey: true }]]) click(bar(at), more);
  assert.deepEqual([["c0"], ["c1", "c0"], [], [], ["c1", "c2"]], told.picks);
  click(objects.root.querySelectorAll("button")[12]);
  assert.equal("c128", texts()[12]);
  await objects.follow();
  assert.equal(1, told.asked);
});

test("of many records classes are counted when somebody asks, and not where there are none", async () => {
  const { objects, told, texts } = classed({ ...STATE, total: 5001 }, [["cat", 1, 1, 1]]);
  await objects.follow();
  assert.deepEqual([true, 0, ["count their classes"]], [objects.settled, told.asked, texts()]);
  click(objects.root.querySelector("button"));
  await until(() => told.asked && !objects.busy);
  assert.deepEqual(["cat1"], texts());
  for (const state of [
    { ...STATE, boxes: false },
    { ...STATE, ready: false },
  ]) {
    const none = classed(state, []);
    await none.objects.follow();
    assert.deepEqual([true, 0, ""], [none.objects.settled, none.told.asked, none.objects.root.textContent]);
  }
  const empty = classed(STATE, []);
  await empty.objects.follow();
  assert.deepEqual([1, []], [empty.told.asked, empty.texts()], "there is nothing more to count");
  const stale = classed({ ...STATE, stale: true }, [["cat", 1, 1, 1]]);
  await stale.objects.follow();
  assert.deepEqual([[], false, false], [stale.objects.classes, stale.objects.busy, stale.objects.settled]);
  const failed = classed(STATE, new Error("no"));
  await failed.objects.follow();
  assert.deepEqual([["no"], true, false], [failed.told.trouble, failed.objects.settled, failed.objects.busy]);
  const twice = classed(STATE, [["cat", 1, 1, 1]]);
  await Promise.all([twice.objects.follow(), twice.objects.follow()]);
  assert.equal(1, twice.told.asked);
});

test("a figure has four digits, a whole number all of them in groups, what is far from one an exponent", () => {
  assert.deepEqual(
    ["5.00e-4", "0.001", "12.35", "-12.35", "999900", "1.00e+6", "−5", "1,234", "999,999,999,999,999", "1.000e+15", "", "a", "true"],
    [0.0005, 0.001, 12.34567, -12.34567, 999_949.5, 1_000_000.5, -5, 1234, 999_999_999_999_999, 1e15, null, "a", true].map(figure),
  );
});

test("an end of an axis has two digits more than its span, none below", () => {
  assert.deepEqual(
    ["1.23", "12.3", "123", "1235", "0.123457", "0"],
    [
      shortValue(1.2346, 5),
      shortValue(12.346, 50),
      shortValue(123.46, 500),
      shortValue(1234.6, 5000),
      shortValue(0.123456789, 1e-4),
      shortValue(0, 0),
    ],
  );
  assert.deepEqual([], [...paint(new Uint8Array(), new Uint8Array(768), 255)]);
});

/** The rail of a page with this summary of its shards. */
function railed({ shards = [], ...summary }) {
  const told = [];
  const around = {
    ...{ signal: new AbortController().signal, records: { picks: new Map(), wish: { shard: null } } },
    ...{ scan: { shards, total: 0, summary: { faults: [], fields: [], sets: [], ...summary } } },
    searches: new Proxy(
      {},
      {
        get:
          (_, name) =>
          (...values) =>
            void told.push([name, ...values]),
      },
    ),
  };
  const rail = new Rail(around);
  shown(rail.root);
  rail.draw();
  rail.drawMore();
  return { rail, around, told, all: (selector) => [...rail.root.querySelectorAll(selector)] };
}

test("sixty findings and sixty fields are listed at most, nine fields as columns of their sets", () => {
  const faults = Array.from({ length: 61 }, (_, at) => ({
    code: `E_${at}`,
    shard: 0,
    message: "",
    key: "",
    offset: at ? null : undefined,
  }));
  const fields = Array.from({ length: 61 }, (_, at) => [`f${at}`, 5]);
  const { rail, all } = railed({
    faults,
    fields,
    sets: [
      [["f0"], 4],
      [["f1"], 1],
    ],
  });
  const counts = () => [all(".tvz-finding").length, all(".tvz-bar").length];
  assert.deepEqual([[3, 7], "58 more", "54 more"], [counts(), ...all(".tvz-link").map((one) => one.textContent)]);
  rail.allFaults = rail.allFields = true;
  rail.drawMore();
  assert.deepEqual([[60, 60], [], "E_0 "], [counts(), all(".tvz-link"), all(".tvz-finding")[0].textContent]);
  assert.deepEqual(
    ["f8", "records"],
    all("th")
      .slice(8)
      .map((one) => one.textContent),
  );
});

test("what half the records have is usual; a set is picked by a click or Enter, and told where it is on", () => {
  const sets = [
    [["a", "b"], 5],
    [["a"], 5],
  ];
  const { rail, around, told, all } = railed({
    fields: [
      ["a", 10],
      ["b", 5],
    ],
    sets,
  });
  assert.equal("a b", around.scan.common);
  const rows = all("tbody tr");
  press(rows[1], "x");
  assert.deepEqual([], told);
  press(rows[1], "Enter");
  click(rows[0]);
  const [alone, both] = [
    ["fields", "has('a') and not has('b')", "just a"],
    ["fields", "has('a') and has('b')", "just a, b"],
  ];
  assert.deepEqual(
    [
      ["pick", ...alone],
      ["pick", ...both],
    ],
    told,
  );
  around.records.picks.set("fields", { where: alone[1] });
  around.records.picks.set("has b", {});
  rail.drawMore();
  assert.deepEqual(
    ["tvz-bar tvz-on"],
    all("button[aria-pressed=true]").map((one) => one.className),
  );
  assert.deepEqual(
    ["", "tvz-on"],
    all("tbody tr").map((one) => one.className),
  );
  around.scan.summary.sets = [[["a"], 1]];
  rail.drawMore();
  assert.deepEqual(["", 0], [around.scan.common, all("tr").length]);
});

test("shards are as long as their share of the largest, those without a record have none", () => {
  const shard = (number, count, more) => ({ number, count, name: `s${number}`, state: "done", share: null, size: 1, ...more });
  const { all, told, around, rail } = railed({ shards: [shard(0, 40), shard(1, 10), shard(2, 0, { state: "scanning", share: 0 })] });
  const shares = () => all(".tvz-shard").map((row) => row.style.getPropertyValue("--share"));
  assert.deepEqual(["", "1", "0.25", "0"], shares());
  click(all(".tvz-shard")[1]);
  click(all(".tvz-shard")[0]);
  assert.deepEqual(
    [
      ["run", { shard: 0 }],
      ["run", { shard: null }],
    ],
    told,
  );
  around.scan.shards = [shard(0, 0), shard(1, 0)];
  rail.draw();
  assert.deepEqual(["", "0", "0"], shares());
});
