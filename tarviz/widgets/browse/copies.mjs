// @ts-check
// What leaves the shard browser: copies for the clipboard, and its state, which is saved and shared.

import { copyText } from "../host/core.mjs";

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
    view.rpc("call", { marked: [...view.marked] }).then(({ r }) => this.text(r.python), (error) => view.trouble(error));
    return undefined;
  }

  remember() {
    const { view } = this;
    const state = { selected: view.selected >= 0 ? view.selected : null, at: view.at, marked: [...view.marked].slice(0, 100_000), px: view.px, image: view.image, where: view.wish.where, sort: view.wish.sort, seed: view.wish.seed, shard: view.wish.shard };
    if (view.lost) return;
    view.model.send({ k: "tvz:state", state });
    if (view.model.media) {
      const words = new URLSearchParams();
      if (state.where) words.set("where", state.where);
      if (state.sort !== "order") words.set("sort", state.sort);
      if (state.sort === "random") words.set("seed", String(state.seed));
      const item = view.grid.items.get(view.at);
      if (item) words.set("row", item.key.length < 300 ? item.key : `#${view.at}`);
      history.replaceState(null, "", `${location.pathname}#${words}`);
    }
  }
}
