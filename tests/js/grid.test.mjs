// The grid of tiles by itself, at many sizes: where tiles lie, which are drawn, how it scrolls, how its pictures grow.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Empty } from "../../tarviz/widgets/browse/page/empty.mjs";
import { Grid, missing } from "../../tarviz/widgets/browse/page/grid.mjs";
import { Rows } from "../../tarviz/widgets/browse/page/rows.mjs";
import { Look } from "../../tarviz/widgets/browse/page/state.mjs";
import { h, MAX_SCROLL } from "../../tarviz/widgets/host/core.mjs";
import { Layers } from "../../tarviz/widgets/panes/overlay.mjs";
import { placed, test } from "./dom.mjs";

const [GAP, CAPTION, SPREAD] = [8, 36, 24];
const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** A grid on as many pixels; `rows` are known by their items. */
function gridOf({ width = 1000, height = 600, px = 160, count = 500, model = {}, common = "" } = {}) {
  const end = new AbortController();
  const rows = { items: new Map(), blobs: new Map(), fetched: 0, fetch: () => (rows.fetched += 1), clear: () => rows.items.clear() };
  const around = {
    ...{ model, signal: end.signal, rows, layers: {}, look: { px }, scan: { common }, marks: new Set() },
    records: { count, query: 1, at: 0, selected: 0, words: [] },
    table: { shown: false, draw() {}, visibleRange: (margin) => ({ first: margin, stop: margin + 1 }) },
    empty: { root: h("p", {}), tell: () => !around.records.count },
  };
  const grid = new Grid(around);
  for (const [name, value] of Object.entries({ clientWidth: width, clientHeight: height }))
    Object.defineProperty(grid.root, name, { value, configurable: true });
  const place = placed(grid.root);
  ends.push(() => (end.abort(), place.remove()));
  const scroll = (to) => {
    grid.root.scrollTop = to;
    grid.scrolled();
    grid.drawNow();
  };
  return { grid, around, rows, end, scroll, tiles: () => placesOf(grid) };
}

/** Where tiles lie in view, by position. */
const placesOf = ({ root }) =>
  [...root.querySelectorAll(".tvz-tile")]
    .map((tile) => {
      const [x, y] = tile.style.transform.match(/-?[\d.e-]+(?=px)/g).map(Number);
      return { at: Number(tile.dataset.position), x, y: y - root.scrollTop, tile };
    })
    .sort((a, b) => a.at - b.at);
const near = (wanted, found, text) => assert.ok(Math.abs(wanted - found) < 1e-6, `${text}: ${found}, not ${wanted}`);
const item = (more = {}) => ({ id: "r", key: "a/k", fields: ["png"], label: "", tile: { ext: "png", text: "" }, ...more });

test("tiles lie evenly within any width, in as many columns as fit, two where a tile is not too small then", () => {
  for (const width of [10, 76, 216, 223, 300, 363, 559, 1000])
    for (const px of [96, 160, 256]) {
      const { grid, tiles } = gridOf({ width, px, height: 100, count: 21 });
      grid.drawNow();
      const { columns, rowHeight } = grid.layout;
      const [first, ...others] = tiles();
      const room = Math.max(60, width - 2 * GAP);
      const text = `${width} pixels for tiles of ${px}`;
      assert.equal(Math.min(px, room, Math.max(96, Math.floor((room - GAP) / 2))), grid.tile, text);
      assert.equal(Math.max(1, Math.floor((room + GAP) / (grid.tile + GAP))), columns, text);
      assert.equal(grid.tile + CAPTION + GAP, rowHeight);
      assert.deepEqual([0, GAP], [first.at, first.y]);
      assert.deepEqual([`${grid.tile}px`, `${grid.tile}px`], [first.tile.style.width, first.tile.firstChild.style.height]);
      const step = columns > 1 ? others[0].x - first.x : 0;
      for (const { at, x, y } of others) {
        near(first.x + (at % columns) * step, x, text);
        near(GAP + Math.floor(at / columns) * rowHeight, y, text);
      }
      if (width < 76) continue;
      const left = first.x - GAP;
      near(left, room + GAP - (first.x + (columns - 1) * step + grid.tile), `${text}: as much on the right`);
      if (columns > 1) {
        assert.ok(step >= grid.tile + GAP && step <= grid.tile + GAP + SPREAD, text);
        assert.ok(left > -1e-6 && (left < 1e-6 || step === grid.tile + GAP + SPREAD), `${text}: between tiles first`);
      }
    }
});

test("what fits in one row lies at the left, more is spread", () => {
  const { grid, tiles } = gridOf({ count: 3 });
  grid.drawNow();

  assert.deepEqual(
    [0, 1, 2].map((at) => GAP + at * 168),
    tiles().map(({ x }) => x),
  );
  const two = gridOf({ count: 6 });
  two.grid.drawNow();
  assert.deepEqual([36, 36 + 192], [two.tiles()[0].x, two.tiles()[1].x], "two rows are spread");
});

test("rows in view and one more on both sides are drawn, wherever it is scrolled to", () => {
  const { grid, tiles, scroll, rows } = gridOf({ count: 503, height: 200 });
  grid.drawNow();
  const { columns, rowHeight, height } = grid.layout;
  for (const top of [0, 500, 500 - rowHeight, 1997, 4003, height - 200]) {
    const before = rows.fetched;
    scroll(top);
    const [first, last] = [Math.floor(top / rowHeight) - 1, Math.floor((top + 199) / rowHeight) + 1];
    const wanted = { first: Math.max(0, first) * columns, stop: Math.min(503, (last + 1) * columns) };
    assert.deepEqual(
      Array.from({ length: wanted.stop - wanted.first }, (_, at) => wanted.first + at),
      tiles().map(({ at }) => at),
    );
    near(GAP + Math.floor(wanted.first / columns) * rowHeight - top, tiles()[0].y, `at ${top}`);
    assert.equal(before + 1, rows.fetched);
    assert.equal(Math.round(top / rowHeight) * columns, grid.firstVisible());
  }
});

test("a position comes into view with the least scrolling, one that is in view moves nothing", () => {
  const { grid, around } = gridOf();
  const { columns, rowHeight, height } = grid.measure();
  for (const from of [0, 300, 2000, height - 600])
    for (let position = 0; position < 500; position += 3) {
      grid.setTop(from);
      const before = grid.top;
      grid.reveal(position);
      const y = Math.floor(position / columns) * rowHeight;
      const bottom = y + rowHeight + GAP;
      const wanted = y < before ? y : bottom > before + 600 ? bottom - 600 : before;
      assert.deepEqual([wanted, wanted], [grid.top, grid.root.scrollTop], `${position} from ${from}`);
    }
  grid.scrollTo(columns * 4 + 1);
  assert.equal(4 * rowHeight, grid.top);
  grid.scrollTo(499);
  assert.equal(height - 600, grid.top, "no further than to the end");
  grid.setTop(-5);
  assert.equal(0, grid.top);
  around.table.shown = true;
  assert.deepEqual({ first: 2, stop: 3 }, grid.visibleRange(2));
});

test("a grid without a layout or a height has a top all the same", () => {
  const { grid } = gridOf({ height: 0 });
  assert.equal(0, grid.firstVisible());
  assert.equal(300, grid.viewHeight());
});

test("where the scroll bar is too short for all rows, wheels move by pixels, the bar by shares, and its ends are those of the rows", () => {
  const { grid, scroll, tiles } = gridOf({ count: 10_000_000, width: 360 });
  const { height, scrollHeight, rowHeight } = grid.measure();
  assert.ok(height > MAX_SCROLL && scrollHeight === MAX_SCROLL);
  const share = (height - 600) / (scrollHeight - 600);
  scroll(100);
  near(100, grid.top, "the first step");
  scroll(4_000_000);
  near(4_000_000 * share, grid.top, "far");
  const before = grid.top;
  for (const [to, top] of [
    [4_000_100, before + 100],
    [4_001_299, before + 1299],
    [4_000_100, before + 100],
    [4_001_300, 4_001_300 * share],
    [scrollHeight - 600, height - 600],
    [scrollHeight - 601, height - 601],
    [scrollHeight - 600.5, (scrollHeight - 600.5) * share],
    [0, 0],
    [1, 1],
    [0.5, 0.5 * share],
  ]) {
    scroll(to);
    near(top, grid.top, `to ${to}`);
  }
  scroll(4_000_000);
  assert.ok(
    tiles().every(({ y }) => y > -2 * rowHeight && y < 600 + 2 * rowHeight),
    "they lie where the view is",
  );
});

test("a place that the grid itself has scrolled to keeps its exact pixel", () => {
  const { grid, scroll } = gridOf({ count: 10_000_000 });
  grid.setTop(123_456_789);
  const at = Math.round(grid.root.scrollTop);
  scroll(at + 1);
  assert.equal(123_456_789, grid.top, "the browser's rounding");
  scroll(at + 2);
  assert.equal(123_456_790, grid.top, "the reader's");
  grid.setTop(123_456_789);
  scroll(Math.round(grid.root.scrollTop) - 2);
  assert.ok(Math.abs(grid.top - 123_456_789) > 1);
  const short = gridOf().grid;
  const bars = [100, 100.5, 101].map((top) => (short.setTop(top), short.root.scrollTop));
  assert.deepEqual([100, 100, 101], bars, "less than a pixel moves no bar");
});

test("tiles stay the same elements until something of theirs is another", () => {
  const { grid, around, rows, tiles } = gridOf();
  const first = () => tiles()[0].tile;
  const drawn = () => (grid.drawNow(), first());
  const waiting = drawn();
  assert.deepEqual([true, "record 0, loading"], [waiting.classList.contains("tvz-waiting"), waiting.getAttribute("aria-label")]);
  assert.equal(waiting, drawn());
  let before = waiting;
  for (const more of [{}, { id: "s" }, { picture: "p" }, { image: "i" }, { labelled: "l" }]) {
    rows.items.set(0, item(more));
    assert.notEqual(before, drawn(), JSON.stringify(more));
    assert.equal((before = first()), drawn());
  }
  around.records.query = 2;
  assert.notEqual(before, drawn());
  assert.equal((before = first()), drawn());
  grid.setTop(700);
  grid.forget();
  assert.equal(0, tiles().length);
  assert.deepEqual([0, 0, 0, 0, undefined], [rows.items.size, rows.blobs.size, grid.top, grid.root.scrollTop, grid.layout]);
});

test("the chosen and the marked are told, and what the cursor is on", () => {
  const { grid, around, rows, tiles } = gridOf({ count: 4 });
  [0, 1, 2].forEach((at) => rows.items.set(at, item({ id: `r${at}` })));
  around.marks.add("r1");
  around.records.at = 2;
  const states = () => (
    grid.drawNow(),
    [
      tiles().findIndex(({ tile }) => tile.getAttribute("aria-selected") === "true"),
      tiles().findIndex(({ tile }) => tile.classList.contains("tvz-marked")),
      tiles().findIndex(({ tile }) => tile.id === grid.root.getAttribute("aria-activedescendant")),
      grid.root.getAttribute("role"),
    ]
  );
  assert.deepEqual([2, 1, 2, "listbox"], states());
  around.records.selected = -1;
  assert.deepEqual([-1, 1, 2, "listbox"], states());
  around.records.at = 3;
  around.marks.clear();
  assert.deepEqual([-1, -1, 3, "listbox"], states());
  [around.records.count, grid.layout] = [0, undefined];
  assert.deepEqual([-1, -1, -1, "region"], states());
  assert.ok(!grid.root.hasAttribute("aria-activedescendant"));
});

test("a picture smaller than its tile grows by whole pixels, from twice its size on; one that fills it is left alone", () => {
  const { grid, rows, tiles } = gridOf({ count: 1 });
  rows.blobs.set("p", "data:,");
  rows.items.set(0, item({ picture: "p" }));
  grid.drawNow();
  const [{ tile }] = tiles();
  const picture = tile.querySelector("img");
  assert.deepEqual([false, "0"], [picture.draggable, grid.root.getAttribute("tabindex") ?? String(grid.root.tabIndex)]);
  for (const side of [1, 7, 53, 54, 79, 80, 81, 159, 160, 161])
    for (const [width, height] of [
      [side, Math.ceil(side / 3)],
      [Math.ceil(side / 3), side],
    ]) {
      picture.className = picture.style = "";
      Object.defineProperty(picture, "naturalWidth", { value: width, configurable: true });
      Object.defineProperty(picture, "naturalHeight", { value: height, configurable: true });
      picture.onload();
      const times = side <= 80 ? Math.floor(160 / side) : 160 / side;
      const grown = side < 160;
      assert.equal(grown ? (side <= 80 ? "tvz-pixels" : "tvz-grown") : "", picture.className, `${width} × ${height}`);
      for (const [name, natural] of Object.entries({ width, height }))
        if (grown) near(times * natural, parseFloat(picture.style[name]), `${name} of ${width} × ${height}`);
        else assert.equal("", picture.style[name]);
    }
});

test("boxes and masks lie over the middle of a tile, as large as its picture, and anew where they are switched", () => {
  const { grid, around, rows, tiles } = gridOf({ count: 3 });
  const over = (masks) => ({ width: 40, height: 20, shapes: [["box", [1, 2, 10, 8], "cat", 1]], masks });
  around.layers = new Layers({ cat: "#ff0000" }, () => {});
  ["p", "p-mask", "q", "q-mask"].forEach((name) => rows.blobs.set(name, URL.createObjectURL(new Blob([name]))));
  rows.items.set(0, item({ picture: "p", tile: { over: over([]) } }));
  rows.items.set(1, item({ picture: "q", tile: { over: over([{ ext: "seg.png" }]) } }));
  rows.items.set(2, item());
  grid.drawNow();
  const [whole, masked] = tiles().map(({ tile }) => tile.querySelector("img"));
  for (const picture of [whole, masked]) {
    Object.defineProperty(picture, "clientWidth", { value: 120 });
    Object.defineProperty(picture, "clientHeight", { value: 60 });
    picture.onload();
  }
  const canvas = (picture) => picture.parentElement.querySelectorAll("canvas");
  const [first] = canvas(whole);
  assert.deepEqual(
    ["120px", "60px", "20px", "50px"],
    ["width", "height", "left", "top"].map((name) => first.style[name]),
  );
  assert.deepEqual(
    [true, undefined],
    [first, canvas(masked)[0]].map(({ pen }) => pen && true),
    "a mask is waited for",
  );
  grid.relayer();
  assert.deepEqual(
    [1, 1],
    [whole, masked].map((picture) => canvas(picture).length),
  );
  assert.notEqual(first, canvas(whole)[0]);
  rows.items.delete(0);
  grid.relayer();
  whole.remove();
  whole.onload();
  assert.equal(0, grid.root.querySelectorAll("canvas").length - 2, "of a picture that is gone nothing is drawn");
});

test("a tile says its key, its label, why it cannot be shown, and which fields are not as usual", () => {
  const said = (more) => {
    const { grid, rows, tiles } = gridOf({ count: 1, common: "png cls" });
    rows.items.set(0, item({ fields: ["png", "cls"], ...more }));
    grid.drawNow();
    const [{ tile }] = tiles();
    return [
      tile.getAttribute("aria-label"),
      ...[".tvz-snippet", ".tvz-label", ".tvz-badge"].map((one) => tile.querySelector(one)?.textContent),
    ];
  };
  assert.deepEqual(["k", "", undefined, undefined], said({}));
  assert.deepEqual(["k", "", undefined, undefined], said({ picture: "not there yet" }));
  assert.deepEqual(["k, cat", "no fields", "cat", undefined], said({ label: "cat", fields: [] }));
  assert.deepEqual(["k", "a text", undefined, "−cls +json"], said({ fields: ["png", "json"], tile: { text: "a text" } }));
  assert.deepEqual(["k", "", undefined, "may be cut"], said({ pending: true }));
  assert.deepEqual(["k, cannot be shown: too large", undefined, undefined, undefined], said({ tile: { reason: "too large" } }));
});

test("fields beyond the usual are told short, those of another kind of record not at all", () => {
  assert.deepEqual(
    ["", "−b", "+c", "−b +c", ""],
    ["a b", "a", "a b c", "a c", "c d"].map((found) => missing("a b", found.split(" "))),
  );
  assert.deepEqual(
    ["+eighteen_letters_", "+nineteen_letters…"],
    ["eighteen_letters_", "nineteen_letters__"].map((more) => missing("a", ["a", more])),
  );
});

test("film and sound have an address to play from, where there is a server", () => {
  const { grid, rows } = gridOf({ model: { media: (path) => `/media/${path}` } });
  rows.items.set(0, item({ id: "1/2", tile: { ext: "a b.mp4", text: "" } }));
  rows.items.set(1, item());

  assert.deepEqual(
    [{ kind: "video", url: "/media/1/2/a%20b.mp4" }, undefined, undefined],
    [0, 1, 2].map((at) => grid.playable(at)),
  );
});

test("it is drawn once for all that has changed, and no more when the page has ended", async () => {
  const { grid, rows, end } = gridOf();
  const frame = () => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
  grid.draw();
  grid.draw();
  await frame();
  assert.equal(1, rows.fetched);
  grid.draw();
  await frame();
  assert.equal(2, rows.fetched);
  grid.draw();
  end.abort();
  await frame();
  assert.equal(2, rows.fetched);
});

const turns = () => new Promise(setImmediate);

/** Rows of a page that shows these positions, and those of `wide` with its rims; `answers` end the requests, the first first. */
function rowsOf({ view = [0, 3], wide = [0, 100], rims = wide, ...more } = {}) {
  const end = new AbortController();
  ends.push(() => end.abort());
  const [asked, answers, told] = [[], [], []];
  const say = (name) => (value) => void told.push(value === undefined ? name : `${name} ${value}`);
  const around = {
    ...{ signal: end.signal, layers: { colours: {} }, records: { query: 5, ordered: true }, scan: { lost: false } },
    look: { px: 96, image: "", label: "", labelKnown: true, labelChosen: false },
    visible: (margin) => (([first, stop]) => ({ first, stop }))([view, wide, rims][Math.min(margin, 2)]),
    rpc: (name, msg) => (
      asked.push([msg.start, msg.stop]),
      new Promise((found) => answers.push((r, buffers = []) => found({ r, buffers })))
    ),
    ...{ searches: { renew: say("renew") }, status: { trouble: (error) => say("trouble")(error.message) } },
    ...{ labelled: () => say("labelled")(around.look.label), came: say("came"), rested: say("rested"), ...more },
  };
  const rows = new Rows(around);
  const of = (start, count, more = {}) => ({
    start,
    rows: Array.from({ length: count }, (_, at) => ({ id: start + at, tile: {} })),
    px: 96,
    ordered: true,
    label: "cls",
    ...more,
  });
  return { rows, around, asked, told: () => told.splice(0), answers, of };
}

test("rows in view are fetched first, 36 at once, never twice, two requests under way at most", async () => {
  const { rows, asked, answers, of, told } = rowsOf({ view: [40, 43], rims: [0, 200] });
  rows.fetch();
  rows.fetch();
  rows.fetch();
  assert.deepEqual(
    [
      [40, 76],
      [0, 36],
    ],
    asked.splice(0),
  );
  answers[0](of(40, 36));
  await turns();
  assert.deepEqual([["came", "rested", "came"], 36, [40, 75]], [told(), rows.items.size, [rows.items.get(40).id, rows.items.get(75).id]]);
  rows.fetch();
  assert.deepEqual([[36, 40]], asked.splice(0), "up to those that are there");
  answers[1](of(0, 36));
  await turns();
  rows.fetch();
  assert.deepEqual([[76, 100]], asked.splice(0), "up to the rim");
  answers[2](of(36, 4));
  await turns();
  rows.fetch();
  assert.deepEqual([[], 1], [asked, rows.asked.size], "what is under way is waited for");
  const beside = rowsOf({ wide: [0, 20] });
  beside.rows.asked.add("10-15");
  beside.rows.fetch();
  assert.deepEqual([[0, 10]], beside.asked, "up to those that are asked for");
  beside.around.scan.lost = true;
  beside.rows.clear();
  beside.rows.fetch();
  assert.equal(1, beside.asked.length);
});

test("an answer is taken where it is of what shows; the label it names is the page's, where it names one", async () => {
  const taken = async (answer, change = {}, look = {}) => {
    const { rows, around, answers, of, told } = rowsOf();
    Object.assign(around.look, { labelKnown: false, ...look });
    rows.fetch();
    Object.assign(around.records, change.records);
    Object.assign(around.look, change.look);
    answers[0](of(0, answer.count ?? 36, answer));
    await turns();
    return [
      rows.items.size,
      around.look.label,
      told()
        .filter((name) => name !== "came" && name !== "rested")
        .join(),
    ];
  };
  assert.deepEqual([36, "cls", "labelled cls"], await taken({}));
  assert.deepEqual([36, "", ""], await taken({ label: null }), "nothing is known yet");
  assert.deepEqual([36, "", "labelled "], await taken({ label: undefined }));
  assert.deepEqual([0, "", ""], await taken({ count: 0 }));
  assert.deepEqual([36, "json.w", ""], await taken({}, {}, { labelKnown: true, label: "json.w" }));
  assert.deepEqual([0, "", "renew"], await taken({ stale: true }));
  assert.deepEqual([0, "", ""], await taken({ stale: true }, { records: { query: 6 } }));
  assert.deepEqual([0, "", ""], await taken({}, { records: { query: 6 } }));
  assert.deepEqual([0, "", ""], await taken({ ordered: false }));
  assert.deepEqual([0, "", ""], await taken({}, { look: { image: "png" } }));
});

test("of more than 6,000 rows those far from the view are let go", () => {
  const kept = (count) => {
    const { rows, of } = rowsOf({ rims: [5, 9] });
    rows.take(of(0, count), []);
    return [rows.items.size, [...rows.items.keys()].slice(0, 4).join()];
  };
  assert.deepEqual(
    [
      [6000, "0,1,2,3"],
      [4, "5,6,7,8"],
    ],
    [6000, 6001].map(kept),
  );
});

/** What stands where no record shows: its lines, those of its table with their class first, and what was asked for. */
async function nothing({ found = [], names = [], query, ...more } = {}) {
  const asked = [];
  const around = {
    ...{
      config: { title: "t" },
      records: { count: 0, query: 1, done: true, failed: "", plain: () => more.plain ?? false, ...more.records },
    },
    ...{ scan: { exact: true, total: 9, lost: false, ...more.scan }, searches: { showAll: () => asked.push("all") } },
    status: { trouble: (error) => asked.push(error.message) },
    rpc: async (name) => {
      asked.push(name);
      if (name === more.wrong) throw new Error(`no ${name}`);
      if (name === query) around.records.query += 1;
      return { r: name === "why" ? { reasons: found } : { columns: names } };
    },
    ...more.around,
  };
  const empty = new Empty(around);
  const said = [empty.tell(), empty.tell()];
  for (let turn = 0; turn < 4; turn += 1) await turns();
  const rows = [...empty.root.querySelectorAll("tr")].map((row) =>
    [row.className, ...row.children].map((cell) => cell.textContent ?? cell),
  );
  return {
    said,
    empty,
    rows,
    asked,
    around,
    text: empty.root.hidden ? "" : empty.root.firstChild.textContent,
    names: empty.root.querySelector(".tvz-mono:not(td)")?.textContent,
  };
}

test("where nothing shows it is told why, once, as soon as that is known", async () => {
  const text = async (more) => (({ text: line, asked }) => [line, asked.join()])(await nothing(more));
  assert.deepEqual(["", ""], await text({ plain: true, scan: { exact: false } }));
  assert.deepEqual(["", ""], await text({ records: { done: false } }));
  assert.deepEqual(["", ""], await text({ records: { count: 1 } }));
  assert.deepEqual(["There are no records in here.", ""], await text({ plain: true, records: { done: false } }));
  assert.deepEqual(["No record fits. ", "why,columns"], await text({ scan: { exact: false } }));
  assert.deepEqual(["No record fits. ", ""], await text({ scan: { lost: true } }));
  assert.deepEqual(["There are no records in here.", ""], await text({ scan: { total: 0 } }), "whatever their order");
  assert.deepEqual(
    ["This cannot be asked: the line below says why. ", "why,columns"],
    await text({ records: { failed: "no column" }, wrong: "why" }),
  );
  assert.deepEqual(["No record fits. ", "why,columns,no columns"], await text({ wrong: "columns" }));
  const faults = (code) => ({
    plain: true,
    scan: {
      summary: {
        faults: [
          { code, message: "cut" },
          { code: "E_B", message: "b" },
        ],
      },
    },
  });
  assert.equal("No records can be shown. E_CUT: cut", (await text(faults("E_CUT")))[0]);
  assert.equal("There are no records in here.", (await text(faults("W_CUT")))[0]);
  assert.equal("There are no records in here.", (await text({ plain: true, scan: { summary: { faults: [] } } }))[0]);
  assert.match((await text({ plain: true, around: { config: { title: "" } } }))[0], /^Nothing is open yet/);
  const { empty, around, asked, said } = await nothing();
  assert.deepEqual([true, true], said);
  around.records.query += 1;
  empty.tell();
  await turns();
  assert.deepEqual(["why", "columns", "why", "columns"], asked, "of another search anew");
  empty.root.querySelector("button").click();
  assert.equal("all", asked.at(-1));
  around.records.count = 1;
  assert.deepEqual([false, true], [empty.tell(), empty.root.hidden]);
});

test("each condition of a search that finds nothing says what it does; 24 columns are named", async () => {
  const found = [
    ["a", 3, 4, ""],
    ["b", 3, 0, ""],
    ["c", 0, 4, ""],
    ["d", 0, 4, "holds 1 … 2"],
  ];
  const names = Array.from({ length: 25 }, (_, at) => `n${at}`);
  const all = await nothing({ found, names });
  assert.deepEqual(
    [
      ["", "a", "", "alone 3; without it 4 would fit"],
      ["", "b", "", "alone 3"],
      ["tvz-bad", "c", "fits none", ""],
      ["tvz-bad", "d", "fits none", "holds 1 … 2"],
    ],
    all.rows,
  );
  assert.equal(names.slice(0, 24).join("  "), all.names);
  for (const query of ["why", "columns"]) {
    const late = await nothing({ found, names, query });
    assert.deepEqual([query === "columns" ? 4 : 0, undefined], [late.rows.length, late.names], "another search runs");
  }
  assert.equal(undefined, (await nothing({ found })).names);
  assert.equal(null, (await nothing({ names })).empty.root.querySelector("table"));
});

test("nobody has chosen a caption at first, whether one came with the first rows or not", () => {
  const look = (label) => ({ ...new Look({ px: 96, image: "jpg" }, label) });
  const own = { px: 96, image: "jpg", labelChosen: false, labelKnown: false };
  assert.deepEqual(
    [
      { ...own, label: "" },
      { ...own, label: "cls" },
    ],
    [look(null), look("cls")],
  );
});
