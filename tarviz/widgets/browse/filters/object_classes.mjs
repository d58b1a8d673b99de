// @ts-check
// The classes of objects in the rail: how many records have one, a click filters.

import { fill, h } from "../../host/core.mjs";

const COUNTED_UNASKED = 5000; // records whose objects are counted before somebody asks
const FEW_CLASSES = 12;

export class ObjectClasses {
  /** @param {Pick<import("../page/state.mjs").Page, "rpc" | "records" | "scan" | "searches" | "status"> & {
   *  layers: import("../../panes/overlay.mjs").Layers, rail: import("../page/rail.mjs").Rail }} around */
  constructor(around) {
    this.around = around;
    this.asked = "";
    this.busy = false;
    this.wanted = false;
    this.all = false;
    /** @type {[string, number, number, number][]} name, objects, records, records shown */
    this.classes = [];
    this.root = h("div", { class: "tvz-classes" });
  }

  /** The search, the version of the columns, how many records there are, whether columns can be asked, whether boxes were seen. */
  get state() {
    const { records, scan, layers } = this.around;
    const { state, version } = scan.columns;
    const boxes = records.wish.objects || Object.keys(layers.colours).some(Boolean);
    return { query: records.query, version, total: scan.total, ready: scan.exact && records.done && state === "ready", boxes };
  }

  /** Whether polling has to go on for what is still to be counted. */
  get settled() {
    const { query, version, total, ready, boxes } = this.state;
    return !boxes || !ready || (!this.wanted && total > COUNTED_UNASKED) || this.asked === `${query} ${version}`;
  }

  async follow() {
    const { query, version, boxes, ready } = this.state;
    if (this.busy || !boxes || !ready) return;
    if (this.settled) return this.classes.length ? undefined : this.draw();
    this.busy = true;
    try {
      const { r } = await this.around.rpc("object_classes", { query });
      if (r.stale) return;
      this.classes = r.classes;
      this.asked = `${query} ${r.version}`;
    } catch (error) {
      this.asked = `${query} ${version}`;
      this.around.status.trouble(error);
    } finally {
      this.busy = false;
    }
    this.draw();
  }

  draw() {
    const count = () => {
      this.wanted = true;
      this.follow();
    };
    const more = () => {
      this.all = true;
      this.draw();
    };
    const most = Math.max(...this.classes.map(([, , records]) => records));
    const shown = this.classes.slice(0, this.all ? undefined : FEW_CLASSES);
    const left = this.classes.length - shown.length;
    const link = (/** @type {string} */ name, /** @type {string} */ text, /** @type {() => void} */ act) =>
      h("button", { class: "tvz-link", "data-name": name, onclick: act }, text);
    fill(
      this.root,
      h("h2", { title: "records that have an object of a class" }, "objects"),
      this.classes.length || this.asked ? null : link("count objects", "count their classes", count),
      ...shown.map((row) => this.bar(row, most)),
      left > 0 ? link("more classes", `${left} more`, more) : null,
    );
    this.around.rail.rove();
  }

  /** @param {[string, number, number, number]} row @param {number} most */
  bar([name, objects, records, shown], most) {
    const picked = this.around.searches.pickedClasses();
    const on = picked.includes(name);
    const dot = h("span", { class: "tvz-swatch" });
    dot.style.background = this.around.layers.colour(name);
    const act = (/** @type {MouseEvent} */ e) => {
      const others = e.ctrlKey || e.metaKey || e.shiftKey ? picked.filter((one) => one !== name) : [];
      this.around.searches.pickClasses(on ? others : [...others, name]);
    };
    const bar = h(
      "button",
      {
        class: `tvz-bar${on ? " tvz-on" : ""}`,
        title: `${objects} objects in ${records} records; with Ctrl or Shift: this too`,
        "data-name": `object ${name}`,
        "aria-pressed": String(on),
        onclick: act,
      },
      h("span", { class: "tvz-cut", dir: "auto" }, dot, name),
      h("span", { class: "tvz-faint tvz-number" }, shown === records ? String(records) : `${shown} / ${records}`),
    );
    bar.style.setProperty("--share", String(records / most));
    bar.style.setProperty("--kept", String(shown / most));
    return bar;
  }
}
