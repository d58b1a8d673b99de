// The model of pages without a kernel: saved answers, "no kernel" for the rest. Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";

import { makeRpc } from "../../tarviz/widgets/host/requests.mjs";
import { frozenModel, pack, savedState, unpack } from "../../tarviz/widgets/host/host.mjs";

const state = (answers) => ({ _first: { a: 1 }, _pictures: [], _state: {}, _answers: answers });

test("a request that was answered beforehand is answered, whatever the order of its names", async () => {
  const call = makeRpc(
    frozenModel(state([["record", { row: 3, ext: "jpg", options: {} }, { key: "k" }, [new DataView(new ArrayBuffer(2))]]])),
  );
  const { r, buffers } = await call("record", { options: {}, ext: "jpg", row: 3 });
  assert.deepEqual({ key: "k" }, r);
  assert.equal(2, buffers[0].byteLength);
});

test("an answer without a message stands for every request of its name", async () => {
  const call = makeRpc(frozenModel(state([["poll", null, { version: 4 }, []]])));
  assert.equal(4, (await call("poll", { since: 17 })).r.version);
});

test("an answer is a copy: drawing it does not change the next one", async () => {
  const call = makeRpc(frozenModel(state([["poll", null, { facts: [] }, []]])));
  (await call("poll")).r.facts.push("changed");
  assert.deepEqual([], (await call("poll")).r.facts);
});

test("any other request is told that there is no kernel", async () => {
  const call = makeRpc(frozenModel(state([["record", { row: 3 }, {}, []]])));
  await assert.rejects(call("record", { row: 4 }), (error) => error.fault.code === "no-kernel" && error.fault.type === "Saved");
  await assert.rejects(call("search"), (error) => error.fault.code === "no-kernel");
});

test("saved bytes go back to where they were", () => {
  const back = savedState({
    state: { _pictures: [null], _answers: [["record", {}, {}, [null, null]]] },
    buffers: [
      { path: ["_pictures", 0], data: "AQI=" },
      { path: ["_answers", 0, 3, 1], data: "Aw==" },
    ],
  });
  assert.equal(2, back._pictures[0].getUint8(1));
  assert.equal(3, back._answers[0][3][1].getUint8(0));
});

test("a model without a kernel can be set and heard, as widgets of others do", () => {
  const model = frozenModel(state());
  const heard = [];
  model.on("change:_first", (value) => heard.push(value));
  model.set("_first", { a: 2 });
  model.save_changes();
  assert.deepEqual([{ a: 2 }], heard);
  assert.deepEqual({ a: 2 }, model.get("_first"));
});

test("a frame that was packed is unpacked", () => {
  const { buffer } = pack({ a: "ä" });
  assert.deepEqual({ message: { a: "ä" }, buffers: [] }, unpack(buffer));
});
