// @ts-check
// Up to millions of points to pan, zoom, point at and circle; it knows nothing of records. Used by the page and in notebooks alike.

import { fitCanvas, focusInPlace, h, screenDots } from "../host/core.mjs";
import { glPainter, pixelPainter } from "./painters.mjs";

const EDGE = 18; // pixels left free around the points at first
const FRAME = 24; // milliseconds that a frame may take while the view moves
const CLOSE = 14; // pixels from the cursor to a point that is pointed at
const CORNERS = 400; // of a line that is sent

/** How many pixels wide a point is drawn. @param {number} count points @param {number} zoom */
export const dotOf = (count, zoom) =>
  Math.max(
    1,
    Math.min(9, (count < 300 ? 7 : count < 3000 ? 5 : count < 30_000 ? 3.5 : count < 200_000 ? 2 : 1.2) * Math.min(2, zoom ** 0.3)),
  );

/**
 * The point that is seen at a place: of those whose dots cover it the one drawn last, else the nearest within a distance in pixels; −1 where there is none.
 * @param {Float32Array} places @param {import("./painters.mjs").Look} look @param {number} px @param {number} py @param {number} within
 * @param {Uint8Array} [shown] 0 for those that are drawn below the others
 */
export function nearest(places, { scaleX, scaleY, atX, atY, dot }, px, py, within, shown) {
  const [x, y] = [(px - atX) / scaleX, (atY - py) / scaleY];
  let best = within * within;
  let found = -1;
  for (let at = 0; at < places.length; at += 2) {
    const distance = Math.max((dot / 2) ** 2, ((places[at] - x) * scaleX) ** 2 + ((places[at + 1] - y) * scaleY) ** 2);
    if (distance > best || (distance === best && shown?.[found] && !shown[at / 2])) continue;
    best = distance;
    found = at / 2;
  }
  return found;
}

/** A line of corners x, y, … with as many of them as may be sent: every second, or third … @param {number[]} line */
export function thinned(line) {
  const step = Math.ceil(line.length / 2 / CORNERS);
  return line.filter((_, at) => Math.floor(at / 2) % step === 0);
}

export class Scatter {
  /**
   * @param {{ signal: AbortSignal, onHover?: (point: number, x: number, y: number) => void, onPick?: (point: number) => void,
   *   onCircle?: (corners: number[]) => void, onMove?: () => void, painter?: string }} options `painter`: "webgl" or "canvas", else whichever is faster here
   */
  constructor({ signal, onHover = () => {}, onPick = () => {}, onCircle = () => {}, onMove = () => {}, painter = "" }) {
    this.signal = signal;
    this.onHover = onHover;
    this.onPick = onPick;
    this.onCircle = onCircle;
    this.onMove = onMove;
    /** places as they came, and as they are drawn: those that are faint first @type {Float32Array} */
    this.places = new Float32Array();
    this.drawnPlaces = this.places;
    /** @type {Uint32Array} */
    this.drawnColours = new Uint32Array();
    this.faint = 0;
    this.centre = [0, 0];
    this.zoom = 1;
    /** corners in places, of the line that is drawn or was drawn last @type {number[]} */
    this.line = [];
    this.lassoing = false;
    this.frame = 0;
    this.share = 1;
    this.over = h("canvas", { class: "tvz-map-over" });
    this.root = h(
      "div",
      {
        class: "tvz-scatter",
        tabIndex: 0,
        role: "application",
        "aria-label": "map of records: arrows move it, plus and minus zoom, 0 shows all",
      },
      this.over,
    );
    /** @type {import("./painters.mjs").Painter} */
    this.painter = pixelPainter();
    this.use(painter);
    this.listen();
    const watch = new ResizeObserver(() => this.soon());
    watch.observe(this.root);
    signal.addEventListener("abort", () => {
      watch.disconnect();
      clearTimeout(this.settle);
      cancelAnimationFrame(this.frame);
      this.painter.end();
    });
  }

  /** Paint by "webgl" or "canvas"; by whichever is faster where nothing is said. @param {string} kind */
  use(kind) {
    this.painter.end();
    this.painter.canvas.remove();
    this.painter = (kind === "canvas" ? undefined : glPainter({ software: kind === "webgl" })) ?? pixelPainter();
    this.painter.canvas.className = "tvz-map-points";
    this.painter.canvas.addEventListener(
      "webglcontextlost",
      () => !this.signal.aborted && this.painter.kind === "webgl" && this.use("canvas"),
    );
    this.root.prepend(this.painter.canvas);
    this.painter.fill(this.drawnPlaces, this.drawnColours);
    this.soon();
  }

  /**
   * Other points, or other colours of the same. @param {Float32Array} places x, y of each, −1 … 1
   * @param {Uint32Array} colours of each as RGBA in memory @param {Uint8Array} [shown] 0 for those that are drawn faintly, below the others
   */
  show(places, colours, shown) {
    this.places = places;
    this.shown = shown;
    const count = colours.length;
    this.faint = 0;
    if (shown) for (let at = 0; at < count; at += 1) this.faint += shown[at] ? 0 : 1;
    if (!this.faint) [this.drawnPlaces, this.drawnColours] = [places, colours];
    else {
      this.drawnPlaces = new Float32Array(2 * count);
      this.drawnColours = new Uint32Array(count);
      let [low, high] = [0, this.faint];
      for (let at = 0; at < count; at += 1) {
        const to = shown?.[at] ? high++ : low++;
        this.drawnPlaces[2 * to] = places[2 * at];
        this.drawnPlaces[2 * to + 1] = places[2 * at + 1];
        this.drawnColours[to] = shown?.[at] ? colours[at] : (colours[at] & 0xffffff) | 0x26000000;
      }
    }
    this.painter.fill(this.drawnPlaces, this.drawnColours);
    this.soon();
  }

  fit() {
    this.centre = [0, 0];
    this.zoom = 1;
    this.moved();
  }

  /** @returns {import("./painters.mjs").Look} in pixels of the screen, or of the canvas where `dots` say how many those have */
  look(dots = 1) {
    const { clientWidth: width, clientHeight: height } = this.root;
    const scaleX = Math.max(1, width / 2 - EDGE) * this.zoom * dots;
    const scaleY = Math.max(1, height / 2 - EDGE) * this.zoom * dots;
    return {
      scaleX,
      scaleY,
      atX: (width / 2) * dots - this.centre[0] * scaleX,
      atY: (height / 2) * dots + this.centre[1] * scaleY,
      dot: dotOf(this.drawnColours.length, this.zoom) * dots,
    };
  }

  /** The view moves: fewer points where all would take too long, all of them when it rests. */
  moved() {
    this.moving = true;
    clearTimeout(this.settle);
    this.settle = setTimeout(() => {
      this.moving = false;
      this.soon();
    }, 140);
    this.soon();
  }

  soon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.signal.aborted) this.draw();
    });
  }

  draw() {
    const dots = screenDots();
    for (const canvas of [this.painter.canvas, this.over]) fitCanvas(canvas, this.root, dots);
    const begin = performance.now();
    const share = this.moving ? this.share : 1;
    const strong = this.drawnColours.length - this.faint;
    this.painter.draw(this.look(dots), [
      [0, Math.ceil(this.faint * share)],
      [this.faint, Math.ceil(strong * share)],
    ]);
    const took = performance.now() - begin;
    // a card answers at once and works later: only what the processor paints is told by the clock
    if (this.moving && this.painter.kind === "canvas") this.share = Math.max(0.02, Math.min(1, (share * FRAME) / Math.max(took, 1)));
    this.onMove();
    this.drawLine();
  }

  drawLine() {
    const dots = screenDots();
    const pen = this.over.getContext("2d");
    pen.clearRect(0, 0, this.over.width, this.over.height);
    if (this.line.length < 4) return;
    const { scaleX, scaleY, atX, atY } = this.look(dots);
    pen.beginPath();
    for (let at = 0; at < this.line.length; at += 2) pen.lineTo(this.line[at] * scaleX + atX, atY - this.line[at + 1] * scaleY);
    pen.closePath();
    const colour = getComputedStyle(this.over).color;
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 1.6 * dots;
    pen.globalAlpha = 0.1;
    pen.fill();
    pen.globalAlpha = 1;
    pen.stroke();
  }

  /** @param {MouseEvent} e @returns {[number, number]} pixels from the left and from the top */
  spot(e) {
    const box = this.root.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  }

  /** @param {[number, number]} spot @returns {[number, number]} */
  place([px, py]) {
    const { scaleX, scaleY, atX, atY } = this.look();
    return [(px - atX) / scaleX, (atY - py) / scaleY];
  }

  /** Closer, the place under a pixel stays. @param {number} factor @param {[number, number]} [spot] */
  zoomBy(factor, spot = [this.root.clientWidth / 2, this.root.clientHeight / 2]) {
    const before = this.place(spot);
    this.zoom = Math.max(0.3, Math.min(5000, this.zoom * factor));
    const after = this.place(spot);
    this.centre = [this.centre[0] + before[0] - after[0], this.centre[1] + before[1] - after[1]];
    this.moved();
  }

  /** @param {number} dx @param {number} dy pixels */
  panBy(dx, dy) {
    const { scaleX, scaleY } = this.look();
    this.centre = [this.centre[0] - dx / scaleX, this.centre[1] + dy / scaleY];
    this.moved();
  }

  /** The corners of what is in view. */
  inView() {
    const [[left, top], [right, bottom]] = [this.place([0, 0]), this.place([this.root.clientWidth, this.root.clientHeight])];
    return [left, top, right, top, right, bottom, left, bottom];
  }

  listen() {
    const { signal, root } = this;
    /** @type {{ x: number, y: number, line: boolean, still: boolean } | undefined} since the button went down; `still`: a click so far */
    let drag;
    root.addEventListener(
      "pointerdown",
      (/** @type {PointerEvent} */ e) => {
        if (e.button) return;
        focusInPlace(root);
        root.setPointerCapture(e.pointerId);
        const [x, y] = this.spot(e);
        drag = { x, y, line: this.lassoing || e.shiftKey, still: true };
        if (drag.line) this.line = [...this.place([x, y])];
      },
      { signal },
    );
    root.addEventListener(
      "pointermove",
      (/** @type {PointerEvent} */ e) => {
        const spot = this.spot(e);
        if (!drag) return this.hover(spot);
        drag.still &&= Math.hypot(spot[0] - drag.x, spot[1] - drag.y) < 4;
        if (drag.line) {
          this.line.push(...this.place(spot));
          this.drawLine();
        } else this.panBy(e.movementX, e.movementY);
        return undefined;
      },
      { signal },
    );
    root.addEventListener(
      "pointerup",
      (/** @type {PointerEvent} */ e) => {
        if (drag?.still) {
          const point = nearest(this.places, this.look(), ...this.spot(e), CLOSE, this.shown);
          if (drag.line) this.line = [];
          if (point >= 0) this.onPick(point);
        } else if (drag?.line && this.line.length >= 6) {
          this.line = thinned(this.line);
          this.onCircle(this.line);
        }
        drag = undefined;
        this.soon();
      },
      { signal },
    );
    root.addEventListener(
      "pointercancel",
      () => {
        drag = undefined;
      },
      { signal },
    );
    root.addEventListener("pointerleave", () => this.onHover(-1, 0, 0), { signal });
    root.addEventListener("dblclick", () => this.fit(), { signal });
    root.addEventListener(
      "wheel",
      (/** @type {WheelEvent} */ e) => {
        e.preventDefault();
        this.zoomBy(Math.exp(-e.deltaY * 0.0016), this.spot(e));
      },
      { signal },
    );
    root.addEventListener(
      "keydown",
      (/** @type {KeyboardEvent} */ e) => {
        const pan = /** @type {Record<string, [number, number]>} */ ({
          ArrowLeft: [60, 0],
          ArrowRight: [-60, 0],
          ArrowUp: [0, 60],
          ArrowDown: [0, -60],
        })[e.key];
        const zoom = /** @type {Record<string, number>} */ ({ "+": 1.4, "=": 1.4, "-": 1 / 1.4 })[e.key];
        if (pan) this.panBy(...pan);
        else if (zoom) this.zoomBy(zoom);
        else if (e.key === "0") this.fit();
        else return;
        e.preventDefault();
        e.stopPropagation();
      },
      { signal },
    );
  }

  /** Which point the cursor is at, at most once a frame. @param {[number, number]} spot */
  hover(spot) {
    if (this.pointed) {
      this.pointed = spot;
      return;
    }
    this.pointed = spot;
    requestAnimationFrame(() => {
      const [x, y] = this.pointed ?? spot;
      this.pointed = undefined;
      if (!this.signal.aborted) this.onHover(nearest(this.places, this.look(), x, y, CLOSE, this.shown), x, y);
    });
  }
}
