// The widgets' own pages without a browser: the real controllers behind them, in a server that a test file starts.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { after } from "node:test";

import { until } from "./dom.mjs";
import { pageModel } from "../../tarviz/widgets/host/host.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const server = spawn(process.env.PYTHON ?? ".venv/bin/python", ["-m", "tests.servers.widgets"], {
  cwd: ROOT,
  stdio: ["pipe", "pipe", "inherit"],
});
after(() => server.stdin.end());
/** The addresses of the pages, by name. */
const addresses = JSON.parse(String((await once(server.stdout, "data"))[0]));

// A browser sends the cookie that the address with its token has set.
const plain = globalThis.fetch;
const cookies = new Map();
globalThis.fetch = (url, options = {}) =>
  plain(url, { ...options, headers: { ...options.headers, Cookie: cookies.get(new URL(url).origin) } });

/**
 * A page as somebody has just opened it: `asked` are its requests; `change` may put other answers in the place of the controller's.
 * @param {string} name one of `tests/servers/widgets.py` @param {new (model: any, el: HTMLElement, signal: AbortSignal) => any} View
 */
export async function opened(name, View) {
  const address = new URL(addresses[name]);
  const cookie = (await plain(address)).headers.get("set-cookie").split(";")[0];
  cookies.set(address.origin, cookie);
  const model = await pageModel(address.origin);
  const asked = [];
  const page = { asked, change: (_name, answer) => answer };
  const { send, on } = model;
  model.send = (content) => {
    if (content.k === "tvz:req") asked.push(content);
    send(content);
  };
  model.on = (event, callback) =>
    on(event, (answer, buffers) => {
      const one = asked.find(({ id }) => id === answer.id) ?? {};
      callback(page.change(one.name, answer), buffers);
      one.answered = true;
    });
  const end = new AbortController();
  const place = document.createElement("div");
  document.body.append(place);
  page.view = new View(model, place, end.signal);
  page.root = page.view.root;
  page.end = () => {
    end.abort();
    place.remove();
  };
  page.find = (selector) => page.root.querySelector(selector);
  page.all = (selector) => [...page.root.querySelectorAll(selector)];
  page.button = (text) => page.all("button").find((one) => one.textContent.startsWith(text));
  page.until = until;
  page.answered = (request) => asked.findLast((one) => one.name === request)?.answered;
  page.last = (request) => asked.findLast((one) => one.name === request)?.msg;
  return page;
}
