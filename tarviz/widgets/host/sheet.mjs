// @ts-check
// The list of keys, as a sheet over a widget.

import { focusInPlace, h } from "./core.mjs";

export class KeySheet {
  /**
   * @param {string[][]} keys pairs of keys and what they do
   * @param {() => HTMLElement} root the widget it lies over
   * @param {() => void} close gives the keys back to the widget
   * @param {string} [more] a line below the keys
   */
  constructor(keys, root, close, more = "") {
    this.keys = keys;
    this.root = root;
    this.close = close;
    this.more = more;
    /** @type {HTMLElement | undefined} while it is shown */
    this.shown = undefined;
  }

  toggle() {
    if (this.shown) {
      this.shown.remove();
      this.shown = undefined;
      this.close();
      return;
    }
    const caps = (/** @type {string} */ names) =>
      names.split(" ").flatMap((name, at) => [at ? " " : "", /^(or|…|\(held\))$/.test(name) ? name : h("kbd", {}, name)]);
    const close = h("button", { onclick: () => this.toggle() }, "close");
    this.shown = h(
      "div",
      { class: "tvz-sheet", role: "dialog", "aria-modal": "true", "aria-label": "keys" },
      h("h2", {}, "Keys"),
      h("dl", {}, ...this.keys.flatMap(([names, what]) => [h("dt", {}, ...caps(names)), h("dd", {}, what)])),
      this.more && h("p", { class: "tvz-faint" }, this.more),
      close,
    );
    this.root().append(/** @type {HTMLElement} */ (this.shown));
    focusInPlace(close); // a long list begins at its beginning
  }
}
