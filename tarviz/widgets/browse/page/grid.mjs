// @ts-check
// The grid of tiles: only the rows in view are drawn and fetched, however many there are.

import {
  BlobCache,
  fill,
  formatCount,
  h,
  hits,
  hitsInLine,
  layOut,
  pictureType,
  refuse,
  scrollOf,
  topOf,
  visible,
} from "../../host/core.mjs";
import { asView } from "../../host/requests.mjs";
import { overTile } from "../../panes/overlay.mjs";
import { hoverPlay, playedKind } from "./hover.mjs";
import { shortKey } from "./rail.mjs";

const TILE_CAPTION = 36;
const GAP = 8;
const BATCH = 36;

/** The grid of one browser; `view` is the BrowserView it belongs to. */
export class Grid {
  /** @param {import("./browse.mjs").BrowserView} view @param {AbortSignal} signal */
  constructor(view, signal) {
    this.view = view;
    this.blobs = new BlobCache({ signal });
    /** @type {Map<number, any>} rows by position */
    this.items = new Map();
    /** @type {Map<number, HTMLElement>} tiles by position */
    this.drawn = new Map();
    /** @type {Set<string>} ranges that are on their way */
    this.asked = new Set();
    /** @type {any} where the tiles lie; undefined when that is to be measured again */
    this.layout = undefined;
    /** pixel of the whole grid at the top of the view */
    this.top = 0;
    this.frame = 0;
    /** @type {number | undefined} */
    this.scrollSet = undefined;
    this.scrollSeen = 0;
    /** the query whose emptiness was told */
    this.told = -1;
    /** side of a tile as it is drawn */
    this.tile = view.look.px;
    this.uid = `tvz${Math.random().toString(36).slice(2, 8)}`;
    this.area = h("div", { class: "tvz-area" });
    this.tilesBox = h("div", { class: "tvz-tiles" });
    this.empty = h("p", { class: "tvz-empty tvz-faint", hidden: true });
    this.root = h(
      "div",
      { class: "tvz-grid", role: "listbox", tabIndex: 0, "aria-label": "records", "aria-multiselectable": "true" },
      this.area,
      this.tilesBox,
      this.empty,
    );
    this.root.addEventListener("scroll", () => this.scrolled(), { signal });
    if (view.model.media) hoverPlay(this.tilesBox, (position) => this.playable(position), signal);
  }

  /** Other rows: from the top, nothing known of them. */
  restart() {
    this.items.clear();
    this.asked.clear();
    this.top = 0;
    this.root.scrollTop = 0;
    this.layout = undefined;
  }

  /** Other bytes: no picture is right any more. */
  forget() {
    this.restart();
    this.blobs.clear();
    this.drawn.forEach((tile) => tile.remove());
    this.drawn.clear();
  }

  /** Scroll so that a position is in view. @param {number} position */
  reveal(position) {
    const layout = this.measure();
    const y = Math.floor(position / layout.columns) * layout.rowHeight;
    if (y < this.top) this.setTop(y);
    else if (y + layout.rowHeight + GAP > this.top + this.viewHeight()) this.setTop(y + layout.rowHeight + GAP - this.viewHeight());
  }

  measure() {
    if (!this.layout) {
      const width = Math.max(60, this.root.clientWidth - 2 * GAP);
      // at least two columns where a column of 96 pixels is left for each
      const tile = Math.min(this.view.look.px, Math.max(96, Math.floor((width - GAP) / 2)), width);
      this.tile = tile;
      this.layout = layOut({ width, count: this.view.records.count, tile, caption: TILE_CAPTION, gap: GAP });
      this.area.style.height = `${this.layout.scrollHeight}px`;
    }
    return this.layout;
  }

  viewHeight() {
    return this.root.clientHeight || 300;
  }

  /** @param {number} margin */
  visibleRange(margin) {
    if (this.view.table.shown) return this.view.table.visibleRange(margin);
    return visible(this.measure(), { top: this.top, height: this.viewHeight(), count: this.view.records.count, margin });
  }

  firstVisible() {
    return this.layout ? Math.round(this.top / this.layout.rowHeight) * this.layout.columns : 0;
  }

  /** @param {number} position */
  scrollTo(position) {
    const { columns, rowHeight } = this.measure();
    this.setTop(Math.floor(position / columns) * rowHeight);
  }

  /** @param {number} top */
  setTop(top) {
    const layout = this.measure();
    this.top = Math.max(0, Math.min(top, layout.height - this.viewHeight()));
    const place = scrollOf(this.top, layout, this.viewHeight());
    if (Math.abs(this.root.scrollTop - place) >= 1) {
      this.scrollSet = Math.round(place);
      this.root.scrollTop = place;
    }
  }

  scrolled() {
    const layout = this.measure();
    // a place we set ourselves keeps its exact pixel, which the capped scroll bar cannot hold
    if (this.scrollSet === undefined || Math.abs(this.root.scrollTop - this.scrollSet) > 1) {
      const moved = this.root.scrollTop - (this.scrollSeen ?? 0);
      const left = layout.scrollHeight - this.viewHeight() - this.root.scrollTop;
      const capped = layout.height > layout.scrollHeight;
      // small steps (a wheel) move by pixels, long ones (the bar is dragged) by their share of the whole, and its ends are those of the rows
      this.top =
        capped && Math.abs(moved) < 2 * this.viewHeight() && this.root.scrollTop >= 1 && left >= 1
          ? this.top + moved
          : topOf(this.root.scrollTop, layout, this.viewHeight());
    }
    this.scrollSet = undefined;
    this.scrollSeen = this.root.scrollTop;
    this.draw();
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.view.signal.aborted) this.drawNow();
    });
  }

  drawNow() {
    this.view.table.draw();
    if (this.root.hidden) return this.view.table.shown ? void this.fetch() : undefined;
    const layout = this.measure();
    const { first, stop } = this.visibleRange(1);
    for (const [position, tile] of this.drawn) {
      if (position < first || position >= stop || tile.dataset.query !== String(this.view.records.query)) {
        tile.remove();
        this.drawn.delete(position);
      }
    }
    const shift = this.root.scrollTop - this.top;
    // what a row leaves over is shared out between the columns, and the rest on both sides
    const leftOver = this.root.clientWidth - 2 * GAP - layout.columns * (this.tile + GAP) + GAP;
    const spread = layout.columns > 1 && layout.rows > 1 ? Math.min(24, leftOver / (layout.columns - 1)) : 0;
    const left = GAP + (layout.rows > 1 ? (leftOver - spread * (layout.columns - 1)) / 2 : 0);
    for (let position = first; position < stop; position += 1) {
      const item = this.items.get(position);
      /** @type {any} */
      let tile = this.drawn.get(position);
      const state = [this.tile, item?.id, item?.picture, item?.image, item?.labelled].join("-");
      if (!tile || tile.dataset.state !== state) {
        const fresh = this.makeTile(position, item);
        fresh.dataset.state = state;
        fresh.dataset.query = String(this.view.records.query);
        if (tile) tile.replaceWith(fresh);
        else this.tilesBox.append(fresh);
        this.drawn.set(position, fresh);
        tile = fresh;
      }
      const x = left + (position % layout.columns) * (this.tile + GAP + spread);
      const y = GAP + Math.floor(position / layout.columns) * layout.rowHeight + shift;
      tile.style.transform = `translate(${x}px, ${y}px)`;
      tile.setAttribute("aria-selected", String(position === this.view.records.at && this.view.records.selected >= 0));
      tile.classList.toggle("tvz-marked", !!item && this.view.marks.has(item.id));
    }
    const active = this.drawn.get(this.view.records.at)?.id;
    if (active) this.root.setAttribute("aria-activedescendant", active);
    else this.root.removeAttribute("aria-activedescendant");
    const nothing = this.view.records.count === 0 && (this.view.records.plain() ? this.view.scan.exact : this.view.records.done);
    this.empty.hidden = !nothing;
    this.root.setAttribute("role", nothing ? "region" : "listbox");
    if (nothing && this.told !== this.view.records.query) {
      this.told = this.view.records.query;
      fill(
        this.empty,
        this.view.records.plain()
          ? this.emptyText()
          : this.view.records.failed
            ? "This cannot be asked: the line below says why. "
            : "No record fits. ",
        this.view.records.plain() ? "" : h("button", { onclick: () => this.view.searches.showAll() }, "show all"),
      );
      if (!this.view.records.plain() && !this.view.scan.lost) this.tellNames();
    }
    this.fetch();
  }

  /** Below an empty result: what a filter can ask for here. */
  async tellNames() {
    const query = this.view.records.query;
    try {
      const { r: found } = await this.view.rpc("why").catch(() => ({ r: { reasons: [] } })); // a condition with an error: the status says which
      if (query !== this.view.records.query) return;
      if (found.reasons.length) this.empty.append(h("table", { class: "tvz-why" }, h("tbody", {}, ...found.reasons.map(reason))));
      const { r } = await this.view.rpc("columns");
      if (query === this.view.records.query && r.columns.length)
        this.empty.append(
          h("span", { class: "tvz-names" }, "These records have: ", h("span", { class: "tvz-mono" }, r.columns.slice(0, 24).join("  "))),
        );
    } catch (error) {
      this.view.trouble(error);
    }
  }

  emptyText() {
    if (!this.view.config.title) return "Nothing is open yet: open … above takes a path, a folder or a URL. ";
    const fault = this.view.scan.summary?.faults[0];
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
        this.layOver(item, picture, box);
      };
      box.append(picture);
    } else if (item.tile.reason) refuse(box, item.tile.reason, this.tile);
    else
      box.append(
        h(
          "span",
          { class: "tvz-snippet tvz-mono", dir: "auto" },
          ...hits(item.tile.text || (item.fields.length ? "" : "no fields"), this.view.records.words),
        ),
      );
    const differs = this.view.scan.common ? missing(this.view.scan.common, item.fields) : "";
    const name = shortKey(item.key);
    tile.append(
      h(
        "div",
        { class: "tvz-caption" },
        item.label
          ? h("span", { class: "tvz-label tvz-cut", dir: "auto", title: item.label }, ...hitsInLine(item.label, this.view.records.words))
          : null,
        h("span", { class: "tvz-key tvz-cut tvz-faint", dir: "auto", title: item.key }, ...hits(name, this.view.records.words)),
      ),
    );
    if (differs || item.pending)
      box.append(h("span", { class: "tvz-badge", title: `fields: ${item.fields.join(", ")}` }, item.pending ? "may be cut" : differs));
    tile.setAttribute(
      "aria-label",
      `${name}${item.label ? `, ${item.label}` : ""}${item.tile.reason ? `, cannot be shown: ${item.tile.reason}` : ""}`,
    );
    return tile;
  }

  /** What a tile plays while the pointer rests on it: its kind and its address. @param {number} position */
  playable(position) {
    const item = this.items.get(position);
    const kind = item ? playedKind(item.tile.ext) : "";
    return kind ? { kind, url: this.view.model.media(`${item.id}/${encodeURIComponent(item.tile.ext)}`) } : undefined;
  }

  /** Boxes and masks over a tile's picture. @param {any} item @param {HTMLImageElement} picture @param {HTMLElement} box */
  layOver(item, picture, box) {
    const { over } = item.tile;
    if (!over?.width || !picture.isConnected) return;
    box.querySelector(".tvz-over")?.remove();
    const [width, height] = [picture.clientWidth, picture.clientHeight];
    const mask = over.masks[0] && this.blobs.get(`${item.picture}-mask`);
    overTile(over, this.view.layers, { picture, scale: width / over.width, x: (this.tile - width) / 2, y: (this.tile - height) / 2 }, mask);
  }

  /** What lies over the tiles drawn anew, after it was switched. */
  relayer() {
    for (const [position, tile] of this.drawn) {
      const picture = tile.querySelector("img");
      const item = this.items.get(position);
      if (picture && item) this.layOver(item, picture, /** @type {HTMLElement} */ (picture.parentElement));
    }
  }

  async fetch() {
    if (this.asked.size >= 2 || this.view.scan.lost) return;
    const { first, stop } = this.visibleRange(0);
    const wide = this.visibleRange(1);
    const start = this.missing(first, stop) ?? this.missing(wide.first, wide.stop);
    if (start === undefined) return;
    let end = start;
    while (end < wide.stop && end - start < BATCH && !this.loaded(end) && !this.isAsked(end)) end += 1;
    const name = `${start}-${end}`;
    const query = this.view.records.query;
    const shows = () => JSON.stringify([this.view.look.image, this.view.look.labelChosen && this.view.look.label]);
    const before = shows();
    this.asked.add(name);
    try {
      const { r, buffers } = await this.view.rpc(
        "fetch",
        {
          query,
          start,
          stop: end,
          px: this.view.look.px,
          image: this.view.look.image,
          label: this.view.look.labelKnown ? this.view.look.label : null,
        },
        { keep: true },
      );
      this.asked.delete(name);
      if (r.stale && query === this.view.records.query) this.view.searches.renew();
      if (query === this.view.records.query && !r.stale && r.ordered === this.view.records.ordered && before === shows())
        this.takeRows(r, buffers);
      if (this.view.calm) {
        this.view.facets.follow();
        this.view.map.follow();
      }
    } catch (error) {
      this.asked.delete(name);
      this.view.trouble(error);
      await new Promise((go) => setTimeout(go, 1000));
    }
    this.draw();
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
    return (
      !!item &&
      item.px === this.view.look.px &&
      item.image === this.view.look.image &&
      item.labelled === this.view.look.label &&
      (!item.picture || this.blobs.items.has(item.picture))
    );
  }

  /** @param {number} first @param {number} stop */
  missing(first, stop) {
    for (let position = first; position < stop; position += 1) if (!this.loaded(position) && !this.isAsked(position)) return position;
    return undefined;
  }

  /** @param {any} message @param {any[]} buffers */
  takeRows(message, buffers) {
    if (!this.view.look.labelKnown && message.rows.length && message.label !== null) {
      this.view.look.labelKnown = true;
      this.view.look.label = message.label ?? "";
      this.view.tools.label.value = this.view.look.label;
    }
    Object.assign(this.view.layers.colours, message.colours);
    message.rows.forEach((/** @type {any} */ row, /** @type {number} */ at) => {
      const { buffer, over } = row.tile;
      let picture = "";
      if (buffer !== undefined) {
        const view = asView(buffers[buffer]);
        picture = `${row.id}-${message.px}-${row.tile.ext}${row.box === undefined ? "" : `-${message.query}-${row.box}`}`;
        this.blobs.put(picture, view, pictureType(view));
        if (over?.masks.length) this.blobs.put(`${picture}-mask`, asView(buffers[over.masks[0].buffer]), "image/png");
      }
      this.items.set(message.start + at, { ...row, picture, px: message.px, image: this.view.look.image, labelled: this.view.look.label });
    });
    if (this.items.size > 6000) {
      const { first, stop } = this.visibleRange(8);
      for (const position of this.items.keys()) if (position < first || position >= stop) this.items.delete(position);
    }
    if (this.view.pane.opening && this.items.has(this.view.records.at)) this.view.pane.open();
    this.draw();
  }
}

/** A condition and what it does, as a row. @param {[string, number, number, string]} found text, records it fits alone, records that fit the others, what its column holds */
function reason([text, fits, others, holds]) {
  const said =
    holds ||
    (fits && others ? `alone ${formatCount(fits)}; without it ${formatCount(others)} would fit` : fits ? `alone ${formatCount(fits)}` : "");
  return h(
    "tr",
    { class: fits ? "" : "tvz-bad" },
    h("td", { class: "tvz-mono" }, text),
    h("td", {}, fits ? "" : "fits none"),
    h("td", { class: "tvz-faint" }, said),
  );
}

/** Fields a record lacks or has beyond the usual, short; "" where it is usual, or of another kind altogether. @param {string} common @param {string[]} fields */
export function missing(common, fields) {
  const usual = common.split(" ");
  const lacks = usual.filter((ext) => !fields.includes(ext)).map((ext) => `−${ext}`);
  const more = fields.filter((ext) => !usual.includes(ext)).map((ext) => `+${ext}`);
  if (lacks.length === usual.length) return "";
  const text = [...lacks, ...more].join(" ");
  return text.length > 18 ? `${text.slice(0, 17)}…` : text;
}
