// The bench's page over its real controller: it measures, stops, goes on for longer; what it draws of the rate.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import bench from "../../tarviz/widgets/bench/bench.mjs";
import { press, test, until } from "./dom.mjs";
import { opened } from "./pages.mjs";

let page;
afterEach(() => page?.end());

/** `drawnBy` hands no view out: the page's element is what a reader has. */
class Bench {
  constructor(model, el, signal) {
    bench.render({ model, el, signal });
    this.root = el.firstElementChild;
  }
}

test("it measures, says what limits, lists stages and results, and measures again for longer", async () => {
  page = await opened("bench", Bench);
  const stop = page.find(".tvz-stop");
  await until(() => stop.textContent === "done", 60_000);
  assert.ok(stop.disabled);
  assert.match(page.find(".tvz-verdict").textContent, /: .*\.$/);
  assert.ok(page.all(".tvz-panel-stages tr").length >= 2);
  assert.ok(page.all(".tvz-panel-results tr").length >= 1);
  const calls = page.find("canvas.tvz-line").pen.calls.map(([name]) => name);
  assert.ok(calls.includes("lineTo") && calls.includes("fillText"));

  press(page.root, "l");
  await until(() => page.last("again"));
  assert.deepEqual({ times: 3 }, page.last("again"));
  await until(() => stop.textContent === "Stop");
  assert.ok(page.button("run again").hidden && !page.button("pause").hidden);
  press(page.root, "p");
  assert.equal("true", page.button("pause").getAttribute("aria-pressed"));
  press(page.root, "p");
  press(page.root, "s");
  assert.match(stop.textContent, /^stop|^done/);
  await until(() => !page.button("run again").hidden, 60_000);
  assert.ok(["stopped", "done"].includes(stop.textContent));
});

test("digits turn to line, stages and results; the sheet has the keys meanwhile", async () => {
  page = await opened("bench", Bench);
  const selected = () => page.all(".tvz-tab").map((tab) => tab.getAttribute("aria-selected"));
  assert.deepEqual(["true", "false", "false"], selected());
  press(page.root, "3");
  assert.deepEqual(["false", "false", "true"], selected());
  assert.equal("3", page.root.dataset.view);
  press(page.root, "?");
  assert.ok(page.find(".tvz-sheet"));
  assert.ok(!press(page.root, "1"));
  press(page.root, "Escape");
  assert.ok(!page.find(".tvz-sheet"));
  for (const there of [true, false]) assert.deepEqual([true, there], [press(page.root, "?"), page.find(".tvz-sheet") !== null]);
  assert.equal("3", page.root.dataset.view);
});
