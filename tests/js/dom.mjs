// A page without a browser: happy-dom's document in the place of Node's globals, with the sizes a layout would give.
import { resolveObjectURL } from "node:buffer";
import { setMaxListeners } from "node:events";
import { test as nodeTest } from "node:test";

const { Window } = await import("happy-dom").catch(() => ({}));

/** A test of what touches the page; skipped where `npm ci` was not run (in CI that is a failure of `make check`). */
export const test = Window ? nodeTest : (name) => nodeTest(name, { skip: "happy-dom is not installed (make check)" }, () => {});

const GLOBALS = `document location history navigator Element Node ShadowRoot DocumentFragment MutationObserver matchMedia getComputedStyle
  requestAnimationFrame cancelAnimationFrame Image CSS localStorage`;
const SIZE = { clientWidth: 1000, clientHeight: 600, offsetWidth: 1000, offsetHeight: 600 };

/** The pen of a canvas: `calls` are what was drawn, as [name, ...arguments]. */
function penOf(canvas) {
  const calls = [];
  const pixels = (width, height) => ({ width, height, data: new Uint8ClampedArray(4 * width * height) });
  const known = {
    canvas,
    calls,
    createImageData: pixels,
    getImageData: (_x, _y, width, height) => pixels(width, height),
    measureText: (text) => ({ width: 6 * text.length }),
  };
  return new Proxy(known, {
    get: (_, name) => (name in known ? known[name] : (...values) => void calls.push([name, ...values])),
    set: (_, name, value) => Boolean(calls.push([name, value])) && Boolean((known[name] = value) || true),
  });
}

/** A PNG in a blob is "loaded": its size is read. */
async function sized(address) {
  const view = new DataView(await resolveObjectURL(address).arrayBuffer());
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

setMaxListeners(0); // a page hangs all it listens to on one signal

if (Window) {
  const window = new Window({ url: "http://localhost/", width: 1280, height: 800 });
  globalThis.window = window;
  const kinds = Object.getOwnPropertyNames(window).filter((name) => /^(HTML\w*Element|\w*Event)$/.test(name));
  for (const name of [...GLOBALS.split(/\s+/), ...kinds]) {
    const value = /^(matchMedia|getComputed|request|cancel)/.test(name) ? window[name].bind(window) : window[name];
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  window.addEventListener("error", ({ error }) => {
    throw error; // what a listener throws fails the test
  });
  const { prototype } = window.HTMLElement;
  for (const [name, size] of Object.entries(SIZE)) Object.defineProperty(prototype, name, { get: () => size, configurable: true });
  prototype.getBoundingClientRect = () => ({ left: 0, top: 0, right: 1000, bottom: 600, width: 1000, height: 600, x: 0, y: 0 });
  prototype.setPointerCapture = () => {};
  Object.defineProperty(window.HTMLImageElement.prototype, "src", {
    configurable: true,
    get() {
      return this.getAttribute("src") ?? "";
    },
    set(address) {
      this.setAttribute("src", address);
      this.decode = async () => {};
      if (!/^blob:/.test(address)) return;
      const load = sized(address).then(({ width, height }) => {
        for (const [name, value] of Object.entries({ naturalWidth: width, naturalHeight: height, width, height, complete: true }))
          Object.defineProperty(this, name, { value, configurable: true });
        this.dispatchEvent(new Event("load"));
      });
      this.decode = () => load;
      load.catch(() => this.dispatchEvent(new Event("error")));
    },
  });
  globalThis.createImageBitmap = async (of) => {
    if (of.naturalWidth) return { width: of.naturalWidth, height: of.naturalHeight };
    const view = new DataView(await of.arrayBuffer());
    return { width: view.getUint32(16), height: view.getUint32(20) };
  };
  globalThis.OffscreenCanvas = class {
    constructor(width, height) {
      Object.assign(this, { width, height });
    }
    getContext() {
      return (this.pen ??= penOf(this));
    }
  };
  window.HTMLCanvasElement.prototype.getContext = function (kind) {
    return kind === "2d" ? (this.pen ??= penOf(this)) : null;
  };
}

/** As browsers do: what is observed is told at once, here once only, since nothing is laid out anew. */
const observer = (entry) =>
  class {
    constructor(told) {
      this.told = told;
    }
    observe(target) {
      setTimeout(() => this.told && this.told([{ target, ...entry }]));
    }
    unobserve() {}
    disconnect() {
      this.told = undefined;
    }
  };
globalThis.ResizeObserver = observer({});
globalThis.IntersectionObserver = observer({ isIntersecting: true });

/** An element with these children, in the page. */
export function placed(...children) {
  const place = document.createElement("div");
  place.append(...children);
  document.body.append(place);
  return place;
}

/** Click it, or what else a mouse does. */
export function click(element, more = {}, kind = "click") {
  element.dispatchEvent(new PointerEvent(kind, { bubbles: true, cancelable: true, composed: true, button: 0, pointerId: 1, ...more }));
}

/** Turn the wheel over an element. */
export function wheel(element, deltaY, more = {}) {
  element.dispatchEvent(Object.assign(new MouseEvent("wheel", { bubbles: true, cancelable: true, ...more }), { deltaY }));
}

/** Give a box or a chooser another value, as somebody does who types or picks. */
export function put(element, value, kind = element.localName === "select" ? "change" : "input") {
  element.value = value;
  element.dispatchEvent(new Event(kind, { bubbles: true }));
}

/** Press a key on an element; whether the page took it from the browser. */
export function press(element, key, more = {}) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, composed: true, ...more });
  element.dispatchEvent(event);
  return event.defaultPrevented;
}

/** Wait until it holds; the limit is for what hangs. */
export async function until(holds, limit = Number(process.env.TARVIZ_TEST_LIMIT ?? 20_000)) {
  for (const end = Date.now() + limit; ; ) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not so within ${limit} ms: ${holds}`);
    await new Promise((go) => setTimeout(go, 10));
  }
}
