// @ts-check
// A point cloud on a canvas that turns: drag or arrow keys to turn it, wheel or + − to come closer.

import { fitCanvas, h, screenDots } from "../host/core.mjs";

/**
 * Points as seen after two turns, far ones first drawn over by near ones.
 * @param {Float32Array} places x, y, z within −1 … 1 @param {Uint8Array} colours r, g, b
 * @param {{ turn: number, tilt: number, zoom: number }} view @param {ImageData} into
 */
export function drawCloud(places, colours, { turn, tilt, zoom }, into) {
  const { width, height, data } = into;
  const depth = new Float32Array(width * height).fill(-Infinity);
  new Uint32Array(data.buffer).fill(0xff1f1a18); // 24, 26, 31, 255: the lowest byte is the first
  const [ct, st, ci, si] = [Math.cos(turn), Math.sin(turn), Math.cos(tilt), Math.sin(tilt)];
  const scale = Math.min(width, height) * 0.38 * zoom;
  const dot = places.length < 15_000 ? 3 : 2;
  for (let point = 0; point < places.length; point += 3) {
    const across = places[point] * ct - places[point + 1] * st;
    const away = places[point] * st + places[point + 1] * ct;
    const up = places[point + 2] * ci - away * si;
    const near = -(away * ci + places[point + 2] * si);
    const x = Math.round(width / 2 + across * scale);
    const y = Math.round(height / 2 - up * scale);
    const light = 0.72 + 0.28 * Math.max(-1, Math.min(1, near));
    for (let down = 0; down < dot; down += 1) {
      for (let right = 0; right < dot; right += 1) {
        const [px, py] = [x + right, y + down];
        if (px < 0 || py < 0 || px >= width || py >= height || depth[py * width + px] > near) continue;
        depth[py * width + px] = near;
        const at = 4 * (py * width + px);
        for (let band = 0; band < 3; band += 1) data[at + band] = colours[point + band] * light;
      }
    }
  }
}

/** @param {any} block @param {DataView[]} buffers @param {{ signal: AbortSignal }} around */
export function drawPoints(block, buffers, { signal }) {
  const view = { turn: 0.7, tilt: 0.5, zoom: 1 };
  const raw = buffers[block.places?.buffer];
  const places = raw ? new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength)) : new Float32Array();
  const tint = buffers[block.colours?.buffer];
  const colours = tint ? new Uint8Array(tint.buffer, tint.byteOffset, tint.byteLength) : new Uint8Array();
  const canvas = h("canvas", {
    class: "tvz-cloud",
    tabIndex: 0,
    role: "img",
    "aria-label": `point cloud of ${block.total} points; arrow keys turn it`,
  });
  let frame = 0;
  const draw = () => {
    frame = 0;
    fitCanvas(canvas, canvas, screenDots());
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(canvas.width, canvas.height);
    drawCloud(places, colours, view, image);
    pen.putImageData(image, 0, 0);
  };
  const soon = () => {
    frame ||= requestAnimationFrame(draw);
  };
  const move = (/** @type {number} */ turn, /** @type {number} */ tilt, factor = 1) => {
    view.turn += turn;
    view.tilt = Math.max(-1.57, Math.min(1.57, view.tilt + tilt));
    view.zoom = Math.max(0.2, Math.min(20, view.zoom * factor));
    soon();
  };
  canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => canvas.setPointerCapture(e.pointerId), { signal });
  canvas.addEventListener(
    "pointermove",
    (/** @type {PointerEvent} */ e) => {
      if (e.buttons & 1) move(e.movementX * 0.01, e.movementY * 0.01);
    },
    { signal },
  );
  canvas.addEventListener(
    "wheel",
    (/** @type {WheelEvent} */ e) => {
      e.preventDefault();
      move(0, 0, Math.exp(-e.deltaY * 0.0016));
    },
    { signal },
  );
  canvas.addEventListener(
    "keydown",
    (/** @type {KeyboardEvent} */ e) => {
      const step = /** @type {Record<string, [number, number, number]>} */ ({
        ArrowLeft: [-0.1, 0, 1],
        ArrowRight: [0.1, 0, 1],
        ArrowUp: [0, -0.1, 1],
        ArrowDown: [0, 0.1, 1],
        "+": [0, 0, 1.2],
        "-": [0, 0, 1 / 1.2],
      })[e.key];
      if (!step) return;
      e.preventDefault();
      e.stopPropagation();
      move(...step);
    },
    { signal },
  );
  const watch = new ResizeObserver(soon);
  watch.observe(canvas);
  signal.addEventListener("abort", () => watch.disconnect());
  const shown = places.length / 3;
  return h(
    "figure",
    { class: "tvz-figure" },
    canvas,
    h(
      "figcaption",
      { class: "tvz-faint" },
      `${block.total} points${shown < block.total ? `, ${shown} drawn` : ""} · drag to turn, wheel to come closer`,
    ),
  );
}
