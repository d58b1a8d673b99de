// The shard browser's page over its real controller: keys, filters, order, marks, tags, what is kept, what is said of a lost server.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { BrowserView } from "../../tarviz/widgets/browse/page/browse.mjs";
import { click, press, put, test, until } from "./dom.mjs";
import { golden } from "./golden.mjs";
import { opened } from "./pages.mjs";

let page;
afterEach(() => {
  page?.end();
  history.replaceState(null, "", "/");
});

/** Keys of the tiles in view, in order. */
const keys = () =>
  page
    .all(".tvz-tile:not(.tvz-waiting)")
    .sort((a, b) => a.dataset.position - b.dataset.position)
    .map((tile) => tile.querySelector(".tvz-key").title);
const shows = (wanted) => until(() => JSON.stringify(keys()) === JSON.stringify(wanted.map(keyOf)));
const keyOf = (number) => `set/n${String(number).padStart(6, "0")}`;
const pane = () => page.find(".tvz-pane h2")?.title;
const status = () => page.find(".tvz-status").textContent;
const shown = (count) => until(() => status().includes(`${count} shown`));

/** The page of three shards of twenty, at rest: all columns counted, the first record in the pane. */
async function browsing(name = "browse") {
  page = await opened(name, BrowserView);
  await until(() => keys().length && pane() && page.view.scan.exact && page.view.facets.settled && !page.view.facets.busy);
  await until(() => page.find(".tvz-facet .tvz-figures"));
  if (page.view.marks.size) press(page.find(".tvz-grid"), "N"); // all pages have the same marks: those of a test that failed
  await until(() => !page.view.marks.size);
  return page;
}

test("all that a page at rest shows", async () => {
  await browsing();
  await until(() => page.find(".tvz-checks button"));

  await golden("browse", page.root);
});

test("other shards are opened from a page of its own that may, at once where it shows none; not from within a notebook", async () => {
  const menu = async (config, more = {}) => {
    const View = class extends BrowserView {
      constructor(model, ...rest) {
        const first = model.get("_first");
        const get = (name) => (name === "_first" ? { ...first, config: { ...first.config, ...config } } : model.get(name));
        super({ ...model, get, ...more }, ...rest);
      }
    };
    page?.end();
    page = await opened("browse", View);
    return page.find(".tvz-opening")?.open;
  };
  assert.deepEqual(
    [false, true, undefined, undefined],
    [await menu({}), await menu({ title: "" }), await menu({ opens: false }), await menu({}, { media: undefined })],
  );
});

test("arrows, letters and far keys move the cursor, and the pane follows", async () => {
  await browsing();
  const { columns, rowHeight } = page.view.grid.measure();
  const rows = Math.floor(600 / rowHeight);

  for (const [key, at] of [
    ["ArrowRight", 1],
    ["l", 2],
    ["h", 1],
    ["j", 1 + columns],
    ["k", 1],
    ["PageDown", 1 + rows * columns],
    ["PageUp", 1],
    ["End", 59],
    ["Home", 0],
    ["ArrowLeft", 0],
  ]) {
    press(page.find(".tvz-grid"), key);
    assert.equal(at, page.view.records.at, key);
  }
  press(page.find(".tvz-grid"), "End");
  await until(() => pane() === keyOf(59));
  assert.ok(page.view.grid.top > 0);
  await until(() => page.find(".tvz-tile[aria-selected=true] .tvz-key")?.title === keyOf(59));
});

test("a filter shows what fits it, a wrong one is marked and not repeated by the next click", async () => {
  await browsing();
  const filter = page.find(".tvz-filter");
  put(filter, "cls = 1 and json.w > 500");
  press(filter, "Enter");
  await shows([52, 55, 58]);
  assert.match(status(), /3 shown/);

  put(filter, "cls >> (");
  press(filter, "Enter");
  await until(() => filter.getAttribute("aria-invalid") === "true");
  put(page.find("[aria-label=order]"), "key");
  await until(() => page.last("search").sort === "key");
  assert.equal("cls = 1 and json.w > 500", page.last("search").where);
  await until(() => !filter.hasAttribute("aria-invalid"));
});

test("a filter that turns out to ask for what is not there is marked, and no answer is made of it", async () => {
  await browsing();
  const filter = page.find(".tvz-filter");
  put(filter, "nothing = 3");
  press(filter, "Enter");
  await until(() => /there is no column nothing/i.test(status()) && !page.find(".tvz-empty").hidden);

  assert.equal("true", filter.getAttribute("aria-invalid"));
  assert.match(page.find(".tvz-empty").textContent, /^This cannot be asked/);
});

test("a column sorts upward, downward, and at the third click no more", async () => {
  await browsing();
  press(page.find(".tvz-grid"), "t");
  const first = () => page.find("[data-position='0'] [role=rowheader]")?.title;
  const head = () => page.all(".tvz-th button").find((one) => one.textContent.startsWith("json.w"));
  await until(() => head() && first() === keyOf(0));
  const turns = [];
  for (const key of [1, 59, 0]) {
    click(head());
    await until(() => first() === keyOf(key));
    turns.push(head().parentElement.getAttribute("aria-sort"));
  }

  assert.deepEqual(["ascending", "descending", "none"], turns);
  assert.deepEqual([page.last("search").sort, page.last("search").descending], ["order", false]);
  click(page.all(".tvz-th button")[0]);
  await until(() => page.last("search").sort === "key");
});

test("the table scrolls as far as the row under the cursor needs, and no further", async () => {
  await browsing();
  press(page.find(".tvz-grid"), "t");
  const { root } = page.view.table;
  await until(() => page.all("[data-position]").length > 10);
  await until(() => root.getAttribute("aria-rowcount") === "61"); // sixty and the head
  const to = (position) => {
    page.view.select(position);
    return root.scrollTop;
  };

  assert.deepEqual([0, 0, 12, 48, 48, 1596, 1596, 1548, 0], [3, 14, 15, 16, 5, 59, 50, 43, 0].map(to));
  to(59);
  await until(() => page.find(".tvz-trow").dataset.position === "40"); // four above the first in view
  const { height, scrollHeight } = page.view.table.layout();
  assert.deepEqual([61 * 36, 61 * 36], [height, scrollHeight], "a head and sixty rows, as high on the screen");
});

test("of two million records the wheel moves by pixels, the bar by its share, and both reach the ends", async () => {
  await browsing();
  const { grid } = page.view;
  page.view.records.count = 2_000_000;
  grid.layout = undefined;
  const { height, scrollHeight } = grid.measure();
  const to = (place) => {
    grid.root.scrollTop = place;
    grid.root.dispatchEvent(new Event("scroll"));
    return grid.top;
  };

  assert.deepEqual([100, 1200, 60], [100, 1200, 60].map(to));
  assert.equal((height - 600) / 2, to((scrollHeight - 600) / 2));
  assert.equal((height - 600) / 2 + 120, to((scrollHeight - 600) / 2 + 120));
  assert.ok(to((scrollHeight - 600) / 4) < height / 4);
  grid.setTop(height - 1234.5);
  assert.equal(height - 1234.5, to(grid.root.scrollTop), "the page's own scrolling is none of the reader's");
  assert.deepEqual([height - 600, 0], [scrollHeight - 600, 0].map(to));
  to(scrollHeight - 700);
  assert.equal(height - 600, to(scrollHeight - 600), "a wheel that takes the bar to its end shows the last row");
});

test("columns of the table are ticked, and widened by their edge", async () => {
  await browsing();
  press(page.find(".tvz-grid"), "t");
  await until(() => page.all(".tvz-th").length > 5);
  const names = () => page.all(".tvz-th .tvz-cut").map((one) => one.textContent);
  const before = names();
  const box = page.all(".tvz-columns-list label").find((one) => one.textContent === "cls");
  box.querySelector("input").checked = false;
  box.querySelector("input").dispatchEvent(new Event("change"));
  await until(() => !names().includes("cls"));
  assert.deepEqual(
    before.filter((name) => name !== "cls"),
    names(),
  );

  const grip = page.find(".tvz-grip");
  click(grip, { clientX: 100 }, "pointerdown");
  click(grip, { clientX: 130 }, "pointermove");
  click(grip, {}, "pointerup");
  click(grip, { clientX: 530 }, "pointermove");
  assert.match(page.find(".tvz-thead").style.gridTemplateColumns, /^40px 200px 116px/);
  page.view.table.resize("key", 47);
  assert.match(page.find(".tvz-thead").style.gridTemplateColumns, /^40px 48px 116px/, "no narrower than its name needs");
});

test("what a search that was overtaken has found is not taken for what is shown", async () => {
  await browsing();
  const told = structuredClone((await page.view.rpc("poll", { since: -1, want: 60, idle: false }, { keep: true })).r);
  told.query = { ...told.query, number: page.view.records.query - 1, count: 7, done: false };
  page.view.polls.take(told);

  assert.deepEqual([60, true], [page.view.records.count, page.view.records.done]);
  assert.equal(page.view.records.query - 1, told.query.number);
  await until(() => page.last("search")); // the controller is told anew what this page shows
});

test("a page whose server came back goes on", async () => {
  await browsing();
  page.change = (name, answer) =>
    name === "poll" ? { ...answer, r: undefined, err: { type: "NoServer", msg: "gone", hint: "again", code: "no-kernel" } } : answer;
  page.view.scan.wake();
  await until(() => page.view.scan.lost && /gone again The pictures that were there stay/.test(status()));

  page.change = (_, answer) => answer;
  page.view.polls.now(true); // the pointer came in
  await until(() => !page.view.scan.lost);
});

test("a pointer that comes in while a poll is under way has files looked at after it", async () => {
  await browsing();
  const looks = () => page.asked.filter(({ name, msg }) => name === "poll" && msg.idle).length;
  const before = looks();
  page.view.polls.now();
  click(page.root, {}, "pointerenter");
  await until(() => looks() === before + 1);
});

test("rows that came before their order was known are fetched again", async () => {
  await browsing();
  const { r } = await page.view.rpc("poll", { since: -1, want: 60, idle: false }, { keep: true });
  page.view.records.ordered = false;
  await until(() => page.view.rows.items.has(0));
  page.view.table.key = "old";
  page.view.polls.take(structuredClone(r));

  assert.ok(page.view.records.ordered);
  assert.deepEqual([0, ""], [page.view.rows.items.size, page.view.table.key]);
  await until(() => page.view.rows.items.has(0));
});

test("marks: one, a range, all others, none, taken back; only the marked are shown", async () => {
  await browsing();
  const grid = page.find(".tvz-grid");
  press(grid, " ");
  await until(() => /1 marked/.test(status()));
  press(grid, "ArrowRight", { shiftKey: true });
  press(grid, "ArrowRight", { shiftKey: true });
  await until(() => page.view.marks.size === 3);
  assert.deepEqual([0, 1, 2], [...page.view.marks.rows].sort());
  press(grid, "m");
  await shows([0, 1, 2]);
  press(grid, "m");
  await until(() => keys().length > 3);
  click(page.find("[data-position='5']"), { ctrlKey: true });
  await until(() => page.view.marks.has(5));
  click(page.find("[data-position='8']"), { shiftKey: true });
  await until(() => page.view.marks.size === 7);
  press(grid, "I");
  await until(() => page.view.marks.size === 53 && !page.view.marks.has(5));
  press(grid, "N");
  await until(() => /53 unmarked/.test(status()));
  press(grid, "z", { ctrlKey: true });
  await until(() => page.view.marks.size === 53);
  press(grid, "y", { ctrlKey: true });
  await until(() => page.view.marks.size === 0);
  press(grid, "m");
  await until(() => /Nothing is marked/.test(status()));
  put(page.find(".tvz-mark-menu"), "all");
  await until(() => page.view.marks.size === 60);
  assert.equal("", page.find(".tvz-mark-menu").value);
  press(grid, "N");
  await until(() => page.view.marks.size === 0); // the controller keeps them for all pages
});

test("a tag is given, counted beside the grid, asked for and taken away", async () => {
  await browsing();
  const grid = page.find(".tvz-grid");
  press(grid, "T");
  assert.equal("this record", page.find(".tvz-tagger .tvz-save-words").textContent, "the first is one, too");
  press(page.find(".tvz-tagger .tag"), "x");
  assert.equal(undefined, page.last("tag"));
  page.view.tagging.close();
  press(grid, "l");
  await until(() => pane() === keyOf(1));
  press(grid, "T");
  assert.equal("this record", page.find(".tvz-tagger .tvz-save-words").textContent);
  page.find(".tvz-tagger .tag").value = "odd";
  page.find(".tvz-tag-note").value = "why not";
  click(page.all(".tvz-tagger button")[0]);
  await until(() => /1 record tagged odd: is:odd shows them/.test(status()));
  assert.deepEqual({ tag: "odd", marked: [1], note: "why not" }, page.last("tag"));
  assert.ok(page.find(".tvz-tagger").hidden);
  const bar = () => page.all(".tvz-checks .tvz-bar").find((one) => one.textContent === "odd1");
  await until(bar);
  click(bar());
  await shows([1]);
  assert.equal("is:odd ✕", page.find(".tvz-pick").textContent);

  press(grid, "T");
  click(page.all(".tvz-tagger button")[1]);
  await until(() => /1 record no longer tagged odd$/.test(status()));
  assert.ok(!("note" in page.last("untag")));
  await until(() => !bar());
  press(grid, "z", { ctrlKey: true });
  await until(bar);
  assert.deepEqual({ tag: "odd", before: [[1, "why not"]] }, page.last("retag"));
  press(grid, "y", { ctrlKey: true });
  await until(() => !bar());
});

test("a value filters, the same again does not, and with Ctrl two are taken", async () => {
  await browsing();
  const value = (name) => page.find(`.tvz-facet [data-name='cls = ${name}']`);
  click(value(1));
  await shown(20);
  assert.equal("cls: 1 ✕", page.find(".tvz-pick").textContent);
  await until(() => value(1).getAttribute("aria-pressed") === "true" && value(2).textContent.startsWith("2"));
  click(value(2), { ctrlKey: true });
  await shown(40);
  assert.deepEqual(["cls = 1 or cls = 2"], page.last("search").also);
  await until(() => value(2).getAttribute("aria-pressed") === "true");
  click(value(1), { ctrlKey: true });
  await until(() => page.last("search").also[0] === "cls = 2");
  await until(() => value(1).getAttribute("aria-pressed") === "false");
  click(value(2));
  await until(() => !page.last("search").also.length);
  click(page.find("[data-name='missing json.w']"));
  await shown(9);
  await shows([0, 7, 14, 21, 28, 35, 42, 49, 56]);
});

test("bars are brushed with the pointer and with keys, and the same brush again is taken away", async () => {
  await browsing();
  const bars = () => page.find(".tvz-hist");
  const count = bars().children.length;
  const at = (bar) => ({ clientX: ((bar + 0.5) / count) * 1000 });
  const brush = (from, to) => {
    click(bars(), at(from), "pointerdown");
    click(bars(), at(to), "pointermove");
    click(bars(), at(to), "pointerup");
  };
  brush(4, 2);
  await until(() => page.last("search")?.also.length);
  assert.match(page.last("search").also[0], /^json\.w >= 48\.\d+ and json\.w < 106\.\d+$/);
  await until(() => bars().querySelectorAll(".tvz-on").length === 3);
  brush(2, 4);
  await until(() => !page.last("search").also.length);
  await until(() => !bars().querySelectorAll(".tvz-on").length);
  for (const [key, more] of [
    ["ArrowRight"],
    ["ArrowRight", { shiftKey: true }],
    ["ArrowRight", { shiftKey: true }],
    ["ArrowLeft", { shiftKey: true }],
  ])
    assert.ok(press(bars(), key, more));
  assert.match(bars().getAttribute("aria-valuetext"), /^json\.w 29\.33 … 68: 4 records$/);
  press(bars(), "Enter");
  await until(() => page.last("search").also.length);
  assert.match(page.last("search").also[0], /^json\.w >= 29\.\d+ and json\.w < 68/);
});

test("shards, fields and sets of fields filter; a chip takes its filter away", async () => {
  await browsing();
  click(page.all(".tvz-shard")[2]);
  await shown(20);
  assert.equal("1", page.find(".tvz-shard-select").value);
  press(page.find(".tvz-grid"), "]");
  await until(() => page.last("search").shard === 2);
  press(page.find(".tvz-grid"), "]");
  await until(() => page.last("search").shard === null);
  press(page.find(".tvz-grid"), "[");
  await until(() => page.last("search").shard === 2);
  put(page.find(".tvz-shard-select"), "");
  await until(() => page.last("search").shard === null);
  click(page.find("[data-name=\"has('json')\"]"));
  await shown(51);
  click(page.all(".tvz-matrix tbody tr")[1]);
  await until(() => page.all(".tvz-pick").length === 2);
  assert.deepEqual(["has('json')", "has('png') and has('cls') and not has('json')"], page.last("search").also);
  await until(() => page.find(".tvz-empty") && !page.find(".tvz-empty").hidden);
  click(page.all(".tvz-pick")[0]);
  await shown(9);
  click(page.button("just"));
  await until(() => !page.last("search").also.length && page.find(".tvz-picks").hidden);
});

test("a filter is taken back and done again, and Back leads to what was shown", async () => {
  await browsing();
  const filter = page.find(".tvz-filter");
  const addresses = [];
  const { pushState } = history;
  history.pushState = (...state) => {
    addresses.push(state[2]);
    pushState.apply(history, state);
  };
  put(filter, "cls = 2");
  press(filter, "Enter");
  await shown(20);
  await until(() => /cls/.test(location.hash));
  delete history.pushState;
  assert.equal(1, addresses.length);
  assert.match(addresses[0], /cls/);
  const { length } = history;
  page.view.select(3);
  page.view.places.remember();
  assert.equal(length, history.length, "the cursor makes no step");
  press(page.find(".tvz-grid"), "z", { ctrlKey: true });
  await until(() => filter.value === "" && page.view.records.count === 60);
  press(page.find(".tvz-grid"), "z", { ctrlKey: true });
  await until(() => /There is nothing to take back/.test(status()));
  press(page.find(".tvz-grid"), "y", { ctrlKey: true });
  await until(() => filter.value === "cls = 2");
});

test("an address is shown as it says", async () => {
  history.replaceState(null, "", "/#where=cls+%3D+1&sort=key&descending=on&view=table&px=96&row=set%2Fn000004");
  page = await opened("browse", BrowserView);
  await until(() => pane() === keyOf(4));

  assert.deepEqual(
    ["cls = 1", "key", true],
    ["where", "sort", "descending"].map((name) => page.last("search")[name]),
  );
  assert.ok(page.view.table.shown && page.find(".tvz-grid").hidden);
  assert.equal(96, page.view.look.px);
  assert.equal("true", page.find(".tvz-turn-order").getAttribute("aria-pressed"));
  await until(() => /#18 of 20 · 20 shown/.test(status()));
});

test("an address without a caption brings back the usual one, and a sort by caption follows", async () => {
  await browsing();
  const { view } = page;
  const [usual, chosen] = [view.look.label, "png.width"];
  view.searches.run({ sort: "label" });
  await until(() => page.last("search")?.label === usual && view.records.done);
  put(page.find(".tvz-label-input"), chosen, "change");
  await until(() => page.last("search").label === chosen && view.records.done);
  await view.searches.restore({ ...view.places.usual, sort: "label" });
  await until(() => view.look.label === usual && page.find(".tvz-label-input").value === usual);

  assert.equal(null, view.places.shown().label);
  await view.searches.restore(view.places.usual);
  const searches = () => page.asked.filter(({ name }) => name === "search").length;
  const before = searches();
  await view.searches.restore({ ...view.places.usual, label: chosen });
  assert.deepEqual([chosen, before], [view.look.label, searches()], "in another order the caption changes no search");
});

test("of two addresses one after the other the last is shown, whole", async () => {
  await browsing();
  const { view } = page;
  const back = view.searches.restore({ ...view.places.usual, where: "cls = 1", large: true, row: keyOf(4), at: 1 });
  await Promise.all([back, view.searches.restore({ ...view.places.usual, row: keyOf(7), at: 7 })]);
  await until(() => pane() === keyOf(7));

  assert.deepEqual(["", 60, false], [view.records.wish.where, view.records.count, view.root.classList.contains("tvz-zoomed")]);
});

test("the first record is shown when what an address searches for is found late", async () => {
  await browsing();
  const { view } = page;
  view.pane.end();
  view.records.selected = -1;
  let early = 12;
  page.change = (name, answer) =>
    name === "poll" && answer.r.query.number === view.records.query && early-- > 0
      ? { ...answer, r: { ...answer.r, query: { ...answer.r.query, count: 0, done: false } } }
      : answer;
  await view.searches.restore({ ...view.places.usual, where: "cls = 1", row: "", at: 0 });
  assert.deepEqual([0, -1], [view.records.count, view.records.selected]);
  await until(() => view.records.selected >= 0);
  assert.equal(0, view.records.at);
});

test("nothing is shown of the marked where none is, but what else an address says", async () => {
  await browsing();
  await page.view.searches.restore({ ...page.view.places.usual, where: "cls = 1", only: true });

  assert.deepEqual(["cls = 1", false], [page.view.records.wish.where, page.view.records.wish.only]);
  for (const [said, at] of [
    [5, 5],
    [99, 19],
  ]) {
    await page.view.searches.restore({ ...page.view.places.usual, where: "cls = 1", row: "", at: said });
    assert.equal(at, page.view.records.at, "the record at its place, or the last");
  }
});

test("a line around points is gone back to while its map is drawn", async () => {
  await browsing();
  const { view } = page;
  view.records.wish = view.searches.next = { ...view.records.wish, area: [0, 0, 1, 0, 1, 1] };
  view.map.points = { number: 3 };
  view.places.step = true;
  const { length } = history;
  view.places.remember();

  assert.deepEqual([length + 1, { area: [0, 0, 1, 0, 1, 1], map: 3 }], [history.length, history.state]);
});

test("the order is turned round, and back", async () => {
  await browsing();
  const turn = page.find(".tvz-turn-order");
  for (const descending of [true, false]) {
    click(turn);
    await until(() => page.last("search")?.descending === descending && !page.view.searches.running);
    await until(() => keys()[0] === keyOf(descending ? 59 : 0));
    assert.equal(String(descending), turn.getAttribute("aria-pressed"));
  }
});

test("a key and a number are gone to, through filters that hide them", async () => {
  await browsing();
  press(page.find(".tvz-grid"), "g");
  const go = page.find(".tvz-go");
  assert.ok(!go.hidden);
  go.value = "n000033";
  press(go, "Enter");
  await until(() => pane() === keyOf(33));
  assert.ok(go.hidden);
  put(page.find(".tvz-filter"), "cls = 1");
  press(page.find(".tvz-filter"), "Enter");
  await until(() => pane() === keyOf(1));
  press(page.find(".tvz-grid"), "g");
  go.value = "n000033";
  press(go, "Enter");
  await until(() => page.last("search").where === "" && pane() === keyOf(33));
  press(page.find(".tvz-grid"), "g");
  go.value = "#4";
  press(go, "Enter");
  await until(() => pane() === keyOf(4));
});

test("a record that was gone to stays, though the search before it has just found its first", async () => {
  await browsing();
  const { r } = await page.view.rpc("poll", { since: -1, want: 60, idle: false }, { keep: true }); // the page's own does not overtake it
  page.view.records.follow = true; // the search was answered, its first record not shown yet
  page.view.searches.stand({ row: 33, position: 33 });
  page.view.polls.take(structuredClone(r));

  assert.deepEqual([33, 60], [page.view.records.at, page.view.records.count]);
  page.view.searches.stand({ row: 70, position: 70 });
  assert.deepEqual([70, 71], [page.view.records.at, page.view.records.count], "it may be known before those before it");
});

test("what would be saved is counted, named by its kind, and written", async () => {
  await browsing();
  put(page.find(".tvz-save"), "txt");
  const words = page.find(".tvz-saver .tvz-save-words");
  await until(() => /^60 shown · /.test(words.textContent));
  const path = page.find(".tvz-save-path");
  const names = ["tar", "csv", "parquet", "txt"].map((kind) => {
    put(page.find("[aria-label='what is written']"), kind);
    return path.value;
  });
  assert.deepEqual(["subset-{}.tar", "subset.csv", "subset.parquet", "keys.txt"], names);
  press(path, "Enter");
  await until(() => /keys\.txt/.test(status()));
  assert.equal("keys.txt", page.last("keep").path);
  assert.equal(false, page.last("keep").marked);
  assert.ok(page.find(".tvz-saver").hidden);
});

test("SQL is asked, its keys lead to their records, a wrong query is explained", async () => {
  await browsing();
  click(page.button("SQL"));
  const text = page.find(".tvz-sql-text");
  text.value = "select key, cls from records where cls = 2 limit 2";
  press(text, "Enter", { ctrlKey: true });
  await until(() => page.all(".tvz-sql-answer tbody tr").length === 2);
  assert.deepEqual(
    ["key", "cls"],
    page.all(".tvz-sql-answer th").map((one) => one.textContent),
  );
  assert.equal("2 rows", page.find(".tvz-sql [role=status]").textContent);
  assert.equal("tvz-number", page.all(".tvz-sql-answer td")[1].className);
  text.value = "selec";
  click(page.button("run"));
  await until(() => page.find(".tvz-sql .tvz-bad"));
  text.value = "select key from records where cls = 2 limit 2";
  click(page.button("run"));
  await until(() => page.find(".tvz-sql [role=status]").textContent === "2 rows");
  click(page.all(".tvz-sql-answer button")[1]);
  await until(() => pane() === keyOf(5));
  assert.ok(page.find(".tvz-sql").hidden);
});

test("what is shown is kept under a name, shown again and dropped", async () => {
  await browsing();
  put(page.find("[aria-label=order]"), "random");
  await until(() => page.last("search")?.sort === "random");
  await until(() => !page.view.searches.running);
  page.find("[aria-label='name of the view']").value = " mixed ";
  click(page.button("save"));
  await until(() => page.find(".tvz-views ul .tvz-link")?.textContent === "mixed");
  assert.match(page.last("save_view").address, /sort=random/);
  put(page.find("[aria-label=order]"), "order");
  await until(() => page.last("search").sort === "order");
  await until(() => !page.view.searches.running);
  click(page.find(".tvz-views ul .tvz-link"));
  await until(() => page.last("search").sort === "random");
  click(page.find("[aria-label='drop the view mixed']"));
  await until(() => page.find(".tvz-views ul .tvz-faint")?.textContent === "none yet");
});

test("two records are laid side by side", async () => {
  await browsing();
  const grid = page.find(".tvz-grid");
  press(grid, "b");
  await until(() => /Mark two to four/.test(status()));
  press(grid, " ");
  await until(() => page.view.marks.size === 1);
  press(grid, "l");
  press(grid, " ");
  await until(() => page.view.marks.size === 2);
  press(grid, "b");
  await until(() => page.all(".tvz-column h2").length === 2);
  assert.deepEqual(
    [0, 1].map(keyOf),
    page.all(".tvz-column h2").map((one) => one.title),
  );
  assert.equal("2 records", page.find(".tvz-side-head span").textContent);
  press(page.find(".tvz-side-by-side"), "Escape");
  assert.ok(!page.view.beside.shown);
  press(grid, "N");
  await until(() => page.view.marks.size === 0);
});

test("tiles grow and shrink by keys and chooser, and the first record in view stays", async () => {
  await browsing();
  assert.deepEqual(
    [true, false],
    ["+", "q"].map((key) => press(page.find(".tvz-grid"), key)),
    "the browser's own is left out where the page has one",
  );
  assert.deepEqual([256, "256"], [page.view.look.px, page.find("[aria-label='size of the tiles']").value]);
  press(page.find(".tvz-grid"), "+");
  press(page.find(".tvz-grid"), "-");
  press(page.find(".tvz-grid"), "-");
  assert.equal(96, page.view.look.px);
  await until(() => page.find(".tvz-tile").style.width === "96px");
  const { grid, records } = page.view;
  const top = (selected, px) => {
    Object.assign(records, { selected, at: 40 });
    grid.setTop(0);
    page.view.resize(px);
    return grid.top;
  };
  assert.equal(0, top(-1, 256));
  assert.equal(Math.floor(40 / grid.measure().columns) * grid.measure().rowHeight, top(0, 256), "or the one under the cursor");
});

test("going to a key arrives where the record lies, whatever kept it away, and says what was let go", async () => {
  await browsing("kinds");
  const { searches, records } = page.view;
  const gone = async (wish, number = 4) => {
    await searches.run(wish);
    await searches.goTo(keyOf(number));
    await until(() => pane() === keyOf(number));
    const { descending, objects, sort } = records.wish;
    return [records.at, descending, objects, sort, /Let go for it: (.*)\.$/.exec(status())?.[1]];
  };
  const plain = [3, false, false, "order"]; // its records begin at number 1
  assert.deepEqual([...plain, "filters"], await gone({ where: "cls = 0" }));
  assert.deepEqual([...plain, "filters, the order, a tile a box"], await gone({ where: "cls = 0", descending: true, objects: true }));
  assert.deepEqual([...plain, "the order, a tile a box"], await gone({ sort: "key", objects: true }));
  assert.deepEqual([2, true, false, "order", undefined], await gone({ descending: true }), "it is shown as it is");
  assert.deepEqual([0, false, true, "order", undefined], await gone({ descending: false, objects: true }, 1), "it has boxes");
  await searches.run({ where: "cls = 99" });
  await until(() => page.button("show all"));
  click(page.button("show all"));
  await until(() => records.count === 6 && !records.wish.objects);
});

test("a search that finds nothing comes to rest, too", async () => {
  await browsing();
  put(page.find(".tvz-filter"), "cls = 7");
  press(page.find(".tvz-filter"), "Enter");
  await shown(0);
  await until(() => page.view.calm);
});

test("Enter enlarges, Escape goes back; the sheet of keys opens and closes", async () => {
  await browsing();
  const grid = page.find(".tvz-grid");
  press(grid, "Enter");
  assert.ok(page.root.classList.contains("tvz-zoomed"));
  press(grid, "ArrowDown");
  assert.equal(1, page.view.records.at);
  press(grid, "Escape");
  assert.ok(!page.root.classList.contains("tvz-zoomed"));
  click(grid, {}, "dblclick");
  assert.ok(!page.root.classList.contains("tvz-zoomed"));
  click(page.find(".tvz-tile"), {}, "dblclick");
  assert.ok(page.root.classList.contains("tvz-zoomed"));
  press(grid, "Escape");
  press(grid, "?");
  assert.ok(page.find(".tvz-sheet"));
  press(grid, "l");
  assert.equal(1, page.view.records.at);
  press(grid, "Escape");
  assert.ok(!page.find(".tvz-sheet"));
  press(grid, "i");
  assert.ok(page.root.classList.contains("tvz-no-pane"));
});

test("a record is shown as a card, a field alone, its bytes, its Example and its header", async () => {
  await browsing("kinds");
  const body = page.find(".tvz-pane");
  await until(() => page.all(".tvz-item").length >= 2);
  await golden("card", body);
  for (const [digit, ext] of [
    [2, "cls"],
    [3, "json"],
    [4, "txt"],
    [1, "png"],
  ]) {
    press(page.find(".tvz-grid"), String(digit));
    await until(() => page.find(".tvz-chip[aria-selected=true] b").textContent === ext);
    await golden(`field-${ext}`, page.find(".tvz-body"));
  }
  for (const [name, selector] of [
    ["Bytes", ".tvz-hex-lines"],
    ["tf.Example", "details pre"],
    ["Tar header", "details pre"],
  ]) {
    click(page.button(name));
    await until(
      () =>
        page.button(name).getAttribute("aria-selected") === "true" && page.find(`.tvz-body ${selector}`)?.textContent.includes("00000010"),
    );
    await golden(`tab-${name}`.toLowerCase().replaceAll(/\W+/g, "-"), page.find(".tvz-body"));
  }
});

test("a finding leads to its byte: the field that holds it, scrolled to it", async () => {
  await browsing("kinds");
  const fields = page.view.pane.record.fields;
  for (const [field, byte, line] of [
    [0, 40, "00000020"],
    [1, -100, "00000000"], // in its header
    [2, -512, "00000000"],
    [0, -600, "00000000"], // before all
  ]) {
    const { ext, offset } = fields[field];
    await page.view.searches.goToByte({ key: pane(), offset: offset + byte });
    await until(
      () => page.find(".tvz-hex-lines")?.textContent.startsWith(line) && page.find(".tvz-chip[aria-selected=true] b").textContent === ext,
    );
  }
});

test("a tile for each box, and classes that filter", async () => {
  await browsing("kinds");
  press(page.find(".tvz-grid"), "x");
  await until(() => /2 boxes shown/.test(status()));
  await until(() => page.all(".tvz-classes .tvz-bar").length === 2);
  click(page.find("[data-name='object dog']"));
  await until(() => /1 boxes shown/.test(status()));
  assert.deepEqual(["has_object('dog')"], page.last("search").also);
  assert.deepEqual(["dog"], page.last("search").objects);
});

test("words that were searched for are marked in keys and cells", async () => {
  await browsing("kinds");
  const filter = page.find(".tvz-filter");
  put(filter, "red disc");
  press(filter, "Enter");
  await until(() => /searched for the words red, disc/.test(status()));
  press(page.find(".tvz-grid"), "t");
  await until(() => page.all(".tvz-tbody mark").length >= 2);
});

test("the caption below the tiles is a column that was chosen", async () => {
  await browsing();
  const label = page.find(".tvz-label-input");
  put(label, "json.w", "change");
  await until(() => page.find("[data-position='3'] .tvz-label")?.textContent === "30");
  put(page.find("[aria-label='field shown']"), "cls");
  const text = () => page.find("[data-position='3'] .tvz-snippet")?.textContent;
  await until(() => text() === "0");
  put(page.find("[aria-label='field shown']"), "json");
  await until(() => text()?.startsWith("{"));
});

test("edges are moved by arrows and by the pointer, within their bounds", async () => {
  await browsing();
  const main = page.find(".tvz-main");
  const [rail, edge] = [page.find(".tvz-edge-rail"), page.find(".tvz-edge-pane")];
  press(rail, "ArrowRight");
  press(edge, "ArrowRight");
  assert.match(main.style.cssText, /rail-width: 226px.*pane-width: 334px/);
  click(rail, { clientX: 500 }, "pointerdown");
  click(rail, { clientX: 100 }, "pointermove");
  assert.match(main.style.cssText, /rail-width: 140px/);
  click(rail, {}, "pointerup");
  click(rail, { clientX: 900 }, "pointermove");
  click(edge, {}, "dblclick");
  assert.match(main.style.cssText, /rail-width: 140px.*pane-width: 350px/);
});
