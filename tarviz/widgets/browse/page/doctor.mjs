// @ts-check
// The label doctor in the rail: labels against predictions, each cell a filter, the mistakes a model is surest of first.

import { button, fill, formatCount, h, table } from "../../host/core.mjs";

export class Doctor {
  /** @param {Pick<import("./state.mjs").Page, "rpc" | "records" | "searches" | "status"> & { rail: import("./rail.mjs").Rail }} around */
  constructor(around) {
    this.around = around;
    /** @type {any} the last answer */
    this.found = undefined;
    /** @type {{ truth?: string, predicted?: string }} columns that were chosen here */
    this.chosen = {};
    this.root = h("div", { class: "tvz-doctor" });
  }

  /** Count again. */
  async ask() {
    this.found = (await this.around.rpc("doctor", this.chosen)).r;
    this.draw();
  }

  /** Which columns are compared. @param {any} found */
  choosers(found) {
    const chooser = (/** @type {"truth" | "predicted"} */ name, /** @type {string} */ text, /** @type {string} */ other) => {
      const choices = found.choices.filter((/** @type {string} */ one) => one !== other);
      if (found[name] && !choices.includes(found[name])) choices.unshift(found[name]);
      const select = h(
        "select",
        {
          "aria-label": `column of ${text}`,
          title: `column of ${text}`,
          "data-name": `doctor ${name}`,
          onchange: () => {
            this.chosen = { ...this.chosen, [name]: select.value };
            this.ask().catch((/** @type {any} */ error) => this.around.status.trouble(error));
          },
        },
        h("option", { value: "" }, `${text} …`),
        ...choices.map((/** @type {string} */ one) => h("option", { value: one }, one)),
      );
      select.value = found[name] ?? "";
      return select;
    };
    return h(
      "div",
      { class: "tvz-figures tvz-doctor-columns" },
      chooser("truth", "labels", found.predicted),
      chooser("predicted", "predictions", found.truth),
    );
  }

  draw() {
    const { found } = this;
    const { records, rail } = this.around;
    if (!found?.choices.length) return fill(this.root);
    if (!found.predicted) {
      fill(this.root, h("h2", {}, "label doctor"), this.choosers(found));
      return rail.rove();
    }
    const { labels, counts, cells, truth, predicted } = found;
    const most = Math.max(1, ...counts.flatMap((/** @type {number[]} */ row, /** @type {number} */ i) => row.filter((_, j) => i !== j)));
    const cell = (/** @type {number} */ i, /** @type {number} */ j) => {
      const on = records.picks.get("doctor")?.where === cells[i][j];
      const one = h(
        "td",
        { class: `${i === j ? "tvz-right-cell" : ""}${on ? " tvz-on" : ""}` },
        counts[i][j]
          ? button(
              formatCount(counts[i][j]),
              `${truth} ${labels[i]}, taken for ${labels[j]}: ${formatCount(counts[i][j])}`,
              () => this.pickCell(cells[i][j], `${labels[i]} taken for ${labels[j]}`),
              { "data-name": `cell ${i} ${j}` },
            )
          : "·",
      );
      one.style.setProperty("--share", String(i === j ? 0 : counts[i][j] / most));
      return one;
    };
    const head = (/** @type {string} */ column) => (/** @type {string} */ label) =>
      h("th", { title: `${column} ${label}` }, h("span", { class: "tvz-cut" }, label));
    const corner = h("th", { title: `rows: ${truth}; columns: ${predicted}` }, "");
    const rows = labels.map((/** @type {string} */ label, /** @type {number} */ i) =>
      h("tr", {}, head(truth)(label), ...counts[i].map((/** @type {any} */ _, /** @type {number} */ j) => cell(i, j))),
    );
    const ranked = found.confidence ? `ranked by ${found.confidence}` : "";
    fill(
      this.root,
      h("h2", {}, "label doctor ", h("span", { class: "tvz-faint" }, `${(100 * found.accuracy).toFixed(1)} % of ${predicted} agree`)),
      this.choosers(found),
      h("div", { class: "tvz-doctor-scroll" }, table("tvz-confusion", [corner, ...labels.map(head(predicted))], rows)),
      h(
        "div",
        { class: "tvz-figures" },
        button("all that differ", ranked, () => this.pickCell(found.wrong, `${truth} is not ${predicted}`), {
          class: "tvz-link",
          "data-name": "mistakes",
        }),
        found.confidence ? h("span", { class: "tvz-faint" }, `surest first by ${found.confidence}`) : null,
        found.more ? h("span", { class: "tvz-faint" }, `${formatCount(found.more)} more labels are not shown`) : null,
      ),
    );
    return rail.rove();
  }

  /** The records of a cell, the surest first. @param {string} where @param {string} text */
  pickCell(where, text) {
    const { found } = this;
    const { records, searches } = this.around;
    const off = records.picks.get("doctor")?.where === where;
    const order =
      off || !found.confidence
        ? { sort: "order", column: undefined, descending: false }
        : { sort: "label", column: found.confidence, descending: true };
    searches.pick("doctor", where, text, [where], undefined, order);
    this.draw();
  }
}
