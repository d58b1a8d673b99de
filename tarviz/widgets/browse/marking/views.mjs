// @ts-check
// Views that were given a name: filter, order, tiles or table, all that an address holds. Every page on these shards has them.

import { button, fill, h, menu } from "../../host/core.mjs";

export class Views {
  /** @param {Pick<import("../page/state.mjs").Page, "rpc" | "status"> & { places: import("../page/places.mjs").Places }} around */
  constructor(around) {
    this.around = around;
    /** @type {Record<string, string>} */
    this.known = {};
    this.name = h("input", {
      type: "text",
      placeholder: "name of what is shown",
      "aria-label": "name of the view",
      onkeydown: (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Enter") this.save();
      },
    });
    this.list = h("ul", {});
    const save = button("save", "keep what is shown under this name", () => this.save());
    this.box = menu(
      { class: "tvz-views", ontoggle: () => this.box.open && this.ask("views", {}) },
      "views",
      "filter, order and view, kept under a name",
      ...[this.list, h("div", { class: "tvz-views-new" }, this.name, save)],
    );
  }

  async save() {
    const name = this.name.value.trim();
    if (!name) return this.name.focus();
    if (!(await this.ask("save_view", { name, address: this.around.places.address() }))) return undefined;
    this.name.value = "";
    return this.around.status.say(`view ${name} is kept`);
  }

  /** Whether it was done. @param {string} request @param {any} message */
  async ask(request, message) {
    try {
      this.known = (await this.around.rpc(request, message)).r.views;
      this.draw();
      return true;
    } catch (error) {
      this.around.status.trouble(error);
      return false;
    }
  }

  draw() {
    const rows = Object.entries(this.known).map(([name, address]) => {
      const show = () => {
        this.box.open = false;
        this.around.places.show(address);
      };
      const drop = button("✕", "drop", () => this.ask("drop_view", { name }), { "aria-label": `drop the view ${name}` });
      const title = decodeURIComponent(address.replaceAll("+", " ")) || "all records, as in the tar";
      return h("li", {}, h("button", { class: "tvz-link tvz-cut", dir: "auto", title, onclick: show }, name), drop);
    });
    fill(this.list, ...(rows.length ? rows : [h("li", { class: "tvz-faint" }, "none yet")]));
  }
}
