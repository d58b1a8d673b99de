// JupyterLab's door, loaded as JupyterLab loads it, over stand-ins of the packages that it shares; the real ones are in tests/browser/test_lab_files.py.
import assert from "node:assert/strict";

import { placed, press, test, until } from "./dom.mjs";

class Signal {
  heard = [];
  connect(listener) {
    this.heard.push(listener);
  }
}

const POLICY = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; report-uri /csp";
const replied = (address) => new Response(`<html><head></head>${address}</html>`, { headers: { "Content-Security-Policy": POLICY } });
/** The page in a frame, when it shows this address. */
const shown = async (frame, address) => {
  await until(() => frame.srcdoc?.includes(`<base href="${address}">`));
  return frame.srcdoc;
};

/** What JupyterLab shares, and what was done with it. */
function lab() {
  const done = { commands: {}, added: [], menu: [], cards: [], factories: [], models: [], types: [], executed: [], saved: [], shown: [] };
  const late = new Map();
  class Widget {
    constructor() {
      this.node = document.createElement("div");
      this.title = {};
      this.toolbar = { hide: () => (this.bare = true) };
    }
    addClass(name) {
      this.node.classList.add(name);
    }
    dispose() {
      this.isDisposed = true;
    }
  }
  class Holder extends Widget {
    constructor(options) {
      super();
      Object.assign(this, options, { id: "main-1" });
      options.content.parent = this;
    }
  }
  class Factory {
    constructor(options) {
      Object.assign(this, options);
    }
    createNew() {
      return {};
    }
  }
  const packages = {
    "@jupyterlab/application": { ILayoutRestorer: "restorer" },
    "@jupyterlab/apputils": {
      MainAreaWidget: Holder,
      WidgetTracker: class {
        add = async (widget) => void done.added.push(widget);
        save = (widget) => void done.saved.push(widget);
      },
    },
    "@jupyterlab/docregistry": { TextModelFactory: Factory, ABCWidgetFactory: Factory, DocumentWidget: Holder },
    "@jupyterlab/filebrowser": { IFileBrowserFactory: "browsers" },
    "@jupyterlab/launcher": { ILauncher: "launcher" },
    "@jupyterlab/services": { ServerConnection: { makeRequest: async (address) => (await late.get(address), replied(address)) } },
    "@jupyterlab/ui-components": { LabIcon: Factory },
    "@lumino/widgets": { Widget },
  };
  const commands = {
    addCommand: (name, command) => void (done.commands[name] = command),
    execute: (name, args) => {
      done.executed.push([name, args]);
      return done.commands[name]?.execute(args);
    },
  };
  const app = {
    commands,
    docRegistry: {
      addFileType: (type) => void done.types.push(type),
      addModelFactory: (factory) => void done.models.push(factory),
      addWidgetFactory: (factory) => void done.factories.push(factory),
    },
    contextMenu: { addItem: (item) => void done.menu.push(item) },
    serviceManager: { serverSettings: { baseUrl: "/hub/user/x/" }, contents: { localPath: (path) => path } },
    shell: { add: () => {}, currentWidget: null, activateById: (id) => void done.shown.push(id) },
  };
  const scope = Object.fromEntries(
    Object.entries(packages).map(([name, value]) => [name, { "1.0": { loaded: 1, get: async () => () => value } }]),
  );
  const other = async () => () => assert.fail("a version that is not in use");
  scope["@jupyterlab/services"] = { 0.9: { get: other }, ...scope["@jupyterlab/services"] };
  scope["@jupyterlab/launcher"]["1.0"].loaded = 0;
  scope["@jupyterlab/launcher"]["2.0"] = { get: other };
  return { app, done, scope, late };
}

async function activated(selected = []) {
  const { app, done, scope, late } = lab();
  await import("../../tarviz/widgets/lab/extension/static/lab.mjs");
  const container = window._JUPYTERLAB.tarviz;
  container.init(scope);
  const { default: plugin, __esModule } = (await container.get("./extension"))();
  assert.ok(__esModule);
  const browsers = { tracker: { currentWidget: { selectedItems: () => selected } } };
  const restorer = { restore: (_tracker, how) => (done.restored = how) };
  plugin.activate(app, restorer, browsers, { add: (card) => void done.cards.push(card) });
  return { app, plugin, done, late };
}

test("shards are a file type whose model reads nothing and is saved by somebody else", async () => {
  const { plugin, done } = await activated();
  assert.equal(true, plugin.autoStart);
  assert.deepEqual([".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"], done.types[0].extensions);
  const [model] = done.models;
  assert.deepEqual(["tarviz", null, true], [model.name, model.fileFormat, model.createNew({}).collaborative]);
  assert.deepEqual([["tarviz"], "tarviz", true], [done.factories[0].defaultFor, done.factories[0].modelName, done.factories[0].readOnly]);
});

test("a document is the page on its path, and on the new one where the file is renamed", async () => {
  const { done } = await activated();
  const pathChanged = new Signal();
  const context = { path: "RTC:a b.tar", localPath: "a b.tar", pathChanged };
  const { content, bare } = done.factories[0].createNewWidget(context);
  const page = await shown(content.frame, "/hub/user/x/tarviz/?path=a%20b.tar");
  assert.match(page, /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'">/); // its policy goes with it
  assert.ok(bare);
  context.localPath = "c.tar";
  pathChanged.heard.forEach((listener) => listener());
  await shown(content.frame, "/hub/user/x/tarviz/?path=c.tar");
  assert.deepEqual([1, "c.tar"], [done.saved.length, content.frame.title]);
  content.dispose();
});

test("of two paths one after the other the last is shown, and nothing once the tab is closed", async () => {
  const { done, late } = await activated();
  const releases = ["slow.tar", "end.tar"].map((name) => {
    let release;
    late.set(`/hub/user/x/tarviz/?path=${name}`, new Promise((go) => (release = go)));
    return release;
  });
  const pathChanged = new Signal();
  const { content } = done.factories[0].createNewWidget({ path: "slow.tar", localPath: "slow.tar", pathChanged });
  content.look("c.tar");
  const page = await shown(content.frame, "/hub/user/x/tarviz/?path=c.tar");
  releases[0]();
  content.look("end.tar");
  content.dispose();
  releases[1]();
  await new Promise((go) => setTimeout(go, 5));
  assert.equal(page, content.frame.srcdoc);
});

test("a page in its frame wears the theme; JupyterLab hears of its focus and of the keys it leaves", async () => {
  const { app, done } = await activated();
  const { content } = done.factories[0].createNewWidget({ path: "a.tar", localPath: "a.tar", pathChanged: new Signal() });
  const inner = document.implementation.createHTMLDocument("");
  const page = document.createElement("div"); // hears events as a window does
  Object.defineProperty(content.frame, "contentDocument", { get: () => content.frame.srcdoc && inner });
  Object.defineProperty(content.frame, "contentWindow", { value: page });
  content.frame.remove(); // here nothing is loaded
  const place = placed(content.node);
  content.frame.onload();
  assert.equal("hidden", content.frame.style.visibility, "the empty page of a new frame");
  await shown(content.frame, "/hub/user/x/tarviz/?path=a.tar");
  document.body.dataset.jpThemeLight = "false";
  content.frame.onload();
  assert.deepEqual(["", "false"], [content.frame.style.visibility, inner.body.dataset.jpThemeLight]);
  Object.assign(document.body.dataset, { jpThemeLight: "true", jpThemeName: "light" });
  await until(() => inner.body.dataset.jpThemeLight === "true");

  const heard = [];
  content.node.addEventListener("keydown", (event) => heard.push(event.key) && event.key === "k" && event.preventDefault());
  page.addEventListener("keydown", (event) => event.key === "u" && event.preventDefault(), { capture: true });
  const taken = ["ctrlKey", "metaKey", "altKey", "shiftKey"].map((held) => press(page, "k", { [held]: true }));
  assert.deepEqual([true, true, true, false], taken);
  assert.deepEqual([false, true], [press(page, "x", { ctrlKey: true }), press(page, "u", { ctrlKey: true })]);
  assert.deepEqual(["k", "k", "k", "x"], heard);

  page.dispatchEvent(new Event("focusin"));
  assert.deepEqual([["main-1"], content.node, -1], [done.shown, document.activeElement, content.node.tabIndex]);
  app.shell.currentWidget = content.parent;
  page.dispatchEvent(new Event("focusin"));
  assert.equal(1, done.shown.length);
  const open = new CustomEvent("tarviz-open", { detail: "/tarviz/?path=b.tar", cancelable: true });
  page.dispatchEvent(open);
  await shown(content.frame, "http://localhost/tarviz/?path=b.tar");
  assert.ok(open.defaultPrevented);
  content.dispose();
  place.remove();
});

test("what is open is opened again: a file as a document, a folder on its path, the page of no path under its number", async () => {
  const { done } = await activated();
  const { execute } = done.commands["tarviz:open"];
  execute({ path: "a.tar", document: true });
  assert.deepEqual([["docmanager:open", { path: "a.tar", factory: "tarviz" }]], done.executed);
  const file = done.factories[0].createNewWidget({ path: "RTC:a.tar", localPath: "a.tar", pathChanged: new Signal() });
  await execute({ path: "data/train" });
  await execute({});
  const [, folder, none] = done.added;
  assert.deepEqual(
    [
      ["RTC:a.tar", { path: "RTC:a.tar", document: true }],
      ["data/train", { path: "data/train" }],
      ["main-1", { path: "" }],
    ],
    [file, folder, none].map((widget) => [done.restored.name(widget), done.restored.args(widget)]),
  );
  assert.deepEqual(
    [
      ["train", "data/train", true, "data/train"],
      ["tarviz", "", true, "tarviz"],
    ],
    [folder, none].map(({ title, content }) => [title.label, title.caption, title.closable, content.frame.title]),
  );
  done.added.forEach(({ content }) => content.dispose());
});

test("folders that are selected open, files beside them do not; the launcher opens the page without a path", async () => {
  const { done } = await activated([
    { type: "directory", path: "train" },
    { type: "file", path: "notes.txt" },
    { type: "directory", path: "val" },
  ]);
  assert.equal("tarviz:open-folder", done.menu[0].command);
  await done.commands["tarviz:open-folder"].execute();
  assert.deepEqual(
    [
      ["tarviz:open", { path: "train" }],
      ["tarviz:open", { path: "val" }],
    ],
    done.executed,
  );
  assert.deepEqual(
    ["train", "val"],
    done.added.map(({ title }) => title.label),
  );
  assert.deepEqual([{ command: "tarviz:open", category: "Other", rank: 10 }], done.cards);
  await done.commands[done.cards[0].command].execute({});
  await shown(done.added[2].content.frame, "/hub/user/x/tarviz/?path=");
  done.added.forEach(({ content }) => content.dispose());
});
