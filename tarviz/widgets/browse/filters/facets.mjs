// @ts-check
// The columns of the rail: what each holds over all records and over those that show, as figures and bars; a click or a brush filters.

import { fill, focusedBeside, formatBytes, formatCount, h, keyName, plural } from "../../host/core.mjs";
import { figure, figures, spanOf } from "./facet_figures.mjs";

const OPEN_FIRST = 5;
const LISTED = 14;

export class Facets {
  /** @param {Pick<import("../page/state.mjs").Page, "signal" | "rpc" | "records" | "scan" | "searches" | "status">
   *  & { rail: import("../page/rail.mjs").Rail, offer: (columns: string[]) => void }} around `offer` hears which columns there are */
  constructor(around) {
    this.around = around;
    /** @type {any[]} columns there are: name, type */
    this.columns = [];
    /** @type {Map<string, any>} facets by column, as they came last */
    this.known = new Map();
    /** @type {Set<string>} columns that are unfolded */
    this.open = new Set();
    /** somebody has unfolded or folded a column, or all types are known: what is open stays so */
    this.fixed = false;
    this.all = false;
    /** what the list and the facets that are shown were asked at */
    this.version = -1;
    this.asked = "";
    this.busy = false;
    /** a brush is being drawn */
    this.dragged = false;
    /** a button of the mouse is down here: what is under it stays until it is let go, or the click would be lost */
    this.held = false;
    this.note = h("p", { class: "tvz-faint tvz-facet-note" });
    this.list = h("div", {});
    this.root = h("div", { class: "tvz-facets" }, this.note, this.list);
    const { signal } = around;
    const loose = () => setTimeout(() => this.loose()); // the click comes behind it
    this.list.addEventListener("pointerdown", () => (this.held = true), { signal });
    this.list.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => !e.buttons && this.loose(), { signal });
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, loose, { signal });
  }

  loose() {
    if (!this.held) return;
    this.held = false;
    this.draw();
  }

  /** Whether polling has to go on for what is still being read. */
  get settled() {
    const { state } = this.around.scan.columns;
    return state !== "making" && state !== "scanning" && !(state === "ready" && this.asked !== this.wanted());
  }

  wanted(query = this.around.records.query, version = this.around.scan.columns.version) {
    return `${query} ${version} ${[...this.open].join("\n")}`;
  }

  /** What the controller said of its table. */
  follow() {
    const { state, note, bytes } = this.around.scan.columns;
    const scanned = this.around.scan.exact;
    if (state === "costly" && scanned !== undefined) {
      fill(
        this.note,
        h(
          "button",
          {
            class: "tvz-link",
            "data-name": "count",
            title: "read all shards and count what each column holds",
            onclick: () =>
              this.around
                .rpc("prepare")
                .then(() => this.around.scan.wake())
                .catch((/** @type {any} */ e) => this.around.status.trouble(e)),
          },
          `count all columns (reads ${formatBytes(bytes)})`,
        ),
      );
    } else fill(this.note, note ? h("span", { class: state === "making" ? "tvz-busy" : "" }, note) : "");
    this.note.hidden = !note && state !== "costly";
    if ((state === "ready" || state === "making") && this.asked !== this.wanted()) this.refresh();
  }

  async refresh() {
    if (this.busy || this.around.scan.lost) return;
    this.busy = true;
    try {
      const { version, state } = this.around.scan.columns;
      if (version !== this.version) {
        const { r } = await this.around.rpc("facets");
        this.columns = r.columns;
        this.version = version;
        const likely = this.columns.filter((column) => column.type && column.type !== "list" && !/\.size$/.test(column.name));
        if (!this.fixed) {
          this.open = new Set(likely.slice(0, OPEN_FIRST).map((column) => column.name));
          this.fixed = state === "ready";
        }
        this.around.offer(this.columns.map((column) => column.name));
      }
      const query = this.around.records.query;
      // one that is unfolded meanwhile is asked for, too
      for (const name of this.open) {
        if (query !== this.around.records.query || this.around.signal.aborted) break;
        const { r } = await this.around.rpc("facet", { column: name, number: query });
        if (!r.stale && !r.making) this.known.set(name, r);
      }
      this.asked = this.wanted(query, version);
    } catch (error) {
      this.asked = this.wanted();
      this.around.status.trouble(error);
    } finally {
      this.busy = false;
    }
    this.draw();
    this.around.scan.wake();
  }

  draw() {
    if (this.held || this.dragged) return;
    const shown = this.columns.slice(0, this.all ? undefined : Math.max(LISTED, this.open.size + 4));
    const left = this.columns.length - shown.length;
    const focused = focusedBeside(this.list);
    const focus = this.list.contains(focused) && focused?.dataset.name;
    fill(
      this.list,
      this.columns.length ? h("h2", {}, "columns") : null,
      ...shown.map((column) => this.facet(column)),
      left > 0
        ? h(
            "button",
            {
              class: "tvz-link",
              "data-name": "more columns",
              onclick: () => {
                this.all = true;
                this.draw();
                this.around.rail.rove();
              },
            },
            `${left} more`,
          )
        : null,
    );
    this.around.rail.rove();
    if (focus) /** @type {any} */ (this.list.querySelector(`[data-name="${CSS.escape(focus)}"]`))?.focus();
  }

  /** @param {any} column */
  facet(column) {
    const { name } = column;
    const open = this.open.has(name);
    const on = this.around.records.picks.has(name);
    const head = h(
      "button",
      {
        class: `tvz-facet-head${on ? " tvz-on" : ""}`,
        "data-name": `facet ${name}`,
        "aria-expanded": String(open),
        title: open ? "fold" : column.type ? "what it holds" : "what it holds; it is read first",
        onclick: () => this.toggle(name),
      },
      h("span", { class: "tvz-cut tvz-mono", dir: "auto" }, name),
      h("span", { class: "tvz-faint tvz-cut" }, column.type ? (SHORT[column.type] ?? column.type) : "…"),
    );
    const known = this.known.get(name);
    return h(
      "div",
      { class: "tvz-facet" },
      head,
      ...(open ? (known ? this.body(name, known) : [h("p", { class: "tvz-faint" }, column.type ? "" : "being read …")]) : []),
    );
  }

  /** @param {string} name */
  toggle(name) {
    this.fixed = true;
    if (!this.open.delete(name)) this.open.add(name);
    this.draw();
    this.around.scan.wake();
    this.follow();
  }

  /** @param {string} name @param {any} facet */
  body(name, facet) {
    const { all, kept } = facet;
    const filtered = kept.records !== all.records;
    const missing = all.missing
      ? h(
          "button",
          {
            class: "tvz-link",
            "data-name": `missing ${name}`,
            title: "only records without it",
            onclick: () => this.around.searches.pick(name, `${name} is null`, `no ${name}`),
          },
          `${formatCount(filtered ? kept.missing : all.missing)}${filtered ? ` of ${formatCount(all.missing)}` : ""} missing`,
        )
      : null;
    const lines = [h("div", { class: "tvz-figures tvz-faint" }, figures(all, facet.type), missing ? " · " : "", missing)];
    if (facet.of) lines.unshift(h("div", { class: "tvz-figures tvz-busy tvz-of" }, `of the first ${formatCount(facet.of)} records read`));
    if (filtered)
      lines.push(
        h("div", { class: "tvz-figures" }, kept.records - kept.missing ? `shown: ${figures(kept, facet.type)}` : "shown: none has it"),
      );
    const { bars } = facet;
    if (bars.length && bars[0].low !== null && bars[0].low !== bars[0].high) lines.push(this.histogram(name, facet));
    else if (bars.length && !(bars.length > 3 && bars.every((/** @type {any} */ bar) => bar.all === 1)))
      lines.push(...this.values(name, facet));
    return lines;
  }

  /** @param {string} name @param {any} facet */
  values(name, facet) {
    const most = Math.max(...facet.bars.map((/** @type {any} */ bar) => bar.all));
    const filtered = facet.kept.records !== facet.all.records;
    const chosen = this.around.records.picks.get(name)?.parts ?? [];
    const rows = facet.bars.map((/** @type {any} */ bar) => {
      const on = chosen.includes(bar.where);
      const row = h(
        "button",
        {
          class: `tvz-bar${on ? " tvz-on" : ""}`,
          title: `only ${bar.where}\nwith Ctrl or Shift: this too`,
          "data-name": bar.where,
          "aria-pressed": String(on),
          onclick: (/** @type {MouseEvent} */ e) => this.pickValue(name, bar, e.ctrlKey || e.metaKey || e.shiftKey),
        },
        h("span", { class: "tvz-cut", dir: "auto" }, bar.text === "" ? "(empty)" : bar.text),
        h(
          "span",
          { class: "tvz-faint tvz-number" },
          filtered ? `${formatCount(bar.kept)} / ${formatCount(bar.all)}` : formatCount(bar.all),
        ),
      );
      row.style.setProperty("--share", String(bar.all / most));
      row.style.setProperty("--kept", String(bar.kept / most));
      return row;
    });
    const [all, kept] = facet.other;
    if (all)
      rows.push(
        h(
          "p",
          { class: "tvz-faint tvz-figures" },
          `and ${formatCount(facet.all.distinct - facet.bars.length)} rarer: ${filtered ? `${formatCount(kept)} / ` : ""}${plural(all, "record")}`,
        ),
      );
    return rows;
  }

  /** @param {string} name @param {any} bar @param {boolean} more */
  pickValue(name, bar, more) {
    const before = this.around.records.picks.get(name)?.parts ?? [];
    const parts = more
      ? before.includes(bar.where)
        ? before.filter((/** @type {string} */ one) => one !== bar.where)
        : [...before, bar.where]
      : before.length === 1 && before[0] === bar.where
        ? []
        : [bar.where];
    const texts = parts.map(
      (/** @type {string} */ where) => this.known.get(name)?.bars.find((/** @type {any} */ one) => one.where === where)?.text ?? where,
    );
    this.around.searches.pick(name, parts.join(" or "), `${name}: ${texts.join(", ")}`, parts);
  }

  /** Bars to brush: drag over them, or arrows with Shift and Enter. @param {string} name @param {any} facet */
  histogram(name, facet) {
    const { bars } = facet;
    const most = Math.max(...bars.map((/** @type {any} */ bar) => bar.all));
    const chosen = this.around.records.picks.get(name)?.span;
    const span = chosen && chosen[1] < bars.length ? chosen : undefined; // an address may be of a day when there were more bars
    const columns = bars.map((/** @type {any} */ bar, /** @type {number} */ at) => {
      const one = h("span", {
        class: `tvz-col${span && at >= span[0] && at <= span[1] ? " tvz-on" : ""}`,
        title: `${bar.text}\n${facet.kept.records === facet.all.records ? "" : `${formatCount(bar.kept)} of `}${formatCount(bar.all)}`,
      });
      one.style.setProperty("--all", String(bar.all / most));
      one.style.setProperty("--kept", String(bar.kept / most));
      return one;
    });
    const box = h(
      "div",
      {
        class: "tvz-hist",
        role: "slider",
        tabIndex: -1,
        "data-name": `bars ${name}`,
        "aria-label": `${name}: drag, or arrows with Shift and then Enter, to filter`,
        "aria-valuemin": "0",
        "aria-valuemax": String(bars.length - 1),
      },
      ...columns,
    );
    let [from, to] = span ?? [0, 0];
    const ends = () => (from <= to ? [from, to] : [to, from]);
    const light = () => {
      const [low, high] = ends();
      columns.forEach((/** @type {any} */ one, /** @type {number} */ at) => one.classList.toggle("tvz-on", at >= low && at <= high));
      box.setAttribute("aria-valuenow", String(to));
      box.setAttribute(
        "aria-valuetext",
        `${spanOf(name, bars, low, high).text}: ${bars.slice(low, high + 1).reduce((/** @type {number} */ sum, /** @type {any} */ bar) => sum + bar.kept, 0)} records`,
      );
    };
    box.setAttribute("aria-valuenow", String(to));
    box.setAttribute("aria-valuetext", bars[to].text);
    const take = () => {
      const [low, high] = ends();
      const { where, text } = spanOf(name, bars, low, high);
      this.around.searches.pick(name, String(span) === String([low, high]) ? "" : where, text, undefined, [low, high]);
    };
    const place = (/** @type {PointerEvent} */ e) => {
      const frame = box.getBoundingClientRect();
      return Math.max(0, Math.min(bars.length - 1, Math.floor(((e.clientX - frame.left) / frame.width) * bars.length)));
    };
    box.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => {
      if (e.button) return;
      this.dragged = true;
      box.setPointerCapture(e.pointerId);
      from = to = place(e);
      light();
    });
    box.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => {
      if (!this.dragged) return;
      to = place(e);
      light();
    });
    box.addEventListener("pointerup", () => {
      if (!this.dragged) return;
      this.dragged = false;
      take();
    });
    box.addEventListener("pointercancel", () => {
      this.dragged = false;
      this.draw();
    });
    box.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
      const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
      if (step) {
        to = Math.max(0, Math.min(bars.length - 1, to + step));
        if (!e.shiftKey) from = to;
        light();
      } else if (keyName(e) === "Enter" || keyName(e) === "Space") take();
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    const [low, high] = [bars[0].low, bars.at(-1).high];
    return h(
      "div",
      { class: "tvz-histbox" },
      box,
      h(
        "div",
        { class: "tvz-ends tvz-faint" },
        h("span", {}, figure(low)),
        facet.log ? h("span", { title: "each bar is wider than the one before by the same factor" }, "log") : null,
        h("span", {}, figure(high)),
      ),
    );
  }
}

const SHORT = /** @type {Record<string, string>} */ ({
  bigint: "int",
  integer: "int",
  ubigint: "int",
  hugeint: "int",
  double: "float",
  varchar: "text",
  boolean: "bool",
  list: "list",
});
