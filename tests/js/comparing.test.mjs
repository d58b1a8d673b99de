// The parts of a comparison by themselves: rows of chains, strips of records, the two steps on the stage, keys, sliders, changes.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { chainRows } from "../../tarviz/widgets/compare/chain_rows.mjs";
import { Changes } from "../../tarviz/widgets/compare/changes.mjs";
import { CompareView } from "../../tarviz/widgets/compare/compare.mjs";
import { recordSections } from "../../tarviz/widgets/compare/record_sections.mjs";
import { Sliders } from "../../tarviz/widgets/compare/sliders.mjs";
import { StagedPair } from "../../tarviz/widgets/compare/staged_pair.mjs";
import { h } from "../../tarviz/widgets/host/core.mjs";
import { click, placed, press, put, test, until } from "./dom.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

const COLUMN = {
  name: "a",
  chain: "decode(png)",
  seed: 3,
  random: false,
  numbers: [],
  runner: "eager",
  seconds: 0.1,
  ms: "1 ms",
  out: "uint8[2]",
};
const COLUMNS = [
  { ...COLUMN, apart: "", failed: 0 },
  { ...COLUMN, runner: "tf.data", apart: "no difference", failed: 0, ms: "2 ms" },
  { ...COLUMN, name: "b", chain: "", random: true, apart: "", failed: 2 },
];

test("a row a chain: its ops, its seed, its time, what comes out; runners below it with what differs", () => {
  const told = [];
  const view = {
    order: [2, 0, 1],
    at: { record: 1, column: 0, step: -1 },
    columns: COLUMNS,
    select: (place) => told.push(["select", place]),
    changes: { reroll: (column) => told.push(["reroll", column]) },
    copy: (text) => told.push(["copy", text]),
  };
  const rows = chainRows(view);
  assert.deepEqual(
    [
      ["b", "(no ops)", "seed 3 new", "1 ms", "2 failed", "copy"],
      ["a", "decode(png)", "", "1 ms", "uint8[2]", "copy"],
      ["↳ tf.data", "no difference", "", "2 ms", "uint8[2]", ""],
    ],
    rows.map((row) => [...row.children].map((cell) => cell.textContent)),
  );
  for (const [step, on] of [
    [-1, ""],
    [0, "tvz-on"],
  ]) {
    view.at.step = step;
    assert.deepEqual(
      ["", on, ""],
      chainRows(view).map((row) => row.className),
    );
  }
  assert.deepEqual(
    [null, "tvz-good"],
    [rows[1], rows[2]].map((row) => row.querySelector(".tvz-good")?.className ?? null),
  );
  click(rows[0]);
  view.at = { ...view.at, step: 2 };
  click(rows[2]);
  for (const button of rows[0].querySelectorAll("button")) click(button);
  assert.deepEqual(
    [
      ["select", { record: 1, column: 2, step: 0 }],
      ["select", { record: 1, column: 1, step: 2 }],
      ["reroll", 2],
      ["copy", ""],
    ],
    told,
    "a button of a row is not a click on it",
  );
  const text = (more) => chainRows({ ...view, order: [0], columns: [{ ...COLUMNS[1], ...more }] })[0].children[1].textContent;
  assert.deepEqual(["failed", "…"], [text({ apart: "", failed: 1 }), text({ apart: "", failed: 0 })]);
});

/** The sections of two records on these columns. */
function sections(more = {}) {
  const strips = new Map([
    ["0:0", { failed: false, apart: "", ms: "1 ms", tiles: ["x", "y"] }],
    ["0:2", { failed: true, apart: "", ms: "2 ms", tiles: [] }],
    ["0:1", { failed: false, apart: "no difference", ms: "3 ms", tiles: ["z"] }],
  ]);
  const view = {
    order: [0, 1, 2],
    columns: COLUMNS,
    strips,
    records: ["k0", "k1"].map((key, number) => ({ key, number, shard: "s" })),
    originals: ["o0", "o1"],
    ...{ last: false, running: true },
    tile: (tile, { record, column, step }) => h("i", {}, `${tile} ${record}:${column}:${step}`),
    ...more,
  };
  return recordSections(view);
}

test("a section a record: its original and a strip a chain, which says what it came to", () => {
  const [first, second] = sections();
  const texts = (section, selector) => [...section.querySelectorAll(selector)].map((one) => one.textContent);
  assert.deepEqual(["original", "a 1 ms", "a · tf.data no difference", "b failed"], texts(first, ".tvz-strip-name"));
  assert.deepEqual(["o0 0:0:-1", "x 0:0:0", "y 0:0:1", "z 0:1:0"], texts(first, "i"));
  assert.deepEqual(["no ops"], texts(first, "p"));
  assert.deepEqual(["running", "running", "running"], texts(second, ".tvz-busy"));
  assert.deepEqual(["k0", "s, record 0"], [first.querySelector("h3").textContent, first.querySelector("h3").title]);
  const [last] = sections({ last: true });
  assert.deepEqual(["o0 0:0:-1", "y 0:0:1", "z 0:1:0"], texts(last, "i"));
  assert.deepEqual(
    [1, 1, 0],
    [".tvz-lasts", ".tvz-record-row", ".tvz-all"].map((kind) => last.querySelectorAll(kind).length),
  );
  const [alone] = sections({ order: [0] });
  assert.deepEqual(["original", " 1 ms"], texts(alone, ".tvz-strip-name"), "one chain needs no name");
  const [two] = sections({ order: [0, 2] });
  assert.deepEqual(["original", "a 1 ms", "b failed"], texts(two, ".tvz-strip-name"));
  const [runner] = sections({ order: [1] });
  assert.equal("a · tf.data no difference", texts(runner, ".tvz-strip-name")[1]);
});

/** What the stage is given, of two steps of a record with three and one steps. */
function pairing(more = {}) {
  const told = { staged: [], said: [], asked: [] };
  const tiles = (...ops) =>
    ops.map((op) => ({ op, text: `${op} text`, mapping: "as it is", picture: op === "flip(png)" ? "p" : undefined }));
  const view = {
    at: { record: 1, column: 1, step: 0 },
    a: { column: 0, step: 9 },
    b: null,
    lost: false,
    columns: COLUMNS,
    originals: [{}, { text: "3 bytes", mapping: "" }],
    strips: new Map([
      ["1:0", { version: 4, tiles: tiles("decode(png)", "flip(png)", "blur(png, 3)") }],
      ["1:1", { version: 5, tiles: [{ op: "tf.data: the whole chain", error: "E_OP: no", text: "" }] }],
    ]),
    blobs: new Map([["p", "blob:p"]]),
    stage: { set: (...sides) => told.staged.push(sides), say: (text) => told.said.push(text) },
    mark: () => {},
    maskOf: () => undefined,
    rpc: async (...request) => (told.asked.push(request), { r: { text: "shapes differ" } }),
    trouble: (error) => told.said.push(error.message),
    ...more,
  };
  const staged = new StagedPair(view);
  return { view, staged, told, show: async () => (staged.show(), await new Promise(setImmediate), told.staged.at(-1)) };
}

test("on the stage stand A and B, else the step under the cursor; a step that a chain has not is its last", async () => {
  const { view, staged, told, show } = pairing();
  assert.deepEqual(
    [
      { record: 1, column: 0, step: 2 },
      { record: 1, column: 1, step: 0 },
    ],
    staged.pair(),
  );
  const [a, b] = await show();
  assert.deepEqual(["a: blur", "a: tf.data: the whole chain", "E_OP: no"], [a.title, b.title, b.text]);
  assert.deepEqual(["1:0:2@4", "1:1:0@5"], [a.name, b.name], "another run of a step is another picture");
  assert.deepEqual([["difference", { record: 1, a: [0, 2], b: [1, 0] }]], told.asked);
  assert.deepEqual(["", "shapes differ"], told.said);
  view.a = { column: 0, step: 1 };
  view.b = { column: 1, step: -1 };
  const [flip, original] = await show();
  assert.deepEqual(["a: flip", "blob:p", "as it is"], [flip.title, flip.small, flip.mapping]);
  assert.deepEqual(["original · fixed", "3 bytes", "1:@0"], [original.title, original.text, original.name]);
  view.b = { ...view.a };
  await show();
  assert.deepEqual([2, "A and B are the same step"], [told.asked.length, told.said.at(-1)]);
  view.b = { column: 2, step: 0 };
  const [, none] = await show();
  assert.deepEqual([{ record: 1, column: 2, step: -1 }, 3], [none.place, told.asked.length]);
  view.lost = true;
  await show();
  assert.equal(3, told.asked.length);
  view.lost = false;
  view.rpc = () => Promise.reject(new Error("no"));
  await show();
  assert.equal("no", told.said.at(-1));
});

/** What is asked anew, and what becomes of it. */
function changing(answer = {}, more = {}) {
  const told = { asked: [], said: [], loops: 0 };
  const view = {
    columns: COLUMNS,
    config: { most: 32 },
    strips: new Map([["0:0", {}]]),
    at: { record: 0, column: 1, step: 0 },
    a: { column: 2, step: 0 },
    b: null,
    running: false,
    rpc: async (...request) => (told.asked.push(request), answer instanceof Error ? Promise.reject(answer) : { r: answer }),
    tell: (text) => told.said.push(text),
    trouble: (error) => told.said.push(error.message),
    loop: () => (told.loops += 1),
    ...more,
  };
  return { view, told, changes: new Changes(view) };
}

test("what is asked anew is followed; what comes to nothing is told", async () => {
  const one = changing({ found: 1, count: 4 });
  await one.changes.more();
  assert.deepEqual([[["more", { count: 1 }]], 3, true, 1], [one.told.asked, one.view.at.record, one.view.running, one.told.loops]);
  for (const [count, said] of [
    [32, "At most 32 records."],
    [31, "There are no more records."],
  ]) {
    const none = changing({ found: 0, count });
    await none.changes.more();
    assert.deepEqual([[said], false, 0, 0], [none.told.said, none.view.running, none.told.loops, none.view.at.record]);
  }
  const seeds = changing();
  await seeds.changes.reroll(0);
  await seeds.changes.reroll(2);
  await seeds.changes.reroll(null);
  assert.deepEqual(["This chain draws no random numbers."], seeds.told.said);
  assert.deepEqual(
    [
      ["reroll", { column: 2 }],
      ["reroll", { column: null }],
    ],
    seeds.told.asked,
  );
  const fault = changing(new Error("no"));
  await fault.changes.tune(1, { op: 2, name: "size", at: 0 }, 7);
  assert.deepEqual([["tune", { column: 1, op: 2, name: "size", at: 0, value: 7 }]], fault.told.asked);
  assert.deepEqual([["no"], false, 0], [fault.told.said, fault.view.running, fault.told.loops]);
});

test("of numbers that follow each other the last is the last that is asked for", async () => {
  const asked = [];
  let answer = () => {};
  const rpc = async (_, { value }) => (asked.push(value), new Promise((ready) => (answer = () => ready({ r: {} }))));
  const { changes } = changing({}, { rpc });
  const both = [changes.tune(1, { op: 2, name: "size", at: 0 }, 7), changes.tune(1, { op: 2, name: "size", at: 0 }, 8)];

  await until(() => asked.length);
  assert.deepEqual([7], asked, "the second waits for the answer to the first");
  answer();
  await until(() => asked.length === 2);
  answer();
  await Promise.all(both);
  assert.deepEqual([7, 8], asked);
});

const WHEELS = [
  { op: 0, name: "size", at: 0, label: "resize height", value: 32, low: 1, high: 128, step: 1 },
  { op: 1, name: "p", at: null, label: "flip p", value: 0.25, low: 0, high: 1, step: 0.01 },
];

test("sliders are those of the chain under the cursor, stay while it runs, and are moved by it but for the one that is held", async () => {
  const told = { tuned: [], copied: [] };
  const column = { ...COLUMN, numbers: WHEELS };
  const end = new AbortController();
  const view = {
    signal: end.signal,
    at: { column: 1 },
    columns: [
      { ...column, apart: "" },
      { ...column, runner: "tf.data" },
      { ...COLUMN, name: "b", chain: "flip" },
    ],
    changes: { tune: (...move) => told.tuned.push(move) },
    copy: (text) => told.copied.push(text),
  };
  const sliders = new Sliders(view);
  view.root = placed(sliders.root);
  ends.push(() => (end.abort(), view.root.remove()));
  assert.deepEqual([true, false], [sliders.root.hidden, sliders.shown]);
  sliders.draw();
  assert.equal(0, sliders.box.children.length, "what is not shown is not drawn");
  sliders.toggle();
  const inputs = () => [...sliders.root.querySelectorAll("input")];
  const [height, p] = inputs();
  assert.deepEqual(
    [
      ["1", "128", "1", "32"],
      ["0", "1", "0.01", "0.25"],
    ],
    [height, p].map((one) => [one.min, one.max, one.step, one.value]),
  );
  assert.deepEqual(
    ["32", "0.25"],
    [...sliders.root.querySelectorAll("output")].map((one) => one.textContent),
  );
  put(height, "40");
  put(height, "41");
  assert.equal("41", sliders.root.querySelector("output").textContent);
  await until(() => told.tuned.length);
  assert.deepEqual([[0, WHEELS[0], 41]], told.tuned, "of many moves the last");
  height.focus();
  view.columns[0] = {
    ...view.columns[0],
    numbers: [
      { ...WHEELS[0], value: 50 },
      { ...WHEELS[1], value: 0.5 },
    ],
  };
  sliders.draw();
  assert.deepEqual([height, p, "41", "0.5"], [...inputs(), height.value, p.value]);
  assert.deepEqual(
    ["41", "0.5"],
    [...sliders.root.querySelectorAll("output")].map((one) => one.textContent),
  );
  click(sliders.root.querySelector("button"));
  assert.deepEqual(["decode(png)"], told.copied);
  view.at.column = 2;
  sliders.draw();
  assert.match(sliders.root.textContent, /^bno numbers in this chain/);
  view.at.column = 7;
  sliders.draw();
  assert.ok(sliders.root.hidden);
  view.at.column = 1;
  sliders.toggle();
  assert.ok(sliders.root.hidden);
});

const TILE = {
  op: "decode(png)",
  fields: ["png"],
  ext: "png",
  feature: "uint8[2]",
  range: "0…9",
  mapping: "as it is",
  drawn: "",
  ms: "1 ms",
};
const WORDS = { text: "words", error: "", held: true, buffer: null, over: null, behind: "" };
const FIRST = {
  config: {
    title: "t.tar",
    runners: [
      ["ray_data", "Ray Data", "in workers"],
      ["tf", "tf.data", ""],
    ],
    most: 32,
    python: "tarviz.compare('t.tar')",
  },
  poll: {
    ...{ version: 1, running: false, status: "1 record × 2 chains", colours: {}, records: [{ key: "k0", shard: "t.tar", number: 0 }] },
    columns: [{ ...COLUMNS[0], numbers: WHEELS }, COLUMNS[2]],
    originals: [{ ...TILE, ...WORDS, op: "" }],
    strips: [0, 1].map((column) => ({
      column,
      record: 0,
      ms: "1 ms",
      failed: false,
      apart: "",
      tiles: [
        { ...TILE, ...WORDS },
        { ...TILE, ...WORDS, op: "flip(png)" },
      ],
    })),
  },
};

const ANSWERS = { step: { picture: false }, difference: { text: "" } };

/** A comparison that is drawn of its first answer alone; `answers` by the name of what it asks. */
function compared({ poll = {}, state, answers = {}, pictures = [], ...config } = {}) {
  const [asked, states, cancelled] = [[], [], []];
  let heard = () => {};
  const model = {
    get: (name) =>
      ({ _first: { config: { ...FIRST.config, ...config }, poll: { ...FIRST.poll, ...poll } }, _pictures: pictures, _state: state })[name],
    on: (_, callback) => (heard = callback),
    off: () => {},
    send: (content) => {
      if (content.k === "tvz:state") states.push(content.state);
      if (content.k === "tvz:cancel") cancelled.push(content.id);
      if (content.k !== "tvz:req") return;
      asked.push([content.name, content.msg]);
      const answer = answers[content.name];
      if (answer) setTimeout(() => heard({ k: "tvz:res", id: content.id, ...(answer.err ? answer : { r: answer }) }, pictures));
    },
  };
  const end = new AbortController();
  const place = placed();
  const view = new CompareView(model, place, end.signal);
  ends.push(() => (end.abort(), place.remove()));
  const all = (selector) => [...view.root.querySelectorAll(selector)];
  const button = (text) => all("button").find((one) => one.textContent.startsWith(text));
  return { view, asked, states, cancelled, all, button, list: view.list, status: () => view.statusText };
}

test("at rest a comparison says what came out, and offers what can be done", () => {
  const { view, button, status, all } = compared();
  assert.deepEqual(
    ["1 record × 2 chains", "1 record × 2 chains", false],
    [status().textContent, status().title, status().classList.contains("tvz-busy")],
  );
  assert.deepEqual(
    [true, false, true, "true", "false", "false", "false"],
    [button("overlays").hidden, button("new seeds").hidden, view.sliders.root.hidden].concat(
      ["overlays", "sliders", "last step only", "fastest first"].map((text) => button(text).getAttribute("aria-pressed")),
    ),
  );
  assert.deepEqual(
    [
      ["run also as …", false],
      ["Ray Data: in workers", false],
      ["tf.data", false],
    ],
    [...view.runnerSelect.options].map((one) => [one.textContent, one.disabled]),
  );
  assert.deepEqual([{ column: 0, step: 1 }, { record: 0, column: 1, step: 1 }, null], [view.a, view.at, view.b], "where two chains lead");
  assert.deepEqual(
    [false, "120px", "120"],
    [view.root.classList.contains("tvz-many"), view.root.style.getPropertyValue("--tile"), view.pxSelect.value],
  );
  assert.deepEqual(
    [["88", "120", "144"], 0, 0],
    [[...view.pxSelect.options].map((one) => one.value), view.list.tabIndex, view.heads.parentElement.tabIndex],
  );
  const marked = () =>
    ["[aria-selected=true]", ".tvz-a", ".tvz-b"].map((kind) =>
      all(kind)
        .map((one) => one.id.split("-")[2])
        .join(),
    );
  assert.deepEqual(["0:1:1", "0:0:1", "0:1:1"], marked());
  view.pin("a");
  assert.deepEqual(["0:1:1", "0:1:1", ""], marked());
  const tf = { ...COLUMNS[1], name: "b" };
  const more = compared({ poll: { columns: [...FIRST.poll.columns, tf], running: true }, runners: [] });
  assert.ok(more.view.runnerSelect.hidden && more.status().classList.contains("tvz-busy"));
  assert.ok([...compared({ poll: { columns: [...FIRST.poll.columns, tf] } }).view.runnerSelect.options][2].disabled, "it is there already");
  const none = compared({ poll: { columns: [COLUMNS[0]], strips: [FIRST.poll.strips[0]] } });
  assert.deepEqual(
    [true, { column: 0, step: -1 }],
    [none.button("new seeds").hidden, none.view.a],
    "one chain stands against its original",
  );
});

test("on less than 860 pixels a comparison is narrow", async () => {
  for (const [width, narrow] of [
    [859, true],
    [860, false],
  ]) {
    const { view } = compared();
    let drawn = 0;
    view.stage.draw = () => (drawn += 1);
    Object.defineProperty(view.root, "clientWidth", { value: width });
    await until(() => drawn);
    assert.equal(narrow, view.root.classList.contains("tvz-narrow"));
  }
});

test("a page begins where two chains lead, once both are there; it waits for them, and with one chain stays at its first step", () => {
  const { strips, columns } = FIRST.poll;
  const begun = (poll) => {
    const { view } = compared({ poll });
    return [view.fresh, view.a, view.at];
  };
  assert.deepEqual([false, { column: 0, step: 1 }, { record: 0, column: 1, step: 1 }], begun({}));
  const [whole, short] = [strips[0].tiles, strips[0].tiles.slice(1)];
  const long = (...lengths) => ({ strips: strips.map((strip, at) => ({ ...strip, tiles: lengths[at] })) });
  assert.deepEqual([false, { column: 0, step: 1 }, { record: 0, column: 1, step: 0 }], begun(long(whole, short)));
  assert.deepEqual([false, { column: 0, step: 0 }, { record: 0, column: 1, step: 1 }], begun(long(short, whole)));
  const waits = [true, { column: 0, step: -1 }, { record: 0, column: 0, step: 0 }];
  assert.deepEqual(
    [waits, waits, waits],
    [{ strips: [strips[0]] }, { strips: [strips[1]] }, { columns: [columns[0]], strips: [strips[0]] }].map(begun),
  );
});

test("of more than six chains only the last steps are shown at first", () => {
  const columns = (count) => Array.from({ length: count }, (_, at) => ({ ...COLUMNS[0], name: `c${at}` }));
  const last = (count, state) => {
    const { view } = compared({ poll: { columns: columns(count), strips: [] }, state });
    return [view.last, view.root.classList.contains("tvz-many")];
  };
  assert.deepEqual(
    [
      [false, false],
      [true, true],
      [false, true],
    ],
    [last(6), last(7), last(7, { last: false })],
  );
});

test("what a page showed is shown again, and what it shows is kept", async () => {
  const state = { at: { record: 0, column: 0, step: 0 }, a: { column: 1, step: 0 }, b: { column: 0, step: -1 }, px: 88, byTime: true };
  const { view, states, list, button } = compared({ state: { ...state, stage: { mode: "wipe", gain: 2, cut: 0.25 } } });
  assert.deepEqual(
    [state.at, state.a, state.b, 88, true, { mode: "wipe", gain: 2, cut: 0.25 }],
    [view.at, view.a, view.b, Number(view.pxSelect.value), view.byTime, view.stage.state()],
  );
  assert.equal("true", button("fastest first").getAttribute("aria-pressed"));
  list.focus();
  await until(() => states.length);
  assert.deepEqual({ ...state, last: false, stage: { mode: "wipe", gain: 2, cut: 0.25 }, focused: true }, states.at(-1));
  view.lost = true;
  view.remember();
  assert.equal(1, states.length);
});

test("steps that came out alike share a picture; the stage is shown anew when a strip of its record has come", () => {
  const pictured = { ...TILE, ...WORDS, text: "", buffer: 0, over: { width: 1, height: 1, shapes: [], masks: [{ buffer: 0 }] } };
  const strips = FIRST.poll.strips.map((strip) => ({ ...strip, tiles: [pictured, pictured] }));
  const { view, all } = compared({ poll: { strips }, pictures: [Uint8Array.of(0x89, 0x50, 0x4e, 0x47, ...new Array(20).fill(0))] });
  const shown = all(".tvz-ctile img").map((one) => one.src);
  assert.deepEqual([4, 1, "blob:"], [shown.length, new Set(shown).size, shown[0].slice(0, 5)]);
  assert.equal(shown[0], view.blobs.get([...view.blobs.items.keys()][0]), "none was let go");
  assert.deepEqual([shown[0], undefined], [view.maskOf(view.strips.get("0:1").tiles[0]), view.maskOf(view.originals[0])]);
  let times = 0;
  view.stage.set = () => (times += 1);
  for (const record of [1, 0]) {
    view.take({ ...FIRST.poll, records: undefined, strips: [{ ...FIRST.poll.strips[0], record }] }, []);
    assert.equal(1 - record, times);
  }
});

test("the cursor and the pins stay on their chains, wherever those are listed; one that is gone gives way to the first", () => {
  const { view } = compared();
  const [a, b] = view.columns;
  const listed = (...columns) => {
    view.take({ ...FIRST.poll, records: undefined, strips: [], columns }, []);
    return [view.at.column, view.a.column, view.strips.size];
  };
  assert.deepEqual([1, 0, 2], listed(a, b), "nothing has moved");
  assert.deepEqual([2, 0, 0], listed(a, { ...a, runner: "tf.data" }, b), "all strips are told anew");
  assert.deepEqual([1, 2, 0], listed({ ...a, runner: "tf.data" }, b, a));
  assert.deepEqual([0, 1, 0], listed(b, a));
  assert.deepEqual([0, 0, 0], listed(a));
});

test("a pin is let go by its own key, records are walked and asked for, the last step is stood on where only those show", async () => {
  const { view, list, asked } = compared({ answers: ANSWERS });
  const here = { column: 1, step: 1 };
  const pins = (key) => (press(list, key), [view.a, view.b]);
  assert.deepEqual(
    [
      [here, null],
      [{ column: 0, step: -1 }, null],
      [{ column: 0, step: -1 }, here],
      [{ column: 0, step: -1 }, null],
    ],
    ["a", "a", "b", "b"].map(pins),
  );
  press(list, "p");
  assert.equal(0, view.at.record);
  view.at.record = 1;
  press(list, "p");
  assert.equal(0, view.at.record);
  press(list, "n");
  await until(() => asked.some(([name]) => name === "more"));
  const steps = [-1, 0].map((step) => {
    view.select({ record: 0, column: 1, step });
    return ["l", "l"].map((key) => (press(list, key), view.at.step));
  });
  assert.deepEqual(
    [
      [-1, -1],
      [1, 1],
    ],
    steps,
  );
  view.last = true;
  view.select({ record: 0, column: 1, step: 0 });
  press(list, "l");
  assert.equal(0, view.at.step);
  view.strips.get("0:1").tiles.pop();
  press(list, "l");
  assert.equal(0, view.at.step, "of one step it is the first");
});

test("the stage has the whole picture of a step, where it is one", async () => {
  const answers = { ...ANSWERS, step: { picture: true } };
  const { view } = compared({ answers, pictures: [new Uint8Array(24)] });
  const { size, type } = await view.full(view.at);
  assert.deepEqual([24, "image/png"], [size, type]);
  answers.step = { picture: false };
  assert.equal(undefined, await view.full(view.at));
});

test("a kernel that is gone is told once, and the page rests", async () => {
  const err = { type: "NoKernel", msg: "It is gone.", hint: "Run the cell.", code: "no-kernel" };
  const { view, asked, status } = compared({ poll: { running: true }, answers: { ...ANSWERS, poll: { err } } });
  await until(() => view.lost);
  assert.deepEqual(
    ["It is gone. Run the cell. The thumbnails that were there stay.", false, false],
    [status().textContent, status().classList.contains("tvz-busy"), view.running],
  );
  assert.equal(1, asked.filter(([name]) => name === "poll").length);
  const other = compared({
    poll: { running: true, strips: FIRST.poll.strips.slice(1) },
    answers: { ...ANSWERS, poll: { err: { ...err, code: "E_X" } } },
  });
  await until(() => other.status().textContent === "It is gone. Run the cell.");
  assert.ok(!other.view.lost);
  assert.deepEqual(
    ["did not come"],
    other.all(".tvz-strip-tiles p").map((one) => one.textContent),
    "what was still to come",
  );
  other.view.tell();
  assert.equal("It is gone. Run the cell.", other.status().textContent, "it stays said");
  assert.deepEqual([], other.all(".tvz-busy"));
});

test("the page follows what runs, by one question at a time", async () => {
  const answers = { ...ANSWERS, poll: { ...FIRST.poll, records: undefined, strips: [], version: 2, running: true } };
  const { view, asked } = compared({ poll: { running: true }, answers });
  const polls = () => asked.filter(([name]) => name === "poll");
  view.loop();
  await until(() => polls().length === 1);
  assert.deepEqual(["poll", { since: 1 }], polls()[0]);
  await until(() => polls().length === 2);
  assert.deepEqual(["poll", { since: 2 }], polls()[1]);
  answers.poll = { ...answers.poll, version: 3, running: false };
  await until(() => !view.running && !view.looping);
  const { length } = polls();
  await new Promise((go) => setTimeout(go, 150));
  assert.equal(length, polls().length);
});

test("keys are used or left to the browser; those of a slider, a chooser and a button are their own", async () => {
  const { view, list, asked, cancelled, all, button } = compared({ answers: { reroll: { columns: [] } } });
  for (const key of ["ArrowLeft", "a", "b", "w", "o", "t", "l", "s", "y", "?"]) {
    assert.ok(press(list, key), key);
    if (key === "?") assert.ok(press(list, "?") && !view.keys.sheet.shown);
  }
  assert.ok(!press(list, "z"));
  assert.deepEqual([false, true, true, true], [view.layers.shown, view.byTime, view.last, view.sliders.shown]);
  assert.deepEqual(
    ["false", "true", "true", "true"],
    ["overlays", "fastest first", "last step only", "sliders"].map((text) => button(text).getAttribute("aria-pressed")),
  );
  view.select({ record: 0, column: 0, step: 1 });
  const [slider] = all(".tvz-sliders input");
  const before = { ...view.at };
  assert.deepEqual(
    [false, false, false],
    ["ArrowLeft", "Home", "PageUp"].map((key) => press(slider, key)),
  );
  assert.ok(!press(view.pxSelect, "w") && !press(button("sliders"), "Enter") && !press(button("sliders"), " "));
  assert.deepEqual(before, view.at);
  const { mode } = view.stage;
  press(list, "?");
  assert.ok(!press(list, "x"));
  press(list, "Escape");
  assert.equal(mode, view.stage.mode);
  assert.ok(press(list, "Escape"));
  view.stage.mode = "wipe";
  assert.ok(press(view.stage.frame, "ArrowRight"));
  press(list, "ArrowLeft");
  assert.equal(0.52, view.stage.cut, "over the tiles the arrows are theirs");
  view.stage.view.zoom = 3;
  assert.ok(press(view.stage.frame, "0"));
  view.stage.mode = "difference";
  assert.deepEqual([1, 16, 32, 16], [view.stage.view.zoom, ...["=", "+", "-"].map((key) => (press(list, key), view.stage.gain))]);
  assert.deepEqual([], cancelled);
  assert.ok(asked.filter(([name]) => name === "step").length >= 2, "pictures of both steps are on their way together");
});
