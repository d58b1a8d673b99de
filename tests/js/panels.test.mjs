// What viewers say of a field, as a panel: every kind of block, its controls, trees, pictures to zoom, clouds to turn.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Doctor } from "../../tarviz/widgets/browse/page/doctor.mjs";
import { drawPlot } from "../../tarviz/widgets/host/plot.mjs";
import { drawCloud, drawPoints } from "../../tarviz/widgets/panes/cloud.mjs";
import { drawPanel, readAll } from "../../tarviz/widgets/panes/panels.mjs";
import { ImageView } from "../../tarviz/widgets/panes/picture.mjs";
import { click, placed, press, put, test, until } from "./dom.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** The panel of these blocks, in the page, and what it asks, says and copies. */
function shown(blocks, { buffers = [], ...more } = {}) {
  const end = new AbortController();
  const told = { asked: [], said: [], copied: [] };
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => told.copied.push(text) }, configurable: true });
  const around = {
    rpc: async (name, msg) => ({ r: {}, buffers: [new DataView(new ArrayBuffer(Math.min(msg.length, around.size - msg.start)))] }),
    signal: end.signal,
    say: (text) => told.said.push(text),
    row: 3,
    ext: "npy",
    size: 100,
    options: { gamma: 1 },
    ask: (options) => told.asked.push(structuredClone(options)),
    ...more,
  };
  const box = drawPanel({ controls: more.controls ?? [], blocks, facts: more.facts ?? [] }, buffers, around);
  const place = placed(box);
  ends.push(() => (end.abort(), place.remove()));
  return { box, told, around, end };
}
const text = (box, selector) => [...box.querySelectorAll(selector)].map((one) => one.textContent);

test("notes, facts and texts", () => {
  const { box } = shown(
    [
      { type: "note", tone: "bad", text: "cut short" },
      { type: "note", tone: "warn", text: "odd" },
      { type: "text", text: "one\n\nthree\n", numbered: true },
      { type: "text", text: "plain" },
      { type: "nothing we know" },
    ],
    { facts: [["size", "3 B"]] },
  );

  assert.deepEqual([["cut short"], ["odd"]], [text(box, "[role=alert]"), text(box, ".tvz-note-warn")]);
  assert.deepEqual(["one", "\u200b", "three"], text(box, "ol li"));
  assert.deepEqual(["plain"], text(box, "div.tvz-text > div"));
  assert.deepEqual(["size", "3 B"], text(box, "dl > *"));
  assert.equal(5, box.children.length);
});

test("a conversation tells who speaks, and how much is left out", () => {
  const turns = [
    ["system", "be kind"],
    ["user", "hi"],
    ["Assistant", "hello"],
  ];
  const { box } = shown([{ type: "turns", turns, left: 1200 }]);

  assert.deepEqual(
    ["tvz-turn tvz-system", "tvz-turn", "tvz-turn tvz-answer", "tvz-faint"],
    [...box.querySelectorAll("li")].map((one) => one.className),
  );
  assert.equal("… 1,200 more turns", box.querySelector("li:last-child").textContent);
});

test("a table sets its numbers to the right", () => {
  const { box } = shown([
    {
      type: "table",
      columns: ["a", "b"],
      rows: [
        ["x", "1"],
        ["y", "2"],
      ],
      right: [1],
    },
  ]);

  assert.deepEqual(["b", "1", "2"], text(box, ".tvz-right"));
  assert.deepEqual(["a", "b"], text(box, "th"));
});

test("controls ask again with their value, slices all together", () => {
  const controls = [
    { name: "slice", label: "axis 0", value: 2, high: 9, choices: [] },
    { name: "slice", label: "axis 1", value: 5, high: 7, choices: [] },
    { name: "map", label: "colours", value: "grey", choices: ["grey", "heat"] },
  ];
  const { box, told } = shown([], { controls });
  assert.deepEqual(["axis 0  2 of 0…9", "axis 1  5 of 0…7"], text(box, "label").slice(0, 2));
  put(box.querySelectorAll("input")[1], "6", "change");
  put(box.querySelector("select"), "heat");
  put(box.querySelectorAll("input")[0], "1", "change");

  assert.deepEqual(
    [
      { gamma: 1, slice: [2, 6] },
      { gamma: 1, map: "heat" },
      { gamma: 1, slice: [1, 6] },
    ],
    told.asked,
  );
});

test("a tree opens two levels, finds what is asked for, and copies paths", async () => {
  const deep = [
    "o",
    [
      [
        "meta",
        [
          "o",
          [
            [
              "src",
              [
                "a",
                [
                  ["s", "cam", 3],
                  ["n", 7],
                ],
                5,
              ],
            ],
          ],
          0,
        ],
      ],
      ["long", ["s", "abc", 9]],
      ["none", ["k", null]],
    ],
    0,
  ];
  const { box, told } = shown([{ type: "tree", root: deep, ext: "json" }]);
  assert.deepEqual(["{3}", "meta{1}", "src[7]"], text(box, "summary"));
  assert.deepEqual(
    [true, true, false],
    [...box.querySelectorAll("details")].map((one) => one.open),
  );
  assert.deepEqual(['long"abc"… (9 characters)', "nonenull"], text(box, ".tvz-leaf"));
  const inner = box.querySelectorAll("details")[2];
  inner.open = true;
  inner.dispatchEvent(new Event("toggle"));
  assert.deepEqual(['0"cam"', "17", "… 5 more"], text(inner, ".tvz-leaf"));

  inner.open = false;
  put(box.querySelector(".tvz-find"), "CAM");
  assert.deepEqual(['0"cam"'], text(box, ".tvz-hit"));
  assert.ok(inner.open);
  put(box.querySelector(".tvz-find"), "");
  assert.deepEqual([], text(box, ".tvz-hit"));

  click(inner.querySelector(".tvz-leaf button"));
  press(inner.querySelector("summary"), "c");
  press(inner.querySelector("summary"), "c", { ctrlKey: true });
  click(box.querySelector("summary .tvz-name"));
  await until(() => told.said.length === 3);
  const paths = ['["meta", "src", 0]', '["meta", "src"]', '["meta"]'];
  assert.deepEqual(
    paths.map((path) => `SelectJSON("json", ${path})`),
    told.copied,
  );
  assert.equal(`copied SelectJSON("json", ${paths[0]})`, told.said[0]);
});

test("sound and film are played from their address, or after they were read in parts", async () => {
  const far = shown(
    [
      { type: "video", mime: "video/mp4" },
      { type: "frames", times: [0, 1.5], data: { buffer: 0 }, mime: "image/png" },
    ],
    {
      media: "http://localhost/m/3/mp4",
      buffers: [new DataView(new ArrayBuffer(24))],
    },
  );
  const film = far.box.querySelector("video");
  assert.equal("http://localhost/m/3/mp4", film.src);
  for (let turn = 0; turn < 2; turn += 1) film.dispatchEvent(new window.Event("error"));
  assert.deepEqual(
    ["The browser cannot play it."],
    [...film.parentElement.querySelectorAll(".tvz-note-bad")].map((one) => one.textContent),
  );
  const frames = [...far.box.querySelectorAll(".tvz-strip button")];
  assert.deepEqual(
    [
      ["0%", "50%"],
      ["50%", "50%"],
    ],
    frames.map((one) => [one.style.left, one.style.width]),
  );
  click(frames[1]);
  assert.equal(1.5, film.currentTime);

  const near = shown([{ type: "audio", mime: "audio/wav" }], { size: 3e6 });
  await until(() => near.box.querySelector("audio")?.src.startsWith("blob:"));
  const large = shown([{ type: "audio", mime: "audio/wav" }], { size: 5e6 });
  assert.equal("load 5.00 MB", large.box.querySelector("button").textContent);
  click(large.box.querySelector("button"));
  await until(() => large.box.querySelector("audio")?.src.startsWith("blob:"));
});

test("a field is read to its end in parts of one MiB, and one that ends early is told", async () => {
  const { around } = shown([], { size: 2.5 * 2 ** 20 });
  const shares = [];
  const parts = await readAll(around, (share) => shares.push(Math.round(share * 100)));
  assert.deepEqual(
    [2 ** 20, 2 ** 20, 2 ** 19],
    parts.map((part) => part.byteLength),
  );
  assert.deepEqual([40, 80, 100], shares);
  await assert.rejects(readAll({ ...around, rpc: async () => ({ buffers: [] }) }), /ended early/);
});

/** What a plot draws on 300 by 80 pixels, as [x, y, width, height] of its bars. */
function drawnPlot(plot) {
  const canvas = document.createElement("canvas");
  for (const [name, value] of [
    ["clientWidth", 300],
    ["clientHeight", 80],
  ])
    Object.defineProperty(canvas, name, { value });
  drawPlot(canvas, plot);
  return canvas.pen.calls;
}

test("bars stand on the ground, the marked one in its own colour, nothing for none", () => {
  const calls = drawnPlot({ kind: "bars", series: [["red", [0, 4, null, 8]]], mark: 3 });

  assert.deepEqual(
    [
      [75, 40, 74, 39],
      [225, 2, 74, 77],
    ],
    calls.filter(([name]) => name === "fillRect").map(([, ...box]) => box),
  );
  assert.deepEqual(
    ["#d04a4a", "#e06c00"],
    calls
      .filter(([name]) => name === "fillStyle")
      .map(([, colour]) => colour)
      .filter((colour, at, all) => all.indexOf(colour) === at),
  );
});

test("a line goes from lowest to highest, an envelope between two lines", () => {
  const line = drawnPlot({
    kind: "line",
    series: [
      ["a", [-5, null, 5]],
      ["b", [0, 0, 0]],
    ],
  });
  assert.deepEqual(
    [
      [50, 78],
      [250, 2],
      [50, 40],
      [150, 40],
      [250, 40],
    ],
    line.filter(([name]) => name === "lineTo").map(([, ...at]) => at),
  );
  assert.ok(line.some(([name, value]) => name === "globalAlpha" && value === 0.6));
  const envelope = drawnPlot({
    kind: "envelope",
    series: [
      ["low", [-1, null]],
      ["high", [1, 1]],
    ],
  });
  assert.deepEqual(
    [[0, 2, 150, 76]],
    envelope.filter(([name]) => name === "fillRect").map(([, ...box]) => box),
  );
});

/** A picture of 60 by 40 in a frame of 1000 by 600. */
function pictured() {
  const end = new AbortController();
  const view = new ImageView(60, 40, end.signal);
  const place = placed(view.frame, view.foot);
  ends.push(() => (end.abort(), place.remove()));
  view.show({ naturalWidth: 60, naturalHeight: 40 });
  return view;
}
const near = (wanted, found) => wanted.forEach((value, at) => assert.ok(Math.abs(value - found[at]) < 1e-6, `${found}, not ${wanted}`));

test("a picture fits its frame by whole pixels, in the middle", () => {
  const view = pictured();
  const { scale, x, y } = view.shown();
  assert.deepEqual([15, 50, 0], [scale, x, y]);
  assert.deepEqual(
    ["drawImage", view.picture, 50, 0, 900, 600],
    view.canvas.pen.calls.find(([name]) => name === "drawImage"),
  );
  assert.ok(view.canvas.pen.calls.some(([name, value]) => name === "imageSmoothingEnabled" && value === false));
  assert.equal("60×40 · 15×", view.foot.textContent);
});

test("enlarged, a picture fills its stage, up to 64 times", () => {
  const view = pictured();
  view.frame.parentElement.classList.add("tvz-zoomed");
  assert.equal(15, view.shown().scale);
  view.show({ naturalWidth: 2, naturalHeight: 2 });
  assert.equal(64, view.shown().scale);
  view.show({ naturalWidth: 4000, naturalHeight: 600 });
  assert.equal(0.25, view.shown().scale);
});

test("closer, the pixel under the pointer stays; a drag moves the picture; fit shows all", () => {
  const view = pictured();
  const pixel = ([px, py]) => {
    const { scale, x, y } = view.shown();
    return [(px - x) / scale, (py - y) / scale];
  };
  const moved = [];
  view.moved = () => moved.push(view.scale);
  const before = pixel([700, 120]);
  view.zoom(2, 700, 120);
  near(before, pixel([700, 120]));
  assert.equal(30, view.scale);
  const middle = pixel([500, 300]);
  view.zoom(0.5);
  near(middle, pixel([500, 300]));
  const corner = view.shown();
  click(view.canvas, { buttons: 1, movementX: 7, movementY: -3 }, "pointermove");
  near([corner.x + 7, corner.y - 3], [view.x, view.y]);
  view.zoom(1000);
  assert.equal(64, view.scale);
  click(view.canvas, {}, "dblclick");
  assert.equal(0, view.scale);
  click(view.canvas, { clientX: 500, clientY: 300 }, "dblclick");
  assert.equal(1, view.scale);
  const [fit, one] = view.frame.querySelectorAll("button");
  click(fit);
  assert.equal(0, view.scale);
  click(one);
  assert.equal(1, view.scale);
  assert.equal(8, moved.length);
});

test("the value under the pointer is that of its pixel, by name where it has one", () => {
  const view = pictured();
  view.values = (column, line) => `${column}/${line}`;
  click(view.canvas, { clientX: 50 + 15 * 3 + 1, clientY: 15 * 7 + 1 }, "pointermove");
  assert.equal("60×40 · 15× · (3, 7) = 3/7", view.foot.textContent);
  click(view.canvas, { clientX: 49, clientY: 10 }, "pointermove");
  assert.equal("60×40 · 15×", view.foot.textContent);
  view.values = undefined;
  click(view.canvas, { clientX: 949, clientY: 599 }, "pointermove");
  assert.match(view.foot.textContent, /\(59, 39\) = 0 0 0 α 0$/);
});

test("pictures side by side show the same part, whatever their sizes", () => {
  const [one, other] = [pictured(), pictured()];
  other.show({ naturalWidth: 120, naturalHeight: 80 });
  one.zoom(4, 100, 100);
  other.follow(one);
  assert.equal(one.scale / 2, other.scale);
  const middle = (view) => [(500 - view.x) / (view.scale * view.width), (300 - view.y) / (view.scale * view.height)];
  near(middle(one), middle(other));
  one.fit();
  other.follow(one);
  assert.equal(0, other.scale);
});

test("a near point hides a far one, and what is turned away", () => {
  const into = { width: 40, height: 40, data: new Uint8ClampedArray(4 * 1600) };
  const places = Float32Array.from([0, -1, 0, 0, 1, 0, 0.5, 0, 0]);
  drawCloud(places, Uint8Array.from([200, 0, 0, 0, 200, 0, 0, 0, 200]), { turn: 0, tilt: 0, zoom: 1 }, into);
  const at = (x, y) => [...into.data.slice(4 * (40 * y + x), 4 * (40 * y + x) + 4)];
  assert.deepEqual([200, 0, 0, 255], at(20, 20), "the one in front");
  assert.deepEqual([24, 26, 31, 255], at(0, 0));
  assert.deepEqual([0, 0, 144, 255], at(28, 22));
  drawCloud(Float32Array.from([0, 0, 20 / 15.2]), Uint8Array.from([200, 0, 0]), { turn: 0, tilt: 0, zoom: 1 }, into);
  assert.deepEqual(
    [200, 0, 0],
    [...at(20, 0).slice(0, 3)].map((band) => (band > 100 ? 200 : 0)),
    "the uppermost row",
  );
  drawCloud(places, Uint8Array.from([200, 0, 0, 0, 200, 0, 0, 0, 200]), { turn: Math.PI, tilt: 0, zoom: 1 }, into);
  assert.deepEqual([0, 200, 0, 255], at(20, 20), "from behind the other is in front");
  assert.deepEqual([0, 0, 144, 255], at(12, 20));
});

test("a cloud is turned by keys and told of", async () => {
  const { box } = shown([{ type: "points", total: 5, places: { buffer: 0 }, colours: { buffer: 1 } }], {
    buffers: [new DataView(Float32Array.from([0, 0, 0, 1, 0, 0]).buffer), new DataView(new ArrayBuffer(6))],
  });
  const cloud = box.querySelector("canvas");
  assert.match(box.textContent, /^5 points, 2 drawn/);
  await until(() => cloud.pen?.calls.some(([name]) => name === "putImageData"));
  const drawn = () => cloud.pen.calls.filter(([name]) => name === "putImageData").at(-1)[1].data;
  const before = drawn();
  assert.ok(press(cloud, "ArrowLeft"));
  await until(() => Buffer.compare(Buffer.from(before), Buffer.from(drawn())) !== 0);
  assert.ok(!press(cloud, "x"));
  assert.equal("5 points", drawPoints({ total: 5 }, [], { signal: AbortSignal.abort() }).textContent.slice(0, 8));
});

test("the label doctor shows who is taken for whom; a cell filters, surest first, and the same cell again does not", async () => {
  const found = {
    choices: ["cls", "guess", "other"],
    truth: "cls",
    predicted: "guess",
    confidence: "sure",
    accuracy: 0.875,
    labels: ["cat", "dog"],
    counts: [
      [5, 2],
      [0, 1],
    ],
    cells: [
      ["cc", "cd"],
      ["dc", "dd"],
    ],
    wrong: "differ",
    more: 3,
  };
  const picks = [];
  const asked = [];
  const view = {
    rpc: async (...request) => (asked.push(request), { r: found }),
    picks: new Map(),
    pick: (...choice) => picks.push(choice),
    rail: { rove: () => {} },
    trouble: (error) => assert.fail(String(error)),
  };
  const doctor = new Doctor(view);
  placed(doctor.root);
  await doctor.ask();
  assert.match(doctor.root.textContent, /^label doctor 87\.5 % of guess agree/);
  assert.deepEqual(["5", "2", "·", "1"], text(doctor.root, "td"));
  assert.deepEqual(
    ["0", "1", "0", "0"],
    [...doctor.root.querySelectorAll("td")].map((one) => one.style.getPropertyValue("--share")),
  );
  assert.match(doctor.root.textContent, /surest first by sure3 more labels are not shown/);
  click(doctor.root.querySelector("[data-name='cell 0 1']"));
  view.picks.set("doctor", { where: "cd" });
  doctor.draw();
  assert.equal("2", doctor.root.querySelector(".tvz-on").textContent);
  click(doctor.root.querySelector("[data-name='cell 0 1']"));
  click(doctor.root.querySelector("[data-name=mistakes]"));
  const orders = picks.map(([name, where, , , , order]) => [name, where, order.sort, order.column, order.descending]);
  assert.deepEqual(
    [
      ["doctor", "cd", "label", "sure", true],
      ["doctor", "cd", "order", undefined, false],
      ["doctor", "differ", "label", "sure", true],
    ],
    orders,
  );
  put(doctor.root.querySelector("[data-name='doctor predicted']"), "other");
  await until(() => asked.length === 2);
  assert.deepEqual(["doctor", { predicted: "other" }], asked[1]);
});
