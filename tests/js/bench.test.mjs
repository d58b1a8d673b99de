// The bench's helpers that need no browser. Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";

import { BENCH_KEYS } from "../../tarviz/widgets/bench/bench.mjs";
import { formatMs, formatRate, nearest, readPoints, ticks } from "../../tarviz/widgets/bench/figures.mjs";

test("points are little-endian floats, a piece at the end is left", () => {
  const view = new DataView(new ArrayBuffer(12 * 2 + 5), 0);
  [1, 2, 3, 4, 5, 6].forEach((value, at) => view.setFloat32(at * 4, value, true));
  assert.deepEqual(readPoints(view), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  assert.deepEqual(readPoints(new DataView(new ArrayBuffer(0))), []);
});

test("points may lie anywhere in a message", () => {
  const bytes = new ArrayBuffer(1 + 12);
  const view = new DataView(bytes, 1);
  view.setFloat32(4, 7.5, true);
  assert.deepEqual(readPoints(view), [[0, 7.5, 0]]);
});

test("marks of an axis are round, reach the top and are few", () => {
  assert.deepEqual(ticks(100), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ticks(0.3, 3), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ticks(0), [0, 1]);
  assert.deepEqual(
    [ticks(4.2), ticks(4.2, 3), ticks(11), ticks(30), ticks(5.1)],
    [
      [0, 1, 2, 3, 4, 5],
      [0, 2, 4, 6],
      [0, 2.5, 5, 7.5, 10, 12.5],
      [0, 10, 20, 30],
      [0, 2, 4, 6],
    ],
  );
  for (let top = 0.0013; top < 1e7; top *= 1.37) {
    const marks = ticks(top);
    assert.ok(marks.at(-1) >= top * (1 - 1e-9), `${top}: ${marks}`);
    assert.ok(marks.length >= 2 && marks.length <= 7, `${top}: ${marks}`);
    assert.equal(marks[0], 0);
  }
});

test("rates and times as people read them", () => {
  assert.equal(formatRate(123456.7), "123,457");
  assert.equal(formatRate(42.31), "42.3");
  assert.equal(formatRate(1000), "1,000");
  assert.deepEqual([null, undefined, Infinity, 0].map(formatRate), ["", "", "", "0"]);
  assert.equal(formatRate(NaN), "");
  assert.equal(formatMs(0.01234), "0.012");
  assert.equal(formatMs(12.34), "12.3");
  assert.equal(formatMs(1234), "1234");
  assert.deepEqual([99.96, 100, 0.9996, 1, 0].map(formatMs), ["100.0", "100", "1.000", "1.0", "0.000"]);
  assert.equal(formatMs(undefined), "");
});

test("the point under the pointer", () => {
  const points = [
    [0.5, 1, 0],
    [1, 2, 0],
    [1.5, 3, 0],
  ];
  assert.deepEqual(nearest(points, 1.2), [1, 2, 0]);
  assert.deepEqual(nearest(points, 9), [1.5, 3, 0]);
  assert.deepEqual(nearest(points, 0.75), [0.5, 1, 0]);
  assert.equal(nearest([], 1), undefined);
});

test("every key is explained once", () => {
  const keys = BENCH_KEYS.flatMap(([names]) => names.split(" "));
  assert.equal(new Set(keys).size, keys.length);
});
