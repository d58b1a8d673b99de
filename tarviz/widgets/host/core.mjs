// @ts-check
// What the widgets share: DOM without markup, keys, virtual rows, pictures, text to copy and files to save.

/**
 * A DOM element. Strings become text nodes, never markup.
 * @param {string} tag
 * @param {Record<string, any>} [properties] `class`, `on…` listeners, `aria-…`/`data-…`/`role` attributes, other DOM properties
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (/^(aria-|data-|role$|list$|for$|colspan$)/.test(name)) element.setAttribute(name, String(value));
    else Object.assign(element, { [name]: value });
  }
  fill(element, ...children);
  return element;
}

/** @param {string} text @param {string} title @param {() => void} act @param {Record<string, any>} [more] other properties */
export const button = (text, title, act, more = {}) => h("button", { title, onclick: act, ...more }, text);

/** A table. @param {string} kind its class @param {Node[]} heads @param {Node[]} rows */
export const table = (kind, heads, rows) => h("table", { class: kind }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));

/** What has the keys, in the document or the shadow an element lives in. @param {Element} element @returns {HTMLElement | null} */
export const focusedBeside = (element) => /** @type {any} */ (element.getRootNode()).activeElement ?? null;

/** Give an element the keys, and leave the page where it is scrolled to. @param {HTMLElement} element */
export const focusInPlace = (element) => element.focus({ preventScroll: true });

/** How many pixels of the screen a canvas has for each of ours, where two are enough. */
export const screenDots = () => Math.min(2, globalThis.devicePixelRatio || 1);

/** As many pixels as a canvas is large on the screen; not begun anew where it has them. @param {HTMLCanvasElement} canvas @param {Element} place @param {number} dots */
export function fitCanvas(canvas, place, dots) {
  const [width, height] = [place.clientWidth, place.clientHeight].map((side) => Math.max(1, Math.round(side * dots)));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

/** From now on draw in our pixels, of which a canvas has `dots` each. @param {CanvasRenderingContext2D} pen @param {number} dots */
export const finely = (pen, dots) => pen.setTransform(dots, 0, 0, dots, 0, 0);

/** Give the keys back to the notebook around a widget. @param {HTMLElement} root */
export function leave(root) {
  focusedBeside(root)?.blur();
  /** @type {HTMLElement | null} */ (root.closest(".jp-Notebook"))?.focus();
}

/** Replace what an element holds; what is not there is left out. @param {Element} element @param {...(Node | string | null | undefined | false)} children */
export const fill = (element, ...children) =>
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));

/** Why a tile is not shown, into its box: the code, then as many whole lines as fit. @param {HTMLElement} box @param {string} reason @param {number} px */
export function refuse(box, reason, px) {
  const [code, ...words] = reason.split(":");
  const text = h("span", { title: reason }, words.join(":").trim());
  text.style.setProperty("--lines", String(Math.max(1, Math.floor((px - 38) / 14.5))));
  box.classList.add("tvz-refused");
  box.append(h("strong", {}, code), text);
}

/** A text with the words marked that were searched for, case folded. @param {string} text @param {string[]} words @returns {(Node | string)[]} */
export function hits(text, words) {
  if (!words.length) return [text];
  const found = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
  return text.split(found).map((part, at) => (at % 2 ? h("mark", {}, part) : part));
}

/** As `hits`, of a line that is cut at its end: it begins shortly before the first hit. @param {string} text @param {string[]} words */
export function hitsInLine(text, words) {
  const low = text.toLowerCase();
  const at = Math.min(...words.map((word) => low.indexOf(word.toLowerCase())).filter((place) => place >= 0));
  return hits(at > 14 && Number.isFinite(at) ? `…${text.slice(at - 8)}` : text, words);
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  let number = bytes;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (Math.abs(number) < 999.5 || unit === "TB")
      return `${unit === "B" || number >= 100 ? number.toFixed(0) : number >= 10 ? number.toFixed(1) : number.toFixed(2)} ${unit}`;
    number /= 1000;
  }
  return "";
}

/** Groups of three digits, commas between them: 1,000,000. @param {number} number */
export const formatCount = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** A number of things in words: 1 record, 2,000 records. @param {number} number @param {string} word */
export const plural = (number, word) => `${formatCount(number)} ${word}${number === 1 ? "" : "s"}`;

/** The type of an encoded picture by its first bytes, "" when it is none a browser shows. @param {DataView} view */
export function pictureType(view) {
  if (view.byteLength < 12) return "";
  const four = view.getUint32(0);
  if (four >>> 8 === 0xffd8ff) return "image/jpeg";
  if (four === 0x89504e47) return "image/png";
  if (four === 0x52494646 && view.getUint32(8) === 0x57454250) return "image/webp";
  if (four === 0x47494638) return "image/gif";
  return four >>> 16 === 0x424d ? "image/bmp" : "";
}

/** Blob addresses by key, the least recently used revoked first, all of them on abort. */
export class BlobCache {
  /** @param {{ count?: number, bytes?: number, signal?: AbortSignal }} [options] */
  constructor({ count = 600, bytes = 48e6, signal } = {}) {
    this.count = count;
    this.bytes = bytes;
    this.used = 0;
    /** @type {Map<string, { url: string, size: number }>} */
    this.items = new Map();
    signal?.addEventListener("abort", () => this.clear());
  }

  /** @param {string} key @returns {string | undefined} */
  get(key) {
    const item = this.items.get(key);
    if (!item) return undefined;
    this.items.delete(key);
    this.items.set(key, item);
    return item.url;
  }

  /** @param {string} key @param {DataView} view @param {string} type @returns {string} */
  put(key, view, type) {
    this.drop(key);
    const url = URL.createObjectURL(new Blob([/** @type {any} */ (view)], { type }));
    this.items.set(key, { url, size: view.byteLength });
    this.used += view.byteLength;
    for (const old of this.items.keys()) {
      if ((this.items.size <= this.count && this.used <= this.bytes) || old === key) break;
      this.drop(old);
    }
    return url;
  }

  /** @param {string} key */
  drop(key) {
    const item = this.items.get(key);
    if (!item) return;
    URL.revokeObjectURL(item.url);
    this.used -= item.size;
    this.items.delete(key);
  }

  clear() {
    for (const key of [...this.items.keys()]) this.drop(key);
  }
}

/**
 * The name of a key press: "a", "A", "Enter", "Ctrl+c"; "" while a letter is composed.
 * @param {KeyboardEvent} event
 */
export function keyName(event) {
  if (event.isComposing) return "";
  const name = event.key === " " ? "Space" : event.key;
  return (event.ctrlKey ? "Ctrl+" : "") + (event.metaKey ? "Meta+" : "") + (event.altKey ? "Alt+" : "") + name;
}

/** Whether letters are text where they are typed. @param {Event} event */
export const isTyping = ({ target }) =>
  target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;

/**
 * Keys of a widget. They never reach a notebook around it; what is not bound keeps its meaning in the browser (Tab, Ctrl+F).
 * @param {HTMLElement} root
 * @param {(name: string, event: KeyboardEvent) => boolean} act answers true when the key was used
 * @param {AbortSignal} signal
 */
export function bindKeys(root, act, signal) {
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener(
    "keydown",
    (event) => {
      if (!document.documentElement.hasAttribute("data-tarviz-page")) event.stopPropagation();
      if (isTyping(event) && event.key !== "Escape") return;
      if (act(keyName(event), event)) event.preventDefault();
    },
    { signal },
  );
  for (const kind of ["keyup", "keypress"]) root.addEventListener(kind, (event) => event.stopPropagation(), { signal });
}

/**
 * An edge that is dragged to the side. @param {HTMLElement} edge @param {() => number} begin what it stands at
 * @param {(from: number, moved: number) => void} move hears what it stood at, and by how many pixels it was moved
 */
export function dragged(edge, begin, move) {
  /** @type {{ from: number, x: number } | undefined} */
  let drag;
  edge.addEventListener("pointerdown", (e) => {
    e.preventDefault();
    edge.setPointerCapture(e.pointerId);
    drag = { from: begin(), x: e.clientX };
  });
  edge.addEventListener("pointermove", (e) => drag && move(drag.from, e.clientX - drag.x));
  edge.addEventListener("pointerup", () => {
    drag = undefined;
  });
}

/** What hangs down from a word of a header; Escape puts it away. @param {Record<string, any>} properties @param {string} word @param {string} title @param {...Node} children */
export function menu(properties, word, title, ...children) {
  const box = h("details", properties, h("summary", { title }, word), h("div", { class: "tvz-views-list" }, ...children));
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    if (e.key !== "Escape") return;
    e.stopPropagation();
    box.open = false;
    box.firstChild.focus();
  });
  return box;
}

/** The tallest a scrolled area is made; browsers stop at 16 to 33 million pixels. */
export const MAX_SCROLL = 8_000_000;

/**
 * How a grid lies: columns, row height, full height, and the height its scroll bar is given.
 * @param {{ width: number, count: number, tile: number, caption: number, gap?: number }} options
 */
export function layOut({ width, count, tile, caption, gap = 8 }) {
  const columns = Math.max(1, Math.floor((width + gap) / (tile + gap)));
  const rowHeight = tile + caption + gap;
  const rows = Math.ceil(count / columns);
  const height = rows * rowHeight + gap;
  return { columns, rowHeight, rows, height, scrollHeight: Math.min(height, MAX_SCROLL) };
}

/**
 * Items first…stop−1 that show when the view's top is at pixel `top`, with `margin` rows more on both sides.
 * @param {{ columns: number, rowHeight: number }} layout
 * @param {{ top: number, height: number, count: number, margin?: number }} view
 */
export function visible({ columns, rowHeight }, { top, height, count, margin = 0 }) {
  const firstRow = Math.max(0, Math.floor(top / rowHeight) - margin);
  const lastRow = Math.floor((top + Math.max(height, 1) - 1) / rowHeight) + margin;
  return { first: Math.min(count, firstRow * columns), stop: Math.min(count, (lastRow + 1) * columns) };
}

/**
 * Pixel of the full grid for a place of the scroll bar; they differ only when the bar's area is capped.
 * @param {number} scrollTop @param {{ height: number, scrollHeight: number }} layout @param {number} viewHeight
 */
export function topOf(scrollTop, { height, scrollHeight }, viewHeight) {
  if (height <= scrollHeight) return scrollTop;
  return (scrollTop / Math.max(1, scrollHeight - viewHeight)) * (height - viewHeight);
}

/** The other way round. @param {number} top @param {{ height: number, scrollHeight: number }} layout @param {number} viewHeight */
export function scrollOf(top, { height, scrollHeight }, viewHeight) {
  if (height <= scrollHeight) return top;
  return (top / Math.max(1, height - viewHeight)) * (scrollHeight - viewHeight);
}

/**
 * Where a key moves the cursor among `count` items.
 * @param {string} key @param {number} at @param {{ columns: number, rows: number, count: number }} grid `rows`: whole rows that fit the view
 */
export function move(key, at, { columns, rows, count }) {
  const last = count - 1;
  const page = Math.max(1, rows) * columns;
  const to = /** @type {Record<string, number>} */ ({
    ArrowLeft: at - 1,
    h: at - 1,
    ArrowRight: at + 1,
    l: at + 1,
    ArrowUp: at - columns,
    k: at - columns,
    ArrowDown: at + columns,
    j: at + columns,
    Home: 0,
    End: last,
    PageUp: at - page,
    PageDown: at + page,
  })[key];
  if (to === undefined) return undefined;
  if (count === 0) return -1;
  // down from the last full row goes to the last item, not nowhere
  return Math.max(0, Math.min(last, to));
}

/** Put text on the clipboard; true when it got there. @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { value: text, class: "tvz-offscreen" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** Offer bytes as a file to save. @param {string} name @param {BlobPart[]} parts */
export function saveAs(name, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
  const link = h("a", { href: url, download: name.replace(/[^\w.\- ]+/g, "_").slice(-120) || "member" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Run `work` at most once per `wait` ms, the last call winning. @param {() => void} work @param {number} wait @param {AbortSignal} signal */
export function later(work, wait, signal) {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    clearTimeout(timer);
    if (!signal.aborted) timer = /** @type {any} */ (setTimeout(work, wait));
  };
}

/** What a host calls to draw a widget by a view of this class; it returns what ends it.
 * @param {new (model: any, el: HTMLElement, signal: AbortSignal) => { root: HTMLElement }} View */
export const drawnBy =
  (View) =>
  (/** @type {{ model: any, el: HTMLElement, signal?: AbortSignal }} */ { model, el, signal: outer }) => {
    const ending = new AbortController();
    outer?.addEventListener("abort", () => ending.abort());
    const view = new View(model, el, ending.signal);
    return () => {
      ending.abort();
      view.root.remove();
    };
  };
