// @ts-check
// A tag and a note for the marked records, or for the one under the cursor: they are kept beside the shards' indexes.

import { fill, focusedBeside, formatCount, h, plural } from "../../host/core.mjs";

export class Tagging {
  /** @param {import("./browse.mjs").BrowserView} view */
  constructor(view) {
    this.view = view;
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
    const input = h("input", { type: "text", class: name, title, placeholder: text, "aria-label": text, spellcheck: false });
    input.addEventListener(
      "keydown",
      (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Enter") this.write("tag");
      },
      { signal: this.view.signal },
    );
    return input;
  }

  /** The rows that are meant. */
  get rows() {
    const { marks, records } = this.view;
    return marks.size ? [...marks.rows] : records.selected >= 0 ? [records.selected] : [];
  }

  open() {
    const { view, rows } = this;
    if (!rows.length) return view.say("Nothing is marked: Space marks the record.");
    fill(this.words, view.marks.size ? `${formatCount(rows.length)} marked` : "this record");
    fill(this.known, ...view.keep.tags.map(([tag]) => h("option", { value: tag })));
    this.bar.hidden = false;
    this.tag.focus();
    this.tag.select();
    return undefined;
  }

  close() {
    if (this.bar.contains(focusedBeside(this.bar))) this.view.list.focus();
    this.bar.hidden = true;
  }

  /** @param {"tag" | "untag"} what */
  async write(what) {
    const { view, rows } = this;
    const tag = this.tag.value.trim();
    const more = what === "tag" ? { note: this.note.value } : {};
    try {
      const { r } = await view.rpc(what, { tag, marked: rows, ...more });
      const does = (/** @type {string} */ name, /** @type {any} */ asked) => () =>
        view.rpc(name, { tag, ...asked }).then(() => view.scan.wake());
      if (r.before.length)
        view.history.did({
          text: `${what} ${tag}`,
          undo: does("retag", { before: r.before }),
          redo: does(what, { marked: rows, ...more }),
        });
      this.close();
      const done = what === "tag" ? `tagged ${tag}: is:${tag} shows them` : `no longer tagged ${tag}`;
      view.say(`${plural(r.count, "record")} ${done}`);
      view.scan.wake();
    } catch (error) {
      view.trouble(error);
    }
  }
}
