// @ts-check
// The records that are marked, which all pages on the same shards share: this page's copy of the numbers of their rows.

import { RpcError } from "../../host/requests.mjs";

/** Rows that a change has marked, and rows that it has unmarked. @typedef {{ added: number[], dropped: number[] }} Change */

export class Marks {
  /**
   * @param {(name: string, msg?: any, options?: any) => Promise<{ r: any, buffers: DataView[] }>} rpc
   * @param {() => void} changed hears that other rows are marked
   * @param {number[]} rows those that are marked already
   */
  constructor(rpc, changed, rows) {
    this.rpc = rpc;
    this.changed = changed;
    this.rows = new Set(rows);
    this.version = -1;
    this.busy = false;
    /** how often something was marked here */
    this.changes = 0;
    /** @type {Promise<any>} ends when the controller knows all that was marked here, or could not be told */
    this.told = Promise.resolve();
  }

  /** Ask, so that whoever needs the marks there can wait for `told`. @param {string} name @param {any} msg */
  async tell(name, msg) {
    const asked = this.told.then(() => this.rpc(name, msg, { keep: true })); // one after another: the controller takes what comes as it comes
    this.told = asked.catch(() => {});
    return (await asked).r;
  }

  get size() {
    return this.rows.size;
  }

  /** @param {number} row */
  has(row) {
    return this.rows.has(row);
  }

  /** What a poll says of the marks: another page may have changed them. @param {{ version: number, count: number }} found */
  async take({ version, count }) {
    if (version === this.version || this.busy) return;
    if (version === 0 && count === 0 && !this.rows.size) {
      this.version = version;
      return;
    }
    this.busy = true;
    const { changes } = this;
    try {
      const { r, buffers } = await this.rpc("marks");
      if (changes !== this.changes) return; // it may not know of that yet: the next poll asks again
      this.version = r.version;
      const view = buffers[0];
      this.rows = new Set(Array.from({ length: r.count }, (_, at) => view.getFloat64(8 * at, true)));
      this.changed();
    } finally {
      this.busy = false;
    }
  }

  /** Mark rows and unmark others: at once here, then for all. @param {number[]} add @param {number[]} drop @returns {Promise<Change>} */
  async change(add, drop) {
    const here = { added: add.filter((row) => !this.rows.has(row)), dropped: drop.filter((row) => this.rows.has(row)) };
    this.apply(here);
    try {
      return this.answered(await this.tell("mark", { add, drop }));
    } catch (error) {
      if (error instanceof RpcError && error.fault.code === "no-kernel") return here; // a saved page: marked here alone
      this.apply({ added: here.dropped, dropped: here.added });
      throw error;
    }
  }

  /** Mark all rows that the search `query` shows from `start` to before `stop` (null: to its end), unmark them, or invert their marks.
   * @param {number} query @param {"mark" | "unmark" | "invert"} [how] @param {number} [start] @param {number | null} [stop]
   * @returns {Promise<Change>} */
  async shown(query, how = "mark", start = 0, stop = null) {
    const change = this.answered(await this.tell("mark_shown", { query, start, stop, how }));
    this.apply(change);
    return change;
  }

  /** @param {any} r @returns {Change} */
  answered({ version, added, dropped }) {
    if (version === this.version + 1) this.version = version; // nobody else has marked meanwhile
    return { added, dropped };
  }

  /** @param {Change} change */
  apply({ added, dropped }) {
    this.changes += 1;
    for (const row of dropped) this.rows.delete(row);
    for (const row of added) this.rows.add(row);
    this.changed();
  }
}
