// @ts-check
// What is searched for: the filter that was written, those that were clicked, the order, and the way to one record.

import { fill, h } from "../../host/core.mjs";
import { isOvertaken } from "../../host/requests.mjs";

const AWAITED = "It is known, but not shown yet: the shards before it are still being scanned.";

/** A search that keeps nothing away. */
const ALL = { where: "", shard: null, only: false, area: null, objects: false };

/** Whether the records are in the order of the line below their tiles, whatever that is. @param {any} wish */
export const byCaption = (wish) => wish.sort === "label" && !wish.column;

/** Another search changes all that the page shows: it acts on the view itself. */
export class Search {
  /** @param {import("./browse.mjs").BrowserView} view */
  constructor(view) {
    this.view = view;
    /** What was asked for last, answered or not: a key pressed before the answer goes on from there. @type {any} */
    this.next = view.records.wish;
    /** searches that were not answered yet */
    this.running = 0;
    /** the address that is being shown, until a person asks for something else @type {object | undefined} */
    this.restoring = undefined;
    /** what is shown by the last search that was answered */
    this.answered = { wish: view.records.wish, picks: [...view.records.picks] };
    this.chips = h("div", { class: "tvz-picks", role: "group", "aria-label": "filters that were clicked" });
  }

  /** @param {any} wish @param {boolean} [quiet] */
  async run(wish, quiet = false) {
    const { view } = this;
    const next = { ...this.next, ...wish };
    if (next.only && !view.marks.size) return view.status.say("Nothing is marked: Space marks the record.");
    this.next = next;
    if (!quiet) this.restoring = undefined;
    this.running += 1;
    try {
      const { r } = await view.rpc("search", {
        where: next.where,
        sort: next.sort,
        seed: next.seed,
        shard: next.shard,
        label: next.column ?? view.look.label,
        only: next.only,
        descending: next.descending,
        area: next.area,
        objects: next.objects ? this.pickedClasses() : null,
        also: [...view.records.picks.values()].map((pick) => pick.where),
        asked: [performance.timeOrigin, performance.now()],
      });
      view.records.wish = next;
      this.drawPicks();
      view.records.query = r.query;
      view.records.words = r.words;
      view.records.done = false;
      view.records.ordered = next.sort === "order" && !next.descending;
      view.records.count = 0;
      view.grid.restart();
      view.records.at = 0;
      view.records.follow ||= view.pane.record !== undefined;
      view.tools.showSearch(next);
      view.status.message = undefined;
      view.rail.draw();
      view.rail.drawMore();
      if (!quiet) this.keep();
      this.answered = { wish: next, picks: [...view.records.picks] };
      await view.polls.now();
      for (let rest = 25; !view.records.count && !view.records.done && rest < 250 && r.query === view.records.query; rest *= 2) {
        await new Promise((go) => setTimeout(go, rest)); // most searches are done at once: they need not wait for the next look
        await view.polls.now();
      }
      if (!view.keep.bar.hidden) view.keep.close();
      view.scan.wake();
    } catch (error) {
      if (!isOvertaken(error)) {
        this.next = view.records.wish;
        view.tools.filter.setAttribute("aria-invalid", "true");
      }
      if (!view.tools.filterHelp?.shown) view.status.trouble(error); // while it is being written it may well be unfinished
    } finally {
      this.running -= 1;
    }
    return undefined;
  }

  /** The search can be taken back, and Back leads to what was shown before. */
  keep() {
    const { view } = this;
    const [before, after] = [this.answered, { wish: this.next, picks: [...view.records.picks] }];
    const back = (/** @type {typeof before} */ to) => () => {
      view.records.picks = new Map(to.picks);
      return this.run(to.wish, true).then(() => view.places.stepping());
    };
    view.history.did({ text: "filter and order", undo: back(before), redo: back(after) });
    view.places.stepping();
  }

  /** Search again for what is shown: the controller knows nothing of this page any more. */
  renew() {
    if (!this.running) this.run({}, true);
  }

  /** Show what an address says. @param {import("../marking/address.mjs").Shown} shown */
  async restore(shown) {
    const { view } = this;
    this.restoring = shown;
    try {
      await this.show(shown);
      if (shown !== this.restoring) return; // Back was pressed again
      if (shown.large !== view.zoomed) view.zoom(shown.large);
      if (shown.row) await this.startAt(shown.row, shown.at);
      else if (!view.narrow()) {
        view.records.follow = !view.records.count; // what is searched for may still be being found
        view.select(Math.min(shown.at, view.records.count - 1));
      }
    } finally {
      if (shown === this.restoring) this.restoring = undefined;
      view.places.soon();
    }
  }

  /** The records of an address, and how they are shown. @param {import("../marking/address.mjs").Shown} shown */
  async show(shown) {
    const { view } = this;
    const { where, sort, seed, column, descending, shard, objects, area = null } = shown;
    const wish = { where, sort, seed, column, descending, shard, only: shown.only && view.marks.size > 0, objects, area };
    if (shown.px !== view.look.px) view.resize(shown.px);
    if (shown.image !== view.look.image) view.showField(shown.image);
    const relabelled = shown.label !== view.places.shown().label;
    if (relabelled) view.relabel(shown.label);
    if ((shown.view === "table") !== view.table.shown) view.showTable(shown.view === "table");
    if (shown.map !== view.map.shown) view.showMap(shown.map);
    const key = (/** @type {any} */ search, /** @type {[string, any][]} */ picks) =>
      JSON.stringify([...Object.keys(wish).map((name) => search[name] ?? null), picks.map(([, pick]) => pick.where)]);
    if (key(wish, shown.picks) === key(this.next, [...view.records.picks]) && !this.running && !(relabelled && byCaption(wish))) return;
    view.records.picks = new Map(shown.picks);
    view.map.trace(area ?? []);
    await this.run(wish, true);
  }

  /** Filter by a click: `name` is what the condition is about, and has one at a time; the same again takes it away.
   * @param {string} name @param {string} where @param {string} text @param {string[]} [parts] @param {number[]} [span] @param {any} [order] */
  pick(name, where, text, parts = [where], span = undefined, order = {}) {
    const before = this.view.records.picks.get(name);
    if (!where || before?.where === where) this.view.records.picks.delete(name);
    else this.view.records.picks.set(name, { where, text, parts, span });
    this.run(order);
  }

  /** Show records that have an object of these classes, or all. @param {string[]} names */
  pickClasses(names) {
    const parts = names.map((name) => `has_object('${name.replaceAll("'", "''")}')`);
    this.pick("objects", parts.join(" or "), `has ${names.join(" or ")}`, parts);
  }

  /** Classes of objects that were clicked. @returns {string[]} */
  pickedClasses() {
    const parts = this.view.records.picks.get("objects")?.parts ?? [];
    return parts.map((part) => part.slice("has_object('".length, -2).replaceAll("''", "'"));
  }

  /** A tile for each box, or for each record. */
  toggleBoxes() {
    this.run({ objects: !this.next.objects });
  }

  /** The marked records only, or all. */
  toggleMarked() {
    this.run({ only: !this.next.only });
  }

  /** Another shard, or all. @param {number} by */
  stepShard(by) {
    const { length } = this.view.scan.shards;
    if (length < 2) return;
    const { shard } = this.next;
    const at = shard === null ? (by > 0 ? 0 : length - 1) : shard + by;
    this.run({ shard: at < 0 || at >= length ? null : at });
  }

  /** No filter at all. */
  showAll() {
    this.view.records.picks.clear();
    this.view.map.trace();
    return this.run(ALL);
  }

  drawPicks() {
    const { view } = this;
    const chip = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) =>
      h(
        "button",
        {
          class: "tvz-chip tvz-pick",
          title: `${title}\nclick to take it away`,
          "aria-label": `take away the filter ${text}`,
          onclick: act,
        },
        h("span", { class: "tvz-cut", dir: "auto" }, text),
        " ✕",
      );
    const drop = (/** @type {string[]} */ names) => {
      for (const name of names) view.records.picks.delete(name);
      this.run({});
    };
    this.chips.hidden = !view.records.picks.size && !view.records.wish.area;
    fill(
      this.chips,
      ...[...view.records.picks].map(([name, { where, text }]) => chip(text, where, () => drop([name]))),
      view.records.wish.area ? chip("inside the line on the map", "records whose points lie inside it", () => view.map.uncircle()) : null,
      view.records.picks.size > 1
        ? h("button", { class: "tvz-link", onclick: () => drop([...view.records.picks.keys()]) }, "all away")
        : null,
    );
  }

  /** The row of a key and where it shows, as soon as the search is that far. @param {string} text @param {number} [at] */
  async find(text, at) {
    const { view } = this;
    for (let rest = 25; ; rest *= 2) {
      const { r } = await view.rpc("find", { text, at });
      if (r.position !== null || view.records.done || rest > 2000) return r;
      await new Promise((go) => setTimeout(go, rest));
      await view.polls.now();
    }
  }

  /** Stand on the record a link or a call names, among those its filters show: they are never dropped for it. @param {string} text @param {number} at */
  async startAt(text, at) {
    const { view, restoring } = this;
    try {
      const r = await this.find(text, at); // what the filters leave may still be being found
      if (restoring !== this.restoring) return undefined;
      if (r.position !== null) return this.stand(r);
      view.status.say(view.records.done ? `${text} is not among the records shown.` : AWAITED);
    } catch (error) {
      if (restoring !== this.restoring) return undefined;
      view.status.trouble(error);
    }
    view.records.follow = !view.narrow();
    return view.polls.followFirst();
  }

  /** @param {{ row: number, position: number }} found */
  stand(found) {
    const { view } = this;
    view.records.follow = false;
    view.records.count = Math.max(view.records.count, found.position + 1);
    view.grid.layout = undefined;
    view.select(found.position, found.row);
  }

  /** What keeps records from where they lie, in words. */
  held() {
    const { picks, wish } = this.view.records;
    const held = { filters: wish.where.trim() || picks.size, "the shard": wish.shard !== null, "marked only": wish.only };
    const shown = { "the line on the map": wish.area, "the order": wish.sort !== "order" || wish.descending, "a tile a box": wish.objects };
    return Object.entries({ ...held, ...shown }).flatMap(([name, on]) => (on ? [name] : []));
  }

  /** Stand on a record, wherever it is: what hides it is let go, and that is said. @param {string} text */
  async goTo(text) {
    const { view } = this;
    view.tools.go.hidden = true;
    if (!text.trim()) return;
    this.restoring = undefined;
    try {
      let { r } = await view.rpc("find", { text });
      const gone = r.position === null ? this.held() : [];
      if (gone.length) {
        view.records.picks.clear();
        view.map.trace();
        await this.run({ ...ALL, sort: "order", column: undefined, descending: false }, true);
      }
      if (r.position === null) r = await this.find(text);
      if (r.position === null) return view.status.say(AWAITED);
      this.stand(r);
      view.list.focus();
      if (gone.length) view.status.say(`It was not among the records shown. Let go for it: ${gone.join(", ")}.`);
    } catch (error) {
      view.status.trouble(error);
    }
    return undefined;
  }

  /** The bytes a finding is about: the field it lies in, scrolled to it. @param {any} fault */
  async goToByte(fault) {
    this.view.pane.wantedByte = fault.offset;
    this.view.pane.tab = "bytes";
    await this.goTo(fault.key);
  }

  /** @param {number} shard */
  async again(shard) {
    const { view } = this;
    try {
      const { r } = await view.rpc("again", { shard });
      view.records.query = r.query;
      view.grid.forget();
      view.scan.version = -1;
      await view.polls.now();
      view.scan.wake();
    } catch (error) {
      view.status.trouble(error);
    }
  }
}
