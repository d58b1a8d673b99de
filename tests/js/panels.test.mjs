// What viewers say of a field, as a panel: every kind of block, its controls, trees, pictures to zoom, clouds to turn.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { Beside } from "../../tarviz/widgets/browse/page/beside.mjs";
import { Doctor } from "../../tarviz/widgets/browse/page/doctor.mjs";
import { barTop, drawPlot, plotColours } from "../../tarviz/widgets/host/plot.mjs";
import { drawCloud, drawPoints } from "../../tarviz/widgets/panes/cloud.mjs";
import { drawCard, linkZoom } from "../../tarviz/widgets/browse/page/card.mjs";
import { Layers } from "../../tarviz/widgets/panes/overlay.mjs";
import { drawHex, drawPanel, hexDump, readAll } from "../../tarviz/widgets/panes/panels.mjs";
import { ImageView } from "../../tarviz/widgets/panes/picture.mjs";
import { click, placed, press, put, test, until, wheel } from "./dom.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** The panel of these blocks, in the page, and what it asks, says and copies. */
function shown(blocks, { buffers = [], ...more } = {}) {
  const end = new AbortController();
  const told = { asked: [], said: [], copied: [], requests: [] };
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => told.copied.push(text) }, configurable: true });
  const around = {
    rpc: async (name, msg, options) => {
      told.requests.push([name, msg, options]);
      return { r: {}, buffers: [new DataView(new ArrayBuffer(Math.min(msg.length, around.size - msg.start)))] };
    },
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
  const long = (count) => text(shown([{ type: "text", text: "x\n".repeat(count), numbered: true }]).box, "li");
  assert.deepEqual(
    [4000, 4001],
    [4000, 5200].map((count) => long(count).length),
  );
  assert.deepEqual(["x", "… 1,200 more lines", "… 1 more line"], [long(5200).at(-2), long(5200).at(-1), long(4001).at(-1)]);
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
  assert.equal(0, box.querySelector(".tvz-table-box").tabIndex);
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
  assert.equal("grey", box.querySelector("select").value);
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
  press(inner.querySelector("summary"), "c", { metaKey: true });
  press(inner.querySelector("summary"), "x");
  assert.ok(box.querySelector("details").open, "a name that is copied folds nothing");
  assert.equal(3, told.copied.length);
});

test("a text of no line is shown as one; a node of more than 60 is folded", () => {
  const lines = (text) => shown([{ type: "text", text }]).box.querySelector(".tvz-text").children.length;
  assert.deepEqual([1, 2, 2], ["", "a\nb", "a\nb\n"].map(lines));
  const open = (count) => {
    const { box } = shown([{ type: "tree", root: ["a", new Array(count).fill(["n", 7]), 0], ext: "json" }]);
    return box.querySelector("details").open;
  };
  assert.deepEqual([true, false], [60, 61].map(open));
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
  assert.ok(film.controls);
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
  const { around, told, end } = shown([], { size: 2.5 * 2 ** 20 });
  const shares = [];
  const parts = await readAll(around, (share) => shares.push(Math.round(share * 100)));
  assert.deepEqual(
    [2 ** 20, 2 ** 20, 2 ** 19],
    parts.map((part) => part.byteLength),
  );
  assert.deepEqual([40, 80, 100], shares);
  assert.deepEqual(
    [0, 2 ** 20, 2 ** 21].map((start) => ["part", { row: 3, ext: "npy", start, length: 2 ** 20 }, { keep: true }]),
    told.requests,
  );
  await assert.rejects(readAll({ ...around, rpc: async () => ({ buffers: [] }) }), /ended early/);
  end.abort();
  assert.deepEqual([], await readAll(around), "nobody waits for it any more");
});

test("sound whose bytes end early says so, and can be asked for again", async () => {
  let broken = true;
  const rpc = async (_, { start }) => ({ buffers: [new DataView(new ArrayBuffer(broken && start ? 0 : 1 << 20))] });
  for (const size of [2 ** 21, 5 * 2 ** 20]) {
    broken = true;
    const { box } = shown([{ type: "audio", mime: "audio/wav" }], { size, rpc });
    if (size > 4e6) click(box.querySelector("button"));
    await until(() => text(box, ".tvz-note-bad").join() === "The member ended early.");
    assert.equal(null, box.querySelector(".tvz-busy"));
    broken = false;
    click(box.querySelector("button"));
    await until(() => box.querySelector("audio")?.src.startsWith("blob:"));
  }
});

test("bytes are fetched as they are scrolled to, in parts of 16 KiB, rows of 16 or, where there is little room, of 8", async () => {
  const bytes = (msg) => new DataView(Uint8Array.from({ length: msg.length }, (_, at) => (msg.start + at) % 256).buffer);
  const requests = [];
  const rpc = async (name, msg, options) => (requests.push([name, msg.start, msg.length, options]), { buffers: [bytes(msg)] });
  const { box, end } = shown([{ type: "hex" }], { size: 40_000, rpc });
  const [hex, area, lines] = [".tvz-hex", ".tvz-hex-area", ".tvz-hex-lines"].map((name) => box.querySelector(name));
  const rows = () => lines.textContent.split("\n");
  Object.defineProperty(hex, "clientHeight", { value: 0, configurable: true }); // not laid out yet: ten rows are drawn
  const scroll = (to) => ((hex.scrollTop = to), hex.dispatchEvent(new Event("scroll")));
  scroll(0);
  assert.deepEqual([10, "00000000  …"], [rows().length, rows()[0]]);
  await until(() => /^00000000  00 01/.test(lines.textContent));
  assert.deepEqual([["part", 0, 16_384, { keep: true }]], requests);
  assert.equal("45000px", area.style.height);
  scroll(1024 * 18 - 90);
  assert.deepEqual(["00003fb0  b0 b1", "00004000  …"], [rows()[0].slice(0, 15), rows()[5]]);
  await until(() => /00004000  00 01/.test(lines.textContent));
  assert.deepEqual([2, 16_384], [requests.length, requests[1][1]]);
  assert.equal("translateY(18342px)", lines.style.transform);
  scroll(45_000 - 180);
  await until(() => rows().at(-1).startsWith("00009c30  30 31"));
  assert.equal("translateY(44820px)", lines.style.transform);
  Object.defineProperty(hex, "clientWidth", { value: 559, configurable: true });
  scroll(0);
  assert.match(rows()[1], /^00000008  08 09 0a 0b 0c 0d 0e 0f  ·{8}$/);
  assert.deepEqual([3, "90000px"], [requests.length, area.style.height], "what came is not fetched again");
  Object.defineProperty(hex, "clientWidth", { value: 560, configurable: true });
  scroll(0);
  assert.match(rows()[2], /^00000020  20 21 .* 2e 2f   !"#\$%&'\(\)\*\+,-\.\/$/);
  end.abort();
  const before = lines.textContent;
  scroll(4000);
  assert.equal(before, lines.textContent);
});

test("a view of bytes begins at the one that is asked for, and reaches the last of many", () => {
  const rowsOf = (size, from, scrollTop) => {
    const hex = drawHex(shown([], { size }).around, from);
    const draw = () => hex.dispatchEvent(new Event("scroll"));
    draw();
    if (scrollTop) hex.scrollTop = scrollTop;
    draw();
    return [hex.scrollTop, hex.querySelector("pre").textContent.split("\n")];
  };
  const [top, rows] = rowsOf(40_000, 1601);
  assert.deepEqual([1800, "00000640  …"], [top, rows[0]]);
  assert.equal("03d08ff0  …", rowsOf(64e6, 0, 8e6 - 600)[1].at(-1));
  const dump = hexDump(new DataView(Uint8Array.from({ length: 17 }, (_, at) => at).buffer)).split("\n");
  assert.deepEqual(
    ["00000000  00 01", "00000010  10   "],
    dump.map((line) => line.slice(0, 15)),
  );
});

test("bytes on top stay there when there is room for more or fewer of them, and while the view is hidden", () => {
  const hex = drawHex(shown([], { size: 40_000 }).around, 1601);
  const wide = (width) => {
    Object.defineProperty(hex, "clientWidth", { value: width, configurable: true });
    hex.dispatchEvent(new Event("scroll")); // as its observer does
    return hex.querySelector("pre").textContent.slice(0, 8);
  };
  assert.deepEqual(["00000640", "00000640", "00000640", "00000640"], [1000, 559, 560, 0].map(wide));
  hex.scrollTop += 18;
  assert.deepEqual(["00000650", "00000650", "00000650"], [1000, 400, 1000].map(wide));
});

test("bytes that cannot be had say why, and are asked for again", async () => {
  let broken = true;
  const rpc = async () => (broken ? Promise.reject(new Error("cut short")) : { buffers: [new DataView(new ArrayBuffer(100))] });
  const { box } = shown([{ type: "hex" }], { rpc });
  const lines = box.querySelector(".tvz-hex-lines");
  await until(() => lines.textContent === "cut short");
  broken = false;
  box.querySelector(".tvz-hex").dispatchEvent(new Event("scroll"));
  await until(() => lines.textContent.split("\n").length === 7 && !/…/.test(lines.textContent));
});

test("markup is previewed as a picture when somebody asks for it, in which no script runs", async () => {
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 4, 0, 0, 0, 2]);
  const block = { type: "text", text: "<svg/>", numbered: false, preview: "image/svg+xml", data: { buffer: 0 } };
  const drawn = (bytes) => {
    const { box } = shown([block], { buffers: [new DataView(bytes.buffer)] });
    click(box.querySelector("button"));
    return box;
  };
  assert.equal(null, shown([{ ...block, data: null }]).box.querySelector("button"));
  assert.equal(null, shown([{ ...block, preview: "" }]).box.querySelector("button"));
  const [fine, broken] = [drawn(png), drawn(new Uint8Array(3))];
  assert.deepEqual([1, null], [fine.querySelectorAll("img.tvz-preview").length, fine.querySelector("button")]);
  await until(() => broken.querySelector(".tvz-note-bad"));
  assert.equal("The browser cannot draw it.", broken.querySelector(".tvz-note-bad").textContent);
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
  const marked = drawnPlot({ kind: "bars", series: [["red", [4, 8, 4]]], mark: 1 }).filter(([name]) => /^fill/.test(name));
  assert.deepEqual(
    ["#d04a4a", "#d04a4a", "#e06c00", "#d04a4a", "#d04a4a"],
    marked.filter(([name]) => name === "fillStyle").map(([, colour]) => colour),
  );
  assert.deepEqual(
    ["fillStyle", "fillRect", "fillStyle", "fillStyle", "fillRect"],
    marked.slice(0, 5).map(([name]) => name),
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
      ["low", [-1, 0, null]],
      ["high", [1, 0, 1]],
    ],
  });
  assert.deepEqual(
    [
      [0, 2, 100, 76],
      [100, 40, 100, 1],
    ],
    envelope.filter(([name]) => name === "fillRect").map(([, ...box]) => box),
  );
});

test("plots keep within their canvas: the highest a little below its top, what stands out is cut, a mark is seen", () => {
  const boxes = (plot) =>
    drawnPlot(plot)
      .filter(([name]) => name === "fillRect")
      .map(([, ...box]) => box);
  const many = Array.from({ length: 100 }, (_, at) => (at === 50 ? 1000 : 10));
  assert.deepEqual([150, 2, 3, 77], boxes({ kind: "bars", series: [["a", many]] })[50]);
  assert.deepEqual([0, 78 - (10 / 16) * 76, 3, 79 - (78 - (10 / 16) * 76)], boxes({ kind: "bars", series: [["a", many]] })[0]);
  const fine = Array.from({ length: 300 }, () => 1);
  assert.deepEqual(
    [
      [10, 2, 1, 77],
      [11, 2, 2, 77],
    ],
    boxes({ kind: "bars", series: [["a", fine]], mark: 11 }).slice(10, 12),
  );
  assert.deepEqual([[0, 2, 4, 77]], boxes({ kind: "bars", series: [["a", [1, ...new Array(74).fill(-1)]]] }));
  assert.deepEqual(
    [
      [0, 40, 150, 1],
      [150, 2, 150, 76],
    ],
    boxes({
      kind: "envelope",
      series: [
        ["a", [0, -1]],
        ["b", [0, 1]],
      ],
    }),
  );
  assert.deepEqual(
    [[0, 2, 1, 76]],
    boxes({
      kind: "envelope",
      series: [
        ["a", [0, ...new Array(599).fill(null)]],
        ["b", new Array(600).fill(1)],
      ],
    }),
  );
  const places = (series) =>
    drawnPlot({ kind: "line", series })
      .filter(([name]) => name === "lineTo")
      .map(([, ...at]) => at);
  assert.deepEqual(
    [
      [75, 78],
      [225, 78],
    ],
    places([["a", [3, 3]]]),
  );
  assert.deepEqual(
    [1],
    drawnPlot({ kind: "line", series: [["a", [3]]] })
      .filter(([name]) => name === "globalAlpha")
      .map(([, alpha]) => alpha),
  );
});

test("bars are cut where one of 67 or more stands out, at 1.6 times what almost all reach, and at 1 at least", () => {
  assert.equal(1000, barTop([...new Array(65).fill(10), 1000]));
  assert.equal(16, barTop([...new Array(66).fill(10), 1000]));
  assert.equal(1, barTop([...new Array(200).fill(0), 1000]));
  assert.equal(12, barTop([...new Array(99).fill(10), 12]));
  assert.equal(1, barTop([]));
});

test("below a plot stands what it shows, below several lines the name of each in its colour", () => {
  const caption = (block) => shown([{ type: "plot", label: "", ...block }]).box.querySelector("figcaption");
  const series = ["a", "b"].map((name) => [name, [1, 2]]);
  const lines = caption({ kind: "lines", label: "2 rows", series });
  assert.equal("2 rows ― a ― b", lines.textContent);
  assert.equal("#c2661d", lines.querySelectorAll("span")[1].style.color);
  assert.equal("a", caption({ kind: "lines", series: series.slice(0, 1) }).textContent);
  assert.equal("a, b", caption({ kind: "bars", series }).textContent);
});

test("a plot has the accent of its page, a blue where there is none", () => {
  const colours = drawnPlot({ kind: "line", series: [["a", [1]]] }).filter(([name]) => name === "strokeStyle");
  assert.deepEqual([["strokeStyle", "#1565c0"]], colours);
});

test("a series has the colour of its name, else one of eight in turn, the accent first", () => {
  const names = ["red", "grey", ...Array.from({ length: 8 }, (_, at) => `s${at}`)];
  const colours = plotColours(names, "ink", "accent");
  assert.deepEqual(["#d04a4a", "ink", "#5c8a2e", "#8657b5"], colours.slice(0, 4));
  assert.deepEqual(["accent", "#c2661d"], colours.slice(8));
  assert.equal(8, new Set(colours.slice(2)).size);
});

/** A picture of 60 by 40, or of another size, in a frame of 1000 by 600. */
function pictured(width = 60, height = 40) {
  const end = new AbortController();
  const view = new ImageView(width, height, end.signal);
  const place = placed(view.frame, view.foot);
  ends.push(() => (end.abort(), place.remove()));
  view.show({ naturalWidth: width, naturalHeight: height });
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

test("a picture one pixel wide is a line that is seen", () => {
  const calls = pictured(1, 6000).canvas.pen.calls.filter(([name]) => name === "drawImage");
  assert.deepEqual([1, 600], calls[0].slice(4));
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
  assert.deepEqual(
    [
      ["clearRect", 0, 0, 1, 1],
      ["drawImage", view.picture, 59, 39, 1, 1, 0, 0, 1, 1],
    ],
    view.probe.calls,
  );
  for (const [data, said] of [
    [[1, 2, 3, 255], "1 2 3"],
    [[1, 2, 3, 254], "1 2 3 α 254"],
  ]) {
    view.probe = { clearRect() {}, drawImage() {}, getImageData: (...place) => (assert.deepEqual([0, 0, 1, 1], place), { data }) };
    click(view.canvas, { clientX: 50, clientY: 0 }, "pointermove");
    assert.equal(`60×40 · 15× · (0, 0) = ${said}`, view.foot.textContent);
  }
  for (const [clientX, clientY] of [
    [49, 0],
    [950, 0],
    [60, 600],
    [60, -1],
  ]) {
    click(view.canvas, { clientX, clientY }, "pointermove");
    assert.equal("60×40 · 15×", view.foot.textContent, "beside it");
  }
  click(view.canvas, { clientX: 60, clientY: 9 }, "pointermove");
  click(view.canvas, {}, "pointerleave");
  assert.equal("60×40 · 15×", view.foot.textContent);
  view.values = (column, line) => `${column}/${line}`;
  view.canvas.getBoundingClientRect = () => ({ left: 100, top: 200 });
  click(view.canvas, { clientX: 100 + 50 + 15 * 3, clientY: 200 + 15 * 7 }, "pointermove");
  assert.match(view.foot.textContent, /= 3\/7$/, "from where the picture stands");
  view.zoom(1 / 15 / 3);
  assert.equal("60×40 · 33 %", view.foot.textContent);
  view.zoom(3.7001);
  assert.equal("60×40 · 1.23×", view.foot.textContent);
});

test("a picture is drawn smoothly where it shrinks or is large, its pixels seen where they are few", () => {
  const view = pictured();
  const smooth = (width, height, scale = 0) => {
    view.scale = scale;
    view.show({ naturalWidth: width, naturalHeight: height });
    return view.canvas.pen.calls.filter(([name]) => name === "imageSmoothingEnabled").at(-1)[1];
  };
  assert.deepEqual([true, true], [smooth(4000, 600), smooth(500, 300)]);
  assert.deepEqual([false, true], [smooth(64, 40, 2), smooth(65, 40, 2)]);
  assert.deepEqual([true, false, true], [smooth(65, 40, 3.99), smooth(65, 40, 4), smooth(64, 40, 1.9)]);
  assert.equal("64×40 · 1.9×", view.foot.textContent);
});

test("on a fine screen pictures, plots and clouds have as many pixels as it has", async () => {
  globalThis.devicePixelRatio = 3;
  try {
    const view = pictured();
    assert.deepEqual([3000, 1800], [view.canvas.width, view.canvas.height]);
    assert.deepEqual([3, 0, 0, 3, 0, 0], view.canvas.pen.calls.find(([name]) => name === "setTransform").slice(1));
    view.scale = 1;
    view.show({ naturalWidth: 500, naturalHeight: 300 });
    assert.ok(view.canvas.pen.calls.findLast(([name]) => name === "imageSmoothingEnabled")[1]);
    view.scale = 1.4;
    view.draw();
    assert.ok(!view.canvas.pen.calls.findLast(([name]) => name === "imageSmoothingEnabled")[1], "four pixels of the screen for one");
    const canvas = document.createElement("canvas");
    for (const name of ["clientWidth", "clientHeight"]) Object.defineProperty(canvas, name, { value: 0 });
    drawPlot(canvas, { kind: "bars", series: [["a", [1]]] });
    assert.deepEqual([900, 240], [canvas.width, canvas.height], "300 by 80 where it is not laid out");
    assert.deepEqual(["scale", 3, 3], canvas.pen.calls[0]);
    const { box } = shown([{ type: "points", total: 1, places: { buffer: 0 }, colours: { buffer: 1 } }], {
      buffers: [new DataView(new ArrayBuffer(12)), new DataView(new ArrayBuffer(3))],
    });
    const cloud = box.querySelector("canvas");
    await until(() => cloud.width === 2000 && cloud.height === 1200);
    assert.equal(0, cloud.tabIndex);
  } finally {
    delete globalThis.devicePixelRatio;
  }
});

test("how large a picture is when it fits: by whole pixels from three times its size on, twice at most below", () => {
  const view = pictured();
  const fit = (width, height) => {
    view.show({ naturalWidth: width, naturalHeight: height });
    const { scale, x, y } = view.shown();
    return [scale, x, y];
  };
  assert.deepEqual([16, 420, 220], fit(10, 10));
  assert.deepEqual([2, 250, 0], fit(250, 300));
  assert.deepEqual([1.25, 0, 50], fit(800, 400));
  assert.deepEqual([3, 50, 0], fit(300, 200));
  assert.deepEqual([2, 110, 40], fit(390, 260)); // 2.3 times would fit
  view.show({ naturalWidth: 4000, naturalHeight: 2400 });
  assert.equal("4000×2400 · 25 %", view.foot.textContent);
  view.zoom(1e-9);
  assert.deepEqual([0.02, "4000×2400 · 2 %"], [view.scale, view.foot.textContent]);
});

test("the wheel zooms the picture once its widget has the keys, or with Ctrl", () => {
  const view = pictured();
  view.frame.tabIndex = 0;
  wheel(view.canvas, -100, { clientX: 500, clientY: 300 });
  assert.equal(0, view.scale);
  wheel(view.canvas, -100, { clientX: 500, clientY: 300, ctrlKey: true });
  near([15 * Math.exp(0.16)], [view.scale]);
  view.frame.focus();
  wheel(view.canvas, 100, { clientX: 500, clientY: 300 });
  near([15], [view.scale]);
  const beside = placed(document.createElement("button"));
  ends.push(() => beside.remove());
  beside.className = "tvz";
  beside.append(view.frame);
  beside.firstChild.focus();
  wheel(view.canvas, 100, { clientX: 0, clientY: 0 });
  near([15 * Math.exp(-0.16)], [view.scale]);
  view.picture = undefined;
  wheel(view.canvas, 100, { ctrlKey: true });
  near([15 * Math.exp(-0.16)], [view.scale]);
});

test("a picture that cannot be drawn says so, a wide one has a low frame, numbers are told by their name", async () => {
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 4, 0, 0, 0, 2]);
  const block = { type: "image", width: 4, height: 2, mime: "image/png", data: { buffer: 0 } };
  const values = { values: { buffer: 1 }, dtype: "float32", step: 2, names: { 7: "sky" } };
  const { box } = shown([{ ...block, ...values, label: "left" }], {
    buffers: [new DataView(png.buffer), new DataView(Float32Array.of(7, 0.1234567, 3, 4).buffer)],
  });
  const { view } = box.querySelector(".tvz-frame");
  await until(() => view.picture);
  assert.deepEqual(
    ["7 sky", "7 sky", "0.12346", "3", "4", ""],
    [
      [0, 0],
      [1, 1],
      [2, 0],
      [0, 2],
      [3, 3],
      [0, 4],
    ].map((at) => view.values(...at)),
  );
  assert.deepEqual(["left"], text(box, "figcaption"));
  assert.equal("", view.frame.style.height);
  const frameOf = (more, buffers = [new DataView(png.buffer)]) =>
    shown([{ ...block, ...more }], { buffers }).box.querySelector(".tvz-frame");
  assert.deepEqual(
    ["", "110px", "64px"],
    [
      [26, 10],
      [30, 10],
      [300, 10],
    ].map(([width, height]) => frameOf({ width, height }).style.height),
  );
  assert.deepEqual(
    [undefined, undefined],
    [{}, { ...values, values: { buffer: 0 }, dtype: "odd" }].map((more) => frameOf(more).view.values),
  );
  const broken = frameOf({}, [new DataView(new ArrayBuffer(3))]);
  await until(() => /cannot draw/.test(broken.textContent));
  assert.equal("The browser cannot draw this picture.", broken.querySelector(".tvz-note-bad").textContent);
});

test("a picture moves the others of its card along, and itself not", () => {
  const views = [pictured(), pictured()];
  const box = placed(...views.map(({ frame }) => frame));
  ends.push(() => box.remove());
  views.forEach((view) => (view.frame.view = view));
  linkZoom(box);
  views[0].zoom(2, 10, 10);
  near([views[0].scale, views[0].x, views[0].y], [views[1].scale, views[1].x, views[1].y]);
  views[1].pan(3, 4);
  near([views[1].x, views[1].y], [views[0].x, views[0].y]);
});

test("a card: pictures beside each other, what lies over the first, other fields, names of the rest", () => {
  const panel = (...blocks) => ({ controls: [], facts: [], blocks });
  const image = { type: "image", width: 4, height: 2, mime: "image/png", data: { buffer: 0 } };
  const items = [
    { ext: "txt", part: "text", panel: panel({ type: "text", text: "a cat" }) },
    { ext: "png", part: "picture", panel: panel(image) },
  ];
  const over = { width: 4, height: 2, masks: [], shapes: [["box", [0, 0, 1, 1], "cat"]] };
  const { around } = shown([], { fields: [], mediaOf: () => "" });
  const picked = [];
  const drawn = (record) =>
    drawCard(record, [new DataView(new ArrayBuffer(1))], around, new Layers({}, () => {}), (ext) => picked.push(ext));
  const parts = drawn({ ext: "jpg", panel: panel(image), card: { items, named: ["npy", "cls"] }, over });
  const place = placed(...parts);
  ends.push(() => place.remove());
  const names = (box) => text(box, ".tvz-item-name");

  assert.deepEqual([["jpg", "png"], [], ["txt"], []], parts.slice(0, 4).map(names));
  assert.equal("boxes", parts[1].querySelector("button").textContent);
  assert.ok(
    [...parts[0].querySelectorAll(".tvz-frame")].every((frame) => frame.view.moved),
    "they zoom together",
  );
  assert.equal(1, parts[0].querySelectorAll(".tvz-item")[0].querySelectorAll(".tvz-frame").length);
  click([...parts[3].querySelectorAll("button")].at(-1));
  assert.deepEqual(["cls"], picked);
  const alone = drawn({ ext: "jpg", panel: panel(image), card: { items: items.slice(0, 1), named: [] } });
  assert.deepEqual([[], ["txt"], []], alone.map(names));
  const many = Array.from({ length: 41 }, (_, at) => `f${at}`);
  const named = drawn({ ext: "jpg", panel: panel(image), card: { items: [], named: many } });
  assert.deepEqual(many.slice(0, 40), text(named[1], "button"));
  assert.equal(1, drawn({ ext: "jpg", panel: panel(image) }).length);
  const side = (width) => {
    const [one] = drawn({ ext: "jpg", panel: panel(image), over: { ...over, width, shapes: [["box", [0, 0, 1, 1], "", null]] } });
    const { view } = one.querySelector(".tvz-frame");
    const calls = [];
    const pen = new Proxy(
      {},
      {
        get:
          (_, name) =>
          (...values) =>
            calls.push([name, ...values]),
        set: () => true,
      },
    );
    view.over(pen, { scale: 10, x: 0, y: 0 });
    return calls.find(([name]) => name === "strokeRect")[3];
  };
  assert.deepEqual([10, 5, 10], [4, 8, 0].map(side), "in pixels of this picture, of one twice its size, of an unknown one");
});

test("a sound of a card is fetched as the field that it is; one that is not listed is not fetched", async () => {
  const drawn = (fields) => {
    const { around, told } = shown([], { fields, mediaOf: () => "" });
    const panel = (blocks) => ({ controls: [], facts: [], blocks });
    const items = [{ ext: "mp3", part: "sound", panel: panel([{ type: "audio", mime: "audio/mpeg" }]) }];
    const record = { ext: "txt", panel: panel([{ type: "note", tone: "bad", text: "" }]), card: { items, named: [] } };
    return [placed(...drawCard(record, [], around, new Layers({}, () => {}))).textContent, told.requests];
  };
  assert.match(
    drawn([
      { ext: "txt", size: 1 },
      { ext: "mp3", size: 5e6 },
    ])[0],
    /load 5\.00 MB$/,
  );
  assert.deepEqual([], drawn([])[1]);
  assert.deepEqual(
    ["part", 0, 7],
    (([name, { start, length }]) => [name, start, Math.min(length, 7)])(drawn([{ ext: "mp3", size: 7 }])[1][0]),
  );
});

test("a card: what is seen or heard stands above the other fields, figures below; of a field what is told at a glance", () => {
  const block = (type, more = {}) => ({ type, text: type, turns: [], ...more });
  const { around } = shown([], { fields: [{ ext: "txt", size: 7 }], mediaOf: () => "" });
  const drawn = (blocks, ...items) => {
    const card = {
      items: items.map((item) => ({ ext: "txt", part: "text", ...item, panel: { controls: [], facts: [], ...item.panel } })),
      named: [],
    };
    return drawCard(
      { ext: "jpg", panel: { controls: [], facts: [["a", "b"]], blocks }, card },
      [],
      around,
      new Layers({}, () => {}),
      () => {},
    );
  };
  const one = { panel: { blocks: [block("text")] } };
  const kinds = (part) =>
    [...part.querySelectorAll(".tvz-note, .tvz-text, .tvz-turns, .tvz-facts")].map((each) => each.classList[0].slice(4)).join(" ");
  for (const [wanted, ...blocks] of [
    [["note", "text", "text facts"], block("note", { tone: "bad" }), block("text")],
    [["note", "text", "note facts"], block("note", { tone: "bad" }), block("note", { tone: "warn" })],
    [["text facts", "text"], block("text")],
    [["note", "text", "facts"], block("note", { tone: "bad" })],
  ])
    assert.deepEqual(wanted, drawn(blocks, one).map(kinds));
  const inside = (item) => kinds(drawn([block("note", { tone: "bad" })], item)[1]);
  const two = [block("plot", { kind: "bars" }), block("text", { kind: "bars" }), block("note", { tone: "warn" })];
  const facts = [
    ["duration", "2 s"],
    ["rate", "8 kHz"],
  ];
  assert.deepEqual(
    ["text", "text note", "text note facts", "turns"],
    [
      inside({ panel: { blocks: two, facts } }),
      inside({ part: "data", panel: { blocks: two, facts } }),
      inside({ part: "sound", panel: { blocks: two, facts } }),
      inside({ part: "data", panel: { blocks: [block("turns"), block("text")] } }),
    ],
  );
  const sound = drawn([block("note", { tone: "bad" })], { part: "sound", panel: { blocks: two, facts } })[1];
  assert.deepEqual(["duration", "2 s"], text(sound, "dl > *"));
  assert.ok(sound.querySelector(".tvz-compact.tvz-part-sound"));
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

test("the nearest point is seen, in whatever order they come", () => {
  const points = Array.from({ length: 300 }, (_, at) => [1, 2, 3].map((by) => Math.sin(at * by * 12.9898)));
  const seen = (order) => {
    const into = { width: 60, height: 40, data: new Uint8ClampedArray(4 * 2400) };
    const colours = Uint8Array.from(order.flatMap((at) => [at % 251, 90, 200 - (at % 199)]));
    drawCloud(Float32Array.from(order.flatMap((at) => points[at])), colours, { turn: 0.7, tilt: 0.5, zoom: 1 }, into);
    return into.data;
  };
  const order = points.map((_, at) => at);
  assert.deepEqual(seen(order), seen([...order].reverse()));
});

test("a cloud's points are lit by how near they are, three pixels wide, two where there are many", () => {
  const into = { width: 60, height: 40, data: new Uint8ClampedArray(4 * 2400) };
  const seen = (places, view) => {
    drawCloud(Float32Array.from(places), new Uint8Array(places.length).fill(100), { turn: 0, tilt: 0, zoom: 1, ...view }, into);
    const found = [];
    for (let at = 0; at < 2400; at += 1) if (into.data[4 * at] !== 24) found.push([at % 60, Math.floor(at / 60), into.data[4 * at]]);
    return found;
  };
  const square = (x, y, light, wide = 3) =>
    Array.from({ length: wide * wide }, (_, at) => [x + (at % wide), y + Math.floor(at / wide), light]);
  assert.deepEqual(square(30, 20, 72), seen([0, 0, 0]));
  assert.deepEqual(square(30, 20, 100), seen([0, -1, 0]));
  assert.deepEqual(square(30, 20, 44), seen([0, 1, 0]));
  assert.deepEqual(square(30, 20, 100), seen([0, -3, 0]), "no brighter than its colour");
  assert.deepEqual(square(30, 20, 44), seen([0, 3, 0]));
  assert.deepEqual(square(45, 20, 72), seen([1, 0, 0]), "scaled by the shorter side");
  assert.deepEqual(square(30, 12, 72), seen([0, 0, 0.5]));
  assert.deepEqual(square(30, 5, 72), seen([0, 0, 0.5], { zoom: 2 }));
  assert.deepEqual(square(30, 5, 72), seen([0, -1, 0], { tilt: Math.PI / 2 }), "turned by a quarter, what was in front is up");
  assert.deepEqual(square(17, 20, 58), seen([0, 1, 0], { turn: Math.PI / 3 }), "what was behind is at the left, and half as far");
  assert.deepEqual(square(30, 20, 44), seen([0, 0, 1], { tilt: Math.PI / 2 }));
  assert.deepEqual(
    square(30, 5, 72),
    seen([1, 0, 0], { turn: Math.PI / 2, tilt: -Math.PI / 2 })
      .slice(0, 9)
      .map(([x, y, light]) => [x, y, light]),
  );
  assert.deepEqual(square(30, 20, 72, 2), seen(new Array(15_000).fill(0)));
  assert.deepEqual(square(30, 20, 72), seen(new Array(14_997).fill(0)));
  assert.deepEqual(
    [
      [58, 20],
      [59, 20],
      [58, 21],
      [59, 21],
      [58, 22],
      [59, 22],
    ],
    seen([28 / 15.2, 0, 0]).map(([x, y]) => [x, y]),
  );
  assert.deepEqual(
    [
      [30, 38],
      [31, 38],
      [32, 38],
      [30, 39],
      [31, 39],
      [32, 39],
    ],
    seen([0, 0, -18 / 15.2]).map(([x, y]) => [x, y]),
  );
  assert.deepEqual(
    [
      [0, 20],
      [0, 21],
      [0, 22],
    ],
    seen([-32 / 15.2, 0, 0]).map(([x, y]) => [x, y]),
  );
});

test("a cloud is dragged, comes closer by the wheel, and stops at the poles", async () => {
  const { box } = shown([{ type: "points", total: 2, places: { buffer: 0 }, colours: { buffer: 1 } }], {
    buffers: [new DataView(Float32Array.from([0, 0, 0, 1, 0, 0]).buffer), new DataView(Uint8Array.of(0, 200, 0, 200, 0, 0).buffer)],
  });
  assert.match(box.textContent, /^2 points · drag/);
  const cloud = box.querySelector("canvas");
  /** Where the red point is from the green one, in shares of the scale. */
  const red = async () => {
    cloud.pen?.calls.splice(0);
    const done = () => cloud.pen?.calls.find(([name]) => name === "putImageData")?.[1];
    const { data, width, height } = await until(done);
    const at = Array.from({ length: width * height }, (_, pixel) => pixel).find((pixel) => data[4 * pixel] > 80);
    const scale = height * 0.38;
    return [((at % width) - width / 2) / scale, (height / 2 - Math.floor(at / width)) / scale];
  };
  const close = (wanted, found) => wanted.forEach((value, at) => assert.ok(Math.abs(value - found[at]) < 0.02, `${found}, not ${wanted}`));
  const seen = (turn, tilt, zoom = 1) => [zoom * Math.cos(turn), -zoom * Math.sin(turn) * Math.sin(tilt)];
  close(seen(0.7, 0.5), await red());
  click(cloud, { buttons: 1, movementX: 20, movementY: -10 }, "pointermove");
  close(seen(0.9, 0.4), await red());
  click(cloud, { buttons: 0, movementX: 90, movementY: 90 }, "pointermove");
  press(cloud, "ArrowRight");
  close(seen(1, 0.4), await red());
  press(cloud, "ArrowDown");
  close(seen(1, 0.5), await red());
  press(cloud, "ArrowUp");
  press(cloud, "ArrowLeft");
  close(seen(0.9, 0.4), await red());
  press(cloud, "+");
  close(seen(0.9, 0.4, 1.2), await red());
  press(cloud, "-");
  wheel(cloud, 100);
  close(seen(0.9, 0.4, Math.exp(-0.16)), await red());
  wheel(cloud, 1e6);
  close(seen(0.9, 0.4, 0.2), await red());
  wheel(cloud, -1e6);
  wheel(cloud, (1e3 * Math.log(20)) / 1.6);
  close(seen(0.9, 0.4, 1), await red());
  click(cloud, { buttons: 1, movementX: 0, movementY: 1000 }, "pointermove");
  close(seen(0.9, 1.57), await red());
  click(cloud, { buttons: 1, movementX: 0, movementY: -1000 }, "pointermove");
  close(seen(0.9, -1.57), await red());
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
  const around = {
    rpc: async (...request) => (asked.push(request), { r: found }),
    records: { picks: new Map() },
    searches: { pick: (...choice) => picks.push(choice) },
    rail: { rove: () => {} },
    status: { trouble: (error) => assert.fail(String(error)) },
  };
  const doctor = new Doctor(around);
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
  around.records.picks.set("doctor", { where: "cd" });
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
  assert.deepEqual(
    ["cls", "guess"],
    [...doctor.root.querySelectorAll("select")].map((one) => one.value),
  );
  put(doctor.root.querySelector("[data-name='doctor predicted']"), "other");
  await until(() => asked.length === 2);
  assert.deepEqual(["doctor", { predicted: "other" }], asked[1]);
});

test("cells are shaded by the most mistakes; without predictions only columns are chosen, without columns there is no doctor", async () => {
  const around = {
    ...{ rpc: async () => ({ r: found }), records: { picks: new Map() }, searches: { pick: (...choice) => orders.push(choice[5]) } },
    ...{ rail: { rove: () => (roved += 1) }, status: { trouble: () => {} } },
  };
  let [roved, found] = [0, undefined];
  const orders = [];
  const doctor = new Doctor(around);
  const drawn = async (answer) => ((found = answer), await doctor.ask(), doctor.root);
  assert.equal("", (await drawn({ choices: [] })).textContent);
  await drawn({ choices: ["cls", "guess"], truth: "cls", predicted: undefined });
  assert.deepEqual([["label doctor"], 1], [text(doctor.root, "h2"), roved]);
  assert.deepEqual(
    [
      ["labels …", "cls", "guess"],
      ["predictions …", "guess"],
    ],
    [...doctor.root.querySelectorAll("select")].map((one) => text(one, "option")),
  );
  assert.equal("cls", doctor.root.querySelector("select").value);
  const counts = [
    [5, 1, 0],
    [0, 3, 1],
    [0, 0, 2],
  ];
  const cells = counts.map((row, i) => row.map((_, j) => `${i}${j}`));
  await drawn({
    choices: ["cls"],
    truth: "json.gone",
    predicted: "guess",
    accuracy: 1,
    labels: ["a", "b", "c"],
    counts,
    cells,
    wrong: "w",
  });
  const all = [...doctor.root.querySelectorAll("td")];
  assert.deepEqual("010001000", all.map((one) => one.style.getPropertyValue("--share")).join(""));
  assert.equal("100010001", all.map((one) => Number(one.className === "tvz-right-cell")).join(""));
  assert.deepEqual(
    [
      ["labels …", "json.gone", "cls"],
      ["predictions …", "guess", "cls"],
    ],
    [...doctor.root.querySelectorAll("select")].map((one) => text(one, "option")),
  );
  assert.deepEqual(
    ["json.gone", "guess"],
    [...doctor.root.querySelectorAll("select")].map((one) => one.value),
  );
  click(all[1].firstChild);
  assert.deepEqual([{ sort: "order", column: undefined, descending: false }, 2], [orders[0], roved - 1]);
});

test("two to four records lie side by side, in their order, however many are marked", async () => {
  const [said, asked] = [[], []];
  let wrong = false;
  const around = {
    rpc: async (...request) => {
      asked.push(request);
      if (wrong) throw new Error("gone");
      const key = `k${request[1].row}`;
      return {
        r: { key, panel: request[1].row === 4 && { controls: [], facts: [], blocks: [{ type: "text", text: "four" }] } },
        buffers: [],
      };
    },
    ...{ status: { say: (words) => said.push(words), trouble: (error) => said.push(error.message) }, leave: () => said.push("left") },
    ...{ pane: { around: () => ({ fields: [] }) }, layers: new Layers({}, () => {}) },
  };
  const beside = new Beside(around);
  const place = placed(beside.root);
  ends.push(() => place.remove());
  const shows = async (...rows) => {
    around.marks = { rows: new Set(rows) };
    await beside.open();
    return [beside.shown, beside.root.querySelector("span")?.textContent, text(beside.root, "h2").join(" ")];
  };
  assert.deepEqual([false, undefined, ""], await shows(3));
  assert.deepEqual(["Mark two to four records (Space): they are shown side by side."], said.splice(0));
  assert.deepEqual([true, "2 records", "k9 k10"], await shows(10, 9));
  assert.deepEqual(
    [
      ["record", { row: 9 }, { keep: true }],
      ["record", { row: 10 }, { keep: true }],
    ],
    asked,
    "none overtakes another",
  );
  assert.equal("back to the grid", document.activeElement.getAttribute("aria-label"));
  assert.deepEqual([true, "4 records", "k1 k3 k4 k6"], await shows(4, 1, 6, 3));
  assert.deepEqual(
    ["no fields", "no fields", "four", "no fields"],
    [...beside.root.querySelectorAll("h2")].map((one) => one.nextSibling.textContent),
  );
  assert.deepEqual([true, "the first 4 of 5 marked", "k1 k3 k4 k6"], await shows(7, 4, 1, 6, 3));
  said.length = 0;
  click(beside.root.querySelector("button"));
  assert.deepEqual([false, "", ["left"]], [beside.shown, beside.root.textContent, said.splice(0)]);
  beside.close();
  assert.deepEqual([], said, "who is elsewhere stays there");
  wrong = true;
  assert.deepEqual([false, undefined, ""], await shows(1, 2));
  assert.deepEqual(["gone"], said);
});
