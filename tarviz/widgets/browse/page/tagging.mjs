// @ts-check
// A tag and a note for the marked records, or for the one under the cursor: they are kept beside the shards' indexes.

import { fill, focusedBeside, formatCount, h, plural } from "../../host/core.mjs";

export class Tagging {
  /** @param {Pick<import("./state.mjs").Page, "rpc" | "records" | "scan" | "marks" | "history" | "status" | "leave">
   *  & { keep: import("./keep.mjs").Keep }} around */
  constructor(around) {
    this.around = around;
    this.words = h("span", { class: "tvz-save-words" });
    this.known = h("datalist", { id: `tvz-tags-${Math.random().toString(36).slice(2)}` });
    this.tag = this.input("tag", "one word: bad, blurred, look-again; asked for with is:bad or tag = 'bad'", "tag");
    this.tag.setAttribute("list", this.known.id);
    this.note = this.input("tvz-tag-note", "why, if you like", "note");
    this.bar = h(
      "div",
      { class: "tvz-saver tvz-tagger", role: "group", "aria-label": "tag records", hidden: true },
      this.words,
      this.tag,
      this.note,
      h("button", { title: "give them the tag", onclick: () => this.write("tag") }, "tag"),
      h("button", { title: "take the tag away from them", onclick: () => this.write("untag") }, "take away"),
      h("button", { "aria-label": "close", title: "close", onclick: () => this.close() }, "✕"),
      this.known,
    );
  }

  /** @param {string} name @param {string} title @param {string} text */
  input(name, title, text) {
    const onkeydown = (/** @type {KeyboardEvent} */ e) => e.key === "Enter" && this.write("tag");
    return h("input", { type: "text", class: name, title, placeholder: text, "aria-label": text, spellcheck: false, onkeydown });
  }

  /** The rows that are meant. */
  get rows() {
    const { marks, records } = this.around;
    return marks.size ? [...marks.rows] : records.selected >= 0 ? [records.selected] : [];
  }

  open() {
    const { rows } = this;
    const { marks, keep, status } = this.around;
    if (!rows.length) return status.say("Nothing is marked: Space marks the record.");
    fill(this.words, marks.size ? `${formatCount(rows.length)} marked` : "this record");
    fill(this.known, ...keep.tags.map(([tag]) => h("option", { value: tag })));
    this.bar.hidden = false;
    this.tag.focus();
    this.tag.select();
    return undefined;
  }

  close() {
    if (this.bar.contains(focusedBeside(this.bar))) this.around.leave();
    this.bar.hidden = true;
  }

  /** @param {"tag" | "untag"} what */
  async write(what) {
    const { rows } = this;
    const { rpc, scan, history, status } = this.around;
    const tag = this.tag.value.trim();
    const more = what === "tag" ? { note: this.note.value } : {};
    try {
      const { r } = await rpc(what, { tag, marked: rows, ...more });
      const does = (/** @type {string} */ name, /** @type {any} */ asked) => () => rpc(name, { tag, ...asked }).then(() => scan.wake());
      if (r.before.length)
        history.did({
          text: `${what} ${tag}`,
          undo: does("retag", { before: r.before }),
          redo: does(what, { marked: rows, ...more }),
        });
      this.close();
      const done = what === "tag" ? `tagged ${tag}: is:${tag} shows them` : `no longer tagged ${tag}`;
      status.say(`${plural(r.count, "record")} ${done}`);
      scan.wake();
    } catch (error) {
      status.trouble(error);
    }
  }
}
