// @ts-check
// The chains of a comparison as rows of a table: name, ops, seed, time, what comes out.

import { h } from "../host/core.mjs";

/** Whether the cursor is on a step of a chain. @param {import("./compare.mjs").CompareView} view @param {number} column */
export const isOn = (view, column) => view.at.column === column && view.at.step >= 0;

/** A row a chain, in the order they are shown. @param {import("./compare.mjs").CompareView} view */
export function chainRows(view) {
  return view.order.map((at) => {
    const column = view.columns[at];
    const eager = column.runner === "eager";
    return h(
      "tr",
      { class: isOn(view, at) ? "tvz-on" : "", onclick: () => view.select({ ...view.at, column: at, step: Math.max(0, view.at.step) }) },
      h("th", { class: "tvz-cut", dir: "auto" }, eager ? column.name : h("span", { class: "tvz-faint" }, `↳ ${column.runner}`)),
      h(
        "td",
        { class: "tvz-mono tvz-cut tvz-chain", title: column.chain },
        eager
          ? column.chain || "(no ops)"
          : h("span", { class: /^no diff/.test(column.apart) ? "tvz-good" : "" }, column.apart || (column.failed ? "failed" : "…")),
      ),
      h(
        "td",
        { class: "tvz-faint tvz-seed" },
        column.random && eager ? `seed ${column.seed} ` : "",
        column.random && eager
          ? h(
              "button",
              {
                class: "tvz-link",
                title: "new seed for this chain (r)",
                onclick: (/** @type {Event} */ e) => {
                  e.stopPropagation();
                  view.changes.reroll(at);
                },
              },
              "new",
            )
          : "",
      ),
      h("td", { class: "tvz-number" }, column.ms),
      h(
        "td",
        { class: "tvz-mono tvz-cut tvz-out" },
        column.failed ? h("span", { class: "tvz-bad" }, `${column.failed} failed`) : column.out,
      ),
      h(
        "td",
        {},
        eager
          ? h(
              "button",
              {
                class: "tvz-link",
                title: "copy the chain (y)",
                onclick: (/** @type {Event} */ e) => {
                  e.stopPropagation();
                  view.copy(column.chain);
                },
              },
              "copy",
            )
          : "",
      ),
    );
  });
}
