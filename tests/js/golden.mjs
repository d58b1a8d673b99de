// What a page draws, held against a file: elements one a line, with the strokes of every canvas; names of a day and a place left out.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { until } from "./dom.mjs";

/** Wait until it looks so. Fails where the file is not there: `GOLDEN=write` writes it; look at it, then keep it. */
export async function golden(name, root) {
  const place = new URL(`golden/${name}.html`, import.meta.url);
  if (process.env.GOLDEN === "write") {
    await new Promise((go) => setTimeout(go, 1500));
    return writeFileSync(place, written(root));
  }
  assert.ok(existsSync(place), `there is no ${place.pathname}: GOLDEN=write node --test ${process.argv[1]} writes it, then look at it`);
  const wanted = readFileSync(place, "utf-8");
  await until(() => written(root) === wanted, 5000).catch(() => {});
  return assert.equal(written(root), wanted);
}

function written(root) {
  const copy = root.cloneNode(true);
  const canvases = [...root.querySelectorAll("canvas")];
  [...copy.querySelectorAll("canvas")].forEach((canvas, at) => canvas.append(strokes(canvases[at].pen?.calls ?? [])));
  return `${copy.outerHTML
    .replaceAll("><", ">\n<")
    .replaceAll(/\/tmp\/[^/"<\n]+\//g, "DIR/")
    .replaceAll(/[\d.,]+ (?:ms|µs)\b/g, "ms")
    .replaceAll(/blob:[\w:-]+/g, "blob:")
    .replaceAll(/(?<=(?:id|list|aria-controls|aria-activedescendant)="tvz(?:-tags)?-?)[0-9a-z]+/g, "")}\n`;
}

/** The strokes since the canvas was last begun anew, numbers to two places. */
function strokes(calls) {
  const from = calls.findLastIndex(([name]) => ["clearRect", "setTransform", "scale"].includes(name));
  const short = (_, value) =>
    typeof value === "number" ? Math.round(value * 100) / 100 : value instanceof Object && !Array.isArray(value) ? "…" : value;
  return calls
    .slice(from + 1)
    .map((call) => `\n${JSON.stringify(call, short)}`)
    .join("");
}
