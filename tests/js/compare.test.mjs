// The comparison's helpers that need no browser. Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";

import { COMPARE_KEYS } from "../../tarviz/widgets/compare/compare_keys.mjs";
import { gained, nextGain, placed } from "../../tarviz/widgets/compare/picture_pairs.mjs";
import { numberText, slidersOf } from "../../tarviz/widgets/compare/sliders.mjs";
import { columnOrder, differenceText, lines, placeName, step, tileLabel, tileScale } from "../../tarviz/widgets/compare/strips.mjs";

const grid = {
  order: [0, 1, 2],
  lengths: [
    [3, 2, 1],
    [3, 0, 0],
  ],
  last: false,
};
const at = (record, column, place) => ({ record, column, step: place });

test("arrows move along a chain, from the original to the last step", () => {
  assert.deepEqual(step("ArrowRight", at(0, 0, 0), grid), at(0, 0, 1));
  assert.deepEqual(step("ArrowRight", at(0, 0, 2), grid), at(0, 0, 2));
  assert.deepEqual(step("ArrowLeft", at(0, 0, 2), grid), at(0, 0, 1));
  assert.deepEqual(step("ArrowLeft", at(0, 0, 0), grid), at(0, 0, -1));
  assert.deepEqual(step("ArrowLeft", at(0, 0, -1), grid), at(0, 0, -1));
});

test("down leads to the next chain, then to the next record, at the same step where there is one", () => {
  assert.deepEqual(step("ArrowDown", at(0, 0, 2), grid), at(0, 1, 1));
  assert.deepEqual(step("ArrowDown", at(0, 2, 0), grid), at(1, 0, 0));
  assert.deepEqual(step("ArrowUp", at(0, 1, 1), grid), at(0, 0, 1));
  assert.deepEqual(step("ArrowUp", at(1, 0, 0), grid), at(0, 2, 0));
  assert.deepEqual(step("ArrowUp", at(0, 0, 1), grid), at(0, 0, 1));
  assert.deepEqual(step("ArrowDown", at(1, 2, -1), grid), at(1, 2, -1));
});

test("a strip without steps is stood on at the original", () => {
  assert.deepEqual(step("ArrowDown", at(1, 0, 2), grid), at(1, 1, -1));
  assert.deepEqual(step("ArrowDown", at(1, 1, -1), grid), at(1, 2, -1));
  assert.deepEqual(step("ArrowRight", at(2, 0, -1), grid), at(2, 0, -1), "nor has a record that is not there yet");
});

test("with the last steps only, right leads from chain to chain", () => {
  const last = { ...grid, last: true };
  assert.deepEqual(step("ArrowRight", at(0, 0, -1), last), at(0, 0, 2));
  assert.deepEqual(step("ArrowRight", at(0, 0, 2), last), at(0, 1, 1));
  assert.deepEqual(step("ArrowLeft", at(0, 0, 2), last), at(0, 0, -1));
  assert.deepEqual(step("ArrowRight", at(0, 2, 0), last), at(0, 2, 0));
  assert.deepEqual(step("ArrowDown", at(0, 0, 2), last), at(1, 0, 2));
  assert.deepEqual(step("ArrowDown", at(0, 0, 0), { order: [0], lengths: [[1], [3]], last: true }), at(1, 0, 2));
});

test("other keys lead nowhere", () => assert.equal(step("Enter", at(0, 0, 0), grid), undefined));

test("no arrow ever leaves the grid", () => {
  let place = at(0, 0, 0);
  for (let turn = 0; turn < 2000; turn += 1) {
    place = step(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"][(turn * 7 + (turn >> 3)) % 4], place, {
      ...grid,
      last: turn % 3 === 0,
    });
    assert.ok(place.record >= 0 && place.record < 2 && place.column >= 0 && place.column < 3);
    assert.ok(place.step >= -1 && place.step < Math.max(1, grid.lengths[place.record][place.column]));
  }
});

test("the fastest chain first, other runners behind theirs", () => {
  const columns = [
    { name: "a", seconds: 3, runner: "eager" },
    { name: "a", seconds: 0.1, runner: "tf.data" },
    { name: "b", seconds: 1, runner: "eager" },
    { name: "c", seconds: null, runner: "eager" },
    { name: "d", seconds: null, runner: "eager" },
  ];
  assert.deepEqual(columnOrder(columns, false), [0, 1, 2, 3, 4]);
  assert.deepEqual(columnOrder(columns, true), [2, 0, 1, 3, 4]);
});

test("an original has one place, whatever the chain", () => {
  assert.equal(placeName(at(1, 0, -1)), placeName(at(1, 2, -1)));
  assert.notEqual(placeName(at(1, 0, 0)), placeName(at(1, 2, 0)));
});

test("differences in words", () => {
  assert.equal(differenceText({ text: "shapes differ" }), "shapes differ");
  assert.equal(differenceText({ text: "", kind: "uint8", max: 0 }), "no difference (uint8)");
  assert.equal(
    differenceText({ text: "", kind: "uint8", max: 12, mean: 0.031, share: 0.5, at: [4, 7, 2] }),
    "largest 12 at (7, 4) · mean 0.0310 · 50 % differ (uint8)",
  );
  assert.match(differenceText({ text: "", kind: "float32", max: null, mean: null, share: 0.001, at: [] }), /not finite.*0\.10 % differ/);
});

test("a tile in a sentence", () => {
  assert.equal(
    tileLabel({ op: "", feature: "bytes", range: "3 bytes", ms: "", drawn: "", mapping: "", error: "" }),
    "original, bytes, 3 bytes",
  );
  assert.equal(
    tileLabel({ op: "flip(jpg)", feature: "", range: "", ms: "", drawn: "", mapping: "", error: "E_OP: no" }),
    "flip(jpg), failed: E_OP: no",
  );
});

test("the difference is amplified and never wraps", () => {
  const a = new Uint8ClampedArray([10, 20, 30, 255, 0, 0, 0, 0]);
  const b = new Uint8ClampedArray([12, 20, 230, 255, 0, 0, 0, 255]);
  const { out, largest } = gained(a, b, 4);
  assert.deepEqual([...out], [8, 0, 255, 255, 0, 0, 0, 255]);
  assert.equal(largest, 200);
  assert.equal(gained(a, a, 64).largest, 0);
});

test("gains go in steps and stop at the ends", () => {
  assert.equal(nextGain(8, 1), 16);
  assert.equal(nextGain(64, 1), 64);
  assert.equal(nextGain(1, -1), 1);
});

test("a picture fits its room, small ones grow by whole numbers, zoom keeps the middle", () => {
  const room = { width: 400, height: 300 };
  const whole = placed({ width: 800, height: 300 }, room, { zoom: 1, x: 0.5, y: 0.5 });
  assert.deepEqual(whole, { scale: 0.5, left: 0, top: 75 });
  assert.equal(placed({ width: 28, height: 28 }, room, { zoom: 1, x: 0.5, y: 0.5 }).scale, 10);
  assert.equal(placed({ width: 2, height: 2 }, room, { zoom: 1, x: 0.5, y: 0.5 }).scale, 16);
  const near = placed({ width: 800, height: 300 }, room, { zoom: 4, x: 0.25, y: 0.5 });
  assert.equal(near.left + 0.25 * 800 * near.scale, 200);
});

test("text is cut into lines", () => {
  assert.deepEqual(lines("one two three", 7), ["one two", "three"]);
  assert.deepEqual(lines("abcdefghij", 4), ["abcd", "efgh", "ij"]);
  assert.ok(lines("x ".repeat(999), 20).every((line) => line.length <= 20));
});

test("every key is explained once", () => {
  const keys = COMPARE_KEYS.flatMap(([names]) => names.split(" "));
  assert.equal(new Set(keys).size, keys.length);
});

test("small pictures grow by whole numbers in a tile, large ones shrink to fit", () => {
  assert.equal(tileScale(20, 30, 120), 4);
  assert.equal(tileScale(100, 61, 120), 1);
  assert.equal(tileScale(240, 100, 120), 0.5);
});

test("sliders are kept while their chain has the same numbers", () => {
  const wheel = { op: 1, name: "size", at: 0, label: "resize size height", value: 32, low: 1, high: 128, step: 1 };
  const column = { name: "a", numbers: [wheel] };
  assert.equal(slidersOf(column), slidersOf({ name: "a", numbers: [{ ...wheel, value: 40 }] }));
  assert.notEqual(slidersOf(column), slidersOf({ name: "b", numbers: [wheel] }));
  assert.equal(slidersOf(undefined), "");
  assert.deepEqual(["0.123", "32", "31.99"], [0.12345, 32, 31.99].map(numberText));
});
