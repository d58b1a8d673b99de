// @ts-check
// The pane of one record: its fields, each as a value, as bytes, as a tf.train.Example, and its tar header.

import { button, fill, formatBytes, formatCount, h, hits, saveAs } from "../../host/core.mjs";
import { isOvertaken, RpcError, wordsOf } from "../../host/requests.mjs";
import { drawHex, factTable, hexDump, readAll } from "../../panes/panels.mjs";
import { drawCard } from "./card.mjs";
import { shortKey } from "./rail.mjs";

export class RecordPane {
  /**
   * @param {Pick<import("./state.mjs").Page, "model" | "signal" | "rpc" | "records" | "searches" | "status"> & {
   *   rows: import("./rows.mjs").Rows, layers: import("../../panes/overlay.mjs").Layers, copies: import("./copies.mjs").Copies, opened: () => void,
   *   walk: () => HTMLElement, acts: () => HTMLElement[] }} page `opened` hears that the cursor has a record; `walk` and `acts` are what
   *   stands above and below one: the way to its neighbours, what can be done with it
   */
  constructor(page) {
    this.page = page;
    this.field = "";
    this.tab = "value";
    this.options = {};
    /** @type {number | undefined} a byte of the shard that the next record is opened at */
    this.wantedByte = undefined;
    /** @type {any} */
    this.record = undefined;
    this.pane = new AbortController();
    this.root = h("section", { class: "tvz-pane", "aria-label": "record" });
    this.fill();
  }

  /** The record under the cursor into the pane; where its row has not come yet, when it does. @param {number} [id] where it is known */
  async open(id) {
    const position = this.page.records.at;
    const there = this.page.rows.items.get(position);
    const item = id === undefined || there?.id === id ? there : { id, key: "", fields: [], tile: {} };
    this.opening = item === undefined;
    if (!item) return;
    this.page.records.selected = item.id;
    this.page.opened();
    try {
      const { r, buffers } = await this.page.rpc("record", { row: item.id, ext: this.field, options: this.options });
      if (this.page.records.at !== position) return;
      const byte = this.wantedByte;
      if (byte !== undefined) {
        // the field that holds the byte, or the last one before it
        const field = r.fields.findLast((/** @type {any} */ one) => one.offset - 512 <= byte) ?? r.fields[0];
        if (field && field.ext !== this.field) {
          this.field = field.ext;
          return void this.open(id);
        }
      }
      this.fill(r, buffers);
      this.page.status.tell();
    } catch (error) {
      if (isOvertaken(error)) return;
      if (error instanceof RpcError && error.fault.code === "no-kernel") this.fillSaved(item);
      else if (error instanceof RpcError) {
        this.end();
        fill(this.root, h("p", { class: "tvz-note tvz-note-bad", role: "alert" }, wordsOf(error)));
      }
      this.page.status.trouble(error);
    }
  }

  /** The call that makes what is shown. */
  copy() {
    const { record, field } = this;
    if (record) this.page.copies.text(record.python + (field ? `\nrecord[${JSON.stringify(field)}]` : ""));
  }

  end() {
    this.pane.abort();
    this.pane = new AbortController();
    const pane = this.pane;
    this.page.signal.addEventListener("abort", () => pane.abort(), { signal: pane.signal });
  }

  /** @param {any} item */
  fillSaved(item) {
    this.end();
    const url = this.page.rows.blobs.get(item.picture);
    fill(
      this.root,
      h("div", { class: "tvz-pane-head" }, h("h2", { class: "tvz-cut", dir: "auto" }, item.key)),
      url ? h("img", { src: url, alt: "", class: "tvz-saved" }) : h("p", {}, item.tile.text || item.tile.reason),
      h("p", { class: "tvz-note" }, "No kernel: only the saved thumbnail can be shown."),
      h("p", { class: "tvz-faint" }, `fields: ${item.fields.join(", ")}`),
    );
  }

  /** What the panels of a record's fields need of the page. @param {any} record @param {AbortSignal} signal */
  around(record, signal) {
    const { model, rpc, status } = this.page;
    const mediaOf = (/** @type {string} */ other) => model.media?.(`${record.id}/${encodeURIComponent(other)}`);
    return {
      rpc,
      signal,
      say: (/** @type {string} */ text) => status.say(text),
      row: record.id,
      ext: record.ext ?? "",
      size: record.fields.find((/** @type {any} */ f) => f.ext === record.ext)?.size ?? 0,
      options: this.options,
      media: mediaOf(record.ext ?? ""),
      mediaOf,
      fields: record.fields,
      ask: (/** @type {any} */ options) => {
        this.options = options;
        this.open();
      },
    };
  }

  /** @param {any} [record] @param {DataView[]} [buffers] */
  fill(record, buffers = []) {
    this.end();
    this.record = record;
    if (!record)
      return void fill(
        this.root,
        h("p", { class: "tvz-faint tvz-hint" }, "Select a record to look into it. ", h("kbd", {}, "?"), " lists the keys."),
      );
    const keep = this.root.scrollTop;
    const ext = record.ext ?? "";
    const field = record.fields.find((/** @type {any} */ f) => f.ext === ext);
    const around = this.around(record, this.pane.signal);
    const chip = (
      /** @type {Node} */ name,
      /** @type {string} */ more,
      /** @type {string} */ title,
      /** @type {boolean} */ on,
      /** @type {number} */ at,
    ) => h("button", { class: "tvz-chip", role: "tab", "aria-selected": String(on), title, onclick: () => this.pickField(at) }, name, more);
    const chips = record.fields.map((/** @type {any} */ f, /** @type {number} */ at) => {
      const title = `${f.kind}, ${formatBytes(f.size)}, byte ${formatCount(f.offset)}${at < 9 ? ` (key ${at + 1})` : ""}`;
      return chip(h("b", { dir: "auto" }, f.ext || "?"), ` ${formatBytes(f.size)}`, title, this.field !== "" && f.ext === ext, at);
    });
    const tab = (/** @type {string} */ id, /** @type {string} */ text) => {
      const turn = () => {
        this.tab = id;
        this.fill(record, buffers);
      };
      return h("button", { role: "tab", "aria-selected": String(this.tab === id), onclick: turn }, text);
    };
    const body = h("div", { class: "tvz-body", role: "tabpanel" });
    fill(
      this.root,
      this.page.walk(),
      h(
        "div",
        { class: "tvz-pane-head" },
        h("h2", { class: "tvz-cut", title: record.key, dir: "auto" }, ...hits(record.key, this.page.records.words)),
        h("div", { class: "tvz-faint tvz-cut", title: record.shard }, `#${record.index} of ${record.shard.split("/").at(-1)}`),
      ),
      h(
        "div",
        { class: "tvz-chips", role: "tablist", "aria-label": "fields" },
        record.fields.length > 1 ? chip(h("b", {}, "card"), "", "all fields (key 0)", this.field === "", -1) : null,
        ...chips,
      ),
      h(
        "div",
        { class: "tvz-tabs", role: "tablist", "aria-label": "views" },
        tab("value", "Value"),
        tab("bytes", "Bytes"),
        tab("example", "tf.Example"),
        tab("header", "Tar header"),
      ),
      body,
      h(
        "div",
        { class: "tvz-pane-foot" },
        button("copy as Python", "Y", () => this.copy()),

        field ? h("button", { onclick: () => this.saveField(around, record) }, `save .${ext}`) : null,
        ...this.page.acts(),
      ),
    );
    this.fillBody(body, record, buffers, around);
    this.root.scrollTop = keep;
    return undefined;
  }

  /** @param {HTMLElement} body @param {any} record @param {DataView[]} buffers @param {any} around */
  async fillBody(body, record, buffers, around) {
    if (!around.ext) return fill(body, h("p", { class: "tvz-faint" }, "The record has no fields."));
    const place = record.fields.find((/** @type {any} */ f) => f.ext === around.ext);
    try {
      if (this.tab === "value" && record.panel) {
        const panel = record.panel;
        panel.facts = [
          ...panel.facts,
          ["offset", `${formatCount(place.offset)} (0x${place.offset.toString(16)})`],
          ["shown by", panel.viewer],
        ];
        record.panel = {
          ...panel,
          facts: panel.facts.filter(
            (/** @type {any} */ [name], /** @type {number} */ at) =>
              panel.facts.findIndex((/** @type {any} */ [other]) => other === name) === at,
          ),
        };
        fill(
          body,
          ...drawCard(
            record,
            buffers,
            around,
            this.page.layers,
            (ext) => this.pickField(record.fields.findIndex((/** @type {any} */ f) => f.ext === ext)),
            (name) => this.page.searches.pickClasses([name]),
          ),
        );
      } else if (this.tab === "bytes") {
        const sum = h(
          "button",
          {
            onclick: () =>
              this.page.rpc("digest", { row: record.id, ext: around.ext }).then(
                (/** @type {any} */ { r }) => sum.replaceWith(h("span", { class: "tvz-mono tvz-wrap" }, r.sha256)),
                (/** @type {unknown} */ e) => this.page.status.trouble(e),
              ),
          },
          "SHA-256",
        );
        const at = this.wantedByte === undefined ? 0 : Math.max(0, this.wantedByte - place.offset);
        this.wantedByte = undefined;
        fill(
          body,
          drawHex(around, at),
          h(
            "div",
            { class: "tvz-row" },
            `${formatCount(around.size)} bytes from byte ${formatCount(place.offset)} (0x${place.offset.toString(16)}) `,
            sum,
          ),
        );
      } else if (this.tab === "example") {
        const { r, buffers: raw } = await this.page.rpc("example", { row: record.id });
        if (around.signal.aborted) return undefined;
        fill(
          body,
          ...r.notes.map((/** @type {string} */ note) => h("p", { class: "tvz-note tvz-note-warn" }, note)),
          h("h3", {}, "features"),
          factTable(r.features),
          h("h3", {}, `TFRecord frame, ${formatCount(r.size)} bytes`),
          factTable(r.frame),
          h("details", {}, h("summary", {}, "bytes of the example"), h("pre", { class: "tvz-mono tvz-dump" }, hexDump(raw[0]))),
        );
      } else if (this.tab === "header") {
        const { r, buffers: raw } = await this.page.rpc("header", { row: record.id, ext: around.ext });
        if (around.signal.aborted) return undefined;
        fill(
          body,
          factTable(r.rows),
          h("details", {}, h("summary", {}, "bytes of the header"), h("pre", { class: "tvz-mono tvz-dump" }, hexDump(raw[0]))),
        );
      }
    } catch (error) {
      if (isOvertaken(error)) return undefined;
      fill(
        body,
        h(
          "p",
          { class: "tvz-note tvz-note-bad", role: "alert" },
          error instanceof RpcError ? `${error.fault.code}: ${error.fault.msg}` : String(error),
        ),
      );
    }
    return undefined;
  }

  /** One field alone, or (−1) the card of all. @param {number} at */
  pickField(at) {
    const field = this.record?.fields[at];
    if (!field && at >= 0) return;
    this.field = field?.ext ?? "";
    this.options = {};
    this.open();
  }

  /** @param {any} around @param {any} record */
  async saveField(around, record) {
    try {
      const parts = await readAll(around, (share) => this.page.status.say(`reading .${around.ext}: ${Math.round(share * 100)} %`));
      saveAs(`${shortKey(record.key)}.${around.ext}`, parts);
    } catch (error) {
      this.page.status.trouble(error);
    }
  }
}
