// @ts-check
// What leaves the shard browser: copies for the clipboard, and its state, which is saved and shared.

import { copyText, saveAs } from "../../host/core.mjs";
import { written } from "../marking/address.mjs";

export class Copies {
  /** @param {import("./browse.mjs").BrowserView} view */
  constructor(view) {
    this.view = view;
  }

  /** @param {string} text */
  async text(text) {
    const { view } = this;
    view.say((await copyText(text)) ? `copied: ${text.replaceAll("\n", " · ").slice(0, 160)}` : "the clipboard is closed to this page");
  }

  key() {
    const { view } = this;
    const item = view.rows.items.get(view.records.at);
    if (item) this.text(item.key);
  }

  record() {
    const { view } = this;
    const { record, field } = view.pane;
    if (record) this.text(record.python + (field ? `\nrecord[${JSON.stringify(field)}]` : ""));
  }

  async spec() {
    const { view } = this;
    try {
      await this.remember();
      const { r } = await view.rpc("call", {});
      this.text(r.python);
    } catch {
      this.text(view.config.python);
    }
  }

  compare() {
    const { view } = this;
    if (!view.marks.size) return view.say("Nothing is marked: Space marks the record.");
    view.rpc("call", { marked: true }).then(
      ({ r }) => this.text(r.python),
      (error) => view.trouble(error),
    );
    return undefined;
  }

  /** The columns of a CSV: those in view, where the table is; null: all. */
  get columns() {
    const { columns, shown } = this.view.table;
    return shown && columns?.length ? columns : null;
  }

  /** What is marked, or else what is shown, as a file. @param {string} kind tar, csv or txt */
  async save(kind) {
    const { view } = this;
    if (!kind) return;
    const marked = view.marks.size > 0;
    try {
      view.say(`gathering ${marked ? "the marked" : "all that show"} …`);
      await view.marks.told;
      const { r, buffers } = await view.rpc("export", {
        kind,
        query: view.records.query,
        marked,
        columns: kind === "csv" ? this.columns : null,
      });
      const name = `${
        view.config.title
          .split("/")
          .at(-1)
          .replace(/\.tar.*$/, "") || "records"
      }-${marked ? "marked" : "shown"}.${kind}`;
      saveAs(name, [/** @type {any} */ (buffers[0])]);
      view.say(`${r.count} records saved as ${name}`);
    } catch (error) {
      view.trouble(error);
    }
  }

  /** Keep what is shown: for Python, for a saved notebook, and in the page's address. */
  remember() {
    const { view } = this;
    if (view.scan.lost || view.searches.restoring || view.searches.next !== view.records.wish) return; // it is kept when it is there
    const shown = this.shown();
    const state = { selected: view.records.selected >= 0 ? view.records.selected : null, px: view.look.px, image: view.look.image, shown };
    view.model.send({ k: "tvz:state", session: view.rpc.session, state });
    if (!view.model.media) return;
    const address = `${location.href.split("#")[0]}#${written(shown, view.usual)}`;
    const { step, records, map } = view;
    const { area } = records.wish;
    const line = area && { area, map: map.points?.number }; // means something on this page alone
    view.step = false;
    if (step && (address !== location.href || JSON.stringify(line) !== JSON.stringify(history.state))) history.pushState(line, "", address);
    else history.replaceState(line, "", address);
  }

  /** @returns {import("../marking/address.mjs").Shown} */
  shown() {
    const { view } = this;
    const { where, sort, seed, column, descending, shard, only, objects } = view.records.wish;
    const item = view.rows.items.get(view.records.at);
    return {
      ...{ where, sort, seed, column, descending, shard, only, objects },
      picks: [...view.records.picks],
      view: view.table.shown ? "table" : "",
      map: view.map.shown,
      large: view.zoomed,
      px: view.look.px,
      image: view.look.image,
      label: view.look.labelChosen ? view.look.label : null,
      row: !item ? "" : item.key.length < 300 ? item.key : `#${view.records.at}`,
      at: view.records.at,
    };
  }
}
