// Marks, undo and addresses of the browser's page, without a page.
import assert from "node:assert/strict";
import { test } from "node:test";

import { click, placed, press, test as domTest, until } from "./dom.mjs";
import { PLAIN, read, readPicks, written } from "../../tarviz/widgets/browse/marking/address.mjs";
import { Curation, said, without } from "../../tarviz/widgets/browse/marking/curation.mjs";
import { History } from "../../tarviz/widgets/browse/marking/history.mjs";
import { Marks } from "../../tarviz/widgets/browse/marking/marks.mjs";
import { Views } from "../../tarviz/widgets/browse/marking/views.mjs";
import { RpcError } from "../../tarviz/widgets/host/requests.mjs";

test("what differs from the usual goes into the address and comes back", () => {
  const picks = [["cls", { where: "cls = 1 or cls = 2", text: "cls: 1, 2" }]];
  const shown = {
    ...PLAIN,
    where: "json.w > 3 & 'ü#'",
    picks,
    sort: "random",
    seed: 7,
    shard: 2,
    only: true,
    view: "table",
    px: 96,
    label: "",
    row: "a/b c",
  };

  assert.deepEqual(shown, { ...PLAIN, ...read(`#${written(shown)}`) });
  assert.equal("", written(PLAIN));
  const usual = { ...PLAIN, where: "cls = 1", px: 256, shard: 1 };
  assert.deepEqual(PLAIN, { ...usual, ...read(written(PLAIN, usual)) }); // what was given on the command line was taken away
});

test("every part of an address has a word of its own", () => {
  for (const [part, text] of [
    [{ where: "cls = 1" }, "where=cls+%3D+1"],
    [{ picks: [] }, ""],
    [{ sort: "key" }, "sort=key"],
    [{ seed: 7 }, ""], // nothing is drawn
    [{ sort: "random", seed: 7 }, "sort=random&seed=7"],
    [{ column: "json.w" }, "by=json.w"],
    [{ descending: true }, "descending=on"],
    [{ shard: 0 }, "shard=0"],
    [{ only: true }, "marked=on"],
    [{ objects: true }, "boxes=on"],
    [{ view: "table" }, "view=table"],
    [{ map: true }, "map=on"],
    [{ large: true }, "large=on"],
    [{ px: 96 }, "px=96"],
    [{ image: "png" }, "image=png"],
    [{ label: "" }, "label="],
    [{ row: "#3", at: 3 }, "row=%233&at=3"],
  ]) {
    assert.equal(text, written({ ...PLAIN, ...part }));
    if (text) assert.deepEqual(part, read(text));
  }
  assert.equal("sort=random&row=%230", written({ ...PLAIN, sort: "random", seed: 0, px: 160, row: "#0", at: 0 }));
  assert.equal("descending=off", written(PLAIN, { ...PLAIN, descending: true }));
});

test("an address that says nonsense is not believed", () => {
  assert.deepEqual({ shard: null }, read("#px=wide&shard=null&also=[1]&seed=-3"));
});

test("conditions of an address without what they ask or how they read are not believed", () => {
  const one = ["cls", { where: "cls = 1", text: "cls: 1" }];

  assert.deepEqual([one], readPicks(JSON.stringify([one])));
  assert.deepEqual([], readPicks("[]"));
  for (const wrong of [["cls", { text: "cls: 1" }], ["cls", { where: "cls = 1" }], ["cls", null], [3, one[1]], "cls", null])
    assert.equal(undefined, readPicks(JSON.stringify([one, wrong])), JSON.stringify(wrong));
  for (const text of [null, "", "{}", '{"a":1}', "nonsense"]) assert.equal(undefined, readPicks(text));
});

test("steps are taken back and done again in turn, and a new one forgets what was taken back", async () => {
  const said = [];
  const step = (text) => ({ text, undo: async () => said.push(`-${text}`), redo: async () => said.push(`+${text}`) });
  const history = new History();
  history.did(step("a"));
  history.did(step("b"));

  assert.deepEqual(["b", "a", ""], await Promise.all([history.undo(), history.undo(), history.undo()]));
  assert.equal("a", await history.redo());
  history.did(step("c"));
  assert.equal("", await history.redo());
  assert.deepEqual(["-b", "-a", "+a"], said);
});

test("two hundred steps can be taken back, the latest", async () => {
  const history = new History();
  for (let at = 0; at < 202; at += 1) history.did({ text: `${at}`, undo: async () => {}, redo: async () => {} });

  assert.deepEqual([200, "2", "201"], [history.done.length, history.done[0].text, await history.undo()]);
});

test("a step that cannot be taken back stays", async () => {
  const history = new History();
  let broken = true;
  history.did({ text: "a", undo: async () => broken && Promise.reject(new Error("no")), redo: async () => {} });

  await assert.rejects(history.undo());
  broken = false;
  assert.equal("a", await history.undo());
});

test("what a range loses when it is drawn anew", () => {
  assert.deepEqual([[6, 9]], without([3, 9], [3, 5]));
  assert.deepEqual([[4, 9]], without([3, 9], [1, 3]));
  assert.deepEqual(
    [
      [3, 3],
      [9, 9],
    ],
    without([3, 9], [4, 8]),
  );
  assert.deepEqual([], without([3, 9], [0, 12]));
  assert.equal("1,200 marked, 3 unmarked", said(1200, 3));
});

/** Forty rows, shown as they lie, and the marks of all pages: what the controller does, in few words. */
function server() {
  const marked = new Set();
  let version = 0;
  const change = (add, drop) => {
    const [added, dropped] = [add.filter((row) => !marked.has(row)), drop.filter((row) => marked.has(row))];
    dropped.forEach((row) => marked.delete(row));
    added.forEach((row) => marked.add(row));
    version += added.length + dropped.length > 0;
    return { version, count: marked.size, added, dropped };
  };
  const rpc = async (name, msg) => {
    if (name === "mark") return { r: change(msg.add, msg.drop), buffers: [] };
    if (name === "marks") return { r: { version, count: marked.size }, buffers: [new DataView(Float64Array.from(marked).buffer)] };
    const rows = Array.from({ length: 40 }, (_, at) => at).slice(msg.start, msg.stop ?? 40);
    const on = rows.filter((row) => marked.has(row));
    const off = rows.filter((row) => !marked.has(row));
    return { r: change(msg.how === "unmark" ? [] : off, msg.how === "mark" ? [] : on), buffers: [] };
  };
  return { marked, rpc, change, told: () => ({ version, count: marked.size }) };
}

function page(rpc) {
  const marks = new Marks(rpc, () => {}, []);
  const at = { query: 0, at: 0, count: 40 };
  const words = [];
  const around = {
    marks,
    history: new History(),
    records: at,
    rows: { items: new Map(Array.from({ length: 40 }, (_, position) => [position, { id: position }])) },
    status: { say: (text) => words.push(text), trouble: (error) => words.push(String(error)) },
  };
  return { marks, at, words, around, curation: new Curation(around) };
}

test("twenty are marked by two actions, taken back by one, and inverted", async () => {
  const all = server();
  const { curation, marks, words } = page(all.rpc);
  curation.begin(5);
  await curation.range(30);
  await curation.range(24);
  assert.deepEqual(
    Array.from({ length: 20 }, (_, at) => at + 5),
    [...all.marked].sort((a, b) => a - b),
  );
  assert.equal(20, marks.size);

  await curation.invert();
  assert.equal(20, marks.size);
  assert.ok(!marks.has(5) && marks.has(0));
  await curation.undo();
  assert.ok(marks.has(5) && !marks.has(0));
  await curation.all();
  await curation.none();
  assert.equal(0, all.marked.size);
  await curation.undo();
  assert.equal(40, all.marked.size);
  assert.ok(words.includes("taken back: 40 unmarked"));
});

test("a range begins at the first record, and leaves what was marked behind its end", async () => {
  const all = server();
  const { curation } = page(all.rpc);
  all.change([8], []);
  await curation.range(7);
  await curation.range(2);
  assert.deepEqual([0, 1, 2, 8], [...all.marked].sort());
});

test("all, none and the others are told, with a way back; one and a range are not; nothing is no step", async () => {
  const all = server();
  const { curation, around, at, words } = page(all.rpc);
  await curation.toggle();
  await curation.range(4);
  await curation.range(2);
  assert.deepEqual([], words);
  assert.equal(3, around.history.done.length);
  await curation.all();
  await curation.all();
  await curation.none();
  assert.deepEqual(["37 marked: 40 in all", "40 unmarked"], words.splice(0, 9));
  assert.equal(5, around.history.done.length, "what changed nothing is not taken back");
  await curation.undo();
  await curation.undo();
  await curation.redo();
  assert.deepEqual(["taken back: 40 unmarked", "taken back: 37 marked", "done again: 37 marked"], words.splice(0, 9));
  assert.equal(40, all.marked.size);
  await curation.none();
  await curation.all();
  assert.equal("40 marked", words.pop());
  at.at = 7;
  await curation.toggle();
  assert.deepEqual([39, false], [all.marked.size, all.marked.has(7)]);
  around.rows.items.clear();
  curation.toggle();
  assert.equal("The record is still on its way: mark it when it shows.", words.pop());
  at.count = 0;
  curation.toggle();
  assert.equal("No record shows that could be marked.", words.pop());
  curation.go(Promise.reject(new Error("no")), "", "");
  await new Promise(setImmediate);
  assert.equal("Error: no", words.pop());
  await page(all.rpc).curation.undo();
});

test("nothing is asked for where nobody has marked yet, and nothing twice", async () => {
  const asked = [];
  const [all, rpc] = [server(), async (name, msg) => (asked.push(name), all.rpc(name, msg))];
  const { marks } = page(rpc);
  await marks.take({ version: 0, count: 0 });
  await marks.take({ version: 0, count: 0 });
  assert.deepEqual([[], 0], [asked, marks.version]);
  all.change([1], []);
  await Promise.all([marks.take(all.told()), marks.take(all.told())]);
  assert.deepEqual([["marks"], [1]], [asked.splice(0), [...marks.rows]]);
  await marks.change([2], []);
  await marks.take(all.told());
  assert.deepEqual(["mark"], asked.splice(0), "what was marked here is known here");
  all.change([3], []);
  await marks.change([4], []);
  await marks.take(all.told());
  assert.deepEqual(["mark", "marks"], asked.splice(0), "another page has marked, too");
  const late = new Marks(rpc, () => {}, [5]);
  await late.take({ version: 0, count: 0 });
  assert.deepEqual([1, 2, 3, 4], [...late.rows], "a page that was opened with marks asks for those there are");
});

test("marks are told one after another, and who needs them there can wait, also for those that could not be", async () => {
  const [all, answers] = [server(), []];
  const rpc = (name, msg) => new Promise((go, fail) => answers.push([() => go(all.rpc(name, msg)), fail]));
  const { marks } = page(rpc);
  let told = 0;
  await marks.told.then(() => (told += 1));
  const [one, other] = [marks.change([1], []), marks.change([2], [])];
  marks.told.then(() => (told += 1));
  await new Promise((go) => setImmediate(go));
  assert.equal(1, answers.length, "the other waits for the first");
  answers[0][0]();
  await one;
  await new Promise((go) => setImmediate(go));
  assert.equal(1, told, "the other is under way");
  answers[1][1](new Error("no"));
  await assert.rejects(other, /no/);
  await marks.told;
  assert.equal(2, told);
  assert.deepEqual([1], [...marks.rows]);
});

test("what another page marks is heard of", async () => {
  const all = server();
  const [one, other] = [page(all.rpc), page(all.rpc)];
  await one.curation.toggle();
  await other.marks.take(all.told());
  assert.ok(other.marks.has(0));
  other.at.at = 3;
  await other.curation.toggle();
  await one.marks.take(all.told());
  assert.deepEqual([0, 3], [...one.marks.rows]);
});

test("an answer that was on its way while a record was marked does not take the mark away", async () => {
  const all = server();
  const late = [];
  const { curation, marks } = page(async (name, msg) => {
    const answer = await all.rpc(name, msg);
    if (name === "marks") await new Promise((go) => late.push(go));
    return answer;
  });
  all.change([7], []);
  const taking = marks.take(all.told());
  await curation.toggle();
  late.shift()();
  await taking;
  assert.ok(marks.has(0));

  const again = marks.take(all.told());
  await new Promise(setImmediate);
  late.shift()();
  await again;
  assert.deepEqual([0, 7], [...marks.rows].sort());
});

test("a mark that is refused is not shown, one without a kernel is", async () => {
  const refuse = (code) => async () => Promise.reject(new RpcError({ type: "", msg: "no", hint: "", code }));
  const refused = page(refuse("E_USAGE"));
  await refused.curation.toggle();
  assert.equal(0, refused.marks.size);

  const saved = page(refuse("no-kernel"));
  await saved.curation.toggle();
  assert.equal(1, saved.marks.size);
});

test("what is marked fast one after the other is asked for one by one: none overtakes another", async () => {
  const [all, options] = [server(), []];
  const { marks } = page(async (name, msg, more) => (options.push([name, more]), all.rpc(name, msg)));
  await marks.change([1], []);
  await marks.shown(0);

  assert.deepEqual(
    [
      ["mark", { keep: true }],
      ["mark_shown", { keep: true }],
    ],
    options,
  );
});

domTest("a view is kept under a name that was written, said to be, and dropped; what is refused is told", async () => {
  const told = [];
  const known = {};
  const rpc = async (name, { name: view, address }) => {
    told.push([name, view, address]);
    if (view === "bad") throw new Error("no");
    if (name === "save_view") known[view] = address;
    else delete known[view];
    return { r: { views: { ...known } } };
  };
  const around = {
    rpc,
    places: { address: () => "where=a", show: () => {} },
    status: { say: (text) => told.push(text), trouble: (error) => told.push(error.message) },
  };
  const views = new Views(around);
  const place = placed(views.box);
  const write = (name) => {
    views.name.value = name;
    press(views.name, "Enter");
  };
  write("  ");
  assert.deepEqual([], told);
  assert.equal(views.name, document.activeElement);
  press(views.name, "x");
  write(" cats ");
  await until(() => told.length === 2);
  assert.deepEqual([["save_view", "cats", "where=a"], "view cats is kept"], told.splice(0, 9));
  assert.equal("", views.name.value);
  assert.deepEqual(["cats", "where=a"], [views.list.querySelector("button").textContent, views.list.querySelector("button").title]);
  click(views.list.querySelector("[aria-label='drop the view cats']"));
  await until(() => views.list.textContent === "none yet");
  assert.deepEqual([["drop_view", "cats", undefined]], told.splice(0, 9));
  views.name.value = "bad";
  click([...views.box.querySelectorAll("button")].find((one) => one.textContent === "save"));
  await until(() => told.includes("no"));
  await new Promise(setImmediate);
  assert.deepEqual([["save_view", "bad", "where=a"], "no"], told, "what is refused is not said to be kept");
  assert.equal("bad", views.name.value);
  views.known = { all: "" };
  views.draw();
  assert.equal("all records, as in the tar", views.list.querySelector("button").title);
  place.remove();
});

domTest("a view that is chosen is shown, and the list of them closes", () => {
  const addresses = [];
  const asked = [];
  const rpc = async (name) => (asked.push(name), { r: { views: {} } });
  const views = new Views({ places: { show: (address) => addresses.push(address) }, rpc });
  views.box.open = true;
  assert.deepEqual(["views"], asked, "those of other pages, too");
  views.box.open = false;
  assert.equal(1, asked.length);
  views.known = { odd: "where=cls+%3D+1" };
  views.draw();
  views.box.open = true;
  click(views.list.querySelector(".tvz-link"));

  assert.deepEqual([["where=cls+%3D+1"], false], [addresses, views.box.open]);
});
