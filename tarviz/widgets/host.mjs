// @ts-check
// A model for pages without Jupyter: over HTTP (the stand-alone page), or frozen (a deck without a kernel).

/** @typedef {{ _first: any, _pictures: any[], _state: any }} State */

/** Read a frame of `_rpc.pack`. @param {ArrayBuffer} frame @returns {{ message: any, buffers: DataView[] }} */
export function unpack(frame) {
  const view = new DataView(frame);
  const length = view.getUint32(0, true);
  const message = JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 4, length)));
  let at = 4 + length;
  const buffers = [];
  for (let left = view.getUint32(at, true); left > 0; left -= 1) {
    const size = view.getUint32(at + 4, true);
    buffers.push(new DataView(frame, at + 8, size));
    at += 4 + size;
  }
  return { message, buffers };
}

/** Write a frame without buffers. @param {any} message @returns {Uint8Array} */
export function pack(message) {
  const text = new TextEncoder().encode(JSON.stringify(message));
  const frame = new Uint8Array(text.length + 8);
  new DataView(frame.buffer).setUint32(0, text.length, true);
  frame.set(text, 4);
  return frame;
}

/** @param {State} state */
function stub(state) {
  /** @type {Map<string, Set<(...args: any[]) => void>>} */
  const listeners = new Map();
  return {
    /** @param {string} name */
    get: (name) => /** @type {any} */ (state)[name],
    /** @param {string} event @param {(...args: any[]) => void} callback */
    on: (event, callback) => void listeners.set(event, (listeners.get(event) ?? new Set()).add(callback)),
    /** @param {string} event @param {(...args: any[]) => void} callback */
    off: (event, callback) => void listeners.get(event)?.delete(callback),
    /** @param {string} event @param {...any} values */
    emit: (event, ...values) => listeners.get(event)?.forEach((callback) => callback(...values)),
  };
}

const lost = (/** @type {any} */ id, /** @type {string} */ msg) => ({ k: "tvz:res", id, err: { type: "NoKernel", msg, hint: "", code: "no-kernel" } });

/** A model of saved state: every request is answered "no kernel". @param {State} state */
export function frozenModel(state) {
  const model = stub(state);
  return {
    ...model,
    /** @param {any} content */
    send: (content) => {
      if (content?.k === "tvz:req") setTimeout(() => model.emit("msg:custom", lost(content.id, "There is no kernel behind this picture."), []));
    },
  };
}

/** The model of the stand-alone page this module was loaded by. @param {string} [base] */
export async function pageModel(base = "") {
  const answer = await fetch(`${base}/state`);
  if (!answer.ok) throw new Error(await answer.text());
  const { message, buffers } = unpack(await answer.arrayBuffer());
  const model = stub({ ...message, _pictures: buffers });
  return {
    ...model,
    /** Where a payload can be played from, with ranges. @param {string} path */
    media: (path) => `${base}/m/${path}`,
    /** @param {any} content */
    send: (content) => {
      if (content.k === "tvz:cancel") return;
      fetch(`${base}/rpc`, { method: "POST", headers: { "X-Tarviz": "1" }, body: /** @type {any} */ (pack(content)) })
        .then(async (response) => {
          if (!response.ok) throw new Error(await response.text());
          return unpack(await response.arrayBuffer());
        })
        .then(({ message: reply, buffers: pieces }) => model.emit("msg:custom", reply, pieces))
        .catch((error) => model.emit("msg:custom", lost(content.id, `The server does not answer (${error.message}).`), []));
    },
  };
}

/**
 * Draw a widget module on a model. Returns a function that takes it away.
 * @param {any} widget the module's default export @param {any} model @param {Element | null} el
 */
export function mount(widget, model, el) {
  const stop = new AbortController();
  const place = el ?? document.body;
  const { render, initialize } = typeof widget === "function" ? widget() : widget;
  initialize?.({ model, signal: stop.signal });
  const done = render({ model, el: place, signal: stop.signal });
  if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname + location.hash);
  return () => {
    stop.abort();
    if (typeof done === "function") done();
  };
}
