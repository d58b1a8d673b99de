// @ts-check
// JupyterLab's own door: shards open from its file browser, its menus and its launcher, on the page that tarviz/widgets/lab/server.py serves.
// JupyterLab loads this as a script and asks it for its plugin; what it builds on comes from the packages that JupyterLab shares.

{
  const NAME = "tarviz";
  const OPEN = "tarviz:open";
  const FOLDER = "tarviz:open-folder";
  const SHARDS = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"]; // tarviz/stores/paths.py
  const THEME = ["--jp-layout-color1", "--jp-ui-font-color1", "--jp-ui-font-family", "--jp-code-font-family"];
  const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><g class="jp-icon3 jp-icon-selectable" fill="#616161">
<path d="M3 3h18v5H3zm2 2v1h3V5z" fill-rule="evenodd"/><path d="M4 9.5h7v5H4zm8.5 0h7.5v5h-7.5zM4 16h7v5H4zm8.5 0h7.5v5h-7.5z"/></g></svg>`;

  /** One of the packages that JupyterLab shares: the one that is in use. @param {any} scope @param {string} name @returns {Promise<any>} */
  const shared = async (scope, name) => {
    const versions = Object.values(scope[name] ?? {});
    const found = versions.find((/** @type {any} */ one) => one.loaded) ?? versions[0];
    if (!found) throw new Error(`tarviz: this JupyterLab does not share ${name}`);
    return (await /** @type {any} */ (found).get())();
  };

  /** @param {any} scope */
  const extension = async (scope) => {
    const [application, apputils, docregistry, filebrowser, launching, components, services, { Widget }] = await Promise.all(
      ["application", "apputils", "docregistry", "filebrowser", "launcher", "ui-components", "services"]
        .map((name) => shared(scope, `@jupyterlab/${name}`))
        .concat(shared(scope, "@lumino/widgets")),
    );
    const icon = new components.LabIcon({ name: "tarviz:shards", svgstr: ICON });

    /** The page on a path, in a frame that is a part of JupyterLab: its theme, its shortcuts, its tabs. */
    class Shards extends Widget {
      /** @param {any} app @param {string} path */
      constructor(app, path) {
        super();
        this.app = app;
        this.frame = document.createElement("iframe");
        Object.assign(this.frame.style, { width: "100%", height: "100%", border: "0", display: "block" });
        this.frame.onload = () => this.loaded();
        this.node.append(this.frame);
        this.node.tabIndex = -1;
        this.addClass("jp-IFrame");
        this.theme = new MutationObserver(() => this.dress());
        this.theme.observe(document.body, { attributeFilter: ["data-jp-theme-name"] });
        this.look(path);
      }

      /** @param {string} path */
      look(path) {
        this.frame.title = path || NAME;
        this.show(`${this.app.serviceManager.serverSettings.baseUrl}tarviz/?path=${encodeURIComponent(path)}`);
      }

      /** The page of an address as a part of this one: JupyterHub lets no page be framed. @param {string} address */
      async show(address) {
        this.frame.style.visibility = "hidden"; // until it wears the theme
        this.address = address;
        const answer = await services.ServerConnection.makeRequest(address, {}, this.app.serviceManager.serverSettings);
        const page = await answer.text();
        if (address !== this.address || this.isDisposed) return;
        const policy = (answer.headers.get("Content-Security-Policy") ?? "").replace(/;\s*(frame-ancestors|report-uri)[^;]*/g, "");
        const head = `<head><base href="${address}"><meta http-equiv="Content-Security-Policy" content="${policy}">`;
        this.frame.srcdoc = page.replace("<head>", () => head);
      }

      /** Another page has come: it is dressed, and what it does not use of the keyboard is JupyterLab's. */
      loaded() {
        if (!this.frame.srcdoc) return;
        this.dress();
        this.frame.style.visibility = "";
        const page = /** @type {Window} */ (this.frame.contentWindow);
        page.addEventListener("tarviz-open", (/** @type {any} */ event) => {
          event.preventDefault();
          this.show(new URL(event.detail, location.href).href);
        });
        page.addEventListener("focusin", () => {
          if (this.app.shell.currentWidget === this.parent) return;
          this.node.focus(); // JupyterLab sees no focus inside a frame
          this.app.shell.activateById(this.parent.id);
        });
        page.addEventListener("keydown", (event) => {
          if (event.defaultPrevented || !(event.ctrlKey || event.metaKey || event.altKey)) return;
          if (!this.node.dispatchEvent(new KeyboardEvent("keydown", event))) event.preventDefault();
        });
      }

      dress() {
        const page = this.frame.contentDocument;
        if (!page?.body) return;
        const style = getComputedStyle(document.body);
        for (const name of THEME) page.documentElement.style.setProperty(name, style.getPropertyValue(name));
        page.body.dataset.jpThemeLight = document.body.dataset.jpThemeLight;
      }

      onActivateRequest() {
        this.frame.contentWindow?.focus();
      }

      dispose() {
        this.theme.disconnect();
        super.dispose();
      }
    }

    /** A model whose file is never read, nor copied for a checkpoint: the server reads what is looked at. */
    class Unread extends docregistry.TextModelFactory {
      get name() {
        return NAME;
      }
      get fileFormat() {
        return null;
      }
      /** @param {any} options @returns {any} */
      createNew(options) {
        return Object.defineProperty(super.createNew(options), "collaborative", { value: true }); // somebody else saves it
      }
    }

    return {
      id: "tarviz:shards",
      autoStart: true,
      optional: [application.ILayoutRestorer, filebrowser.IFileBrowserFactory, launching.ILauncher],
      /** @param {any} app @param {any} restorer @param {any} browsers @param {any} launcher */
      activate: (app, restorer, browsers, launcher) => {
        const tracker = new apputils.WidgetTracker({ namespace: NAME });
        /** @type {WeakMap<any, { path: string, document?: boolean }>} what opens a widget again */
        const opened = new WeakMap();
        const { commands, docRegistry } = app;

        class Documents extends docregistry.ABCWidgetFactory {
          /** @param {any} context */
          createNewWidget(context) {
            const content = new Shards(app, context.localPath);
            const widget = new docregistry.DocumentWidget({ content, context });
            const keep = () => opened.set(widget, { path: context.path, document: true });
            keep();
            context.pathChanged.connect(() => {
              keep();
              content.look(context.localPath);
              tracker.save(widget);
            });
            widget.title.icon = icon;
            widget.toolbar.hide();
            tracker.add(widget);
            return widget;
          }
        }
        docRegistry.addFileType({
          name: NAME,
          displayName: "Shard",
          extensions: SHARDS,
          mimeTypes: ["application/x-tar"],
          fileFormat: "base64",
          icon,
        });
        docRegistry.addModelFactory(new Unread());
        const kinds = { fileTypes: [NAME], defaultFor: [NAME], modelName: NAME, readOnly: true };
        docRegistry.addWidgetFactory(new /** @type {any} */ (Documents)({ name: NAME, label: NAME, ...kinds }));

        commands.addCommand(OPEN, {
          label: NAME,
          caption: "Look through tar shards",
          icon,
          /** @param {{ path?: string, document?: boolean }} args */
          execute: ({ path = "", document }) => {
            if (document) return commands.execute("docmanager:open", { path, factory: NAME });
            const widget = new apputils.MainAreaWidget({ content: new Shards(app, app.serviceManager.contents.localPath(path)) });
            opened.set(widget, { path });
            widget.title.label = path.split("/").pop() || NAME;
            widget.title.caption = path;
            widget.title.icon = icon;
            widget.title.closable = true;
            widget.toolbar.hide();
            app.shell.add(widget, "main");
            return tracker.add(widget);
          },
        });
        commands.addCommand(FOLDER, {
          label: "Open with tarviz",
          caption: "Look through the shards in this folder",
          icon,
          execute: () => {
            const chosen = [...(browsers?.tracker.currentWidget?.selectedItems() ?? [])];
            return Promise.all(chosen.filter(({ type }) => type === "directory").map(({ path }) => commands.execute(OPEN, { path })));
          },
        });
        app.contextMenu.addItem({ command: FOLDER, selector: '.jp-DirListing-item[data-isdir="true"]', rank: 1.5 });
        launcher?.add({ command: OPEN, category: "Other", rank: 10 });
        restorer?.restore(tracker, {
          command: OPEN,
          args: (/** @type {any} */ widget) => opened.get(widget),
          name: (/** @type {any} */ widget) => opened.get(widget)?.path || widget.id,
        });
      },
    };
  };

  /** @type {any} */
  let scope;
  const containers = /** @type {any} */ (window);
  containers._JUPYTERLAB ??= {};
  containers._JUPYTERLAB[NAME] = {
    init: (/** @type {any} */ handed) => void (scope = handed),
    get: async () => {
      const plugin = await extension(scope);
      return () => ({ __esModule: true, default: plugin });
    },
  };
}
