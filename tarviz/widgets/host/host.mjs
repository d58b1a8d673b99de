// @ts-check
// A model for pages without Jupyter: over HTTP (the stand-alone page), or frozen (a deck or a page of the site, without a kernel).

/** @typedef {{ _first: any, _pictures: any[], _state: any, _answers?: [string, any, any, any[]][] }} State */

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
  const model = {
    /** @param {string} name */
    get: (name) => /** @type {any} */ (state)[name],
    /** @param {string} name @param {any} value */
    set: (name, value) => {
      /** @type {any} */ (state)[name] = value;
      model.emit(`change:${name}`, value);
    },
    save_changes: () => {},
    /** @param {string} event @param {(...args: any[]) => void} callback */
    on: (event, callback) => void listeners.set(event, (listeners.get(event) ?? new Set()).add(callback)),
    /** @param {string} event @param {(...args: any[]) => void} callback */
    off: (event, callback) => void listeners.get(event)?.delete(callback),
    /** @param {string} event @param {...any} values */
    emit: (event, ...values) => listeners.get(event)?.forEach((callback) => callback(...values)),
  };
  return model;
}

const lost = (/** @type {any} */ id, /** @type {string} */ type, /** @type {string} */ msg, hint = "") => ({
  k: "tvz:res",
  id,
  err: { type, msg, hint, code: "no-kernel" },
});

/** JSON with the names of objects in order, to compare messages by. @param {any} value @returns {string} */
const canonical = (value) =>
  JSON.stringify(value, (_, part) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

/** A model of saved state: what was answered beforehand (`View.to_static`) is answered, anything else "no kernel". @param {State} state */
export function frozenModel(state) {
  const model = stub(state);
  const known = new Map(
    (state._answers ?? []).map(([name, message, reply, buffers]) => [
      message === null ? name : name + canonical(message),
      { reply, buffers },
    ]),
  );
  return {
    ...model,
    still: true,
    /** @param {any} content */
    send: (content) => {
      if (content?.k !== "tvz:req") return;
      const found = known.get(content.name + canonical(content.msg ?? {})) ?? known.get(content.name);
      const answer = found
        ? { k: "tvz:res", id: content.id, r: structuredClone(found.reply) }
        : lost(content.id, "Saved", "This is a saved picture: only what was saved with it can be shown.");
      setTimeout(() => model.emit("msg:custom", answer, found?.buffers ?? []));
    },
  };
}

/**
 * The state of a widget as a page holds it: JSON, and the binary parts beside it as base64, each with its path.
 * @param {{ state: any, buffers?: { path: (string | number)[], data: string }[] }} saved @returns {State}
 */
export function savedState({ state, buffers = [] }) {
  for (const { path, data } of buffers) {
    let at = state;
    for (const step of path.slice(0, -1)) at = at[step];
    at[/** @type {any} */ (path.at(-1))] = new DataView(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)).buffer);
  }
  return state;
}

/**
 * What a page keeps of its widgets.
 * @typedef {{ modules: Record<string, string>, styles: Record<string, string>, models: Record<string, any> }} Saved
 *
 * Draw every widget a page carries: elements with `data-tarviz-widget`, whose state and module are in `saved`. Each is drawn when it is
 * first seen, because a widget measures the room it has; or `now`, all of them, for a printer.
 * @param {Saved} saved @param {Document} [page] @param {boolean} [now]
 */
export function mountAll(saved, page = document, now = false) {
  /** @type {Map<string, Promise<any>>} */
  const modules = new Map();
  const load = (/** @type {string} */ name) => {
    // file: pages may not import files, but they may import what they hold themselves
    if (!modules.has(name)) modules.set(name, import(URL.createObjectURL(new Blob([saved.modules[name]], { type: "text/javascript" }))));
    return /** @type {Promise<any>} */ (modules.get(name));
  };
  const draw = async (/** @type {HTMLElement} */ element) => {
    const model = saved.models[element.dataset.tarvizWidget ?? ""];
    const { default: widget } = await load(model.module);
    // A shadow keeps the page's style off the widget and the widget's off the page; reveal.js takes every <section> it sees for a slide.
    const shadow = element.attachShadow({ mode: "open" });
    const room = page.createElement("div");
    const dress = () => {
      room.className = `tvz-host tvz-${page.body.dataset.theme ?? "auto"}`;
    };
    dress();
    new MutationObserver(dress).observe(page.body, { attributeFilter: ["data-theme"] });
    shadow.append(Object.assign(page.createElement("style"), { textContent: saved.styles[model.style] ?? "" }), room);
    mount(widget, frozenModel(savedState(model)), room);
    element.dataset.tarvizDrawn = "true";
  };
  const begin = (/** @type {any} */ element) =>
    draw(element).catch((error) => element.append(`This widget could not be drawn: ${error.message}`));
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      begin(target);
    }
  });
  for (const element of page.querySelectorAll("[data-tarviz-widget]")) now ? begin(element) : seen.observe(element);
}

/**
 * The model of a page of its own. What it shows is named by its path, or by the query behind it; everything else lies beside it.
 * @param {string} [page]
 */
export async function pageModel(page = document.baseURI) {
  const session = Math.random().toString(36).slice(2, 12);
  const at = (/** @type {string} */ place, more = {}) => {
    const url = new URL(place, page);
    const query = new URLSearchParams({ ...Object.fromEntries(new URL(page).searchParams), ...more });
    query.delete("token"); // a cookie stands for it by now
    url.search = String(query);
    return url.href;
  };
  // a Jupyter server takes nothing from a page that cannot read its cookie, and JupyterHub gives it nothing
  const headers = () => ({ "X-Tarviz": "1", "X-XSRFToken": /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? "" });
  const answer = await fetch(at("state", { session }), { headers: headers() });
  if (!answer.ok) throw new Error(await answer.text());
  const { message, buffers } = unpack(await answer.arrayBuffer());
  const model = stub({ ...message, _pictures: buffers });
  return {
    ...model,
    session,
    /** Where a payload can be played from, with ranges. @param {string} path */
    media: (path) => at(`m/${path}`),
    /** @param {any} content */
    send: (content) => {
      if (content.k === "tvz:cancel") return;
      fetch(at("rpc"), { method: "POST", headers: headers(), body: /** @type {any} */ (pack(content)) })
        .then(async (response) => {
          if (!response.ok) throw new Error(await response.text());
          return unpack(await response.arrayBuffer());
        })
        .then(({ message: reply, buffers: pieces }) => model.emit("msg:custom", reply, pieces))
        .catch((error) =>
          model.emit(
            "msg:custom",
            lost(
              content.id,
              "NoServer",
              `The server of this page does not answer (${error.message}).`,
              "Start it again: tarviz in its terminal, or the Jupyter server.",
            ),
            [],
          ),
        );
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
  const address = new URL(location.href);
  if (address.searchParams.has("token")) {
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  }
  return () => {
    stop.abort();
    if (typeof done === "function") done();
  };
}
