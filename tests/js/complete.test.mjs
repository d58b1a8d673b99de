// What is written on the page: suggestions below a text box, the filter and the choosers beside it, the box for SQL.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Completion } from "../../tarviz/widgets/browse/filters/complete.mjs";
import { SqlBox } from "../../tarviz/widgets/browse/page/sql_box.mjs";
import { Tools } from "../../tarviz/widgets/browse/page/tools.mjs";
import { h } from "../../tarviz/widgets/host/core.mjs";
import { RpcError } from "../../tarviz/widgets/host/requests.mjs";
import { click, placed, press, put, test, until } from "./dom.mjs";

const ITEMS = [
  ["json.w", "int"],
  ["json.h", "int"],
  ["json.label", "text"],
];
const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** A box with `text`, the cursor at |, and suggestions for what begins at `start`. */
async function suggested(text, { start = 0, answer = async () => ({ r: { start, items: ITEMS } }), ...options } = {}) {
  const input = h("input", { type: "text" });
  const end = new AbortController();
  const root = placed(input);
  const asked = [];
  const rpc = async (...request) => {
    asked.push(request);
    return answer(input);
  };
  const help = new Completion({ signal: end.signal, root, rpc, scan: { lost: false } }, input, options);
  root.append(help.list);
  ends.push(() => (end.abort(), root.remove()));
  input.focus();
  input.value = text.replace("|", "");
  input.setSelectionRange(text.indexOf("|"), text.indexOf("|"));
  await help.ask();
  return { input, help, asked, chosen: () => help.list.querySelector("[aria-selected=true] .tvz-mono")?.textContent };
}

test("the box asks for what can stand at the cursor", async () => {
  const { asked, input, help } = await suggested("cls = 1 and js| > 3", { label: true });

  assert.deepEqual([["complete", { text: "cls = 1 and js > 3", at: 14, label: true }]], asked);
  assert.ok(help.shown);
  assert.equal("true", input.getAttribute("aria-expanded"));
  assert.deepEqual(
    ["json.wint", "json.hint", "json.labeltext"],
    [...help.list.children].map((one) => one.textContent),
  );
});

test("down takes the first, up from the box the last, and both go round", async () => {
  const { input, help, chosen } = await suggested("js|");
  assert.ok(press(input, "ArrowUp"));
  assert.equal("json.label", chosen());
  assert.equal(`${help.uid}-2`, input.getAttribute("aria-activedescendant"));
  press(input, "ArrowUp");
  assert.equal("json.h", chosen());
  for (const wanted of ["json.label", "json.w", "json.h"]) {
    press(input, "ArrowDown");
    assert.equal(wanted, chosen());
  }
  press(input, "ArrowUp");
  assert.deepEqual(["json.w", `${help.uid}-0`], [chosen(), input.getAttribute("aria-activedescendant")]);
  press(input, "ArrowUp");
  assert.equal("json.label", chosen());
});

test("what is taken stands in the place of what was begun, and the rest of the line stays", async () => {
  let taken = 0;
  const { input, help } = await suggested("cls = 1 and js| > 3 or has:txt", { start: 12, take: () => (taken += 1) });
  press(input, "ArrowDown");
  assert.ok(press(input, "Enter"));

  assert.equal("cls = 1 and json.w > 3 or has:txt", input.value);
  assert.deepEqual([18, 18, 1], [input.selectionStart, input.selectionEnd, taken]);
  assert.ok(!help.shown);
  assert.equal("false", input.getAttribute("aria-expanded"));
});

test("Tab takes the first, a click the one under the pointer, Enter without a choice none", async () => {
  const tab = await suggested("js|");
  press(tab.input, "Tab");
  assert.equal("json.w", tab.input.value);

  const pointed = await suggested("js|");
  click(pointed.help.list.children[2].firstChild, {}, "pointerdown");
  assert.equal("json.label", pointed.input.value);

  const entered = await suggested("js|");
  assert.ok(!press(entered.input, "Enter"), "the box itself hears it");
  assert.equal("js", entered.input.value);
  assert.ok(!entered.help.shown);
});

test("Escape puts the suggestions away, and other keys are the box's own", async () => {
  const { input, help } = await suggested("js|");
  assert.ok(!press(input, "a"));
  assert.ok(help.shown);
  assert.ok(press(input, "Escape"));
  assert.ok(!help.shown);
  assert.ok(!press(input, "ArrowDown"));
});

test("an answer for a place that the cursor has left is not shown", async () => {
  const answer = async (input) => {
    input.setSelectionRange(5, 5);
    return { r: { start: 0, items: ITEMS } };
  };
  const { help } = await suggested("js| > 3", { answer });

  assert.ok(!help.shown);
  assert.deepEqual([], help.items);
});

test("where the controller knows nothing, nothing is suggested", async () => {
  const { help } = await suggested("js|", { answer: () => Promise.reject(new RpcError({ type: "", msg: "no", hint: "", code: "" })) });

  assert.ok(!help.shown);
});

test("a box that was left or is empty is not asked for, nor a server that is gone", async () => {
  const { asked } = await suggested("|");
  assert.deepEqual([], asked);
  const { input, help, asked: later } = await suggested("js|");
  input.blur();
  await help.ask();
  input.focus();
  help.around.scan.lost = true;
  await help.ask();
  assert.equal(1, later.length);
});

test("a key that the suggestions take does not reach the box", async () => {
  const { input } = await suggested("js|");
  const heard = [];
  input.addEventListener("keydown", (event) => heard.push(event.key));

  for (const key of ["ArrowDown", "x", "Enter", "Enter"]) press(input, key);

  assert.deepEqual(["x", "Enter"], heard);
});

test("while columns are made it is asked again, and what is chosen stays until there is more", async () => {
  const more = [["json.x", "int"], ...ITEMS];
  const answers = [true, true, false].map((making) => ({ start: 0, items: making ? ITEMS : more, making }));
  let told = 0;
  const { input, help, chosen } = await suggested("js|", { answer: async () => ({ r: answers[told++] }) });
  press(input, "ArrowDown");

  await until(() => told === 2);
  assert.equal("json.w", chosen());
  await until(() => help.items.length === 4);
  assert.equal(3, told);
});

test("where no column is wanted it says so", async () => {
  const { asked } = await suggested("js|");

  assert.deepEqual([["complete", { text: "js", at: 2, label: false }]], asked);
});

/** The tools of a page, and what they ask of its other parts. */
function tooled() {
  const end = new AbortController();
  const asked = [];
  const part = (name) =>
    new Proxy(
      {},
      {
        get:
          (_, what) =>
          (...values) =>
            void asked.push([`${name}.${what}`, ...values]),
      },
    );
  const wish = { where: "", sort: "order", column: undefined, descending: false, shard: null, objects: false };
  const around = {
    ...{ config: { sizes: [96, 160] }, signal: end.signal, rpc: async () => ({ r: { start: 0, items: [] } }), records: { wish } },
    ...{ look: { px: 160, label: "", image: "f2" }, scan: { lost: false, shards: [] }, leave: () => asked.push(["leave"]) },
    ...Object.fromEntries(["searches", "frame", "curation", "beside", "keep"].map((name) => [name, part(name)])),
  };
  const tools = new Tools(around);
  const place = placed(tools.root);
  ends.push(() => (end.abort(), place.remove()));
  return { tools, around, wish, asked: () => asked.splice(0) };
}
const optionsOf = (select) => [...select.querySelectorAll("option")].map((one) => one.textContent);

test("a filter is asked for when nobody writes any more and it is another, or at once by Enter", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { tools, wish, asked } = tooled();
  put(tools.filter, "cls = 1 ");
  t.mock.timers.tick(300);
  assert.deepEqual([], asked());
  t.mock.timers.tick(200);
  assert.deepEqual([["searches.run", { where: "cls = 1 " }]], asked());
  wish.where = "cls = 1";
  put(tools.filter, "  cls = 1");
  t.mock.timers.tick(500);
  assert.deepEqual([], asked());
  press(tools.filter, "x");
  press(tools.go, "x");
  assert.deepEqual([], asked());
  press(tools.filter, "Enter");
  assert.deepEqual([["searches.run", { where: "  cls = 1" }], ["leave"]], asked());
  tools.askGo();
  tools.go.value = "#3";
  press(tools.go, "Enter");
  assert.deepEqual([["searches.goTo", "#3"]], asked());
  tools.go.dispatchEvent(new Event("blur"));
  assert.ok(tools.go.hidden);
});

test("the choosers offer columns, fields and shards, as many as one looks through, and say what was searched for", () => {
  const { tools, around, wish, asked } = tooled();
  const many = (letter, count) => Array.from({ length: count }, (_, at) => `${letter}${at}`);
  put(tools.order, "key");
  tools.offerColumns(["old"]);
  tools.offerColumns(many("c", 101));
  assert.deepEqual(["key", 105, "order: c0"], [tools.order.value, tools.order.options.length, optionsOf(tools.order)[5]]);
  put(tools.order, "by c7");
  assert.deepEqual(
    [
      ["searches.run", { sort: "key", column: undefined }],
      ["searches.run", { sort: "label", column: "c7", descending: false }],
    ],
    asked(),
  );
  const said = (more) => (tools.showSearch({ ...wish, ...more }), [tools.order.value, tools.shard.value]);
  tools.offerFields(many("f", 61).map((name) => [name, 1]));
  assert.deepEqual([61, "picture: f0", "f2"], [tools.field.options.length, optionsOf(tools.field)[1], tools.field.value]);
  wish.shard = 1;
  around.scan.shards = [0, 1].map((number) => ({ number, name: `s${number}` }));
  tools.offerShards();
  assert.deepEqual([false, ["all shards", "s0", "s1"], "1"], [tools.shard.hidden, optionsOf(tools.shard), tools.shard.value]);
  assert.deepEqual(["by c7", "0"], said({ sort: "label", column: "c7", shard: 0 }));
  assert.deepEqual(["size", ""], said({ sort: "size", column: "c7", shard: null }));
  assert.equal("label", said({ sort: "label" })[0]);
  assert.deepEqual([false, true], [tools.filterHelp.label, tools.labelHelp.label], "a caption is a column");
});

/** The box for SQL; `ends` are what ends its queries, the first first. */
function asking() {
  const [asked, said, queries] = [[], [], []];
  const rpc = (name, msg) => {
    asked.push(msg?.query ?? name);
    return name === "sql" ? new Promise((found, failed) => queries.push({ found: (r) => found({ r }), failed })) : Promise.resolve({});
  };
  const box = new SqlBox({
    ...{ rpc, leave: () => said.push("leave"), copies: { text: (text) => said.push(text) } },
    searches: { goTo: (key) => said.push(key) },
  });
  const place = placed(box.root);
  ends.push(() => place.remove());
  return { box, queries, said, asked: () => asked.splice(0), words: () => [box.words.textContent, box.halt.hidden] };
}
const turns = () => new Promise(setImmediate);

test("a query runs by Ctrl and Enter; the one before it says nothing any more; stop is there while one runs", async () => {
  const { box, queries, asked, words } = asking();
  assert.ok(box.halt.hidden && !box.shown);
  box.toggle();
  box.text.value = "one";
  press(box.text, "Enter");
  press(box.text, "x", { ctrlKey: true });
  assert.deepEqual([], asked());
  press(box.text, "Enter", { metaKey: true });
  box.text.value = "two";
  press(box.text, "Enter", { ctrlKey: true });
  assert.deepEqual(["one", "two"], asked());
  assert.deepEqual(["running …", false], words());
  queries[0].found({ columns: ["a"], rows: [[1]], more: false });
  await turns();
  assert.deepEqual(["running …", false, ""], [...words(), box.answer.textContent]);
  queries[1].found({
    columns: ["key", "n"],
    rows: [
      ["k", 1],
      [null, "two"],
    ],
    more: true,
  });
  await turns();
  assert.deepEqual(["the first 2 rows; there are more", true], words());
  assert.deepEqual(
    ["BUTTON", "tvz-number", "", ""],
    [...box.answer.querySelectorAll("td")].map((cell) => cell.firstElementChild?.tagName ?? cell.className),
  );
  box.run();
  box.run();
  queries[2].failed(new Error("ended"));
  await turns();
  assert.deepEqual(["running …", false], words());
  asked();
  box.close();
  assert.deepEqual(["stop_sql"], asked(), "a query that nobody waits for ends");
  queries[3].failed(new Error("no"));
  await turns();
  assert.deepEqual(["Error: no", true], words());
  box.toggle();
  box.toggle();
  assert.deepEqual([false, []], [box.shown, asked()]);
});
