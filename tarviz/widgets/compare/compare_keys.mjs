// @ts-check
// The keys of a comparison, and the sheet that lists them.

import { leave } from "../host/core.mjs";
import { KeySheet } from "../host/sheet.mjs";
import { step } from "./strips.mjs";

/** What the keys do, as the help sheet lists it. */
export const COMPARE_KEYS = [
  ["← → ↑ ↓", "move over the tiles"],
  ["n p", "record after, record before"],
  ["a b", "this tile is A, is B (again: let go)"],
  ["w", "wipe (drag, or ← → on the stage)"],
  ["x", "blink"],
  ["d", "difference"],
  ["+ −", "gain of the difference, else zoom"],
  ["0", "whole picture"],
  ["r", "new seed for this chain"],
  ["R", "new seeds for all"],
  ["t", "fastest chain first"],
  ["l", "all steps, or the last only"],
  ["o", "overlays: boxes, outlines, points, masks"],
  ["s", "sliders for the numbers of this chain"],
  ["y", "copy the chain"],
  ["Esc", "leave"],
  ["?", "this list"],
];

export class CompareKeys {
  /** @param {import("./compare.mjs").CompareView} view */
  constructor(view) {
    this.view = view;
    this.sheet = new KeySheet(
      COMPARE_KEYS,
      () => view.root,
      () => view.list.focus(),
    );
  }

  /** @param {string} name @param {KeyboardEvent} event */
  press(name, event) {
    const { view } = this;
    if (name === "Escape") {
      if (this.sheet.shown) this.sheet.toggle();
      else leave(view.root);
      return true;
    }
    if (this.sheet.shown && name !== "?") return false;
    if (view.stage.root.contains(/** @type {Node} */ (event.target)) && view.stage.key(name)) return true;
    const to = step(name, view.at, { order: view.order, lengths: view.lengths, last: view.last });
    if (to) {
      view.select(to);
      return true;
    }
    const acts = /** @type {Record<string, () => void>} */ ({
      a: () => view.pin("a"),
      b: () => view.pin("b"),
      w: () => view.stage.turn("wipe"),
      x: () => view.stage.turn("blink"),
      d: () => view.stage.turn("difference"),
      "+": () => view.stage.louder(1),
      "=": () => view.stage.louder(1),
      "-": () => view.stage.louder(-1),
      0: () => view.stage.fit(),
      r: () => view.changes.reroll(view.at.column),
      R: () => view.changes.reroll(null),
      n: () => view.walk(1),
      p: () => view.walk(-1),
      t: () => view.sort(),
      o: () => view.toggleOver(),
      s: () => view.toggleSliders(),
      l: () => view.toggleLast(),
      y: () => view.copy(view.columns[view.at.column]?.chain ?? ""),
      "?": () => this.sheet.toggle(),
    });
    if (!acts[name]) return false;
    acts[name]();
    return true;
  }
}
