// @ts-check
// The map beside the grid: what it is of, what colours mean, whose picture is under the cursor; a line around points filters the grid.

import { BlobCache, button, fill, focusInPlace, formatCount, h, later, pictureType, plural } from "../host/core.mjs";
import { asView, isOvertaken, wordsOf } from "../host/requests.mjs";
import { channels, packed, paint, shortValue } from "./map_values.mjs";
import { Scatter } from "./scatter.mjs";

export class MapView {
  /** @param {Pick<import("../browse/page/state.mjs").Page, "model" | "signal" | "rpc" | "records" | "look" | "scan" | "searches" | "select">
   *  & { open: (row: number) => void }} around `open` shows a record that is not among those shown */
  constructor(around) {
    this.around = around;
    const { signal } = around;
    /** @type {any} the map that is drawn */
    this.points = undefined;
    /** @type {Float32Array} */
    this.places = new Float32Array();
    /** @type {{ codes: Uint8Array, palette: Uint8Array } | undefined} */
    this.colours = undefined;
    /** @type {Uint8Array | undefined} */
    this.mask = undefined;
    /** the query whose points are told from the others */
    this.told = "";
    this.asking = 0;
    this.making = false; // a question about points is under way
    this.choosing = false;
    this.coloured = false;
    /** of the columns that were offered */
    this.version = -1;
    this.of = h("select", { "aria-label": "what the map is of", title: "what the map is of", onchange: () => this.chosen() });
    this.x = h("select", { "aria-label": "across", title: "across", onchange: () => this.make() });
    this.y = h("select", { "aria-label": "upward", title: "upward", onchange: () => this.make() });
    this.colour = h("select", { "aria-label": "colour of the points", title: "colour of the points", onchange: () => this.recolour() });
    const lasso = () => this.showLasso(!this.scatter?.lassoing);
    this.lasso = button("lasso", "draw a line around points (or hold Shift)", lasso, { "aria-pressed": "false" });
    const keepView = button("in view", "only the records whose points are in view", () => this.circle(this.scatter?.inView() ?? []));
    const fit = button("fit", "show all points (0, or double click)", () => this.scatter?.fit());
    this.tools = h("div", { class: "tvz-map-tools" }, this.of, this.x, this.y, this.colour, this.lasso, keepView, fit);
    this.note = h("p", { class: "tvz-map-note tvz-faint", role: "status" });
    this.legend = h("div", { class: "tvz-map-legend" });
    this.card = h("div", { class: "tvz-map-card", hidden: true });
    this.across = h("div", { class: "tvz-map-axis tvz-faint" });
    this.upward = h("div", { class: "tvz-map-axis tvz-map-up tvz-faint" });
    this.frame = h("div", { class: "tvz-map-frame" }, this.upward, this.across, this.card);
    this.root = h(
      "section",
      { class: "tvz-map", hidden: true, "aria-label": "map of the records" },
      this.tools,
      this.frame,
      this.legend,
      this.note,
    );
    this.point = later(() => this.showCard(), 60, signal);
    this.blobs = new BlobCache({ signal });
  }

  get shown() {
    return !this.root.hidden;
  }

  /** The points, made when the map is first shown. */
  open() {
    if (!this.scatter) {
      this.scatter = new Scatter({
        signal: this.around.signal,
        painter: new URLSearchParams(this.around.model.media ? location.hash.slice(1) : "").get("painter") ?? "",
        onHover: (point, x, y) => this.hover(point, x, y),
        onPick: (point) => this.pick(point),
        onCircle: (corners) => this.circle(corners),
        onMove: () => this.drawAxes(),
      });
      this.frame.prepend(this.scatter.root);
      const dark = matchMedia("(prefers-color-scheme: dark)");
      dark.addEventListener("change", () => this.repaint(), { signal: this.around.signal });
    }
    if (!this.of.options.length) this.choose();
    this.follow();
  }

  /** Ask what a map can be of, again while columns are being read. */
  async choose() {
    if (this.choosing) return;
    this.choosing = true;
    try {
      for (;;) {
        this.version = this.around.scan.columns.version;
        const { r } = await this.around.rpc("map_choices");
        const busy = r.state === "scanning" || r.state === "making";
        if (r.fields.length || !busy) {
          const first = !this.of.options.length;
          this.offer(r, busy);
          if (first) this.chosen();
        }
        if (!busy || this.around.signal.aborted) break;
        if (!this.points) fill(this.note, h("span", { class: "tvz-busy" }, "reading columns"));
        await new Promise((go) => setTimeout(go, 300));
      }
    } catch (error) {
      this.trouble(error);
    } finally {
      this.choosing = false;
    }
  }

  /** @param {any} found @param {boolean} busy more may come */
  offer(found, busy) {
    const [before, x, y, colour] = [this.of.value, this.x.value, this.y.value, this.colour.value];
    const option = (/** @type {string} */ value, text = value) => h("option", { value }, text);
    const group = (/** @type {string} */ label, /** @type {any[]} */ options) =>
      options.length ? h("optgroup", { label }, ...options) : null;
    const embeddings = found.fields.filter((/** @type {any} */ field) => field.kind !== "image");
    const pictures = found.fields.filter((/** @type {any} */ field) => field.kind === "image");
    const each = (/** @type {any[]} */ fields, /** @type {string} */ what) =>
      fields.flatMap(({ name }) =>
        found.by.map((/** @type {string} */ by) => option(`${by} ${name}`, `${name}${what}, ${by.toUpperCase()}`)),
      );
    fill(
      this.of,
      group("embeddings", each(embeddings, "")),
      group("looks", each(pictures, ": colour and shape")),
      found.numeric.length > 1 ? group("columns", [option("columns", "two columns")]) : null,
    );
    const label = found.columns.find((/** @type {any} */ column) => column.name === this.around.look.label)?.name ?? "";
    const usual = found.numeric.filter(
      (/** @type {string} */ name) =>
        found.columns.find((/** @type {any} */ column) => column.name === name)?.type && !/size$/.test(name) && name !== label,
    );
    fill(this.x, ...found.numeric.map((/** @type {string} */ name) => option(name)));
    fill(this.y, ...found.numeric.map((/** @type {string} */ name) => option(name)));
    fill(this.colour, option("", "one colour"), ...found.columns.map((/** @type {any} */ { name }) => option(name)));
    this.x.value = x || usual[0] || found.numeric[0] || "";
    this.y.value = y || usual[1] || found.numeric[1] || "";
    this.colour.value = colour || (this.coloured ? "" : label);
    if (label) this.coloured = true; // from now on the reader chooses
    if (this.colour.value !== colour && this.points) this.recolour();
    if (before) this.of.value = before;
    if (!this.of.options.length && !busy)
      fill(
        this.note,
        found.note || "These records hold nothing that a map can be of: no npy field, no picture, no two columns of numbers.",
      );
  }

  chosen() {
    const columns = this.of.value === "columns";
    this.x.hidden = this.y.hidden = !columns;
    this.make();
  }

  /** Ask for the points until they are made, one question at a time: what the server takes for the map of this page is the one that is shown. */
  async make() {
    this.asking += 1;
    if (this.making) return;
    this.making = true;
    for (let answered = 0; answered !== this.asking && !this.around.signal.aborted; ) {
      const [by, ...name] = this.of.value.split(" ");
      if (!by) break;
      const asked = this.asking;
      const spec = by === "columns" ? { x: this.x.value, y: this.y.value } : { x: name.join(" "), by };
      try {
        const { r, buffers } = await this.around.rpc("map_points", spec);
        if (asked !== this.asking) continue; // another one was chosen meanwhile
        if (r.making) fill(this.note, h("span", { class: "tvz-busy" }, r.making));
        else {
          answered = asked;
          this.take(r, buffers);
        }
      } catch (error) {
        if (asked === this.asking) answered = asked;
        this.trouble(error);
      }
    }
    this.making = false;
  }

  /** @param {any} r @param {DataView[]} buffers */
  take(r, buffers) {
    const { buffer, byteOffset, byteLength } = buffers[0];
    this.places = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength)); // it may lie at an odd place
    if (r.number !== this.points?.number) this.uncircle(); // a line around these very points stays
    this.points = r;
    this.mask = undefined;
    this.colours = undefined;
    this.told = "";
    fill(this.note, [plural(r.count, "point"), r.note].filter(Boolean).join(" · "));
    this.drawAxes();
    this.scatter?.fit();
    this.repaint();
    this.recolour();
    this.follow();
  }

  /** The values at the ends of what is in view. */
  drawAxes() {
    if (!this.points || !this.scatter) return;
    const [left, top, right, , , bottom] = this.scatter.inView();
    const { low, high, axes } = this.points;
    const value = (/** @type {number} */ axis, /** @type {number} */ place) =>
      high[axis] > low[axis] ? shortValue(low[axis] + ((place + 1) / 2) * (high[axis] - low[axis]), high[axis] - low[axis]) : "";
    const ends = (/** @type {number} */ axis, /** @type {number} */ from, /** @type {number} */ to) => [
      h("span", {}, value(axis, from)),
      h("span", { class: "tvz-cut", dir: "auto" }, axes[axis]),
      h("span", {}, value(axis, to)),
    ];
    fill(this.across, ...ends(0, left, right));
    fill(this.upward, ...ends(1, bottom, top));
  }

  repaint() {
    if (!this.scatter) return;
    const strength = this.points?.count > 20_000 ? 0xd0 : 0xff;
    const own = channels(getComputedStyle(this.scatter.over).color);
    const colours = this.colours
      ? paint(this.colours.codes, this.colours.palette, strength)
      : new Uint32Array(this.places.length / 2).fill(packed(own[0], own[1], own[2], strength));
    this.scatter.show(this.places, colours, this.mask);
  }

  async recolour() {
    const column = this.colour.value;
    const number = this.asking;
    const wanted = () => column === this.colour.value && number === this.asking && !this.around.signal.aborted;
    try {
      while (column) {
        const { r, buffers } = await this.around.rpc("map_colours", { column });
        if (!wanted()) return;
        if (!r.making) {
          const [codes, palette] = buffers.map((view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
          this.colours = { codes, palette };
          this.drawLegend(r, palette);
          return void this.repaint();
        }
        fill(this.legend, h("span", { class: "tvz-busy" }, r.making));
        this.around.scan.wake();
        await new Promise((go) => setTimeout(go, 250));
        if (!wanted()) return;
      }
      this.colours = undefined;
      fill(this.legend);
      this.repaint();
    } catch (error) {
      if (wanted()) fill(this.legend);
      this.trouble(error);
    }
  }

  /** @param {any} found @param {Uint8Array} palette */
  drawLegend(found, palette) {
    const colour = (/** @type {number} */ code) => `rgb(${palette[3 * code]}, ${palette[3 * code + 1]}, ${palette[3 * code + 2]})`;
    if (found.ends) {
      const bar = h("span", { class: "tvz-map-bar" });
      bar.style.background = `linear-gradient(to right, ${[1, 64, 128, 192, 255].map(colour).join(", ")})`;
      const [low, high] = found.ends;
      const [from, to] = [low, high].map((end) => h("span", {}, shortValue(end, high - low)));
      return fill(this.legend, from, bar, to);
    }
    return fill(
      this.legend,
      ...found.legend.map((/** @type {any} */ entry) => {
        const dot = h("span", { class: "tvz-map-dot" });
        dot.style.background = colour(entry.code);
        return h(
          "span",
          { class: "tvz-map-entry", title: plural(entry.count, "point") },
          dot,
          h("span", { class: "tvz-cut", dir: "auto" }, entry.name === "" ? "(empty)" : entry.name),
          " ",
          h("span", { class: "tvz-faint tvz-number" }, formatCount(entry.count)),
        );
      }),
    );
  }

  /** Tell the points whose records show from the others, when the query has changed. */
  async follow() {
    const { rpc, records, scan } = this.around;
    if (!this.shown || !this.points) return;
    if (this.version !== scan.columns.version) this.choose();
    const state = `${records.query} ${records.done ? "done" : ""} ${this.points.number}`;
    if (state === this.told) return;
    this.told = state;
    try {
      const { r, buffers } = await rpc("map_shown", { query: records.query });
      if (r.stale) return;
      const mask = buffers.length ? new Uint8Array(buffers[0].buffer, buffers[0].byteOffset, buffers[0].byteLength) : undefined;
      if (mask && mask.length !== this.points.count) return; // of a map that was replaced
      this.mask = mask;
      this.repaint();
    } catch (error) {
      this.trouble(error);
    }
  }

  /** @param {unknown} error */
  trouble(error) {
    if (!isOvertaken(error)) fill(this.note, h("span", { class: "tvz-bad" }, wordsOf(error)));
  }

  // ---- points and records

  /** @param {number} point @param {number} x @param {number} y pixels */
  hover(point, x, y) {
    this.pointed = point;
    this.scatter?.root.classList.toggle("tvz-map-hit", point >= 0);
    if (point < 0) {
      this.card.hidden = true;
      return;
    }
    const { clientWidth, clientHeight } = this.frame;
    this.card.style.left = x > clientWidth / 2 ? "" : `${x + 30}px`;
    this.card.style.right = x > clientWidth / 2 ? `${clientWidth - x + 14}px` : "";
    this.card.style.top = `${Math.max(0, Math.min(y - 20, clientHeight - 150))}px`;
    this.point();
  }

  async showCard() {
    const point = this.pointed;
    if (point === undefined || point < 0) return;
    try {
      const { r, buffers } = await this.around.rpc("map_record", { at: point });
      if (point !== this.pointed) return;
      const [row] = r.rows;
      const data = row.tile.buffer === undefined ? undefined : asView(buffers[row.tile.buffer]);
      const picture = data
        ? h("img", { alt: "", src: this.blobs.put("card", data, pictureType(data)) })
        : h("span", { class: "tvz-snippet tvz-mono", dir: "auto" }, row.tile.text || row.tile.reason);
      fill(
        this.card,
        picture,
        row.label ? h("strong", { class: "tvz-cut", dir: "auto" }, row.label) : null,
        h("span", { class: "tvz-cut tvz-faint", dir: "auto" }, row.key),
      );
      this.card.hidden = false;
    } catch (error) {
      this.trouble(error);
    }
  }

  /** The record of a point, in the pane and, where it shows, in the grid. @param {number} point */
  async pick(point) {
    try {
      const { r } = await this.around.rpc("map_record", { at: point }, { keep: true });
      if (r.position !== null) this.around.select(r.position, r.rows[0].id);
      else this.around.open(r.rows[0].id);
    } catch (error) {
      this.trouble(error);
    }
  }

  // ---- the line around points

  /** @param {boolean} on */
  showLasso(on) {
    if (!this.scatter) return;
    this.scatter.lassoing = on;
    this.lasso.setAttribute("aria-pressed", String(on));
    this.scatter.root.classList.toggle("tvz-map-lasso", on);
    focusInPlace(this.scatter.root);
  }

  /** Only the records whose points lie inside a line. @param {number[]} corners */
  circle(corners) {
    this.trace(corners);
    this.around.searches.run({ area: corners });
  }

  /** Draw a line, or none; what shows stays. @param {number[]} [corners] */
  trace(corners = []) {
    if (!this.scatter) return;
    this.scatter.line = corners;
    this.scatter.soon();
  }

  /** No line any more, and what it kept away shows again. */
  uncircle() {
    this.trace();
    if (this.around.searches.next.area) this.around.searches.run({ area: null });
  }
}
