// @ts-check
// The two steps on the stage: which they are, what is shown of them, what differs.

import { differenceText, placeName } from "./strips.mjs";

/** @typedef {import("./strips.mjs").Place} Place */

export class StagedPair {
  /** @param {import("./compare.mjs").CompareView} view */
  constructor(view) {
    this.view = view;
  }

  /** The two tiles on the stage. @returns {[Place, Place]} */
  pair() {
    const { view } = this;
    const on = (/** @type {{ column: number, step: number }} */ pin) => {
      const length = view.strips.get(`${view.at.record}:${pin.column}`)?.tiles.length ?? 0;
      return { record: view.at.record, column: pin.column, step: Math.min(pin.step, length - 1) };
    };
    return [on(view.a), view.b ? on(view.b) : on(view.at)];
  }

  /** @param {Place} place */
  tileOf(place) {
    const { view } = this;
    return place.step < 0 ? view.originals[place.record] : view.strips.get(`${place.record}:${place.column}`)?.tiles[place.step];
  }

  /** Put the two tiles on the stage. */
  show() {
    const { view } = this;
    view.mark();
    const [a, b] = this.pair();
    const side = (/** @type {Place} */ place) => {
      const tile = this.tileOf(place);
      const column = view.columns[place.column];
      const name = place.step < 0 ? "original" : `${column?.name ?? ""}: ${tile?.op.split("(")[0] ?? ""}`;
      const strip = place.step < 0 ? undefined : view.strips.get(`${place.record}:${place.column}`);
      return {
        name: `${placeName(place)}@${strip?.version ?? 0}`,
        place,
        title: name,
        text: tile?.error || tile?.text || "",
        small: view.blobs.get(tile?.picture),
        mapping: tile?.mapping ?? "",
        over: tile?.over,
        mask: view.maskOf(tile),
      };
    };
    const [left, right] = [side(a), side(b)];
    if (view.b) right.title += " · fixed";
    view.stage.set(left, right);
    this.measure(left, right);
  }

  /** @param {any} a @param {any} b */
  async measure(a, b) {
    const { view } = this;
    view.stage.say(a.name === b.name ? "A and B are the same step" : "");
    if (view.lost || a.name === b.name) return;
    const pair = (/** @type {Place} */ { column, step: at }) => [column, at];
    try {
      const { r } = await view.rpc("difference", { record: a.place.record, a: pair(a.place), b: pair(b.place) });
      view.stage.say(differenceText(r));
    } catch (error) {
      view.trouble(error);
    }
  }
}
