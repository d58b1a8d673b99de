// @ts-check
// Other shards, opened from the page: a path, a folder or a URL, or one of those that were opened last.

import { fill, h, menu } from "../../host/core.mjs";

let openings = 0;

export class Opening {
  /** @param {Pick<import("./state.mjs").Page, "rpc" | "status">} around @param {boolean} open shown at once: there is nothing else to see */
  constructor(around, open) {
    this.around = around;
    const recent = h("datalist", { id: `tvz-recent-${(openings += 1)}` });
    this.path = h("input", {
      type: "text",
      class: "tvz-mono",
      placeholder: "data/train-{0000..0003}.tar, a folder, s3://…",
      "aria-label": "shards to open: a path, a folder or a URL",
      spellcheck: false,
      list: recent.id,
      onkeydown: (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Enter") this.go(this.path.value);
      },
    });
    this.recent = recent;
    this.list = h("ul", {});
    const go = h("button", { onclick: () => this.go(this.path.value) }, "open");
    const line = h("div", { class: "tvz-views-new" }, this.path, go);
    this.box = menu(
      { class: "tvz-views tvz-opening", open, ontoggle: () => this.box.open && this.ask() },
      "open …",
      "other shards on a page of their own",
      ...[line, recent, this.list],
    );
  }

  async ask() {
    this.path.focus();
    try {
      const { r } = await this.around.rpc("recent");
      fill(this.recent, ...r.recent.map((/** @type {string} */ url) => h("option", { value: url })));
      const rows = r.recent.map((/** @type {string} */ url) =>
        h("li", {}, h("button", { class: "tvz-link tvz-cut", dir: "auto", title: url, onclick: () => this.go(url) }, url)),
      );
      fill(this.list, ...rows);
    } catch (error) {
      this.around.status.trouble(error);
    }
  }

  /** @param {string} url */
  async go(url) {
    try {
      const { r } = await this.around.rpc("open", { url });
      const event = new CustomEvent("tarviz-open", { detail: r.address, cancelable: true });
      if (window.dispatchEvent(event)) location.assign(r.address); // unless JupyterLab does it
    } catch (error) {
      this.around.status.trouble(error);
    }
  }
}
