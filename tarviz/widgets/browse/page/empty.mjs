// @ts-check
// What stands where no record shows: why, and what could be asked for.

import { fill, formatCount, h } from "../../host/core.mjs";

export class Empty {
  /** @param {Pick<import("./state.mjs").Page, "config" | "rpc" | "records" | "scan" | "searches" | "status">} around */
  constructor(around) {
    this.around = around;
    /** the query whose emptiness was told */
    this.told = -1;
    this.root = h("p", { class: "tvz-empty tvz-faint", hidden: true });
  }

  /** Whether there is nothing to show, which is said once. */
  tell() {
    const { records, scan, searches } = this.around;
    const plain = records.plain() || (scan.exact && !scan.total);
    const nothing = records.count === 0 && (plain ? scan.exact : records.done);
    this.root.hidden = !nothing;
    if (!nothing || this.told === records.query) return nothing;
    this.told = records.query;
    fill(
      this.root,
      plain ? this.text() : records.failed ? "This cannot be asked: the line below says why. " : "No record fits. ",
      plain ? "" : h("button", { onclick: () => searches.showAll() }, "show all"),
    );
    if (!plain && !scan.lost) this.tellNames();
    return nothing;
  }

  /** Below an empty result: what a filter can ask for here. */
  async tellNames() {
    const query = this.around.records.query;
    try {
      const { r: found } = await this.around.rpc("why").catch(() => ({ r: { reasons: [] } })); // a condition with an error: the status says which
      if (query !== this.around.records.query) return;
      if (found.reasons.length) this.root.append(h("table", { class: "tvz-why" }, h("tbody", {}, ...found.reasons.map(reason))));
      const { r } = await this.around.rpc("columns");
      if (query === this.around.records.query && r.columns.length)
        this.root.append(
          h("span", { class: "tvz-names" }, "These records have: ", h("span", { class: "tvz-mono" }, r.columns.slice(0, 24).join("  "))),
        );
    } catch (error) {
      this.around.status.trouble(error);
    }
  }

  text() {
    if (!this.around.config.title) return "Nothing is open yet: open … above takes a path, a folder or a URL. ";
    const fault = this.around.scan.summary?.faults[0];
    return fault?.code.startsWith("E_") ? `No records can be shown. ${fault.code}: ${fault.message}` : "There are no records in here.";
  }
}

/** A condition and what it does, as a row. @param {[string, number, number, string]} found text, records it fits alone, records that fit the others, what its column holds */
function reason([text, fits, others, holds]) {
  const said =
    holds ||
    (fits && others ? `alone ${formatCount(fits)}; without it ${formatCount(others)} would fit` : fits ? `alone ${formatCount(fits)}` : "");
  return h(
    "tr",
    { class: fits ? "" : "tvz-bad" },
    h("td", { class: "tvz-mono" }, text),
    h("td", {}, fits ? "" : "fits none"),
    h("td", { class: "tvz-faint" }, said),
  );
}
