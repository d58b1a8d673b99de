// The stage of a comparison by itself: what its modes paint, how it is zoomed and dragged, what it tells; tiles of steps.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Stage } from "../../tarviz/widgets/compare/stage.mjs";
import { drawStep, step, tileLabel, tileScale } from "../../tarviz/widgets/compare/strips.mjs";
import { differenceText, lines } from "../../tarviz/widgets/compare/strips.mjs";
import { gained, nextGain, placed as lies } from "../../tarviz/widgets/compare/picture_pairs.mjs";
import { Layers } from "../../tarviz/widgets/panes/overlay.mjs";
import { click, placed, press, test, until, wheel } from "./dom.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** Two pictures of 90 by 60, B half as large, on 1000 by 600. */
async function staged(more = {}) {
  const end = new AbortController();
  const told = { changed: 0, asked: [] };
  const pictures = { a: { width: 90, height: 60 }, b: { width: 45, height: 30 }, ...more.pictures };
  const { createImageBitmap } = globalThis;
  globalThis.createImageBitmap = async (name) => pictures[name];
  const stage = new Stage(end.signal, {
    ask: async (place) => (told.asked.push(place), pictures[place] && place),
    changed: () => (told.changed += 1),
    layers: new Layers({}, () => {}),
    ...more,
  });
  const place = placed(stage.root);
  place.className = "tvz";
  ends.push(() => (end.abort(), place.remove(), (globalThis.createImageBitmap = createImageBitmap)));
  const side = (name) => ({
    name,
    place: name,
    title: `step ${name}`,
    text: `${name} failed`,
    small: undefined,
    mapping: "",
    ...more[name],
  });
  stage.set(side("a"), side("b"));
  if (!more.pictures) await until(() => stage.sides.every(({ bitmap }) => bitmap));
  const drawn = (wanted) => {
    stage.canvas.pen.calls.length = 0;
    stage.draw();
    return stage.canvas.pen.calls.filter(([name]) => name === wanted).map(([, ...values]) => values);
  };
  return { stage, told, drawn, pictures, side };
}
const near = (wanted, found) => wanted.forEach((value, at) => assert.ok(Math.abs(value - found[at]) < 1e-9, `${found}, not ${wanted}`));

test("side by side each has a half, four pixels apart", async () => {
  const { stage, drawn, pictures } = await staged();
  assert.deepEqual(
    [
      [0, 0, 498, 600],
      [502, 0, 498, 600],
    ],
    drawn("rect"),
  );
  assert.deepEqual(
    [
      [pictures.a, 24, 150, 450, 300],
      [pictures.b, 503.5, 135, 495, 330],
    ],
    drawn("drawImage"),
  );
  assert.deepEqual(
    ["step a", "step b"],
    [...stage.names.children].map((one) => one.textContent.slice(2)),
  );
  assert.deepEqual([false, false], drawn("imageSmoothingEnabled").flat());
  pictures.b.width = 400;
  assert.deepEqual([false, true], drawn("imageSmoothingEnabled").flat(), "drawn at less than three times its size");
  stage.view.zoom = 0.6;
  assert.deepEqual([false, true], drawn("imageSmoothingEnabled").flat(), "three times is enough to see its pixels");
});

test("wiped, B lies right of the cut in the place of A; with Shift the picture is dragged", async () => {
  const { stage, told, drawn, pictures } = await staged();
  stage.turn("wipe");
  assert.deepEqual([1, 0.5], [told.changed, stage.cut]);
  const whole = [50, 0, 900, 600];
  assert.deepEqual(
    [
      [pictures.a, ...whole],
      [pictures.b, ...whole],
    ],
    drawn("drawImage"),
  );
  stage.wipe(0.3);
  assert.deepEqual(
    [
      [0, 0, 1000, 600],
      [300, 0, 700, 600],
      [0, 0, 1000, 600],
    ],
    drawn("rect"),
  );
  assert.deepEqual([[299, 0, 2, 600]], drawn("fillRect"));
  stage.frame.style.setProperty("--tvz-accent", "red");
  assert.deepEqual([["red"]], drawn("fillStyle"));
  assert.deepEqual([[300, 0, 700, 600]], drawn("clearRect"));
  assert.deepEqual([true, 0.32], [stage.key("ArrowRight"), stage.cut]);
  stage.key("ArrowLeft");
  near([0.3], [stage.cut]);
  assert.ok(!stage.key("ArrowUp"));
  stage.wipe(-3);
  assert.equal(0, stage.cut);
  stage.wipe(3);
  assert.equal(1, stage.cut);
  click(stage.canvas, { clientX: 250 }, "pointerdown");
  assert.deepEqual([0.25, 0], [stage.cut, stage.frame.tabIndex]);
  click(stage.canvas, { clientX: 400, buttons: 1 }, "pointermove");
  assert.equal(0.4, stage.cut);
  click(stage.canvas, { clientX: 100, shiftKey: true }, "pointerdown");
  click(stage.canvas, { clientX: 100, buttons: 1, movementX: 9, movementY: -6 }, "pointermove");
  assert.equal(0.4, stage.cut, "with Shift the picture is dragged");
  near([0.49, 0.51], [stage.view.x, stage.view.y]);
});

test("blinking, now one picture is there and now the other, for as long as the page; not for those who want no motion", async (t) => {
  const begun = async (matches) => {
    const { matchMedia } = globalThis;
    globalThis.matchMedia = () => ({ matches });
    t.mock.timers.enable({ apis: ["setInterval"] });
    const { stage, drawn, pictures } = await staged();
    globalThis.matchMedia = matchMedia;
    stage.turn("blink");
    const shown = () =>
      drawn("drawImage")
        .map(([picture]) => (picture === pictures.a ? "a" : "b"))
        .join();
    const told = [0, 649, 1, 650].map((wait) => (t.mock.timers.tick(wait), shown()));
    stage.root.remove();
    t.mock.timers.tick(650);
    const gone = shown();
    placed(stage.root).className = "tvz";
    t.mock.timers.tick(650);
    assert.ok(!stage.key("ArrowRight"));
    stage.turn("blink");
    t.mock.timers.tick(650);
    t.mock.timers.reset();
    return [...told, gone, shown()];
  };

  assert.deepEqual(["a", "a", "b", "a", "a", "a,b"], await begun(false));
  assert.deepEqual(["a", "a", "a", "a", "a", "a,b"], await begun(true));
});

test("the difference is made once for a pair and a gain, as large as A, without what lies over", async () => {
  const { stage, drawn, pictures } = await staged({
    a: { over: { width: 90, height: 60, shapes: [["box", [0, 0, 9, 9], "", null]], masks: [] } },
    b: { over: { width: 30, height: 20, shapes: [["box", [0, 0, 1, 1], "", null]], masks: [] } },
  });
  assert.deepEqual(
    [
      [24, 150, 45, 45],
      [503.5, 135, 16.5, 16.5],
    ],
    drawn("strokeRect"),
  );
  const { getContext } = OffscreenCanvas.prototype;
  const read = [];
  OffscreenCanvas.prototype.getContext = function (...how) {
    const pen = getContext.apply(this, how);
    const { getImageData } = pen;
    pen.getImageData = (...at) => (read.push(at), getImageData(...at));
    read.push(how);
    return pen;
  };
  stage.turn("difference");
  OffscreenCanvas.prototype.getContext = getContext;
  assert.deepEqual(
    [
      ["2d", { willReadFrequently: true }],
      [0, 0, 90, 60],
      [0, 0, 90, 60],
    ],
    read,
  );
  const [[canvas, ...place], ...more] = drawn("drawImage");
  assert.deepEqual([90, 60, 50, 0, 900, 600, 0], [canvas.width, canvas.height, ...place, more.length]);
  assert.equal(0, drawn("strokeRect").length);
  assert.deepEqual(
    [pictures.a, pictures.b],
    canvas.pen.calls.filter(([name]) => name === "drawImage").map(([, of]) => of),
  );
  assert.deepEqual([0, 0, 90, 60], canvas.pen.calls.filter(([name]) => name === "drawImage")[1].slice(2));
  const strokes = (wanted) => canvas.pen.calls.filter(([name]) => name === wanted).map(([, ...values]) => values.slice(-4));
  assert.deepEqual([0, 0, 90, 60], strokes("clearRect")[0]);
  assert.deepEqual([0, 0], strokes("putImageData")[0].slice(1));
  assert.equal(canvas, drawn("drawImage")[0][0]);
  assert.deepEqual(["× 8", false], [stage.gainButton.textContent, stage.gainButton.hidden]);
  stage.louder(1);
  assert.notEqual(canvas, drawn("drawImage")[0][0]);
  const gains = Array.from({ length: 4 }, () => (click(stage.gainButton), stage.gain));
  assert.deepEqual([32, 64, 1, 2], gains);
  const pressed = () => stage.buttons.map((button) => button.getAttribute("aria-pressed"));
  assert.deepEqual(["false", "false", "false", "true"], pressed());
  stage.turn("difference");
  assert.deepEqual(["true", "false", "false", "false"], pressed());
  assert.ok(stage.gainButton.hidden);
  assert.deepEqual({ mode: "side", gain: 2, cut: 0.5 }, stage.state());
});

test("closer, the point under the pointer stays, in either half; as close as 64 times, as far as half", async () => {
  const { stage } = await staged();
  const under = (x, y) => {
    const { scale, left, top } = lies({ width: 90, height: 60 }, stage.half(), stage.view);
    return [(x - left) / scale, (y - top) / scale];
  };
  const before = under(100, 200);
  stage.zoom(3, { x: 100, y: 200 });
  near(before, under(100, 200));
  assert.equal(3, stage.view.zoom);
  stage.fit();
  stage.zoom(3, { x: 602, y: 200 });
  near(before, under(100, 200));
  stage.fit();
  stage.zoom(2);
  near([0.5, 0.5], [stage.view.x, stage.view.y]);
  stage.turn("wipe");
  const wide = under(700, 200);
  stage.zoom(2, { x: 700, y: 200 });
  near(wide, under(700, 200));
  stage.zoom(100);
  assert.equal(64, stage.view.zoom);
  stage.zoom(1e-9);
  assert.equal(0.5, stage.view.zoom);
  stage.louder(1);
  near([0.75], [stage.view.zoom]);
  stage.louder(-1);
  near([0.5], [stage.view.zoom]);
  click(stage.canvas, {}, "dblclick");
  assert.equal(1, stage.view.zoom);
  click(stage.canvas, {}, "dblclick");
  assert.equal(4, stage.view.zoom);
  wheel(stage.canvas, -100, {});
  assert.equal(4, stage.view.zoom, "the page scrolls while it has no keys");
  stage.frame.focus();
  stage.canvas.getBoundingClientRect = () => ({ left: 100, top: 50, width: 1000, height: 600 });
  const from = stage.view;
  wheel(stage.canvas, -100, { clientX: 700, clientY: 350 });
  near([4 * Math.exp(0.16)], [stage.view.zoom]);
  const turned = stage.view;
  stage.view = from;
  stage.zoom(Math.exp(0.16), { x: 600, y: 300 });
  near([stage.view.x, stage.view.y], [turned.x, turned.y]);
});

test("what is under the pointer is told of both, at the same place of each", async () => {
  const { stage } = await staged();
  const told = (x, y) => (click(stage.canvas, { clientX: x, clientY: y }, "pointermove"), stage.probe.textContent);
  const values = [
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ];
  const read = [];
  assert.match(told(24, 150), /^\(0, 0\) /);
  stage.tip = {
    clearRect: (...at) => read.push(at),
    drawImage: (of, ...at) => read.push([of.width, ...at]),
    getImageData: (...at) => (read.push(at), { data: values[read.length > 3 ? 1 : 0] }),
  };
  assert.equal("(3, 10) A 1 2 3 · B 5 6 7 · 500 %", told(24 + 17, 150 + 51));
  assert.deepEqual(
    [
      [0, 0, 1, 1],
      [90, 3, 10, 1, 1, 0, 0, 1, 1],
      [0, 0, 1, 1],
      [0, 0, 1, 1],
      [45, 1, 5, 1, 1, 0, 0, 1, 1],
      [0, 0, 1, 1],
    ],
    read,
  );
  assert.match(told(502 + 24 + 15, 150), /^\(3, 0\) /);
  for (const [x, y] of [
    [23, 200],
    [474, 200],
    [100, 149],
    [100, 450],
  ])
    assert.equal("\u200b", told(x, y));
  assert.match(told(473, 449), /^\(89, 59\) /);
  click(stage.canvas, {}, "pointerleave");
  assert.equal("\u200b", stage.probe.textContent);
  const { stage: half } = await staged({ pictures: { a: undefined } });
  await until(() => half.sides[1].bitmap);
  click(half.canvas, { clientX: 600, clientY: 200 }, "pointermove");
  assert.match(half.probe.textContent, /^\(\d+, \d+\) B 0 0 0 · /);
  half.zoom(2);
  assert.equal(2, half.view.zoom, "one picture is enough");
});

test("a step without a picture is there in words, in lines as wide as its room", async () => {
  const words = Array.from({ length: 400 }, () => "word").join(" ");
  const { stage, drawn } = await staged({ pictures: { b: undefined }, b: { text: words } });
  await until(() => stage.sides[0].bitmap);
  const told = drawn("fillText");
  assert.deepEqual([24, 502 + 8, 20, 36], [told.length, told[0][1], told[0][2], told[1][2]]);
  assert.ok(told.every(([line]) => line.length <= 76) && told[0][0].length > 70);
  Object.defineProperty(stage.frame, "clientWidth", { value: 90, configurable: true });
  stage.sides[1].side.text = "abcdefghijkl";
  assert.deepEqual(
    ["abcdefghij", "kl"],
    drawn("fillText").map(([line]) => line),
    "ten letters at least",
  );
  delete stage.frame.clientWidth;
  stage.set({ ...stage.sides[0].side }, { name: "c", place: "c", title: "", text: "", mapping: "to grey" });
  assert.deepEqual(
    ["…"],
    drawn("fillText").map(([text]) => text),
  );
  assert.deepEqual(
    ["", "shown to grey"],
    [...stage.names.children].map((one) => one.title),
  );
  const { stage: empty } = await staged({ pictures: { a: undefined, b: undefined } });
  empty.zoom(2);
  assert.equal(1, empty.view.zoom);
  click(empty.canvas, { buttons: 1, movementX: 5 }, "pointermove");
  assert.equal(0.5, empty.view.x);
});

test("a picture is asked for once, the last 24 are kept", async () => {
  const { stage, told, side, pictures } = await staged();
  assert.deepEqual(["a", "b"], told.asked);
  stage.set(side("b"), side("a"));
  stage.set(side("a"), side("b"));
  await until(() => stage.sides.every(({ bitmap }) => bitmap));
  assert.deepEqual(["a", "b"], told.asked);
  for (let at = 0; at < 22; at += 1) stage.load(side(`x${at}`));
  assert.deepEqual([24, true], [stage.known.size, stage.known.has("a")]);
  stage.load(side("y"));
  assert.deepEqual([24, false], [stage.known.size, stage.known.has("a")]);
  pictures.c = { width: 30, height: 20 };
  stage.set(side("a"), side("c"));
  await until(() => stage.sides[1].bitmap === pictures.c);
});

test("a mask is asked for once, is there when it has come, the last 48 are kept", async () => {
  const { stage } = await staged();
  const png = new Uint8Array(24);
  new DataView(png.buffer).setUint32(16, 3);
  const addresses = Array.from({ length: 50 }, () => URL.createObjectURL(new Blob([png])));
  let drawn = 0;
  stage.draw = () => (drawn += 1);
  assert.deepEqual([undefined, undefined, 0], [stage.maskAt(undefined), stage.maskAt(""), stage.masks.size]);
  assert.equal(undefined, stage.maskAt(addresses[0]));
  await until(() => drawn === 1);
  const image = stage.maskAt(addresses[0]);
  assert.deepEqual([3, 1], [image.naturalWidth, drawn]);
  assert.equal(image, stage.maskAt(addresses[0]));
  for (const address of addresses.slice(0, 48)) stage.maskAt(address);
  assert.equal(image, stage.maskAt(addresses[0]));
  stage.maskAt(addresses[48]);
  assert.deepEqual([48, false, true], [stage.masks.size, stage.masks.has(addresses[0]), stage.masks.has(addresses[1])]);
  await until(() => drawn === 49);
});

test("fine screens have fine stages", async () => {
  globalThis.devicePixelRatio = 2;
  ends.push(() => delete globalThis.devicePixelRatio);
  const { stage, drawn } = await staged();
  assert.deepEqual([[2, 0, 0, 2, 0, 0]], drawn("setTransform"));
  assert.deepEqual([2000, 1200], [stage.canvas.width, stage.canvas.height]);
  for (const name of ["clientWidth", "clientHeight"]) Object.defineProperty(stage.frame, name, { value: 0 });
  delete globalThis.devicePixelRatio;
  stage.draw();
  assert.deepEqual([300, 220], [stage.canvas.width, stage.canvas.height], "one that has no room yet");
});

const TILE = {
  op: "flip(png)",
  ext: "png",
  feature: "uint8 (1, 2, 3)",
  range: "0 … 9",
  ms: "1 ms",
  drawn: "drawn 3",
  behind: "",
  mapping: "as it is",
  error: "",
  text: "no picture",
};
const shownStep = (more, options = {}) =>
  drawStep(
    { ...TILE, ...more },
    { record: 0, column: 1, step: 2 },
    { px: 120, url: undefined, layers: new Layers({}, () => {}), ...options },
  );

test("the picture of a step stays where it is when it is dragged", () => {
  assert.equal(false, shownStep({}, { url: "data:," }).querySelector("img").draggable);
});

test("a step as a tile: its op, what it holds, how long it took, what was drawn", () => {
  const words = (more) => [...shownStep(more).querySelectorAll(".tvz-ccap .tvz-cut")].map((one) => one.textContent);
  assert.deepEqual(["flip(png)", "uint8 (1,2,3)", "0 … 9", "drawn 3"], words({}));
  assert.deepEqual(["chain", "png: uint8 (1,2,3)", "0 … 9", "drawn 3"], words({ op: "chain: the whole chain" }));
  assert.deepEqual(
    ["png", "uint8 (1,2,3)", "0 … 9", "drawn 3", "late", "shown grey"],
    words({ op: "", behind: "late", mapping: "grey from 0 to 9" }),
  );
  assert.deepEqual(["flip(png)", "drawn 3"], words({ error: "E_OP: no way: out" }));
  const refused = shownStep({ error: "E_OP: no way: out" }).querySelector(".tvz-refused");
  assert.deepEqual(
    ["E_OP", "no way: out"],
    [...refused.children].map((one) => one.textContent),
  );
  const tile = shownStep({});
  assert.equal("no picture", tile.querySelector(".tvz-snippet").textContent);
  assert.deepEqual(
    ['{"record":0,"column":1,"step":2}', "flip(png)", "false"],
    [tile.dataset.place, tile.title, tile.getAttribute("aria-selected")],
  );
  assert.deepEqual(
    ["A", "B"],
    [...tile.querySelectorAll("[data-pin]")].map((pin) => pin.textContent),
  );
  assert.equal(
    "flip(png), uint8 (1, 2, 3), 0 … 9, 1 ms, drawn 3, shown as it is, 2 drawn over it",
    tileLabel({ ...TILE, over: { shapes: [1, 2] } }),
  );
});

test("a small picture grows in its tile with what lies over it, a large one is left to the page", async () => {
  const over = { width: 20, height: 10, shapes: [["box", [0, 0, 9, 9], "", null]], masks: [] };
  const grown = (width, height, options = {}) => {
    const picture = shownStep({ over }, { url: "http://localhost/x.png", ...options }).querySelector("img");
    for (const [name, value] of [
      ["naturalWidth", width],
      ["naturalHeight", height],
    ])
      Object.defineProperty(picture, name, { value });
    picture.onload();
    const { left, top, width: wide } = picture.nextSibling?.style ?? {};
    return [picture.className, picture.style.width, picture.style.height, left, top, wide];
  };
  assert.deepEqual(["tvz-pixels", "120px", "60px", "0px", "30px", "120px"], grown(20, 10));
  assert.deepEqual(["tvz-pixels", "120px", "60px"], grown(60, 30).slice(0, 3));
  assert.deepEqual(["", "", "", "10px", "30px", "100px"], grown(100, 60));
  assert.deepEqual(["", "", "", "0px", "30px", "120px"], grown(240, 120));
  const layers = new Layers({}, () => {});
  layers.shown = false;
  assert.equal(undefined, grown(20, 10, { layers })[3]);
});

test("how large a picture is in a tile, from a half of it on", () => {
  assert.deepEqual(
    [2, 1, 1, 0.5, 120],
    [tileScale(60, 1, 120), tileScale(61, 1, 120), tileScale(120, 1, 120), tileScale(1, 240, 120), tileScale(1, 1, 120)],
  );
});

test("where a picture lies grows by whole numbers above twice its size, and the gains have seven steps", () => {
  const room = { width: 100, height: 100 };
  const scale = (side, zoom = 1) => lies({ width: side, height: side }, room, { zoom, x: 0.5, y: 0.5 }).scale;
  assert.deepEqual([2, 2, 100 / 51, 1, 3, 16, 6], [scale(50), scale(34), scale(51), scale(100), scale(33), scale(2), scale(50, 3)]);
  assert.deepEqual([-50, -30], Object.values(lies({ width: 100, height: 100 }, room, { zoom: 2, x: 0.5, y: 0.4 })).slice(1));
  assert.deepEqual(
    [1, 2, 64, 1, 1, 64],
    [nextGain(1, -1), nextGain(1, 1), nextGain(64, 1), nextGain(64, -6), nextGain(2, -6), nextGain(3, 9)],
  );
  const a = Uint8ClampedArray.of(0, 9, 0, 1, 5, 5, 5, 1);
  const { out, largest } = gained(a, Uint8ClampedArray.of(2, 0, 0, 9, 5, 5, 4, 9), 2);
  assert.deepEqual([[4, 18, 0, 255, 0, 0, 2, 255], 9], [[...out], largest]);
});

test("differences in words have as many digits as they need", () => {
  const words = (more) => differenceText({ text: "", kind: "k", max: 1, mean: 0, share: 0.1, at: [], ...more });
  assert.equal("largest 1 · mean 0 · 10 % differ (k)", words({}));
  assert.equal("largest 0.999 · mean 1.235 · 9.99 % differ (k)", words({ max: 0.9989, mean: 1.23456, share: 0.0999 }));
  assert.equal("largest -1 at (2) · mean 1 · 100 % differ (k)", words({ max: -1, mean: 1, share: 1, at: [2] }));
  assert.deepEqual(
    [["a b", "c"], [""], ["abc"], ["ab", "cd", "e", "f"]],
    [lines("a b c", 3), lines("", 3), lines("abc", 3), lines("abcd e f", 2)],
  );
});

test("arrows at the ends of the strips", () => {
  const grid = {
    order: [1, 0],
    lengths: [
      [2, 3],
      [1, 0],
    ],
    last: false,
  };
  const to = (key, record, column, at, more) => Object.values(step(key, { record, column, step: at }, { ...grid, ...more }));
  assert.deepEqual([0, 0, 1], to("ArrowDown", 0, 1, 2));
  assert.deepEqual([1, 1, -1], to("ArrowDown", 0, 0, 1));
  assert.deepEqual([0, 0, 0], to("ArrowUp", 1, 1, 0));
  assert.deepEqual([0, 1, 2], to("ArrowRight", 0, 1, 2));
  assert.deepEqual([0, 1, 2], to("ArrowRight", 0, 0, -1, { last: true }));
  assert.deepEqual([0, 0, 1], to("ArrowRight", 0, 1, 2, { last: true }));
  assert.deepEqual([0, 0, 1], to("ArrowRight", 0, 0, 1, { last: true }));
  assert.deepEqual([0, 1, -1], to("ArrowLeft", 0, 1, 2, { last: true }));
  assert.deepEqual([1, 0, 0], to("ArrowDown", 0, 0, 1, { last: true }));
  assert.deepEqual([1, 0, -1], to("ArrowDown", 0, 0, -1, { last: true }));
  assert.deepEqual([0, 0, 1], to("ArrowUp", 0, 0, 1, { last: true }));
});
