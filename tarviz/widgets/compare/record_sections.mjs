// @ts-check
// The records of a comparison: each with its original, and a strip of tiles for every chain.

import { h } from "../host/core.mjs";

/** A section a record. @param {import("./compare.mjs").CompareView} view */
export function recordSections(view) {
  const order = view.order;
  const several = order.length > 1;
  const waiting = () => h("p", { class: `tvz-faint${view.running ? " tvz-busy" : ""}` }, view.running ? "running" : "did not come");
  return view.records.map((record, number) => {
    const origin = view.tile(view.originals[number], { record: number, column: order[0], step: -1 });
    const strips = order.map((column) => {
      const strip = view.strips.get(`${number}:${column}`);
      const { name, runner } = view.columns[column];
      const label = h(
        "div",
        { class: "tvz-strip-name tvz-cut", title: `${name}, ${runner}` },
        several || runner !== "eager" ? (runner === "eager" ? name : `${name} · ${runner}`) : "",
        h("span", { class: "tvz-faint" }, ` ${strip ? (strip.failed ? "failed" : strip.apart || strip.ms) : ""}`),
      );
      const tiles = (strip?.tiles ?? []).map((/** @type {any} */ tile, /** @type {number} */ at) =>
        view.tile(tile, { record: number, column, step: at }),
      );
      if (strip && !tiles.length) tiles.push(h("p", { class: "tvz-faint" }, "no ops"));
      const shown = view.last ? tiles.slice(-1) : tiles;
      return h("div", { class: "tvz-strip" }, label, h("div", { class: "tvz-strip-tiles" }, ...(strip ? shown : [waiting()])));
    });
    return h(
      "section",
      { class: "tvz-record", role: "group", "aria-label": record.key },
      h("h3", { class: "tvz-cut", role: "presentation", dir: "auto", title: `${record.shard}, record ${record.number}` }, record.key),
      h(
        "div",
        { class: view.last ? "tvz-record-row" : "tvz-record-rows" },
        h(
          "div",
          { class: "tvz-strip tvz-origin" },
          h("div", { class: "tvz-strip-name tvz-faint" }, "original"),
          h("div", { class: "tvz-strip-tiles" }, origin),
        ),
        view.last ? h("div", { class: "tvz-lasts" }, ...strips) : h("div", { class: "tvz-all" }, ...strips),
      ),
    );
  });
}
