// @ts-check
// The keys of the shard browser, and the sheet that lists them.

import { isTyping, leave, move } from "../../host/core.mjs";
import { KeySheet } from "../../host/sheet.mjs";
import { LINE_HEIGHT } from "./table.mjs";

/** What the keys do, as the help sheet lists it. */
export const KEYS = [
  ["← ↑ → ↓ or h j k l", "move"],
  ["Home End PgUp PgDn", "move far"],
  ["Enter", "enlarge the record"],
  ["Esc", "back; again: leave the browser"],
  ["[ ]", "shard before, shard after"],
  ["g", "go to a key or #number"],
  ["/", "filter"],
  ["1 … 9", "field of the record"],
  ["0", "all its fields: the card"],
  ["o", "boxes, outlines, masks on or off"],
  ["Shift (held)", "hide the labels"],
  ["+ −", "size of the tiles, or of the enlarged picture"],
  ["r", "shuffle anew"],
  ["Space", "mark"],
  ["Shift+click Shift+arrows", "mark a range"],
  ["Ctrl+A", "mark all that show"],
  ["N", "unmark all"],
  ["I", "mark the others instead"],
  ["Ctrl+Z Ctrl+Y", "take back, do again: marks, tags, filters"],
  ["m", "marked records only"],
  ["b", "the marked side by side: two to four"],
  ["T", "tag the marked, or the record"],
  ["y", "copy the key"],
  ["Y", "copy as Python"],
  ["c", "copy a comparison of the marked"],
  ["i", "details of the record on or off"],
  ["t", "table or tiles"],
  ["x", "a tile for each box, or for each record"],
  ["p", "map of the records; Shift and drag: a line around points"],
  ["?", "this list"],
];

const FILTERS =
  "Filter: cls = 3 and json.w > 300 · has:json · not has:cls · is:bad · size(jpg) > 50000 · txt like '%cat%' · matches(key, '^val/') · or words in keys and texts. Columns in the rail: click a value (Ctrl: one more), drag over bars.";

/** What a key does may be anything that the page can: they act on the view itself. */
export class Keys {
  /** @param {import("./browse.mjs").BrowserView} view */
  constructor(view) {
    this.view = view;
    this.sheet = new KeySheet(
      KEYS,
      () => view.root,
      () => view.list.focus(),
      FILTERS,
    );
  }

  /** @param {string} name @param {KeyboardEvent} event */
  press(name, event) {
    const { view } = this;
    if (name === "Shift") {
      view.root.classList.add("tvz-bare");
      return false;
    }
    if (name === "Escape") return this.escape(isTyping(event));
    if (this.sheet.shown) {
      if (name === "?") this.sheet.toggle();
      return name === "?";
    }
    const inGrid = view.list.contains(/** @type {Node} */ (event.target)) || view.zoomed;
    const inRail = view.rail.list.contains(/** @type {Node} */ (event.target));
    if (inRail && (name === "ArrowDown" || name === "ArrowUp")) {
      view.searches.stepShard(name === "ArrowDown" ? 1 : -1);
      return true;
    }
    const layout = view.grid.measure();
    if (inGrid || /^[hjkl]$/.test(name)) {
      const to = move(name, view.records.at, {
        columns: view.table.shown || (view.zoomed && /Arrow(Up|Down)|^[jk]$/.test(name)) ? 1 : layout.columns,
        rows: view.table.shown
          ? Math.floor(view.table.root.clientHeight / LINE_HEIGHT) - 1
          : Math.floor(view.grid.viewHeight() / layout.rowHeight),
        count: view.records.count,
      });
      if (to !== undefined) {
        if (!event.shiftKey) view.curation.begin(to);
        view.select(to);
        if (event.shiftKey) view.curation.range(to);
        return true;
      }
    }
    if ((name === "Enter" || name === "Space") && !inGrid) return false;
    if (/^[0-9]$/.test(name)) {
      view.pane.pickField(Number(name) - 1);
      return true;
    }
    const acts = /** @type {Record<string, () => void>} */ ({
      Enter: () => view.zoom(!view.zoomed),
      "[": () => view.searches.stepShard(-1),
      "]": () => view.searches.stepShard(1),
      g: () => view.tools.askGo(),
      "/": () => {
        view.tools.filter.focus();
        view.tools.filter.select();
      },
      "+": () => this.step(1),
      "=": () => this.step(1),
      "-": () => this.step(-1),
      r: () =>
        view.searches.run({
          sort: "random",
          seed: view.records.wish.sort === "random" ? view.records.wish.seed + 1 : view.records.wish.seed,
        }),
      Space: () => view.curation.toggle(),
      N: () => view.curation.none(),
      I: () => view.curation.invert(),
      b: () => view.beside.open(),
      m: () => view.searches.toggleMarked(),
      y: () => view.copies.key(),
      Y: () => view.pane.copy(),
      c: () => view.copies.compare(),
      i: () => view.togglePane(),
      "?": () => this.sheet.toggle(),
      o: () => view.toggleOver(),
      T: () => view.tagging.open(),
      t: () => view.toggleTable(),
      x: () => view.searches.toggleBoxes(),
      p: () => view.toggleMap(),
    });
    for (const control of ["Ctrl+", "Meta+"]) {
      acts[`${control}a`] = () => view.curation.all();
      acts[`${control}z`] = () => view.curation.undo();
      acts[`${control}y`] = acts[`${control}Z`] = () => view.curation.redo();
    }
    if (!acts[name]) return false;
    acts[name]();
    return true;
  }

  /** @param {boolean} typing */
  escape(typing) {
    const { view } = this;
    if (this.sheet.shown) this.sheet.toggle();
    else if (view.closeMenus()) view.list.focus();
    else if (view.beside.shown) view.beside.close();
    else if (view.sql.shown) view.sql.close();
    else if (typing) view.list.focus();
    else if (view.root.classList.contains("tvz-railed")) view.showRail(false);
    else if (view.zoomed) view.zoom(false);
    else leave(view.root);
    return true;
  }

  /** Larger or smaller: the tiles, or the picture when the record is enlarged. @param {number} by */
  step(by) {
    const { view: browser } = this;
    const view = /** @type {any} */ (browser.zoomed && browser.pane.root.querySelector(".tvz-frame"))?.view;
    if (view) return view.zoom(by > 0 ? 1.5 : 1 / 1.5);
    const sizes = browser.config.sizes;
    const at = sizes.indexOf(browser.look.px) + by;
    if (sizes[at]) browser.resize(sizes[at]);
    return undefined;
  }
}
