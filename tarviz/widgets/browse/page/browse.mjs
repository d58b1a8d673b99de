// @ts-check
// The shard browser (controller: Browser in tarviz/widgets/browse/controller.py): shard rail, grid of tiles, record pane.

import { bindKeys, button, drawnBy, focusInPlace, formatCount, h } from "../../host/core.mjs";
import { makeRpc } from "../../host/requests.mjs";
import { MapView } from "../../map/map_view.mjs";
import { Layers } from "../../panes/overlay.mjs";
import { Facets } from "../filters/facets.mjs";
import { ObjectClasses } from "../filters/object_classes.mjs";
import { read } from "../marking/address.mjs";
import { Curation } from "../marking/curation.mjs";
import { History } from "../marking/history.mjs";
import { Marks } from "../marking/marks.mjs";
import { Views } from "../marking/views.mjs";
import { Beside } from "./beside.mjs";
import { Copies } from "./copies.mjs";
import { Empty } from "./empty.mjs";
import { Grid } from "./grid.mjs";
import { Keep } from "./keep.mjs";
import { Keys } from "./keys.mjs";
import { Opening } from "./opening.mjs";
import { Places } from "./places.mjs";
import { Polls } from "./polls.mjs";
import { Rail } from "./rail.mjs";
import { RecordPane } from "./record.mjs";
import { Rows } from "./rows.mjs";
import { byCaption, Search } from "./search.mjs";
import { splitters } from "./splitters.mjs";
import { SqlBox } from "./sql_box.mjs";
import { Look, Records, Scan } from "./state.mjs";
import { StatusLine } from "./status.mjs";
import { TableView } from "./table.mjs";
import { Tagging } from "./tagging.mjs";
import { Tools } from "./tools.mjs";

export class BrowserView {
  /** @param {any} model @param {HTMLElement} el @param {AbortSignal} signal */
  constructor(model, el, signal) {
    this.model = model;
    this.signal = signal;
    const first = model.get("_first");
    const saved = model.get("_state") ?? {};
    this.config = first.config;
    this.rpc = makeRpc(model, { signal, onSlow: (slow) => this.status.tellSlow(slow) });
    this.records = new Records(this.config, first);
    this.look = new Look(this.config, first.rows.label);
    this.scan = new Scan();
    this.history = new History();
    this.marks = new Marks(this.rpc, () => this.drawSoon(), this.config.marked ?? []);
    this.searches = new Search(this);
    this.polls = new Polls(this);
    const { config, rpc, records, look, scan, history, marks, searches, polls } = this;
    this.status = new StatusLine({ model, signal, rpc, records, scan, marks, searches, polls });
    const { status } = this;
    const leave = () => this.list.focus();
    const select = (/** @type {number} */ position, /** @type {number | undefined} */ row) => this.select(position, row);
    const page = { model, config, signal, rpc, records, look, scan, marks, history, searches, polls, status, leave, select };
    this.keys = new Keys(this);
    this.rail = new Rail(page);
    const { rail } = this;
    this.layers = new Layers({ ...first.rows.colours }, () => this.grid.relayer());
    const { layers } = this;
    /** @type {Rows} */
    this.rows = new Rows({
      ...page,
      layers,
      visible: (margin) => this.grid.visibleRange(margin),
      labelled: () => {
        this.tools.label.value = look.label;
      },
      came: () => this.came(),
      rested: () => this.rested(),
    });
    const { rows } = this;
    this.table = new TableView({ ...page, rows, zoom: () => this.zoom(true) });
    const { table } = this;
    this.grid = new Grid({ ...page, rows, layers, table, empty: new Empty(page) });
    this.map = new MapView({ ...page, open: (row) => this.pane.open(row) });
    this.places = new Places({
      ...page,
      rows,
      frame: () => ({ view: table.shown ? "table" : "", map: this.map.shown, large: this.zoomed }),
      points: () => this.map.points?.number,
    });
    const { places } = this;
    this.copies = new Copies({ ...page, rows, table, places });
    const { copies } = this;
    this.curation = new Curation({ ...page, rows });
    this.facets = new Facets({ ...page, rail, offer: (columns) => this.tools.offerColumns(columns) });
    this.classes = new ObjectClasses({ ...page, rail, layers });
    this.views = new Views({ ...page, places });
    this.sql = new SqlBox({ ...page, copies });
    this.keep = new Keep({ ...page, rail, copies });
    this.tagging = new Tagging({ ...page, keep: this.keep });
    rail.more.append(this.keep.root, this.classes.root, this.facets.root);
    this.pane = new RecordPane({
      ...page,
      ...{ rows, layers, copies },
      opened: () => {
        places.soon();
        this.drawSoon();
      },
      walk: () => this.walk(),
      acts: () => this.acts(),
    });
    this.beside = new Beside({ ...page, layers, pane: this.pane });
    this.tools = new Tools({ ...page, frame: this, curation: this.curation, beside: this.beside, keep: this.keep });
    this.build(el);
    this.polls.take(first.poll);
    this.rows.take(first.rows, model.get("_pictures"));
    this.grid.draw();
    this.start(saved);
  }

  // ---- frame

  /** @param {HTMLElement} el */
  build(el) {
    const { signal, config } = this;
    this.title = h(
      "span",
      { ...(this.model.media ? { role: "heading", "aria-level": "1" } : {}), class: "tvz-title tvz-cut", title: config.title, dir: "auto" },
      config.title,
    );
    this.facts = h("span", { class: "tvz-faint tvz-head-facts tvz-cut" });
    this.head = h(
      "header",
      { class: "tvz-head" },
      this.title,
      this.config.opens && this.model.media ? new Opening({ rpc: this.rpc, status: this.status }, !config.title).box : null,
      this.facts,
      button("SQL", "ask the records, objects and tags in SQL", () => this.sql.toggle()),
      this.views.box,
      button("copy as Python", "copy the call that shows what is shown now", () => this.copies.spec()),
      button("?", "keys", () => this.keys.sheet.toggle()),
    );
    this.middle = h("div", { class: "tvz-middle" }, this.map.root, this.grid.root, this.table.root);
    this.main = h("div", { class: "tvz-main" }, this.rail.root, this.middle, this.pane.root);
    this.main.append(...splitters(this.main, () => this.grid && this.root && this.resized(), signal), this.beside.root, this.sql.root);
    this.root = h(
      "div",
      {
        class: `tvz tvz-browse${config.title ? "" : " tvz-nothing"}${this.model.still ? " tvz-still" : ""}`,
        role: "region",
        "aria-label": `tarviz browser of ${config.title}`,
      },
      this.head,
      this.tools.root,
      this.keep.bar,
      this.tagging.bar,
      this.searches.chips,
      this.main,
      this.status.root,
      this.tools.filterHelp.list,
      this.tools.labelHelp.list,
    );
    this.searches.drawPicks();
    el.append(this.root);

    this.grid.root.addEventListener("click", (/** @type {any} */ e) => this.clicked(e), { signal });
    this.grid.root.addEventListener(
      "dblclick",
      (/** @type {any} */ e) => {
        if (e.target.closest(".tvz-tile")) this.zoom(true);
      },
      { signal },
    );
    this.root.addEventListener("pointerdown", (/** @type {any} */ e) => this.closeMenus(e.target), { signal });
    bindKeys(this.root, (name, event) => this.keys.press(name, event), signal);
    this.root.addEventListener(
      "keyup",
      (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Shift") this.root.classList.remove("tvz-bare");
      },
      { signal },
    );
    this.root.addEventListener("focusout", () => this.root.classList.remove("tvz-bare"), { signal });
    const watch = new ResizeObserver(() => this.resized());
    watch.observe(this.root);
    watch.observe(this.grid.root);
    signal.addEventListener("abort", () => watch.disconnect());
    const idle = () => this.polls.now(true);
    this.root.addEventListener("pointerenter", idle, { signal });
    this.root.addEventListener("focusin", () => performance.now() - this.polls.polled > 4000 && idle(), { signal });
  }

  resized() {
    const width = this.root.clientWidth;
    this.root.classList.toggle("tvz-narrow", this.narrow());
    this.root.classList.toggle("tvz-medium", width >= 560 && width < 900);
    this.root.classList.toggle("tvz-map-beside", this.middle.clientWidth > 820);
    const first = this.grid.firstVisible();
    this.grid.layout = undefined;
    this.grid.scrollTo(first);
    this.grid.draw();
    this.rail.draw();
  }

  /** @param {any} saved */
  start(saved) {
    const address = this.model.media ? read(location.hash) : {};
    const shown = { ...this.places.usual, ...(Object.keys(address).length ? address : saved.shown) };
    if (this.model.media && document.activeElement === document.body) focusInPlace(this.grid.root); // a page of its own: the keys are ours
    if (this.model.media)
      window.addEventListener(
        "popstate",
        ({ state }) => {
          const area = state && state.map === this.map.points?.number ? state.area : null;
          this.searches.restore({ ...this.places.read(location.hash), area });
        },
        { signal: this.signal },
      );
    this.searches.restore(shown).finally(() => this.polls.loop());
  }

  /** By its width, not by what was last drawn: the first answer may come before the first look at the size. */
  narrow() {
    const width = this.root.clientWidth;
    return width > 0 && width < 560;
  }

  // ---- the record under the cursor

  /** @param {MouseEvent & { target: any }} event */
  clicked(event) {
    const tile = event.target.closest(".tvz-tile");
    if (!tile) return;
    const position = Number(tile.dataset.position);
    this.select(position);
    if (event.shiftKey) return void this.curation.range(position);
    this.curation.begin(position);
    if (event.ctrlKey || event.metaKey) this.curation.toggle();
  }

  /** @param {number} position @param {number} [id] its row, where that is known */
  select(position, id) {
    if (position < 0 || position >= this.records.count) return;
    this.records.at = position;
    this.records.selected = this.rows.items.get(position)?.id ?? -1;
    this.grid.reveal(position);
    if (this.table.shown) this.table.reveal(position);
    this.grid.draw();
    this.pane.open(id);
  }

  /** @param {number} px */
  resize(px) {
    const first = this.records.selected >= 0 ? this.records.at : this.grid.firstVisible();
    this.look.px = px;
    this.tools.tileSize.value = String(px);
    this.grid.layout = undefined;
    this.grid.scrollTo(first);
    this.grid.draw();
    this.places.soon();
  }

  /** @param {string} ext */
  showField(ext) {
    this.look.image = ext;
    this.tools.field.value = ext;
    this.grid.draw();
    this.places.soon();
  }

  /** @param {string | null} label null: the usual one */
  relabel(label) {
    this.look.label = this.tools.label.value = (label ?? "").trim().replace(":", ".");
    this.look.labelKnown = this.look.labelChosen = label !== null;
    this.grid.draw();
    if (byCaption(this.searches.next) && !this.searches.restoring) this.searches.run({});
    this.places.soon();
  }

  /** The way from a record to its neighbours. */
  walk() {
    const { at, count } = this.records;
    const walk = (/** @type {string} */ text, /** @type {string} */ name, /** @type {() => void} */ act) =>
      button(text, name, act, { "aria-label": name });
    return h(
      "div",
      { class: "tvz-walk", role: "group", "aria-label": "the records shown" },
      walk("‹", "record before (←)", () => this.select(this.records.at - 1)),
      h("span", { class: "tvz-faint tvz-number" }, `${formatCount(at + 1)} of ${formatCount(count)}`),
      walk("›", "next record (→)", () => this.select(this.records.at + 1)),
      walk("✕", "back to the grid (Esc)", () => this.zoom(false)),
    );
  }

  /** What can be done with the record in the pane. */
  acts() {
    return [
      button("mark", "Space", () => this.curation.toggle()),
      button("tag …", "T: the marked records, or this one", () => this.tagging.open()),
      button(this.zoomed ? "back" : "enlarge", "Enter", () => this.zoom(!this.zoomed)),
    ];
  }

  // ---- frame parts

  /** Close what hangs down from the header, but for the one that holds `within`; whether anything did. @param {Node | null} [within] */
  closeMenus(within = null) {
    // the page that only opens shards keeps its menu
    const open = /** @type {HTMLDetailsElement[]} */ (this.config.title ? [...this.head.querySelectorAll("details[open]")] : []);
    const others = open.filter((box) => !box.contains(within));
    for (const box of others) box.open = false;
    return others.length > 0;
  }

  /** @param {boolean} on */
  showRail(on) {
    this.root.classList.toggle("tvz-railed", on);
    this.tools.rail.setAttribute("aria-expanded", String(on));
    this.rail.draw();
  }

  toggleRail() {
    this.showRail(!this.root.classList.contains("tvz-railed"));
  }

  /** Boxes, outlines and masks on or off. */
  toggleOver() {
    this.layers.shown = !this.layers.shown;
    this.grid.relayer();
    for (const frame of this.pane.root.querySelectorAll(".tvz-frame")) /** @type {any} */ (frame).view?.draw();
    this.status.say(this.layers.shown ? "boxes and masks are shown" : "boxes and masks are hidden");
  }

  toggleTable() {
    this.showTable(!this.table.shown);
  }

  /** Records as a table, or as tiles. @param {boolean} on */
  showTable(on) {
    this.table.root.hidden = !on;
    this.grid.root.hidden = on;
    this.tools.table.setAttribute("aria-pressed", String(on));
    if (on) this.table.open();
    this.grid.layout = undefined;
    this.grid.draw();
    focusInPlace(this.list);
    if (on) this.table.reveal(this.records.at);
    this.places.stepping();
  }

  toggleMap() {
    this.showMap(!this.map.shown);
  }

  /** The map beside the records, or not. @param {boolean} on */
  showMap(on) {
    this.map.root.hidden = !on;
    this.root.classList.toggle("tvz-mapped", on);
    this.tools.map.setAttribute("aria-pressed", String(on));
    if (on) this.map.open();
    else if (!this.searches.restoring) this.map.uncircle();
    this.resized();
    this.places.stepping();
  }

  /** Whether one record fills the page. @returns {boolean} */
  get zoomed() {
    return this.root.classList.contains("tvz-zoomed");
  }

  /** Whether the records in view are there: pictures first, then all that is counted. */
  get calm() {
    return !this.rows.asked.size && (this.rows.items.size > 0 || this.table.shown || (this.records.done && !this.records.count));
  }

  /** What has the records: tiles or table. */
  get list() {
    return this.table.shown ? this.table.root : this.grid.root;
  }

  togglePane() {
    this.root.classList.toggle("tvz-no-pane");
    this.resized();
  }

  /** @param {boolean} on */
  zoom(on) {
    this.root.classList.toggle("tvz-zoomed", on);
    this.root.classList.remove("tvz-no-pane");
    this.resized();
    if (on && this.records.selected < 0) this.select(this.records.at);
    if (!on && this.table.shown) this.table.reveal(this.records.at);
    this.list.focus();
    this.places.stepping();
  }

  /** More rows of those in view are there. */
  came() {
    if (this.pane.opening && this.rows.items.has(this.records.at)) this.pane.open();
    this.grid.draw();
  }

  /** Once the records in view are there: what is counted of all. */
  rested() {
    if (!this.calm) return;
    this.facets.follow();
    this.map.follow();
  }

  /** Other records are marked than before, here or on another page, or the cursor is on another one. */
  drawSoon() {
    this.grid.draw();
    this.status.tell();
  }
}

export default { render: drawnBy(BrowserView) };
