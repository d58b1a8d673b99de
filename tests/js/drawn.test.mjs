// What is drawn over pictures and of a bench: boxes, outlines, points, masks and the buttons for them; rates, stages, results.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { drawResults, drawStages } from "../../tarviz/widgets/bench/bench_tables.mjs";
import { drawRateLine } from "../../tarviz/widgets/bench/rate_line.mjs";
import { hoverPlay, playedKind } from "../../tarviz/widgets/browse/page/hover.mjs";
import { h } from "../../tarviz/widgets/host/core.mjs";
import { drawOver, inkOn, layerBar, Layers, overTile } from "../../tarviz/widgets/panes/overlay.mjs";
import { click, placed, put, test, until } from "./dom.mjs";
import { golden } from "./golden.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));
const page = (...children) => {
  const place = placed(...children);
  ends.push(() => place.remove());
  return place;
};

const OVER = {
  width: 40,
  height: 20,
  shapes: [
    ["box", [1, 2, 10, 8], "cat", 0.9],
    ["box", [20, 2, 5, 5], "dog", 0.4],
    ["polygon", [0, 0, 10, 0, 10, 10], "dog", null],
    ["points", [3, 3, 2, 9, 9, 0, 12, 4, 1], "cat", null],
    ["mask", [20, 40, 45, 30, 725], "cat", null],
    ["mask", [20, 40, 400, 25, 375], "", null],
  ],
  masks: [{ ext: "mask.png", buffer: 0, legend: [[1, "sky", "#0000ff"]] }],
};
const COLOURS = { cat: "#ff0000", dog: "#00ff00" };

test("boxes, outlines, points and masks are drawn where they are, each in the colour of its class", async () => {
  const canvas = h("canvas");
  const place = page(canvas);
  drawOver(canvas.getContext("2d"), OVER, new Layers(COLOURS, () => {}), { scale: 3, x: 100, y: 10 });
  await golden("over", place);

  const small = h("canvas");
  drawOver(small.getContext("2d"), OVER, new Layers(COLOURS, () => {}), { scale: 1, x: 0, y: 0 }, { names: false });
  assert.ok(!small.pen.calls.some(([name]) => name === "fillText"));
  assert.deepEqual(
    [2, 2],
    small.pen.calls.filter(([name]) => name === "arc").map(([, , , radius]) => radius),
  );
});

test("what is switched off, hidden or too unsure is not drawn", () => {
  const strokes = (change) => {
    const canvas = h("canvas");
    const layers = new Layers(COLOURS, () => {});
    change(layers);
    drawOver(canvas.getContext("2d"), OVER, layers, { scale: 1, x: 0, y: 0 });
    const count = (wanted) => canvas.pen.calls.filter(([name]) => name === wanted).length;
    return ["strokeRect", "lineTo", "arc", "drawImage", "fillText"].map(count);
  };
  assert.deepEqual(
    [2, 3, 2, 1, 2],
    strokes(() => {}),
  );
  assert.deepEqual(
    [0, 0, 0, 0, 0],
    strokes((layers) => (layers.shown = false)),
  );
  assert.deepEqual(
    [0, 3, 2, 1, 0],
    strokes((layers) => layers.toggle("box")),
  );
  assert.deepEqual(
    [2, 0, 2, 1, 2],
    strokes((layers) => layers.toggle("polygon")),
  );
  assert.deepEqual(
    [2, 3, 0, 1, 2],
    strokes((layers) => layers.toggle("points")),
  );
  assert.deepEqual(
    [2, 3, 2, 0, 2],
    strokes((layers) => layers.toggle("mask")),
  );
  assert.deepEqual(
    [2, 3, 2, 1, 0],
    strokes((layers) => layers.toggle("names")),
  );
  assert.deepEqual(
    [1, 0, 2, 1, 1],
    strokes((layers) => layers.hide("dog")),
  );
  assert.deepEqual(
    [1, 3, 2, 1, 1],
    strokes((layers) => (layers.least = 0.5)),
  );
  assert.deepEqual(
    [2, 3, 2, 1, 2],
    strokes((layers) => (layers.hide("dog"), layers.hide("dog"))),
  );
});

test("the eleventh class is dashed, the twenty-first dotted, and names are read on their colour", () => {
  const names = Array.from({ length: 25 }, (_, at) => `c${at}`);
  const layers = new Layers(Object.fromEntries(names.map((name) => [name, "#123456"])), () => {});
  assert.deepEqual(
    [[], [], [7, 3], [7, 3], [2, 3]],
    [0, 9, 10, 19, 20].map((at) => layers.dash(`c${at}`)),
  );
  assert.deepEqual(["#ffb000", "#123456"], [layers.colour("?"), layers.colour("c3")]);
  assert.deepEqual(["#ffffff", "#101216", "#101216"], ["#0000ff", "#ffff00", "#00ff00"].map(inkOn));
});

test("a tile has its shapes on a canvas of its own, as large as the picture", () => {
  const picture = h("img");
  page(picture);
  const canvas = overTile(OVER, new Layers(COLOURS, () => {}), { picture, scale: 4, x: 5, y: 30 }, undefined);

  assert.equal(canvas, picture.nextSibling);
  assert.deepEqual([160, 80, "5px", "30px"], [canvas.width, canvas.height, canvas.style.left, canvas.style.top]);
  assert.ok(canvas.pen.calls.some(([name]) => name === "strokeRect"));
  assert.ok(!canvas.pen.calls.some(([name]) => name === "fillText"), "a tile is too small for names");
});

test("the buttons below a picture switch what lies over it", async () => {
  let [drawn, changed] = [0, 0];
  const layers = new Layers(COLOURS, () => (changed += 1));
  const only = [];
  const bar = layerBar(
    OVER,
    layers,
    () => (drawn += 1),
    (name) => only.push(name),
  );
  const place = page(bar);
  await golden("layer-bar", place);
  const button = (text) => [...bar.querySelectorAll("button")].find((one) => one.textContent.startsWith(text));
  for (const [text, kind] of [
    ["boxes", "box"],
    ["outlines", "polygon"],
    ["key points", "points"],
    ["names", "names"],
    ["mask.png", "mask"],
  ]) {
    click(button(text));
    assert.equal(false, layers.on[kind], kind);
  }
  click(button("cat"));
  assert.deepEqual(["cat"], [...layers.hidden]);
  click(bar.querySelectorAll(".tvz-only")[1]);
  assert.deepEqual(["dog"], only);
  assert.deepEqual([6, 6], [drawn, changed]);
  const [opacity, least] = bar.querySelectorAll("input");
  put(opacity, "0.25");
  assert.deepEqual([0.25, 7, 6], [layers.opacity, drawn, changed]);
  put(least, "0.5");
  assert.deepEqual([0.5, 7, 7, "0.50"], [layers.least, drawn, changed, bar.querySelector("output").textContent]);
  put(least, "0.5", "change");
  assert.equal(8, drawn);
});

test("film and sound play while the pointer rests on their tile", async () => {
  assert.deepEqual(["video", "audio", ""], ["left.mp4", "flac", "png"].map(playedKind));
  const [film, other] = ["0", "1"].map((at) => h("div", { class: "tvz-tile", "data-position": at }, h("div", { class: "tvz-box" })));
  const area = page(film, other);
  const end = new AbortController();
  hoverPlay(area, (at) => (at === 0 ? { kind: "video", url: "http://localhost/m/0/mp4" } : undefined), end.signal);
  ends.push(() => end.abort());
  click(film.firstChild, {}, "pointerover");
  await until(() => film.querySelector("video"));
  assert.ok(film.querySelector("video").muted);
  click(film, {}, "pointerover");
  assert.ok(film.querySelector("video"));
  click(other, {}, "pointerover");
  assert.ok(!film.querySelector("video"));
  click(film, {}, "pointerover");
  await until(() => film.querySelector("video"));
  click(area, {}, "pointerleave");
  assert.ok(!film.querySelector("video"));
});

const LINES = [
  {
    trial: 0,
    label: "before",
    points: [
      [1, 50, 1],
      [2, 80, 2],
    ],
    first: 0,
  },
  {
    trial: 1,
    label: "workers 2",
    points: [
      [1.5, 90, 3],
      [2.5, 110, 4],
      [4.5, 100, 5],
    ],
    first: 0.5,
  },
];

test("the rate is a line over time, runs before it are ghosts, megabytes have their own scale", async () => {
  const canvas = h("canvas");
  const readout = h("p");
  const place = page(canvas, readout);
  const scale = drawRateLine(canvas, readout, LINES, undefined, undefined);
  await golden("rate-line", place);
  assert.deepEqual([52, 46, 4, 1000], [scale.left, scale.right, scale.end, scale.width]);
  assert.match(readout.textContent, /^100 records\/s 5 MB\/s of payload now,  after 4\.0 s · workers 2$/);
  drawRateLine(canvas, readout, LINES, 1.9, undefined);
  assert.match(readout.textContent, /^110 records\/s .* after 2\.0 s · workers 2$/);
  drawRateLine(canvas, readout, LINES, undefined, { rate: 105, megabytes: 0, margin: 4.2 });
  assert.match(readout.textContent, /^105 records\/s ±4 % · workers 2$/);
  drawRateLine(canvas, readout, [{ trial: 0, label: "x", points: [], first: 0 }], undefined, undefined);
  assert.equal("no batch yet · x", readout.textContent);
});

test("stages and results as tables", async () => {
  const [stages, results, none] = [h("section"), h("section"), h("section")];
  const place = page(stages, results, none);
  drawStages(stages, {
    groups: [
      {
        name: "reader",
        busy: [
          ["read", 0.5],
          ["decode", 0.0912],
        ],
        waiting: 0.4,
        waits: "for the loop",
      },
      { name: "loop", busy: [["batch", 0.999]], waiting: 0.001, waits: "" },
    ],
    stages: [
      ["reader", "read", 2, 0.5],
      ["reader", "decode", 0.4, 0.0912],
      ["loop", "batch", 4, 0.999],
    ],
  });
  const row = { kind: "run", label: "eager", note: "as it is", shown: "1,234", rate: 1234, margin: 24, megabytes: 12.5, error: "" };
  const times = { p50: 1.25, p90: 2.5, p99: 25, first_seconds: 0.125, cache: "warm" };
  drawResults(results, {
    rows: [
      { ...row, ...times },
      { ...row, ...times, label: "tf", rate: 617, margin: null, shown: "617", first_seconds: null },
      { ...row, label: "torch", rate: null, margin: null, shown: "", error: "torch is not installed" },
      { ...row, kind: "stage" },
    ],
    heat: {
      across: ["0", "2"],
      down: ["8", "64"],
      name: "batch",
      cells: [
        [10, 20],
        [null, 15],
      ],
    },
    against: ["last time: 2 % SLOWER"],
    notes: ["cold files"],
  });
  drawStages(none, { running: false });
  await golden("bench-tables", place);
  drawStages(none, { running: true });
  assert.equal("", none.textContent);
});
