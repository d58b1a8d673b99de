// @ts-check
// A picture to zoom and pan, with the value under the pointer and what lies over it.

import { fill, finely, focusedBeside, h } from "../host/core.mjs";

/** @param {any} block @param {DataView[]} buffers @param {{ signal: AbortSignal }} around */
export function drawImage(block, buffers, { signal }) {
  const view = new ImageView(block.width, block.height, signal);
  view.values = valuesOf(block, buffers);
  if (block.width > 2.6 * block.height) view.frame.style.height = `${Math.round(Math.max(64, (330 * block.height) / block.width))}px`;
  const url = URL.createObjectURL(new Blob([/** @type {any} */ (buffers[block.data.buffer])], { type: block.mime }));
  const picture = new Image();
  picture.onload = () => view.show(picture);
  picture.onerror = () => view.fail("The browser cannot draw this picture.");
  picture.src = url;
  signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  view.frame.view = view;
  return h(
    "figure",
    { class: "tvz-figure" },
    view.frame,
    view.foot,
    block.label ? h("figcaption", { class: "tvz-faint" }, block.label) : null,
  );
}

const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, int32: Int32Array, float32: Float32Array };

/** What stands after the colours of a picture: the value at a pixel in words; undefined where the colours are all there is. @param {any} block @param {DataView[]} buffers */
function valuesOf(block, buffers) {
  const raw = buffers[block.values?.buffer];
  const Kind = ARRAYS[/** @type {keyof typeof ARRAYS} */ (block.dtype)];
  if (!raw || !Kind) return undefined;
  const values = new Kind(/** @type {ArrayBuffer} */ (raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength)));
  const columns = Math.ceil(block.width / block.step);
  return (/** @type {number} */ column, /** @type {number} */ line) => {
    const value = values[Math.floor(line / block.step) * columns + Math.floor(column / block.step)];
    if (value === undefined) return "";
    const name = block.names?.[value];
    return `${Number.isInteger(value) ? value : Number(value.toPrecision(5))}${name ? ` ${name}` : ""}`;
  };
}

/** A picture to zoom (wheel, + −, double click) and pan (drag); pixel values under the pointer; nearest from 4× on. */
export class ImageView {
  /** @param {number} width @param {number} height @param {AbortSignal} signal */
  constructor(width, height, signal) {
    this.width = width;
    this.height = height;
    this.scale = 0;
    this.x = this.y = 0;
    /** @type {HTMLImageElement | undefined} */
    this.picture = undefined;
    /** @type {((view: ImageView) => void) | undefined} called when it was zoomed or panned, to move others along */
    this.moved = undefined;
    /** @type {OffscreenCanvasRenderingContext2D | null | undefined} */
    this.probe = undefined;
    /** @type {((column: number, line: number) => string) | undefined} the value behind a pixel, where colours stand for numbers */
    this.values = undefined;
    /** @type {((pen: CanvasRenderingContext2D, place: { scale: number, x: number, y: number }) => void) | undefined} draws what lies over it */
    this.over = undefined;
    this.canvas = h("canvas", { class: "tvz-canvas", role: "img", "aria-label": `picture, ${width} by ${height} pixels` });
    this.foot = h("div", { class: "tvz-image-foot tvz-mono tvz-faint" }, h("span", {}, `${width}×${height}`));
    this.frame = h("div", { class: "tvz-frame" }, this.canvas, this.scaling());
    const watch = new ResizeObserver(() => this.draw());
    watch.observe(this.frame);
    signal.addEventListener("abort", () => watch.disconnect());
    const at = /** @returns {[number, number]} */ (/** @type {any} */ event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.canvas.addEventListener(
      "wheel",
      (/** @type {WheelEvent} */ event) => {
        if (
          !this.picture ||
          (!event.ctrlKey &&
            !this.frame.contains(focusedBeside(this.frame)) &&
            !this.frame.closest(".tvz")?.contains(focusedBeside(this.frame)))
        )
          return;
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * 0.0016), ...at(event));
      },
      { signal },
    );
    this.canvas.addEventListener(
      "dblclick",
      (/** @type {MouseEvent} */ event) => (this.scale ? this.fit() : this.zoom(1 / this.shown().scale, ...at(event))),
      { signal },
    );
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.canvas.setPointerCapture(event.pointerId), {
      signal,
    });
    this.canvas.addEventListener(
      "pointermove",
      (/** @type {PointerEvent} */ event) => {
        if (event.buttons & 1) this.pan(event.movementX, event.movementY);
        else this.tell(...at(event));
      },
      { signal },
    );
    this.canvas.addEventListener("pointerleave", () => this.tell(-1, -1), { signal });
  }

  /** @param {HTMLImageElement} picture */
  show(picture) {
    this.picture = picture;
    this.width = picture.naturalWidth;
    this.height = picture.naturalHeight;
    this.draw();
  }

  /** @param {string} text */
  fail(text) {
    fill(this.frame, h("p", { class: "tvz-note tvz-note-bad" }, text));
  }

  /** Scale and place in CSS pixels; scale 0 means "fit", small pictures up to 16 times. */
  shown() {
    const room = { width: this.frame.clientWidth || 300, height: this.frame.clientHeight || 240 };
    const fitting = Math.min(room.width / this.width, room.height / this.height);
    const large = this.frame.closest(".tvz-zoomed") !== null; // there the picture fills its stage
    const fit = large ? Math.min(fitting, 64) : fitting > 2 ? Math.min(16, Math.floor(fitting)) : fitting;
    const scale = this.scale || fit;
    const x = this.scale ? this.x : (room.width - this.width * scale) / 2;
    const y = this.scale ? this.y : (room.height - this.height * scale) / 2;
    return { ...room, scale, x, y };
  }

  /** Two buttons: the whole picture, or a pixel of it on one of the screen. */
  scaling() {
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) =>
      h("button", { class: "tvz-link", title, "aria-label": title, onclick: act }, text);
    return h(
      "span",
      { class: "tvz-scaling" },
      button("fit", "fit the picture", () => this.fit()),
      button("1∶1", "one pixel for one", () => this.zoom(1 / this.shown().scale)),
    );
  }

  fit() {
    this.scale = 0;
    this.draw();
    this.moved?.(this);
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] point that stays, default the middle */
  zoom(factor, x, y) {
    const now = this.shown();
    const [px, py] = [x ?? now.width / 2, y ?? now.height / 2];
    const scale = Math.max(0.02, Math.min(64, now.scale * factor));
    this.x = px - ((px - now.x) * scale) / now.scale;
    this.y = py - ((py - now.y) * scale) / now.scale;
    this.scale = scale;
    this.draw();
    this.moved?.(this);
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const now = this.shown();
    this.scale = now.scale;
    this.x = now.x + dx;
    this.y = now.y + dy;
    this.draw();
    this.moved?.(this);
  }

  /** Show the same part as another picture, by shares of their widths. @param {ImageView} other */
  follow(other) {
    if (!other.scale) {
      this.scale = 0;
      return this.draw();
    }
    const [there, here] = [other.shown(), this.shown()];
    this.scale = (there.scale * other.width) / this.width;
    const across = (there.width / 2 - there.x) / (there.scale * other.width);
    const down = (there.height / 2 - there.y) / (there.scale * other.height);
    this.x = here.width / 2 - across * this.scale * this.width;
    this.y = here.height / 2 - down * this.scale * this.height;
    return this.draw();
  }

  draw() {
    if (!this.picture) return;
    const { width, height, scale, x, y } = this.shown();
    const dots = globalThis.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * dots);
    this.canvas.height = Math.round(height * dots);
    const pen = this.canvas.getContext("2d");
    finely(pen, dots);
    pen.imageSmoothingEnabled = scale * dots < 4 && !(scale >= 2 && this.width <= 64);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(this.picture, x, y, Math.max(1, this.width * scale), Math.max(1, this.height * scale)); // a line is still seen
    this.over?.(pen, { scale, x, y });
    this.tell(-1, -1);
  }

  /** @param {number} px @param {number} py */
  tell(px, py) {
    const { scale, x, y } = this.shown();
    const [column, line] = [Math.floor((px - x) / scale), Math.floor((py - y) / scale)];
    let text = `${this.width}×${this.height} · ${scale >= 1 ? `${Math.round(scale * 100) / 100}×` : `${Math.round(scale * 100)} %`}`;
    const inside = this.picture && column >= 0 && line >= 0 && column < this.width && line < this.height;
    if (inside && this.values) text += ` · (${column}, ${line}) = ${this.values(column, line)}`;
    else if (inside) {
      this.probe ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      this.probe?.clearRect(0, 0, 1, 1);
      this.probe?.drawImage(/** @type {HTMLImageElement} */ (this.picture), column, line, 1, 1, 0, 0, 1, 1);
      const [r, g, b, a] = this.probe?.getImageData(0, 0, 1, 1).data ?? [];
      text += ` · (${column}, ${line}) = ${r} ${g} ${b}${a < 255 ? ` α ${a}` : ""}`;
    }
    this.foot.firstChild.textContent = text;
  }
}
