// @ts-check
// The controls above the records: filter, order, shard, field, label, size, table, save.

import { button, fill, h, later } from "../../host/core.mjs";
import { Completion } from "../filters/complete.mjs";

const TOOL_TITLES = /** @type {Record<string, string>} */ ({
  order: "order of the records; r shuffles anew",
  "size of the tiles": "size of the tiles (+ −)",
});

export class Tools {
  /** @param {Pick<import("./state.mjs").Page, "config" | "signal" | "rpc" | "records" | "look" | "scan" | "searches" | "leave"> & {
   *  frame: Pick<import("./browse.mjs").BrowserView, "resize" | "showField" | "relabel" | "toggleTable" | "toggleMap" | "togglePane" | "toggleRail">,
   *  curation: import("../marking/curation.mjs").Curation, beside: import("./beside.mjs").Beside, keep: import("./keep.mjs").Keep }} around */
  constructor(around) {
    this.around = around;
    this.shardCount = -1;
    const { config, signal, records, look, searches, frame, curation, beside, keep } = around;
    const choose = (
      /** @type {string} */ name,
      /** @type {[any, string][]} */ choices,
      /** @type {any} */ value,
      /** @type {(v: string) => void} */ act,
    ) => {
      const select = h(
        "select",
        { "aria-label": name, title: TOOL_TITLES[name], onchange: () => act(select.value) },
        ...choices.map(([v, text]) => h("option", { value: v, selected: v === value }, text)),
      );
      return select;
    };
    this.filter = h("input", {
      type: "search",
      class: "tvz-filter",
      value: records.wish.where,
      spellcheck: false,
      autocapitalize: "off",
      autocomplete: "off",
      placeholder: "filter: cls = 3 and json.w > 300, has:json, or words in keys and texts",
      "aria-label": "filter",
      title: "Keys, columns, JSON paths, fields:  cls = 3 and json.w > 300   has:json   size(jpg) > 50000   txt like '%cat%'",
    });
    const apply = later(
      () => this.filter.value.trim() !== records.wish.where.trim() && searches.run({ where: this.filter.value }),
      400,
      signal,
    );
    this.filterHelp = new Completion(around, this.filter, { take: () => apply() });
    this.filter.addEventListener("input", apply, { signal });
    this.filter.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
      if (e.key !== "Enter") return;
      searches.run({ where: this.filter.value });
      around.leave();
    });
    this.go = h("input", {
      type: "text",
      class: "tvz-go",
      placeholder: "key or #number",
      "aria-label": "go to a key or #number",
      hidden: true,
      spellcheck: false,
      onkeydown: (/** @type {KeyboardEvent} */ e) => e.key === "Enter" && searches.goTo(this.go.value),
      onblur: () => {
        this.go.hidden = true;
      },
    });
    this.order = choose(
      "order",
      [
        ["order", "order: as in tar"],
        ["key", "order: by key"],
        ["size", "order: largest first"],
        ["label", "order: by caption"],
        ["random", "order: shuffled"],
      ],
      records.wish.sort,
      (sort) =>
        searches.run(sort.startsWith("by ") ? { sort: "label", column: sort.slice(3), descending: false } : { sort, column: undefined }),
    );
    this.tileSize = choose(
      "size of the tiles",
      config.sizes.map((/** @type {number} */ s) => [String(s), `${s} px`]),
      String(look.px),
      (px) => frame.resize(Number(px)),
    );
    this.field = h("select", {
      "aria-label": "field shown",
      title: "picture: the field that stands on the tiles",
      onchange: () => frame.showField(this.field.value),
    });
    this.label = h("input", {
      type: "text",
      class: "tvz-label-input",
      value: look.label,
      placeholder: "caption",
      "aria-label": "label below the tiles: a field or JSON path",
      title: "caption: the line below the tiles, a field or JSON path (cls, json.caption)",
      spellcheck: false,
      onchange: () => frame.relabel(this.label.value),
    });
    this.labelHelp = new Completion(around, this.label, { label: true, take: () => frame.relabel(this.label.value) });
    this.shard = h("select", {
      class: "tvz-shard-select",
      "aria-label": "shard",
      title: "shard",
      onchange: () => searches.run({ shard: this.shard.value === "" ? null : Number(this.shard.value) }),
    });
    const off = { "aria-pressed": "false" };
    const turn = () => searches.run({ descending: !searches.next.descending });
    this.turn = button("↓↑", "turn the order round", turn, { class: "tvz-turn-order", "aria-label": "descending", ...off });
    this.table = button("table", "table or tiles (t)", () => frame.toggleTable(), off);
    this.boxes = button("boxes", "a tile for each box instead of each record (x)", () => searches.toggleBoxes(), off);
    this.map = button("map", "map of the records, beside them (p)", () => frame.toggleMap(), off);
    this.save = h(
      "select",
      {
        class: "tvz-save",
        "aria-label": "save records",
        title: "save what is marked, or what is shown",
        onchange: () => {
          keep.kind.value = this.save.value;
          keep.open();
          this.save.value = "";
        },
      },
      h("option", { value: "" }, "save …"),
      h("option", { value: "tar" }, "as shards (.tar)"),
      h("option", { value: "csv" }, "as a table (.csv)"),
      h("option", { value: "parquet" }, "as a table (.parquet)"),
      h("option", { value: "txt" }, "keys (.txt)"),
    );
    this.mark = h(
      "select",
      {
        class: "tvz-mark-menu",
        "aria-label": "mark records",
        title: "mark what shows, or take marks away; Shift and click marks a range",
        onchange: () => {
          const act = /** @type {Record<string, () => void>} */ ({
            all: () => curation.all(),
            none: () => curation.none(),
            invert: () => curation.invert(),
            only: () => searches.toggleMarked(),
            beside: () => beside.open(),
            undo: () => curation.undo(),
            redo: () => curation.redo(),
          })[this.mark.value];
          this.mark.value = "";
          act?.();
        },
      },
      h("option", { value: "" }, "mark …"),
      h("option", { value: "all" }, "all that show (Ctrl+A)"),
      h("option", { value: "none" }, "none (N)"),
      h("option", { value: "invert" }, "the others instead (I)"),
      h("option", { value: "only" }, "show the marked only, or all (m)"),
      h("option", { value: "beside" }, "look at two to four side by side (b)"),
      h("option", { value: "undo" }, "take back (Ctrl+Z)"),
      h("option", { value: "redo" }, "do again (Ctrl+Y)"),
    );
    this.pane = button("details", "details of the record, beside the tiles: on or off (i)", () => frame.togglePane());
    this.rail = button("fields", "fields, classes, findings", () => frame.toggleRail(), {
      class: "tvz-rail-button",
      "aria-expanded": "false",
    });
    this.root = h(
      "div",
      { class: "tvz-tools", role: "toolbar", "aria-label": "what is shown" },
      this.filter,
      this.go,
      this.rail,
      this.shard,
      this.order,
      this.turn,
      this.field,
      this.label,
      this.tileSize,
      this.table,
      this.boxes,
      this.map,
      this.mark,
      this.save,
      this.pane,
    );
  }

  /** The controls say what was searched for. @param {any} wish */
  showSearch(wish) {
    this.filter.removeAttribute("aria-invalid");
    this.filter.value = wish.where;
    this.order.value = wish.column && wish.sort === "label" ? `by ${wish.column}` : wish.sort;
    this.turn.setAttribute("aria-pressed", String(wish.descending));
    this.boxes.setAttribute("aria-pressed", String(wish.objects));
    this.shard.value = wish.shard === null ? "" : String(wish.shard);
  }

  /** The shards that one can be chosen of. */
  offerShards() {
    const { scan, records } = this.around;
    if (scan.shards.length === this.shardCount) return;
    this.shardCount = scan.shards.length;
    this.shard.hidden = this.shardCount < 2;
    fill(
      this.shard,
      h("option", { value: "" }, "all shards"),
      ...scan.shards.slice(0, 500).map((/** @type {any} */ s) => h("option", { value: String(s.number) }, s.name)),
    );
    this.shard.value = records.wish.shard === null ? "" : String(records.wish.shard);
  }

  /** Columns to sort by, after the usual orders. @param {string[]} columns */
  offerColumns(columns) {
    const value = this.order.value;
    this.order.querySelector("optgroup")?.remove();
    const group = h(
      "optgroup",
      { label: "by column" },
      ...columns.slice(0, 100).map((name) => h("option", { value: `by ${name}` }, `order: ${name}`)),
    );
    this.order.append(group);
    this.order.value = value;
  }

  /** A key or a number is wanted. */
  askGo() {
    this.go.hidden = false;
    this.go.value = "";
    this.go.focus();
  }

  /** The fields that can stand on the tiles. @param {[string, ...any][]} fields */
  offerFields(fields) {
    const names = fields.map(([ext]) => ext);
    if (names.join() === this.fieldNames) return;
    this.fieldNames = names.join();
    fill(
      this.field,
      h("option", { value: "" }, "picture: first"),
      ...names.slice(0, 60).map((/** @type {string} */ ext) => h("option", { value: ext }, `picture: ${ext}`)),
    );
    this.field.value = this.around.look.image;
  }
}
