// @ts-check
// Panels of viewers (tarviz/viewers/panel.py) as DOM: text, pictures to zoom, trees, tables, sound, films, plots, hex.

import { drawPoints } from "./cloud.mjs";
import { drawImage } from "./picture.mjs";
import { copyText, fill, formatBytes, formatCount, h, plural, scrollOf, table, topOf, visible, MAX_SCROLL } from "../host/core.mjs";
import { drawPlot, plotColours } from "../host/plot.mjs";

/**
 * What a panel needs of the widget around it.
 * @typedef {object} Around
 * @property {any} rpc
 * @property {AbortSignal} signal ends when the panel is replaced
 * @property {(text: string) => void} say
 * @property {number} row
 * @property {string} ext
 * @property {number} size of the field in bytes
 * @property {string} [media] where the field can be played from, with ranges
 * @property {(options: any) => void} ask the panel again, with these options
 * @property {any} options
 */

/** @param {any} panel @param {DataView[]} buffers @param {Around} around @returns {HTMLElement} */
export function drawPanel(panel, buffers, around) {
  const box = h("div", { class: "tvz-panel" });
  if (panel.controls.length) box.append(drawControls(panel.controls, around));
  for (const block of panel.blocks) {
    const make = BLOCKS[block.type];
    if (make) box.append(make(block, buffers, around));
  }
  if (panel.facts.length) {
    box.append(
      h(
        "dl",
        { class: "tvz-facts" },
        ...panel.facts.flatMap((/** @type {string[]} */ [name, value]) => [h("dt", {}, name), h("dd", { class: "tvz-mono" }, value)]),
      ),
    );
  }
  return box;
}

/** @type {Record<string, (block: any, buffers: DataView[], around: Around) => HTMLElement>} */
const BLOCKS = {
  note: (block) => h("p", { class: `tvz-note tvz-note-${block.tone}`, role: block.tone === "bad" ? "alert" : undefined }, block.text),
  text: drawText,
  image: drawImage,
  tree: drawTree,
  table: drawTable,
  plot: drawPlotBlock,
  hex: (_block, _buffers, around) => drawHex(around),
  audio: (block, _buffers, around) => drawMedia("audio", block, around),
  video: (block, _buffers, around) => drawMedia("video", block, around),
  frames: drawFrames,
  turns: drawTurns,
  points: drawPoints,
};

/** Frames of a film side by side; a click goes to the time of the one clicked. @param {any} block @param {DataView[]} buffers @param {Around} around */
function drawFrames(block, buffers, { signal }) {
  const url = URL.createObjectURL(new Blob([/** @type {any} */ (buffers[block.data.buffer])], { type: block.mime }));
  signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  const strip = h("div", { class: "tvz-strip" }, h("img", { src: url, alt: "" }));
  const goTo = (/** @type {number} */ time) => {
    const player = strip.closest(".tvz-panel")?.querySelector("video");
    if (player) player.currentTime = time;
  };
  strip.append(
    ...block.times.map((/** @type {number} */ time, /** @type {number} */ at) => {
      const button = h("button", {
        title: `go to ${time.toFixed(2)} s`,
        "aria-label": `go to ${time.toFixed(2)} seconds`,
        onclick: () => goTo(time),
      });
      button.style.left = `${(100 * at) / block.times.length}%`;
      button.style.width = `${100 / block.times.length}%`;
      return button;
    }),
  );
  return strip;
}

/** A conversation, a turn a box. @param {any} block */
function drawTurns(block) {
  const side = (/** @type {string} */ who) =>
    /^(assistant|gpt|bot|model|ai)$/i.test(who) ? " tvz-answer" : /^system$/i.test(who) ? " tvz-system" : "";
  return h(
    "ol",
    { class: "tvz-turns" },
    ...block.turns.map((/** @type {string[]} */ [who, said]) =>
      h("li", { class: `tvz-turn${side(who)}` }, h("b", { dir: "auto" }, who), h("span", { dir: "auto" }, said)),
    ),
    block.left ? h("li", { class: "tvz-faint" }, `… ${formatCount(block.left)} more turns`) : null,
  );
}

/** @param {any[]} controls @param {Around} around */
function drawControls(controls, around) {
  const slices = controls.filter((one) => one.name === "slice").map((one) => one.value);
  const row = h("div", { class: "tvz-controls" });
  let slice = 0;
  for (const control of controls) {
    const at = control.name === "slice" ? slice++ : -1;
    const change = (/** @type {any} */ value) => {
      if (at >= 0) slices[at] = value;
      around.ask({ ...around.options, [control.name]: at >= 0 ? slices : value });
    };
    const input = control.choices.length
      ? h(
          "select",
          { onchange: (/** @type {any} */ e) => change(e.target.value) },
          ...control.choices.map((/** @type {string} */ c) => h("option", { value: c, selected: c === control.value }, c)),
        )
      : h("input", {
          type: "range",
          min: 0,
          max: control.high,
          value: control.value,
          onchange: (/** @type {any} */ e) => change(Number(e.target.value)),
        });
    row.append(h("label", {}, `${control.label} `, input, control.choices.length ? "" : ` ${control.value} of 0…${control.high}`));
  }
  return row;
}

const MAX_LINES = 4000;

/** @param {any} block @param {DataView[]} buffers */
function drawText(block, buffers) {
  const lines = block.text.split("\n");
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  const left = lines.splice(MAX_LINES).length;
  if (left) lines.push(`… ${plural(left, "more line")}`);
  const list = h(block.numbered ? "ol" : "div", { class: "tvz-text tvz-mono", tabIndex: 0 });
  for (const line of lines) list.append(h(block.numbered ? "li" : "div", { dir: "auto" }, line === "" ? "\u200b" : line));
  if (!block.preview || !block.data) return list;
  const box = h("div", {}, list);
  const show = h(
    "button",
    {
      onclick: () => {
        const url = URL.createObjectURL(new Blob([/** @type {any} */ (buffers[block.data.buffer])], { type: block.preview }));
        const picture = h("img", { src: url, alt: "preview of the markup as a picture", class: "tvz-preview" });
        picture.onload = picture.onerror = () => URL.revokeObjectURL(url);
        picture.addEventListener("error", () =>
          picture.replaceWith(h("p", { class: "tvz-note tvz-note-bad" }, "The browser cannot draw it.")),
        );
        show.replaceWith(picture);
      },
    },
    "preview as picture (scripts in it do not run)",
  );
  box.prepend(show);
  return box;
}

/** @param {any} block @param {DataView[]} _buffers @param {Around} around */
function drawTree(block, _buffers, around) {
  const box = h("div", { class: "tvz-tree tvz-mono" });
  const find = h("input", { type: "search", placeholder: "find in the tree", "aria-label": "find in the tree", class: "tvz-find" });
  const root = h("div", { class: "tvz-tree-root" }, treeNode(block.root, [], "", block.ext, around, 0));
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    for (const line of root.querySelectorAll(".tvz-leaf, summary")) {
      const hit = wanted !== "" && line.textContent.toLowerCase().includes(wanted);
      line.classList.toggle("tvz-hit", hit);
      if (hit)
        for (let up = line.parentElement; up && up !== root; up = up.parentElement) if (up instanceof HTMLDetailsElement) up.open = true;
    }
    root.querySelector(".tvz-hit")?.scrollIntoView({ block: "nearest" });
  });
  box.append(find, root);
  return box;
}

/** @param {(string | number)[]} path @param {string} ext */
export const selectPath = (path, ext) => `SelectJSON(${JSON.stringify(ext)}, ${JSON.stringify(path).replaceAll(",", ", ")})`;

/** @param {any[]} node @param {(string | number)[]} path @param {string} name @param {string} ext @param {Around} around @param {number} depth @returns {HTMLElement} */
function treeNode(node, path, name, ext, around, depth) {
  const copy = async () =>
    around.say((await copyText(selectPath(path, ext))) ? `copied ${selectPath(path, ext)}` : "the clipboard is closed to this page");
  const taken = (/** @type {Event} */ e) => {
    e.preventDefault(); // nothing is folded
    copy();
  };
  const named = (/** @type {string} */ tag, /** @type {string} */ title) =>
    name === "" ? null : h(tag, { class: "tvz-name", title, onclick: taken }, name);
  if (node[0] === "o" || node[0] === "a") {
    const [kind, children, left] = node;
    const object = kind === "o";
    const count = children.length + left;
    const pressed = (/** @type {KeyboardEvent} */ e) => {
      if (e.key === "c" && !e.ctrlKey && !e.metaKey) {
        e.stopPropagation();
        copy();
      }
    };
    const details = h(
      "details",
      { open: depth < 2 && children.length <= 60 },
      // no button within a button: here the name copies by the mouse, or by c on the line
      h(
        "summary",
        { onkeydown: pressed },
        named("span", "copy the path (c)"),
        h("span", { class: "tvz-faint" }, object ? `{${count}}` : `[${count}]`),
      ),
    );
    const open = () => {
      if (details.childElementCount > 1 || !details.open) return;
      children.forEach((/** @type {any} */ child, /** @type {number} */ at) => {
        const key = object ? child[0] : at;
        details.append(treeNode(object ? child[1] : child, [...path, key], String(key), ext, around, depth + 1));
      });
      if (left) details.append(h("div", { class: "tvz-leaf tvz-faint" }, `… ${formatCount(left)} more`));
    };
    details.addEventListener("toggle", open);
    open();
    return details;
  }
  const text =
    node[0] === "s" ? `"${node[1]}"${node[2] > node[1].length ? `… (${formatCount(node[2])} characters)` : ""}` : String(node[1]);
  return h("div", { class: "tvz-leaf", dir: "auto" }, named("button", "copy the path"), h("span", { class: `tvz-v-${node[0]}` }, text));
}

/** @param {any} block */
function drawTable(block) {
  const right = new Set(block.right);
  const cell = (/** @type {string} */ tag, /** @type {string} */ text, /** @type {number} */ at) =>
    h(tag, { class: right.has(at) ? "tvz-right" : "", dir: "auto" }, text);
  const heads = block.columns.map((/** @type {string} */ text, /** @type {number} */ at) => cell("th", text, at));
  const rows = block.rows.map((/** @type {string[]} */ row) => h("tr", {}, ...row.map((text, at) => cell("td", text, at))));
  return h("div", { class: "tvz-table-box", tabIndex: 0 }, table("tvz-table tvz-mono", heads, rows));
}

/** @param {any} block @param {DataView[]} _buffers @param {Around} around */
function drawPlotBlock(block, _buffers, { signal }) {
  const names = block.series.map((/** @type {any} */ [name]) => name);
  const canvas = h("canvas", { class: "tvz-plot", role: "img", "aria-label": `${block.label || "plot"} (${names.join(", ")})` });
  const watch = new ResizeObserver(() => drawPlot(canvas, block));
  watch.observe(canvas);
  signal.addEventListener("abort", () => watch.disconnect());
  const caption = h("figcaption", { class: "tvz-faint" }, block.label || names.join(", "));
  if (block.kind === "lines" && names.length > 1) {
    const colours = plotColours(names, "currentColor", "var(--tvz-accent)");
    names.forEach((/** @type {string} */ name, /** @type {number} */ at) => {
      const mark = h("span", { "aria-hidden": "true" }, " ― ");
      mark.style.color = colours[at];
      caption.append(mark, name);
    });
  }
  return h("figure", { class: "tvz-figure" }, canvas, caption);
}

/** @param {"audio" | "video"} tag @param {any} block @param {Around} around */
function drawMedia(tag, block, around) {
  const player = h(tag, { controls: true, preload: "metadata", class: "tvz-media" });
  const box = h("div", {}, player);
  player.addEventListener(
    "error",
    () => player.src && box.append(h("p", { class: "tvz-note tvz-note-bad" }, "The browser cannot play it.")),
    { once: true },
  );
  if (around.media) {
    player.src = around.media;
    return box;
  }
  const load = async () => {
    const parts = await readAll(around, (share) => fill(box, h("p", { class: "tvz-busy" }, `loading ${Math.round(share * 100)} %`)));
    const url = URL.createObjectURL(new Blob(parts, { type: block.mime }));
    around.signal.addEventListener("abort", () => URL.revokeObjectURL(url));
    player.src = url;
    fill(box, player);
  };
  const begin = () =>
    load().catch((error) => !around.signal.aborted && fill(box, h("p", { class: "tvz-note tvz-note-bad" }, error.message), again));
  const again = h("button", { onclick: begin }, `load ${formatBytes(around.size)}`);
  if (around.size <= 4e6) begin();
  else fill(box, again);
  return box;
}

/** All bytes of a field, in parts of 1 MiB. @param {Around} around @param {(share: number) => void} [tell] */
export async function readAll(around, tell = () => {}) {
  const parts = [];
  for (let at = 0; at < around.size && !around.signal.aborted; ) {
    const { buffers } = await around.rpc("part", { row: around.row, ext: around.ext, start: at, length: 1 << 20 }, { keep: true });
    if (!buffers[0]?.byteLength) throw new Error("The member ended early.");
    parts.push(/** @type {any} */ (buffers[0]));
    at += buffers[0].byteLength;
    tell(at / around.size);
  }
  return parts;
}

const HEX_ROW = 18;
const HEX_PART = 16384;

/**
 * One row of a hex view: address, 16 (or 8) bytes, their ASCII.
 * @param {DataView} view @param {number} at @param {number} start of the row in the file @param {number} [width] bytes a row
 */
export function hexRow(view, at, start, width = 16) {
  const bytes = Array.from({ length: Math.min(width, view.byteLength - at) }, (_, i) => view.getUint8(at + i));
  const cells = bytes.map((b) => b.toString(16).padStart(2, "0"));
  const hex = cells.slice(0, 8).join(" ").padEnd(23) + (width > 8 ? `  ${cells.slice(8).join(" ").padEnd(23)}` : "");
  return `${start.toString(16).padStart(8, "0")}  ${hex}  ${bytes.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("")}`;
}

/** The bytes of a field, rows fetched as they are scrolled to. @param {Around} around @param {number} [from] the byte to begin at */
export function drawHex(around, from = 0) {
  let width = 0;
  let rows = 0;
  let layout = { columns: 1, rowHeight: HEX_ROW, height: 0, scrollHeight: 0 };
  const area = h("div", { class: "tvz-hex-area" });
  const tall = () => box.clientHeight || 180;
  const measure = () => {
    const fits = box.clientWidth >= 560 ? 16 : 8;
    if (fits === width || (width && !box.clientWidth)) return; // hidden, it stays as it is
    const top = width ? Math.floor(topOf(box.scrollTop, layout, tall()) / HEX_ROW) * width : from;
    width = fits;
    rows = Math.ceil(around.size / width);
    layout = { ...layout, height: rows * HEX_ROW, scrollHeight: Math.min(rows * HEX_ROW, MAX_SCROLL) };
    area.style.height = `${layout.scrollHeight}px`;
    box.scrollTop = scrollOf(Math.floor(top / width) * HEX_ROW, layout, tall());
  };
  const lines = h("pre", { class: "tvz-hex-lines tvz-mono" });
  const box = h("div", { class: "tvz-hex", tabIndex: 0, role: "region", "aria-label": `bytes, ${around.size} in all` }, area, lines);
  /** @type {Map<number, DataView | "asked">} */
  const parts = new Map();
  const draw = () => {
    if (around.signal.aborted) return;
    measure();
    const height = tall();
    const { first, stop } = visible(layout, { top: topOf(box.scrollTop, layout, height), height, count: rows });
    const text = [];
    for (let row = first; row < stop; row += 1) {
      const part = Math.floor((row * width) / HEX_PART);
      const view = parts.get(part);
      if (view === undefined) ask(part);
      text.push(
        view instanceof DataView
          ? hexRow(view, row * width - part * HEX_PART, row * width, width)
          : `${(row * width).toString(16).padStart(8, "0")}  …`,
      );
    }
    lines.textContent = text.join("\n");
    lines.style.transform = `translateY(${Math.min(box.scrollTop, Math.max(0, layout.scrollHeight - text.length * HEX_ROW))}px)`;
  };
  const ask = (/** @type {number} */ part) => {
    parts.set(part, "asked");
    around
      .rpc("part", { row: around.row, ext: around.ext, start: part * HEX_PART, length: HEX_PART }, { keep: true })
      .then((/** @type {any} */ { buffers }) => {
        parts.set(part, buffers[0] ?? new DataView(new ArrayBuffer(0)));
        if (parts.size > 64) parts.delete(/** @type {number} */ (parts.keys().next().value));
        draw();
      })
      .catch((/** @type {Error} */ error) => {
        parts.delete(part);
        if (!around.signal.aborted) lines.textContent = error.message;
      });
  };
  box.addEventListener("scroll", draw, { signal: around.signal });
  const watch = new ResizeObserver(draw);
  watch.observe(box);
  around.signal.addEventListener("abort", () => watch.disconnect());
  return box;
}

/** Rows of [name, value …] as a table. @param {string[][]} rows */
export function factTable(rows) {
  return h(
    "table",
    { class: "tvz-table tvz-mono tvz-fact-table" },
    h(
      "tbody",
      {},
      ...rows.map((row) =>
        row[0].startsWith("—")
          ? h("tr", {}, h("th", { colSpan: row.length }, row.join(" ")))
          : h("tr", {}, ...row.map((cell, at) => h(at ? "td" : "th", { dir: "auto" }, cell))),
      ),
    ),
  );
}

/** Bytes as hex rows, 16 to a row. @param {DataView} view */
export const hexDump = (view) =>
  Array.from({ length: Math.ceil(view.byteLength / 16) }, (_, row) => hexRow(view, row * 16, row * 16)).join("\n");
