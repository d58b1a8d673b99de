// JupyterLab's door, loaded as JupyterLab loads it, over stand-ins of the packages that it shares; the real ones are in tests/browser/test_lab_files.py.
import assert from "node:assert/strict";

import { test, until } from "./dom.mjs";

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
  const done = { commands: {}, added: [], menu: [], cards: [], factories: [], models: [], types: [], executed: [], saved: [] };
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
      this.disposed = true;
    }
  }
  class Holder extends Widget {
    constructor(options) {
      super();
      Object.assign(this, options);
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
    "@jupyterlab/services": { ServerConnection: { makeRequest: async (address) => replied(address) } },
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
    shell: { add: () => {} },
  };
  const scope = Object.fromEntries(
    Object.entries(packages).map(([name, value]) => [name, { "1.0": { loaded: 1, get: async () => () => value } }]),
  );
  return { app, done, scope };
}

async function activated(selected = []) {
  const { app, done, scope } = lab();
  await import("../../tarviz/widgets/lab/extension/static/lab.mjs");
  const container = window._JUPYTERLAB.tarviz;
  container.init(scope);
  const { default: plugin } = (await container.get("./extension"))();
  const browsers = { tracker: { currentWidget: { selectedItems: () => selected } } };
  plugin.activate(app, null, browsers, { add: (card) => void done.cards.push(card) });
  return { plugin, done };
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
  assert.equal(1, done.saved.length);
  content.dispose();
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
  await done.commands[done.cards[0].command].execute({});
  await shown(done.added[2].content.frame, "/hub/user/x/tarviz/?path=");
  done.added.forEach(({ content }) => content.dispose());
});
