// @ts-check
// The grid of tiles: only the rows in view are drawn and fetched, however many there are.

import { h, hits, hitsInLine, layOut, refuse, scrollOf, topOf, visible } from "../../host/core.mjs";
import { overTile } from "../../panes/overlay.mjs";
import { hoverPlay, playedKind } from "./hover.mjs";
import { shortKey } from "./rail.mjs";

const TILE_CAPTION = 36;
const GAP = 8;

export class Grid {
  /** @param {Pick<import("./state.mjs").Page, "model" | "signal" | "records" | "look" | "scan" | "marks"> & {
   *   rows: import("./rows.mjs").Rows, table: import("./table.mjs").TableView, empty: import("./empty.mjs").Empty,
   *   layers: import("../../panes/overlay.mjs").Layers }} around */
  constructor(around) {
    this.around = around;
    const { signal } = around;
    /** @type {Map<number, HTMLElement>} tiles by position */
    this.drawn = new Map();
    /** @type {any} where the tiles lie; undefined when that is to be measured again */
    this.layout = undefined;
    /** pixel of the whole grid at the top of the view */
    this.top = 0;
    this.frame = 0;
    /** @type {number | undefined} */
    this.scrollSet = undefined;
    this.scrollSeen = 0;
    /** side of a tile as it is drawn */
    this.tile = around.look.px;
    this.uid = `tvz${Math.random().toString(36).slice(2, 8)}`;
    this.area = h("div", { class: "tvz-area" });
    this.tilesBox = h("div", { class: "tvz-tiles" });
    this.root = h(
      "div",
      { class: "tvz-grid", role: "listbox", tabIndex: 0, "aria-label": "records", "aria-multiselectable": "true" },
      this.area,
      this.tilesBox,
      around.empty.root,
    );
    this.root.addEventListener("scroll", () => this.scrolled(), { signal });
    if (around.model.media) hoverPlay(this.tilesBox, (position) => this.playable(position), signal);
  }

  /** Other rows: from the top, nothing known of them. */
  restart() {
    this.around.rows.clear();
    this.top = 0;
    this.root.scrollTop = 0;
    this.layout = undefined;
  }

  /** Other bytes: no picture is right any more. */
  forget() {
    this.restart();
    this.around.rows.blobs.clear();
    this.drawn.forEach((tile) => tile.remove());
    this.drawn.clear();
  }

  /** Scroll so that a position is in view. @param {number} position */
  reveal(position) {
    const layout = this.measure();
    const y = Math.floor(position / layout.columns) * layout.rowHeight;
    this.setTop(Math.min(y, Math.max(this.top, y + layout.rowHeight + GAP - this.viewHeight())));
  }

  measure() {
    if (!this.layout) {
      const width = Math.max(60, this.root.clientWidth - 2 * GAP);
      // at least two columns where a column of 96 pixels is left for each
      const tile = Math.min(this.around.look.px, Math.max(96, Math.floor((width - GAP) / 2)), width);
      this.tile = tile;
      this.layout = layOut({ width, count: this.around.records.count, tile, caption: TILE_CAPTION, gap: GAP });
      this.area.style.height = `${this.layout.scrollHeight}px`;
    }
    return this.layout;
  }

  viewHeight() {
    return this.root.clientHeight || 300;
  }

  /** @param {number} margin */
  visibleRange(margin) {
    if (this.around.table.shown) return this.around.table.visibleRange(margin);
    return visible(this.measure(), { top: this.top, height: this.viewHeight(), count: this.around.records.count, margin });
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
      const moved = this.root.scrollTop - this.scrollSeen;
      const left = layout.scrollHeight - this.viewHeight() - this.root.scrollTop;
      const capped = layout.height !== layout.scrollHeight;
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
      if (!this.around.signal.aborted) this.drawNow();
    });
  }

  drawNow() {
    this.around.table.draw();
    if (this.root.hidden) return this.around.table.shown ? void this.around.rows.fetch() : undefined;
    const layout = this.measure();
    const { first, stop } = this.visibleRange(1);
    for (const [position, tile] of this.drawn) {
      if (position < first || position >= stop || tile.dataset.query !== String(this.around.records.query)) {
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
      const item = this.around.rows.items.get(position);
      /** @type {any} */
      let tile = this.drawn.get(position);
      const state = [this.tile, item?.id, item?.picture, item?.image, item?.labelled].join("-");
      if (!tile || tile.dataset.state !== state) {
        const fresh = this.makeTile(position, item);
        fresh.dataset.state = state;
        fresh.dataset.query = String(this.around.records.query);
        if (tile) tile.replaceWith(fresh);
        else this.tilesBox.append(fresh);
        this.drawn.set(position, fresh);
        tile = fresh;
      }
      const x = left + (position % layout.columns) * (this.tile + GAP + spread);
      const y = GAP + Math.floor(position / layout.columns) * layout.rowHeight + shift;
      tile.style.transform = `translate(${x}px, ${y}px)`;
      tile.setAttribute("aria-selected", String(position === this.around.records.at && this.around.records.selected >= 0));
      tile.classList.toggle("tvz-marked", !!item && this.around.marks.has(item.id));
    }
    const active = this.drawn.get(this.around.records.at)?.id;
    if (active) this.root.setAttribute("aria-activedescendant", active);
    else this.root.removeAttribute("aria-activedescendant");
    this.root.setAttribute("role", this.around.empty.tell() ? "region" : "listbox");
    this.around.rows.fetch();
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
    const url = item.picture && this.around.rows.blobs.get(item.picture);
    if (url) {
      const picture = h("img", { alt: "", draggable: false, decoding: "async", src: url });
      picture.onload = () => {
        const side = Math.max(picture.naturalWidth, picture.naturalHeight);
        const room = this.tile;
        if (side < room) {
          const times = Math.floor(room / side);
          const factor = times > 1 ? times : room / side;
          picture.classList.add(times > 1 ? "tvz-pixels" : "tvz-grown");
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
          ...hits(item.tile.text || (item.fields.length ? "" : "no fields"), this.around.records.words),
        ),
      );
    const differs = this.around.scan.common ? missing(this.around.scan.common, item.fields) : "";
    const name = shortKey(item.key);
    tile.append(
      h(
        "div",
        { class: "tvz-caption" },
        item.label
          ? h("span", { class: "tvz-label tvz-cut", dir: "auto", title: item.label }, ...hitsInLine(item.label, this.around.records.words))
          : null,
        h("span", { class: "tvz-key tvz-cut tvz-faint", dir: "auto", title: item.key }, ...hits(name, this.around.records.words)),
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
    const item = this.around.rows.items.get(position);
    const kind = item ? playedKind(item.tile.ext) : "";
    return kind ? { kind, url: this.around.model.media(`${item.id}/${encodeURIComponent(item.tile.ext)}`) } : undefined;
  }

  /** Boxes and masks over a tile's picture. @param {any} item @param {HTMLImageElement} picture @param {HTMLElement} box */
  layOver(item, picture, box) {
    const { over } = item.tile;
    if (!over?.width || !picture.isConnected) return;
    box.querySelector(".tvz-over")?.remove();
    const [width, height] = [picture.clientWidth, picture.clientHeight];
    const mask = over.masks[0] && this.around.rows.blobs.get(`${item.picture}-mask`);
    overTile(
      over,
      this.around.layers,
      { picture, scale: width / over.width, x: (this.tile - width) / 2, y: (this.tile - height) / 2 },
      mask,
    );
  }

  /** What lies over the tiles drawn anew, after it was switched. */
  relayer() {
    for (const [position, tile] of this.drawn) {
      const picture = tile.querySelector("img");
      const item = this.around.rows.items.get(position);
      if (picture && item) this.layOver(item, picture, /** @type {HTMLElement} */ (picture.parentElement));
    }
  }
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
