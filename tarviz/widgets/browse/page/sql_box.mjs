// @ts-check
// A box for SQL over the records, the objects and the tags of the shards; a row with a key leads to its record.

import { button, fill, focusedBeside, h, plural, table } from "../../host/core.mjs";
import { wordsOf } from "../../host/requests.mjs";

const FIRST_QUERY = "SELECT * FROM records LIMIT 20";

export class SqlBox {
  /** @param {Pick<import("./state.mjs").Page, "rpc" | "searches" | "leave"> & { copies: import("./copies.mjs").Copies }} around */
  constructor(around) {
    this.around = around;
    this.asked = 0; // queries so far; each ends the one before
    this.text = h("textarea", {
      class: "tvz-sql-text tvz-mono",
      rows: 4,
      value: FIRST_QUERY,
      spellcheck: false,
      "aria-label": "SQL over records, objects and tags",
      onkeydown: (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) this.run();
      },
    });
    this.words = h("span", { role: "status", class: "tvz-cut" }, "records, objects (one row a box), tags; Ctrl+Enter runs it");
    this.answer = h("div", { class: "tvz-sql-answer", tabIndex: 0, role: "region", "aria-label": "rows of the answer" });
    this.halt = button("stop", "end the query", () => this.stop());
    this.halt.hidden = true;
    this.root = h(
      "section",
      { class: "tvz-side-by-side tvz-sql", "aria-label": "SQL", hidden: true },
      h(
        "div",
        { class: "tvz-side-head" },
        button("run", "run the query (Ctrl+Enter)", () => this.run()),
        this.halt,
        button("copy", "copy the query", () => around.copies.text(this.text.value)),
        this.words,
        button("✕", "back to the grid (Esc)", () => this.close()),
      ),
      this.text,
      this.answer,
    );
  }

  get shown() {
    return !this.root.hidden;
  }

  toggle() {
    if (this.shown) return this.close();
    this.root.hidden = false;
    this.text.focus();
    return undefined;
  }

  close() {
    const focused = this.root.contains(focusedBeside(this.root));
    this.root.hidden = true;
    if (!this.halt.hidden) this.stop();
    if (focused) this.around.leave();
  }

  async run() {
    this.say("running …");
    const own = ++this.asked;
    this.halt.hidden = false;
    try {
      const { r } = await this.around.rpc("sql", { query: this.text.value });
      const count = plural(r.rows.length, "row");
      if (own !== this.asked) return;
      this.say(r.more ? `the first ${count}; there are more` : count);
      this.draw(r);
    } catch (error) {
      if (own !== this.asked) return;
      this.say(wordsOf(error), "tvz-bad");
    } finally {
      if (own === this.asked) this.halt.hidden = true;
    }
  }

  stop() {
    this.around.rpc("stop_sql").catch(() => {});
  }

  /** @param {string} text @param {string} [tone] */
  say(text, tone = "") {
    this.words.className = `tvz-cut ${tone}`;
    this.words.textContent = text;
    this.words.title = text;
  }

  /** @param {{ columns: string[], rows: any[][] }} found */
  draw({ columns, rows }) {
    const key = columns.indexOf("key");
    const cell = (/** @type {any} */ value, /** @type {number} */ at) => {
      const text = value === null ? "" : String(value);
      if (at !== key || !text) return h("td", { class: typeof value === "number" ? "tvz-number" : "", dir: "auto", title: text }, text);
      return h("td", { dir: "auto" }, h("button", { class: "tvz-link", title: "show this record", onclick: () => this.show(text) }, text));
    };
    const heads = columns.map((name) => h("th", { scope: "col" }, name));
    const lines = rows.map((row) => h("tr", {}, ...row.map(cell)));
    fill(this.answer, table("", heads, lines));
  }

  /** @param {string} key */
  show(key) {
    this.close();
    this.around.searches.goTo(key);
  }
}
