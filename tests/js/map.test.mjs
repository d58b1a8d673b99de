// The map's helpers that need no browser: painting, pointing, thinning a line, colours.
import assert from "node:assert/strict";
import { test } from "node:test";

import { click, placed, press, test as domTest, until, wheel } from "./dom.mjs";
import { glPainter, isSoftware, pixelPainter, splat } from "../../tarviz/widgets/map/painters.mjs";
import { dotOf, nearest, Scatter, thinned } from "../../tarviz/widgets/map/scatter.mjs";
import { channels, packed, paint, shortValue } from "../../tarviz/widgets/map/map_values.mjs";

const LOOK = { scaleX: 50, scaleY: 25, atX: 50, atY: 25, dot: 1 };
const EXACT = { ...LOOK, scaleX: 64, scaleY: 32 }; // what 32 bits hold without rounding

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

test("small points are squares, larger ones lose their corners line by line", () => {
  const shape = (dot) => {
    const dots = painted({ ...LOOK, dot }, [0, 0], [5]);
    const left = (row) => Math.min(...dots.filter(([, y]) => y === row).map(([x]) => x));
    const rows = [...new Set(dots.map(([, y]) => y))];
    return rows.map((row) => [left(row), row, dots.filter(([, y]) => y === row).length]);
  };
  const lines = (left, top, ...widths) => widths.map((width, at) => [left[at], top + at, width]);

  assert.deepEqual([[50, 25, 1]], shape(0.2), "never less than a pixel");
  assert.deepEqual(lines([49, 49], 24, 2, 2), shape(2));
  assert.deepEqual(lines([49, 49, 49], 24, 3, 3, 3), shape(2.6));
  assert.deepEqual(lines([49, 48, 48, 49], 23, 2, 4, 4, 2), shape(4));
  assert.deepEqual(lines([49, 48, 47, 47, 47, 48, 49], 22, 3, 5, 7, 7, 7, 5, 3), shape(7));
});

test("a large point at an edge is the part of it that is in view, on every side", () => {
  const look = { ...EXACT, dot: 7 };
  const whole = painted(look, [0, 0], [5]);
  for (const [x, y] of [
    [-50, -25],
    [50, 25],
    [-50, 25],
    [50, -25],
    [-53, 0],
    [52, 0],
    [0, -28],
    [0, 27],
    [-60, 3],
    [60, 3],
    [3, 40],
    [3, -40],
  ])
    assert.deepEqual(
      whole
        .map(([left, top, colour]) => [left + x, top + y, colour])
        .filter(([left, top]) => left >= 0 && top >= 0 && left < 100 && top < 50),
      painted(look, [x / 64, -y / 32], [5]),
      `${x} ${y}`,
    );
});

test("a single pixel is in view up to the last column and line, and no further", () => {
  const at = (x, y) => painted(EXACT, [(x - 50) / 64, (25 - y) / 32], [7]).map(([left, top]) => [left, top]);

  assert.deepEqual([[[0, 0]], [[99, 0]], [[0, 49]], [[99, 49]]], [at(0, 0), at(99, 0), at(0, 49), at(99, 49)]);
  assert.deepEqual([[], [], [], []], [at(-1, 5), at(100, 5), at(5, -1), at(5, 50)]);
});

test("only the points of a run are painted", () => {
  const pixels = new Uint32Array(100);
  for (const dot of [1, 2]) {
    pixels.fill(0);
    const look = { scaleX: 5, scaleY: 5, atX: 5, atY: 5, dot };
    splat(pixels, 10, 10, Float32Array.from([-0.6, 0, 0, 0, 0.6, 0, 0, 0.6]), Uint32Array.from([1, 2, 3, 4]), look, 1, 3);
    assert.deepEqual([0, 2, 3], [...new Set(pixels)].sort());
  }
});

domTest("pixels are painted anew each time, on as many as the canvas has", () => {
  const painter = pixelPainter();
  Object.assign(painter.canvas, { width: 10, height: 4 });
  painter.fill(Float32Array.from([-0.5, 0, 0.5, 0]), Uint32Array.from([6, 7]));
  const image = (...spans) => {
    painter.draw({ scaleX: 5, scaleY: 2, atX: 5, atY: 2, dot: 1 }, spans);
    const [, { data, width, height }, x, y] = painter.canvas.pen.calls.filter(([name]) => name === "putImageData").at(-1);
    const pixels = new Uint32Array(data.buffer);
    return [width, height, x, y, [...pixels.entries()].filter(([, colour]) => colour)];
  };
  assert.equal("canvas", painter.kind);
  assert.deepEqual(
    [
      10,
      4,
      0,
      0,
      [
        [22, 6],
        [27, 7],
      ],
    ],
    image([0, 1], [1, 1]),
  );
  assert.deepEqual([10, 4, 0, 0, [[27, 7]]], image([1, 1]));
  const drawn = () => painter.canvas.pen.calls.filter(([name]) => name === "putImageData").at(-1)[1];
  const before = drawn();
  image([0, 2]);
  assert.equal(before, drawn(), "the same memory while the size stays");
  painter.canvas.width = 8;
  assert.deepEqual([8, 4], image([0, 2]).slice(0, 2));
  painter.canvas.height = 3;
  assert.deepEqual([8, 3], image([0, 2]).slice(0, 2));
});

/** A graphics card: what it is told, as [name, ...arguments]; its numbers are their names. */
function card(told, more = {}) {
  const known = {
    getExtension: (name) => (told.push(["getExtension", name]), more[name]),
    getParameter: (name) => more[name],
    getProgramParameter: () => more.linked ?? true,
    getUniformLocation: (_, name) => name,
    getAttribLocation: (_, name) => name,
  };
  for (const name of ["createProgram", "createShader", "createBuffer"]) known[name] = () => name;
  return new Proxy(known, {
    get: (_, name) => known[name] ?? (/^[A-Z]/.test(name) ? name : (...values) => void told.push([name, ...values])),
  });
}

/** What a painter by a card tells it. */
function carded(more, options) {
  const told = [];
  const { getContext } = HTMLCanvasElement.prototype;
  HTMLCanvasElement.prototype.getContext = (kind, wanted) => (told.push(["getContext", kind, wanted]), more && card(told, more));
  try {
    return { told, painter: glPainter(options) };
  } finally {
    HTMLCanvasElement.prototype.getContext = getContext;
  }
}

domTest("a card paints all points of a run by one call, where they are", () => {
  const { told, painter } = carded({ RENDERER: "NVIDIA" });
  assert.equal("webgl", painter.kind);
  assert.deepEqual(
    ["webgl2", { antialias: false, alpha: true, premultipliedAlpha: true, powerPreference: "high-performance" }],
    told[0].slice(1),
  );
  const calls = (name) => told.filter(([one]) => one === name).map(([, ...values]) => values);
  assert.deepEqual([["ONE", "ONE_MINUS_SRC_ALPHA"], ["BLEND"]], [calls("blendFunc")[0], calls("enable")[0]]);
  const [places, colours] = [Float32Array.of(0, 0), Uint32Array.of(1)];
  painter.fill(places, colours);
  assert.deepEqual(
    [
      ["place", 2, "FLOAT", false, 0, 0],
      ["colour", 4, "UNSIGNED_BYTE", true, 0, 0],
    ],
    calls("vertexAttribPointer"),
  );
  assert.deepEqual(
    [places, colours],
    calls("bufferData").map(([, data]) => data),
  );
  Object.assign(painter.canvas, { width: 100, height: 50 });
  told.length = 0;
  painter.draw({ scaleX: 25, scaleY: 10, atX: 75, atY: 20, dot: 3 }, [
    [0, 4],
    [4, 2],
  ]);
  assert.deepEqual([[0, 0, 100, 50]], calls("viewport"));
  assert.deepEqual([[0, 0, 0, 0]], calls("clearColor"));
  assert.deepEqual(
    [
      ["scale", 0.5, 0.4],
      ["at", 0.5, 1 - 40 / 50],
    ],
    calls("uniform2f"),
  );
  assert.deepEqual([["side", 3]], calls("uniform1f"));
  assert.deepEqual(
    [
      ["POINTS", 0, 4],
      ["POINTS", 4, 2],
    ],
    calls("drawArrays"),
  );
});

domTest("a card is let go where the processor would do its work, and where it does not understand", () => {
  const lost = { WEBGL_lose_context: { loseContext: () => (lost.times += 1) }, times: 0 };
  assert.equal(undefined, carded(undefined).painter);
  assert.equal(undefined, carded({ ...lost, RENDERER: "llvmpipe (LLVM 17)" }).painter);
  assert.equal(1, lost.times);
  assert.equal("webgl", carded({ RENDERER: "llvmpipe (LLVM 17)" }, { software: true }).painter.kind);
  assert.equal(undefined, carded({ RENDERER: "NVIDIA", linked: false }).painter);
  const { painter } = carded({ ...lost, RENDERER: "NVIDIA" });
  painter.end();
  assert.equal(2, lost.times);
  const info = { UNMASKED_RENDERER_WEBGL: "real" };
  assert.ok(isSoftware(card([], { WEBGL_debug_renderer_info: info, real: "Google SwiftShader", RENDERER: "ANGLE" })));
  assert.ok(!isSoftware(card([], { WEBGL_debug_renderer_info: info, real: "Apple M2", RENDERER: "swiftshader" })));
});

test("the nearest point is measured in pixels", () => {
  const places = Float32Array.from([0, 0, 0.1, 0, 0, 0.1]);
  assert.equal(0, nearest(places, LOOK, 51, 25, 14));
  assert.equal(1, nearest(places, LOOK, 54, 25, 14));
  assert.equal(2, nearest(places, LOOK, 50, 22, 14));
  assert.equal(-1, nearest(places, LOOK, 90, 40, 14));
  assert.equal(1, nearest(Float32Array.from([0.1, 0, 0.04, 0, 0.12, 0]), LOOK, 50, 25, 14), "neither the first nor the last");
  assert.equal(0, nearest(Float32Array.from([0, 0.25, 0.2, 0]), LOOK, 50, 25, 14), "6 pixels up are nearer than 10 across");
  assert.equal(1, nearest(Float32Array.from([0, 0.8, 0.2, 0]), LOOK, 50, 25, 14), "20 pixels up are not");
  assert.deepEqual(
    [0, -1],
    [64, 64.5].map((x) => nearest(Float32Array.of(0, 0), EXACT, x, 25, 14)),
    "14 pixels and no more",
  );
});

test("a long line keeps as many corners as are allowed, in pairs", () => {
  const line = Array.from({ length: 5000 }, (_, at) => at);
  const found = thinned(line);
  assert.ok(found.length / 2 <= 400 && found.length / 2 > 200);
  for (let at = 0; at < found.length; at += 2) assert.equal(found[at] + 1, found[at + 1]);
  assert.deepEqual([1, 2, 3, 4, 5, 6], thinned([1, 2, 3, 4, 5, 6]));
  const corners = (count) => thinned(new Array(2 * count).fill(0)).length / 2;
  assert.deepEqual([400, 201, 400, 267], [400, 401, 800, 801].map(corners));
});

test("points shrink as there are more, grow a little when one comes closer", () => {
  assert.ok(dotOf(100, 1) > dotOf(10_000, 1) && dotOf(10_000, 1) > dotOf(1_000_000, 1));
  assert.ok(dotOf(1_000_000, 1) >= 1);
  assert.ok(dotOf(1000, 30) > dotOf(1000, 1) && dotOf(100, 5000) <= 9);
});

test("how wide points are", () => {
  assert.deepEqual(
    [7, 5, 5, 3.5, 3.5, 2, 2, 1.2],
    [299, 300, 2999, 3000, 29_999, 30_000, 199_999, 200_000].map((count) => dotOf(count, 1)),
  );
  assert.deepEqual([9, 9, 10 - 1, 7, 1], [dotOf(100, 5000), dotOf(100, 10), dotOf(1000, 5000), dotOf(5000, 5000), dotOf(1e6, 0.3)]);
  assert.equal(5 * 2 ** 0.3, dotOf(1000, 2));
});

test("codes become colours as a canvas holds them", () => {
  assert.equal(0xff030201, packed(1, 2, 3));
  assert.deepEqual(
    [0x800000ff, 0x8000ff00],
    [...paint(Uint8Array.of(0, 1), Uint8Array.of(255, 0, 0, 0, 255, 0, ...new Array(762).fill(0)), 0x80)],
  );
  const palette = Uint8Array.from({ length: 768 }, (_, at) => at % 251);
  const codes = Uint8Array.of(0, 1, 7, 100, 255);
  assert.deepEqual(
    [...codes].map((code) => packed(palette[3 * code], palette[3 * code + 1], palette[3 * code + 2])),
    [...paint(codes, palette, 255)],
  );
  assert.deepEqual(
    [
      [21, 97, 185],
      [255, 128, 0],
      [20, 96, 184],
      [1, 2, 3],
      [20, 96, 184],
    ],
    ["rgb(21, 97, 185)", "color(srgb 1 0.5 0)", "none", "rgba(1, 2, 3, 0.5)", "gray(1 2)"].map(channels),
  );
});

test("the ends of an axis have as many digits as tell them apart", () => {
  assert.deepEqual(
    ["0", "358801", "−12.9", "0.0123", "1.7e9"].map((text) => (text === "1.7e9" ? "1700000000" : text)),
    [shortValue(0, 358801), shortValue(358801.2, 358801), shortValue(-12.861, 32), shortValue(0.01234, 0.02), shortValue(1.7e9, 1000)],
  );
  assert.deepEqual(
    ["1234570000", "999999999.12", "1.23457e−10", "1.23e−9", "12345.68"],
    [
      shortValue(1234567891.5, 1),
      shortValue(999999999.123, 1),
      shortValue(1.23456789e-10, 1e-10),
      shortValue(1.23456789e-9, 1e-9),
      shortValue(12345.678, 0),
    ],
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

domTest("points are painted as is asked, else by a card where there is one; the map has the keys in its turn", () => {
  const { getContext } = HTMLCanvasElement.prototype;
  const painters = ["NVIDIA", "llvmpipe"].map((RENDERER) => {
    HTMLCanvasElement.prototype.getContext = function (kind) {
      return kind === "2d" ? getContext.call(this, kind) : card([], { RENDERER });
    };
    return ["canvas", "", "webgl"].map((painter) => {
      const { map, end } = scattered({ painter });
      end();
      return [map.painter.kind, map.root.tabIndex];
    });
  });
  HTMLCanvasElement.prototype.getContext = getContext;
  const [byCanvas, byCard] = [
    ["canvas", 0],
    ["webgl", 0],
  ];
  assert.deepEqual(
    [
      [byCanvas, byCard, byCard],
      [byCanvas, byCanvas, byCard],
    ],
    painters,
  );
});

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

domTest("where places lie in the view, and how many pixels a screen has for each of ours", () => {
  const { map, end } = scattered();
  assert.deepEqual({ scaleX: 482, scaleY: 282, atX: 500, atY: 300, dot: 7 }, map.look());
  assert.deepEqual({ scaleX: 964, scaleY: 564, atX: 1000, atY: 600, dot: 14 }, map.look(2));
  map.zoomBy(2);
  map.panBy(10, -20);
  const { scaleX, scaleY, atX, atY } = map.look();
  near([964, 564, 510, 280], [scaleX, scaleY, atX, atY]);
  near([-510 / 964, 280 / 564, 490 / 964, 280 / 564, 490 / 964, -320 / 564, -510 / 964, -320 / 564], map.inView());
  map.zoomBy(1e-9);
  assert.equal(0.3, map.zoom);
  map.zoomBy(1e9);
  assert.equal(5000, map.zoom);
  click(map.root, {}, "dblclick");
  assert.deepEqual([1, [0, 0]], [map.zoom, map.centre]);
  end();
});

domTest("a map that has no room yet is one pixel large, and nothing of it is infinite", () => {
  const { map, end } = scattered();
  for (const name of ["clientWidth", "clientHeight"]) Object.defineProperty(map.root, name, { value: 0, configurable: true });
  assert.deepEqual({ scaleX: 1, scaleY: 1, atX: 0, atY: 0, dot: 7 }, map.look());
  map.draw();
  assert.deepEqual(
    [1, 1, 1, 1],
    [map.painter.canvas, map.over].flatMap((canvas) => [canvas.width, canvas.height]),
  );
  end();
});

domTest("a fine screen is painted finely, up to twice", () => {
  const { map, end } = scattered();
  for (const [ratio, width, height] of [
    [1, 1000, 600],
    [1.5, 1500, 900],
    [3, 2000, 1200],
  ]) {
    globalThis.devicePixelRatio = ratio;
    map.draw();
    assert.deepEqual(
      ["clearRect", 0, 0, width, height],
      map.over.pen.calls.findLast(([name]) => name === "clearRect"),
    );
    assert.deepEqual(
      [width, height, width, height],
      [map.painter.canvas, map.over].flatMap((canvas) => [canvas.width, canvas.height]),
    );
  }
  delete globalThis.devicePixelRatio;
  end();
});

domTest("while the view moves, as many points are painted as a frame has time for", (t) => {
  const { map, end } = scattered();
  map.show(
    new Float32Array(200),
    new Uint32Array(100),
    Uint8Array.from({ length: 100 }, (_, at) => at % 4),
  );
  let [now, takes] = [0, 48];
  t.mock.method(performance, "now", () => now);
  const drawn = [];
  map.painter.draw = (_, spans) => (drawn.push(spans), (now += takes));
  const draw = (moving) => ((map.moving = moving), map.draw());
  assert.equal(25, map.faint);
  draw(false);
  assert.equal(1, map.share, "at rest nothing is left out");
  draw(true);
  assert.equal(0.5, map.share);
  draw(true);
  assert.equal(0.25, map.share);
  takes = 12;
  draw(true);
  assert.equal(0.5, map.share);
  takes = 0;
  draw(true);
  assert.equal(1, map.share);
  takes = 1e6;
  draw(true);
  assert.equal(0.02, map.share);
  map.painter.kind = "webgl";
  takes = 1;
  draw(true);
  assert.equal(0.02, map.share, "of a card the clock tells nothing");
  draw(false);
  assert.deepEqual(
    [
      [
        [0, 25],
        [25, 75],
      ],
      [
        [0, 25],
        [25, 75],
      ],
      [
        [0, 13],
        [25, 38],
      ],
    ],
    drawn.slice(0, 3),
  );
  assert.deepEqual(
    [
      [0, 1],
      [25, 2],
    ],
    drawn.at(-2),
  );
  assert.deepEqual(
    [
      [0, 25],
      [25, 75],
    ],
    drawn.at(-1),
  );
  end();
});

domTest("a view that came to rest is painted whole", async () => {
  const { map, end } = scattered();
  const drawn = [];
  map.painter.draw = (_, [, [, count]]) => drawn.push(count);
  map.share = 0.02;
  map.panBy(3, 3);
  assert.ok(map.moving);
  map.draw();
  assert.equal(1, drawn[0]);
  await until(() => !map.moving && drawn.at(-1) === 3);
  end();
});

domTest("a click may tremble by three pixels, not by four; other buttons and a cancelled drag do nothing", () => {
  const { map, told, end } = scattered();
  const go = (kind, x, y, more = {}) => click(map.root, { clientX: x, clientY: y, ...more }, kind);
  const drag = (...places) => {
    go("pointerdown", ...places[0]);
    for (const place of places.slice(1)) go("pointermove", ...place);
    go("pointerup", ...places.at(-1));
  };
  map.root.getBoundingClientRect = () => ({ left: 100, top: 50 });
  drag([600, 350]);
  assert.deepEqual([0], told.picked.splice(0), "where the map begins is no matter");
  delete map.root.getBoundingClientRect;
  drag([514.5, 300]);
  assert.deepEqual([], told.picked, "it is 14 pixels away, and more");
  drag([500, 300], [503, 300]);
  assert.deepEqual([0], told.picked);
  drag([500, 300], [504, 300], [500, 300]);
  assert.deepEqual([0], told.picked, "it was away in between");
  go("pointerdown", 500, 300, { button: 2 });
  go("pointerup", 500, 300, { button: 2 });
  go("pointerdown", 500, 300);
  go("pointercancel", 500, 300);
  go("pointerup", 500, 300);
  assert.deepEqual([0], told.picked);

  map.lassoing = true;
  drag([500, 300], [501, 300], [500, 301]);
  assert.deepEqual([[0, 0], []], [told.picked, map.line], "a line that went nowhere is a click");
  drag([100, 100], [900, 100]);
  assert.equal(0, told.circled.length, "two corners are no line");
  drag([100, 100], [900, 100], [500, 500]);
  assert.equal(6, told.circled[0].length);
  assert.deepEqual([0, 0], map.centre);
  end();
});

domTest("of dots that lie on each other the one that is drawn on top is clicked", () => {
  const { map, told, end } = scattered();
  const picked = (...shown) => {
    map.show(Float32Array.of(0, 0, 0.004, 0, 0, 0), Uint32Array.of(1, 2, 3), shown.length ? Uint8Array.from(shown) : undefined);
    for (const kind of ["pointerdown", "pointerup"]) click(map.root, { clientX: 500, clientY: 300 }, kind);
    return told.picked.pop();
  };
  assert.deepEqual([2, 2, 1, 0], [picked(), picked(0, 0, 0), picked(1, 1, 0), picked(1, 0, 0)]);
  map.zoom = 8;
  assert.deepEqual([2, 0], [picked(), picked(1, 1, 0)], "from closer the dot beside it covers it no more");
  end();
});

domTest("what is pointed at is told once a frame, of the last place", async () => {
  const told = [];
  const { map, end } = scattered({ onHover: (...place) => told.push(place) });
  for (const x of [10, 400, 502]) click(map.root, { clientX: x, clientY: 301 }, "pointermove");
  await until(() => told.length);
  click(map.root, { clientX: 700, clientY: 20 }, "pointermove");
  await until(() => told.length === 2);
  click(map.root, {}, "pointerleave");
  assert.deepEqual(
    [
      [0, 502, 301],
      [-1, 700, 20],
      [-1, 0, 0],
    ],
    told,
  );
  end();
});

domTest("a line is closed, filled faintly and drawn over the points; of one corner there is none", () => {
  const { map, end } = scattered();
  const names = () => map.over.pen.calls.splice(0).map(([name]) => name);
  map.draw();
  names();
  map.line = [0, 0];
  map.drawLine();
  assert.deepEqual(["clearRect"], names());
  map.line = [0, 0, 0.5, 0];
  map.drawLine();
  assert.equal(2, names().filter((name) => name === "lineTo").length);
  map.line = [0, 0, 0.5, 0, 0.5, 0.5];
  globalThis.devicePixelRatio = 3;
  map.drawLine();
  delete globalThis.devicePixelRatio;
  const calls = [...map.over.pen.calls];
  assert.deepEqual(
    [
      [1000, 600],
      [1482, 600],
      [1482, 318],
    ],
    calls.filter(([name]) => name === "lineTo").map(([, ...place]) => place),
  );
  const of = (wanted) => calls.filter(([name]) => name === wanted).map(([, value]) => value);
  assert.deepEqual([[3.2], [0.1, 1]], [of("lineWidth"), of("globalAlpha")]);
  assert.deepEqual(
    [1, 1, 1],
    ["closePath", "fill", "stroke"].map((name) => of(name).length),
  );
  end();
});

domTest("points that are all shown are drawn as they came; a lost card gives way to the processor", async () => {
  const { map, end } = scattered();
  const places = Float32Array.of(1, 1);
  map.show(places, Uint32Array.of(9), Uint8Array.of(1));
  assert.deepEqual([places, 0], [map.drawnPlaces, map.faint]);
  const { canvas } = map.painter;
  canvas.dispatchEvent(new Event("webglcontextlost"));
  assert.equal(canvas, map.painter.canvas, "it was none");
  map.painter.kind = "webgl";
  canvas.dispatchEvent(new Event("webglcontextlost"));
  assert.notEqual(canvas, map.painter.canvas);
  assert.deepEqual(
    ["canvas", 1, "tvz-map-points"],
    [map.painter.kind, map.root.querySelectorAll(".tvz-map-points").length, map.painter.canvas.className],
  );
  end();
});
