// @ts-check
// The stages and the results of a bench as tables.

import { fill, h } from "../host/core.mjs";
import { formatMs, formatRate } from "./figures.mjs";

/** What each stage takes, as bars and as a table. @param {HTMLElement} box @param {any} said */
export function drawStages(box, said) {
  const { groups, stages } = said;
  if (!groups?.length && !stages?.length) {
    fill(
      box,
      h(
        "p",
        { class: "tvz-faint" },
        said.running ? "" : "The stages of this cannot be seen from outside. The eager runner times each of them.",
      ),
    );
    return;
  }
  const names = [...new Set(stages.map((/** @type {any} */ row) => row[1]))];
  const tint = (/** @type {string} */ name) => `tvz-tint tvz-c${names.indexOf(name) % 10}`;
  const percent = (/** @type {number} */ share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
  const bars = groups.map((/** @type {any} */ group) => {
    const bar = h("div", {
      class: "tvz-bar-all",
      role: "img",
      "aria-label": `${group.name}: ${group.busy.map((/** @type {any} */ [name, share]) => `${name} ${percent(share)}`).join(", ")}, waiting ${percent(group.waiting)}`,
    });
    for (const [name, share] of group.busy) {
      const part = h("span", { class: tint(name), title: `${name} ${percent(share)}` }, share > 0.11 ? name : "");
      part.style.width = `${share * 100}%`;
      bar.append(part);
    }
    return h(
      "div",
      { class: "tvz-group" },
      h(
        "div",
        { class: "tvz-group-name" },
        h("b", {}, group.name),
        h(
          "span",
          { class: "tvz-faint" },
          ` busy ${percent(1 - group.waiting)}${group.waits && group.waiting > 0.005 ? `, waits ${group.waits} ${percent(group.waiting)}` : ""}`,
        ),
      ),
      bar,
    );
  });
  const most = Math.max(...stages.map((/** @type {any} */ row) => row[2]), 1e-9);
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
  fill(
    box,
    ...bars,
    h(
      "table",
      { class: "tvz-stage-table" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", {}, "stage"),
          h("th", { class: "tvz-number" }, "ms a record"),
          h("th", { class: "tvz-number" }, "share"),
          h("th", {}),
        ),
      ),
      h("tbody", {}, ...rows),
    ),
  );
}

/** What was measured: a row a setting, notes, and a sweep as a table of heat. @param {HTMLElement} box @param {any} said */
export function drawResults(box, said) {
  const rows = (said.rows ?? []).filter((/** @type {any} */ row) => row.kind !== "stage");
  const most = Math.max(...rows.map((/** @type {any} */ row) => row.rate ?? 0), 1e-9);
  const cells = rows.map((/** @type {any} */ row) => {
    const rate = h("td", { class: "tvz-rate tvz-number" }, h("b", {}, row.shown || (row.error ? "failed" : "…")));
    rate.style.setProperty("--share", String((row.rate ?? 0) / most));
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
  const table = h(
    "table",
    { class: "tvz-rows" },
    h("thead", {}, h("tr", {}, ...heads.map((text, at) => h("th", { class: at && at < 8 ? "tvz-number" : "" }, text)))),
    h("tbody", {}, ...cells),
  );
  const notes = [...(said.against ?? []), ...(said.notes ?? [])].map((text) =>
    h("p", { class: `tvz-note${/SLOWER$/.test(text) ? " tvz-note-bad" : ""}` }, text),
  );
  fill(box, h("div", { class: "tvz-rows-box" }, table), ...(said.heat ? [heatTable(said.heat)] : []), ...notes);
}

/** @param {any} heat */
function heatTable({ across, down, name, cells }) {
  const most = Math.max(...cells.flat().map((/** @type {number | null} */ rate) => rate ?? 0), 1e-9);
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
  return h(
    "table",
    { class: "tvz-heat" },
    h("caption", {}, `records/s by workers × ${name}`),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { class: "tvz-faint" }, `${name} ↓  workers →`),
        ...across.map((/** @type {string} */ x) => h("th", { class: "tvz-number" }, x)),
      ),
    ),
    h("tbody", {}, ...rows),
  );
}
