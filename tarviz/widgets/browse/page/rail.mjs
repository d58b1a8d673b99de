// @ts-check
// The rail beside the grid: shards, findings, fields, sets of fields, columns. A click on any of them filters.

import { button, fill, formatBytes, formatCount, h, keyName, plural, table, visible } from "../../host/core.mjs";

const RAIL_ROW = 24;

/** Text as a string of the filter language. @param {string} text */
export const quoted = (text) => (text.includes("'") ? `"${text}"` : `'${text}'`);

/** The filter for "has just these fields, of all there are". @param {string[]} fields @param {string[]} all */
export function filterOfSet(fields, all) {
  const has = (/** @type {string} */ ext) => `has(${quoted(ext)})`;
  return [...fields.map(has), ...all.filter((ext) => !fields.includes(ext)).map((ext) => `not ${has(ext)}`)].join(" and ");
}

/** The part of a key that tells records apart. @param {string} key */
export const shortKey = (key) => key.slice(key.lastIndexOf("/") + 1) || key;

export class Rail {
  /** @param {Pick<import("./state.mjs").Page, "signal" | "records" | "scan" | "searches">} around */
  constructor(around) {
    this.around = around;
    const { signal } = around;
    this.allFaults = this.allFields = false;
    /** @type {string | undefined} what has the rail's Tab stop */
    this.roving = undefined;
    this.area = h("div", { class: "tvz-rail-area" });
    this.list = h("div", { class: "tvz-rail-list", role: "listbox", tabIndex: 0, "aria-label": "shards" }, this.area);
    this.list.addEventListener("scroll", () => this.draw(), { signal });
    this.scanned = h("div", {});
    this.more = h("div", { class: "tvz-rail-more" }, this.scanned);
    this.more.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => this.walk(e), { signal });
    this.root = h("nav", { class: "tvz-rail", "aria-label": "shards, fields and classes" }, h("h2", {}, "shards"), this.list, this.more);
  }

  /** Everything below the shards is one Tab stop: arrows go from one to the next. */
  rove() {
    const stops = /** @type {HTMLElement[]} */ ([...this.more.querySelectorAll("button, [tabindex]")]);
    const current = stops.find((one) => this.roving && one.dataset.name === this.roving) ?? stops[0];
    for (const one of stops) one.tabIndex = one === current ? 0 : -1;
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const step = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1, Home: -1e6, End: 1e6 })[event.key];
    if (!step) return;
    const stops = /** @type {HTMLElement[]} */ ([...this.more.querySelectorAll("button, [tabindex]")]);
    const at = Math.max(0, Math.min(stops.length - 1, stops.indexOf(/** @type {HTMLElement} */ (event.target)) + step));
    this.roving = stops[at]?.dataset.name;
    for (const one of stops) one.tabIndex = one === stops[at] ? 0 : -1;
    stops[at]?.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  draw() {
    const all = this.around.scan.shards.length > 1 ? 1 : 0;
    this.list.tabIndex = all - 1;
    const height = this.list.clientHeight || 120;
    const count = this.around.scan.shards.length + all;
    this.area.style.height = `${count * RAIL_ROW}px`;
    this.list.style.maxHeight = `${Math.min(count, 9) * RAIL_ROW + 2}px`;
    const { first, stop } = visible({ columns: 1, rowHeight: RAIL_ROW }, { top: this.list.scrollTop, height, count, margin: 2 });
    const most = Math.max(...this.around.scan.shards.slice(0, 5000).map((/** @type {any} */ s) => s?.count ?? 0));
    const rows = [];
    for (let at = first; at < stop; at += 1) {
      const shard = all && at === 0 ? undefined : this.around.scan.shards[at - all];
      const on = this.around.records.wish.shard === (shard ? shard.number : null);
      const row = h(
        "div",
        {
          class: `tvz-shard${on ? " tvz-on" : ""}`,
          role: "option",
          "aria-selected": String(on),
          title: shard ? shardTitle(shard) : "all shards",
          onclick: () => this.around.searches.run({ shard: shard ? shard.number : null }),
        },
        shard ? h("span", { class: `tvz-dot tvz-dot-${shard.state}` }) : null,
        h("span", { class: "tvz-cut tvz-shard-name", dir: "auto" }, shard ? shard.name : "all shards"),
        shard?.faults
          ? h(
              "span",
              {
                class: ["damaged", "missing", "unreachable"].includes(shard.state) ? "tvz-bad" : "tvz-warn",
                "aria-label": `${shard.faults} findings`,
              },
              "⚠",
            )
          : null,
        h(
          "span",
          { class: "tvz-faint tvz-number" },
          `${shard && !finished(shard) ? "≥ " : ""}${formatCount(shard ? shard.count : this.around.scan.total)}`,
        ),
      );
      if (shard)
        row.style.setProperty("--share", String((shard.share !== null && !finished(shard) ? shard.share : shard.count / most) || 0));
      row.style.top = `${at * RAIL_ROW}px`;
      rows.push(row);
    }
    fill(this.area, ...rows);
  }

  /** What the scan found: findings, fields, sets of fields. */
  drawMore() {
    if (!this.around.scan.summary) return;
    const { fields, sets, faults } = this.around.scan.summary;
    const counted = sets.reduce((/** @type {number} */ sum, /** @type {any} */ [, n]) => sum + n, 0);
    this.around.scan.common = sets.length > 1 && sets[0][1] * 2 >= counted ? sets[0][0].join(" ") : "";
    const all = fields.map((/** @type {any} */ [ext]) => ext);
    const most = Math.max(...fields.map((/** @type {any} */ [, n]) => n));
    const parts = [];
    if (faults.length) {
      parts.push(
        h("h2", {}, "findings"),
        ...faults.slice(0, this.allFaults ? 60 : 3).map((/** @type {any} */ fault) =>
          h(
            "div",
            { class: "tvz-finding" },
            h("strong", { class: fault.code.startsWith("E_") ? "tvz-bad" : "tvz-warn" }, fault.code),
            ` ${this.around.scan.shards[fault.shard]?.name ?? ""}`,
            fault.offset === null || fault.offset === undefined
              ? ""
              : fault.key
                ? h(
                    "button",
                    { class: "tvz-link tvz-mono", title: "show the bytes there", onclick: () => this.around.searches.goToByte(fault) },
                    `byte ${formatCount(fault.offset)}`,
                  )
                : h("span", { class: "tvz-mono" }, ` byte ${formatCount(fault.offset)}`),
            h("div", { class: "tvz-faint" }, fault.message),
            fault.key
              ? button(shortKey(fault.key), `go to ${fault.key}`, () => this.around.searches.goTo(fault.key), {
                  class: "tvz-link tvz-cut",
                })
              : null,
          ),
        ),
      );
      if (faults.length > 3 && !this.allFaults) parts.push(this.further(faults.length - 3, "allFaults"));
    }
    if (fields.length) {
      parts.push(
        h("h2", {}, "fields"),
        ...fields
          .slice(0, this.allFields ? 60 : 7)
          .map((/** @type {[string, number]} */ [ext, n]) => this.bar(ext, n, most, `has(${quoted(ext)})`, `has ${ext}`)),
      );
      if (fields.length > 7 && !this.allFields) parts.push(this.further(fields.length - 7, "allFields"));
    }
    if (sets.length > 1) {
      parts.push(
        h("h2", {}, "records that have …"),
        matrix(
          sets,
          all.slice(0, 9),
          (fields) => this.around.searches.pick("fields", filterOfSet(fields, all), `just ${fields.join(", ")}`),
          (fields) => this.around.records.picks.get("fields")?.where === filterOfSet(fields, all),
        ),
      );
    }
    fill(this.scanned, ...parts);
    this.rove();
  }

  /** @param {number} count @param {"allFaults" | "allFields"} which */
  further(count, which) {
    const act = () => {
      this[which] = true;
      this.drawMore();
    };
    return h("button", { class: "tvz-link", onclick: act }, `${count} more`);
  }

  /** @param {string} text @param {number} n @param {number} most @param {string} filter @param {string} said the filter in words */
  bar(text, n, most, filter, said) {
    const on = this.around.records.picks.has(said);
    const row = h(
      "button",
      {
        class: `tvz-bar${on ? " tvz-on" : ""}`,
        title: `only records with this: ${filter}`,
        "data-name": filter,
        "aria-pressed": String(on),
        onclick: () => this.around.searches.pick(said, filter, said),
      },
      h("span", { class: "tvz-cut", dir: "auto" }, text),
      h("span", { class: "tvz-faint tvz-number" }, formatCount(n)),
    );
    row.style.setProperty("--share", String(n / most));
    return row;
  }
}

/** @param {any} shard */
const finished = (shard) => ["done", "damaged", "missing", "unreachable"].includes(shard.state);

/** @param {any} shard */
const shardTitle = (shard) =>
  [
    shard.url,
    shard.size === null ? "" : formatBytes(shard.size),
    plural(shard.count, "record"),
    shard.state,
    shard.compression,
    shard.trouble,
    shard.stale ? "changed since the scan" : "",
  ]
    .filter(Boolean)
    .join("\n");

/**
 * Field × count: one row a set of fields, a dot where it has the field.
 * @param {[string[], number][]} sets @param {string[]} fields @param {(fields: string[]) => void} pick @param {(fields: string[]) => boolean} isOn
 */
function matrix(sets, fields, pick, isOn) {
  const heads = fields.map((ext) => h("th", { title: ext }, h("span", { class: "tvz-cut", dir: "auto" }, ext)));
  const rows = sets.map(([names, count]) =>
    h(
      "tr",
      {
        class: isOn(names) ? "tvz-on" : "",
        tabIndex: 0,
        role: "button",
        "aria-pressed": String(isOn(names)),
        title: `only records with just: ${names.join(", ")}`,
        onclick: () => pick(names),
        onkeydown: (/** @type {KeyboardEvent} */ e) => keyName(e) === "Enter" && pick(names),
      },
      ...fields.map((ext) =>
        names.includes(ext) ? h("td", { "aria-label": `has ${ext}` }, "●") : h("td", { "aria-label": `no ${ext}` }, "·"),
      ),
      h("td", { class: "tvz-right" }, formatCount(count)),
    ),
  );
  return table("tvz-matrix", [...heads, h("th", { class: "tvz-right" }, "records")], rows);
}
