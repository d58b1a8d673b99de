// @ts-check
// The shard browser (controller: Browser in tarviz/widgets/browse/controller.py): shard rail, grid of tiles, record pane.

import { bindKeys, drawnBy, fill, formatBytes, formatCount, h, later } from "../../host/core.mjs";
import { isOvertaken, makeRpc, RpcError } from "../../host/requests.mjs";
import { Layers } from "../../panes/overlay.mjs";
import { Completion } from "../filters/complete.mjs";
import { Copies } from "./copies.mjs";
import { Facets } from "../filters/facets.mjs";
import { Grid } from "./grid.mjs";
import { Keep } from "./keep.mjs";
import { Keys } from "./keys.mjs";
import { Rail } from "./rail.mjs";
import { RecordPane } from "./record.mjs";
import { TableView } from "./table.mjs";

export class BrowserView {
  /** @param {any} model @param {HTMLElement} el @param {AbortSignal} signal */
  constructor(model, el, signal) {
    this.model = model;
    this.signal = signal;
    const first = model.get("_first");
    const saved = model.get("_state") ?? {};
    this.config = first.config;
    this.keys = new Keys(this);
    this.copies = new Copies(this);
    this.rpc = makeRpc(model, { signal, onSlow: (slow) => this.tellSlow(slow) });
    this.query = first.rows.query;
    this.count = 0;
    this.version = -1;
    this.at = 0;
    this.selected = -1;
    /** @type {Set<number>} */
    this.marked = new Set(saved.marked ?? []);
    this.wish = {
      where: this.config.where,
      sort: this.config.sort,
      seed: this.config.seed,
      shard: null,
      only: false,
      descending: false,
      column: undefined,
    };
    /** @type {Map<string, { where: string, text: string, parts: string[], span?: number[] }>} conditions that were clicked, by what they are about */
    this.picks = new Map(this.config.also.map((/** @type {string} */ where) => [where, { where, text: where, parts: [where] }]));
    /** @type {any} how far columns are made, as the controller says */
    this.tableState = { state: "none", note: "", version: 0, bytes: 0 };
    this.px = saved.px ?? this.config.px;
    this.image = saved.image ?? this.config.image;
    this.label = first.rows.label ?? "";
    /** @type {any[]} */
    this.shards = [];
    this.fields = [];
    /** @type {(value?: any) => void} ends the rest between two polls */
    this.wake = () => {};
    this.remembering = later(() => this.copies.remember(), 300, signal);
    /** @type {string} */
    this.actionKey = "";
    this.lost = false;
    /** the rows that were fetched are in the order wished for */
    this.ordered = first.poll.query.ordered;
    /** fields that most records have, "" where there is no such set */
    this.common = "";
    this.stale = false;
    this.looked = false;
    /** the pane is to show the first record of the search that runs */
    this.follow = false;
    this.layers = new Layers({ ...first.rows.colours }, () => this.grid.relayer());
    this.facets = new Facets(this);
    this.keep = new Keep(this);
    this.rail = new Rail(this, signal);
    this.grid = new Grid(this, signal);
    this.table = new TableView(this, signal);
    this.pane = new RecordPane(this);
    this.build(el);
    this.takePoll(first.poll);
    this.grid.takeRows(first.rows, model.get("_pictures"));
    this.grid.draw();
    this.start(saved);
  }

  // ---- frame

  /** @param {HTMLElement} el */
  build(el) {
    const { signal, config } = this;
    const choose = (
      /** @type {string} */ name,
      /** @type {[any, string][]} */ choices,
      /** @type {any} */ value,
      /** @type {(v: string) => void} */ act,
    ) => {
      const select = h(
        "select",
        { "aria-label": name, title: name, onchange: () => act(select.value) },
        ...choices.map(([v, text]) => h("option", { value: v, selected: v === value }, text)),
      );
      return select;
    };
    this.filterInput = h("input", {
      type: "search",
      class: "tvz-filter",
      value: this.wish.where,
      spellcheck: false,
      autocapitalize: "off",
      autocomplete: "off",
      placeholder: "filter: cls = 3 and json.w > 300, has:json, or part of a key",
      "aria-label": "filter",
      title: "Keys, columns, JSON paths, fields:  cls = 3 and json.w > 300   has:json   size(jpg) > 50000   txt like '%cat%'",
    });
    const apply = later(
      () => this.filterInput.value.trim() !== this.wish.where.trim() && this.search({ where: this.filterInput.value }),
      400,
      signal,
    );
    this.filterHelp = new Completion(this, this.filterInput, { take: () => apply() });
    this.filterInput.addEventListener("input", apply, { signal });
    this.filterInput.addEventListener(
      "keydown",
      (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Enter") {
          this.search({ where: this.filterInput.value });
          this.list.focus();
        }
      },
      { signal },
    );
    this.goInput = h("input", {
      type: "text",
      class: "tvz-go",
      placeholder: "key or #number",
      "aria-label": "go to a key or #number",
      hidden: true,
      spellcheck: false,
    });
    this.goInput.addEventListener(
      "keydown",
      (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Enter") this.goTo(this.goInput.value);
      },
      { signal },
    );
    this.goInput.addEventListener(
      "blur",
      () => {
        this.goInput.hidden = true;
      },
      { signal },
    );
    this.sortSelect = choose(
      "order",
      [
        ["order", "as they lie"],
        ["key", "by key"],
        ["size", "largest first"],
        ["label", "by label"],
        ["random", "shuffled"],
      ],
      this.wish.sort,
      (sort) =>
        this.search(sort.startsWith("by ") ? { sort: "label", column: sort.slice(3), descending: false } : { sort, column: undefined }),
    );
    this.sizeSelect = choose(
      "size of the tiles",
      config.sizes.map((/** @type {number} */ s) => [String(s), `${s} px`]),
      String(this.px),
      (px) => this.resize(Number(px)),
    );
    this.imageSelect = h("select", {
      "aria-label": "field shown",
      title: "field shown",
      onchange: () => this.showField(this.imageSelect.value),
    });
    this.labelInput = h("input", {
      type: "text",
      class: "tvz-label-input",
      value: this.label,
      placeholder: "label",
      "aria-label": "label below the tiles: a field or JSON path",
      title: "label below the tiles: a field or JSON path",
      spellcheck: false,
      onchange: () => this.relabel(this.labelInput.value),
    });
    this.labelHelp = new Completion(this, this.labelInput, { label: true, take: () => this.relabel(this.labelInput.value) });
    this.shardSelect = h("select", {
      class: "tvz-shard-select",
      "aria-label": "shard",
      title: "shard",
      onchange: () => this.search({ shard: this.shardSelect.value === "" ? null : Number(this.shardSelect.value) }),
    });
    this.title = h(
      "span",
      { ...(this.model.media ? { role: "heading", "aria-level": "1" } : {}), class: "tvz-title tvz-cut", title: config.title, dir: "auto" },
      config.title,
    );
    this.facts = h("span", { class: "tvz-faint tvz-head-facts tvz-cut" });
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) =>
      h("button", { title, onclick: act }, text);
    this.turnButton = h(
      "button",
      {
        class: "tvz-turn-order",
        "aria-label": "descending",
        "aria-pressed": "false",
        title: "turn the order round",
        onclick: () => this.search({ descending: !this.wish.descending }),
      },
      "↓↑",
    );
    this.tableButton = h(
      "button",
      { "aria-pressed": "false", title: "table or tiles (t)", onclick: () => this.showTable(!this.table.shown) },
      "table",
    );
    this.saveSelect = h(
      "select",
      {
        class: "tvz-save",
        "aria-label": "save records",
        title: "save what is marked, or what is shown",
        onchange: () => {
          this.keep.kind.value = this.saveSelect.value;
          this.keep.open();
          this.saveSelect.value = "";
        },
      },
      h("option", { value: "" }, "save …"),
      h("option", { value: "tar" }, "as shards (.tar)"),
      h("option", { value: "csv" }, "as a table (.csv)"),
      h("option", { value: "parquet" }, "as a table (.parquet)"),
      h("option", { value: "txt" }, "keys (.txt)"),
    );
    this.paneButton = button("pane", "record pane on or off (i)", () => this.togglePane());
    this.railButton = h(
      "button",
      {
        class: "tvz-rail-button",
        title: "fields, classes, findings",
        "aria-expanded": "false",
        onclick: () => this.showRail(!this.root.classList.contains("tvz-railed")),
      },
      "fields",
    );
    this.head = h(
      "header",
      { class: "tvz-head" },
      this.title,
      this.facts,
      button("copy as Python", "copy the call that shows what is shown now", () => this.copies.spec()),
      button("?", "keys", () => this.keys.sheet.toggle()),
    );
    this.tools = h(
      "div",
      { class: "tvz-tools", role: "toolbar", "aria-label": "what is shown" },
      this.filterInput,
      this.goInput,
      this.railButton,
      this.shardSelect,
      this.sortSelect,
      this.turnButton,
      this.imageSelect,
      this.labelInput,
      this.sizeSelect,
      this.tableButton,
      this.saveSelect,
      this.paneButton,
    );
    this.middle = h("div", { class: "tvz-middle" }, this.grid.root, this.table.root);
    this.main = h("div", { class: "tvz-main" }, this.rail.root, this.middle, this.pane.root);
    this.statusText = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.statusActions = h("span", {});
    this.status = h("footer", { class: "tvz-status" }, this.statusText, this.statusActions);
    this.chips = h("div", { class: "tvz-picks", role: "group", "aria-label": "filters that were clicked", hidden: true });
    this.root = h(
      "div",
      { class: "tvz tvz-browse", role: "region", "aria-label": `tarviz browser of ${config.title}` },
      this.head,
      this.tools,
      this.keep.bar,
      this.chips,
      this.main,
      this.status,
      this.filterHelp.list,
      this.labelHelp.list,
    );
    this.drawPicks();
    el.append(this.root);

    this.grid.root.addEventListener("click", (/** @type {any} */ e) => this.clicked(e), { signal });
    this.grid.root.addEventListener(
      "dblclick",
      (/** @type {any} */ e) => {
        if (e.target.closest(".tvz-tile")) this.zoom(true);
      },
      { signal },
    );
    bindKeys(this.root, (name, event) => this.keys.press(name, event), signal);
    this.root.addEventListener(
      "keyup",
      (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Shift") this.root.classList.remove("tvz-bare");
      },
      { signal },
    );
    this.root.addEventListener("focusout", () => this.root.classList.remove("tvz-bare"), { signal });
    const watch = new ResizeObserver(() => this.resized());
    watch.observe(this.root);
    watch.observe(this.grid.root);
    signal.addEventListener("abort", () => watch.disconnect());
    const idle = () => this.pollNow(true);
    this.root.addEventListener("pointerenter", idle, { signal });
    this.root.addEventListener("focusin", () => performance.now() - (this.polled ?? 0) > 4000 && idle(), { signal });
  }

  resized() {
    const width = this.root.clientWidth;
    this.root.classList.toggle("tvz-narrow", width < 560);
    this.root.classList.toggle("tvz-medium", width >= 560 && width < 900);
    const first = this.grid.firstVisible();
    this.grid.layout = undefined;
    this.grid.scrollTo(first);
    this.grid.draw();
    this.rail.draw();
  }

  /** @param {any} saved */
  start(saved) {
    const hash = this.model.media ? new URLSearchParams(location.hash.slice(1)) : new URLSearchParams();
    const wish = {
      where: hash.get("where") ?? saved.where,
      sort: hash.get("sort") ?? saved.sort,
      seed: Number(hash.get("seed") ?? saved.seed ?? 0),
      shard: saved.shard ?? null,
    };
    const picks = readPicks(hash.get("also")) ?? ([...hash.keys()].length ? [] : saved.picks);
    if (picks) this.picks = new Map(picks);
    this.drawPicks();
    const changed =
      [...this.picks.values()].map((pick) => pick.where).join("\n") !== this.config.also.join("\n") ||
      (wish.where ?? this.wish.where) !== this.wish.where ||
      (wish.sort ?? this.wish.sort) !== this.wish.sort ||
      wish.shard !== null;
    const begin = async () => {
      if (changed)
        await this.search(
          { where: wish.where ?? this.wish.where, sort: wish.sort ?? this.wish.sort, seed: wish.seed, shard: wish.shard },
          true,
        );
      const to = hash.get("row") ?? this.config.start;
      if (to) await this.goTo(to, true);
      else if (this.count && !this.narrow()) this.select(Math.min(saved.at ?? 0, this.count - 1), { quiet: true });
    };
    if (this.model.media && document.activeElement === document.body) this.grid.root.focus({ preventScroll: true }); // a page of its own: the keys are ours
    if (saved.table || hash.get("view") === "table") this.showTable(true);
    begin().finally(() => this.loop());
  }

  narrow() {
    return this.root.classList.contains("tvz-narrow");
  }

  // ---- what the controller says

  async loop() {
    while (!this.signal.aborted) {
      await this.pollNow(false);
      if (this.lost || (this.exact && this.done && !this.keep.job.running && (this.facets.settled || this.facets.busy))) {
        await new Promise((go) => {
          this.wake = () => go(undefined);
        });
        continue;
      }
      await new Promise((go) => setTimeout(go, document.hidden ? 2000 : 250));
    }
  }

  /** @param {boolean} idle */
  async pollNow(idle) {
    if (this.polling) this.looked ||= idle; // asked for while a poll is under way: looked after when it is back
    if (this.polling || this.signal.aborted) return;
    this.polling = true;
    this.polled = performance.now();
    try {
      const { r } = await this.rpc("poll", { since: this.version, want: this.wanted(), idle }, { keep: true });
      this.lost = false;
      this.takePoll(r);
    } catch (error) {
      this.trouble(error);
    } finally {
      this.polling = false;
    }
    if (idle && !this.lost && !(this.exact && this.done)) this.wake();
    if (this.looked) {
      this.looked = false;
      await this.pollNow(true);
    }
  }

  wanted() {
    const { stop } = this.grid.visibleRange(2);
    return Math.min(stop, this.count + 400);
  }

  /** @param {any} poll */
  takePoll(poll) {
    this.version = poll.version;
    for (const shard of poll.shards) this.shards[shard.number] = shard;
    this.exact = poll.exact;
    this.total = poll.total;
    if (poll.query.number === this.query) {
      this.done = poll.query.done;
      if (this.ordered !== poll.query.ordered) {
        // what was shown while rows were still being found was not in their order
        this.ordered = poll.query.ordered;
        if (this.ordered) this.reordered();
      }
      if (poll.query.count !== this.count) {
        this.count = poll.query.count;
        this.grid.layout = undefined;
      }
      this.searching = poll.query.done
        ? ""
        : this.plain()
          ? ""
          : poll.query.note
            ? poll.query.note
            : `looked at ${formatCount(poll.query.checked)} of ${poll.exact ? "" : "≥ "}${formatCount(poll.total)}`;
      if (poll.query.error) this.say(poll.query.error, "bad");
      this.followFirst();
    }
    this.state = poll.status;
    this.tableState = poll.table;
    if (!this.grid.asked.size) this.facets.follow(); // pictures first
    this.keep.take(poll.job);
    if (poll.summary) {
      this.summary = poll.summary;
      this.rail.drawMore();
      this.drawFields();
    }
    const bytes = this.shards.reduce((sum, shard) => sum + (shard?.size ?? 0), 0);
    const about = poll.exact ? "" : "≥ ";
    fill(
      this.facts,
      [
        `${formatCount(this.shards.length)} shard${this.shards.length === 1 ? "" : "s"}`,
        `${about}${formatCount(poll.total)} records`,
        bytes ? formatBytes(bytes) : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
    this.stale = this.shards.some((shard) => shard?.stale);
    this.tellState();
    this.rail.draw();
    this.grid.draw();
  }

  reordered() {
    this.grid.items.clear();
    this.grid.asked.clear();
    this.table.key = "";
    this.follow ||= this.pane.record !== undefined && this.at === 0;
  }

  /** After a search the pane shows the first record found, or that there is none. */
  followFirst() {
    if (!this.follow || (!this.count && !this.done)) return;
    if (this.count) {
      this.follow = false;
      this.select(0);
    } else if (this.pane.record) this.pane.fill();
  }

  plain() {
    return (
      this.wish.where.trim() === "" &&
      !this.picks.size &&
      this.wish.sort === "order" &&
      !this.wish.descending &&
      this.wish.shard === null &&
      !this.wish.only
    );
  }

  tellState() {
    if (this.message && performance.now() < this.message.until) return;
    this.message = undefined;
    const shown = this.plain() ? "" : `${formatCount(this.count)} shown`;
    this.statusText.className = `tvz-cut${this.exact && this.done ? "" : this.shards.some((s) => s?.state === "scanning") || this.searching ? " tvz-busy" : ""}`;
    const text = [
      this.selected >= 0 && this.count ? `#${formatCount(this.at)} of ${formatCount(this.count)}` : "",
      shown,
      this.searching,
      this.state,
      this.marked.size ? `${this.marked.size} marked` : "",
    ]
      .filter(Boolean)
      .join(" · ");
    if (this.statusText.textContent !== text) this.statusText.textContent = text;
    const actions = [];
    if (this.searching) actions.push(h("button", { onclick: () => this.rpc("stop").catch(() => {}) }, "Stop"));
    if (this.shards.some((s) => s?.state === "paused"))
      actions.push(
        h("button", { title: "read all shards to their end", onclick: () => this.rpc("go_on").then(() => this.wake()) }, "scan all"),
      );
    const stale = this.shards.find((s) => s?.stale || s?.state === "missing");
    if (stale) actions.push(h("button", { onclick: () => this.again(stale.number) }, "scan again"));
    const key = actions.map((a) => a.textContent).join();
    if (this.actionKey !== key) {
      this.actionKey = key;
      fill(this.statusActions, ...actions);
    }
  }

  /** @param {string} text @param {"" | "bad"} [tone] */
  say(text, tone = "") {
    this.message = { until: performance.now() + (tone ? 15_000 : 4000) };
    this.statusText.className = tone === "bad" ? "tvz-cut tvz-bad" : "tvz-cut";
    this.statusText.textContent = text;
    this.statusText.title = text;
    setTimeout(() => !this.signal.aborted && this.tellState(), tone ? 15_100 : 4100);
  }

  /** @param {unknown} error */
  trouble(error) {
    if (isOvertaken(error)) return;
    const fault = error instanceof RpcError ? error.fault : { code: "", msg: String(error), hint: "" };
    if (fault.code === "no-kernel") {
      this.lost = true;
      this.say(`${fault.msg} ${fault.hint} The pictures that were there stay.`, "bad");
    } else this.say(`${fault.msg}${fault.hint ? ` ${fault.hint}` : ""}`, "bad");
  }

  /** @param {boolean} slow */
  tellSlow(slow) {
    if (slow) this.say("No answer from the kernel: it is busy, or it was restarted. Run the cell again to go on.", "bad");
    else {
      this.message = undefined;
      this.tellState();
    }
  }

  // ---- searching

  /** @param {any} wish @param {boolean} [quiet] */
  async search(wish, quiet = false) {
    const next = { ...this.wish, ...wish };
    if (next.only && !this.marked.size) return this.say("Nothing is marked: Space marks the record.");
    try {
      const { r } = await this.rpc("search", {
        where: next.where,
        sort: next.sort,
        seed: next.seed,
        shard: next.shard,
        label: next.column ?? this.label,
        only: next.only ? [...this.marked] : null,
        descending: next.descending,
        also: [...this.picks.values()].map((pick) => pick.where),
      });
      this.wish = next;
      this.drawPicks();
      this.query = r.query;
      this.done = false;
      this.ordered = next.sort === "order" && !next.descending;
      this.count = 0;
      this.grid.restart();
      this.at = 0;
      this.follow ||= this.pane.record !== undefined;
      this.filterInput.removeAttribute("aria-invalid");
      this.filterInput.value = next.where;
      this.sortSelect.value = next.column && next.sort === "label" ? `by ${next.column}` : next.sort;
      this.turnButton.setAttribute("aria-pressed", String(next.descending));
      this.shardSelect.value = next.shard === null ? "" : String(next.shard);
      this.message = undefined;
      this.rail.draw();
      this.rail.drawMore();
      if (!quiet) this.remembering();
      await this.pollNow(false);
      if (!this.keep.bar.hidden) this.keep.close();
      this.wake();
    } catch (error) {
      if (!isOvertaken(error)) this.filterInput.setAttribute("aria-invalid", "true");
      if (!this.filterHelp?.shown) this.trouble(error); // while it is being written it may well be unfinished
    }
    return undefined;
  }

  /** Filter by a click: `name` is what the condition is about, and has one at a time; the same again takes it away.
   * @param {string} name @param {string} where @param {string} text @param {string[]} [parts] @param {number[]} [span] @param {any} [order] */
  pick(name, where, text, parts = [where], span = undefined, order = {}) {
    const before = this.picks.get(name);
    if (!where || before?.where === where) this.picks.delete(name);
    else this.picks.set(name, { where, text, parts, span });
    this.search(order);
  }

  /** No filter at all. */
  showAll() {
    this.picks.clear();
    return this.search({ where: "", shard: null, only: false });
  }

  drawPicks() {
    this.chips.hidden = !this.picks.size;
    fill(
      this.chips,
      ...[...this.picks].map(([name, { where, text }]) =>
        h(
          "button",
          {
            class: "tvz-chip tvz-pick",
            title: `${where}\nclick to take it away`,
            "aria-label": `take away the filter ${text}`,
            onclick: () => {
              this.picks.delete(name);
              this.search({});
            },
          },
          h("span", { class: "tvz-cut", dir: "auto" }, text),
          " ✕",
        ),
      ),
      this.picks.size > 1
        ? h(
            "button",
            {
              class: "tvz-link",
              onclick: () => {
                this.picks.clear();
                this.search({});
              },
            },
            "all away",
          )
        : null,
    );
  }

  /** Columns to sort by, after the usual orders. @param {string[]} columns */
  offerColumns(columns) {
    const value = this.sortSelect.value;
    this.sortSelect.querySelector("optgroup")?.remove();
    const group = h("optgroup", { label: "by column" }, ...columns.slice(0, 100).map((name) => h("option", { value: `by ${name}` }, name)));
    this.sortSelect.append(group);
    this.sortSelect.value = value;
  }

  /** @param {string} text @param {boolean} [quiet] */
  async goTo(text, quiet = false) {
    this.goInput.hidden = true;
    if (!text.trim()) return;
    try {
      let { r } = await this.rpc("find", { text });
      if (r.position === null && !this.plain()) {
        this.picks.clear();
        await this.search({ where: "", sort: "order", shard: null, only: false }, true);
        ({ r } = await this.rpc("find", { text }));
      }
      if (r.position === null) return this.say("It is known, but not shown yet: the shards before it are still being scanned.");
      this.count = Math.max(this.count, r.position + 1);
      this.grid.layout = undefined;
      this.select(r.position, { quiet, id: r.row });
      if (!quiet) this.list.focus();
    } catch (error) {
      this.trouble(error);
    }
    return undefined;
  }

  /** The bytes a finding is about: the field it lies in, scrolled to it. @param {any} fault */
  async goToByte(fault) {
    this.pane.wantedByte = fault.offset;
    this.pane.tab = "bytes";
    await this.goTo(fault.key);
  }

  /** @param {number} shard */
  async again(shard) {
    try {
      const { r } = await this.rpc("again", { shard });
      this.query = r.query;
      this.grid.forget();
      this.version = -1;
      await this.pollNow(false);
      this.wake();
    } catch (error) {
      this.trouble(error);
    }
  }

  // ---- the record under the cursor

  /** @param {MouseEvent & { target: any }} event */
  clicked(event) {
    const tile = event.target.closest(".tvz-tile");
    if (!tile) return;
    const position = Number(tile.dataset.position);
    this.select(position);
    if (event.ctrlKey || event.metaKey) this.mark();
  }

  /** @param {number} position @param {{ quiet?: boolean, id?: number }} [options] */
  select(position, { quiet = false, id } = {}) {
    if (position < 0 || position >= this.count) return;
    this.at = position;
    this.selected = this.grid.items.get(position)?.id ?? -1;
    this.grid.reveal(position);
    if (this.table.shown) this.table.reveal(position);
    this.grid.draw();
    this.pane.open(id, quiet);
  }

  /** @param {number} by */
  stepShard(by) {
    if (this.shards.length < 2) return;
    const at = this.wish.shard === null ? (by > 0 ? 0 : this.shards.length - 1) : this.wish.shard + by;
    this.search({ shard: at < 0 || at >= this.shards.length ? null : at });
  }

  /** @param {number} px */
  resize(px) {
    const first = this.selected >= 0 ? this.at : this.grid.firstVisible();
    this.px = px;
    this.sizeSelect.value = String(px);
    this.grid.layout = undefined;
    this.grid.scrollTo(first);
    this.grid.draw();
    this.remembering();
  }

  /** @param {string} ext */
  showField(ext) {
    this.image = ext;
    this.imageSelect.value = ext;
    this.grid.draw();
    this.remembering();
  }

  /** @param {string} label */
  relabel(label) {
    this.label = label.trim().replace(":", ".");
    this.labelKnown = true;
    this.grid.draw();
  }

  askGo() {
    this.goInput.hidden = false;
    this.goInput.value = "";
    this.goInput.focus();
  }

  mark() {
    const id = this.grid.items.get(this.at)?.id;
    if (id === undefined) return this.say("The record is still on its way: mark it when it shows.");
    if (!this.marked.delete(id)) this.marked.add(id);
    this.grid.draw();
    this.tellState();
    this.remembering();
    return undefined;
  }

  // ---- frame parts

  drawFields() {
    const names = (this.summary?.fields ?? []).map((/** @type {any} */ [ext]) => ext);
    if (names.join() === this.fieldNames) return;
    this.fieldNames = names.join();
    fill(
      this.imageSelect,
      h("option", { value: "" }, "first picture"),
      ...names.slice(0, 60).map((/** @type {string} */ ext) => h("option", { value: ext }, ext)),
    );
    this.imageSelect.value = this.image;
  }

  /** @param {boolean} on */
  showRail(on) {
    this.root.classList.toggle("tvz-railed", on);
    this.railButton.setAttribute("aria-expanded", String(on));
    this.rail.draw();
  }

  /** Boxes, outlines and masks on or off. */
  toggleOver() {
    this.layers.shown = !this.layers.shown;
    this.grid.relayer();
    for (const frame of this.pane.root.querySelectorAll(".tvz-frame")) /** @type {any} */ (frame).view?.draw();
    this.say(this.layers.shown ? "boxes and masks are shown" : "boxes and masks are hidden");
  }

  /** Records as a table, or as tiles. @param {boolean} on */
  showTable(on) {
    this.table.root.hidden = !on;
    this.grid.root.hidden = on;
    this.tableButton.setAttribute("aria-pressed", String(on));
    if (on) this.table.open();
    this.grid.layout = undefined;
    this.grid.draw();
    (on ? this.table.root : this.grid.root).focus({ preventScroll: true });
    if (on) this.table.reveal(this.at);
    this.remembering();
  }

  /** What has the records: tiles or table. */
  get list() {
    return this.table.shown ? this.table.root : this.grid.root;
  }

  togglePane() {
    this.root.classList.toggle("tvz-no-pane");
    this.resized();
  }

  /** @param {boolean} on */
  zoom(on) {
    this.root.classList.toggle("tvz-zoomed", on);
    this.root.classList.remove("tvz-no-pane");
    this.resized();
    if (on && this.selected < 0) this.select(this.at);
    this.list.focus();
  }

  drawSoon() {
    this.grid.draw();
    this.tellState();
  }
}

/** The conditions in an address; undefined where there are none to read. @param {string | null} text @returns {[string, any][] | undefined} */
export function readPicks(text) {
  try {
    const found = JSON.parse(text ?? "");
    return Array.isArray(found) &&
      found.every((pair) => typeof pair?.[0] === "string" && typeof pair[1]?.where === "string" && typeof pair[1].text === "string")
      ? found
      : undefined;
  } catch {
    return undefined;
  }
}

export default { render: drawnBy(BrowserView) };
