// The browser's helpers that need no browser: filters it writes, names it shortens, frames it reads.
import assert from "node:assert/strict";
import { test } from "node:test";

import { KEYS } from "../../tarviz/widgets/browse/keys.mjs";
import { missing } from "../../tarviz/widgets/browse/grid.mjs";
import { frozenModel, pack, unpack } from "../../tarviz/widgets/host/host.mjs";
import { hexRow, selectPath } from "../../tarviz/widgets/panes/panels.mjs";
import { filterOfLabel, filterOfSet, quoted, shortKey } from "../../tarviz/widgets/browse/rail.mjs";

test("a set of fields becomes a filter", () => {
  assert.equal("has('jpg') and has('cls') and not has('json')", filterOfSet(["jpg", "cls"], ["cls", "jpg", "json"]));
});

test("a bar of the histogram becomes a filter, numbers bare and text quoted", () => {
  assert.equal("cls == 3", filterOfLabel("cls", "3"));
  assert.equal("json.label == 'it\\'s'", filterOfLabel("json.label", "it's"));
  assert.equal("'a\\\\b'", quoted("a\\b"));
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
