// @ts-check
// The numbers of a chain as sliders: each moves one number of one op, and the chain runs again.

import { fill, h, later } from "../host/core.mjs";

/**
 * A number of a chain (tarviz/widgets/compare/chain_numbers.py): where it stands, and how far it may go.
 * @typedef {{ op: number, name: string, at: number | null, label: string, value: number, low: number, high: number, step: number }} Wheel
 */

/** What tells whether the sliders that are there still fit. @param {{ name: string, numbers: Wheel[] } | undefined} column */
export const slidersOf = (column) =>
  column ? `${column.name}: ${column.numbers.map((wheel) => `${wheel.op} ${wheel.label}`).join(", ")}` : "";

/** A number as it is read beside its slider. @param {number} value */
export const numberText = (value) => String(Math.round(value * 1000) / 1000);

export class Sliders {
  /** @param {import("./compare.mjs").CompareView} view */
  constructor(view) {
    this.view = view;
    this.shown = false;
    this.fits = "";
    /** @type {Map<string, { slider: HTMLInputElement, text: HTMLElement }>} */
    this.wheels = new Map();
    this.box = h("div", { class: "tvz-sliders-list" });
    this.root = h("section", { class: "tvz-sliders", "aria-label": "numbers of the chain", hidden: true }, this.box);
    /** @type {(() => void) | undefined} */
    this.waiting = undefined;
    this.send = later(() => this.waiting?.(), 60, view.signal);
  }

  toggle() {
    this.shown = !this.shown;
    this.draw();
  }

  /** The sliders of the chain under the cursor; those that are there stay, so that one can be held while the chain runs. */
  draw() {
    const { view } = this;
    const number = view.at.column;
    const column = view.columns[number];
    const chain = column && view.columns.find((other) => other.name === column.name && other.runner === "eager");
    this.root.hidden = !this.shown || !chain;
    if (this.root.hidden) return;
    if (slidersOf(chain) !== this.fits) this.build(view.columns.indexOf(chain), chain);
    for (const wheel of chain.numbers) {
      const there = this.wheels.get(`${wheel.op} ${wheel.label}`);
      if (!there || view.root.ownerDocument.activeElement === there.slider) continue;
      there.slider.value = String(wheel.value);
      there.text.textContent = numberText(wheel.value);
    }
  }

  /** @param {number} number @param {{ name: string, numbers: Wheel[], chain: string }} column */
  build(number, column) {
    const { view } = this;
    this.fits = slidersOf(column);
    this.wheels.clear();
    const rows = column.numbers.map((wheel) => {
      const text = h("output", { class: "tvz-number" }, numberText(wheel.value));
      const slider = h("input", {
        type: "range",
        min: wheel.low,
        max: wheel.high,
        step: wheel.step,
        value: wheel.value,
        "aria-label": `${wheel.label} of ${column.name}`,
        oninput: (/** @type {any} */ event) => {
          const value = Number(event.target.value);
          text.textContent = numberText(value);
          this.waiting = () => view.changes.tune(number, wheel, value);
          this.send();
        },
      });
      this.wheels.set(`${wheel.op} ${wheel.label}`, { slider, text });
      return h("label", { class: "tvz-wheel" }, h("span", { class: "tvz-cut tvz-mono" }, wheel.label), slider, text);
    });
    const copy = h("button", { title: "copy the chain (y)", onclick: () => view.copy(view.columns[number]?.chain ?? "") }, "copy chain");
    fill(
      this.box,
      h("b", { class: "tvz-cut" }, column.name),
      ...(rows.length ? rows : [h("span", { class: "tvz-faint" }, "no numbers in this chain")]),
      copy,
    );
  }
}
