// What a page asks of how far things are: when it asks again, when it rests, what it makes of the answer.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Polls } from "../../tarviz/widgets/browse/page/polls.mjs";
import { h } from "../../tarviz/widgets/host/core.mjs";
import { test } from "./dom.mjs";

const SHARD = { number: 0, size: 2000, count: 3, state: "done", share: null };
const QUERY = { number: 5, count: 3, checked: 3, ordered: true, done: true, error: "", note: "", seconds: 0 };
const POLL = {
  ...{ version: 4, shards: [SHARD], exact: true, total: 3, pages: 1, trouble: "", marks: { version: 0, count: 0 }, query: QUERY },
  ...{ status: "scanned", table: { state: "ready" }, job: { running: false } },
};
const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** The polls of a page whose parts keep what they are told; `poll` is what the controller answers, or throws. */
function polling(poll = {}, own = {}) {
  const end = new AbortController();
  ends.push(() => end.abort());
  const [asked, told] = [[], []];
  const part = (name, known = {}) =>
    new Proxy(known, { get: (_, what) => (what in known ? known[what] : (...values) => void told.push([`${name}.${what}`, ...values])) });
  const answers = { poll };
  const view = part("view", {
    ...{ signal: end.signal, model: {}, calm: false, facts: h("span", {}) },
    records: { query: 5, count: 3, at: 0, ordered: true, done: true, follow: false, plain: () => false },
    scan: { version: 3, shards: [], exact: true, pages: 1, lost: false, wake: () => told.push(["woken"]) },
    rpc: async (...request) => {
      asked.push(request);
      if (answers.poll instanceof Error) throw answers.poll;
      return { r: structuredClone({ ...POLL, ...answers.poll }) };
    },
    marks: { take: async (marks) => void told.push(["marks", marks]) },
    grid: part("grid", {
      visibleRange: (margin) => ({ stop: 10 * margin }),
      layout: {},
    }),
    rows: {
      items: new Map([[0, {}]]),
      clear() {
        this.items.clear();
      },
    },
    table: { key: "old" },
    pane: part("pane", { record: {} }),
    status: part("status", {
      trouble: (error) => {
        told.push(["trouble", error.message]);
        view.scan.lost = true;
      },
    }),
    tools: part("tools", { filter: h("input", {}) }),
    keep: part("keep", { job: { running: false } }),
    facets: part("facets", { settled: true, busy: false }),
    classes: part("classes", { settled: true, busy: false }),
    ...Object.fromEntries(["map", "rail", "searches"].map((name) => [name, part(name)])),
  });
  for (const [name, value] of Object.entries(own)) ([view.records, view.scan].find((state) => name in state) ?? view)[name] = value;
  const polls = new Polls(view);
  const names = () => told.map(([name]) => name);
  return { polls, view, asked, told, names, answers };
}
const settled = async () => {
  for (let turn = 0; turn < 4; turn += 1) await new Promise(setImmediate);
};

test("a page asks four times a second as long as something goes on, and then rests", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const later = async (poll, own, wait = 250) => {
    const { polls, view, asked } = polling(poll, own);
    polls.loop();
    await settled();
    assert.equal(1, asked.length);
    t.mock.timers.tick(wait - 1);
    await settled();
    assert.equal(1, asked.length);
    t.mock.timers.tick(1);
    await settled();
    const { length } = asked;
    view.scan.wake();
    await settled();
    return [length, asked.length];
  };
  const [goesOn, rests, looks] = [
    [2, 2],
    [1, 2],
    [2, 3],
  ];
  assert.deepEqual(rests, await later());
  assert.deepEqual(rests, await later({}, {}, 100_000));
  assert.deepEqual(goesOn, await later({ exact: false }));
  assert.deepEqual(goesOn, await later({ query: { ...QUERY, done: false } }));
  assert.deepEqual(goesOn, await later({}, { keep: { job: { running: true }, take: () => {} } }));
  for (const name of ["facets", "classes"]) {
    const part = (settled, busy) => ({ [name]: { settled, busy, follow: () => {} } });
    assert.deepEqual(goesOn, await later({}, part(false, false)), name);
    assert.deepEqual(rests, await later({}, part(false, true)), name);
  }
  assert.deepEqual(rests, await later(new Error("gone"), { exact: false }), "a server that is gone is not asked");
  assert.deepEqual(looks, await later({ pages: 2 }, {}, 3000), "another page may mark or tag");
  assert.deepEqual(rests, await later(new Error("gone"), { pages: 2 }, 3000));
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  try {
    assert.deepEqual(goesOn, await later({ exact: false }, {}, 2000));
    assert.deepEqual(looks, await later({ pages: 2 }, {}, 30_000));
  } finally {
    delete document.hidden;
  }
});

test("it is asked what has changed, without waiting for others; who asks meanwhile is asked for after it", async () => {
  const { polls, view, asked, told } = polling();
  const first = polls.now();
  polls.now();
  assert.deepEqual([["poll", { since: 3, want: 20, idle: false }, { urgent: true }]], asked);
  polls.now(true);
  assert.equal(1, asked.length);
  await first;
  assert.deepEqual(["poll", { since: 4, want: 20, idle: true }], asked[1].slice(0, 2));
  await settled();
  assert.deepEqual([2, 4, false], [asked.length, view.scan.version, told.some(([name]) => name === "woken")]);
});

test("a page that ended asks nothing", async () => {
  const end = new AbortController();
  const { polls, asked } = polling({}, { signal: end.signal });
  end.abort();
  await polls.now(true);
  await polls.loop();
  assert.deepEqual([], asked);
});

test("a server that comes back is asked on where something still goes on", async () => {
  for (const [poll, woken] of [
    [{ exact: false }, true],
    [{ query: { ...QUERY, done: false } }, true],
    [{}, false],
  ]) {
    const { polls, view, names } = polling(poll, { lost: true });
    await polls.now(true);
    assert.deepEqual([false, woken], [view.scan.lost, names().includes("woken")]);
  }
  const gone = polling(new Error("gone"), { exact: false });
  await gone.polls.now(true);
  assert.deepEqual([["trouble", "gone"]], gone.told);
  const asking = polling({ exact: false });
  await asking.polls.now();
  assert.ok(!asking.names().includes("woken"));
});

test("what is said of shards and records, and of a search that runs", () => {
  const facts = (poll, own) => {
    const { polls, view } = polling({}, own);
    polls.take({ ...structuredClone(POLL), ...poll });
    return [view.facts.textContent, view.records.searching];
  };
  assert.deepEqual(["1 shard · 3 records · 2.00 kB", ""], facts());
  const two = [SHARD, { ...SHARD, number: 1, size: null }];
  assert.deepEqual(["2 shards · ≥ 1,200 records · 2.00 kB", ""], facts({ shards: two, exact: false, total: 1200 }));
  assert.deepEqual("1 shard · 3 records", facts({ shards: [{ ...SHARD, size: 0 }] })[0]);
  const running = { ...QUERY, done: false, checked: 1000 };
  const searching = (poll, own) => facts({ query: running, total: 2000, ...poll }, own)[1];
  assert.equal("looked at 1,000 of 2,000", searching({}));
  assert.equal("looked at 1,000 of ≥ 2,000", searching({ exact: false }));
  assert.equal("reading columns", searching({ query: { ...running, note: "reading columns" } }));
  assert.equal("", searching({}, { plain: () => true }));
  const far = { ...SHARD, state: "scanning", share: 0.25 };
  assert.equal("looked at 1,000 of 2,000, 500 B of 2.00 kB read", searching({ shards: [far] }));
  const done = { ...SHARD, number: 1, share: 1 };
  assert.equal("looked at 1,000 of 2,000, 2.50 kB of 4.00 kB read", searching({ shards: [far, done] }));
  for (const more of [{ state: "done" }, { share: 1 }, { share: null }, { size: null }])
    assert.equal("looked at 1,000 of 2,000", searching({ shards: [{ ...far, ...more }] }), JSON.stringify(more));
});

test("an answer is taken whole: parts are told, more of them once the records in view are there", () => {
  const { polls, view, told, names } = polling({}, { shards: [undefined, { ...SHARD, number: 1 }] });
  polls.take({ ...structuredClone(POLL), trouble: "s3://b waits", pages: 2, total: 9 });
  assert.deepEqual(
    [[0, 1], 9, 2, "s3://b waits", "scanned", "ready", {}],
    [
      view.scan.shards.map((shard) => shard.number),
      view.scan.total,
      view.scan.pages,
      view.scan.far,
      view.scan.state,
      view.scan.columns.state,
      view.grid.layout,
    ],
  );
  assert.deepEqual(["marks", "keep.take", "status.tell", "tools.offerShards", "rail.draw", "grid.draw"], names());
  told.length = 0;
  view.calm = true;
  polls.take({ ...structuredClone(POLL), query: { ...QUERY, count: 4 }, summary: { fields: [["png", 3]] } });
  assert.deepEqual(
    ["marks", "facets.follow", "classes.follow", "map.follow", "keep.take", "rail.drawMore", "tools.offerFields", "status.tell"],
    names().slice(0, 8),
  );
  assert.deepEqual([4, undefined, [["png", 3]]], [view.records.count, view.grid.layout, told[6][1]]);
});

test("a saved picture has no more records than were saved with it", () => {
  const { polls, view } = polling({}, { model: { still: true, get: (name) => ({ [name]: { rows: { rows: [1, 2] } } })[name] } });
  const counts = [1, 2, 60].map((count) => (polls.take({ ...structuredClone(POLL), query: { ...QUERY, count } }), view.records.count));
  assert.deepEqual([1, 2, 2], counts);
});

test("a search of another number is asked for anew, an error is told, an order that has come has its rows fetched again", () => {
  const other = polling({}, { count: 7 });
  other.polls.take({ ...structuredClone(POLL), query: { ...QUERY, number: 6, error: "no" } });
  assert.deepEqual([7, true], [other.view.records.count, other.names().includes("searches.renew")]);
  assert.ok(!other.names().includes("status.say"));

  const wrong = polling();
  wrong.polls.take({ ...structuredClone(POLL), query: { ...QUERY, error: "no column" } });
  assert.deepEqual(
    ["status.say", "no column", "bad"],
    wrong.told.find(([name]) => name === "status.say"),
  );
  assert.deepEqual(["no column", "true"], [wrong.view.records.failed, wrong.view.tools.filter.getAttribute("aria-invalid")]);

  const sorted = polling({}, { ordered: false });
  sorted.polls.take(structuredClone(POLL));
  assert.deepEqual([true, 0, ""], [sorted.view.records.ordered, sorted.view.rows.items.size, sorted.view.table.key]);
  assert.deepEqual(
    ["view.select", 0],
    sorted.told.find(([name]) => name === "view.select"),
    "the first one is another now",
  );
  const below = polling({}, { ordered: false, at: 2 });
  below.polls.take(structuredClone(POLL));
  assert.ok(!below.names().includes("view.select"));
  const unsorted = polling();
  unsorted.polls.take({ ...structuredClone(POLL), query: { ...QUERY, ordered: false } });
  assert.deepEqual([false, 1], [unsorted.view.records.ordered, unsorted.view.rows.items.size]);
});

test("after a search the pane shows the first record, or that there is none, once that is known", () => {
  const after = (query, own) => {
    const { polls, view, told } = polling({}, { follow: true, ...own });
    polls.take({ ...structuredClone(POLL), query: { ...QUERY, ...query } });
    return [view.records.follow, told.filter(([name]) => /^view\.select|^pane/.test(name))];
  };
  assert.deepEqual([false, [["view.select", 0]]], after({}));
  assert.deepEqual([false, [["view.select", 0]]], after({ done: false }));
  assert.deepEqual([true, []], after({ count: 0, done: false }), "it may still be found");
  assert.deepEqual([true, [["pane.fill"]]], after({ count: 0 }));
  assert.deepEqual([true, []], after({ count: 0 }, { pane: { record: undefined } }));
  assert.deepEqual([false, []], after({}, { follow: false }));
});
