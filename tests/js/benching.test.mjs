// The bench's page by itself: what is said while it measures, when it was stopped, lost or is slow; the pointer over its line.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import bench from "../../tarviz/widgets/bench/bench.mjs";
import { click, placed, press, test, until } from "./dom.mjs";

const ends = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

const POINTS = [0.5, 10, 1, 1, 20, 2, 2, 40, 4];
const SAID = {
  trial: 1,
  label: "eager",
  from: 0,
  first: 0,
  running: false,
  stopping: false,
  state: "done",
  status: "done in 2 s",
  verdict: ["reading", "it limits"],
};

/** Points as the controller sends them. */
const sent = (points) => {
  const view = new DataView(new ArrayBuffer(4 * points.length));
  points.forEach((value, at) => view.setFloat32(4 * at, value, true));
  return view;
};

/** The page, `answers` by the name of what it asks: a message, or a fault. */
function benching(poll = {}, { answers = {}, state, ...more } = {}) {
  const [asked, states, cancelled] = [[], [], []];
  let heard = () => {};
  const model = {
    get: (name) =>
      ({
        _first: { config: { title: "t.tar", chain: "decode(png)", facts: "2 cores" }, poll: { ...SAID, ...poll } },
        _pictures: [sent(POINTS)],
        _state: state,
      })[name],
    on: (_, callback) => (heard = callback),
    off: () => {},
    send: (content) => {
      if (content.k === "tvz:state") states.push(content.state);
      if (content.k === "tvz:cancel") cancelled.push(content.id);
      if (content.k !== "tvz:req") return;
      asked.push([content.name, content.msg]);
      const { buffers = [], ...answer } = answers[content.name] ?? {};
      if (answers[content.name]) setTimeout(() => heard({ k: "tvz:res", id: content.id, ...answer }, buffers));
    },
    ...more,
  };
  const place = placed();
  const end = bench.render({ model, el: place });
  ends.push(() => (end(), place.remove()));
  const root = place.firstElementChild;
  const button = (text) => [...root.querySelectorAll("button")].find((one) => one.textContent.startsWith(text));
  return {
    root,
    asked,
    states,
    cancelled,
    button,
    answers,
    find: (selector) => root.querySelector(selector),
    status: () => root.querySelector(".tvz-status [role=status]"),
  };
}

test("what was measured: its verdict, and what can be done now", () => {
  const { find, button, status, root } = benching();
  assert.deepEqual(
    ["reading: it limits.", "done in 2 s", "done in 2 s"],
    [find(".tvz-verdict").textContent, status().textContent, status().title],
  );
  assert.deepEqual(
    ["done", true, true, false, false],
    [
      find(".tvz-stop").textContent,
      find(".tvz-stop").disabled,
      button("pause").hidden,
      button("run again").hidden,
      button("longer").hidden,
    ],
  );
  assert.deepEqual(["tarviz bench of t.tar", "1", 0], [root.getAttribute("aria-label"), root.dataset.view, root.tabIndex]);
  assert.ok(!status().classList.contains("tvz-busy"));
  assert.deepEqual(
    ["true", "false", "false"],
    [...root.querySelectorAll("[role=tab]")].map((tab) => tab.getAttribute("aria-selected")),
  );
  assert.equal("nothing was measured", benching({ verdict: null }).find(".tvz-verdict").textContent);
  assert.equal("reading", benching({ verdict: ["reading", ""] }).find(".tvz-verdict").textContent);
  assert.equal("stopped", benching({ state: "stopped" }).find(".tvz-stop").textContent);
  const still = benching({}, { still: true });
  press(still.root, "a");
  assert.deepEqual([true, []], [still.button("run again").hidden, still.asked], "a saved picture measures nothing");
  assert.equal("2", benching({}, { state: { view: 2 } }).root.dataset.view);
});

test("while it runs it is asked for what is new, five times a second, and is stopped once", async () => {
  const running = { running: true, verdict: null, status: "running" };
  const page = benching(running, {
    answers: { poll: { r: { ...SAID, ...running, from: 3 }, buffers: [sent([3, 30, 3])] }, stop: { r: {} } },
  });
  assert.deepEqual(
    ["Stop", false, false, true, "measuring…"],
    [
      page.find(".tvz-stop").textContent,
      page.find(".tvz-stop").disabled,
      page.button("pause").hidden,
      page.button("run again").hidden,
      page.find(".tvz-verdict").textContent,
    ],
  );
  assert.ok(page.status().classList.contains("tvz-busy"));
  assert.deepEqual([["poll", { trial: 1, points: 3 }]], page.asked);
  await until(() => page.asked.length === 2);
  assert.deepEqual({ trial: 1, points: 4 }, page.asked[1][1]);
  assert.match(page.find(".tvz-readout").textContent, /^30 records\/s 3 MB\/s .* after 3\.0 s · eager$/);
  press(page.root, "a");
  assert.ok(!page.asked.some(([name]) => name === "again"), "it runs already");
  press(page.root, "p");
  assert.equal("true", page.button("pause").getAttribute("aria-pressed"));
  const { length } = page.find("canvas").pen.calls;
  page.answers.poll = { r: { ...SAID, ...running, from: 4 }, buffers: [sent([4, 70, 7])] };
  await until(() => page.asked.at(-1)[1].points === 5);
  assert.equal(length, page.find("canvas").pen.calls.length, "nothing is drawn meanwhile");
  press(page.root, "p");
  assert.match(page.find(".tvz-readout").textContent, /^70 /);
  page.answers.poll = { r: { ...SAID, ...running, stopping: true, from: 5 } };
  press(page.root, "s");
  assert.deepEqual(["stopping…", true], [page.find(".tvz-stop").textContent, page.find(".tvz-stop").disabled]);
  await until(() => page.asked.some(([name]) => name === "stop"));
  page.answers.poll = { r: { ...SAID, state: "stopped", from: 5 } };
  await until(() => page.find(".tvz-stop").textContent === "stopped");
  press(page.root, "s");
  assert.equal(1, page.asked.filter(([name]) => name === "stop").length);
  press(page.root, "2");
  click(page.find("canvas"), {}, "pointerleave");
  await until(() => page.states.length);
  assert.deepEqual([1, 2], [page.states.length, page.states[0].view], "looking at another part is remembered, drawing is not");
});

test("on less than 760 pixels a bench is narrow; its digits bring each part into view", async () => {
  for (const [width, narrow] of [
    [759, true],
    [760, false],
  ]) {
    const { root, find } = benching();
    const { length } = find("canvas").pen.calls;
    Object.defineProperty(root, "clientWidth", { value: width });
    await until(() => find("canvas").pen.calls.length > length);
    assert.equal(narrow, root.classList.contains("tvz-narrow"));
  }
  const { root } = benching();
  const seen = [];
  for (const section of root.querySelectorAll("section")) section.scrollIntoView = () => seen.push(section.getAttribute("aria-label"));
  for (const key of "132") press(root, key);
  assert.deepEqual(["rate over time", "results", "stages"], seen);
});

test("each trial has a line of its own; of those before, five stay as ghosts", async () => {
  let trial = 0;
  const poll = () => ({ r: { ...SAID, running: true, trial, from: 0 }, buffers: [sent([1, 10, 0, 2, 20, 0])] });
  const page = benching({ running: true, trial: 0 }, { answers: Object.defineProperty({}, "poll", { get: () => ((trial += 1), poll()) }) });
  const lines = () => {
    const { calls } = page.find("canvas").pen;
    const ghosts = calls.slice(calls.findLastIndex(([name, value]) => name === "globalAlpha" && value === 0.25));
    return ghosts
      .slice(
        0,
        ghosts.findIndex(([name]) => name === "restore"),
      )
      .filter(([name]) => name === "moveTo").length;
  };
  assert.equal(0, lines());
  await until(() => lines() === 1);
  await until(() => trial > 16);
  assert.equal(5, lines());
});

test("it measures again, for as long or three times as long; each time from the beginning", async () => {
  const page = benching({}, { answers: { again: { r: {} }, poll: { r: { ...SAID, trial: 2 } } } });
  click(page.button("run again"));
  await until(() => page.asked.some(([name]) => name === "poll"));
  assert.deepEqual(
    [
      ["again", { times: 1 }],
      ["poll", { trial: -1, points: 0 }],
    ],
    page.asked.slice(0, 2),
  );
  await until(() => (click(page.button("longer")), page.asked.some(([name, msg]) => name === "again" && msg.times === 3)));

  const twice = benching({}, { answers: { again: { r: {} }, poll: { r: { ...SAID, trial: 2 } } } });
  press(twice.root, "a");
  press(twice.root, "a");
  await until(() => twice.asked.some(([name]) => name === "poll"));
  assert.deepEqual(["again", { times: 1 }], twice.asked[0]);
  assert.ok(!twice.cancelled.some((id) => id.endsWith("-1")), "the first of two is not taken back: it has begun");
});

test("the pointer over the line tells the figures of its time, held within it", () => {
  const page = benching();
  const canvas = page.find("canvas");
  const at = (x) => (click(canvas, { clientX: x }, "pointermove"), page.find(".tvz-readout").textContent);
  assert.equal("40 records/s 4 MB/s of payload now,  after 2.0 s · eager", page.find(".tvz-readout").textContent);
  assert.equal("10 records/s 1 MB/s of payload after 0.5 s · eager", at(52 + (902 * 0.6) / 2));
  assert.equal("20 records/s 2 MB/s of payload after 1.0 s · eager", at(52 + (902 * 0.9) / 2));
  assert.equal("10 records/s 1 MB/s of payload after 0.5 s · eager", at(-500));
  assert.equal("40 records/s 4 MB/s of payload after 2.0 s · eager", at(5000));
  canvas.getBoundingClientRect = () => ({ left: 100 });
  assert.match(at(100 + 390), /^10 /, "0.749 s");
  assert.match(at(100 + 391), /^20 /, "0.752 s");
  click(canvas, {}, "pointerleave");
  assert.match(page.find(".tvz-readout").textContent, / now, /);
  assert.match(benching({ first: null }).find(".tvz-readout").textContent, /after 2\.0 s/);
  assert.match(benching({ first: 0.5 }).find(".tvz-readout").textContent, /after 1\.5 s/);
  const row = { label: "eager", rate: 33, megabytes: 0, margin: 3.3 };
  const rows = [
    { ...row, rate: 0 },
    { ...row, label: "other", rate: 99 },
    { kind: "run", note: "", shown: "33", error: "", ...row },
  ];
  assert.equal("33 records/s ±10 % · eager", benching({ rows }).find(".tvz-readout").textContent);
  assert.match(benching({ rows, running: true }).find(".tvz-readout").textContent, /^40 /, "not yet the row's");
});

test("a kernel that is gone, an answer that is wrong, one that takes long", async () => {
  const gone = { err: { type: "NoKernel", msg: "It is gone.", hint: "Run the cell.", code: "no-kernel" } };
  const page = benching({ running: true }, { answers: { poll: gone } });
  await until(() => page.status().textContent === "It is gone. Run the cell. This is what was measured until then.");
  assert.deepEqual(
    [true, "done", false],
    [page.button("run again").hidden, page.find(".tvz-stop").textContent, page.status().classList.contains("tvz-busy")],
  );
  const { length } = page.asked;
  await new Promise((go) => setTimeout(go, 260));
  assert.equal(length, page.asked.length, "it is asked no more");
  const wrong = benching({}, { answers: { again: { err: { type: "X", msg: "no", hint: "try", code: "E_X" } } } });
  press(wrong.root, "l");
  await until(() => wrong.status().textContent === "no try");
  assert.deepEqual([["again", { times: 3 }]], wrong.asked);
  const stopping = benching({ running: true });
  press(stopping.root, "s");
  press(stopping.root, "s");
  await new Promise((go) => setTimeout(go, 20));
  assert.equal("done in 2 s", stopping.status().textContent, "asked twice is no trouble");
});

test("the result is copied; keys of a button are its own; what is shown is kept", async () => {
  const copied = [];
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => copied.push(text) }, configurable: true });
  const page = benching({}, { answers: { plain: { r: { result: { rate: 3 } } } } });
  press(page.root, "c");
  await until(() => page.status().textContent === "copied as JSON");
  assert.deepEqual(['{\n "rate": 3\n}'], copied);
  Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("no")) }, configurable: true });
  document.execCommand = () => false;
  click(page.button("copy"));
  await until(() => page.status().textContent === "the clipboard is closed to this page");
  assert.deepEqual(
    [false, false, true, false],
    [press(page.button("copy"), "Enter"), press(page.button("copy"), " "), press(page.button("copy"), "2"), press(page.root, "z")],
  );
  await until(() => page.states.length);
  assert.equal(2, page.states.at(-1).view);
  click([...page.root.querySelectorAll("[role=tab]")][2]);
  assert.deepEqual(
    ["false", "false", "true"],
    [...page.root.querySelectorAll("[role=tab]")].map((tab) => tab.getAttribute("aria-selected")),
  );
  assert.ok(press(page.root, "Escape"));
  click(page.button("?"));
  assert.ok(page.find(".tvz-sheet"));
});
