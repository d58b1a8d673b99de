// @ts-check
// Points and figures of a bench: read, rounded to marks of an axis, written as people read them.

import { formatCount } from "../host/core.mjs";

/** @typedef {[number, number, number]} Point seconds, records/s, MB/s */

/** Points out of little-endian 32-bit floats. @param {DataView} view @returns {Point[]} */
export function readPoints(view) {
  const points = [];
  for (let at = 0; at + 12 <= view.byteLength; at += 12)
    points.push(/** @type {Point} */ ([view.getFloat32(at, true), view.getFloat32(at + 4, true), view.getFloat32(at + 8, true)]));
  return points;
}

/**
 * Marks of an axis from 0 to at least `top`: round steps, at most `most` of them.
 * @param {number} top @param {number} [most]
 */
export function ticks(top, most = 5) {
  if (!(top > 0)) return [0, 1];
  const rough = top / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = ([1, 2, 2.5, 5].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10) * power;
  return Array.from({ length: Math.ceil(top / size - 1e-9) + 1 }, (_, at) => Number((at * size).toPrecision(12)));
}

/** A rate as people read it. @param {number | null | undefined} rate */
export function formatRate(rate) {
  const value = rate ?? NaN;
  if (!Number.isFinite(value)) return "";
  return value >= 100 ? formatCount(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** Milliseconds. @param {number | null | undefined} ms */
export const formatMs = (ms) =>
  ms === null || ms === undefined ? "" : ms >= 100 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(1) : ms.toFixed(3);

/** The point nearest to a time. @param {Point[]} points @param {number} seconds */
export function nearest(points, seconds) {
  let best;
  for (const point of points) if (!best || Math.abs(point[0] - seconds) < Math.abs(best[0] - seconds)) best = point;
  return best;
}
