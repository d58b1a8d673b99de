// The browser's helpers that need no browser: filters it writes, names it shortens, frames it reads.
import assert from "node:assert/strict";
import { test } from "node:test";

import { KEYS } from "../../tarviz/widgets/browse/page/keys.mjs";
import { figure, figures, spanOf } from "../../tarviz/widgets/browse/filters/facet_figures.mjs";
import { missing } from "../../tarviz/widgets/browse/page/grid.mjs";
import { frozenModel, pack, unpack } from "../../tarviz/widgets/host/host.mjs";
import { runRects } from "../../tarviz/widgets/panes/overlay.mjs";
import { hexDump, hexRow, selectPath } from "../../tarviz/widgets/panes/panels.mjs";
import { filterOfSet, quoted, shortKey } from "../../tarviz/widgets/browse/page/rail.mjs";

test("a set of fields becomes a filter", () => {
  assert.equal("has('jpg') and has('cls') and not has('json')", filterOfSet(["jpg", "cls"], ["cls", "jpg", "json"]));
});

test("figures are short, brushed bars become a condition that has its upper end in the last one", () => {
  assert.deepEqual(
    ["1,234,567", "−3", "0.3333", "1.00e-7", "0.001", "1.00e+6", "cat", ""],
    [1234567, -3, 1 / 3, 1e-7, 1e-3, 1e6 + 0.5, "cat", null].map(figure),
  );
  assert.equal("3 values · 1 … 9 · mean 4", figures({ distinct: 3, min: 1, max: 9, mean: 4 }, "bigint"));
  assert.equal("2 values · 1 … 9 · mean 4", figures({ distinct: 2, min: 1, max: 9, mean: 4 }, "bigint"));
  assert.equal("2 values · 0 … 1", figures({ distinct: 2, min: 0, max: 1, mean: 0.5 }, "boolean"));
  assert.equal("1 value", figures({ distinct: 1, min: 3, max: 3, mean: 3 }, "bigint"));
  assert.equal("1 value", figures({ distinct: 1, min: "a", max: "a", mean: null }, "varchar"));
  assert.equal("2 values", figures({ distinct: 2, min: "a", max: "b", mean: null }, "varchar"));
  const bars = [
    { low: 0, high: 2.5 },
    { low: 2.5, high: 5 },
    { low: 5, high: 7.5 },
  ];
  assert.equal("json.w >= 0 and json.w < 5", spanOf("json.w", bars, 0, 1).where);
  assert.equal("json.w >= 2.5 and json.w <= 7.5", spanOf("json.w", bars, 1, 2).where);
  assert.deepEqual(["'a'", '"it\'s"'], ["a", "it's"].map(quoted));
});

test("a key is shortened to what tells records apart", () => {
  assert.equal("n01", shortKey("train/a/n01"));
  assert.equal("n01", shortKey("n01"));
  assert.equal("a/", shortKey("a/"));
});

test("what a record lacks or has more is named, another kind of record is not", () => {
  assert.equal("−json", missing("jpg cls json", ["jpg", "cls"]));
  assert.equal("+txt", missing("jpg cls", ["jpg", "cls", "txt"]));
  assert.equal("", missing("jpg cls", ["wav"]));
  assert.equal("", missing("jpg cls", ["cls", "jpg"]));
});

test("a path in a tree is copied as a selection", () => {
  assert.equal('SelectJSON("json", ["meta", 0, "src"])', selectPath(["meta", 0, "src"], "json"));
});

test("hex rows have addresses, bytes and letters", () => {
  const view = new DataView(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d]).buffer);
  assert.equal(`00000010  89 50 4e 47 0d${" ".repeat(34)}  ·PNG·`, hexRow(view, 0, 16));
  assert.equal("00000001  50 4e 47 0d              PNG·", hexRow(view, 1, 1, 8));
  const rows = hexDump(new DataView(Uint8Array.from({ length: 273 }, (_, at) => at).buffer)).split("\n");
  assert.deepEqual([18, "00000110  10"], [rows.length, rows[17].slice(0, 12)]);
  assert.equal("", hexDump(new DataView(new ArrayBuffer(0))));
});

test("every key is explained once", () => {
  const named = KEYS.flatMap(([keys]) => keys.split(" ")).filter((key) => !["or", "…", "(held)"].includes(key));
  assert.equal(new Set(named).size, named.length);
});

test("frames of the page are read and written", () => {
  const frame = pack({ k: "tvz:req", name: "größe" });
  const { message, buffers } = unpack(frame.buffer);
  assert.deepEqual({ k: "tvz:req", name: "größe" }, message);
  assert.deepEqual([], buffers);
});

test("a frozen model answers that there is no kernel", async () => {
  const model = frozenModel({ _first: { config: 1 }, _pictures: [], _state: {} });
  assert.deepEqual({ config: 1 }, model.get("_first"));
  const answer = new Promise((done) => model.on("msg:custom", done));
  model.send({ k: "tvz:req", id: "1", name: "poll" });
  assert.equal("no-kernel", (await answer).err.code);
});

test("a mask of run lengths is filled where its runs of 1 are, down the columns", () => {
  const rects = (/** @type {number[]} */ ...numbers) => runRects(numbers).filter(([, , width, height]) => width && height);

  assert.deepEqual(rects(3, 4, 2, 4, 3, 1, 2), [
    [0, 2, 1, 1],
    [1, 0, 1, 3],
    [3, 0, 1, 1],
  ]);
  assert.deepEqual(rects(2, 5, 1, 7, 2), [
    [0, 1, 1, 1],
    [1, 0, 3, 2],
  ]);
  assert.deepEqual(rects(2, 5, 0, 10), [[0, 0, 5, 2]]);
  assert.deepEqual(rects(5, 2, 1, 2, 7), [[0, 1, 1, 2]]);
});
