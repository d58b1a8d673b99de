// @ts-check
// Plots on a canvas, in the colours of the theme.

/**
 * Draw a Plot block on a canvas, in the colours of the theme.
 * @param {HTMLCanvasElement} canvas
 * @param {{ kind: string, series: [string, (number | null)[]][], mark?: number | null }} plot
 */
export function drawPlot(canvas, plot) {
  const style = getComputedStyle(canvas);
  const scale = globalThis.devicePixelRatio || 1;
  const width = canvas.clientWidth || 300;
  const height = canvas.clientHeight || 80;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(scale, scale);
  const colours = plotColours(
    plot.series.map(([name]) => name),
    style.color,
    style.getPropertyValue("--tvz-accent").trim() || "#1565c0",
  );
  const all = plot.series.flatMap(([, values]) => values.filter((v) => v !== null));
  const low = plot.kind === "bars" ? 0 : bounds(all)[0];
  const high = plot.kind === "bars" ? barTop(all) : bounds(all)[1];
  const y = (/** @type {number} */ v) => height - 2 - ((Math.min(v, high) - low) / (high - low || 1)) * (height - 4);
  if (plot.kind === "envelope") {
    const [[, lows], [, highs]] = plot.series;
    pen.fillStyle = colours[0];
    lows.forEach((value, at) => {
      const top = highs[at];
      if (value === null || top === null) return;
      pen.fillRect((at / lows.length) * width, y(top), Math.max(1, width / lows.length), Math.max(1, y(value) - y(top)));
    });
    return;
  }
  plot.series.forEach(([, values], number) => {
    pen.globalAlpha = plot.series.length > 1 ? 0.6 : 1;
    pen.fillStyle = pen.strokeStyle = colours[number];
    const step = width / values.length;
    if (plot.kind === "bars") {
      values.forEach((v, at) => {
        if (v === null || v <= 0) return;
        if (at === plot.mark) pen.fillStyle = MARKED;
        pen.fillRect(at * step, y(v), Math.max(step > 4 ? step - 1 : step, at === plot.mark ? 2 : 0.7), height - 1 - y(v));
        pen.fillStyle = colours[number];
      });
    } else {
      pen.beginPath();
      values.forEach((v, at) => v !== null && pen.lineTo((at + 0.5) * step, y(v)));
      pen.stroke();
    }
  });
}

/** Where bars are cut: the highest, unless a few stand far above all others. @param {any[]} values */
export function barTop(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const highest = sorted.at(-1) ?? 1;
  return Math.min(highest, Math.max(1, (sorted[Math.floor(sorted.length * 0.985)] ?? highest) * 1.6));
}

/** Lowest and highest of many numbers (a spread of thousands into Math.min overflows). @param {any[]} values */
export function bounds(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}

const MARKED = "#e06c00";

const LINES = ["#c2661d", "#5c8a2e", "#8657b5", "#0f8f8f", "#c23b6a", "#8a7410", "#5f6f86"];

/** A colour a series. @param {string[]} names @param {string} text @param {string} accent */
export function plotColours(names, text, accent) {
  const known = /** @type {Record<string, string>} */ ({ red: "#d04a4a", green: "#3f9a4f", blue: "#4f7fe0", grey: text });
  return names.map((name, at) => known[name] ?? [accent, ...LINES][at % (LINES.length + 1)]);
}
