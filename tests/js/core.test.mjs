// The helpers that need no browser: requests, layout, keys, figures. Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  BlobCache,
  formatBytes,
  formatCount,
  plural,
  hits,
  hitsInLine,
  keyName,
  layOut,
  MAX_SCROLL,
  move,
  pictureType,
  scrollOf,
  topOf,
  visible,
} from "../../tarviz/widgets/host/core.mjs";
import { barTop, bounds } from "../../tarviz/widgets/host/plot.mjs";
import { asView, isOvertaken, makeRpc, RpcError, wordsOf } from "../../tarviz/widgets/host/requests.mjs";

/** A model whose answers the test gives. */
function fakeModel() {
  const listeners = new Map();
  const sent = [];
  return {
    sent,
    get: () => undefined,
    on: (event, callback) => listeners.set(event, callback),
    off: (event) => listeners.delete(event),
    send: (content) => sent.push(content),
    answer: (content, buffers = []) => listeners.get("msg:custom")?.(content, buffers),
    reply(at, r, buffers) {
      this.answer({ k: "tvz:res", id: sent[at].id, r }, buffers);
    },
    requests: () => sent.filter((one) => one.k === "tvz:req"),
  };
}

test("a request says which page asks, and is answered with its result and views on its buffers", async () => {
  const model = { ...fakeModel(), session: "p1" };
  const call = makeRpc(model);
  const answer = call("poll", { since: 3 });
  assert.equal("p1", call.session);
  assert.deepEqual({ k: "tvz:req", id: "p1-1", session: "p1", name: "poll", msg: { since: 3 } }, model.sent[0]);
  model.reply(0, { n: 1 }, [new Uint8Array([7, 8])]);
  const { r, buffers } = await answer;
  assert.deepEqual({ n: 1 }, r);
  assert.equal(7, buffers[0].getUint8(0));
});

test("at most two requests are in flight and the others wait their turn", async () => {
  const model = fakeModel();
  const call = makeRpc(model);
  const all = [1, 2, 3, 4].map((n) => call("fetch", { n }, { keep: true }));
  assert.equal(2, model.sent.length);
  model.reply(0, "a");
  model.reply(1, "b");
  assert.equal(4, model.sent.length);
  model.reply(2, "c");
  model.reply(3, "d");
  assert.deepEqual(
    ["a", "b", "c", "d"],
    (await Promise.all(all)).map((one) => one.r),
  );
});

test("a later request of the same name overtakes the older one", async () => {
  const model = fakeModel();
  const call = makeRpc(model);
  const first = call("search", { where: "a" });
  const second = call("search", { where: "ab" });
  await assert.rejects(first, isOvertaken);
  assert.deepEqual("tvz:cancel", model.sent[1].k);
  model.answer({ k: "tvz:res", id: model.sent[2].id, r: 2 });
  assert.equal(2, (await second).r);
});

test("one that waits is overtaken before it is sent, others and those that are kept are not; an urgent one does not wait", async () => {
  const model = fakeModel();
  const call = makeRpc(model);
  const ends = [];
  const ask = (name, options) =>
    call(name, ends.length, options).then(
      ({ r }) => ends.push(r),
      (error) => ends.push(error.fault.code),
    );
  ask("part", { keep: true });
  ask("part", { keep: true });
  ask("facet");
  ask("facet");
  ask("part");
  assert.deepEqual(
    ["part", "part"],
    model.sent.map(({ name }) => name),
  );
  ask("poll", { urgent: true });
  assert.deepEqual(
    ["part", "part", "poll"],
    model.sent.map(({ name }) => name),
  );
  for (let at = 0; at < 5; at += 1) model.reply(at, `answer ${at}`);
  await new Promise(setImmediate);
  assert.deepEqual(
    ["part", "part", "poll", "facet", "part"],
    model.sent.map(({ name }) => name),
    "nothing that was sent is cancelled",
  );
  assert.deepEqual(["overtaken", "answer 0", "answer 1", "answer 2", "answer 3", "answer 4"], ends);
});

test("an error of the controller keeps its type and hint", async () => {
  const model = fakeModel();
  const answer = makeRpc(model)("search", {});
  model.answer({ k: "tvz:res", id: model.sent[0].id, err: { type: "UsageError", msg: "no", hint: "yes", code: "E_USAGE" } });
  await assert.rejects(answer, (error) => error instanceof RpcError && error.message === "no" && wordsOf(error) === "no yes");
  assert.deepEqual([false, false], [new RpcError({ type: "", msg: "", hint: "", code: "" }), new Error("odd")].map(isOvertaken));
  assert.deepEqual(["no", "Error: odd"], [new RpcError({ type: "", msg: "no", hint: "", code: "" }), new Error("odd")].map(wordsOf));
});

test("no answer is said after a while and taken back when one comes", async () => {
  const model = fakeModel();
  const heard = [];
  const call = makeRpc(model, { timeout: 10, onSlow: (slow) => heard.push(slow) });
  const answer = call("record", {});
  await new Promise((go) => setTimeout(go, 40));
  model.reply(0, 1);
  await answer;
  assert.deepEqual([true, false], heard);
  const two = [call("a", {}), call("b", {})];
  await new Promise((go) => setTimeout(go, 40));
  assert.deepEqual([true, false, true, true], heard);
  model.reply(1, 1);
  await two[0];
  assert.equal(4, heard.length, "the other one still waits");
  model.reply(2, 1);
  await two[1];
  assert.deepEqual([true, false, true, true, false], heard);
});

test("a model that cannot send is a lost kernel, and ending rejects what waits", async () => {
  const model = fakeModel();
  model.send = () => {
    throw new Error("Cannot send");
  };
  const gone = (error) => error.fault.code === "no-kernel" && /Run the cell again/.test(error.fault.hint);
  await assert.rejects(makeRpc(model)("poll"), gone);
  const mute = fakeModel();
  const call = makeRpc(mute);
  const first = assert.rejects(call("poll"), isOvertaken);
  mute.send = model.send;
  await assert.rejects(call("poll"), gone, "the first cannot be cancelled any more");
  await first;
  const end = new AbortController();
  const waiting = makeRpc(fakeModel(), { signal: end.signal })("poll");
  end.abort();
  await assert.rejects(waiting, isOvertaken);
});

test("answers to somebody else's requests are left alone", () => {
  const model = fakeModel();
  makeRpc(model)("poll").catch(() => {});
  model.answer({ k: "tvz:res", id: "other" });
  model.answer({ k: "something" });
  model.answer(undefined);
});

test("the grid has as many columns as fit and its height is capped", () => {
  assert.deepEqual(
    { columns: 4, rowHeight: 204, rows: 3, height: 620, scrollHeight: 620 },
    layOut({ width: 664, count: 12, tile: 160, caption: 36 }),
  );
  assert.equal(1, layOut({ width: 50, count: 12, tile: 160, caption: 36 }).columns);
  assert.equal(MAX_SCROLL, layOut({ width: 664, count: 2_000_000, tile: 160, caption: 36 }).scrollHeight);
  assert.equal(0, layOut({ width: 664, count: 0, tile: 160, caption: 36 }).rows);
});

test("only the rows in view are visible", () => {
  const layout = layOut({ width: 664, count: 1000, tile: 160, caption: 36 });
  assert.deepEqual({ first: 0, stop: 12 }, visible(layout, { top: 0, height: 600, count: 1000 }));
  assert.deepEqual({ first: 4, stop: 16 }, visible(layout, { top: 204, height: 600, count: 1000 }));
  assert.deepEqual({ first: 0, stop: 20 }, visible(layout, { top: 204, height: 600, count: 1000, margin: 1 }));
  assert.deepEqual({ first: 1000, stop: 1000 }, visible(layout, { top: 1e9, height: 600, count: 1000 }));
});

test("two million records are reached through the capped scroll bar, both ways", () => {
  const layout = layOut({ width: 664, count: 2_000_000, tile: 160, caption: 36 });
  assert.equal(0, topOf(0, layout, 600));
  assert.ok(Math.abs(topOf(layout.scrollHeight - 600, layout, 600) - (layout.height - 600)) < 1);
  for (const top of [0, 1, 204, 50_000_000, layout.height - 600])
    assert.ok(Math.abs(topOf(scrollOf(top, layout, 600), layout, 600) - top) < 1e-3 * (top + 1));
  const small = layOut({ width: 664, count: 100, tile: 160, caption: 36 });
  assert.equal(777, topOf(777, small, 600));
});

test("keys move within the records there are", () => {
  const grid = { columns: 4, rows: 3, count: 10 };
  const after = (key, at) => move(key, at, grid);
  assert.deepEqual(
    [6, 4, 9, 1, 0, 9, 9, 0],
    [
      after("l", 5),
      after("h", 5),
      after("j", 5),
      after("k", 5),
      after("Home", 5),
      after("End", 5),
      after("PageDown", 5),
      after("PageUp", 5),
    ],
  );
  assert.deepEqual(
    [4, 6, 9, 1],
    ["Left", "Right", "Down", "Up"].map((way) => after(`Arrow${way}`, 5)),
  );
  assert.deepEqual([0, 9, 0], [after("ArrowLeft", 0), after("ArrowDown", 8), after("ArrowUp", 2)]);
  assert.deepEqual(
    [24, 24, 28],
    [0, 1, 2].map((rows) => move("PageDown", 20, { columns: 4, rows, count: 90 })),
  );
  assert.equal(undefined, after("x", 5));
  assert.equal(-1, move("j", 0, { columns: 4, rows: 3, count: 0 }));
});

test("a key is named with what is held, and not while a letter is composed", () => {
  assert.equal("Ctrl+f", keyName({ key: "f", ctrlKey: true }));
  assert.equal("Space", keyName({ key: " " }));
  assert.equal("Y", keyName({ key: "Y", shiftKey: true }));
  assert.equal("", keyName({ key: "a", isComposing: true }));
});

test("figures read well", () => {
  assert.deepEqual(["0 B", "999 B", "1.00 kB", "68.2 kB", "123 MB", "5.12 GB"], [0, 999, 1000, 68_200, 123e6, 5.12e9].map(formatBytes));
  assert.equal("1,000,000", formatCount(1_000_000));
  assert.equal("999", formatCount(999));
  assert.deepEqual(
    ["0 records", "1 record", "2,000 records"],
    [0, 1, 2000].map((n) => plural(n, "record")),
  );
});

test("pictures are told by their bytes", () => {
  const type = (...bytes) => pictureType(asView(new Uint8Array([...bytes, ...Array(12).fill(0)])));
  assert.equal("image/jpeg", type(0xff, 0xd8, 0xff, 0xe0));
  assert.equal("image/png", type(0x89, 0x50, 0x4e, 0x47));
  assert.equal("image/webp", type(0x52, 0x49, 0x46, 0x46, 0, 0, 0, 0, 0x57, 0x45, 0x42, 0x50));
  assert.equal("image/gif", type(0x47, 0x49, 0x46, 0x38));
  assert.equal("", type(0x3c, 0x68, 0x74, 0x6d));
  assert.equal("", pictureType(asView(new Uint8Array(3))));
});

test("pictures that were not looked at for long are let go", () => {
  const revoked = [];
  const { createObjectURL, revokeObjectURL } = URL;
  let made = 0;
  Object.assign(URL, { createObjectURL: () => `blob:${(made += 1)}`, revokeObjectURL: (url) => revoked.push(url) });
  const end = new AbortController();
  const cache = new BlobCache({ count: 2, bytes: 100, signal: end.signal });
  const view = (size) => new DataView(new ArrayBuffer(size));
  cache.put("a", view(10), "image/png");
  cache.put("b", view(10), "image/png");
  cache.get("a");
  cache.put("c", view(10), "image/png");
  assert.deepEqual(["blob:2"], revoked);
  cache.put("d", view(95), "image/png");
  assert.deepEqual(["blob:2", "blob:1", "blob:3"], revoked);
  assert.equal(95, cache.used);
  end.abort();
  assert.equal(4, revoked.length);
  assert.equal(0, cache.used);
  Object.assign(URL, { createObjectURL, revokeObjectURL });
});

test("plots have bounds whatever they are given", () => {
  assert.deepEqual([0, 1], bounds([]));
  assert.deepEqual([-2, 5], bounds([5, -2, 3]));
  assert.equal(200_000, bounds(Array.from({ length: 200_001 }, (_, i) => i))[1]);
  assert.equal(7, barTop([1, 7]));
  assert.ok(barTop([...Array(255).fill(10), 100_000]) < 100);
});

/** Stands in for a document: an element is its tag and its text. */
const withElements = (work) => {
  globalThis.document = {
    createElement: (tag) => ({
      tag,
      replaceChildren(...text) {
        this.text = text.join("");
      },
    }),
  };
  try {
    return work();
  } finally {
    delete globalThis.document;
  }
};

test("words that were searched for are marked, case folded, signs and all", () => {
  const shown = withElements(() =>
    hits("A Red disc (red.)", ["red", "(red.)"]).map((part) => (typeof part === "string" ? part : `<${part.text}>`)),
  );

  assert.deepEqual(shown, ["A ", "<Red>", " disc ", "<(red.)>", ""]);
  assert.deepEqual(hits("A red disc", []), ["A red disc"]);
});

test("a line begins shortly before its first hit", () => {
  const shown = withElements(() =>
    hitsInLine("a yellow square under a red star", ["red"])
      .map((part) => part.text ?? part)
      .join(""),
  );

  assert.equal(shown, "…under a red star");
});
