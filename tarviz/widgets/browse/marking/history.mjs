// @ts-check
// What was done on a page, so that it can be taken back and done again: marks, tags, filters.

/** Something that was done, in words, and the way back and forth.
 * @typedef {{ text: string, undo: () => Promise<unknown>, redo: () => Promise<unknown> }} Step */

const MOST = 200;

export class History {
  constructor() {
    /** @type {Step[]} */
    this.done = [];
    /** @type {Step[]} */
    this.undone = [];
    /** @type {Promise<unknown>} one step at a time */
    this.last = Promise.resolve();
  }

  /** @param {Step} step */
  did(step) {
    this.done.push(step);
    if (this.done.length > MOST) this.done.shift();
    this.undone = [];
  }

  /** Take back what was done last; its words, "" where there is nothing. @returns {Promise<string>} */
  undo() {
    return this.go("done", "undone", "undo");
  }

  /** Do again what was taken back last; its words, "" where there is nothing. @returns {Promise<string>} */
  redo() {
    return this.go("undone", "done", "redo");
  }

  /** @param {"done" | "undone"} from @param {"done" | "undone"} to @param {"undo" | "redo"} way @returns {Promise<string>} */
  go(from, to, way) {
    const next = this.last.then(async () => {
      const step = this[from].pop();
      if (!step) return "";
      try {
        await step[way]();
      } catch (error) {
        this[from].push(step);
        throw error;
      }
      this[to].push(step);
      return step.text;
    });
    this.last = next.catch(() => {});
    return next;
  }
}
