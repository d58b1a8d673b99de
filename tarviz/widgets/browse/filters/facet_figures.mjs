// @ts-check
// The figures of a column as they are read: numbers, a summary in a line, the condition for a run of bars.

import { formatCount, plural } from "../../host/core.mjs";

/** A figure as it is read: whole numbers in groups, others with four digits. @param {any} value */
export function figure(value) {
  if (typeof value !== "number") return String(value ?? "");
  if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? (value < 0 ? "−" : "") + formatCount(Math.abs(value)) : value.toPrecision(4);
  return Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/** What a column holds, in a line. @param {any} side one summary of a facet @param {string} type */
export function figures(side, type) {
  const numbers = side.distinct > 1 && typeof side.mean === "number";
  return [
    plural(side.distinct, "value"),
    numbers ? `${figure(side.min)} … ${figure(side.max)}` : "",
    numbers && type !== "boolean" ? `mean ${figure(side.mean)}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The condition for a run of a histogram's bars. @param {string} column @param {any[]} bars @param {number} low @param {number} high */
export function spanOf(column, bars, low, high) {
  return {
    where: `${column} >= ${bars[low].low} and ${column} ${high === bars.length - 1 ? "<=" : "<"} ${bars[high].high}`,
    text: `${column} ${figure(bars[low].low)} … ${figure(bars[high].high)}`,
  };
}
