// @ts-check
// The stages and the results of a bench as tables.

import { fill, h, table } from "../host/core.mjs";
import { formatMs, formatRate } from "./figures.mjs";

/** What each stage takes, as bars and as a table. @param {HTMLElement} box @param {any} said */
export function drawStages(box, said) {
  const { groups, stages } = said;
  if (!groups?.length && !stages?.length) {
    const text = said.running ? "" : "The stages of this cannot be seen from outside. The eager runner times each of them.";
    return fill(box, h("p", { class: "tvz-faint" }, text));
  }
  const names = [...new Set(stages.map((/** @type {any} */ row) => row[1]))];
  const tint = (/** @type {string} */ name) => `tvz-tint tvz-c${names.indexOf(name) % 10}`;
  const percent = (/** @type {number} */ share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
  const bars = groups.map((/** @type {any} */ group) => {
    const busy = group.busy.map((/** @type {any} */ [name, share]) => `${name} ${percent(share)}`).join(", ");
    const label = `${group.name}: ${busy}, waiting ${percent(group.waiting)}`;
    const bar = h("div", { class: "tvz-bar-all", role: "img", "aria-label": label });
    for (const [name, share] of group.busy) {
      const part = h("span", { class: tint(name), title: `${name} ${percent(share)}` }, share > 0.11 ? name : "");
      part.style.width = `${share * 100}%`;
      bar.append(part);
    }
    const waits = group.waits && group.waiting > 0.005 ? `, waits ${group.waits} ${percent(group.waiting)}` : "";
    const words = h("span", { class: "tvz-faint" }, ` busy ${percent(1 - group.waiting)}${waits}`);
    return h("div", { class: "tvz-group" }, h("div", { class: "tvz-group-name" }, h("b", {}, group.name), words), bar);
  });
  const most = Math.max(...stages.map((/** @type {any} */ row) => row[2])) || Infinity;
  const rows = stages.map((/** @type {any} */ [, name, ms, share]) => {
    const bar = h("span", { class: `tvz-ms-bar ${tint(name)}` });
    bar.style.width = `${(ms / most) * 100}%`;
    return h(
      "tr",
      {},
      h("th", { class: "tvz-cut", title: name }, name),
      h("td", { class: "tvz-number" }, formatMs(ms)),
      h("td", { class: "tvz-number tvz-faint" }, percent(share)),
      h("td", { class: "tvz-ms" }, bar),
    );
  });
  const heads = ["stage", "ms a record", "share", ""].map((text, at) =>
    h("th", { class: at === 1 || at === 2 ? "tvz-number" : undefined }, text),
  );
  return fill(box, ...bars, table("tvz-stage-table", heads, rows));
}

/** What was measured: a row a setting, notes, and a sweep as a table of heat. @param {HTMLElement} box @param {any} said */
export function drawResults(box, said) {
  const rows = (said.rows ?? []).filter((/** @type {any} */ row) => row.kind !== "stage");
  const most = Math.max(...rows.map((/** @type {any} */ row) => row.rate)) || Infinity;
  const cells = rows.map((/** @type {any} */ row) => {
    const rate = h("td", { class: "tvz-rate tvz-number" }, h("b", {}, row.shown || (row.error ? "failed" : "…")));
    rate.style.setProperty("--share", String(row.rate / most));
    return h(
      "tr",
      { class: `tvz-${row.kind}` },
      h("th", { class: "tvz-cut", title: [row.label, row.note].filter(Boolean).join("\n") }, row.label),
      rate,
      h("td", { class: "tvz-number tvz-faint" }, row.margin !== null && row.rate ? `±${Math.round((row.margin / row.rate) * 100)} %` : ""),
      ...(row.error
        ? [h("td", { class: "tvz-bad tvz-error", colSpan: 6, title: row.error }, row.error)]
        : [
            h("td", { class: "tvz-number" }, formatRate(row.megabytes)),
            ...[row.p50, row.p90, row.p99].map((ms) => h("td", { class: "tvz-number" }, formatMs(ms))),
            h("td", { class: "tvz-number" }, row.first_seconds === null ? "" : `${formatMs(row.first_seconds * 1000)} ms`),
            h("td", { class: "tvz-faint tvz-cut" }, row.cache),
          ]),
    );
  });
  const heads = ["", "records/s", "±", "payload MB/s", "p50 ms", "p90", "p99", "first batch", "files"];
  const names = heads.map((text, at) => h("th", { class: at && at < 8 ? "tvz-number" : "" }, text));
  const notes = [...(said.against ?? []), ...(said.notes ?? [])].map((text) =>
    h("p", { class: `tvz-note${/SLOWER$/.test(text) ? " tvz-note-bad" : ""}` }, text),
  );
  fill(box, h("div", { class: "tvz-rows-box" }, table("tvz-rows", names, cells)), ...(said.heat ? [heatTable(said.heat)] : []), ...notes);
}

/** @param {any} heat */
function heatTable({ across, down, name, cells }) {
  const most = Math.max(...cells.flat()) || Infinity;
  const rows = cells.map((/** @type {(number | null)[]} */ line, /** @type {number} */ at) =>
    h(
      "tr",
      {},
      h("th", {}, down[at]),
      ...line.map((rate) => {
        const cell = h("td", { class: `tvz-number${rate === most ? " tvz-best" : ""}` }, rate === null ? "…" : formatRate(rate));
        cell.style.setProperty("--share", String((rate ?? 0) / most));
        return cell;
      }),
    ),
  );
  const heads = across.map((/** @type {string} */ x) => h("th", { class: "tvz-number" }, x));
  const found = table("tvz-heat", [h("th", { class: "tvz-faint" }, `${name} ↓  workers →`), ...heads], rows);
  found.prepend(h("caption", {}, `records/s by workers × ${name}`));
  return found;
}
