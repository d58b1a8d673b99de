// @ts-check
// A bench at work (controller: BenchRun in tarviz/widgets/bench/controller.py): the rate as it comes, the stages, the sweep, Stop.

import { bindKeys, button, copyText, drawnBy, fill, focusedBeside, h, later, leave } from "../host/core.mjs";
import { asView, isOvertaken, makeRpc, NO_ANSWER, RpcError, wordsOf } from "../host/requests.mjs";
import { KeySheet } from "../host/sheet.mjs";
import { drawResults, drawStages } from "./bench_tables.mjs";
import { readPoints } from "./figures.mjs";
import { drawRateLine } from "./rate_line.mjs";

/** What the keys do, as the help sheet lists it. */
export const BENCH_KEYS = [
  ["s", "stop; what was measured stays"],
  ["p", "pause the drawing"],
  ["1 2 3", "line, stages, results"],
  ["a l", "run again; three times as long"],
  ["c", "copy the result as JSON"],
  ["Esc", "leave"],
  ["?", "this list"],
];

/** How often the controller is asked, ms: with the answers, ten messages a second. */
const EVERY = 200;
const GHOSTS = 6;

class BenchView {
  /** @param {any} model @param {HTMLElement} el @param {AbortSignal} signal */
  constructor(model, el, signal) {
    this.model = model;
    this.signal = signal;
    const first = model.get("_first");
    this.config = first.config;
    this.slow = false;
    this.sheet = new KeySheet(
      BENCH_KEYS,
      () => this.root,
      () => this.root.focus(),
    );
    /** @type {number | undefined} seconds the pointer stands at */
    this.spot = undefined;
    this.remembering = later(() => this.remember(), 200, signal);
    this.rpc = makeRpc(model, {
      signal,
      onSlow: (slow) => {
        this.slow = slow;
        this.tell();
      },
    });
    /** @type {import("./rate_line.mjs").Line[]} the running one is the last */
    this.lines = [];
    /** @type {ReturnType<typeof drawRateLine>} */
    this.scale = undefined;
    this.paused = false;
    this.lost = false;
    this.view = model.get("_state")?.view ?? 1;
    /** @type {any} */
    this.said = {};
    /** @type {HTMLElement} */
    this.root = h("div", { class: "tvz tvz-bench", role: "region", tabIndex: 0, "aria-label": `tarviz bench of ${first.config.title}` });
    this.build(el);
    this.take(first.poll, model.get("_pictures"));
    if (this.said.running) this.loop();
  }

  /** @param {HTMLElement} el */
  build(el) {
    const { signal, config } = this;
    this.stopButton = button("Stop", "stop; what was measured stays (s)", () => this.stop(), { class: "tvz-stop" });
    this.againButton = button("run again", "measure once more (a)", () => this.again(1));
    this.longerButton = button("longer", "measure once more, three times as long: the figures vary less (l)", () => this.again(3));
    this.pauseButton = button("pause drawing", "the work goes on (p)", () => this.pause());
    this.tabs = ["line", "stages", "results"].map((text, at) =>
      button(text, `${text} (${at + 1})`, () => this.turn(at + 1), { class: "tvz-tab", role: "tab" }),
    );
    this.head = h(
      "header",
      { class: "tvz-head" },
      h("span", { class: "tvz-title tvz-cut", title: config.title, dir: "auto" }, config.title),
      h("span", { class: "tvz-head-facts tvz-mono tvz-faint tvz-cut", title: config.chain }, config.chain),
      this.stopButton,
      this.againButton,
      this.longerButton,
      this.pauseButton,
      button("copy as JSON", "copy the result (c)", () => this.copy()),
      button("?", "keys", () => this.sheet.toggle()),
    );
    this.verdict = h("p", { class: "tvz-verdict", "aria-live": "polite" });
    this.canvas = h("canvas", { class: "tvz-line", role: "img", "aria-label": "records per second over time" });
    this.readout = h("div", { class: "tvz-faint tvz-readout" }, "\u200b");
    const frame = h("div", { class: "tvz-line-frame" }, this.canvas);
    this.lineBox = h("section", { class: "tvz-panel-line", "aria-label": "rate over time" }, this.readout, frame);
    this.stages = h("section", { class: "tvz-panel-stages", "aria-label": "stages" });
    this.results = h("section", { class: "tvz-panel-results", "aria-label": "results" });
    this.main = h("div", { class: "tvz-main" }, this.lineBox, this.stages, this.results);
    this.statusText = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.root.append(
      this.head,
      this.verdict,
      h("div", { class: "tvz-tabs", role: "tablist" }, ...this.tabs),
      this.main,
      h("footer", { class: "tvz-status" }, this.statusText, h("span", { class: "tvz-cut tvz-host", title: config.facts }, config.facts)),
    );
    el.append(this.root);
    bindKeys(this.root, (name) => this.key(name), signal);
    const watch = new ResizeObserver(() => {
      this.root.classList.toggle("tvz-narrow", this.root.clientWidth < 760);
      this.drawLine();
    });
    watch.observe(this.root);
    signal.addEventListener("abort", () => watch.disconnect());
    this.canvas.addEventListener("pointermove", (/** @type {any} */ event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.spot = undefined;
      this.drawLine();
    });
    for (const kind of ["focusin", "focusout"]) this.root.addEventListener(kind, () => this.remembering(), { signal });
    this.mark();
  }

  // ---- what the controller says

  async loop() {
    while (!this.signal.aborted && this.said.running) {
      const last = this.lines.at(-1);
      try {
        const { r, buffers } = await this.rpc("poll", { trial: last?.trial ?? -1, points: last?.points.length ?? 0 });
        this.take(r, buffers);
      } catch (error) {
        this.trouble(error);
      }
      await new Promise((go) => setTimeout(go, EVERY));
    }
  }

  /** @param {any} message @param {any[]} buffers */
  take(message, buffers) {
    this.said = message;
    const { trial, label, from, first } = message;
    const points = buffers.length ? readPoints(asView(buffers[0])) : [];
    let line = this.lines.at(-1);
    if (!line || line.trial !== trial) {
      line = { trial, label, points: [], first };
      this.lines.push(line);
      this.lines = this.lines.slice(-GHOSTS);
    }
    Object.assign(line, { points: [...line.points.slice(0, from), ...points], first: first ?? 0 });
    if (!this.paused || !message.running) this.draw();
    this.tell();
  }

  /** @param {unknown} error */
  trouble(error) {
    if (isOvertaken(error)) return;
    if (error instanceof RpcError && error.fault.code === "no-kernel") {
      this.lost = true;
      this.said = { ...this.said, running: false };
      this.draw();
      this.tell(`${wordsOf(error)} This is what was measured until then.`);
    } else this.tell(wordsOf(error));
  }

  /** @param {string} [text] */
  tell(text) {
    const line = text ?? (this.slow ? NO_ANSWER : (this.said.status ?? ""));
    this.statusText.textContent = line;
    this.statusText.title = line;
    this.statusText.classList.toggle("tvz-busy", !text && !!this.said.running);
  }

  // ---- drawing

  draw() {
    const { running, stopping, verdict } = this.said;
    this.stopButton.disabled = !running || stopping;
    this.stopButton.textContent = stopping && running ? "stopping…" : running ? "Stop" : this.said.state === "stopped" ? "stopped" : "done";
    this.pauseButton.hidden = !running;
    this.againButton.hidden = this.longerButton.hidden = !!running || this.lost || !!this.model.still;
    const [clause, rest] = verdict ?? ["", ""];
    fill(this.verdict, h("strong", {}, clause || (running ? "measuring…" : "nothing was measured")), rest ? `: ${rest}.` : "");
    this.drawLine();
    drawStages(this.stages, this.said);
    drawResults(this.results, this.said);
  }

  drawLine() {
    const label = this.lines.at(-1)?.label;
    const result = this.said.running ? undefined : (this.said.rows ?? []).find((/** @type {any} */ row) => row.rate && row.label === label);
    this.scale = drawRateLine(this.canvas, this.readout, this.lines, this.spot, result) ?? this.scale;
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (!this.scale) return;
    const { left, right, end, width } = this.scale;
    const at = event.clientX - this.canvas.getBoundingClientRect().left;
    this.spot = Math.max(0, Math.min(end, ((at - left) / (width - left - right)) * end));
    this.drawLine();
  }

  // ---- what the reader does

  /** Whether a key is used; a button's own, Enter and Space, never are. @param {string} name */
  key(name) {
    if (name === "Escape") {
      if (this.sheet.shown) this.sheet.toggle();
      else leave(this.root);
      return true;
    }
    if (this.sheet.shown && name !== "?") return false;
    const acts = /** @type {Record<string, () => void>} */ ({
      s: () => this.stop(),
      p: () => this.pause(),
      c: () => this.copy(),
      a: () => this.again(1),
      l: () => this.again(3),
      "?": () => this.sheet.toggle(),
      1: () => this.turn(1),
      2: () => this.turn(2),
      3: () => this.turn(3),
    });
    if (!acts[name]) return false;
    acts[name]();
    return true;
  }

  async stop() {
    if (!this.said.running) return;
    this.said = { ...this.said, stopping: true };
    this.draw();
    try {
      await this.rpc("stop");
    } catch (error) {
      this.trouble(error);
    }
  }

  /** Measure once more. @param {number} times how much longer than before */
  async again(times) {
    if (this.againButton.hidden) return;
    try {
      await this.rpc("again", { times }, { keep: true });
      this.lines = [];
      this.said = { ...this.said, running: true };
      this.draw();
      this.loop();
    } catch (error) {
      this.trouble(error);
    }
  }

  pause() {
    this.paused = !this.paused;
    this.pauseButton.setAttribute("aria-pressed", String(this.paused));
    if (!this.paused) this.draw();
  }

  /** Line, stages or results: 1, 2, 3. @param {number} view */
  turn(view) {
    this.view = view;
    this.mark();
    [this.lineBox, this.stages, this.results][view - 1].scrollIntoView({ block: "nearest" });
    this.drawLine();
    this.remembering();
  }

  /** Say which of the three is looked at. */
  mark() {
    this.root.setAttribute("data-view", String(this.view));
    this.tabs?.forEach((/** @type {HTMLElement} */ tab, /** @type {number} */ at) =>
      tab.setAttribute("aria-selected", String(at + 1 === this.view)),
    );
  }

  async copy() {
    try {
      const { r } = await this.rpc("plain", {});
      this.tell((await copyText(JSON.stringify(r.result, null, 1))) ? "copied as JSON" : "the clipboard is closed to this page");
    } catch (error) {
      this.trouble(error);
    }
  }

  remember() {
    if (this.lost) return;
    try {
      this.model.send({ k: "tvz:state", state: { view: this.view, focused: this.root.contains(focusedBeside(this.root)) } });
    } catch {
      // the kernel is gone: the next request says so
    }
  }
}

export default { render: drawnBy(BenchView) };
