// The map's helpers that need no browser: painting, pointing, counting what a line holds, colours.
import assert from "node:assert/strict";
import { test } from "node:test";

import { splat } from "../../tarviz/widgets/map/painters.mjs";
import { countInside, dotOf, nearest, thinned } from "../../tarviz/widgets/map/scatter.mjs";
import { channels, packed, paint, shortValue } from "../../tarviz/widgets/map/map_values.mjs";

const LOOK = { scaleX: 50, scaleY: 25, atX: 50, atY: 25, dot: 1 };

/** Pixels (x, y) that were painted. */
function painted(look, places, colours, width = 100, height = 50) {
  const pixels = new Uint32Array(width * height);
  splat(pixels, width, height, Float32Array.from(places), Uint32Array.from(colours), look, 0, colours.length);
  return [...pixels.entries()].filter(([, colour]) => colour).map(([at, colour]) => [at % width, Math.floor(at / width), colour]);
}

test("a point lands at its pixel, up is up, what is out of view is not drawn", () => {
  assert.deepEqual([[50, 25, 7]], painted(LOOK, [0, 0], [7]));
  assert.deepEqual([[75, 12, 7]], painted(LOOK, [0.5, 0.5], [7]));
  assert.deepEqual([], painted(LOOK, [1.2, 0, 0, -1.2, -3, 0], [7, 8, 9]));
  assert.deepEqual([[50, 25, 8]], painted(LOOK, [0, 0, 0, 0], [7, 8]), "the later one lies above");
});

test("large points are round and are cut at the edge", () => {
  const dots = painted({ ...LOOK, dot: 7 }, [0, 0], [5]);
  const across = (y) => dots.filter(([, row]) => row === y).length;
  assert.equal(7, new Set(dots.map(([, y]) => y)).size);
  assert.ok(across(22) < across(25), "fewer pixels at the top than in the middle");
  assert.equal(7, across(25));
  const cut = painted({ ...LOOK, dot: 7 }, [-1, 1], [5]);
  assert.ok(cut.length > 5 && cut.length < dots.length / 2);
});

test("the nearest point is measured in pixels", () => {
  const places = Float32Array.from([0, 0, 0.1, 0, 0, 0.1]);
  assert.equal(0, nearest(places, LOOK, 51, 25, 14));
  assert.equal(1, nearest(places, LOOK, 54, 25, 14));
  assert.equal(2, nearest(places, LOOK, 50, 22, 14));
  assert.equal(-1, nearest(places, LOOK, 90, 40, 14));
});

test("a line holds what lies inside it, by even and odd", () => {
  const places = Float32Array.from([0, 0, 0.5, 0.5, 2, 0, -0.9, 0.9]);
  assert.equal(3, countInside(places, [-1, -1, 1, -1, 1, 1, -1, 1]));
  assert.equal(2, countInside(places, [-1, -1, 1, -1, 1, 1]), "the lower triangle: the middle and one on its edge");
});

test("a long line keeps as many corners as are allowed, in pairs", () => {
  const line = Array.from({ length: 5000 }, (_, at) => at);
  const found = thinned(line);
  assert.ok(found.length / 2 <= 400 && found.length / 2 > 200);
  for (let at = 0; at < found.length; at += 2) assert.equal(found[at] + 1, found[at + 1]);
  assert.deepEqual([1, 2, 3, 4, 5, 6], thinned([1, 2, 3, 4, 5, 6]));
});

test("points shrink as there are more, grow a little when one comes closer", () => {
  assert.ok(dotOf(100, 1) > dotOf(10_000, 1) && dotOf(10_000, 1) > dotOf(1_000_000, 1));
  assert.ok(dotOf(1_000_000, 1) >= 1);
  assert.ok(dotOf(1000, 30) > dotOf(1000, 1) && dotOf(100, 5000) <= 9);
});

test("codes become colours as a canvas holds them", () => {
  assert.equal(0xff030201, packed(1, 2, 3));
  assert.deepEqual(
    [0x800000ff, 0x8000ff00],
    [...paint(Uint8Array.of(0, 1), Uint8Array.of(255, 0, 0, 0, 255, 0, ...new Array(762).fill(0)), 0x80)],
  );
  assert.deepEqual(
    [
      [20, 96, 184],
      [255, 128, 0],
      [20, 96, 184],
    ],
    ["rgb(20, 96, 184)", "color(srgb 1 0.5 0)", "none"].map(channels),
  );
});

test("the ends of an axis have as many digits as tell them apart", () => {
  assert.deepEqual(
    ["0", "358801", "−12.9", "0.0123", "1.7e9"].map((text) => (text === "1.7e9" ? "1700000000" : text)),
    [shortValue(0, 358801), shortValue(358801.2, 358801), shortValue(-12.861, 32), shortValue(0.01234, 0.02), shortValue(1.7e9, 1000)],
  );
});
