// @ts-check
// What leaves the shard browser: copies for the clipboard, and files that are saved.

import { copyText, saveAs } from "../../host/core.mjs";

export class Copies {
  /** @param {Pick<import("./state.mjs").Page, "config" | "rpc" | "records" | "marks" | "status"> & {
   *   rows: import("./rows.mjs").Rows, table: import("./table.mjs").TableView, places: import("./places.mjs").Places }} around */
  constructor(around) {
    this.around = around;
  }

  /** @param {string} text */
  async text(text) {
    const { status } = this.around;
    status.say((await copyText(text)) ? `copied: ${text.replaceAll("\n", " · ").slice(0, 160)}` : "the clipboard is closed to this page");
  }

  key() {
    const { rows, records } = this.around;
    const item = rows.items.get(records.at);
    if (item) this.text(item.key);
  }

  async spec() {
    const { config, rpc, places } = this.around;
    try {
      places.remember();
      const { r } = await rpc("call", {});
      this.text(r.python);
    } catch {
      this.text(config.python);
    }
  }

  compare() {
    const { rpc, marks, status } = this.around;
    if (!marks.size) return status.say("Nothing is marked: Space marks the record.");
    rpc("call", { marked: true }).then(
      ({ r }) => this.text(r.python),
      (error) => status.trouble(error),
    );
    return undefined;
  }

  /** The columns of a CSV: those in view, where the table is; null: all. */
  get columns() {
    const { columns, shown } = this.around.table;
    return shown && columns?.length ? columns : null;
  }

  /** What is marked, or else what is shown, as a file. @param {string} kind tar, csv or txt */
  async save(kind) {
    const { config, rpc, records, marks, status } = this.around;
    if (!kind) return;
    const marked = marks.size > 0;
    try {
      status.say(`gathering ${marked ? "the marked" : "all that show"} …`);
      await marks.told;
      const { r, buffers } = await rpc("export", {
        kind,
        query: records.query,
        marked,
        columns: kind === "csv" ? this.columns : null,
      });
      const name = `${
        config.title
          .split("/")
          .at(-1)
          .replace(/\.tar.*$/, "") || "records"
      }-${marked ? "marked" : "shown"}.${kind}`;
      saveAs(name, [/** @type {any} */ (buffers[0])]);
      status.say(`${r.count} records saved as ${name}`);
    } catch (error) {
      status.trouble(error);
    }
  }
}
