// @ts-check
// The rows of the records that show, as far as they were fetched: those in view first, a batch at a time.

import { BlobCache, pictureType } from "../../host/core.mjs";
import { asView } from "../../host/requests.mjs";

const BATCH = 36;

export class Rows {
  /**
   * @param {Pick<import("./state.mjs").Page, "signal" | "rpc" | "records" | "look" | "scan" | "searches" | "status"> & {
   *   layers: import("../../panes/overlay.mjs").Layers, visible: (margin: number) => { first: number, stop: number },
   *   labelled: () => void, came: () => void, rested: () => void }} around `visible`: the positions in view, with rows more on both sides;
   *   `labelled` hears that the label is known, `came` that there are more rows, `rested` that an answer was taken
   */
  constructor(around) {
    this.around = around;
    this.blobs = new BlobCache({ signal: around.signal });
    /** @type {Map<number, any>} rows by position */
    this.items = new Map();
    /** @type {Set<string>} ranges that are on their way */
    this.asked = new Set();
  }

  /** Nothing is known of them any more. */
  clear() {
    this.items.clear();
    this.asked.clear();
  }

  async fetch() {
    if (this.asked.size >= 2 || this.around.scan.lost) return;
    const { first, stop } = this.around.visible(0);
    const wide = this.around.visible(1);
    const start = this.missing(first, stop) ?? this.missing(wide.first, wide.stop);
    if (start === undefined) return;
    let end = start;
    while (end < wide.stop && end - start < BATCH && !this.loaded(end) && !this.isAsked(end)) end += 1;
    const name = `${start}-${end}`;
    const query = this.around.records.query;
    const shows = () => JSON.stringify([this.around.look.image, this.around.look.labelChosen && this.around.look.label]);
    const before = shows();
    this.asked.add(name);
    try {
      const { r, buffers } = await this.around.rpc(
        "fetch",
        {
          query,
          start,
          stop: end,
          px: this.around.look.px,
          image: this.around.look.image,
          label: this.around.look.labelKnown ? this.around.look.label : null,
        },
        { keep: true },
      );
      this.asked.delete(name);
      if (r.stale && query === this.around.records.query) this.around.searches.renew();
      if (query === this.around.records.query && !r.stale && r.ordered === this.around.records.ordered && before === shows())
        this.take(r, buffers);
      this.around.rested();
    } catch (error) {
      this.asked.delete(name);
      this.around.status.trouble(error);
      await new Promise((go) => setTimeout(go, 1000));
    }
    this.around.came();
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
      item.px === this.around.look.px &&
      item.image === this.around.look.image &&
      item.labelled === this.around.look.label &&
      (!item.picture || this.blobs.items.has(item.picture))
    );
  }

  /** @param {number} first @param {number} stop */
  missing(first, stop) {
    for (let position = first; position < stop; position += 1) if (!this.loaded(position) && !this.isAsked(position)) return position;
    return undefined;
  }

  /** @param {any} message @param {any[]} buffers */
  take(message, buffers) {
    if (!this.around.look.labelKnown && message.rows.length && message.label !== null) {
      this.around.look.labelKnown = true;
      this.around.look.label = message.label ?? "";
      this.around.labelled();
    }
    Object.assign(this.around.layers.colours, message.colours);
    message.rows.forEach((/** @type {any} */ row, /** @type {number} */ at) => {
      const { buffer, over } = row.tile;
      let picture = "";
      if (buffer !== undefined) {
        const view = asView(buffers[buffer]);
        picture = `${row.id}-${message.px}-${row.tile.ext}${row.box === undefined ? "" : `-${message.query}-${row.box}`}`;
        this.blobs.put(picture, view, pictureType(view));
        if (over?.masks.length) this.blobs.put(`${picture}-mask`, asView(buffers[over.masks[0].buffer]), "image/png");
      }
      this.items.set(message.start + at, {
        ...row,
        picture,
        px: message.px,
        image: this.around.look.image,
        labelled: this.around.look.label,
      });
    });
    if (this.items.size > 6000) {
      const { first, stop } = this.around.visible(8);
      for (const position of this.items.keys()) if (position < first || position >= stop) this.items.delete(position);
    }
    this.around.came();
  }
}
