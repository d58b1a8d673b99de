// @ts-check
// The edges of rail and details: dragged, or moved by arrows; what was chosen is kept for the next page.

import { dragged, h } from "../../host/core.mjs";

/** Narrowest, usual and widest, in pixels. */
const EDGE_WIDTHS = { rail: [140, 210, 560], pane: [240, 350, 900] };
const EDGE_NAMES = { rail: "width of the filters", pane: "width of the details" };

/** The two edges. @param {HTMLElement} main what they divide, whose style holds the widths @param {() => void} changed @param {AbortSignal} signal */
export function splitters(main, changed, signal) {
  return /** @type {("rail" | "pane")[]} */ (["rail", "pane"]).map((side) => {
    const [least, usual, most] = EDGE_WIDTHS[side];
    const edge = h("div", {
      class: `tvz-edge tvz-edge-${side}`,
      role: "separator",
      tabIndex: 0,
      "aria-orientation": "vertical",
      "aria-label": EDGE_NAMES[side],
      "aria-valuemin": least,
      "aria-valuemax": most,
      title: "drag; double click: as usual",
    });
    let width = usual;
    const set = (/** @type {number} */ wish, keep = true) => {
      width = Math.round(Math.max(least, Math.min(most, wish)));
      main.style.setProperty(`--tvz-${side}-width`, `${width}px`);
      edge.setAttribute("aria-valuenow", String(width));
      if (keep) remembered(`tarviz-${side}`, width);
      changed();
    };
    const way = side === "rail" ? 1 : -1;
    dragged(
      edge,
      () => width,
      (from, moved) => set(from + way * moved),
    );
    edge.addEventListener("dblclick", () => set(usual), { signal });
    edge.addEventListener(
      "keydown",
      (/** @type {KeyboardEvent} */ e) => {
        const step = e.key === "ArrowRight" ? 16 : e.key === "ArrowLeft" ? -16 : 0;
        if (!step) return;
        e.preventDefault();
        e.stopPropagation();
        set(width + way * step);
      },
      { signal },
    );
    set(remembered(`tarviz-${side}`) ?? usual, false);
    return edge;
  });
}

/** A number that the next page finds again, where the host keeps any. @param {string} name @param {number} [value] @returns {number | undefined} */
function remembered(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, String(value));
    return Number(localStorage.getItem(name)) || undefined;
  } catch {
    return undefined; // a frame without a place of its own
  }
}
