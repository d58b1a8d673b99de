// @ts-check
// Chains compared (controller: Compare in tarviz/widgets/compare/controller.py): a strip of tiles for every chain and record, a stage for two of them.

import { asView, bindKeys, copyText, drawnBy, fill, focusedBeside, h, isOvertaken, later, leave, makeRpc, pictureType, BlobCache, RpcError } from "../host/core.mjs";
import { KeySheet } from "../host/sheet.mjs";
import { Stage } from "./stage.mjs";
import { columnOrder, differenceText, drawStep, placeName, step } from "./strips.mjs";

/** What the keys do, as the help sheet lists it. */
export const COMPARE_KEYS = [
  ["← → ↑ ↓", "move over the tiles"], ["n p", "record after, record before"], ["a b", "this tile is A, is B (again: let go)"], ["w", "wipe (drag, or ← → on the stage)"],
  ["x", "blink"], ["d", "difference"], ["+ −", "gain of the difference, else zoom"], ["0", "whole picture"], ["r", "new seed for this chain"], ["R", "new seeds for all"],
  ["t", "fastest chain first"], ["l", "all steps, or the last only"], ["y", "copy the chain"], ["Esc", "leave"], ["?", "this list"],
];

/** @typedef {import("./strips.mjs").Place} Place */

class CompareView {
  /** @param {any} model @param {HTMLElement} el @param {AbortSignal} signal */
  constructor(model, el, signal) {
    this.model = model;
    this.signal = signal;
    const first = model.get("_first");
    const saved = model.get("_state") ?? {};
    this.config = first.config;
    this.slow = false;
    this.said = "";
    this.sheet = new KeySheet(COMPARE_KEYS, () => this.root, () => this.list.focus());
    this.remembering = later(() => this.remember(), 250, signal);
    this.rpc = makeRpc(model, { signal, onSlow: (slow) => { this.slow = slow; this.tell(); } });
    this.blobs = new BlobCache({ signal, count: 2000 });
    /** @type {any[]} */
    this.columns = [];
    /** @type {any[]} */
    this.records = [];
    /** @type {any[]} */
    this.originals = [];
    /** @type {Map<string, any>} strips by record:column */
    this.strips = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.tiles = new Map();
    this.version = -1;
    this.running = false;
    this.lost = false;
    this.px = saved.px ?? 120;
    this.last = saved.last ?? false;
    this.byTime = saved.byTime ?? false;
    /** @type {Place} */
    this.at = { record: 0, column: 0, step: 0, ...saved.at };
    /** @type {{ column: number, step: number }} */
    this.a = saved.a ?? { column: 0, step: -1 };
    /** @type {{ column: number, step: number } | null} null: the tile under the cursor */
    this.b = saved.b ?? null;
    this.stage = new Stage(signal, { ask: (place) => this.full(place), changed: () => this.remembering(), state: saved.stage });
    /** @type {HTMLElement} */
    this.root = h("div", { class: "tvz tvz-compare", role: "region", "aria-label": `tarviz comparison of ${first.config.title}` });
    this.build(el);
    this.take(first.poll, model.get("_pictures"));
    this.show();
    if (this.running) this.loop();
  }

  /** @param {HTMLElement} el */
  build(el) {
    const { signal, config } = this;
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => h("button", { title, onclick: act }, text);
    this.lastButton = button("last step only", "all steps of each chain, or the last only (l)", () => this.toggleLast());
    this.timeButton = button("fastest first", "order of the chains: as given, or by time (t)", () => this.sort());
    this.allButton = button("new seeds", "draw anew for all chains (R)", () => this.reroll(null));
    this.pxSelect = h("select", { "aria-label": "size of the tiles", title: "size of the tiles", onchange: () => { this.px = Number(this.pxSelect.value); this.drawTiles(); this.remembering(); } }, ...[88, 120, 144].map((px) => h("option", { value: String(px), selected: px === this.px }, `${px} px`)));
    this.runnerButtons = config.runners.map((/** @type {[string, string]} */ [name, title]) => h("button", { title: `run the chains by ${title} too and say what differs`, "data-runner": title, onclick: () => this.add(name) }, `+ ${title}`));
    this.moreButton = button("+ record", "one record more", () => this.more());
    this.head = h("header", { class: "tvz-head" }, h("span", { class: "tvz-title tvz-cut", title: config.title, dir: "auto" }, config.title), h("span", { class: "tvz-head-facts" }),
      button("copy as Python", "copy the call that makes this comparison", () => this.copy(config.python)), button("?", "keys", () => this.sheet.toggle()));
    this.tools = h("div", { class: "tvz-tools", role: "toolbar", "aria-label": "what is shown" }, this.lastButton, this.timeButton, this.allButton, this.moreButton, ...this.runnerButtons, this.pxSelect);
    this.heads = h("table", { class: "tvz-heads" });
    this.list = h("div", { class: "tvz-strips", role: "listbox", tabIndex: 0, "aria-label": "steps" });
    this.main = h("div", { class: "tvz-main" }, this.list, this.stage.root);
    this.statusText = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.root.append(this.head, this.tools, h("div", { class: "tvz-heads-box" }, this.heads), this.main, h("footer", { class: "tvz-status" }, this.statusText));
    el.append(this.root);
    this.list.addEventListener("click", (/** @type {any} */ event) => {
      const tile = event.target.closest("[data-place]");
      if (tile) this.select(JSON.parse(tile.dataset.place));
    }, { signal });
    bindKeys(this.root, (name, event) => this.key(name, event), signal);
    const watch = new ResizeObserver(() => {
      this.root.classList.toggle("tvz-narrow", this.root.clientWidth < 860);
      this.stage.draw();
    });
    watch.observe(this.root);
    signal.addEventListener("abort", () => watch.disconnect());
    this.root.addEventListener("focusin", () => this.remembering(), { signal });
    this.root.addEventListener("focusout", () => this.remembering(), { signal });
  }

  // ---- what the controller says

  async loop() {
    while (!this.signal.aborted && !this.lost) {
      try {
        const { r, buffers } = await this.rpc("poll", { since: this.version });
        this.take(r, buffers);
      } catch (error) {
        this.trouble(error);
        if (!isOvertaken(error)) return;
      }
      if (!this.running) return;
      await new Promise((go) => setTimeout(go, 250));
    }
  }

  /** @param {any} message @param {any[]} buffers */
  take(message, buffers) {
    const picture = (/** @type {any} */ tile) => {
      if (tile.buffer === null) return tile;
      const name = `t${message.version}-${tile.buffer}`;
      if (!this.blobs.items.has(name)) {
        const view = asView(buffers[tile.buffer]);
        this.blobs.put(name, view, pictureType(view));
      }
      return { ...tile, picture: name };
    };
    this.version = message.version;
    this.running = message.running;
    this.said = message.status;
    this.columns = message.columns;
    if (message.records) {
      this.records = message.records;
      this.originals = message.originals.map(picture);
      if (this.strips.size && message.strips.some((/** @type {any} */ s) => this.strips.has(`${s.record}:${s.column}`))) this.strips.clear();
    }
    for (const strip of message.strips) {
      this.strips.set(`${strip.record}:${strip.column}`, { ...strip, version: message.version, tiles: strip.tiles.map(picture) });
    }
    this.drawHeads();
    this.drawTiles();
    this.tell();
    if (message.strips.some((/** @type {any} */ strip) => strip.record === this.at.record)) this.show();
  }

  /** @param {unknown} error */
  trouble(error) {
    if (isOvertaken(error)) return;
    if (error instanceof RpcError && error.fault.code === "no-kernel") {
      this.lost = true;
      this.running = false;
      this.tell(`${error.fault.msg} ${error.fault.hint} The thumbnails that were there stay.`);
    } else this.tell(error instanceof RpcError ? `${error.fault.msg} ${error.fault.hint}` : String(error));
  }

  /** @param {string} [text] */
  tell(text) {
    const line = text ?? (this.slow ? "No answer from the kernel: it is busy, or it was restarted. Run the cell again to go on." : this.said ?? "");
    this.statusText.textContent = line;
    this.statusText.title = line;
    this.statusText.classList.toggle("tvz-busy", !text && (this.running || !!this.slow));
  }

  // ---- drawing

  get order() {
    return columnOrder(this.columns, this.byTime);
  }

  get lengths() {
    return this.records.map((_, record) => this.columns.map((__, column) => this.strips.get(`${record}:${column}`)?.tiles.length ?? -1));
  }

  drawHeads() {
    const rows = this.order.map((at) => {
      const column = this.columns[at];
      const eager = column.runner === "eager";
      const on = this.at.column === at;
      return h("tr", { class: on ? "tvz-on" : "", onclick: () => this.select({ ...this.at, column: at, step: Math.max(0, this.at.step) }) },
        h("th", { class: "tvz-cut", dir: "auto" }, eager ? column.name : h("span", { class: "tvz-faint" }, `↳ ${column.runner}`)),
        h("td", { class: "tvz-mono tvz-cut tvz-chain", title: column.chain }, eager ? column.chain || "(no ops)" : h("span", { class: /^no diff/.test(column.apart) ? "tvz-good" : "" }, column.apart || (column.failed ? "failed" : "…"))),
        h("td", { class: "tvz-faint tvz-seed" }, column.random && eager ? `seed ${column.seed} ` : "", column.random && eager ? h("button", { class: "tvz-link", title: "new seed for this chain (r)", onclick: (/** @type {Event} */ e) => { e.stopPropagation(); this.reroll(at); } }, "new") : ""),
        h("td", { class: "tvz-number" }, column.ms),
        h("td", { class: "tvz-mono tvz-cut tvz-out" }, column.failed ? h("span", { class: "tvz-bad" }, `${column.failed} failed`) : column.out),
        h("td", {}, eager ? h("button", { class: "tvz-link", title: "copy the chain (y)", onclick: (/** @type {Event} */ e) => { e.stopPropagation(); this.copy(column.chain); } }, "copy") : ""));
    });
    fill(this.heads, h("tbody", {}, ...rows));
    this.lastButton.setAttribute("aria-pressed", String(this.last));
    this.timeButton.setAttribute("aria-pressed", String(this.byTime));
    this.allButton.hidden = !this.columns.some((column) => column.random);
    for (const each of this.runnerButtons) each.hidden = this.columns.some((column) => column.runner === each.dataset.runner);
  }

  drawTiles() {
    this.tiles.clear();
    this.root.style.setProperty("--tile", `${this.px}px`);
    const top = this.list.scrollTop;
    const order = this.order;
    const several = order.length > 1;
    const sections = this.records.map((record, number) => {
      const origin = this.tile(this.originals[number], { record: number, column: order[0] ?? 0, step: -1 });
      const strips = order.map((column) => {
        const strip = this.strips.get(`${number}:${column}`);
        const { name, runner } = this.columns[column];
        const label = h("div", { class: "tvz-strip-name tvz-cut", title: `${name}, ${runner}` }, several || runner !== "eager" ? (runner === "eager" ? name : `${name} · ${runner}`) : "", h("span", { class: "tvz-faint" }, ` ${strip ? (strip.failed ? "failed" : strip.apart || strip.ms) : ""}`));
        const tiles = (strip?.tiles ?? []).map((/** @type {any} */ tile, /** @type {number} */ at) => this.tile(tile, { record: number, column, step: at }));
        if (strip && !tiles.length) tiles.push(h("p", { class: "tvz-faint" }, "no ops"));
        const shown = this.last ? tiles.slice(-1) : tiles;
        return h("div", { class: "tvz-strip" }, label, h("div", { class: "tvz-strip-tiles" }, ...(strip ? shown : [h("p", { class: "tvz-faint tvz-busy" }, "running")])));
      });
      return h("section", { class: "tvz-record", "aria-label": record.key },
        h("h3", { class: "tvz-cut", dir: "auto", title: `${record.shard}, record ${record.number}` }, record.key),
        h("div", { class: this.last ? "tvz-record-row" : "tvz-record-rows" }, h("div", { class: "tvz-strip tvz-origin" }, h("div", { class: "tvz-strip-name tvz-faint" }, "original"), h("div", { class: "tvz-strip-tiles" }, origin)), this.last ? h("div", { class: "tvz-lasts" }, ...strips) : h("div", { class: "tvz-all" }, ...strips)));
    });
    fill(this.list, ...sections);
    this.list.scrollTop = top;
    this.mark();
  }

  /** @param {any} tile @param {Place} place */
  tile(tile, place) {
    const element = drawStep(tile, place, { px: this.px, url: tile.picture && this.blobs.get(tile.picture) });
    element.id = `tvz-${this.uid}-${placeName(place)}`;
    this.tiles.set(placeName(place), element);
    return element;
  }

  uid = Math.random().toString(36).slice(2, 8);

  /** Say which tile is under the cursor, which are A and B. */
  mark() {
    const [a, b] = this.pair();
    for (const [name, tile] of this.tiles) {
      const on = name === placeName(this.at);
      tile.setAttribute("aria-selected", String(on));
      tile.classList.toggle("tvz-a", name === placeName(a));
      tile.classList.toggle("tvz-b", name === placeName(b) && name !== placeName(a));
      if (on) this.list.setAttribute("aria-activedescendant", tile.id);
    }
    this.heads.querySelectorAll("tr").forEach((/** @type {Element} */ row, /** @type {number} */ at) => row.classList.toggle("tvz-on", this.order[at] === this.at.column && this.at.step >= 0));
  }

  /** The two tiles on the stage. @returns {[Place, Place]} */
  pair() {
    const on = (/** @type {{ column: number, step: number }} */ pin) => {
      const length = this.strips.get(`${this.at.record}:${pin.column}`)?.tiles.length ?? 0;
      return { record: this.at.record, column: pin.column, step: Math.min(pin.step, length - 1) };
    };
    return [on(this.a), this.b ? on(this.b) : on(this.at)];
  }

  /** @param {Place} place */
  tileOf(place) {
    return place.step < 0 ? this.originals[place.record] : this.strips.get(`${place.record}:${place.column}`)?.tiles[place.step];
  }

  /** Put the two tiles on the stage. */
  show() {
    this.mark();
    const [a, b] = this.pair();
    const side = (/** @type {Place} */ place) => {
      const tile = this.tileOf(place);
      const column = this.columns[place.column];
      const name = place.step < 0 ? "original" : `${column?.name ?? ""}: ${tile?.op.split("(")[0] ?? ""}`;
      const version = place.step < 0 ? 0 : this.strips.get(`${place.record}:${place.column}`)?.version ?? 0;
      return { name: `${placeName(place)}@${version}`, place, title: name, text: tile?.error || tile?.text || "", small: tile?.picture ? this.blobs.get(tile.picture) : undefined, mapping: tile?.mapping ?? "" };
    };
    const [left, right] = [side(a), side(b)];
    if (this.b) right.title += " · fixed";
    this.stage.set(left, right);
    this.measure(left, right);
  }

  /** @param {any} a @param {any} b */
  async measure(a, b) {
    this.stage.say(a.name === b.name ? "A and B are the same step" : "");
    if (this.lost || a.name === b.name || !this.tileOf(a.place) || !this.tileOf(b.place)) return;
    const pair = (/** @type {Place} */ { column, step: at }) => [column, at];
    try {
      const { r } = await this.rpc("difference", { record: a.place.record, a: pair(a.place), b: pair(b.place) });
      this.stage.say(differenceText(r));
    } catch (error) {
      this.trouble(error);
    }
  }

  /** The full picture of a step, for the stage. @param {Place} place @returns {Promise<Blob | undefined>} */
  async full(place) {
    if (this.lost) return undefined;
    try {
      const { r, buffers } = await this.rpc("step", place, { keep: true });
      return r.picture ? new Blob([/** @type {any} */ (buffers[0])], { type: "image/png" }) : undefined;
    } catch (error) {
      this.trouble(error);
      return undefined;
    }
  }

  // ---- what the reader does

  /** @param {Place} place */
  select(place) {
    this.at = place;
    const tile = this.tiles.get(placeName(place));
    tile?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.show();
    this.remembering();
  }

  /** @param {string} name @param {KeyboardEvent} event */
  key(name, event) {
    if (name === "Escape") {
      if (this.sheet.shown) this.sheet.toggle();
      else leave(this.root);
      return true;
    }
    const target = /** @type {HTMLElement} */ (event.target);
    if (target instanceof HTMLSelectElement || this.sheet.shown) return false;
    if (target instanceof HTMLButtonElement && /^(Enter|Space)$/.test(name)) return false;
    if (this.stage.root.contains(target) && this.stage.key(name)) return true;
    const to = step(name, this.at, { order: this.order, lengths: this.lengths, last: this.last });
    if (to) {
      this.select(to);
      return true;
    }
    const acts = /** @type {Record<string, () => void>} */ ({
      a: () => this.pin("a"), b: () => this.pin("b"), w: () => this.stage.turn("wipe"), x: () => this.stage.turn("blink"), d: () => this.stage.turn("difference"),
      "+": () => this.stage.louder(1), "=": () => this.stage.louder(1), "-": () => this.stage.louder(-1), 0: () => this.stage.fit(),
      r: () => this.reroll(this.at.column), R: () => this.reroll(null), n: () => this.walk(1), p: () => this.walk(-1), t: () => this.sort(), l: () => this.toggleLast(),
      y: () => this.copy(this.columns[this.at.column]?.chain ?? ""), "?": () => this.sheet.toggle(),
    });
    if (!acts[name]) return false;
    acts[name]();
    return true;
  }

  /** @param {"a" | "b"} which */
  pin(which) {
    const here = { column: this.at.column, step: this.at.step };
    const same = (/** @type {any} */ pin) => pin && pin.column === here.column && pin.step === here.step;
    if (which === "a") this.a = same(this.a) ? { column: 0, step: -1 } : here;
    else this.b = same(this.b) ? null : here;
    this.show();
    this.remembering();
  }

  /** @param {number} by */
  walk(by) {
    const record = this.at.record + by;
    if (record >= this.records.length) this.more();
    else if (record >= 0) this.select({ ...this.at, record });
  }

  async more() {
    try {
      const { r } = await this.rpc("more", { count: 1 });
      if (!r.found) return this.tell(r.count >= this.config.most ? `At most ${this.config.most} records.` : "There are no more records.");
      this.at = { ...this.at, record: r.count - 1 };
      this.running = true;
      this.loop();
    } catch (error) {
      this.trouble(error);
    }
    return undefined;
  }

  /** @param {number | null} column */
  async reroll(column) {
    if (column !== null && !this.columns[column]?.random) return this.tell("This chain draws no random numbers.");
    try {
      await this.rpc("reroll", { column });
      this.running = true;
      this.loop();
    } catch (error) {
      this.trouble(error);
    }
    return undefined;
  }

  /** @param {string} runner */
  async add(runner) {
    try {
      const { r } = await this.rpc("add", { runner });
      const pins = [this.at, this.a, ...(this.b ? [this.b] : [])];
      const moved = pins.map((pin) => r.columns.findIndex((/** @type {any} */ c) => c.name === this.columns[pin.column].name && c.runner === this.columns[pin.column].runner));
      pins.forEach((pin, at) => { pin.column = Math.max(0, moved[at]); });
      this.strips.clear();
      this.running = true;
      this.loop();
    } catch (error) {
      this.trouble(error);
    }
  }

  sort() {
    this.byTime = !this.byTime;
    this.drawHeads();
    this.drawTiles();
    this.remembering();
  }

  toggleLast() {
    this.last = !this.last;
    if (this.last && this.at.step >= 0) this.at.step = Math.max(0, this.lengths[this.at.record][this.at.column] - 1);
    this.drawHeads();
    this.drawTiles();
    this.show();
    this.remembering();
  }

  /** @param {string} text */
  async copy(text) {
    this.tell((await copyText(text)) ? `copied: ${text.slice(0, 160)}` : "the clipboard is closed to this page");
  }

  remember() {
    if (this.lost) return;
    const focused = this.root.contains(focusedBeside(this.root));
    try {
      this.model.send({ k: "tvz:state", state: { at: this.at, a: this.a, b: this.b, px: this.px, last: this.last, byTime: this.byTime, stage: this.stage.state(), focused } });
    } catch {
      // the kernel is gone: the next request says so
    }
  }
}

export default { render: drawnBy(CompareView) };
