// What is drawn over pictures and of a bench: boxes, outlines, points, masks and the buttons for them; rates, stages, results.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { drawResults, drawStages } from "../../tarviz/widgets/bench/bench_tables.mjs";
import { drawRateLine } from "../../tarviz/widgets/bench/rate_line.mjs";
import { hoverPlay, playedKind } from "../../tarviz/widgets/browse/page/hover.mjs";
import { h } from "../../tarviz/widgets/host/core.mjs";
import { drawOver, inkOn, layerBar, Layers, overTile, runRects } from "../../tarviz/widgets/panes/overlay.mjs";
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

test("colours that an ink is black on begin where the eye takes them for light", () => {
  assert.deepEqual(["#ffffff", "#101216"], ["#8c8c8c", "#8d8d8d"].map(inkOn));
  assert.deepEqual(["#ffffff", "#101216", "#101216"], ["#ff4600", "#ff6e00", "#a0a000"].map(inkOn));
});

test("a name stands above its box, inside where there is no room, with its score", () => {
  const canvas = h("canvas");
  const shapes = [
    ["box", [10, 20, 5, 5], "cat", 0.25],
    ["box", [10, 2, 5, 5], "", 0.5],
    ["box", [10, 14, 5, 5], "dog", null],
    ["box", [0, 0, 5, 5], "", null],
  ];
  drawOver(canvas.getContext("2d"), { width: 40, height: 40, shapes, masks: [] }, new Layers(COLOURS, () => {}), { scale: 2, x: 3, y: 1 });
  const of = (wanted) => canvas.pen.calls.filter(([name]) => name === wanted).map(([, ...values]) => values);
  assert.deepEqual(
    [
      ["cat 0.25", 25, 37.5],
      ["0.50", 25, 15.5],
      ["dog", 25, 25.5],
    ],
    of("fillText"),
  );
  assert.deepEqual(
    [
      [22.1, 27, 54, 14],
      [22.1, 5, 30, 14],
      [22.1, 15, 24, 14],
    ],
    of("fillRect"),
  );
  assert.deepEqual(
    [
      [23, 41, 10, 10],
      [23, 5, 10, 10],
      [23, 29, 10, 10],
      [3, 1, 10, 10],
    ],
    of("strokeRect"),
  );
  assert.deepEqual([["600 11px system-ui, sans-serif"], [1.75]], [of("font")[0], of("lineWidth")[0]]);
});

test("key points are dots with a white rim, those that are not seen are left out, an outline is filled faintly", () => {
  const canvas = h("canvas");
  const shapes = [
    ["points", [1, 2, 1, 5, 6, 0, 8, 9, 2, 7], "cat", null],
    ["polygon", [0, 0, 4, 0, 4, 4], "dog", 0.5],
  ];
  const layers = new Layers(COLOURS, () => {});
  layers.least = 0.5;
  drawOver(canvas.getContext("2d"), { width: 40, height: 40, shapes, masks: [] }, layers, { scale: 2, x: 3, y: 1 });
  const of = (wanted) => canvas.pen.calls.filter(([name]) => name === wanted).map(([, ...values]) => values);
  assert.deepEqual(
    [
      [5, 5, 3.5, 0, 7],
      [19, 19, 3.5, 0, 7],
    ],
    of("arc"),
  );
  assert.deepEqual(
    [
      [3, 1],
      [11, 1],
      [11, 9],
    ],
    of("lineTo"),
  );
  assert.deepEqual([[0.5], [0.22], [1]], of("globalAlpha"));
  assert.deepEqual(["#ff0000", "#ffffff", "#ffffff", "#00ff00"], of("strokeStyle").flat());
  assert.deepEqual([1.75, 1, 1, 1.75], of("lineWidth").flat());
});

test("masks without a name have colours of their own, on a canvas as large as the first, painted once", () => {
  const shapes = [
    ["mask", [2, 4, 2, 6], "", null],
    ["mask", [4, 2, 0, 8], "", 0.3],
    ["mask", [2, 4, 4, 4], "cat", null],
  ];
  const layers = new Layers(COLOURS, () => {});
  const drawn = (options) => {
    const canvas = h("canvas");
    drawOver(canvas.getContext("2d"), { width: 40, height: 20, shapes, masks: [] }, layers, { scale: 0.5, x: 1, y: 2 }, options);
    return canvas.pen.calls.filter(([name]) => name === "drawImage").map(([, ...values]) => values);
  };
  const [[mask, ...place], ...others] = drawn({ masks: [undefined] });
  assert.deepEqual([[1, 2, 20, 10], []], [place, others]);
  assert.deepEqual([4, 2], [mask.width, mask.height]);
  const of = (wanted) => mask.pen.calls.filter(([name]) => name === wanted).map(([, ...values]) => values);
  assert.deepEqual(["hsl(328.5 72% 60%)", "hsl(106 72% 60%)", "#ff0000"], of("fillStyle").flat());
  assert.deepEqual(
    [
      [1, 0, 0, 1, 0, 0],
      [2, 0, 0, 0.5, 0, 0],
      [1, 0, 0, 1, 0, 0],
    ],
    of("setTransform"),
  );
  assert.deepEqual(
    [
      [1, 0, 3, 2],
      [0, 0, 2, 4],
      [2, 0, 2, 2],
    ],
    of("fillRect"),
  );
  assert.equal(mask, drawn()[0][0]);
  layers.least = 0.3;
  assert.equal(mask, drawn()[0][0], "a score as high as the least is drawn");
  layers.least = 0.31;
  const fewer = drawn()[0][0];
  assert.notEqual(mask, fewer);
  assert.equal(2, fewer.pen.calls.filter(([name]) => name === "fillRect").length);
  layers.hide("cat");
  assert.equal(1, drawn()[0][0].pen.calls.filter(([name]) => name === "fillRect").length);
});

test("lines of the first ten classes are whole, of the next ten dashed, then dotted; those of key points are whole", () => {
  const colours = Object.fromEntries(Array.from({ length: 31 }, (_, at) => [`c${at}`, "#ff0000"]));
  const layers = new Layers({ c10: "#ff0000" }, () => {});
  const dashes = () => {
    const canvas = h("canvas");
    const shapes = ["c9", "c10", "c20", "c30", "other"].map((name) => ["box", [0, 0, 1, 1], name, null]);
    shapes.push(["points", [1, 1, 2], "c10", null]);
    drawOver(canvas.getContext("2d"), { width: 4, height: 4, shapes, masks: [] }, layers, { scale: 1, x: 0, y: 0 });
    return canvas.pen.calls.filter(([name]) => name === "setLineDash").map(([, dash]) => dash.join());
  };
  assert.deepEqual(["", "", "", "", "", ""], dashes());
  layers.colours = colours;
  assert.deepEqual(["", "7,3", "2,3", "", "", ""], dashes());
});

test("a name stands over its box, within it where there is no room above", () => {
  const canvas = h("canvas");
  const shapes = [14, 13].map((top) => ["box", [0, top, 9, 9], "cat", null]);
  drawOver(canvas.getContext("2d"), { width: 40, height: 40, shapes, masks: [] }, new Layers({}, () => {}), { scale: 1, x: 0, y: 0 });
  const tops = canvas.pen.calls.filter(([name]) => name === "fillRect").map(([, , top]) => top);
  assert.deepEqual([0, 13], tops);
});

test("a run of a mask is the rest of a column, whole columns, the beginning of one", () => {
  assert.deepEqual(
    [
      [0, 1, 1, 3],
      [1, 0, 2, 4],
      [3, 0, 1, 2],
      [4, 1, 1, 2],
      [5, 0, 1, 4],
    ],
    runRects([4, 6, 1, 13, 3, 2, 1, 4]),
  );
});

test("only what is there can be switched; names are counted by their boxes, else by their outlines", () => {
  const bar = (over, only) =>
    layerBar({ width: 4, height: 4, masks: [], shapes: [], ...over }, new Layers(COLOURS, () => {}), () => {}, only);
  const texts = (over, only) => [...bar(over, only).querySelectorAll("button, label, span.tvz-class")].map((one) => one.textContent);
  const outline = ["polygon", [0, 0], "dog", null];
  assert.deepEqual(["outlines", "dog 2"], texts({ shapes: [outline, outline] }));
  assert.deepEqual(["boxes", "outlines", "names", "cat"], texts({ shapes: [outline, ["box", [0, 0, 1, 1], "cat", null]] }));
  assert.deepEqual(
    ["key points", "unnamed"],
    texts({ shapes: [["points", [0, 0, 1], "", null]] }, () => {}),
  );
  assert.deepEqual(
    ["masks", "confidence ≥ 0.00", "cat", "only"],
    texts({ shapes: [["mask", [1, 1, 0, 1], "cat", 2.5]] }, () => {}),
  );
  const legend = {
    ext: "m.png",
    buffer: 0,
    legend: [
      [1, "sky", "#0000ff"],
      [2, "", "#000"],
    ],
  };
  assert.deepEqual(["m.png, n.png", "sky", "2"], texts({ masks: [legend, { ext: "n.png" }] }));
  const slider = bar({ shapes: [["mask", [1, 1, 0, 1], "cat", 2.5]] }).querySelector(".tvz-confidence input");
  assert.deepEqual(["2.5", "0", "0.01", "0"], [slider.max, slider.min, slider.step, slider.value]);
  const least = bar({ shapes: [["box", [1, 1, 0, 1], "cat", 0.5]] });
  assert.equal("1", least.querySelector(".tvz-confidence input").max);
  const opacity = bar({ masks: [legend] }).querySelector("input");
  assert.deepEqual(["0", "1", "0.05", "0.5"], [opacity.min, opacity.max, opacity.step, opacity.value]);
});

test("the mask of a tile is drawn once it is there, names only on large tiles, both finely on a fine screen", async () => {
  const picture = h("img");
  page(picture);
  const layers = new Layers(COLOURS, () => {});
  const over = { ...OVER, shapes: OVER.shapes.slice(0, 2) };
  const words = (scale) =>
    overTile(over, layers, { picture, scale, x: 0, y: 0 }, undefined).pen.calls.filter(([name]) => name === "fillText").length;
  assert.deepEqual([0, 2], [5.5, 5.52].map(words));
  globalThis.devicePixelRatio = 3;
  const fine = overTile(over, layers, { picture, scale: 2, x: 0, y: 0 }, undefined);
  delete globalThis.devicePixelRatio;
  assert.deepEqual([160, 80, "80px", "40px"], [fine.width, fine.height, fine.style.width, fine.style.height]);
  assert.deepEqual(["setTransform", 2, 0, 0, 2, 0, 0], fine.pen.calls[0]);
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 4, 0, 0, 0, 2]);
  const masked = (bytes) => overTile(over, layers, { picture, scale: 1, x: 0, y: 0 }, URL.createObjectURL(new Blob([bytes])));
  const images = (canvas) => canvas.pen?.calls.filter(([name]) => name === "drawImage").length;
  const [whole, broken] = [masked(png), masked(new Uint8Array(3))];
  assert.equal(undefined, whole.pen);
  await until(() => images(whole) === 1 && images(broken) === 0);
  layers.on.mask = false;
  assert.equal(0, images(masked(png)), "a mask that is switched off is not waited for");
});

test("a tile has its shapes on a canvas of its own, as large as the picture", () => {
  const picture = h("img");
  page(picture);
  const canvas = overTile(OVER, new Layers(COLOURS, () => {}), { picture, scale: 4, x: 5, y: 30 }, undefined);

  assert.equal(canvas, picture.nextSibling);
  assert.deepEqual([160, 80, "5px", "30px"], [canvas.width, canvas.height, canvas.style.left, canvas.style.top]);
  assert.deepEqual(
    ["strokeRect", 4, 8, 40, 32],
    canvas.pen.calls.find(([name]) => name === "strokeRect"),
  );
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
  assert.ok(film.querySelector("video").muted && film.querySelector("video").loop);
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
  const marks = canvas.pen.calls.filter(([name]) => name === "fillText").map(([, text]) => text);
  assert.deepEqual(["0", "1", "0 s"], marks.slice(marks.lastIndexOf("0")).slice(0, 3));
});

test("the axes of a rate: marks and words, how long the first batch took, megabytes to the right", () => {
  const [canvas, readout] = [h("canvas"), h("p")];
  page(canvas, readout);
  drawRateLine(canvas, readout, LINES, undefined, undefined);
  assert.deepEqual(
    ["clearRect", 0, 0, 1000, 600],
    canvas.pen.calls.find(([name]) => name === "clearRect"),
  );
  const texts = () =>
    canvas.pen.calls
      .splice(0)
      .filter(([name]) => name === "fillText")
      .map(([, ...values]) => values);
  const marks = texts();
  assert.deepEqual(
    [
      ["0", 46, 578],
      ["25", 46, 464],
      ["50", 46, 350],
      ["75", 46, 236],
    ],
    marks.slice(0, 4),
  );
  assert.deepEqual(
    [
      ["0 s", 52, 591],
      ["1 s", 277.5, 591],
    ],
    marks.slice(6, 8),
  );
  assert.deepEqual(
    ["0", "2", "4", "6"],
    marks.slice(11, 15).map(([text]) => text),
  );
  assert.deepEqual(
    [
      [960, 578],
      [960, 8],
    ],
    [marks[11], marks[14]].map(([, ...place]) => place),
  );
  assert.deepEqual([["first batch after 500 ms", 57, 569]], marks.slice(15));
  const near5 = LINES.map((line) => ({ ...line, points: line.points.map(([at, rate, size]) => [at, rate * 1.09, size * 1.19]) }));
  drawRateLine(canvas, readout, near5, undefined, undefined);
  const room = texts().map(([text]) => text);
  assert.deepEqual(["0", "50", "100", "150"], room.slice(0, 4), "120 is too near to 125: there is room above");
  assert.deepEqual(["0", "2.5", "5", "7.5"], room.slice(9, 13));
  const long = { ...LINES[1], points: [[10.5, 5, 0]] };
  drawRateLine(canvas, readout, [long], undefined, undefined);
  assert.deepEqual(
    ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"],
    texts()
      .map(([text]) => text)
      .filter((text) => / s$/.test(text)),
  );
  const [ghost] = LINES;
  const quiet = { ...ghost, points: [[0.5, 10, 0]] };
  const scale = drawRateLine(canvas, readout, [quiet], undefined, undefined);
  assert.deepEqual([52, 12, 1], [scale.left, scale.right, scale.end]);
  assert.equal("10 records/s now,  after 0.5 s · before", readout.textContent);
  const words = texts().map(([text]) => text);
  assert.ok(!words.some((text) => /first/.test(text)));
  assert.equal(1, words.filter((text) => text === "0").length, "no second axis where nobody knows the bytes");
  drawRateLine(canvas, readout, [quiet], 0.5, { rate: 99, megabytes: 3, margin: 0 });
  assert.equal("10 records/s after 0.5 s · before", readout.textContent);
  drawRateLine(canvas, readout, [quiet], undefined, { rate: 99, megabytes: 3, margin: 0 });
  assert.equal("99 records/s 3 MB/s of payload · before", readout.textContent);
  assert.deepEqual(
    [1, undefined],
    [
      drawRateLine(canvas, readout, [], undefined)?.end,
      drawRateLine(Object.assign(h("canvas"), { getContext: () => null }), readout, LINES),
    ],
  );
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
      { name: "loop", busy: [["batch", 0.999]], waiting: 0.001, waits: "for records" },
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
  const graph = Array.from({ length: 11 }, (_, at) => ["graph", `op ${at}`, 0, 0]);
  drawStages(none, { groups: [], stages: graph });
  const bars = [...none.querySelectorAll(".tvz-ms-bar")].map((bar) => [bar.classList.item(2), bar.style.width]);
  assert.deepEqual(["11 stages", "tvz-c0", "0%", "tvz-c9", "tvz-c0"], [`${bars.length} stages`, ...bars[0], bars[9][0], bars[10][0]]);
  const slow = { ...row, ...times, label: "slow", rate: 0.5 };
  drawResults(results, {
    rows: [slow, { ...row, error: "no", rate: null }],
    heat: { across: ["0"], down: ["8"], name: "batch", cells: [[0.25]] },
  });
  assert.deepEqual(
    ["1", "0", "1"],
    [...results.querySelectorAll("td")].map((cell) => cell.style.getPropertyValue("--share")).filter(Boolean),
  );
});
