// @ts-check
// Suggestions below a text box: columns, functions and values that can stand at the cursor; arrows and Enter or Tab take one.

import { fill, h, later } from "../../host/core.mjs";
import { RpcError } from "../../host/requests.mjs";

export class Completion {
  /**
   * @param {Pick<import("../page/state.mjs").Page, "signal" | "rpc" | "scan">} around @param {HTMLInputElement} input
   * @param {{ label?: boolean, take?: () => void }} options `label`: a column is wanted; `take`: what to do when one was taken
   */
  constructor(around, input, { label = false, take = () => {} } = {}) {
    this.around = around;
    this.input = input;
    this.label = label;
    this.take = take;
    /** @type {[string, string][]} */
    this.items = [];
    this.start = 0;
    this.at = -1;
    this.uid = `tvzc${Math.random().toString(36).slice(2, 8)}`;
    this.list = h("div", { class: "tvz-complete", role: "listbox", id: this.uid, hidden: true, "aria-label": "suggestions" });
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", this.uid);
    input.setAttribute("aria-expanded", "false");
    this.askSoon = later(() => this.ask(), 150, around.signal);
    input.addEventListener("input", this.askSoon, { signal: around.signal });
    input.addEventListener("blur", () => this.close(), { signal: around.signal });
    input.addEventListener("keydown", (e) => this.press(e), { signal: around.signal, capture: true });
    this.list.addEventListener(
      "pointerdown",
      (/** @type {any} */ e) => {
        e.preventDefault(); // the box keeps the keys
        const one = e.target.closest("[data-at]");
        if (one) this.accept(Number(one.dataset.at));
      },
      { signal: around.signal },
    );
  }

  get shown() {
    return !this.list.hidden;
  }

  async ask() {
    const { input } = this;
    if (this.around.scan.lost || /** @type {any} */ (input.getRootNode()).activeElement !== input || !input.value) return this.close();
    const at = input.selectionStart ?? input.value.length;
    try {
      const { r } = await this.around.rpc("complete", { text: input.value, at, label: this.label });
      if (at !== input.selectionStart) return undefined;
      if (r.making) this.askSoon(); // values are known when their columns are
      if (this.shown && r.start === this.start && String(r.items) === String(this.items)) return undefined;
      this.start = r.start;
      this.items = r.items;
      this.at = -1;
      this.draw();
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      this.close();
    }
    return undefined;
  }

  draw() {
    const { input, list } = this;
    list.hidden = !this.items.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    fill(
      list,
      ...this.items.map(([text, note], at) =>
        h(
          "div",
          { role: "option", id: `${this.uid}-${at}`, "data-at": String(at), "aria-selected": String(at === this.at) },
          h("span", { class: "tvz-mono tvz-cut" }, text),
          h("span", { class: "tvz-faint tvz-cut" }, note),
        ),
      ),
    );
    if (this.at >= 0) input.setAttribute("aria-activedescendant", `${this.uid}-${this.at}`);
    else input.removeAttribute("aria-activedescendant");
    const frame = /** @type {HTMLElement} */ (list.parentElement).getBoundingClientRect();
    const box = input.getBoundingClientRect();
    list.style.left = `${Math.max(4, Math.min(box.left - frame.left, frame.width - 264))}px`;
    list.style.top = `${box.bottom - frame.top + 2}px`;
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (!this.shown) return;
    const count = this.items.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.at = event.key === "ArrowDown" ? (this.at + 1) % count : (this.at > 0 ? this.at : count) - 1;
      this.draw();
    } else if (event.key === "Tab" || (event.key === "Enter" && this.at >= 0)) this.accept(Math.max(0, this.at));
    else if (event.key === "Escape") this.close();
    else {
      if (event.key === "Enter") this.close();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} at */
  accept(at) {
    const [text] = this.items[at];
    const { input } = this;
    const end = input.selectionStart ?? input.value.length;
    const rest = input.value.slice(end);
    input.value = input.value.slice(0, this.start) + text + rest;
    input.setSelectionRange(this.start + text.length, this.start + text.length);
    this.close();
    this.take();
  }
}
