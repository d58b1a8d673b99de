// Suggestions below a text box: which one the keys take, what of the line stays, an answer that comes too late.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Completion } from "../../tarviz/widgets/browse/filters/complete.mjs";
import { h } from "../../tarviz/widgets/host/core.mjs";
import { RpcError } from "../../tarviz/widgets/host/requests.mjs";
import { click, placed, press, test, until } from "./dom.mjs";

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
