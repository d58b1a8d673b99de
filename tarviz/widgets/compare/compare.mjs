// @ts-check
// Chains compared (controller: Compare in tarviz/widgets/compare/controller.py): a strip of tiles for every chain and record, a stage for two of them.

import { bindKeys, button, copyText, drawnBy, fill, focusedBeside, h, later, pictureType, BlobCache } from "../host/core.mjs";
import { asView, isOvertaken, makeRpc, NO_ANSWER, RpcError, wordsOf } from "../host/requests.mjs";
import { Layers } from "../panes/overlay.mjs";
import { chainRows, isOn } from "./chain_rows.mjs";
import { Changes } from "./changes.mjs";
import { CompareKeys } from "./compare_keys.mjs";
import { recordSections } from "./record_sections.mjs";
import { Sliders } from "./sliders.mjs";
import { Stage } from "./stage.mjs";
import { StagedPair } from "./staged_pair.mjs";
import { columnOrder, drawStep, placeName } from "./strips.mjs";

/** @typedef {import("./strips.mjs").Place} Place */

const MANY = 6; // chains; of more the last steps are shown at first, and the rows that name them are close together

export class CompareView {
  /** @param {any} model @param {HTMLElement} el @param {AbortSignal} signal */
  constructor(model, el, signal) {
    this.model = model;
    this.signal = signal;
    const first = model.get("_first");
    const saved = model.get("_state") ?? {};
    this.config = first.config;
    this.slow = false;
    this.said = "";
    this.keys = new CompareKeys(this);
    this.staged = new StagedPair(this);
    this.changes = new Changes(this);
    this.sliders = new Sliders(this);
    this.layers = new Layers({}, () => this.drawTiles());
    this.remembering = later(() => this.remember(), 250, signal);
    this.rpc = makeRpc(model, {
      signal,
      onSlow: (slow) => {
        this.slow = slow;
        this.tell();
      },
    });
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
    this.looping = false;
    this.lost = false;
    this.px = saved.px ?? 120;
    this.last = saved.last ?? first.poll.columns.length > MANY;
    this.byTime = saved.byTime ?? false;
    /** @type {Place} */
    this.at = { record: 0, column: 0, step: 0, ...saved.at };
    /** @type {{ column: number, step: number }} */
    this.a = saved.a ?? { column: 0, step: -1 };
    /** @type {{ column: number, step: number } | null} null: the tile under the cursor */
    this.b = saved.b ?? null;
    this.stage = new Stage(signal, {
      ask: (place) => this.full(place),
      changed: () => this.remembering(),
      state: saved.stage,
      layers: this.layers,
    });
    /** @type {HTMLElement} */
    this.root = h("div", { class: "tvz tvz-compare", role: "region", "aria-label": `tarviz comparison of ${first.config.title}` });
    this.build(el);
    this.fresh = !saved.at;
    this.take(first.poll, model.get("_pictures"));
    this.staged.show();
    if (this.running) this.loop();
  }

  /** @param {HTMLElement} el */
  build(el) {
    const { signal, config } = this;
    this.lastButton = button("last step only", "all steps of each chain, or the last only (l)", () => this.toggleLast());
    this.timeButton = button("fastest first", "order of the chains: as given, or by time (t)", () => this.sort());
    this.allButton = button("new seeds", "draw anew for all chains (R)", () => this.changes.reroll(null));
    this.pxSelect = h(
      "select",
      {
        "aria-label": "size of the tiles",
        title: "size of the tiles",
        onchange: () => {
          this.px = Number(this.pxSelect.value);
          this.drawTiles();
          this.remembering();
        },
      },
      ...[88, 120, 144].map((px) => h("option", { value: String(px) }, `${px} px`)),
    );
    this.pxSelect.value = String(this.px);
    this.runnerSelect = h(
      "select",
      {
        "aria-label": "run also as",
        title: "run the chains by another runner too, and say what differs",
        onchange: () => {
          this.changes.add(this.runnerSelect.value);
          this.runnerSelect.value = "";
        },
      },
      h("option", { value: "" }, "run also as …"),
      ...config.runners.map((/** @type {string[]} */ [name, title, sentence]) =>
        h("option", { value: name, "data-runner": title }, sentence ? `${title}: ${sentence}` : title),
      ),
    );
    this.moreButton = button("+ record", "one record more", () => this.changes.more());
    this.overButton = button("overlays", "boxes, outlines, points and masks over the pictures (o)", () => this.toggleOver());
    this.numbersButton = button("sliders", "the numbers of the chain under the cursor as sliders (s)", () => this.toggleSliders());
    this.head = h(
      "header",
      { class: "tvz-head" },
      h("span", { class: "tvz-title tvz-cut", title: config.title, dir: "auto" }, config.title),
      h("span", { class: "tvz-head-facts" }),
      button("copy as Python", "copy the call that makes this comparison", () => this.copy(config.python)),
      button("?", "keys", () => this.keys.sheet.toggle()),
    );
    this.tools = h(
      "div",
      { class: "tvz-tools", role: "toolbar", "aria-label": "what is shown" },
      this.lastButton,
      this.timeButton,
      this.numbersButton,
      this.overButton,
      this.allButton,
      this.moreButton,
      this.runnerSelect,
      this.pxSelect,
    );
    this.heads = h("table", { class: "tvz-heads" });
    this.list = h("div", { class: "tvz-strips", role: "listbox", tabIndex: 0, "aria-label": "steps" });
    this.main = h("div", { class: "tvz-main" }, this.list, this.stage.root);
    this.statusText = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.root.append(
      this.head,
      this.tools,
      h("div", { class: "tvz-heads-box", tabIndex: 0, role: "group", "aria-label": "chains" }, this.heads),
      this.sliders.root,
      this.main,
      h("footer", { class: "tvz-status" }, this.statusText),
    );
    el.append(this.root);
    this.list.addEventListener(
      "click",
      (/** @type {any} */ event) => {
        const tile = event.target.closest("[data-place]");
        if (tile) this.select(JSON.parse(tile.dataset.place));
        const pin = event.target.closest("[data-pin]");
        if (pin) this.pin(pin.dataset.pin);
      },
      { signal },
    );
    bindKeys(this.root, (name, event) => this.keys.press(name, event), signal);
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
    if (this.looping) return;
    this.looping = true;
    await this.follow();
    this.looping = false;
  }

  async follow() {
    while (!this.signal.aborted) {
      try {
        const { r, buffers } = await this.rpc("poll", { since: this.version });
        this.take(r, buffers);
      } catch (error) {
        this.running = false;
        this.trouble(error);
        this.said = this.statusText.textContent;
        this.drawTiles(); // none is still to come
      }
      if (!this.running) return;
      await new Promise((go) => setTimeout(go, 120));
    }
  }

  /** @param {any} message @param {any[]} buffers */
  take(message, buffers) {
    const held = (/** @type {number} */ buffer) => {
      const name = `t${message.version}-${buffer}`;
      if (!this.blobs.items.has(name)) {
        const view = asView(buffers[buffer]);
        this.blobs.put(name, view, pictureType(view));
      }
      return name;
    };
    const picture = (/** @type {any} */ tile) => {
      for (const mask of tile.over?.masks ?? []) mask.picture = held(mask.buffer);
      return tile.buffer === null ? tile : { ...tile, picture: held(tile.buffer) };
    };
    this.layers.colours = message.colours;
    this.version = message.version;
    this.running = message.running;
    this.said = message.status;
    this.arrange(message.columns);
    if (message.records) {
      this.records = message.records;
      this.originals = message.originals.map(picture);
    }
    for (const strip of message.strips) {
      this.strips.set(`${strip.record}:${strip.column}`, { ...strip, version: message.version, tiles: strip.tiles.map(picture) });
    }
    if (this.fresh) this.begin();
    this.drawHeads();
    this.drawTiles();
    this.tell();
    if (message.strips.some((/** @type {any} */ strip) => strip.record === this.at.record)) this.staged.show();
  }

  /** Where columns came between, cursor and pins stay on theirs, and all strips are told anew. @param {any[]} columns */
  arrange(columns) {
    const before = this.columns;
    this.columns = columns;
    const same = (/** @type {any} */ one, /** @type {any} */ other) => one.name === other.name && one.runner === other.runner;
    if (!before.length || (before.length === columns.length && before.every((column, at) => same(column, columns[at])))) return;
    this.strips.clear();
    for (const pin of [this.at, this.a, this.b])
      if (pin)
        pin.column = Math.max(
          0,
          columns.findIndex((column) => same(column, before[pin.column])),
        );
  }

  /** What is looked at first: where two chains lead, side by side. */
  begin() {
    const other = this.columns.findIndex((column) => column.name !== this.columns[0].name);
    const last = (/** @type {number} */ column) => (this.strips.get(`0:${column}`)?.tiles.length ?? 0) - 1;
    if (last(0) < 0 || last(other) < 0) return; // not there yet, or there is but one chain
    this.fresh = false;
    this.a = { column: 0, step: last(0) };
    this.at = { record: 0, column: other, step: last(other) };
  }

  /** @param {unknown} error */
  trouble(error) {
    if (isOvertaken(error)) return;
    if (error instanceof RpcError && error.fault.code === "no-kernel") {
      this.lost = true;
      this.running = false;
      this.tell(error.fault.type === "Saved" ? error.fault.msg : `${wordsOf(error)} The thumbnails that were there stay.`);
    } else this.tell(wordsOf(error));
  }

  /** @param {string} [text] */
  tell(text) {
    const line = text ?? (this.slow ? NO_ANSWER : this.said);
    this.statusText.textContent = line;
    this.statusText.title = line;
    this.statusText.classList.toggle("tvz-busy", !text && (this.running || !!this.slow));
  }

  // ---- drawing

  get order() {
    return columnOrder(this.columns, this.byTime);
  }

  get lengths() {
    return this.records.map((_, record) => this.columns.map((__, column) => this.strips.get(`${record}:${column}`)?.tiles.length ?? 0));
  }

  drawHeads() {
    this.root.classList.toggle("tvz-many", this.columns.length > MANY);
    fill(this.heads, h("tbody", {}, ...chainRows(this)));
    this.lastButton.setAttribute("aria-pressed", String(this.last));
    this.timeButton.setAttribute("aria-pressed", String(this.byTime));
    this.numbersButton.setAttribute("aria-pressed", String(this.sliders.shown));
    this.overButton.setAttribute("aria-pressed", String(this.layers.shown));
    const tiles = [...this.originals, ...[...this.strips.values()].flatMap((strip) => strip.tiles)];
    this.overButton.hidden = !tiles.some((tile) => tile.over);
    this.sliders.draw();
    this.allButton.hidden = !this.columns.some((column) => column.random);
    for (const each of this.runnerSelect.querySelectorAll("[data-runner]"))
      each.disabled = this.columns.some((column) => column.runner === each.dataset.runner);
    this.runnerSelect.hidden = !this.config.runners.length;
  }

  drawTiles() {
    this.tiles.clear();
    this.root.style.setProperty("--tile", `${this.px}px`);
    const top = this.list.scrollTop;
    fill(this.list, ...recordSections(this));
    this.list.scrollTop = top;
    this.mark();
  }

  /** @param {any} tile @param {Place} place */
  tile(tile, place) {
    const element = drawStep(tile, place, {
      px: this.px,
      url: this.blobs.get(tile.picture),
      layers: this.layers,
      mask: this.maskOf(tile),
    });
    element.id = `tvz-${this.uid}-${placeName(place)}`;
    this.tiles.set(placeName(place), element);
    return element;
  }

  /** The address of the first mask over a tile. @param {any} tile @returns {string | undefined} */
  maskOf(tile) {
    return this.blobs.get(tile?.over?.masks[0]?.picture);
  }

  uid = Math.random().toString(36).slice(2);

  /** Say which tile is under the cursor, which are A and B. */
  mark() {
    const [a, b] = this.staged.pair();
    for (const [name, tile] of this.tiles) {
      const on = name === placeName(this.at);
      tile.setAttribute("aria-selected", String(on));
      tile.classList.toggle("tvz-a", name === placeName(a));
      tile.classList.toggle("tvz-b", name === placeName(b) && name !== placeName(a));
      if (on) this.list.setAttribute("aria-activedescendant", tile.id);
    }
    this.heads
      .querySelectorAll("tr")
      .forEach((/** @type {Element} */ row, /** @type {number} */ at) => row.classList.toggle("tvz-on", isOn(this, this.order[at])));
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
    this.staged.show();
    this.sliders.draw();
    this.remembering();
  }

  /** @param {"a" | "b"} which */
  pin(which) {
    const here = { column: this.at.column, step: this.at.step };
    const same = (/** @type {any} */ pin) => pin && pin.column === here.column && pin.step === here.step;
    if (which === "a") this.a = same(this.a) ? { column: 0, step: -1 } : here;
    else this.b = same(this.b) ? null : here;
    this.staged.show();
    this.remembering();
  }

  /** @param {number} by */
  walk(by) {
    const record = this.at.record + by;
    if (record >= this.records.length) this.changes.more();
    else if (record >= 0) this.select({ ...this.at, record });
  }

  toggleOver() {
    this.layers.shown = !this.layers.shown;
    this.drawHeads();
    this.drawTiles();
    this.staged.show();
  }

  toggleSliders() {
    this.sliders.toggle();
    this.drawHeads();
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
    this.staged.show();
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
      this.model.send({
        k: "tvz:state",
        state: { at: this.at, a: this.a, b: this.b, px: this.px, last: this.last, byTime: this.byTime, stage: this.stage.state(), focused },
      });
    } catch {
      // the kernel is gone: the next request says so
    }
  }
}

export default { render: drawnBy(CompareView) };
