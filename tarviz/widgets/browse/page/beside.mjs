// @ts-check
// Two to four records side by side; their pictures are zoomed and moved together.

import { fill, focusedBeside, h } from "../../host/core.mjs";
import { drawCard, linkZoom } from "./card.mjs";

const MOST_BESIDE = 4;

export class Beside {
  /** @param {Pick<import("./state.mjs").Page, "rpc" | "marks" | "status" | "leave"> & { pane: import("./record.mjs").RecordPane,
   *  layers: import("../../panes/overlay.mjs").Layers }} around */
  constructor(around) {
    this.around = around;
    this.ending = new AbortController();
    this.root = h("section", { class: "tvz-side-by-side", "aria-label": "records side by side", hidden: true });
  }

  get shown() {
    return !this.root.hidden;
  }

  /** Show the marked records, at most four. */
  async open() {
    const rows = [...this.around.marks.rows].sort((a, b) => a - b);
    if (rows.length < 2) return this.around.status.say("Mark two to four records (Space): they are shown side by side.");
    if (this.shown) this.close();
    this.root.hidden = false;
    fill(this.root, h("p", { class: "tvz-busy" }, "reading"));
    try {
      const answers = await Promise.all(rows.slice(0, MOST_BESIDE).map((row) => this.around.rpc("record", { row }, { keep: true })));
      this.draw(answers, rows.length);
    } catch (error) {
      this.close();
      this.around.status.trouble(error);
    }
    return undefined;
  }

  /** @param {{ r: any, buffers: DataView[] }[]} answers @param {number} marked */
  draw(answers, marked) {
    const { layers, pane } = this.around;
    const columns = answers.map(({ r, buffers }) =>
      h(
        "article",
        { class: "tvz-column", "aria-label": r.key },
        h("h2", { class: "tvz-cut", title: r.key, dir: "auto" }, r.key),
        ...(r.panel
          ? drawCard(r, buffers, pane.around(r, this.ending.signal), layers, () => {})
          : [h("p", { class: "tvz-faint" }, "no fields")]),
      ),
    );
    const close = h("button", { "aria-label": "back to the grid", title: "back to the grid (Esc)", onclick: () => this.close() }, "✕");
    const words = marked > MOST_BESIDE ? `the first ${MOST_BESIDE} of ${marked} marked` : `${columns.length} records`;
    fill(
      this.root,
      h("div", { class: "tvz-side-head" }, h("span", { class: "tvz-faint" }, words), close),
      h("div", { class: "tvz-columns" }, ...columns),
    );
    linkZoom(this.root);
    close.focus();
  }

  close() {
    const focused = this.root.contains(focusedBeside(this.root));
    this.ending.abort();
    this.ending = new AbortController();
    this.root.hidden = true;
    fill(this.root);
    if (focused) this.around.leave();
  }
}
