// @ts-check
// The table view: one row per record, a column an expression; sorted by a click on a column, widths by dragging its edge.

import { dragged, fill, formatCount, h, hits, MAX_SCROLL, scrollOf, topOf } from "../../host/core.mjs";

/** Pixels of a row: a picture of 32 and its rims. */
export const LINE_HEIGHT = 36;
const CELLS_AT_ONCE = 80;

export class TableView {
  /** @param {Pick<import("./state.mjs").Page, "signal" | "rpc" | "records" | "look" | "scan" | "marks" | "searches" | "status" | "select">
   *  & { rows: import("./rows.mjs").Rows, zoom: () => void }} around */
  constructor(around) {
    this.around = around;
    const { signal } = around;
    /** @type {string[] | undefined} columns that are shown; undefined until they were fetched */
    this.columns = undefined;
    /** @type {string[]} */
    this.offered = [];
    /** @type {Map<string, number>} */
    this.widths = new Map();
    /** @type {Map<number, any>} rows by position */
    this.items = new Map();
    /** @type {Set<number>} */
    this.asked = new Set();
    this.key = "";
    this.uid = `tvz${Math.random().toString(36).slice(2, 8)}`;
    this.frame = 0;
    this.head = h("div", { class: "tvz-thead", role: "row" });
    this.body = h("div", { class: "tvz-tbody", role: "rowgroup" });
    this.area = h("div", { class: "tvz-table-area", "aria-hidden": "true" });
    this.root = h(
      "div",
      { class: "tvz-tableview", role: "grid", tabIndex: 0, "aria-label": "records as a table", hidden: true },
      h("div", { role: "rowgroup", class: "tvz-thead-box" }, this.head),
      this.area,
      this.body,
    );
    this.root.addEventListener("scroll", () => this.draw(), { signal });
    this.body.addEventListener("click", (/** @type {any} */ e) => {
      const row = e.target.closest("[data-position]");
      if (row) around.select(Number(row.dataset.position));
    });
    this.body.addEventListener("dblclick", () => around.zoom());
  }

  get shown() {
    return !this.root.hidden;
  }

  async open() {
    if (!this.columns) {
      this.columns = [];
      try {
        const { r } = await this.around.rpc("columns");
        this.offered = r.columns;
        this.columns = r.columns.slice(0, 12);
      } catch (error) {
        this.columns = undefined;
        this.around.status.trouble(error);
      }
    }
    this.draw();
  }

  width(/** @type {string} */ column) {
    return (
      this.widths.get(column) ??
      (column === "key" ? 170 : /(caption|text|prompt|title|content|url|txt|instruction|transcript)/.test(column) ? 280 : 116)
    );
  }

  template() {
    return ["40px", ...["key", ...(this.columns ?? [])].map((column) => `${this.width(column)}px`)].join(" ");
  }

  /** @param {number} position */
  reveal(position) {
    const height = this.root.clientHeight - LINE_HEIGHT;
    const y = position * LINE_HEIGHT;
    const top = this.top();
    if (y < top) this.setTop(y);
    else if (y + LINE_HEIGHT > top + height) this.setTop(y + LINE_HEIGHT - height);
  }

  layout() {
    const height = this.around.records.count * LINE_HEIGHT + LINE_HEIGHT;
    return { height, scrollHeight: Math.min(height, MAX_SCROLL) };
  }

  top() {
    return topOf(this.root.scrollTop, this.layout(), this.root.clientHeight);
  }

  /** @param {number} top */
  setTop(top) {
    const layout = this.layout();
    this.area.style.height = `${layout.scrollHeight}px`; // or it cannot be scrolled there yet
    this.root.scrollTop = scrollOf(top, layout, this.root.clientHeight);
  }

  /** @param {number} margin rows more on both sides */
  visibleRange(margin) {
    const first = Math.max(0, Math.floor(this.top() / LINE_HEIGHT) - margin);
    return { first, stop: Math.min(this.around.records.count, first + Math.ceil(this.root.clientHeight / LINE_HEIGHT) + 2 * margin) };
  }

  /** The picture of a row, as small as a line is high. @param {number} position */
  thumbnail(position) {
    const { rows } = this.around;
    const url = rows.blobs.get(rows.items.get(position)?.picture ?? "");
    return h("div", { role: "gridcell", class: "tvz-cell tvz-thumb" }, url ? h("img", { src: url, alt: "", decoding: "async" }) : null);
  }

  draw() {
    if (this.frame || !this.shown) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.around.signal.aborted && this.shown) this.drawNow();
    });
  }

  drawNow() {
    const { records, marks } = this.around;
    const columns = /** @type {string[]} */ (this.columns ?? []);
    const key = `${records.query} ${columns.join("\n")}`;
    if (key !== this.key) {
      this.key = key;
      this.items.clear();
      this.asked.clear();
      this.drawHead();
    }
    this.area.style.height = `${this.layout().scrollHeight}px`;
    const { first, stop } = this.visibleRange(4);
    const shift = this.root.scrollTop - this.top();
    const rows = [];
    const template = this.template();
    for (let position = first; position < stop; position += 1) {
      const item = this.items.get(position);
      const selected = position === records.at && records.selected >= 0;
      const row = h(
        "div",
        {
          class: `tvz-trow${item && marks.has(item.id) ? " tvz-marked" : ""}`,
          role: "row",
          id: `${this.uid}-t${position}`,
          "aria-rowindex": position + 2,
          "aria-selected": String(selected),
          "data-position": position,
        },
        this.thumbnail(position),
        h(
          "div",
          { role: "rowheader", class: "tvz-cell tvz-cut", dir: "auto", title: item?.key ?? "" },
          ...hits(item?.key ?? "…", records.words),
        ),
        ...columns.map((_, at) => tableCell(item?.cells[at], records.words)),
      );
      row.style.gridTemplateColumns = template;
      row.style.top = `${LINE_HEIGHT + position * LINE_HEIGHT + shift}px`;
      rows.push(row);
    }
    fill(this.body, ...rows);
    this.root.setAttribute("aria-rowcount", String(records.count + 1));
    this.root.setAttribute("aria-colcount", String(columns.length + 2));
    const active = `${this.uid}-t${records.at}`;
    if (this.body.querySelector(`#${active}`)) this.root.setAttribute("aria-activedescendant", active);
    else this.root.removeAttribute("aria-activedescendant");
    this.fetch(first, stop);
  }

  drawHead() {
    const { wish } = this.around.records;
    /** @type {string} */
    const sorted = wish.sort === "label" ? (wish.column ?? this.around.look.label) : wish.sort === "key" ? "key" : "";
    const heads = ["key", ...(this.columns ?? [])].map((column) => {
      const on = column === sorted;
      const grip = h("span", { class: "tvz-grip", "aria-hidden": "true" });
      dragged(
        grip,
        () => this.width(column),
        (from, moved) => this.resize(column, from + moved),
      );
      grip.addEventListener("click", (/** @type {Event} */ e) => e.stopPropagation());
      return h(
        "div",
        { class: "tvz-th", role: "columnheader", "aria-sort": on ? (wish.descending ? "descending" : "ascending") : "none" },
        h(
          "button",
          { class: "tvz-cut", title: `sort by ${column}`, onclick: () => this.sort(column, on) },
          column,
          on ? (wish.descending ? " ↓" : " ↑") : "",
        ),
        grip,
      );
    });
    const open = this.head.querySelector("details")?.open ?? false;
    fill(this.head, h("div", { role: "columnheader", class: "tvz-chooser" }, this.chooser(open)), ...heads);
    this.head.style.gridTemplateColumns = this.template();
  }

  /** Which columns are shown: a list to tick. @param {boolean} open */
  chooser(open) {
    const { columns = [], offered } = this;
    const boxes = [...columns, ...offered.filter((name) => !columns.includes(name))].map((name) => {
      const box = h("input", { type: "checkbox", checked: columns.includes(name), onchange: () => this.change(name, box.checked) });
      return h("label", { class: "tvz-mono", dir: "auto" }, box, name);
    });
    const list = h("div", { class: "tvz-columns-list", role: "group", "aria-label": "columns" }, ...boxes);
    return h("details", { open }, h("summary", { title: "which columns are shown", "aria-label": "columns" }, "☰"), list);
  }

  /** @param {string} name @param {boolean} on */
  change(name, on) {
    if (!this.columns) return;
    this.columns = on ? [...this.columns, name] : this.columns.filter((one) => one !== name);
    this.draw();
  }

  /** @param {string} column @param {boolean} on */
  sort(column, on) {
    const { wish } = this.around.records;
    const descending = on && !wish.descending;
    this.around.searches.run(
      on && wish.descending
        ? { sort: "order", descending: false, column: undefined }
        : column === "key"
          ? { sort: "key", descending, column: undefined }
          : { sort: "label", column, descending },
    );
  }

  /** @param {string} column @param {number} width */
  resize(column, width) {
    this.widths.set(column, Math.max(48, width));
    this.head.style.gridTemplateColumns = this.template();
    this.draw();
  }

  /** @param {number} first @param {number} stop */
  async fetch(first, stop) {
    if (this.asked.size >= 2 || this.around.scan.lost) return;
    let start = first;
    while (start < stop && (this.items.has(start) || this.asked.has(start - (start % CELLS_AT_ONCE)))) start += 1;
    if (start >= stop) return;
    start -= start % CELLS_AT_ONCE;
    const { key } = this;
    this.asked.add(start);
    try {
      const { r } = await this.around.rpc(
        "cells",
        { query: this.around.records.query, start, stop: start + CELLS_AT_ONCE, columns: this.columns ?? [] },
        { keep: true },
      );
      if (key === this.key && !r.stale && r.ordered === this.around.records.ordered)
        r.rows.forEach((/** @type {any} */ row, /** @type {number} */ at) => this.items.set(start + at, row));
      if (this.items.size > 4000) for (const at of this.items.keys()) if (at < first - 400 || at > stop + 400) this.items.delete(at);
    } catch (error) {
      this.around.status.trouble(error);
      await new Promise((go) => setTimeout(go, 800));
    } finally {
      if (key === this.key) this.asked.delete(start);
    }
    this.draw();
  }
}

/** @param {any} value @param {string[]} words */
function tableCell(value, words) {
  const number = typeof value === "number";
  const text = Number.isInteger(value) ? formatCount(value) : String(number ? Number(value.toPrecision(6)) : (value ?? ""));
  return h(
    "div",
    { role: "gridcell", class: `tvz-cell tvz-cut${number ? " tvz-number" : ""}`, dir: number ? "ltr" : "auto", title: number ? "" : text },
    ...hits(text.replaceAll("\n", " ⏎ "), number ? [] : words),
  );
}
