// @ts-check
// Strips of tiles: where each stands, how one moves among them, how one is drawn (messages of tarviz/widgets/compare/text.py).

import { h, refuse } from "../host/core.mjs";
import { overTile } from "../panes/overlay.mjs";

/** @typedef {{ record: number, column: number, step: number }} Place `step` −1: the record before any op */

/** @param {Place} at */
export const placeName = ({ record, column, step }) => (step < 0 ? `${record}:` : `${record}:${column}:${step}`);

/**
 * Columns in the order they are shown: as given, or the fastest chain first; other runners follow their chain.
 * @param {{ name: string, seconds: number | null, runner: string }[]} columns @param {boolean} byTime
 */
export function columnOrder(columns, byTime) {
  const numbers = columns.map((_, at) => at);
  if (!byTime) return numbers;
  const chain = (/** @type {number} */ at) =>
    columns.find((other) => other.name === columns[at].name && other.runner === "eager")?.seconds ?? Infinity;
  return numbers.sort((x, y) => chain(x) - chain(y));
}

/**
 * Where an arrow leads. `lengths[record][column]` is how many steps there are, or have come.
 * @param {string} key @param {Place} at @param {{ order: number[], lengths: number[][], last: boolean }} grid @returns {Place | undefined}
 */
export function step(key, at, { order, lengths, last }) {
  const steps = (/** @type {number} */ record, /** @type {number} */ column) => lengths[record]?.[column] ?? 0;
  const put = (/** @type {number} */ record, /** @type {number} */ column, /** @type {number} */ wanted) => ({
    record,
    column,
    step: Math.min(wanted, steps(record, column) - 1),
  });
  const row = order.indexOf(at.column);
  const records = lengths.length;
  const [across, down] = [{ ArrowLeft: -1, ArrowRight: 1 }[key], { ArrowUp: -1, ArrowDown: 1 }[key]];
  if (across !== undefined && last) {
    const position = (at.step < 0 ? -1 : row) + across;
    if (position < 0) return { ...at, step: -1 };
    return position < order.length ? put(at.record, order[position], Infinity) : at;
  }
  if (across !== undefined) return { ...at, step: Math.max(-1, Math.min(steps(at.record, at.column) - 1, at.step + across)) };
  if (down === undefined) return undefined;
  const position = last ? row : row + down;
  if (!last && position >= 0 && position < order.length) return put(at.record, order[position], at.step);
  const record = at.record + down;
  if (record < 0 || record >= records) return at;
  const column = last ? at.column : order[down > 0 ? 0 : order.length - 1];
  return put(record, column, last && at.step >= 0 ? Infinity : at.step);
}

/** A tile in one sentence, for a screen reader. @param {any} tile */
export const tileLabel = (tile) =>
  [
    tile.op || "original",
    tile.error ? `failed: ${tile.error}` : "",
    tile.feature,
    tile.range,
    tile.ms,
    tile.drawn,
    tile.mapping ? `shown ${tile.mapping}` : "",
    tile.over?.shapes.length ? `${tile.over.shapes.length} drawn over it` : "",
    tile.behind,
  ]
    .filter(Boolean)
    .join(", ");

/**
 * How large a picture is drawn in a tile: small ones grow by whole numbers, large ones shrink to fit.
 * @param {number} width @param {number} height @param {number} px
 */
export function tileScale(width, height, px) {
  const side = Math.max(width, height);
  return side * 2 <= px ? Math.floor(px / side) : Math.min(1, px / side);
}

/** The difference of two steps in words. @param {any} r the controller's answer */
export function differenceText(r) {
  if (r.text) return r.text;
  const short = (/** @type {number | null} */ value) =>
    value === null
      ? "not finite"
      : value === 0
        ? "0"
        : Math.abs(value) >= 1
          ? String(Math.round(value * 1000) / 1000)
          : value.toPrecision(3);
  if (r.max === 0) return `no difference (${r.kind})`;
  return `largest ${short(r.max)}${r.at.length ? ` at (${r.at.slice(0, 2).reverse().join(", ")})` : ""} · mean ${short(r.mean)} · ${(r.share * 100).toFixed(r.share < 0.1 ? 2 : 0)} % differ (${r.kind})`;
}

/**
 * A step as a tile: its picture, text or reason, and what is known of it.
 * @param {any} tile @param {Place} place @param {{ px: number, url: string | undefined, layers: import("../panes/overlay.mjs").Layers, mask?: string }} options @returns {HTMLElement}
 */
export function drawStep(tile, place, { px, url, layers, mask }) {
  const box = h("div", { class: "tvz-box" });
  if (tile.error) refuse(box, tile.error, px);
  else if (url) {
    const picture = h("img", { src: url, alt: "", draggable: false, decoding: "async" });
    picture.onload = () => {
      const [width, height] = [picture.naturalWidth, picture.naturalHeight];
      const factor = tileScale(width, height, px);
      if (factor >= 2) {
        picture.classList.add("tvz-pixels");
        picture.style.width = `${width * factor}px`;
        picture.style.height = `${height * factor}px`;
      }
      if (!tile.over || !layers.shown) return;
      const [x, y] = [(px - width * factor) / 2, (px - height * factor) / 2];
      overTile(tile.over, layers, { picture, scale: (width * factor) / tile.over.width, x, y }, mask);
    };
    box.append(picture);
  } else box.append(h("span", { class: "tvz-snippet tvz-mono", dir: "auto" }, tile.text));
  const line = (/** @type {string} */ text, /** @type {string} */ kind = "tvz-faint", title = text) =>
    text ? h("span", { class: `tvz-cut ${kind}`, title }, text) : null;
  return h(
    "div",
    {
      class: "tvz-ctile",
      role: "option",
      "aria-selected": "false",
      "aria-label": tileLabel(tile),
      "data-place": JSON.stringify(place),
      title: tile.op,
    },
    box,
    // for the mouse; by keys they are a and b
    h(
      "span",
      { class: "tvz-pins", "aria-hidden": "true" },
      ...["a", "b"].map((which) =>
        h("span", { "data-pin": which, title: `show this step as ${which.toUpperCase()} (${which})` }, which.toUpperCase()),
      ),
    ),
    h(
      "div",
      { class: "tvz-ccap" },
      line(tile.op.includes(": the whole chain") ? tile.op.split(":")[0] : tile.op || tile.ext, "tvz-op"),
      line(
        tile.error
          ? ""
          : `${tile.op && tile.ext && !tile.op.includes(`(${tile.ext}`) ? `${tile.ext}: ` : ""}${tile.feature.replaceAll(", ", ",")}`,
        "tvz-mono",
      ),
      tile.error ? null : h("span", { class: "tvz-ctimes tvz-faint" }, line(tile.range), h("span", { class: "tvz-number" }, tile.ms)),
      line(tile.drawn, "tvz-drawn"),
      line(tile.behind, "tvz-behind"),
      line(
        tile.mapping && tile.mapping !== "as it is" ? `shown ${tile.mapping.split(" from ")[0]}` : "",
        "tvz-faint",
        `shown ${tile.mapping}`,
      ),
    ),
  );
}

/** Text cut into lines of at most `width` letters. @param {string} text @param {number} width */
export function lines(text, width) {
  const made = [""];
  for (const word of text.split(/\s+/)) {
    for (let piece = word; piece; piece = piece.slice(width)) {
      const part = piece.slice(0, width);
      const last = made[made.length - 1];
      if (last && last.length + 1 + part.length <= width) made[made.length - 1] = `${last} ${part}`;
      else if (last) made.push(part);
      else made[made.length - 1] = part;
    }
  }
  return made;
}
