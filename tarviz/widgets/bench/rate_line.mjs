// @ts-check
// The rate over time as lines on a canvas: the run at work, those before it as ghosts, megabytes a second beside it.

import { fill, finely, fitCanvas, h, screenDots } from "../host/core.mjs";
import { formatMs, formatRate, nearest, ticks } from "./figures.mjs";

/** @typedef {import("./figures.mjs").Point} Point */

/** @typedef {{ trial: number, label: string, points: Point[], first: number }} Line */

/**
 * Draw lines on a canvas, the last one strong. Into `readout`: its figures at the time `spot`; else what the table says of it, once it was
 * measured; else its last ones.
 * @param {HTMLCanvasElement} canvas @param {HTMLElement} readout @param {Line[]} lines @param {number | undefined} spot seconds
 * @param {{ rate: number, margin: number | null, megabytes: number | null } | undefined} [result] the row of the last line
 * @returns {{ x: (v: number) => number, left: number, right: number, end: number, width: number } | undefined} where it drew
 */
export function drawRateLine(canvas, readout, lines, spot, result) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext("2d");
  if (!pen || !width) return undefined;
  const dots = screenDots();
  fitCanvas(canvas, canvas, dots);
  finely(pen, dots);
  pen.clearRect(0, 0, width, height);
  const style = getComputedStyle(canvas);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const [accent, second] = [colour("--tvz-line-1"), colour("--tvz-line-2")];
  const line = lines.at(-1);
  // the time is that after the first batch, so that runs that start slowly lie on the others
  const all = lines.flatMap((one) => one.points.map((point) => [point[0] - one.first, point[1]]));
  const ys = ticks(Math.max(...all.map((point) => point[1])) * 1.05);
  const most = /** @type {number} */ (ys.at(-1));
  const megabytes = Math.max(...(line?.points ?? []).map((point) => point[2]), 0);
  const end = Math.max(...all.map((point) => point[0]), 1);
  const [left, right, top, bottom] = [52, megabytes > 0 ? 46 : 12, 8, 22];
  const x = (/** @type {number} */ v) => left + (v / end) * (width - left - right);
  const y = (/** @type {number} */ v) => height - bottom - (v / most) * (height - top - bottom);
  const scale = { x, left, right, end, width };
  pen.font = "11px system-ui, sans-serif";
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  for (const mark of ys) {
    pen.strokeStyle = colour("--tvz-line");
    pen.beginPath();
    pen.moveTo(left, y(mark));
    pen.lineTo(width - right, y(mark));
    pen.stroke();
    pen.fillStyle = colour("--tvz-line-ink");
    pen.textAlign = "right";
    pen.fillText(formatRate(mark) || "0", left - 6, y(mark));
  }
  pen.textAlign = "center";
  for (const mark of ticks(end, 6)) if (mark <= end) pen.fillText(`${mark} s`, x(mark), height - 9);
  const path = (/** @type {{ points: Point[], first: number }} */ { points, first }, /** @type {(p: Point) => number} */ value) => {
    pen.beginPath();
    points.forEach((point, at) => (at ? pen.lineTo(x(point[0] - first), value(point)) : pen.moveTo(x(point[0] - first), value(point))));
    pen.stroke();
  };
  pen.save();
  pen.globalAlpha = 0.25;
  pen.strokeStyle = accent;
  for (const ghost of lines.slice(0, -1)) path(ghost, (point) => y(point[1]));
  pen.restore();
  if (!line) return scale;
  if (megabytes > 0) {
    const marks = ticks(megabytes * 1.05, 3);
    const room = /** @type {number} */ (marks.at(-1));
    pen.textAlign = "left";
    pen.fillStyle = second;
    for (const mark of marks) pen.fillText(String(mark), width - right + 6, y((mark / room) * most));
    pen.strokeStyle = second;
    pen.setLineDash([4, 3]);
    path(line, (point) => y((point[2] / room) * most));
    pen.setLineDash([]);
  }
  if (line.first) {
    pen.fillStyle = colour("--tvz-line-ink");
    pen.textAlign = "left";
    pen.fillText(`first batch after ${formatMs(line.first * 1000)} ms`, left + 5, height - bottom - 9);
  }
  pen.strokeStyle = accent;
  pen.lineWidth = 2.2;
  pen.lineJoin = "round";
  path(line, (point) => y(point[1]));
  const shown = spot === undefined ? line.points.at(-1) : nearest(line.points, spot + line.first);
  if (shown) {
    pen.fillStyle = accent;
    pen.beginPath();
    pen.arc(x(shown[0] - line.first), y(shown[1]), 3.5, 0, 7);
    pen.fill();
  }
  const whole = spot === undefined ? result : undefined;
  const [rate, payload] = whole ? [whole.rate, whole.megabytes ?? 0] : shown ? [shown[1], shown[2]] : [0, 0];
  const spread = whole?.margin ? ` ±${Math.round((whole.margin / whole.rate) * 100)} %` : "";
  const when = shown ? `${spot === undefined ? " now, " : ""} after ${(shown[0] - line.first).toFixed(1)} s` : "no batch yet";
  fill(
    readout,
    h("b", { class: "tvz-line-key-1" }, rate ? `${formatRate(rate)} records/s${spread}` : ""),
    payload > 0 ? h("span", { class: "tvz-line-key-2" }, ` ${formatRate(payload)} MB/s of payload`) : "",
    whole ? "" : when,
    ` · ${line.label}`,
  );
  return scale;
}
