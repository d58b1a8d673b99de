// @ts-check
// A record as a card: its picture with what lies over it, pictures beside it that zoom along, captions, sound, data.

import { drawPanel } from "../../panes/panels.mjs";
import { drawOver, layerBar } from "../../panes/overlay.mjs";
import { h } from "../../host/core.mjs";

const VISUAL = new Set(["image", "points", "video", "audio", "frames", "turns"]);

/**
 * The value of a record as the pane shows it: one field, or its card where the controller sent one (tarviz/widgets/browse/record_pane/card.py).
 * @param {any} record @param {DataView[]} buffers @param {any} around @param {import("../../panes/overlay.mjs").Layers} layers
 * @param {(ext: string) => void} pick shows a field alone @param {(name: string) => void} [only] shows records with an object of this class alone
 * @returns {HTMLElement[]}
 */
export function drawCard(record, buffers, around, layers, pick, only) {
  const { panel, card, over } = record;
  Object.assign(layers.colours, record.colours);
  const cut = panel.blocks.findIndex(
    (/** @type {any} */ block) => !VISUAL.has(block.type) && block.kind !== "envelope" && block.tone !== "bad",
  );
  const lead = cut < 0 ? panel.blocks.length : cut;
  const items = card?.items ?? [];
  const split = items.length && lead > 0;
  const main = drawPanel(split ? { ...panel, blocks: panel.blocks.slice(0, lead), facts: [] } : panel, buffers, around);
  const parts = [main];
  if (over) parts.push(...layOver(main, over, buffers, around, layers, only));
  const pictures = items.filter((/** @type {any} */ item) => item.part === "picture");
  if (pictures.length) {
    const others = pictures.map((/** @type {any} */ item) => drawItem(item, buffers, around, pick));
    parts[0] = h("div", { class: "tvz-beside" }, named(record.ext, main, pick), ...others);
    linkZoom(parts[0]);
  }
  for (const item of items) if (item.part !== "picture") parts.push(drawItem(item, buffers, around, pick));
  if (card?.named.length)
    parts.push(
      h(
        "p",
        { class: "tvz-faint tvz-row" },
        "also: ",
        ...card.named.slice(0, 40).map((/** @type {string} */ ext) => h("button", { class: "tvz-link", onclick: () => pick(ext) }, ext)),
      ),
    );
  if (split) parts.push(drawPanel({ ...panel, controls: [], blocks: panel.blocks.slice(lead) }, buffers, around));
  return parts;
}

/** @param {string} ext @param {HTMLElement} inner @param {(ext: string) => void} pick */
const named = (ext, inner, pick) =>
  h(
    "section",
    { class: "tvz-item", "aria-label": ext },
    h("button", { class: "tvz-link tvz-item-name", title: `show ${ext} alone`, onclick: () => pick(ext) }, ext),
    inner,
  );

/** One field of a card, without what only matters when it is looked at alone. @param {any} item @param {DataView[]} buffers @param {any} around @param {(ext: string) => void} pick */
function drawItem({ ext, part, panel }, buffers, around, pick) {
  const field = around.fields.find((/** @type {any} */ one) => one.ext === ext);
  const own = { ...around, ext, size: field?.size ?? 0, media: around.mediaOf(ext) };
  const blocks = panel.blocks.filter((/** @type {any} */ block) => block.type !== "plot" || block.kind !== "bars");
  const keep = part === "sound" || (part === "data" && blocks[0]?.type !== "turns") ? blocks : blocks.slice(0, 1);
  const facts = part === "sound" ? panel.facts.filter((/** @type {string[]} */ [name]) => name === "duration") : [];
  const inner = drawPanel({ ...panel, controls: [], facts, blocks: keep }, buffers, own);
  inner.classList.add("tvz-compact", `tvz-part-${part}`);
  return named(ext, inner, pick);
}

/** What lies over the first picture of a panel. @param {HTMLElement} panel @param {any} over @param {DataView[]} buffers @param {any} around @param {import("../../panes/overlay.mjs").Layers} layers @param {(name: string) => void} [only] */
function layOver(panel, over, buffers, around, layers, only) {
  const view = /** @type {any} */ (panel.querySelector(".tvz-frame"))?.view;
  if (!view) return [];
  /** @type {HTMLImageElement[]} */
  const masks = [];
  over.masks.forEach((/** @type {any} */ mask, /** @type {number} */ at) => {
    const url = URL.createObjectURL(new Blob([/** @type {any} */ (buffers[mask.buffer])], { type: "image/png" }));
    const picture = new Image();
    picture.onload = () => {
      masks[at] = picture;
      view.draw();
    };
    picture.src = url;
    around.signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  });
  view.over = (/** @type {CanvasRenderingContext2D} */ pen, /** @type {any} */ place) =>
    drawOver(pen, over, layers, { ...place, scale: (place.scale * view.width) / (over.width || view.width) }, { masks });
  const bar = h("div", {});
  const redraw = () => {
    view.draw();
    bar.replaceChildren(layerBar(over, layers, redraw, only));
  };
  redraw();
  return [bar];
}

/** Pictures side by side show the same part. @param {HTMLElement} box */
export function linkZoom(box) {
  const views = [...box.querySelectorAll(".tvz-frame")].map((frame) => /** @type {any} */ (frame).view).filter(Boolean);
  for (const view of views) view.moved = () => views.forEach((other) => other !== view && other.follow(view));
}
