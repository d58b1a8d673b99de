// @ts-check
// What lies over a picture: boxes, polygons, key points and masks, on tiles and on the picture of the record pane.

import { finely, h, screenDots } from "../host/core.mjs";

/**
 * What the controller says of one record (tarviz/widgets/panes/overlays.py): sizes in pixels of the whole picture.
 * @typedef {{ width: number, height: number, shapes: ["box" | "polygon" | "points" | "mask", number[], string, number | null][], masks: any[] }} Over
 * @typedef {{ picture: HTMLImageElement, scale: number, x: number, y: number }} Laid where the picture lies, in CSS pixels
 */

const DASHES = [[], [7, 3], [2, 3]];

/** What of the overlays is shown, shared by tiles and pane; `changed` is called when the reader changes it. */
export class Layers {
  /** @param {Record<string, string>} colours name → #rrggbb @param {() => void} changed */
  constructor(colours, changed) {
    this.colours = colours;
    this.changed = changed;
    this.on = { box: true, polygon: true, points: true, mask: true, names: true };
    this.shown = true;
    this.opacity = 0.5;
    /** what has a lower score is not drawn */
    this.least = 0;
    /** @type {Set<string>} classes that are hidden */
    this.hidden = new Set();
    /** @type {Map<string, number[]>} */
    this.dashes = new Map();
  }

  /** @param {string} name */
  colour(name) {
    return this.colours[name] ?? "#ffb000";
  }

  /** Lines of the first ten classes are whole, those of the next are dashed, then dotted. @param {string} name @returns {number[]} */
  dash(name) {
    if (this.dashes.size !== Object.keys(this.colours).length)
      this.dashes = new Map(Object.keys(this.colours).map((each, at) => [each, DASHES[Math.floor(at / 10) % DASHES.length]]));
    return this.dashes.get(name) ?? [];
  }

  /** @param {keyof Layers["on"]} kind */
  toggle(kind) {
    this.on[kind] = !this.on[kind];
    this.changed();
  }

  /** @param {string} name */
  hide(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    this.changed();
  }
}

/**
 * The places where a mask of run lengths is: left, top, width, height in its own pixels.
 * @param {number[]} numbers height, width, then runs of 0 and 1 in turn, down one column after the other
 */
export function runRects(numbers) {
  const height = numbers[0];
  /** @type {[number, number, number, number][]} */
  const rects = [];
  for (let at = 0, place = 2; place < numbers.length; at += numbers[place], place += 1) {
    if (place % 2 === 0) continue;
    const end = at + numbers[place];
    const first = Math.min(end, Math.ceil(at / height) * height);
    const last = Math.max(first, Math.floor(end / height) * height);
    if (first > at) rects.push([Math.floor(at / height), at % height, 1, first - at]);
    if (last > first) rects.push([first / height, 0, (last - first) / height, height]);
    if (end > last) rects.push([last / height, 0, 1, end - last]);
  }
  return rects;
}

/** Masks of a record as they were painted last, all in one. @type {WeakMap<Over["shapes"], { state: string, canvas: HTMLCanvasElement }>} */
const painted = new WeakMap();

/** @param {Over["shapes"]} shapes @param {Layers} layers @returns {HTMLCanvasElement | undefined} */
function runMasks(shapes, layers) {
  const masks = shapes.filter(([kind]) => kind === "mask");
  if (!masks.length) return undefined;
  // without a name each has a colour of its own, as the numbers of a mask have
  const colours = masks.map(([, , name], at) => (name ? layers.colour(name) : `hsl(${((at + 1) * 137.5 + 191) % 360} 72% 60%)`));
  const hidden = masks.map(([, , name, score]) => layers.hidden.has(name) || (score !== null && score < layers.least));
  const state = [colours, hidden].join();
  const before = painted.get(shapes);
  if (before?.state === state) return before.canvas;
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", {}));
  [canvas.height, canvas.width] = masks[0][1];
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  masks.forEach(([, numbers], at) => {
    if (hidden[at]) return;
    pen.setTransform(canvas.width / numbers[1], 0, 0, canvas.height / numbers[0], 0, 0);
    pen.fillStyle = colours[at];
    for (const rect of runRects(numbers)) pen.fillRect(...rect);
  });
  painted.set(shapes, { state, canvas });
  return canvas;
}

/**
 * Draw shapes and masks where a picture lies.
 * @param {CanvasRenderingContext2D} pen @param {Over} over @param {Layers} layers @param {{ scale: number, x: number, y: number }} place
 * @param {{ names?: boolean, masks?: (HTMLImageElement | undefined)[] }} [options]
 */
export function drawOver(pen, over, layers, { scale, x, y }, { names = true, masks = [] } = {}) {
  if (!layers.shown) return;
  if (layers.on.mask) {
    pen.save();
    pen.globalAlpha = layers.opacity;
    pen.imageSmoothingEnabled = false;
    for (const mask of [...masks, runMasks(over.shapes, layers)])
      if (mask) pen.drawImage(mask, x, y, over.width * scale, over.height * scale);
    pen.restore();
  }
  for (const [kind, numbers, name, score] of over.shapes) {
    if (kind === "mask" || !layers.on[kind] || layers.hidden.has(name) || (score !== null && score < layers.least)) continue;
    const colour = layers.colour(name);
    pen.lineWidth = 1.75;
    pen.strokeStyle = colour;
    pen.fillStyle = colour;
    pen.setLineDash(kind === "points" ? [] : layers.dash(name));
    if (kind === "box") {
      const [left, top, width, height] = numbers;
      pen.strokeRect(x + left * scale, y + top * scale, width * scale, height * scale);
      if (names && layers.on.names && (name || score !== null))
        nameTag(pen, [name, score === null ? "" : score.toFixed(2)].filter(Boolean).join(" "), x + left * scale, y + top * scale, colour);
    } else if (kind === "polygon") {
      pen.beginPath();
      for (let at = 0; at < numbers.length; at += 2) pen.lineTo(x + numbers[at] * scale, y + numbers[at + 1] * scale);
      pen.closePath();
      pen.globalAlpha = 0.22;
      pen.fill();
      pen.globalAlpha = 1;
      pen.stroke();
    } else {
      for (let at = 0; at < numbers.length; at += 3) {
        if (!numbers[at + 2]) continue;
        pen.beginPath();
        pen.arc(x + numbers[at] * scale, y + numbers[at + 1] * scale, names ? 3.5 : 2, 0, 7);
        pen.fill();
        pen.lineWidth = 1;
        pen.strokeStyle = "#ffffff";
        pen.stroke();
      }
    }
  }
}

/** @param {CanvasRenderingContext2D} pen @param {string} text @param {number} x @param {number} y @param {string} colour */
function nameTag(pen, text, x, y, colour) {
  pen.font = "600 11px system-ui, sans-serif";
  const width = pen.measureText(text).width + 6;
  const top = y < 14 ? y : y - 14;
  pen.fillStyle = colour;
  pen.fillRect(x - 0.9, top, width, 14);
  pen.fillStyle = inkOn(colour);
  pen.fillText(text, x + 2, top + 10.5);
}

/** Black or white, whichever reads better on a colour. @param {string} colour #rrggbb */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#101216" : "#ffffff";
}

/** A canvas over a tile's picture. @param {Over} over @param {Layers} layers @param {Laid} laid @param {string | undefined} mask address of the mask */
export function overTile(over, layers, { picture, scale, x, y }, mask) {
  const canvas = h("canvas", { class: "tvz-over", "aria-hidden": "true" });
  const dots = screenDots();
  const [width, height] = [over.width * scale, over.height * scale];
  canvas.width = Math.round(width * dots);
  canvas.height = Math.round(height * dots);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px`, left: `${x}px`, top: `${y}px` });
  const draw = (/** @type {HTMLImageElement | undefined} */ image) => {
    const pen = canvas.getContext("2d");
    finely(pen, dots);
    drawOver(pen, over, layers, { scale, x: 0, y: 0 }, { names: width > 220, masks: [image] });
  };
  if (mask && layers.on.mask && layers.shown) {
    const image = new Image();
    image.onload = () => draw(image);
    image.onerror = () => draw(undefined);
    image.src = mask;
  } else draw(undefined);
  picture.after(canvas);
  return canvas;
}

/**
 * What the reader can switch below a picture: kinds, opacity, a chip a class.
 * @param {Over} over @param {Layers} layers @param {() => void} redraw @param {(name: string) => void} [only] shows records with this class alone
 */
export function layerBar(over, layers, redraw, only) {
  const act = (/** @type {() => void} */ work) => () => {
    work();
    redraw();
  };
  /** @type {Map<string, number>} */
  const names = new Map();
  const kinds = new Set(over.shapes.map(([kind]) => kind));
  for (const [kind, , name] of over.shapes) if (kind === "box" || !kinds.has("box")) names.set(name, (names.get(name) ?? 0) + 1);
  const masked = over.masks.length > 0 || kinds.has("mask");
  const toggle = (/** @type {keyof Layers["on"]} */ kind, /** @type {string} */ text) =>
    h("button", { class: "tvz-chip", "aria-pressed": String(layers.on[kind]), onclick: act(() => layers.toggle(kind)) }, text);
  const bar = h(
    "div",
    { class: "tvz-layers", role: "group", "aria-label": "what lies over the picture" },
    kinds.has("box") ? toggle("box", "boxes") : null,
    kinds.has("polygon") ? toggle("polygon", "outlines") : null,
    kinds.has("points") ? toggle("points", "key points") : null,
    kinds.has("box") ? toggle("names", "names") : null,
    masked ? toggle("mask", over.masks.map((mask) => mask.ext).join(", ") || "masks") : null,
    masked
      ? h("input", {
          type: "range",
          min: 0,
          max: 1,
          step: 0.05,
          value: layers.opacity,
          "aria-label": "opacity of the mask",
          title: "opacity of the mask",
          oninput: (/** @type {any} */ e) => {
            layers.opacity = Number(e.target.value);
            redraw();
          },
          onchange: () => layers.changed(),
        })
      : null,
    confidence(over, layers, redraw),
  );
  const chip = (
    /** @type {string} */ name,
    /** @type {string} */ colour,
    /** @type {string} */ more,
    /** @type {(() => void) | undefined} */ hide,
  ) => {
    const dot = h("span", { class: "tvz-swatch" });
    dot.style.background = colour;
    return h(
      hide ? "button" : "span",
      {
        class: "tvz-chip tvz-class",
        ...(hide
          ? { "aria-pressed": String(!layers.hidden.has(name)), title: `show or hide ${name || "the unnamed"}`, onclick: act(hide) }
          : {}),
      },
      dot,
      h("span", { dir: "auto" }, name || "unnamed"),
      more,
    );
  };
  for (const [name, count] of names) {
    const toggled = chip(name, layers.colour(name), count > 1 ? ` ${count}` : "", () => layers.hide(name));
    const alone = h(
      "button",
      {
        class: "tvz-chip tvz-only",
        title: `only records with ${name}`,
        "aria-label": `only records with ${name}`,
        onclick: () => only?.(name),
      },
      "only",
    );
    bar.append(only && name ? h("span", { class: "tvz-pair" }, toggled, alone) : toggled);
  }
  for (const mask of over.masks)
    for (const [number, name, colour] of mask.legend ?? []) bar.append(chip(name || String(number), colour, "", undefined));
  return bar;
}

/** A slider below which scores are not drawn, where there are any. @param {Over} over @param {Layers} layers @param {() => void} redraw */
function confidence(over, layers, redraw) {
  const scores = over.shapes.map(([, , , score]) => score).filter((score) => score !== null);
  if (!scores.length) return null;
  const shown = h("output", { class: "tvz-number" }, layers.least.toFixed(2));
  const slider = h("input", {
    ...{
      type: "range",
      min: 0,
      max: Math.max(1, ...scores),
      step: 0.01,
      value: layers.least,
      title: "boxes of a lower score are not drawn",
    },
    "aria-label": "least confidence",
    oninput: () => {
      layers.least = Number(slider.value);
      shown.textContent = layers.least.toFixed(2);
      layers.changed();
    },
    onchange: redraw,
  });
  return h("label", { class: "tvz-confidence" }, "confidence ≥ ", shown, slider);
}
