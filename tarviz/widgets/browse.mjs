// @ts-check
// The shard browser (controller: Browser in tarviz/widgets/browse.py): shard rail, grid of tiles, record pane.

import {
  bindKeys, BlobCache, copyText, fill, focusedBeside, formatBytes, formatCount, h, isOvertaken, keyName, later, layOut, makeRpc, move, pictureType, RpcError, saveAs,
  scrollOf, topOf, visible,
} from "./core.mjs";
import { drawPanel, drawHex, factTable, readAll } from "./panels.mjs";

/** What the keys do, as the help sheet lists it. */
export const KEYS = [
  ["← ↑ → ↓ or h j k l", "move"], ["Home End PgUp PgDn", "move far"], ["Enter", "enlarge the record"], ["Esc", "back; again: leave the browser"],
  ["[ ]", "shard before, shard after"], ["g", "go to a key or #number"], ["/", "filter"], ["1 … 9", "field of the record"],
  ["Shift (held)", "hide the labels"], ["+ −", "size of the tiles, or of the enlarged picture"], ["r", "shuffle anew"], ["Space", "mark"], ["m", "marked records only"],
  ["y", "copy the key"], ["Y", "copy as Python"], ["c", "copy a comparison of the marked"], ["i", "record pane on or off"], ["?", "this list"],
];

/** A field's name as the filter language writes it. @param {string} ext */
export const fieldName = (ext) => (/^[a-z_]\w*(\.[a-z_]\w*)*$/.test(ext) && !/\b(and|or|not|in|is|if|else|for|lambda|class|key|shard|index)\b/.test(ext) ? ext : `field(${quoted(ext)})`);

/** Text as a string of the filter language. @param {string} text */
export const quoted = (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

/** The filter for "has just these fields, of all there are". @param {string[]} fields @param {string[]} all */
export function filterOfSet(fields, all) {
  const has = (/** @type {string} */ ext) => `has(${quoted(ext)})`;
  return [...fields.map(has), ...all.filter((ext) => !fields.includes(ext)).map((ext) => `not ${has(ext)}`)].join(" and ");
}

/** The filter for one bar of the histogram. @param {string} label the expression @param {string} value */
export const filterOfLabel = (label, value) => `${label} == ${/^-?\d{1,15}$/.test(value) ? value : quoted(value)}`;

/** The part of a key that tells records apart. @param {string} key */
export const shortKey = (key) => key.slice(key.lastIndexOf("/") + 1) || key;

const TILE_CAPTION = 36;
const GAP = 8;
const RAIL_ROW = 24;
const BATCH = 36;

/** @param {{ model: any, el: HTMLElement, signal?: AbortSignal }} host */
function render({ model, el, signal: outer }) {
  const ending = new AbortController();
  outer?.addEventListener("abort", () => ending.abort());
  const browser = new BrowserView(model, el, ending.signal);
  return () => {
    ending.abort();
    browser.root.remove();
  };
}

export default { render };

class BrowserView {
  /** @param {any} model @param {HTMLElement} el @param {AbortSignal} signal */
  constructor(model, el, signal) {
    this.model = model;
    this.signal = signal;
    const first = model.get("_first");
    const saved = model.get("_state") ?? {};
    this.config = first.config;
    this.rpc = makeRpc(model, { signal, onSlow: (slow) => this.tellSlow(slow) });
    this.blobs = new BlobCache({ signal });
    /** @type {Map<number, any>} rows by position */
    this.items = new Map();
    /** @type {Map<number, HTMLElement>} */
    this.drawn = new Map();
    /** @type {Set<string>} */
    this.asked = new Set();
    this.query = first.rows.query;
    this.count = 0;
    this.version = -1;
    this.at = 0;
    this.selected = -1;
    /** @type {Set<number>} */
    this.marked = new Set(saved.marked ?? []);
    this.wish = { where: this.config.where, sort: this.config.sort, seed: this.config.seed, shard: null, only: false };
    this.px = saved.px ?? this.config.px;
    /** @type {number} side of a tile as it is drawn */
    this.tile = this.px;
    this.image = saved.image ?? this.config.image;
    this.label = first.rows.label ?? "";
    /** @type {any[]} */
    this.shards = [];
    this.fields = [];
    this.field = "";
    this.tab = "value";
    this.options = {};
    this.pane = new AbortController();
    this.top = 0;
    this.uid = `tvz${Math.random().toString(36).slice(2, 8)}`;
    this.classes = h("div", {});
    /** @type {(value?: any) => void} ends the rest between two polls */
    this.wake = () => {};
    this.remembering = later(() => this.remember(), 300, signal);
    /** @type {string} */
    this.actionKey = "";
    this.lost = false;
    this.opening = false;
    this.stale = false;
    this.build(el);
    this.takePoll(first.poll);
    this.takeRows(first.rows, model.get("_pictures"));
    this.draw();
    this.start(saved);
  }

  // ---- frame

  /** @param {HTMLElement} el */
  build(el) {
    const { signal, config } = this;
    const choose = (/** @type {string} */ name, /** @type {[any, string][]} */ choices, /** @type {any} */ value, /** @type {(v: string) => void} */ act) => {
      const select = h("select", { "aria-label": name, title: name, onchange: () => act(select.value) }, ...choices.map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
      return select;
    };
    this.filterInput = h("input", {
      type: "search", class: "tvz-filter", value: this.wish.where, spellcheck: false, autocapitalize: "off", autocomplete: "off",
      placeholder: "filter: cls == 3 and json.w > 300, has:json, or part of a key", "aria-label": "filter", title: "Keys, labels, JSON paths, fields:  cls == 3 and json.w > 300   has:json   size(jpg) > 50000   txt.contains('cat')",
    });
    const apply = later(() => this.filterInput.value.trim() !== this.wish.where.trim() && this.search({ where: this.filterInput.value }), 400, signal);
    this.filterInput.addEventListener("input", apply, { signal });
    this.filterInput.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
      if (e.key === "Enter") { this.search({ where: this.filterInput.value }); this.grid.focus(); }
    }, { signal });
    this.goInput = h("input", { type: "text", class: "tvz-go", placeholder: "key or #number", "aria-label": "go to a key or #number", hidden: true, spellcheck: false });
    this.goInput.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter") this.goTo(this.goInput.value); }, { signal });
    this.goInput.addEventListener("blur", () => { this.goInput.hidden = true; }, { signal });
    this.sortSelect = choose("order", [["order", "as they lie"], ["key", "by key"], ["size", "largest first"], ["label", "by label"], ["random", "shuffled"]], this.wish.sort, (sort) => this.search({ sort }));
    this.sizeSelect = choose("size of the tiles", config.sizes.map((/** @type {number} */ s) => [String(s), `${s} px`]), String(this.px), (px) => this.resize(Number(px)));
    this.imageSelect = h("select", { "aria-label": "field shown", title: "field shown", onchange: () => this.showField(this.imageSelect.value) });
    this.labelInput = h("input", { type: "text", class: "tvz-label-input", value: this.label, placeholder: "label", "aria-label": "label below the tiles: a field or JSON path", title: "label below the tiles: a field or JSON path", spellcheck: false, onchange: () => this.relabel(this.labelInput.value) });
    this.shardSelect = h("select", { class: "tvz-shard-select", "aria-label": "shard", title: "shard", onchange: () => this.search({ shard: this.shardSelect.value === "" ? null : Number(this.shardSelect.value) }) });
    this.title = h("span", { class: "tvz-title tvz-cut", title: config.title, dir: "auto" }, config.title);
    this.facts = h("span", { class: "tvz-faint tvz-head-facts tvz-cut" });
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => h("button", { title, onclick: act }, text);
    this.paneButton = button("pane", "record pane on or off (i)", () => this.togglePane());
    this.railButton = h("button", { class: "tvz-rail-button", title: "fields, classes, findings", "aria-expanded": "false", onclick: () => this.showRail(!this.root.classList.contains("tvz-railed")) }, "fields");
    this.head = h("header", { class: "tvz-head" }, this.title, this.facts, button("copy as Python", "copy the call that shows what is shown now", () => this.copySpec()), button("?", "keys", () => this.help()));
    this.tools = h("div", { class: "tvz-tools", role: "toolbar", "aria-label": "what is shown" }, this.filterInput, this.goInput, this.railButton, this.shardSelect, this.sortSelect, this.imageSelect, this.labelInput, this.sizeSelect, this.paneButton);
    this.railList = h("div", { class: "tvz-rail-list", role: "listbox", tabIndex: 0, "aria-label": "shards" });
    this.railShards = h("div", { class: "tvz-rail-area" });
    this.railList.append(this.railShards);
    this.railList.addEventListener("scroll", () => this.drawRail(), { signal });
    this.railMore = h("div", { class: "tvz-rail-more" });
    this.rail = h("nav", { class: "tvz-rail", "aria-label": "shards, fields and classes" }, h("h3", {}, "shards"), this.railList, this.railMore);
    this.area = h("div", { class: "tvz-area" });
    this.tilesBox = h("div", { class: "tvz-tiles" });
    this.empty = h("p", { class: "tvz-empty tvz-faint", hidden: true });
    this.grid = h("div", { class: "tvz-grid", role: "listbox", tabIndex: 0, "aria-label": "records", "aria-multiselectable": "true" }, this.area, this.tilesBox, this.empty);
    this.paneBox = h("section", { class: "tvz-pane", "aria-label": "record" });
    this.main = h("div", { class: "tvz-main" }, this.rail, this.grid, this.paneBox);
    this.statusText = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.statusActions = h("span", {});
    this.status = h("footer", { class: "tvz-status" }, this.statusText, this.statusActions);
    this.root = h("div", { class: "tvz tvz-browse", role: "region", "aria-label": `tarviz browser of ${config.title}` }, this.head, this.tools, this.main, this.status);
    el.append(this.root);
    this.fillPane();

    this.grid.addEventListener("scroll", () => this.scrolled(), { signal });
    this.grid.addEventListener("click", (/** @type {any} */ e) => this.clicked(e), { signal });
    this.grid.addEventListener("dblclick", (/** @type {any} */ e) => { if (e.target.closest(".tvz-tile")) this.zoom(true); }, { signal });
    bindKeys(this.root, (name, event) => this.key(name, event), signal);
    this.root.addEventListener("keyup", (/** @type {KeyboardEvent} */ e) => { if (e.key === "Shift") this.root.classList.remove("tvz-bare"); }, { signal });
    this.root.addEventListener("focusout", () => this.root.classList.remove("tvz-bare"), { signal });
    const watch = new ResizeObserver(() => this.resized());
    watch.observe(this.root);
    watch.observe(this.grid);
    signal.addEventListener("abort", () => watch.disconnect());
    const idle = () => this.pollNow(true);
    this.root.addEventListener("pointerenter", idle, { signal });
    this.root.addEventListener("focusin", () => performance.now() - (this.polled ?? 0) > 4000 && idle(), { signal });
  }

  resized() {
    const width = this.root.clientWidth;
    this.root.classList.toggle("tvz-narrow", width < 560);
    this.root.classList.toggle("tvz-medium", width >= 560 && width < 900);
    const first = this.firstVisible();
    this.layout = undefined;
    this.scrollTo(first);
    this.draw();
    this.drawRail();
  }

  /** @param {any} saved */
  start(saved) {
    const hash = this.model.media ? new URLSearchParams(location.hash.slice(1)) : new URLSearchParams();
    const wish = { where: hash.get("where") ?? saved.where, sort: hash.get("sort") ?? saved.sort, seed: Number(hash.get("seed") ?? saved.seed ?? 0), shard: saved.shard ?? null };
    const changed = (wish.where ?? this.wish.where) !== this.wish.where || (wish.sort ?? this.wish.sort) !== this.wish.sort || wish.shard !== null;
    const begin = async () => {
      if (changed) await this.search({ where: wish.where ?? this.wish.where, sort: wish.sort ?? this.wish.sort, seed: wish.seed, shard: wish.shard }, true);
      const to = hash.get("row") ?? this.config.start;
      if (to) await this.goTo(to, true);
      else if (this.count && !this.narrow()) this.select(Math.min(saved.at ?? 0, this.count - 1), { quiet: true });
    };
    begin().finally(() => this.loop());
  }

  narrow() {
    return this.root.classList.contains("tvz-narrow");
  }

  // ---- what the controller says

  async loop() {
    while (!this.signal.aborted) {
      await this.pollNow(false);
      if (this.lost || (this.exact && this.done)) {
        if (this.asked.size === 0 && !this.histogramDone) this.drawHistogram();
        await new Promise((go) => { this.wake = () => go(undefined); });
        continue;
      }
      await new Promise((go) => setTimeout(go, document.hidden ? 2000 : 250));
    }
  }

  /** @param {boolean} idle */
  async pollNow(idle) {
    if (this.polling || this.signal.aborted) return;
    this.polling = true;
    this.polled = performance.now();
    try {
      const { r } = await this.rpc("poll", { since: this.version, want: this.wanted(), idle }, { keep: true });
      this.lost = false;
      this.takePoll(r);
    } catch (error) {
      this.trouble(error);
    } finally {
      this.polling = false;
    }
    if (idle && !this.lost && !(this.exact && this.done)) this.wake();
  }

  wanted() {
    const { stop } = this.visibleRange(2);
    return Math.min(stop, this.count + 400);
  }

  /** @param {any} poll */
  takePoll(poll) {
    this.version = poll.version;
    for (const shard of poll.shards) this.shards[shard.number] = shard;
    this.exact = poll.exact;
    this.total = poll.total;
    if (poll.query.number === this.query) {
      this.done = poll.query.done;
      if (poll.query.count !== this.count) {
        this.count = poll.query.count;
        this.layout = undefined;
      }
      this.searching = poll.query.done ? "" : this.plain() ? "" : `looked at ${formatCount(poll.query.checked)} of ${poll.exact ? "" : "≥ "}${formatCount(poll.total)}`;
      if (poll.query.error) this.say(poll.query.error, "bad");
    }
    this.state = poll.status;
    if (poll.summary) {
      this.summary = poll.summary;
      this.drawMore();
      this.drawFields();
    }
    const bytes = this.shards.reduce((sum, shard) => sum + (shard?.size ?? 0), 0);
    const about = poll.exact ? "" : "≥ ";
    fill(this.facts, [`${formatCount(this.shards.length)} shard${this.shards.length === 1 ? "" : "s"}`, `${about}${formatCount(poll.total)} records`, bytes ? formatBytes(bytes) : ""].filter(Boolean).join(" · "));
    this.stale = this.shards.some((shard) => shard?.stale);
    this.tellState();
    this.drawRail();
    this.draw();
  }

  plain() {
    return this.wish.where.trim() === "" && this.wish.sort === "order" && this.wish.shard === null && !this.wish.only;
  }

  tellState() {
    if (this.message && performance.now() < this.message.until) return;
    this.message = undefined;
    const shown = this.plain() ? "" : `${formatCount(this.count)} shown`;
    this.statusText.className = `tvz-cut${this.exact && this.done ? "" : this.shards.some((s) => s?.state === "scanning") || this.searching ? " tvz-busy" : ""}`;
    const text = [this.selected >= 0 && this.count ? `#${formatCount(this.at)} of ${formatCount(this.count)}` : "", shown, this.searching, this.state, this.marked.size ? `${this.marked.size} marked` : ""].filter(Boolean).join(" · ");
    if (this.statusText.textContent !== text) this.statusText.textContent = text;
    const actions = [];
    if (this.searching) actions.push(h("button", { onclick: () => this.rpc("stop").catch(() => {}) }, "Stop"));
    if (this.shards.some((s) => s?.state === "paused")) actions.push(h("button", { title: "read all shards to their end", onclick: () => this.rpc("go_on").then(() => this.wake()) }, "scan all"));
    const stale = this.shards.find((s) => s?.stale || s?.state === "missing");
    if (stale) actions.push(h("button", { onclick: () => this.again(stale.number) }, "scan again"));
    /** @type {string} */
    const shownActions = actions.map((a) => a.textContent).join();
    if (this.actionKey !== shownActions) {
      this.actionKey = shownActions;
      fill(this.statusActions, ...actions);
    }
  }

  /** @param {string} text @param {"" | "bad"} [tone] */
  say(text, tone = "") {
    this.message = { until: performance.now() + (tone ? 15_000 : 4000) };
    this.statusText.className = tone === "bad" ? "tvz-cut tvz-bad" : "tvz-cut";
    this.statusText.textContent = text;
    this.statusText.title = text;
    setTimeout(() => !this.signal.aborted && this.tellState(), tone ? 15_100 : 4100);
  }

  /** @param {unknown} error */
  trouble(error) {
    if (isOvertaken(error)) return;
    const fault = error instanceof RpcError ? error.fault : { code: "", msg: String(error), hint: "" };
    if (fault.code === "no-kernel") {
      this.lost = true;
      this.say(`${fault.msg} ${fault.hint} The pictures that were there stay.`, "bad");
    } else this.say(`${fault.msg}${fault.hint ? ` ${fault.hint}` : ""}`, "bad");
  }

  /** @param {boolean} slow */
  tellSlow(slow) {
    if (slow) this.say("No answer from the kernel: it is busy, or it was restarted. Run the cell again to go on.", "bad");
    else { this.message = undefined; this.tellState(); }
  }

  // ---- searching

  /** @param {any} wish @param {boolean} [quiet] */
  async search(wish, quiet = false) {
    const next = { ...this.wish, ...wish };
    if (next.only && !this.marked.size) return this.say("Nothing is marked: Space marks the record.");
    try {
      const { r } = await this.rpc("search", { where: next.where, sort: next.sort, seed: next.seed, shard: next.shard, label: this.label, only: next.only ? [...this.marked] : null });
      this.wish = next;
      this.query = r.query;
      this.done = false;
      this.count = 0;
      this.items.clear();
      this.asked.clear();
      this.top = 0;
      this.grid.scrollTop = 0;
      this.layout = undefined;
      this.at = 0;
      this.filterInput.removeAttribute("aria-invalid");
      this.filterInput.value = next.where;
      this.sortSelect.value = next.sort;
      this.shardSelect.value = next.shard === null ? "" : String(next.shard);
      this.message = undefined;
      this.drawRail();
      this.drawMore();
      if (!quiet) this.remembering();
      await this.pollNow(false);
      this.wake();
    } catch (error) {
      if (!isOvertaken(error)) this.filterInput.setAttribute("aria-invalid", "true");
      this.trouble(error);
    }
    return undefined;
  }

  /** @param {string} text @param {boolean} [quiet] */
  async goTo(text, quiet = false) {
    this.goInput.hidden = true;
    if (!text.trim()) return;
    try {
      let { r } = await this.rpc("find", { text });
      if (r.position === null && !this.plain()) {
        await this.search({ where: "", sort: "order", shard: null, only: false }, true);
        ({ r } = await this.rpc("find", { text }));
      }
      if (r.position === null) return this.say("It is known, but not shown yet: the shards before it are still being scanned.");
      this.count = Math.max(this.count, r.position + 1);
      this.layout = undefined;
      this.select(r.position, { quiet, id: r.row });
      if (!quiet) this.grid.focus();
    } catch (error) {
      this.trouble(error);
    }
    return undefined;
  }

  /** @param {number} shard */
  async again(shard) {
    try {
      const { r } = await this.rpc("again", { shard });
      this.query = r.query;
      this.items.clear();
      this.asked.clear();
      this.blobs.clear();
      this.drawn.forEach((tile) => tile.remove());
      this.drawn.clear();
      this.version = -1;
      this.histogramDone = false;
      await this.pollNow(false);
      this.wake();
    } catch (error) {
      this.trouble(error);
    }
  }

  // ---- grid

  grids() {
    if (!this.layout) {
      const width = Math.max(60, this.grid.clientWidth - 2 * GAP);
      // at least two columns where a column of 96 pixels is left for each
      const tile = Math.min(this.px, Math.max(96, Math.floor((width - GAP) / 2)), width);
      this.tile = tile;
      this.layout = layOut({ width, count: this.count, tile, caption: TILE_CAPTION, gap: GAP });
      this.area.style.height = `${this.layout.scrollHeight}px`;
    }
    return this.layout;
  }

  viewHeight() {
    return this.grid.clientHeight || 300;
  }

  /** @param {number} margin */
  visibleRange(margin) {
    return visible(this.grids(), { top: this.top, height: this.viewHeight(), count: this.count, margin });
  }

  firstVisible() {
    return this.layout ? Math.round(this.top / this.layout.rowHeight) * this.layout.columns : 0;
  }

  /** @param {number} position */
  scrollTo(position) {
    const layout = this.grids();
    const row = Math.floor(position / layout.columns) * layout.rowHeight;
    this.setTop(row);
  }

  /** @param {number} top */
  setTop(top) {
    const layout = this.grids();
    this.top = Math.max(0, Math.min(top, layout.height - this.viewHeight()));
    const place = scrollOf(this.top, layout, this.viewHeight());
    if (Math.abs(this.grid.scrollTop - place) >= 1) {
      this.scrollSet = Math.round(place);
      this.grid.scrollTop = place;
    }
  }

  scrolled() {
    const layout = this.grids();
    // a place we set ourselves keeps its exact pixel, which the capped scroll bar cannot hold
    if (this.scrollSet === undefined || Math.abs(this.grid.scrollTop - this.scrollSet) > 1) {
      const moved = this.grid.scrollTop - (this.scrollSeen ?? 0);
      const capped = layout.height > layout.scrollHeight;
      // small steps (a wheel) move by pixels, long ones (the bar is dragged) by their share of the whole
      this.top = capped && Math.abs(moved) < 2 * this.viewHeight() ? Math.max(0, Math.min(this.top + moved, layout.height - this.viewHeight())) : topOf(this.grid.scrollTop, layout, this.viewHeight());
    }
    this.scrollSet = undefined;
    this.scrollSeen = this.grid.scrollTop;
    this.draw();
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.signal.aborted) this.drawNow();
    });
  }

  drawNow() {
    const layout = this.grids();
    const { first, stop } = this.visibleRange(1);
    for (const [position, tile] of this.drawn) {
      if (position < first || position >= stop || tile.dataset.query !== String(this.query)) {
        tile.remove();
        this.drawn.delete(position);
      }
    }
    const shift = this.grid.scrollTop - this.top;
    // what a row leaves over is shared out between the columns, and the rest on both sides
    const leftOver = this.grid.clientWidth - 2 * GAP - layout.columns * (this.tile + GAP) + GAP;
    const spread = layout.columns > 1 && layout.rows > 1 ? Math.min(24, leftOver / (layout.columns - 1)) : 0;
    const left = GAP + (layout.rows > 1 ? (leftOver - spread * (layout.columns - 1)) / 2 : 0);
    for (let position = first; position < stop; position += 1) {
      const item = this.items.get(position);
      /** @type {any} */
      let tile = this.drawn.get(position);
      const state = `${item ? item.id : "?"}-${this.tile}-${item?.picture ?? ""}-${this.label}`;
      if (!tile || tile.dataset.state !== state) {
        const fresh = this.makeTile(position, item);
        fresh.dataset.state = state;
        fresh.dataset.query = String(this.query);
        if (tile) tile.replaceWith(fresh);
        else this.tilesBox.append(fresh);
        this.drawn.set(position, fresh);
        tile = fresh;
      }
      const x = left + (position % layout.columns) * (this.tile + GAP + spread);
      const y = GAP + Math.floor(position / layout.columns) * layout.rowHeight + shift;
      tile.style.transform = `translate(${x}px, ${y}px)`;
      tile.setAttribute("aria-selected", String(position === this.at && this.selected >= 0));
      tile.classList.toggle("tvz-marked", !!item && this.marked.has(item.id));
    }
    this.grid.setAttribute("aria-activedescendant", this.drawn.get(this.at)?.id ?? "");
    const nothing = this.count === 0 && (this.exact || this.done);
    this.empty.hidden = !nothing;
    if (nothing) fill(this.empty, this.plain() ? this.emptyText() : "No record fits. ", this.plain() ? "" : h("button", { onclick: () => this.search({ where: "", shard: null, only: false }) }, "show all"));
    this.fetch();
  }

  emptyText() {
    const fault = this.summary?.faults[0];
    return fault?.code.startsWith("E_") ? `No records can be shown. ${fault.code}: ${fault.message}` : "There are no records in here.";
  }

  /** @param {number} position @param {any} item */
  makeTile(position, item) {
    const tile = h("div", { class: "tvz-tile", role: "option", id: `${this.uid}-${position}`, "data-position": position });
    tile.style.width = `${this.tile}px`;
    const box = h("div", { class: "tvz-box" });
    box.style.height = `${this.tile}px`;
    tile.append(box);
    if (!item) {
      tile.classList.add("tvz-waiting");
      tile.setAttribute("aria-label", `record ${position}, loading`);
      return tile;
    }
    const url = item.picture && this.blobs.get(item.picture);
    if (url) {
      const picture = h("img", { alt: "", draggable: false, decoding: "async", src: url });
      picture.onload = () => {
        const side = Math.max(picture.naturalWidth, picture.naturalHeight);
        const room = this.tile;
        if (side < room) {
          const factor = side * 2 <= room ? Math.floor(room / side) : room / side;
          picture.classList.add(factor >= 2 ? "tvz-pixels" : "tvz-grown");
          picture.style.width = `${picture.naturalWidth * factor}px`;
          picture.style.height = `${picture.naturalHeight * factor}px`;
        }
      };
      box.append(picture);
    } else if (item.tile.reason) {
      box.classList.add("tvz-refused");
      box.append(h("strong", {}, item.tile.reason.split(":")[0]), h("span", {}, item.tile.reason.split(":").slice(1).join(":").trim()));
    } else box.append(h("span", { class: "tvz-snippet tvz-mono", dir: "auto" }, item.tile.text || (item.fields.length ? "" : "no fields")));
    const differs = this.common ? missing(this.common, item.fields) : "";
    const name = shortKey(item.key);
    tile.append(
      h("div", { class: "tvz-caption" },
        item.label ? h("span", { class: "tvz-label tvz-cut", dir: "auto" }, item.label) : null,
        h("span", { class: "tvz-key tvz-cut tvz-faint", dir: "auto", title: item.key }, name)),
    );
    if (differs || item.pending) box.append(h("span", { class: "tvz-badge", title: `fields: ${item.fields.join(", ")}` }, item.pending ? "may be cut" : differs));
    tile.setAttribute("aria-label", `${name}${item.label ? `, ${item.label}` : ""}${item.tile.reason ? `, cannot be shown: ${item.tile.reason}` : ""}`);
    return tile;
  }

  async fetch() {
    if (this.asked.size >= 2 || this.lost) return;
    const { first, stop } = this.visibleRange(0);
    const wide = this.visibleRange(1);
    const start = this.missing(first, stop) ?? this.missing(wide.first, wide.stop);
    if (start === undefined) return;
    let end = start;
    while (end < wide.stop && end - start < BATCH && !this.loaded(end) && !this.isAsked(end)) end += 1;
    const name = `${start}-${end}`;
    const query = this.query;
    this.asked.add(name);
    try {
      const { r, buffers } = await this.rpc("fetch", { query, start, stop: end, px: this.sizeFor(), image: this.image, label: this.labelKnown ? this.label : null }, { keep: true });
      this.asked.delete(name);
      if (query === this.query && !r.stale) this.takeRows(r, buffers);
    } catch (error) {
      this.asked.delete(name);
      this.trouble(error);
      if (!this.lost) await new Promise((go) => setTimeout(go, 1000));
    }
    this.draw();
  }

  sizeFor() {
    return this.px;
  }

  /** @param {number} position */
  isAsked(position) {
    return [...this.asked].some((range) => {
      const [from, to] = range.split("-").map(Number);
      return position >= from && position < to;
    });
  }

  /** @param {number} position */
  loaded(position) {
    const item = this.items.get(position);
    return !!item && item.px === this.px && item.image === this.image && item.labelled === this.label && (!item.picture || this.blobs.items.has(item.picture));
  }

  /** @param {number} first @param {number} stop */
  missing(first, stop) {
    for (let position = first; position < stop; position += 1) if (!this.loaded(position) && !this.isAsked(position)) return position;
    return undefined;
  }

  /** @param {any} message @param {any[]} buffers */
  takeRows(message, buffers) {
    if (!this.labelKnown && message.rows.length) {
      this.labelKnown = true;
      this.label = message.label ?? "";
      this.labelInput.value = this.label;
    }
    message.rows.forEach((/** @type {any} */ row, /** @type {number} */ at) => {
      const { buffer } = row.tile;
      let picture = "";
      if (buffer !== undefined) {
        const raw = buffers[buffer];
        const view = raw instanceof DataView ? raw : new DataView(raw.buffer ?? raw, raw.byteOffset ?? 0, raw.byteLength);
        picture = `${row.id}-${message.px}-${row.tile.ext}`;
        this.blobs.put(picture, view, pictureType(view));
      }
      this.items.set(message.start + at, { ...row, picture, px: message.px, image: this.image, labelled: this.label });
    });
    if (this.items.size > 6000) {
      const { first, stop } = this.visibleRange(8);
      for (const position of this.items.keys()) if (position < first || position >= stop) this.items.delete(position);
    }
    if (this.opening && this.items.has(this.at)) this.openRecord();
    if (this.selected < 0 && this.count === 0) this.count = Math.max(this.count, message.start + message.rows.length);
    this.draw();
  }

  /** @param {MouseEvent & { target: any }} event */
  clicked(event) {
    const tile = event.target.closest(".tvz-tile");
    if (!tile) return;
    const position = Number(tile.dataset.position);
    this.select(position);
    if (event.ctrlKey || event.metaKey) this.mark();
  }

  /** @param {number} position @param {{ quiet?: boolean, id?: number }} [options] */
  select(position, { quiet = false, id } = {}) {
    if (position < 0 || position >= this.count) return;
    this.at = position;
    this.selected = this.items.get(position)?.id ?? -1;
    const layout = this.grids();
    const y = Math.floor(position / layout.columns) * layout.rowHeight;
    if (y < this.top) this.setTop(y);
    else if (y + layout.rowHeight + GAP > this.top + this.viewHeight()) this.setTop(y + layout.rowHeight + GAP - this.viewHeight());
    this.draw();
    this.openRecord(id);
    if (!quiet) this.remembering();
  }

  // ---- keys

  /** @param {string} name @param {KeyboardEvent} event */
  key(name, event) {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (name === "Shift") { this.root.classList.add("tvz-bare"); return false; }
    if (name === "Escape") return this.escape(typing);
    if (typing || this.sheet) return false;
    const inGrid = this.grid.contains(/** @type {Node} */ (event.target)) || event.target === this.root || this.root.classList.contains("tvz-zoomed");
    const inRail = this.railList.contains(/** @type {Node} */ (event.target));
    if (inRail && (name === "ArrowDown" || name === "ArrowUp")) { this.stepShard(name === "ArrowDown" ? 1 : -1); return true; }
    const layout = this.grids();
    const far = /^(Home|End|Page)/.test(name);
    if (inGrid || (/^[hjkl]$/.test(name) && !far)) {
      const to = move(name, this.at, { columns: this.root.classList.contains("tvz-zoomed") && /Arrow(Up|Down)|^[jk]$/.test(name) ? 1 : layout.columns, rows: Math.floor(this.viewHeight() / layout.rowHeight), count: this.count });
      if (to !== undefined) { this.select(to); return true; }
    }
    if ((name === "Enter" || name === "Space") && !inGrid) return false;
    if (/^[1-9]$/.test(name)) { this.pickField(Number(name) - 1); return true; }
    const acts = /** @type {Record<string, () => void>} */ ({
      Enter: () => this.zoom(!this.root.classList.contains("tvz-zoomed")), "[": () => this.stepShard(-1), "]": () => this.stepShard(1), g: () => this.askGo(),
      "/": () => { this.filterInput.focus(); this.filterInput.select(); }, "+": () => this.step(1), "=": () => this.step(1), "-": () => this.step(-1),
      r: () => this.search({ sort: "random", seed: this.wish.sort === "random" ? this.wish.seed + 1 : this.wish.seed }), Space: () => this.mark(),
      m: () => this.search({ only: !this.wish.only }), y: () => this.copyKey(), Y: () => this.copyPython(), c: () => this.copyCompare(), i: () => this.togglePane(), "?": () => this.help(),
    });
    if (!acts[name]) return false;
    acts[name]();
    return true;
  }

  /** @param {boolean} typing */
  escape(typing) {
    if (this.sheet) this.closeHelp();
    else if (typing) this.grid.focus();
    else if (this.root.classList.contains("tvz-railed")) this.showRail(false);
    else if (this.root.classList.contains("tvz-zoomed")) this.zoom(false);
    else {
      focusedBeside(this.root)?.blur();
      /** @type {HTMLElement | null} */ (this.root.closest(".jp-Notebook"))?.focus();
    }
    return true;
  }

  /** @param {number} by */
  stepShard(by) {
    if (this.shards.length < 2) return;
    const at = this.wish.shard === null ? (by > 0 ? 0 : this.shards.length - 1) : this.wish.shard + by;
    this.search({ shard: at < 0 || at >= this.shards.length ? null : at });
  }

  /** Larger or smaller: the tiles, or the picture when the record is enlarged. @param {number} by */
  step(by) {
    const view = /** @type {any} */ (this.root.classList.contains("tvz-zoomed") && this.paneBox.querySelector(".tvz-frame"))?.view;
    if (view) return view.zoom(by > 0 ? 1.5 : 1 / 1.5);
    const sizes = this.config.sizes;
    const at = sizes.indexOf(this.px) + by;
    if (sizes[at]) this.resize(sizes[at]);
    return undefined;
  }

  /** @param {number} px */
  resize(px) {
    const first = this.selected >= 0 ? this.at : this.firstVisible();
    this.px = px;
    this.sizeSelect.value = String(px);
    this.layout = undefined;
    this.scrollTo(first);
    this.draw();
    this.remembering();
  }

  /** @param {string} ext */
  showField(ext) {
    this.image = ext;
    this.imageSelect.value = ext;
    this.draw();
    this.remembering();
  }

  /** @param {string} label */
  relabel(label) {
    this.label = label.trim().replace(":", ".");
    this.labelKnown = true;
    this.histogramDone = false;
    this.draw();
    this.drawHistogram();
  }

  askGo() {
    this.goInput.hidden = false;
    this.goInput.value = "";
    this.goInput.focus();
  }

  mark() {
    const id = this.items.get(this.at)?.id;
    if (id === undefined) return;
    if (!this.marked.delete(id)) this.marked.add(id);
    this.draw();
    this.tellState();
    this.remembering();
  }

  /** @param {string} text */
  async copy(text) {
    this.say((await copyText(text)) ? `copied: ${text.replaceAll("\n", " · ").slice(0, 160)}` : "the clipboard is closed to this page");
  }

  copyKey() {
    const item = this.items.get(this.at);
    if (item) this.copy(item.key);
  }

  copyPython() {
    if (this.record) this.copy(this.record.python + (this.field ? `\nrecord[${JSON.stringify(this.field)}]` : ""));
  }

  async copySpec() {
    try {
      await this.remember();
      const { r } = await this.rpc("call", {});
      this.copy(r.python);
    } catch {
      this.copy(this.config.python);
    }
  }

  copyCompare() {
    if (!this.marked.size) return this.say("Nothing is marked: Space marks the record.");
    this.rpc("call", { marked: [...this.marked] }).then(({ r }) => this.copy(r.python), (error) => this.trouble(error));
    return undefined;
  }

  remember() {
    const state = { selected: this.selected >= 0 ? this.selected : null, at: this.at, marked: [...this.marked].slice(0, 100_000), px: this.px, image: this.image, where: this.wish.where, sort: this.wish.sort, seed: this.wish.seed, shard: this.wish.shard };
    if (this.lost) return;
    this.model.send({ k: "tvz:state", state });
    if (this.model.media) {
      const words = new URLSearchParams();
      if (state.where) words.set("where", state.where);
      if (state.sort !== "order") words.set("sort", state.sort);
      if (state.sort === "random") words.set("seed", String(state.seed));
      const item = this.items.get(this.at);
      if (item) words.set("row", item.key.length < 300 ? item.key : `#${this.at}`);
      history.replaceState(null, "", `${location.pathname}#${words}`);
    }
  }

  // ---- rail

  drawRail() {
    const height = this.railList.clientHeight || 120;
    const count = this.shards.length + (this.shards.length > 1 ? 1 : 0);
    this.railShards.style.height = `${count * RAIL_ROW}px`;
    this.railList.style.maxHeight = `${Math.min(count, 9) * RAIL_ROW + 2}px`;
    const { first, stop } = visible({ columns: 1, rowHeight: RAIL_ROW }, { top: this.railList.scrollTop, height, count, margin: 2 });
    const most = Math.max(1, ...this.shards.slice(0, 5000).map((s) => s?.count ?? 0));
    const all = this.shards.length > 1 ? 1 : 0;
    const rows = [];
    for (let at = first; at < stop; at += 1) {
      const shard = all && at === 0 ? undefined : this.shards[at - all];
      const on = this.wish.shard === (shard ? shard.number : null);
      const row = h("div", { class: `tvz-shard${on ? " tvz-on" : ""}`, role: "option", "aria-selected": String(on), title: shard ? shardTitle(shard) : "all shards", onclick: () => this.search({ shard: shard ? shard.number : null }) },
        shard ? h("span", { class: `tvz-dot tvz-dot-${shard.state}` }) : null,
        h("span", { class: "tvz-cut tvz-shard-name", dir: "auto" }, shard ? this.shardName(shard) : "all shards"),
        shard?.faults ? h("span", { class: shard.state === "damaged" || shard.state === "missing" ? "tvz-bad" : "tvz-warn", "aria-label": `${shard.faults} findings` }, "⚠") : null,
        h("span", { class: "tvz-faint tvz-number" }, `${shard && !finished(shard) ? "≥ " : ""}${formatCount(shard ? shard.count : this.total ?? 0)}`));
      if (shard) row.style.setProperty("--share", String((shard.share !== null && !finished(shard) ? shard.share : shard.count / most) || 0));
      row.style.top = `${at * RAIL_ROW}px`;
      rows.push(row);
    }
    fill(this.railShards, ...rows);
    if (this.shardSelect.options.length !== Math.min(count, 501) || this.shardCount !== this.shards.length) {
      this.shardCount = this.shards.length;
      this.shardSelect.hidden = this.shards.length < 2;
      fill(this.shardSelect, h("option", { value: "" }, "all shards"), ...this.shards.slice(0, 500).map((s) => h("option", { value: String(s.number) }, s.name)));
      this.shardSelect.value = this.wish.shard === null ? "" : String(this.wish.shard);
    }
  }

  /** @param {any} shard */
  shardName(shard) {
    return shard.name;
  }

  /** Fields, sets of fields, classes, findings. */
  drawMore() {
    if (!this.summary) return;
    const { fields, sets, faults } = this.summary;
    const counted = sets.reduce((/** @type {number} */ sum, /** @type {any} */ [, n]) => sum + n, 0);
    this.common = sets.length > 1 && sets[0][1] * 2 >= counted ? sets[0][0].join(" ") : "";
    const all = fields.map((/** @type {any} */ [ext]) => ext);
    const most = Math.max(1, ...fields.map((/** @type {any} */ [, n]) => n));
    const parts = [];
    if (faults.length) {
      parts.push(h("h3", {}, "findings"), ...faults.slice(0, this.allFaults ? 60 : 3).map((/** @type {any} */ fault) => h("div", { class: "tvz-finding" },
        h("strong", { class: fault.code.startsWith("E_") ? "tvz-bad" : "tvz-warn" }, fault.code), ` ${this.shards[fault.shard]?.name ?? ""}`,
        fault.offset === null || fault.offset === undefined ? "" : h("span", { class: "tvz-mono" }, ` byte ${formatCount(fault.offset)}`), h("div", { class: "tvz-faint" }, fault.message),
        fault.key ? h("button", { class: "tvz-link tvz-cut", title: `go to ${fault.key}`, onclick: () => this.goTo(fault.key) }, shortKey(fault.key)) : null)));
      if (faults.length > 3 && !this.allFaults) parts.push(this.more(faults.length - 3, () => { this.allFaults = true; }));
    }
    if (fields.length) {
      parts.push(h("h3", {}, "fields"), ...fields.slice(0, this.allFields ? 60 : 7).map((/** @type {[string, number]} */ [ext, n]) => this.bar(ext, n, most, `has(${quoted(ext)})`)));
      if (fields.length > 7 && !this.allFields) parts.push(this.more(fields.length - 7, () => { this.allFields = true; }));
    }
    if (sets.length > 1) {
      parts.push(h("h3", {}, "records that have …"), matrix(sets, all.slice(0, 9), (fields) => this.toggleFilter(filterOfSet(fields, all)), (fields) => this.wish.where === filterOfSet(fields, all)));
    }
    parts.push(this.classes);
    fill(this.railMore, ...parts);
  }

  /** @param {number} count @param {() => void} act */
  more(count, act) {
    return h("button", { class: "tvz-link", onclick: () => { act(); this.drawMore(); } }, `${count} more`);
  }

  /** @param {string} text @param {number} n @param {number} most @param {string} filter @param {string} [title] */
  bar(text, n, most, filter, title = `only records with this: ${filter}`) {
    const on = this.wish.where === filter;
    const row = h("button", { class: `tvz-bar${on ? " tvz-on" : ""}`, title, "aria-pressed": String(on), onclick: () => this.toggleFilter(filter) }, h("span", { class: "tvz-cut", dir: "auto" }, text), h("span", { class: "tvz-faint tvz-number" }, formatCount(n)));
    row.style.setProperty("--share", String(n / most));
    return row;
  }

  /** @param {string} filter */
  toggleFilter(filter) {
    this.search({ where: this.wish.where === filter ? "" : filter });
  }

  async drawHistogram() {
    this.histogramDone = true;
    if (!this.label) return fill(this.classes);
    try {
      const { r } = await this.rpc("histogram", { label: this.label });
      if (!r.counts.length || (r.distinct > 200 && r.distinct > r.sampled / 2)) return fill(this.classes);
      const most = r.counts[0][1];
      const about = r.sampled < r.total ? `${formatCount(r.sampled)} sampled of ${formatCount(r.total)}` : `all ${formatCount(r.total)}`;
      fill(this.classes, h("h3", {}, `${r.label} `, h("span", { class: "tvz-faint" }, `${r.distinct} values, ${about}`)),
        ...r.counts.slice(0, 20).map((/** @type {[string, number, string]} */ [value, n, name]) => this.bar(name ? `${value} ${name}` : value, n, most, filterOfLabel(r.label, value))));
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
    }
    return undefined;
  }

  drawFields() {
    const names = (this.summary?.fields ?? []).map((/** @type {any} */ [ext]) => ext);
    if (names.join() === this.fieldNames) return;
    this.fieldNames = names.join();
    fill(this.imageSelect, h("option", { value: "" }, "first picture"), ...names.slice(0, 60).map((/** @type {string} */ ext) => h("option", { value: ext }, ext)));
    this.imageSelect.value = this.image;
  }

  /** @param {boolean} on */
  showRail(on) {
    this.root.classList.toggle("tvz-railed", on);
    this.railButton.setAttribute("aria-expanded", String(on));
    this.drawRail();
  }

  // ---- record pane

  togglePane() {
    this.root.classList.toggle("tvz-no-pane");
    this.resized();
  }

  /** @param {boolean} on */
  zoom(on) {
    this.root.classList.toggle("tvz-zoomed", on);
    this.root.classList.remove("tvz-no-pane");
    this.resized();
    if (on && this.selected < 0) this.select(this.at);
    this.grid.focus();
  }

  /** The record under the cursor into the pane; where its row has not come yet, when it does. @param {number} [id] where it is known */
  async openRecord(id) {
    const position = this.at;
    const item = this.items.get(position) ?? (id === undefined ? undefined : { id, key: "", fields: [], tile: {} });
    this.opening = item === undefined;
    if (!item) return;
    this.selected = item.id;
    this.drawSoon();
    try {
      const { r, buffers } = await this.rpc("record", { row: item.id, ext: this.field, options: this.options });
      if (this.at !== position) return;
      this.record = r;
      this.fillPane(r, buffers);
      this.tellState();
    } catch (error) {
      if (isOvertaken(error)) return;
      if (error instanceof RpcError && error.fault.code === "no-kernel") this.fillSaved(item);
      else if (error instanceof RpcError) {
        this.endPane();
        fill(this.paneBox, h("p", { class: "tvz-note tvz-note-bad", role: "alert" }, `${error.fault.msg} ${error.fault.hint}`));
      }
      this.trouble(error);
    }
  }

  drawSoon() {
    this.draw();
    this.tellState();
  }

  endPane() {
    this.pane.abort();
    this.pane = new AbortController();
    const pane = this.pane;
    this.signal.addEventListener("abort", () => pane.abort(), { once: true, signal: pane.signal });
  }

  /** @param {any} item */
  fillSaved(item) {
    this.endPane();
    const url = this.blobs.get(item.picture);
    fill(this.paneBox, h("div", { class: "tvz-pane-head" }, h("h2", { class: "tvz-cut", dir: "auto" }, item.key)), url ? h("img", { src: url, alt: "", class: "tvz-saved" }) : h("p", {}, item.tile.text || item.tile.reason), h("p", { class: "tvz-note" }, "No kernel: only the saved thumbnail can be shown."), h("p", { class: "tvz-faint" }, `fields: ${item.fields.join(", ")}`));
  }

  /** @param {any} [record] @param {DataView[]} [buffers] */
  fillPane(record, buffers = []) {
    this.endPane();
    if (!record) return void fill(this.paneBox, h("p", { class: "tvz-faint tvz-hint" }, "Select a record to look into it. ", h("kbd", {}, "?"), " lists the keys."));
    const keep = this.paneBox.scrollTop;
    const ext = record.ext ?? "";
    const field = record.fields.find((/** @type {any} */ f) => f.ext === ext);
    const signal = this.pane.signal;
    const around = {
      rpc: this.rpc, signal, say: (/** @type {string} */ text) => this.say(text), row: record.id, ext, size: field?.size ?? 0, options: this.options,
      media: this.model.media?.(`${record.id}/${encodeURIComponent(ext)}`), ask: (/** @type {any} */ options) => { this.options = options; this.openRecord(); },
    };
    const chips = record.fields.map((/** @type {any} */ f, /** @type {number} */ at) =>
      h("button", { class: "tvz-chip", role: "tab", "aria-selected": String(f.ext === ext), title: `${f.kind}, ${formatBytes(f.size)}, byte ${formatCount(f.offset)}${at < 9 ? ` (key ${at + 1})` : ""}`, onclick: () => this.pickField(at) }, h("b", { dir: "auto" }, f.ext || "?"), ` ${formatBytes(f.size)}`));
    const tab = (/** @type {string} */ id, /** @type {string} */ text) => h("button", { role: "tab", "aria-selected": String(this.tab === id), onclick: () => { this.tab = id; this.fillPane(record, buffers); } }, text);
    const body = h("div", { class: "tvz-body", role: "tabpanel" });
    fill(this.paneBox,
      h("div", { class: "tvz-pane-head" }, h("h2", { class: "tvz-cut", title: record.key, dir: "auto" }, record.key), h("div", { class: "tvz-faint tvz-cut", title: record.shard }, `#${record.index} of ${record.shard.split("/").at(-1)}`)),
      h("div", { class: "tvz-chips", role: "tablist", "aria-label": "fields" }, ...chips),
      h("div", { class: "tvz-tabs", role: "tablist", "aria-label": "views" }, tab("value", "Value"), tab("bytes", "Bytes"), tab("example", "tf.Example"), tab("header", "Tar header")),
      body,
      h("div", { class: "tvz-pane-foot" },
        h("button", { onclick: () => this.copyPython(), title: "Y" }, "copy as Python"),
        field ? h("button", { onclick: () => this.saveField(around, record) }, `save .${ext}`) : null,
        h("button", { onclick: () => this.mark(), title: "Space" }, "mark"),
        h("button", { onclick: () => this.zoom(!this.root.classList.contains("tvz-zoomed")), title: "Enter" }, this.root.classList.contains("tvz-zoomed") ? "back" : "enlarge")));
    this.fillBody(body, record, buffers, around);
    this.paneBox.scrollTop = keep;
    return undefined;
  }

  /** @param {HTMLElement} body @param {any} record @param {DataView[]} buffers @param {any} around */
  async fillBody(body, record, buffers, around) {
    if (!around.ext) return fill(body, h("p", { class: "tvz-faint" }, "The record has no fields."));
    const place = record.fields.find((/** @type {any} */ f) => f.ext === around.ext);
    try {
      if (this.tab === "value" && record.panel) {
        const panel = record.panel;
        panel.facts = [...panel.facts, ["offset", `${formatCount(place.offset)} (0x${place.offset.toString(16)})`], ["shown by", panel.viewer]];
        record.panel = { ...panel, facts: panel.facts.filter((/** @type {any} */ [name], /** @type {number} */ at) => panel.facts.findIndex((/** @type {any} */ [other]) => other === name) === at) };
        fill(body, drawPanel(record.panel, buffers, around));
      } else if (this.tab === "bytes") {
        const sum = h("button", { onclick: () => this.rpc("digest", { row: record.id, ext: around.ext }).then(({ r }) => sum.replaceWith(h("span", { class: "tvz-mono tvz-wrap" }, r.sha256)), (e) => this.trouble(e)) }, "SHA-256");
        fill(body, drawHex(around), h("div", { class: "tvz-row" }, `${formatCount(around.size)} bytes from byte ${formatCount(place.offset)} (0x${place.offset.toString(16)}) `, sum));
      } else if (this.tab === "example") {
        const { r, buffers: raw } = await this.rpc("example", { row: record.id });
        if (around.signal.aborted) return undefined;
        fill(body, ...r.notes.map((/** @type {string} */ note) => h("p", { class: "tvz-note tvz-note-warn" }, note)), h("h3", {}, "features"), factTable(r.features), h("h3", {}, `TFRecord frame, ${formatCount(r.size)} bytes`), factTable(r.frame),
          h("details", {}, h("summary", {}, "bytes of the example"), h("pre", { class: "tvz-mono tvz-dump" }, dump(raw[0]))));
      } else if (this.tab === "header") {
        const { r, buffers: raw } = await this.rpc("header", { row: record.id, ext: around.ext });
        if (around.signal.aborted) return undefined;
        fill(body, factTable(r.rows), h("details", {}, h("summary", {}, "bytes of the header"), h("pre", { class: "tvz-mono tvz-dump" }, dump(raw[0]))));
      }
    } catch (error) {
      if (isOvertaken(error)) return undefined;
      fill(body, h("p", { class: "tvz-note tvz-note-bad", role: "alert" }, error instanceof RpcError ? `${error.fault.code}: ${error.fault.msg}` : String(error)));
    }
    return undefined;
  }

  /** @param {number} at */
  pickField(at) {
    const field = this.record?.fields[at];
    if (!field) return;
    this.field = field.ext;
    this.options = {};
    this.openRecord();
  }

  /** @param {any} around @param {any} record */
  async saveField(around, record) {
    try {
      const parts = await readAll(around, (share) => this.say(`reading .${around.ext}: ${Math.round(share * 100)} %`));
      saveAs(`${shortKey(record.key)}.${around.ext}`, parts);
    } catch (error) {
      this.trouble(error);
    }
  }

  // ---- help

  help() {
    if (this.sheet) return this.closeHelp();
    const close = h("button", { onclick: () => this.closeHelp() }, "close");
    this.sheet = h("div", { class: "tvz-sheet", role: "dialog", "aria-modal": "true", "aria-label": "keys" }, h("h2", {}, "Keys"),
      h("dl", {}, ...KEYS.flatMap(([keys, what]) => [h("dt", {}, ...keys.split(" ").flatMap((key, n) => [n ? " " : "", /^(or|…|\(held\))$/.test(key) ? key : h("kbd", {}, key)])), h("dd", {}, what)])),
      h("p", { class: "tvz-faint" }, "Filter: cls == 3 and json.w > 300 · has:json · not has:cls · size(jpg) > 50000 · txt.contains('cat') · matches(key, '^val/') · or part of a key"), close);
    this.root.append(this.sheet);
    close.focus();
    return undefined;
  }

  closeHelp() {
    this.sheet?.remove();
    this.sheet = undefined;
    this.grid.focus();
  }
}

/** @param {any} shard */
const finished = (shard) => ["done", "damaged", "missing"].includes(shard.state);

/** @param {any} shard */
const shardTitle = (shard) => [shard.url, shard.size === null ? "" : formatBytes(shard.size), `${formatCount(shard.count)} records`, shard.state, shard.compression, shard.stale ? "changed since the scan" : ""].filter(Boolean).join("\n");

/** Fields a record lacks or has beyond the usual, short; "" where it is usual, or of another kind altogether. @param {string} common @param {string[]} fields */
export function missing(common, fields) {
  const usual = common.split(" ");
  const lacks = usual.filter((ext) => !fields.includes(ext)).map((ext) => `−${ext}`);
  const more = fields.filter((ext) => !usual.includes(ext)).map((ext) => `+${ext}`);
  if (lacks.length === usual.length) return "";
  const text = [...lacks, ...more].join(" ");
  return text.length > 18 ? `${text.slice(0, 17)}…` : text;
}

/**
 * Field × count: one row a set of fields, a dot where it has the field.
 * @param {[string[], number][]} sets @param {string[]} fields @param {(fields: string[]) => void} pick @param {(fields: string[]) => boolean} isOn
 */
function matrix(sets, fields, pick, isOn) {
  return h("table", { class: "tvz-matrix" },
    h("thead", {}, h("tr", {}, ...fields.map((ext) => h("th", { title: ext }, h("span", { class: "tvz-cut", dir: "auto" }, ext))), h("th", { class: "tvz-right" }, "records"))),
    h("tbody", {}, ...sets.map(([names, count]) => h("tr", { class: isOn(names) ? "tvz-on" : "", tabIndex: 0, role: "button", "aria-pressed": String(isOn(names)), title: `only records with just: ${names.join(", ")}`, onclick: () => pick(names), onkeydown: (/** @type {KeyboardEvent} */ e) => { if (keyName(e) === "Enter") pick(names); } },
      ...fields.map((ext) => h("td", { "aria-label": names.includes(ext) ? `has ${ext}` : `no ${ext}` }, names.includes(ext) ? "●" : "·")), h("td", { class: "tvz-right" }, formatCount(count))))));
}

/** The first bytes as hex rows. @param {DataView} view */
function dump(view) {
  const rows = [];
  for (let at = 0; at < view.byteLength; at += 16) {
    const bytes = Array.from({ length: Math.min(16, view.byteLength - at) }, (_, i) => view.getUint8(at + i));
    rows.push(`${at.toString(16).padStart(6, "0")}  ${bytes.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(47)}  ${bytes.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("")}`);
  }
  return rows.join("\n");
}

