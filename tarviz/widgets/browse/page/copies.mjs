// @ts-check
// What leaves the shard browser: copies for the clipboard, and its state, which is saved and shared.

import { copyText, saveAs } from "../../host/core.mjs";

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
    const item = view.grid.items.get(view.at);
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
    if (!view.marked.size) return view.say("Nothing is marked: Space marks the record.");
    view.rpc("call", { marked: [...view.marked] }).then(
      ({ r }) => this.text(r.python),
      (error) => view.trouble(error),
    );
    return undefined;
  }

  /** What is marked, or else what is shown, as a file. @param {string} kind tar, csv or txt */
  async save(kind) {
    const { view } = this;
    if (!kind) return;
    const marked = view.marked.size ? [...view.marked] : null;
    const columns = view.table.columns?.length ? view.table.columns : null;
    try {
      view.say(`gathering ${marked ? "the marked" : "all that show"} …`);
      const { r, buffers } = await view.rpc("export", { kind, marked, columns: kind === "csv" ? columns : null });
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

  remember() {
    const { view } = this;
    if (view.searches.next !== view.wish) return; // filters of a search under way beside a record of the one before: it is kept when it is there
    const state = {
      selected: view.selected >= 0 ? view.selected : null,
      at: view.at,
      marked: [...view.marked].slice(0, 100_000),
      px: view.px,
      image: view.image,
      where: view.wish.where,
      sort: view.wish.sort,
      seed: view.wish.seed,
      shard: view.wish.shard,
      picks: [...view.picks],
      table: view.table.shown,
      map: view.map.shown,
    };
    if (view.lost) return;
    view.model.send({ k: "tvz:state", state });
    if (view.model.media) {
      const words = new URLSearchParams();
      if (state.where) words.set("where", state.where);
      if (state.picks.length) words.set("also", JSON.stringify(state.picks));
      if (state.sort !== "order") words.set("sort", state.sort);
      if (state.sort === "random") words.set("seed", String(state.seed));
      if (state.map) words.set("map", "on");
      if (state.table) words.set("view", "table");
      const item = view.grid.items.get(view.at);
      if (item) words.set("row", item.key.length < 300 ? item.key : `#${view.at}`);
      history.replaceState(null, "", `${location.pathname}#${words}`);
    }
  }
}
