// @ts-check
// Marking with hands: one, a range, all that show, none, the others; each can be taken back.

import { formatCount } from "../../host/core.mjs";

/** @typedef {import("./marks.mjs").Change} Change */

export class Curation {
  /** @param {Pick<import("../page/state.mjs").Page, "records" | "marks" | "history" | "status"> & { rows: import("../page/rows.mjs").Rows }} around */
  constructor(around) {
    this.around = around;
    /** where a range begins: the record that was chosen last without Shift */
    this.anchor = 0;
    /** @type {number | undefined} where the range ended last */
    this.end = undefined;
  }

  /** Mark the record under the cursor, or unmark it. */
  toggle() {
    const { records, rows, marks, status } = this.around;
    const row = rows.items.get(records.at)?.id;
    if (row === undefined)
      return status.say(records.count ? "The record is still on its way: mark it when it shows." : "No record shows that could be marked.");
    this.anchor = records.at;
    return this.run(marks.has(row) ? marks.change([], [row]) : marks.change([row], []), false);
  }

  /** A record was chosen without Shift: ranges begin there. @param {number} position */
  begin(position) {
    this.anchor = position;
    this.end = undefined;
  }

  /** Mark all records from where the range begins to a position; those that the range held before and holds no longer are unmarked.
   * @param {number} position */
  async range(position) {
    const { marks, records } = this.around;
    const { query } = records;
    const [low, high] = ends(this.anchor, position);
    const left = this.end === undefined ? [] : without(ends(this.anchor, this.end), [low, high]);
    this.end = position;
    for (const [from, to] of left) await this.run(marks.shown(query, "unmark", from, to + 1), false);
    await this.run(marks.shown(query, "mark", low, high + 1), false);
  }

  /** Mark all records that show. */
  all() {
    return this.run(this.around.marks.shown(this.around.records.query));
  }

  /** Of the records that show, unmark the marked ones and mark the others. */
  invert() {
    return this.run(this.around.marks.shown(this.around.records.query, "invert"));
  }

  /** Unmark everything, on all pages. */
  none() {
    return this.run(this.around.marks.change([], [...this.around.marks.rows]));
  }

  /** @param {Promise<Change>} changing @param {boolean} [told] whether it is said, with a way back */
  async run(changing, told = true) {
    const { marks, history, status } = this.around;
    try {
      const { added, dropped } = await changing;
      if (!added.length && !dropped.length) return;
      const text = said(added.length, dropped.length);
      history.did({ text, undo: () => marks.change(dropped, added), redo: () => marks.change(added, dropped) });
      if (told)
        status.say(marks.size === added.length ? text : `${text}: ${formatCount(marks.size)} in all`, "", "undo", () => this.undo());
    } catch (error) {
      status.trouble(error);
    }
  }

  undo() {
    return this.go(this.around.history.undo(), "taken back", "There is nothing to take back.");
  }

  redo() {
    return this.go(this.around.history.redo(), "done again", "There is nothing to do again.");
  }

  /** @param {Promise<string>} going @param {string} done @param {string} nothing */
  async go(going, done, nothing) {
    try {
      const text = await going;
      this.around.status.say(text ? `${done}: ${text}` : nothing);
    } catch (error) {
      this.around.status.trouble(error);
    }
  }
}

/** @param {number} one @param {number} other @returns {[number, number]} */
const ends = (one, other) => (one < other ? [one, other] : [other, one]);

/** What is left of a range when another is taken out of it: first and last positions. @param {[number, number]} range @param {[number, number]} other
 * @returns {[number, number][]} */
export const without = ([low, high], [from, to]) =>
  /** @type {[number, number][]} */ ([
    [low, Math.min(high, from - 1)],
    [Math.max(low, to + 1), high],
  ]).filter(([first, last]) => first <= last);

/** A change in words. @param {number} added @param {number} dropped */
export const said = (added, dropped) =>
  [added ? `${formatCount(added)} marked` : "", dropped ? `${formatCount(dropped)} unmarked` : ""].filter(Boolean).join(", ");
