// The model of pages without a kernel: saved answers, "no kernel" for the rest. Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";

import { placed, test as domTest, until } from "./dom.mjs";
import { makeRpc } from "../../tarviz/widgets/host/requests.mjs";
import { frozenModel, mount, mountAll, pack, savedState, unpack } from "../../tarviz/widgets/host/host.mjs";

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

test("a saved picture says that it is one, and asks nothing of anybody", () => {
  const model = frozenModel(state());
  assert.equal(true, model.still);
  let answers = 0;
  model.on("msg:custom", () => (answers += 1));
  for (const content of [undefined, { k: "tvz:cancel", id: "1" }, { k: "tvz:state", state: {} }]) model.send(content);
  return new Promise((go) => setTimeout(go, 5)).then(() => assert.equal(0, answers));
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

test("a frame has its buffers in their order", () => {
  const text = new TextEncoder().encode('{"a":1}');
  const bytes = [text.length, 0, 0, 0, ...text, 2, 0, 0, 0, 3, 0, 0, 0, 7, 8, 9, 1, 0, 0, 0, 5];
  const { message, buffers } = unpack(Uint8Array.from(bytes).buffer);

  assert.deepEqual({ a: 1 }, message);
  assert.deepEqual(
    [[7, 8, 9], [5]],
    buffers.map((view) => [...new Uint8Array(view.buffer, view.byteOffset, view.byteLength)]),
  );
});

domTest("the token does not stay in the address, what is shown does", () => {
  history.replaceState(null, "", "/3/?token=secret#where=cls");
  const place = placed();
  const ended = [];
  const widget = {
    render: ({ el, signal }) => {
      el.append("drawn");
      signal.addEventListener("abort", () => ended.push("signal"));
      return () => ended.push("render");
    },
  };
  const end = mount(() => widget, {}, place);

  assert.equal("http://localhost/3/#where=cls", location.href);
  assert.equal("drawn", place.textContent);
  end();
  assert.deepEqual(["signal", "render"], ended);
  history.replaceState(null, "", "/?page=2");
  mount(widget, {}, place);
  assert.equal("?page=2", location.search);
  history.replaceState(null, "", "/");
});

domTest("a page draws the widgets it carries, and says which it cannot", async () => {
  const source = "export default { render: ({ model, el }) => void el.append(model.get('_first').word) };";
  const element = (name) => {
    const one = document.createElement("div");
    one.dataset.tarvizWidget = name;
    return one;
  };
  const [fine, lost] = [element("a"), element("b")];
  const place = placed(fine, lost);
  // Node imports no blob: addresses; a data: address is a module of its own as well
  const { createObjectURL } = URL;
  URL.createObjectURL = () => `data:text/javascript,${encodeURIComponent(source)}`;
  mountAll(
    { modules: { m: source }, styles: {}, models: { a: { module: "m", style: "m", state: { _first: { word: "here" } } } } },
    document,
    true,
  );
  await until(() => fine.dataset.tarvizDrawn && lost.textContent);
  URL.createObjectURL = createObjectURL;

  assert.equal("tvz-host tvz-auto", fine.shadowRoot.querySelector(".tvz-host").className);
  document.body.dataset.theme = "dark";
  await until(() => fine.shadowRoot.querySelector(".tvz-host").className === "tvz-host tvz-dark");
  delete document.body.dataset.theme;
  assert.equal("here", fine.shadowRoot.querySelector(".tvz-host").textContent);
  assert.equal("true", fine.dataset.tarvizDrawn);
  assert.match(lost.textContent, /This widget could not be drawn/);
  place.remove();
});

domTest("a widget is drawn when it is first seen, its module is loaded once", async () => {
  const watching = [];
  const { IntersectionObserver } = globalThis;
  globalThis.IntersectionObserver = class {
    constructor(told) {
      this.seen = (target, isIntersecting) => told([{ isIntersecting, target }]);
      this.left = [];
      watching.push(this);
    }
    observe(target) {
      (this.watched ??= []).push(target);
    }
    unobserve(target) {
      this.left.push(target);
    }
  };
  const elements = ["a", "a"].map((name) => Object.assign(document.createElement("div"), { className: name }));
  elements.forEach((one) => (one.dataset.tarvizWidget = "a"));
  const place = placed(...elements);
  const { createObjectURL } = URL;
  let made = 0;
  URL.createObjectURL = () => ((made += 1), "data:text/javascript,export default { render: ({ el }) => void el.append('drawn') };");
  const saved = { modules: { m: "" }, styles: { s: ".x {}" }, models: { a: { module: "m", style: "s", state: {} } } };
  mountAll(saved);
  const [watch] = watching;
  assert.deepEqual(elements, watch.watched);
  watch.seen(elements[0], false);
  assert.deepEqual([], watch.left);
  for (const one of elements) watch.seen(one, true);
  await until(() => elements.every((one) => one.dataset.tarvizDrawn));
  URL.createObjectURL = createObjectURL;
  globalThis.IntersectionObserver = IntersectionObserver;

  assert.deepEqual([elements, 1], [watch.left, made]);
  assert.equal(".x {}", elements[0].shadowRoot.querySelector("style").textContent);
  place.remove();
});
