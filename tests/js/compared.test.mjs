// The comparison's page over its real controller: keys, pins, seeds, numbers, what is said of a step that fails.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { CompareView } from "../../tarviz/widgets/compare/compare.mjs";
import { RpcError } from "../../tarviz/widgets/host/requests.mjs";
import { click, press, put, test, until, wheel } from "./dom.mjs";
import { golden } from "./golden.mjs";
import { opened } from "./pages.mjs";

let page;
afterEach(() => page?.end());

/** The comparison of three chains on three records, when all has run. */
async function comparing() {
  page = await opened("compare", CompareView);
  await until(() => !page.view.running && page.all(".tvz-ctile").length >= 3 * (1 + 3 + 3 + 2));
  return page;
}
const list = () => page.find(".tvz-strips");
const place = () => ({ ...page.view.at });
const stand = (record, column, step) => click(page.find(`[data-place='${JSON.stringify({ record, column, step })}']`));

test("every step of every chain on every record, the errors in their tiles", async () => {
  await comparing();

  assert.equal(3, page.all(".tvz-ctile .tvz-refused").length);
  assert.match(page.find(".tvz-ctile .tvz-refused").textContent, /E_SCHEMA/);
  await golden("compare", page.find(".tvz-strips"));
});

test("arrows walk the steps and the chains, n and p the records", async () => {
  await comparing();
  stand(0, 0, 0);
  assert.deepEqual({ record: 0, column: 0, step: 0 }, place());
  for (const [key, wanted] of [
    ["ArrowRight", { record: 0, column: 0, step: 1 }],
    ["ArrowDown", { record: 0, column: 1, step: 1 }],
    ["ArrowLeft", { record: 0, column: 1, step: 0 }],
    ["ArrowUp", { record: 0, column: 0, step: 0 }],
    ["n", { record: 1, column: 0, step: 0 }],
    ["p", { record: 0, column: 0, step: 0 }],
    ["p", { record: 0, column: 0, step: 0 }],
  ]) {
    press(list(), key);
    assert.deepEqual(wanted, place(), key);
  }
  press(list(), "n");
  press(list(), "n");
  press(list(), "n");
  assert.equal(2, place().record);
});

test("a step is pinned as A or B, and let go by the same key", async () => {
  await comparing();
  stand(0, 1, 1);
  press(list(), "a");
  assert.deepEqual({ column: 1, step: 1 }, page.view.a);
  press(list(), "b");
  assert.deepEqual({ column: 1, step: 1 }, page.view.b);
  assert.match(page.find(".tvz-stage-words").textContent, /A and B are the same step/);
  press(list(), "ArrowRight");
  press(list(), "a");
  assert.deepEqual({ column: 1, step: 2 }, page.view.a);
  await until(() => page.last("difference")?.a?.[1] === 2);
  stand(0, 1, 1);
  press(list(), "b");
  assert.equal(null, page.view.b);
});

test("the stage wipes, blinks and subtracts; the gain doubles", async () => {
  await comparing();
  const { stage } = page.view;
  const modes = ["w", "x", "d", "d", "w", "w"].map((key) => (press(list(), key), stage.mode));
  assert.deepEqual(["wipe", "blink", "difference", "side", "wipe", "side"], modes);
  press(list(), "d");
  press(list(), "+");
  assert.equal(16, stage.gain);
  press(list(), "-");
  press(list(), "-");
  assert.equal(4, stage.gain);
  press(list(), "w");
  press(stage.root.querySelector(".tvz-stage-frame"), "ArrowRight");
  assert.ok(Math.abs(stage.cut - 0.52) < 1e-9);
});

test("only the last steps, the fastest first, other sizes", async () => {
  await comparing();
  stand(0, 1, 0);
  press(list(), "l");
  assert.deepEqual({ record: 0, column: 1, step: 2 }, place());
  await until(() => page.all(".tvz-ctile").length < 20);
  assert.equal("true", page.button("last step only").getAttribute("aria-pressed"));
  press(list(), "l");
  press(list(), "t");
  await until(() => page.button("fastest first").getAttribute("aria-pressed") === "true");
  const times = page.view.order.map((at) => page.view.columns[at].ms ?? page.view.columns[at].time ?? at);
  assert.equal(3, new Set(page.view.order).size, String(times));
  put(page.find("[aria-label='size of the tiles']"), "88");
  assert.equal(88, page.view.px);
});

test("new seeds for one chain and for all, and a chain without any says so", async () => {
  await comparing();
  stand(0, 0, 0);
  press(list(), "r");
  await until(() => /draws no random numbers/.test(page.root.textContent));
  assert.equal(undefined, page.last("reroll"));
  press(list(), "R");
  await until(() => page.last("reroll"));
  assert.equal(null, page.last("reroll").column);
  await until(() => !page.view.running);
});

test("a number of a chain is moved by its slider, and the chain runs again", async () => {
  await comparing();
  stand(0, 0, 1);
  press(list(), "s");
  const slider = page.find(".tvz-sliders input[type=range]");
  assert.match(page.find(".tvz-sliders").textContent, /^small/);
  put(slider, String(Number(slider.value) + 4));
  await until(() => page.last("tune"));
  const { column, value } = page.last("tune");
  assert.deepEqual([0, 24], [column, value]);
  await until(() => !page.view.running && /24/.test(page.view.columns[0].chain));
  put(slider, "20");
  await until(() => !page.view.running && /\(20/.test(page.view.columns[0].chain));
});

test("one record more comes at the end, until there are no more", async () => {
  await comparing();
  for (const count of [4, 5, 6]) {
    click(page.button("+ record"));
    await until(() => page.view.records.length === count && !page.view.running);
    assert.equal(count - 1, place().record);
  }
  click(page.button("+ record"));
  await until(() => /There are no more records|At most/.test(page.root.textContent));
});

test("the stage paints both pictures side by side, one over the other, and what differs", async () => {
  await comparing();
  const { stage } = page.view;
  stand(0, 0, 1);
  await until(() => stage.sides.every(({ bitmap }) => bitmap));
  for (const [key, name] of [
    ["", "side"],
    ["w", "wipe"],
    ["d", "difference"],
  ]) {
    if (key) press(list(), key);
    await golden(`stage-${name}`, stage.frame);
  }
  press(list(), "d");
  list().focus();
  const under = () => (click(stage.canvas, { clientX: 300, clientY: 200 }, "pointermove"), stage.probe.textContent);
  const place = /^\(\d+, \d+\) A 0 0 0 · B 0 0 0 · (\d+) %$/;
  const before = Number(under().match(place)[1]);
  wheel(stage.canvas, -200, { ctrlKey: true, clientX: 300, clientY: 200 });
  assert.ok(Number(under().match(place)[1]) > before * 1.3);
  await golden("stage-closer", stage.frame);
  click(stage.canvas, { buttons: 1, movementX: 12, movementY: 5 }, "pointermove");
  await golden("stage-dragged", stage.frame);
  click(stage.canvas, {}, "dblclick");
  assert.equal(1, stage.view.zoom);
  click(stage.canvas, { clientX: 1000, clientY: 599 }, "pointermove");
  assert.equal("\u200b", stage.probe.textContent);
  press(list(), "w");
  click(stage.canvas, { clientX: 250, clientY: 9 }, "pointerdown");
  assert.equal(0.25, stage.cut);
});

test("a step that failed is on the stage in words", async () => {
  await comparing();
  stand(0, 2, 1);
  await until(() =>
    page.view.stage.canvas.pen.calls.some(([name, text]) => name === "fillText" && /E_SCHEMA|random_crop|larger/.test(text)),
  );
  await golden("stage-refused", page.view.stage.frame);
});

test("another runner comes beside its chain, and the pins stay on theirs", async () => {
  const { view } = await comparing();
  stand(0, 1, 1);
  press(list(), "a");
  press(list(), "b");
  const [first, second, third] = view.columns;
  const listed = (columns) =>
    (page.change = (name, answer) =>
      name === "add" ? { ...answer, err: undefined, r: {} } : name === "poll" ? { ...answer, r: { ...answer.r, columns } } : answer);
  listed([first, { ...first, runner: "other" }, second, third]);
  const adding = view.changes.add("other");
  assert.deepEqual([1, 1, 1], [view.at.column, view.a.column, view.b.column], "nothing moves before the columns do");
  await adding;
  await until(() => view.columns.length === 4);
  assert.deepEqual([{ runner: "other" }, 2, 2, 2], [page.last("add"), view.at.column, view.a.column, view.b.column]);
  assert.equal(0, view.strips.size, "they are told anew");
  await until(() => !view.running);
  listed([third]);
  await view.changes.add("other");
  await until(() => view.columns.length === 1);
  assert.equal(0, view.at.column, "a chain that is gone gives way to the first");
  await until(() => !view.running);
});

test("what is asked for and comes to nothing is told", async () => {
  const { view } = await comparing();
  const answered = (r) => (page.change = (name, answer) => (name === "more" ? { ...answer, err: undefined, r } : answer));
  answered({ found: false, count: view.config.most });
  await view.changes.more();
  assert.equal(`At most ${view.config.most} records.`, page.find(".tvz-status").textContent);
  answered({ found: false, count: view.config.most - 1 });
  await view.changes.more();
  assert.equal("There are no more records.", page.find(".tvz-status").textContent);
  assert.deepEqual({ count: 1 }, page.last("more"));
  page.change = (name, answer) =>
    name === "reroll" ? { ...answer, r: undefined, err: { type: "X", msg: "no", hint: "try", code: "E_X" } } : answer;
  await view.changes.reroll(1);
  assert.deepEqual([{ column: 1 }, "no try"], [page.last("reroll"), page.find(".tvz-status").textContent]);
});

test("a comparison whose kernel is gone keeps its thumbnails and asks no more", async () => {
  const { view } = await comparing();
  const told = (fault) => {
    view.trouble(fault instanceof Error ? fault : new RpcError({ type: "X", msg: "gone", hint: "again", code: "E_X", ...fault }));
    return [page.find(".tvz-status").textContent, view.lost];
  };
  assert.deepEqual(["Error: odd", false], told(new Error("odd")));
  assert.deepEqual(["gone again", false], told({}));
  assert.deepEqual(
    ["Error: odd", false],
    (told(new Error("odd")), told(new RpcError({ code: "overtaken", msg: "late" })), told(new Error("odd"))),
  );
  assert.deepEqual(["gone", true], told({ code: "no-kernel", type: "Saved" }));
  assert.deepEqual(["gone again The thumbnails that were there stay.", true], told({ code: "no-kernel" }));
  const { length } = page.asked;
  stand(1, 1, 2);
  assert.equal(undefined, await view.full({ record: 1, column: 1, step: 2 }));
  assert.equal(length, page.asked.length);
});
