// @ts-check
// Strips of tiles: where each stands, how one moves among them, how one is drawn (messages of tarviz/widgets/compare/text.py).

import { h, refuse } from "../host/core.mjs";

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
  return numbers.sort((x, y) => chain(x) - chain(y) || x - y);
}

/**
 * Where an arrow leads. `lengths[record][column]` is how many steps there are; −1 for a strip that is not there yet.
 * @param {string} key @param {Place} at @param {{ order: number[], lengths: number[][], last: boolean }} grid @returns {Place | undefined}
 */
export function step(key, at, { order, lengths, last }) {
  const steps = (/** @type {number} */ record, /** @type {number} */ column) => Math.max(0, lengths[record]?.[column] ?? 0);
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
  ]
    .filter(Boolean)
    .join(", ");

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
 * @param {any} tile @param {Place} place @param {{ px: number, url: string | undefined }} options @returns {HTMLElement}
 */
export function drawStep(tile, place, { px, url }) {
  const box = h("div", { class: "tvz-box" });
  if (tile.error) refuse(box, tile.error, px);
  else if (url) {
    const picture = h("img", { src: url, alt: "", draggable: false, decoding: "async" });
    picture.onload = () => {
      const side = Math.max(picture.naturalWidth, picture.naturalHeight);
      if (side * 2 <= px) {
        picture.classList.add("tvz-pixels");
        const factor = Math.max(1, Math.floor(px / side));
        picture.style.width = `${picture.naturalWidth * factor}px`;
        picture.style.height = `${picture.naturalHeight * factor}px`;
      }
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
      line(
        tile.mapping && tile.mapping !== "as it is" ? `shown ${tile.mapping.split(" from ")[0]}` : "",
        "tvz-faint",
        `shown ${tile.mapping}`,
      ),
    ),
  );
}
