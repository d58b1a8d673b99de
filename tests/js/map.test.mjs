// The map's helpers that need no browser: painting, pointing, counting what a line holds, colours.
import assert from "node:assert/strict";
import { test } from "node:test";

import { click, placed, press, test as domTest, until, wheel } from "./dom.mjs";
import { splat } from "../../tarviz/widgets/map/painters.mjs";
import { countInside, dotOf, nearest, Scatter, thinned } from "../../tarviz/widgets/map/scatter.mjs";
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
  assert.equal(1, nearest(Float32Array.from([0.1, 0, 0.04, 0, 0.12, 0]), LOOK, 50, 25, 14), "neither the first nor the last");
  assert.equal(0, nearest(Float32Array.from([0, 0.25, 0.2, 0]), LOOK, 50, 25, 14), "6 pixels up are nearer than 10 across");
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

/** A map of three points, 1000 by 600 pixels, and what it tells. */
function scattered(options = {}) {
  const end = new AbortController();
  const told = { picked: [], circled: [] };
  const map = new Scatter({
    signal: end.signal,
    painter: "canvas",
    onPick: (point) => told.picked.push(point),
    onCircle: (corners) => told.circled.push(corners),
    ...options,
  });
  const place = placed(map.root);
  map.show(Float32Array.from([0, 0, 0.5, 0.5, -0.5, -0.5]), Uint32Array.from([1, 2, 3]));
  return { map, told, end: () => (end.abort(), place.remove()) };
}
const near = (wanted, found) => wanted.forEach((value, at) => assert.ok(Math.abs(value - found[at]) < 1e-9, `${found}, not ${wanted}`));

domTest("closer, the place under the pointer stays where it is", () => {
  const { map, end } = scattered();
  for (const [factor, spot] of [
    [3, [800, 100]],
    [1.7, [120, 590]],
    [0.2, [420, 310]],
  ]) {
    const before = map.place(spot);
    map.zoomBy(factor, spot);
    near(before, map.place(spot));
  }
  const centre = [...map.centre];
  map.zoomBy(2);
  near(centre, map.centre);
  end();
});

domTest("the wheel, plus and minus zoom; arrows move; 0 shows all again", () => {
  const { map, end } = scattered();
  wheel(map.root, -100, { clientX: 200, clientY: 500 });
  assert.ok(map.zoom > 1.1 && map.zoom < 1.3);
  assert.ok(map.centre[0] < 0 && map.centre[1] < 0);
  assert.ok(press(map.root, "+"));
  const { zoom } = map;
  press(map.root, "-");
  near([zoom / 1.4], [map.zoom]);
  press(map.root, "0");
  assert.deepEqual([1, [0, 0]], [map.zoom, map.centre]);
  const { scaleX, scaleY } = map.look();
  press(map.root, "ArrowRight");
  press(map.root, "ArrowUp");
  near([60 / scaleX, 60 / scaleY], map.centre);
  press(map.root, "ArrowLeft");
  press(map.root, "ArrowDown");
  near([0, 0], map.centre);
  assert.ok(!press(map.root, "x"));
  for (let times = 0; times < 40; times += 1) press(map.root, "+");
  assert.equal(5000, map.zoom);
  end();
});

domTest("a click takes the point under it, a drag moves the map, a line with Shift circles", async () => {
  const { map, told, end } = scattered();
  const { scaleX, scaleY, atX, atY } = map.look();
  const spot = ([x, y]) => ({ clientX: x * scaleX + atX, clientY: atY - y * scaleY });
  const drag = (from, to, more = {}) => {
    click(map.root, { ...spot(from), ...more }, "pointerdown");
    for (const place of to) click(map.root, { ...spot(place), movementX: 5, movementY: -7, ...more }, "pointermove");
    click(map.root, { ...spot(to.at(-1) ?? from), ...more }, "pointerup");
  };
  drag([0.5, 0.5], []);
  drag([0.9, -0.9], []);
  drag([-0.5, -0.49], []);
  assert.deepEqual([1, 2], told.picked);

  drag(
    [-0.2, -0.2],
    [
      [0.8, -0.2],
      [0.8, 0.8],
    ],
    { shiftKey: true },
  );
  assert.deepEqual(
    [[-0.2, -0.2, 0.8, -0.2, 0.8, 0.8].map((value) => value.toFixed(6))],
    told.circled.map((line) => line.map((value) => value.toFixed(6))),
  );
  await until(() => map.over.pen.calls.some(([name]) => name === "stroke"));

  drag([0, 0], [[0.5, 0]]);
  near([-5 / scaleX, -7 / scaleY], map.centre);
  assert.deepEqual([1, 2], told.picked);
  end();
});

domTest("points that a filter leaves out are drawn first, and faintly", () => {
  const { map, end } = scattered();
  map.show(Float32Array.from([1, 1, 2, 2, 3, 3]), Uint32Array.from([0xff000001, 0xff000002, 0xff000003]), Uint8Array.from([1, 0, 1]));

  assert.deepEqual([2, 2, 1, 1, 3, 3], [...map.drawnPlaces]);
  assert.deepEqual([0x26000002, 0xff000001, 0xff000003], [...map.drawnColours]);
  assert.equal(1, map.faint);
  end();
});
