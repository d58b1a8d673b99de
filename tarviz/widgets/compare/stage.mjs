// @ts-check
// Two pictures of one record against each other: side by side, wiped, blinking, or their difference with a gain; zoomed as one.

import { fill, finely, focusedBeside, h, screenDots } from "../host/core.mjs";
import { drawOver, layerBar } from "../panes/overlay.mjs";
import { gained, nextGain, placed } from "./picture_pairs.mjs";
import { lines } from "./strips.mjs";

/** @typedef {{ name: string, place: any, title: string, text: string, small: string | undefined, mapping: string, over?: any, mask?: string }} Side */

const MODES = [
  ["side", "side by side", ""],
  ["wipe", "wipe", "w"],
  ["blink", "blink", "x"],
  ["difference", "difference", "d"],
];

export class Stage {
  /** @param {AbortSignal} signal @param {{ ask: (place: any) => Promise<Blob | undefined>, changed: () => void, state?: any, layers: import("../panes/overlay.mjs").Layers }} around */
  constructor(signal, { ask, changed, state, layers }) {
    this.layers = layers;
    /** @type {Map<string, HTMLImageElement>} masks by their address */
    this.masks = new Map();
    this.layerBox = h("div", {});
    this.ask = ask;
    this.changed = changed;
    this.mode = state?.mode ?? "side";
    this.gain = state?.gain ?? 8;
    this.cut = state?.cut ?? 0.5;
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    /** @type {{ name: string, canvas: OffscreenCanvas } | undefined} */
    this.differs = undefined;
    /** @type {OffscreenCanvasRenderingContext2D | null} */
    this.tip = null;
    /** @type {Map<string, Promise<ImageBitmap | undefined>>} */
    this.known = new Map();
    /** @type {{ side: Side | undefined, bitmap: ImageBitmap | undefined }[]} */
    this.sides = [
      { side: undefined, bitmap: undefined },
      { side: undefined, bitmap: undefined },
    ];
    this.canvas = h("canvas", { class: "tvz-canvas", role: "img", "aria-label": "the two pictures" });
    this.frame = h(
      "div",
      { class: "tvz-frame tvz-stage-frame", tabIndex: 0, "aria-label": "stage: zoom with the wheel, drag to move" },
      this.canvas,
    );
    this.buttons = MODES.map(([name, text, key]) =>
      h("button", { title: key ? `${text} (${key})` : text, onclick: () => this.turn(name) }, text),
    );
    this.gainButton = h("button", { title: "gain of the difference (+ −)", onclick: () => this.louder(this.gain === 64 ? -Infinity : 1) });
    this.names = h("div", { class: "tvz-stage-names" });
    this.words = h("div", { class: "tvz-faint tvz-stage-words" });
    this.probe = h("div", { class: "tvz-mono tvz-faint tvz-stage-probe" }, "\u200b");
    this.root = h(
      "section",
      { class: "tvz-stage", "aria-label": "A and B" },
      h("div", { class: "tvz-stage-modes", role: "toolbar" }, ...this.buttons, this.gainButton),
      this.names,
      this.frame,
      this.layerBox,
      this.probe,
      this.words,
    );
    this.listen();
    this.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const timer = setInterval(() => {
      if (this.mode !== "blink" || this.still || !this.root.isConnected) return;
      this.flip = !this.flip;
      this.draw();
    }, 650);
    signal.addEventListener("abort", () => {
      clearInterval(timer);
      this.known.clear();
    });
    this.drawButtons();
  }

  listen() {
    const point = (/** @type {any} */ event) => {
      const box = this.canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    this.canvas.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey && !this.frame.closest(".tvz")?.contains(focusedBeside(this.frame))) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0016), point(event));
    });
    this.canvas.addEventListener("dblclick", () => (this.view.zoom === 1 ? this.zoom(4) : this.fit()));
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.wiping = this.mode === "wipe" && !event.shiftKey;
      if (this.wiping) this.wipe(point(event).x / this.room().width);
    });
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (!(event.buttons & 1)) return this.tell(point(event));
      if (this.wiping) return this.wipe(point(event).x / this.room().width);
      const a = this.sides[0].bitmap;
      if (!a) return undefined;
      const { scale } = placed(a, this.half(), this.view);
      this.view.x -= event.movementX / (a.width * scale);
      this.view.y -= event.movementY / (a.height * scale);
      return this.draw();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.probe.textContent = "\u200b";
    });
  }

  state() {
    return { mode: this.mode, gain: this.gain, cut: this.cut };
  }

  /** @param {string} name */
  key(name) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[name];
    if (way === undefined || this.mode !== "wipe") return false;
    this.wipe(this.cut + way * 0.02);
    return true;
  }

  /** A mode, or side by side when it was on. @param {string} mode */
  turn(mode) {
    this.mode = this.mode === mode ? "side" : mode;
    this.flip = false;
    this.drawButtons();
    this.draw();
    this.changed();
  }

  /** Gain of the difference, else zoom. @param {number} by */
  louder(by) {
    if (this.mode !== "difference") return this.zoom(by > 0 ? 1.5 : 1 / 1.5);
    this.gain = nextGain(this.gain, by);
    this.drawButtons();
    this.draw();
    return this.changed();
  }

  fit() {
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.draw();
  }

  /** @param {number} share */
  wipe(share) {
    this.cut = Math.max(0, Math.min(1, share));
    this.draw();
    this.changed();
  }

  /** @param {number} factor @param {{ x: number, y: number }} [at] the point that stays */
  zoom(factor, at) {
    const a = this.sides[0].bitmap ?? this.sides[1].bitmap;
    if (!a) return;
    const room = this.half();
    const before = placed(a, room, this.view);
    const zoom = Math.max(0.5, Math.min(64, this.view.zoom * factor));
    const spot = at ? { x: this.mode === "side" ? at.x % (room.width + 4) : at.x, y: at.y } : { x: room.width / 2, y: room.height / 2 };
    const fixed = { x: (spot.x - before.left) / (a.width * before.scale), y: (spot.y - before.top) / (a.height * before.scale) };
    const scale = (before.scale / this.view.zoom) * zoom;
    this.view = {
      zoom,
      x: fixed.x - (spot.x - room.width / 2) / (a.width * scale),
      y: fixed.y - (spot.y - room.height / 2) / (a.height * scale),
    };
    this.draw();
  }

  /** @param {Side} a @param {Side} b */
  set(a, b) {
    [a, b].forEach((side, at) => {
      const place = this.sides[at];
      if (place.side?.name === side.name && place.bitmap) {
        place.side = side;
        return;
      }
      place.side = side;
      place.bitmap = undefined;
      this.load(side).then((bitmap) => {
        if (place.side?.name !== side.name) return;
        place.bitmap = bitmap;
        this.draw();
      });
    });
    fill(
      this.names,
      ...[a, b].map(({ mapping, title }, at) => {
        const name = { class: `tvz-cut tvz-stage-name tvz-stage-${"ab"[at]}`, title: mapping ? `shown ${mapping}` : "" };
        return h("span", name, h("b", {}, "AB"[at]), ` ${title}`);
      }),
    );
    const over = b.over ?? a.over;
    fill(this.layerBox, ...(over && this.layers.shown ? [layerBar(over, this.layers, () => this.draw())] : []));
    this.draw();
  }

  /** The picture of a mask, once it is there. @param {string | undefined} address */
  maskAt(address) {
    if (!address) return undefined;
    let image = this.masks.get(address);
    if (!image) {
      image = new Image();
      image.onload = () => this.draw();
      image.src = address;
      this.masks.set(address, image);
      if (this.masks.size > 48) this.masks.delete(/** @type {string} */ (this.masks.keys().next().value));
    }
    return image.complete && image.naturalWidth ? image : undefined;
  }

  /** @param {Side} side @returns {Promise<ImageBitmap | undefined>} */
  load(side) {
    const found = this.known.get(side.name);
    if (found) return found;
    const made = this.ask(side.place)
      .then(async (blob) => blob ?? (side.small ? await picture(side.small) : undefined))
      .then((blob) => (blob ? createImageBitmap(blob) : undefined))
      .catch(() => undefined);
    this.known.set(side.name, made);
    if (this.known.size > 24) this.known.delete(/** @type {string} */ (this.known.keys().next().value));
    return made;
  }

  /** @param {string} text */
  say(text) {
    this.words.textContent = text;
  }

  drawButtons() {
    this.buttons.forEach((/** @type {HTMLElement} */ button, /** @type {number} */ at) =>
      button.setAttribute("aria-pressed", String(MODES[at][0] === this.mode)),
    );
    this.gainButton.textContent = `× ${this.gain}`;
    this.gainButton.hidden = this.mode !== "difference";
  }

  room() {
    return { width: this.frame.clientWidth || 300, height: this.frame.clientHeight || 220 };
  }

  /** The room of one picture. */
  half() {
    const room = this.room();
    return this.mode === "side" ? { width: (room.width - 4) / 2, height: room.height } : room;
  }

  draw() {
    const room = this.room();
    const dots = screenDots();
    this.canvas.width = Math.round(room.width * dots);
    this.canvas.height = Math.round(room.height * dots);
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    finely(pen, dots);
    const [a, b] = this.sides;
    const half = this.half();
    if (this.mode === "side") {
      this.paint(pen, a, { x: 0, width: half.width });
      this.paint(pen, b, { x: half.width + 4, width: half.width });
      return;
    }
    if (this.mode === "difference" && a.bitmap && b.bitmap) {
      this.paint(pen, { side: a.side, bitmap: this.difference(a.bitmap, b.bitmap) }, { x: 0, width: room.width });
      return;
    }
    const on = this.mode === "blink" && this.flip ? b : a;
    this.paint(pen, on, { x: 0, width: room.width }, a.bitmap);
    if (this.mode === "wipe") {
      const x = room.width * this.cut;
      pen.save();
      pen.beginPath();
      pen.rect(x, 0, room.width - x, room.height);
      pen.clip();
      pen.clearRect(x, 0, room.width - x, room.height);
      this.paint(pen, b, { x: 0, width: room.width }, a.bitmap);
      pen.restore();
      pen.fillStyle = getComputedStyle(this.frame).getPropertyValue("--tvz-accent") || "#1460b8";
      pen.fillRect(x - 1, 0, 2, room.height);
    }
  }

  /**
   * One picture, in the place of `like` where that is given, so that both lie on each other.
   * @param {CanvasRenderingContext2D} pen @param {{ side: Side | undefined, bitmap: any }} what @param {{ x: number, width: number }} room @param {ImageBitmap} [like]
   */
  paint(pen, { side, bitmap }, { x, width }, like) {
    const { height } = this.room();
    pen.save();
    pen.beginPath();
    pen.rect(x, 0, width, height);
    pen.clip();
    if (bitmap) {
      const base = like ?? bitmap;
      const { scale, left, top } = placed(base, { width, height }, this.view);
      pen.imageSmoothingEnabled = (scale * base.width) / bitmap.width < 3;
      pen.imageSmoothingQuality = "high";
      pen.drawImage(bitmap, x + left, top, base.width * scale, base.height * scale);
      const over = this.mode === "difference" ? undefined : side?.over;
      if (over) {
        const place = { scale: (scale * base.width) / over.width, x: x + left, y: top };
        drawOver(pen, over, this.layers, place, { masks: [this.maskAt(side?.mask)] });
      }
    } else if (side) {
      pen.fillStyle = getComputedStyle(this.frame).color;
      pen.font = "12px sans-serif";
      lines(side.text || "…", Math.max(10, Math.floor(width / 6.5)))
        .slice(0, 24)
        .forEach((line, at) => pen.fillText(line, x + 8, 20 + at * 16));
    }
    pen.restore();
  }

  /** @param {ImageBitmap} a @param {ImageBitmap} b */
  difference(a, b) {
    const name = `${this.sides[0].side?.name} ${this.sides[1].side?.name} ${this.gain}`;
    if (this.differs?.name === name) return this.differs.canvas;
    const canvas = new OffscreenCanvas(a.width, a.height);
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
    const read = (/** @type {ImageBitmap} */ picture) => {
      pen.clearRect(0, 0, a.width, a.height);
      pen.drawImage(picture, 0, 0, a.width, a.height);
      return pen.getImageData(0, 0, a.width, a.height);
    };
    const one = read(a);
    gained(one.data, read(b).data, this.gain, one.data);
    pen.putImageData(one, 0, 0);
    this.differs = { name, canvas };
    return canvas;
  }

  /** The values under the pointer. @param {{ x: number, y: number }} at */
  tell(at) {
    const a = this.sides[0].bitmap ?? this.sides[1].bitmap;
    if (!a) return;
    const room = this.half();
    const x = this.mode === "side" ? at.x % (room.width + 4) : at.x;
    const { scale, left, top } = placed(a, room, this.view);
    const [column, line] = [Math.floor((x - left) / scale), Math.floor((at.y - top) / scale)];
    if (column < 0 || line < 0 || column >= a.width || line >= a.height) {
      this.probe.textContent = "\u200b";
      return;
    }
    this.tip ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const values = this.sides.map(({ bitmap }, number) => {
      if (!bitmap || !this.tip) return "";
      this.tip.clearRect(0, 0, 1, 1);
      const [left, top] = [Math.floor((column / a.width) * bitmap.width), Math.floor((line / a.height) * bitmap.height)];
      this.tip.drawImage(bitmap, left, top, 1, 1, 0, 0, 1, 1);
      return `${"AB"[number]} ${[...this.tip.getImageData(0, 0, 1, 1).data.slice(0, 3)].join(" ")}`;
    });
    this.probe.textContent = `(${column}, ${line}) ${values.filter(Boolean).join(" · ")} · ${Math.round(scale * 100)} %`;
  }
}

/**
 * The picture at an address. (Not by `fetch`: what a page lets come from `blob:` is pictures and nothing else.)
 *
 * @param {string} address
 */
async function picture(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}
