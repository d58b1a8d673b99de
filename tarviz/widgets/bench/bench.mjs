// @ts-check
// A bench at work (controller: BenchRun in tarviz/widgets/bench/controller.py): the rate as it comes, the stages, the sweep, Stop.

import { asView, bindKeys, copyText, drawnBy, fill, focusedBeside, formatCount, h, isOvertaken, later, leave, makeRpc, RpcError } from "../host/core.mjs";
import { KeySheet } from "../host/sheet.mjs";

/** What the keys do, as the help sheet lists it. */
export const BENCH_KEYS = [["s", "stop; what was measured stays"], ["p", "pause the drawing"], ["1 2 3", "line, stages, results"], ["c", "copy the result as JSON"], ["Esc", "leave"], ["?", "this list"]];

/** How often the controller is asked, ms: with the answers, ten messages a second. */
const EVERY = 200;
const GHOSTS = 6;

/** @typedef {[number, number, number]} Point seconds, records/s, MB/s */

/** Points out of little-endian 32-bit floats. @param {DataView} view @returns {Point[]} */
export function readPoints(view) {
  const points = [];
  for (let at = 0; at + 12 <= view.byteLength; at += 12) points.push(/** @type {Point} */ ([view.getFloat32(at, true), view.getFloat32(at + 4, true), view.getFloat32(at + 8, true)]));
  return points;
}

/**
 * Marks of an axis from 0 to at least `top`: round steps, at most `most` of them.
 * @param {number} top @param {number} [most]
 */
export function ticks(top, most = 5) {
  if (!(top > 0)) return [0, 1];
  const rough = top / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10) * power;
  const found = [];
  for (let at = 0; at * size < top * (1 + 1e-9) || found.length < 2; at += 1) found.push(Number((at * size).toPrecision(12)));
  if (/** @type {number} */ (found.at(-1)) < top) found.push(Number((found.length * size).toPrecision(12)));
  return found;
}

/** A rate as people read it. @param {number | null | undefined} rate */
export function formatRate(rate) {
  if (rate === null || rate === undefined || !Number.isFinite(rate)) return "";
  return rate >= 100 ? formatCount(Math.round(rate)) : String(Number(rate.toPrecision(3)));
}

/** Milliseconds. @param {number | null | undefined} ms */
export const formatMs = (ms) => (ms === null || ms === undefined ? "" : ms >= 100 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(1) : ms.toFixed(3));

/** The point nearest to a time. @param {Point[]} points @param {number} seconds */
export function nearest(points, seconds) {
  let best;
  for (const point of points) if (!best || Math.abs(point[0] - seconds) < Math.abs(best[0] - seconds)) best = point;
  return best;
}

class BenchView {
  /** @param {any} model @param {HTMLElement} el @param {AbortSignal} signal */
  constructor(model, el, signal) {
    this.model = model;
    this.signal = signal;
    const first = model.get("_first");
    this.config = first.config;
    this.slow = false;
    this.sheet = new KeySheet(BENCH_KEYS, () => this.root, () => this.root.focus());
    /** @type {number | undefined} seconds the pointer stands at */
    this.spot = undefined;
    this.remembering = later(() => this.remember(), 200, signal);
    this.rpc = makeRpc(model, { signal, onSlow: (slow) => { this.slow = slow; this.tell(); } });
    /** @type {{ trial: number, label: string, points: Point[], first: number }[]} the running one is the last */
    this.lines = [];
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
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => h("button", { title, onclick: act }, text);
    this.stopButton = h("button", { class: "tvz-stop", title: "stop; what was measured stays (s)", onclick: () => this.stop() }, "Stop");
    this.pauseButton = button("pause drawing", "the work goes on (p)", () => this.pause());
    this.tabs = ["line", "stages", "results"].map((text, at) => h("button", { class: "tvz-tab", role: "tab", title: `${text} (${at + 1})`, onclick: () => this.turn(at + 1) }, text));
    this.head = h("header", { class: "tvz-head" }, h("span", { class: "tvz-title tvz-cut", title: config.title, dir: "auto" }, config.title), h("span", { class: "tvz-head-facts tvz-mono tvz-faint tvz-cut", title: config.chain }, config.chain),
      this.stopButton, this.pauseButton, button("copy as JSON", "copy the result (c)", () => this.copy()), button("?", "keys", () => this.sheet.toggle()));
    this.verdict = h("p", { class: "tvz-verdict", "aria-live": "polite" });
    this.canvas = h("canvas", { class: "tvz-line", role: "img", "aria-label": "records per second over time" });
    this.readout = h("div", { class: "tvz-faint tvz-readout" }, "\u200b");
    this.lineBox = h("section", { class: "tvz-panel-line", "aria-label": "rate over time" }, this.readout, h("div", { class: "tvz-line-frame" }, this.canvas));
    this.stages = h("section", { class: "tvz-panel-stages", "aria-label": "stages" });
    this.results = h("section", { class: "tvz-panel-results", "aria-label": "results" });
    this.main = h("div", { class: "tvz-main" }, this.lineBox, this.stages, this.results);
    this.statusText = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.root.append(this.head, this.verdict, h("div", { class: "tvz-tabs", role: "tablist" }, ...this.tabs), this.main,
      h("footer", { class: "tvz-status" }, this.statusText, h("span", { class: "tvz-cut tvz-host", title: config.facts }, config.facts)));
    el.append(this.root);
    bindKeys(this.root, (name, event) => this.key(name, event), signal);
    const watch = new ResizeObserver(() => {
      this.root.classList.toggle("tvz-narrow", this.root.clientWidth < 760);
      this.drawLine();
    });
    watch.observe(this.root);
    signal.addEventListener("abort", () => watch.disconnect());
    this.canvas.addEventListener("pointermove", (/** @type {any} */ event) => this.point(event), { signal });
    this.canvas.addEventListener("pointerleave", () => { this.spot = undefined; this.drawLine(); }, { signal });
    for (const kind of ["focusin", "focusout"]) this.root.addEventListener(kind, () => this.remembering(), { signal });
    this.turn(this.view, true);
  }

  // ---- what the controller says

  async loop() {
    while (!this.signal.aborted && !this.lost && this.said.running) {
      const last = this.lines.at(-1);
      try {
        const { r, buffers } = await this.rpc("poll", { trial: last?.trial ?? -1, points: last?.points.length ?? 0 });
        this.take(r, buffers);
      } catch (error) {
        if (!isOvertaken(error)) this.trouble(error);
        if (this.lost) return;
      }
      await new Promise((go) => setTimeout(go, EVERY));
    }
  }

  /** @param {any} message @param {any[]} buffers */
  take(message, buffers) {
    this.said = message;
    const points = buffers.length ? readPoints(asView(buffers[0])) : [];
    let line = this.lines.at(-1);
    if (!line || line.trial !== message.trial) {
      line = { trial: message.trial, label: message.label, points: [], first: 0 };
      this.lines.push(line);
      this.lines = this.lines.slice(-GHOSTS);
    }
    line.points = [...line.points.slice(0, message.from), ...points];
    line.first = message.first ?? 0;
    if (!this.paused || !message.running) this.draw();
    this.tell();
  }

  /** @param {unknown} error */
  trouble(error) {
    if (error instanceof RpcError && error.fault.code === "no-kernel") {
      this.lost = true;
      this.said = { ...this.said, running: false };
      this.draw();
      this.tell(`${error.fault.msg} ${error.fault.hint} This is what was measured until then.`);
    } else this.tell(error instanceof RpcError ? `${error.fault.msg} ${error.fault.hint}` : String(error));
  }

  /** @param {string} [text] */
  tell(text) {
    const line = text ?? (this.slow ? "No answer from the kernel: it is busy, or it was restarted. Run the cell again to go on." : this.said.status ?? "");
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
    const [clause, rest] = verdict ?? ["", ""];
    fill(this.verdict, h("strong", {}, clause || (running ? "measuring…" : "nothing was measured")), rest ? `: ${rest}.` : "");
    this.drawLine();
    this.drawStages();
    this.drawResults();
  }

  drawLine() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const pen = this.canvas.getContext("2d");
    if (!pen || !width || !height) return;
    const dots = globalThis.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * dots);
    this.canvas.height = Math.round(height * dots);
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    const style = getComputedStyle(this.canvas);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    const [accent, second] = [colour("--tvz-line-1"), colour("--tvz-line-2")];
    const line = this.lines.at(-1);
    // the time is that after the first batch, so that runs that start slowly lie on the others
    const all = this.lines.flatMap((one) => one.points.map((point) => [point[0] - one.first, point[1]]));
    const ys = ticks(Math.max(...all.map((point) => point[1]), 1e-9) * 1.05);
    const most = /** @type {number} */ (ys.at(-1));
    const megabytes = Math.max(...(line?.points ?? []).map((point) => point[2]), 0);
    const end = Math.max(...all.map((point) => point[0]), 1);
    const [left, right, top, bottom] = [52, megabytes > 0 ? 46 : 12, 8, 22];
    const x = (/** @type {number} */ v) => left + (v / end) * (width - left - right);
    const y = (/** @type {number} */ v) => height - bottom - (v / most) * (height - top - bottom);
    this.scale = { x, left, right, end, width };
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    for (const mark of ys) {
      pen.strokeStyle = colour("--tvz-line");
      pen.beginPath();
      pen.moveTo(left, y(mark));
      pen.lineTo(width - right, y(mark));
      pen.stroke();
      pen.fillStyle = colour("--tvz-line-ink");
      pen.textAlign = "right";
      pen.fillText(formatRate(mark) || "0", left - 6, y(mark));
    }
    pen.textAlign = "center";
    for (const mark of ticks(end, 6)) if (mark <= end) pen.fillText(`${mark} s`, x(mark), height - 9);
    const path = (/** @type {{ points: Point[], first: number }} */ { points, first }, /** @type {(p: Point) => number} */ value) => {
      pen.beginPath();
      points.forEach((point, at) => (at ? pen.lineTo(x(point[0] - first), value(point)) : pen.moveTo(x(point[0] - first), value(point))));
      pen.stroke();
    };
    pen.save();
    pen.globalAlpha = 0.25;
    pen.strokeStyle = accent;
    for (const ghost of this.lines.slice(0, -1)) path(ghost, (point) => y(point[1]));
    pen.restore();
    if (!line) return;
    if (megabytes > 0) {
      const marks = ticks(megabytes * 1.05, 3);
      const room = /** @type {number} */ (marks.at(-1));
      pen.textAlign = "left";
      pen.fillStyle = second;
      for (const mark of marks) pen.fillText(String(mark), width - right + 6, y((mark / room) * most));
      pen.strokeStyle = second;
      pen.setLineDash([4, 3]);
      path(line, (point) => y((point[2] / room) * most));
      pen.setLineDash([]);
    }
    if (line.first) {
      pen.fillStyle = colour("--tvz-line-ink");
      pen.textAlign = "left";
      pen.fillText(`first batch after ${formatMs(line.first * 1000)} ms`, left + 5, height - bottom - 9);
    }
    pen.strokeStyle = accent;
    pen.lineWidth = 2.2;
    pen.lineJoin = "round";
    path(line, (point) => y(point[1]));
    const shown = this.spot === undefined ? line.points.at(-1) : nearest(line.points, this.spot + line.first);
    if (shown) {
      pen.fillStyle = accent;
      pen.beginPath();
      pen.arc(x(shown[0] - line.first), y(shown[1]), 3.5, 0, 7);
      pen.fill();
    }
    fill(this.readout, h("b", { class: "tvz-line-key-1" }, shown ? `${formatRate(shown[1])} records/s` : ""), shown && shown[2] > 0 ? h("span", { class: "tvz-line-key-2" }, ` ${formatRate(shown[2])} MB/s`) : "", shown ? ` after ${(shown[0] - line.first).toFixed(1)} s` : "no batch yet", ` · ${line.label}`);
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (!this.scale) return;
    const { left, right, end, width } = this.scale;
    const at = event.clientX - this.canvas.getBoundingClientRect().left;
    this.spot = Math.max(0, Math.min(end, ((at - left) / (width - left - right)) * end));
    this.drawLine();
  }

  drawStages() {
    const { groups, stages } = this.said;
    if (!groups?.length && !stages?.length) {
      fill(this.stages, h("p", { class: "tvz-faint" }, this.said.running ? "" : "The stages of this cannot be seen from outside. The eager runner times each of them."));
      return;
    }
    const names = [...new Set(stages.map((/** @type {any} */ row) => row[1]))];
    const tint = (/** @type {string} */ name) => `tvz-tint tvz-c${names.indexOf(name) % 10}`;
    const percent = (/** @type {number} */ share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
    const bars = groups.map((/** @type {any} */ group) => {
      const bar = h("div", { class: "tvz-bar-all", role: "img", "aria-label": `${group.name}: ${group.busy.map((/** @type {any} */ [name, share]) => `${name} ${percent(share)}`).join(", ")}, waiting ${percent(group.waiting)}` });
      for (const [name, share] of group.busy) {
        const part = h("span", { class: tint(name), title: `${name} ${percent(share)}` }, share > 0.11 ? name : "");
        part.style.width = `${share * 100}%`;
        bar.append(part);
      }
      return h("div", { class: "tvz-group" }, h("div", { class: "tvz-group-name" }, h("b", {}, group.name), h("span", { class: "tvz-faint" }, ` busy ${percent(1 - group.waiting)}${group.waits && group.waiting > 0.005 ? `, waits ${group.waits} ${percent(group.waiting)}` : ""}`)), bar);
    });
    const most = Math.max(...stages.map((/** @type {any} */ row) => row[2]), 1e-9);
    const rows = stages.map((/** @type {any} */ [, name, ms, share]) => {
      const bar = h("span", { class: `tvz-ms-bar ${tint(name)}` });
      bar.style.width = `${(ms / most) * 100}%`;
      return h("tr", {}, h("th", { class: "tvz-cut", title: name }, name), h("td", { class: "tvz-number" }, formatMs(ms)), h("td", { class: "tvz-number tvz-faint" }, percent(share)), h("td", { class: "tvz-ms" }, bar));
    });
    fill(this.stages, ...bars, h("table", { class: "tvz-stage-table" }, h("thead", {}, h("tr", {}, h("th", {}, "stage"), h("th", { class: "tvz-number" }, "ms a record"), h("th", { class: "tvz-number" }, "share"), h("th", {}))), h("tbody", {}, ...rows)));
  }

  drawResults() {
    const rows = (this.said.rows ?? []).filter((/** @type {any} */ row) => row.kind !== "stage");
    const most = Math.max(...rows.map((/** @type {any} */ row) => row.rate ?? 0), 1e-9);
    const cells = rows.map((/** @type {any} */ row) => {
      const rate = h("td", { class: "tvz-rate tvz-number" }, h("b", {}, row.shown || (row.error ? "failed" : "…")));
      rate.style.setProperty("--share", String((row.rate ?? 0) / most));
      return h("tr", { class: `tvz-${row.kind}` }, h("th", { class: "tvz-cut", title: [row.label, row.note].filter(Boolean).join("\n") }, row.label), rate,
        h("td", { class: "tvz-number tvz-faint" }, row.margin !== null && row.rate ? `±${Math.round((row.margin / row.rate) * 100)} %` : ""),
        ...(row.error ? [h("td", { class: "tvz-bad tvz-error", colSpan: 6, title: row.error }, row.error)] : [
          h("td", { class: "tvz-number" }, formatRate(row.megabytes)), ...[row.p50, row.p90, row.p99].map((ms) => h("td", { class: "tvz-number" }, formatMs(ms))),
          h("td", { class: "tvz-number" }, row.first_seconds === null ? "" : `${formatMs(row.first_seconds * 1000)} ms`), h("td", { class: "tvz-faint tvz-cut" }, row.cache)]));
    });
    const heads = ["", "records/s", "±", "MB/s", "p50 ms", "p90", "p99", "first batch", "files"];
    const table = h("table", { class: "tvz-rows" }, h("thead", {}, h("tr", {}, ...heads.map((text, at) => h("th", { class: at && at < 8 ? "tvz-number" : "" }, text)))), h("tbody", {}, ...cells));
    const notes = [...(this.said.against ?? []), ...(this.said.notes ?? [])].map((text) => h("p", { class: `tvz-note${/SLOWER$/.test(text) ? " tvz-note-bad" : ""}` }, text));
    fill(this.results, h("div", { class: "tvz-rows-box" }, table), ...(this.said.heat ? [this.heat(this.said.heat)] : []), ...notes);
  }

  /** @param {any} heat */
  heat({ across, down, name, cells }) {
    const most = Math.max(...cells.flat().map((/** @type {number | null} */ rate) => rate ?? 0), 1e-9);
    const rows = cells.map((/** @type {(number | null)[]} */ line, /** @type {number} */ at) =>
      h("tr", {}, h("th", {}, down[at]), ...line.map((rate) => {
        const cell = h("td", { class: `tvz-number${rate === most ? " tvz-best" : ""}` }, rate === null ? "…" : formatRate(rate));
        cell.style.setProperty("--share", String((rate ?? 0) / most));
        return cell;
      })));
    return h("table", { class: "tvz-heat" }, h("caption", {}, `records/s by workers × ${name}`), h("thead", {}, h("tr", {}, h("th", { class: "tvz-faint" }, `${name} ↓  workers →`), ...across.map((/** @type {string} */ x) => h("th", { class: "tvz-number" }, x)))), h("tbody", {}, ...rows));
  }

  // ---- what the reader does

  /** @param {string} name @param {KeyboardEvent} event */
  key(name, event) {
    if (name === "Escape") {
      if (this.sheet.shown) this.sheet.toggle();
      else leave(this.root);
      return true;
    }
    if (this.sheet.shown || (event.target instanceof HTMLButtonElement && /^(Enter|Space)$/.test(name))) return false;
    const acts = /** @type {Record<string, () => void>} */ ({ s: () => this.stop(), p: () => this.pause(), c: () => this.copy(), "?": () => this.sheet.toggle(), 1: () => this.turn(1), 2: () => this.turn(2), 3: () => this.turn(3) });
    if (!acts[name]) return false;
    acts[name]();
    return true;
  }

  async stop() {
    if (!this.said.running) return;
    this.said = { ...this.said, stopping: true };
    this.draw();
    try {
      await this.rpc("stop", {}, { keep: true });
    } catch (error) {
      this.trouble(error);
    }
  }

  pause() {
    this.paused = !this.paused;
    this.pauseButton.setAttribute("aria-pressed", String(this.paused));
    if (!this.paused) this.draw();
  }

  /** @param {number} view @param {boolean} [quiet] */
  turn(view, quiet = false) {
    this.view = view;
    this.root.setAttribute("data-view", String(view));
    this.tabs?.forEach((/** @type {HTMLElement} */ tab, /** @type {number} */ at) => tab.setAttribute("aria-selected", String(at + 1 === view)));
    const part = [this.lineBox, this.stages, this.results][view - 1];
    if (!quiet) {
      part.scrollIntoView({ block: "nearest" });
      this.drawLine();
      this.remembering();
    }
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
