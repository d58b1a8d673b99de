// @ts-check
// What the page shows as a place to come back to: kept for Python, for a saved notebook, in the page's address, for Back.

import { later } from "../../host/core.mjs";
import { PLAIN, read, written } from "../marking/address.mjs";

export class Places {
  /**
   * @param {Pick<import("./state.mjs").Page, "model" | "config" | "signal" | "rpc" | "records" | "look" | "scan" | "searches"> & {
   *   rows: import("./rows.mjs").Rows, frame: () => Pick<import("../marking/address.mjs").Shown, "view" | "map" | "large">,
   *   points: () => number | undefined }} around `frame`: which parts of the page show; `points`: the number of the map that is drawn
   */
  constructor(around) {
    this.around = around;
    const { config, records, signal } = around;
    /** what the page shows when nothing was chosen on it @type {import("../marking/address.mjs").Shown} */
    this.usual = {
      ...PLAIN,
      ...{ where: config.where, sort: config.sort, seed: config.seed, px: config.px, image: config.image },
      picks: [...records.picks],
      row: config.start,
    };
    /** the next address kept is a place that Back leads from */
    this.step = false;
    this.soon = later(() => this.remember(), 300, signal);
  }

  /** What an address says, and the usual where it says nothing. @param {string} address @returns {import("../marking/address.mjs").Shown} */
  read(address) {
    return { ...this.usual, ...read(address) };
  }

  /** What is shown now, but for the record the cursor is on. */
  address() {
    return written({ ...this.shown(), row: "", at: 0 }, this.usual);
  }

  /** @param {string} address */
  async show(address) {
    await this.around.searches.restore(this.read(address));
    this.stepping();
  }

  /** Keep what is shown as a place of its own, which Back leads from. */
  stepping() {
    this.step ||= !this.around.searches.restoring; // what an address shows is no step of its own
    this.soon();
  }

  /** Keep what is shown. */
  remember() {
    const { model, rpc, records, look, scan, searches, points } = this.around;
    if (scan.lost || searches.restoring || searches.next !== records.wish) return; // it is kept when it is there
    const shown = this.shown();
    const state = { selected: records.selected >= 0 ? records.selected : null, px: look.px, image: look.image, shown };
    model.send({ k: "tvz:state", session: rpc.session, state });
    if (!model.media) return;
    const address = `${location.href.split("#")[0]}#${written(shown, this.usual)}`;
    const { step } = this;
    const { area } = records.wish;
    const line = area && { area, map: points() }; // means something on this page alone
    this.step = false;
    if (step && (address !== location.href || JSON.stringify(line) !== JSON.stringify(history.state))) history.pushState(line, "", address);
    else history.replaceState(line, "", address);
  }

  /** @returns {import("../marking/address.mjs").Shown} */
  shown() {
    const { records, look, rows, frame } = this.around;
    const { where, sort, seed, column, descending, shard, only, objects } = records.wish;
    const item = rows.items.get(records.at);
    return {
      ...{ where, sort, seed, column, descending, shard, only, objects },
      picks: [...records.picks],
      ...frame(),
      px: look.px,
      image: look.image,
      label: look.labelChosen ? look.label : null,
      row: !item ? "" : item.key.length < 300 ? item.key : `#${records.at}`,
      at: records.at,
    };
  }
}
