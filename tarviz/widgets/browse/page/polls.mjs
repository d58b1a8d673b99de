// @ts-check
// What the controller says of the shards and of the search, asked for as long as something goes on.

import { fill, formatBytes, formatCount, plural } from "../../host/core.mjs";

/** Milliseconds between two looks at what other pages have done. */
const BESIDE = 3000;

/** What a poll says is handed on to every part: they act on the view itself. */
export class Polls {
  /** @param {import("./browse.mjs").BrowserView} view */
  constructor(view) {
    this.view = view;
    this.polled = 0;
  }

  async loop() {
    const { view } = this;
    while (!view.signal.aborted) {
      await this.now();
      if (
        view.scan.lost ||
        (view.scan.exact &&
          view.records.done &&
          !view.keep.job.running &&
          (view.facets.settled || view.facets.busy) &&
          (view.classes.settled || view.classes.busy))
      ) {
        await new Promise((go) => {
          view.scan.wake = () => go(undefined);
          if (view.scan.pages > 1 && !view.scan.lost) setTimeout(go, document.hidden ? 30_000 : BESIDE); // another page may mark or tag
        });
        continue;
      }
      await new Promise((go) => setTimeout(go, document.hidden ? 2000 : 250));
    }
  }

  /** @param {boolean} [idle] files are looked at, too */
  async now(idle = false) {
    const { view } = this;
    if (this.polling) this.looked ||= idle; // asked for while a poll is under way: looked after when it is back
    if (this.polling || view.signal.aborted) return;
    this.polling = true;
    this.polled = performance.now();
    try {
      const { r } = await view.rpc("poll", { since: view.scan.version, want: view.grid.visibleRange(2).stop, idle }, { urgent: true });
      view.scan.lost = false;
      this.take(r);
    } catch (error) {
      view.status.trouble(error);
    } finally {
      this.polling = false;
    }
    if (idle && !view.scan.lost && !(view.scan.exact && view.records.done)) view.scan.wake();
    if (this.looked) {
      this.looked = false;
      await this.now(true);
    }
  }

  /** @param {any} poll */
  take(poll) {
    const { view } = this;
    view.scan.version = poll.version;
    for (const shard of poll.shards) view.scan.shards[shard.number] = shard;
    view.scan.exact = poll.exact;
    if (view.model.still) poll.query.count = Math.min(poll.query.count, view.model.get("_first").rows.rows.length);
    view.scan.total = poll.total;
    view.scan.pages = poll.pages;
    view.scan.far = poll.trouble;
    view.marks.take(poll.marks).catch((error) => view.status.trouble(error));
    if (poll.query.number !== view.records.query) view.searches.renew();
    else {
      view.records.done = poll.query.done;
      if (view.records.ordered !== poll.query.ordered) {
        // what was shown while rows were still being found was not in their order
        view.records.ordered = poll.query.ordered;
        if (view.records.ordered) this.reordered();
      }
      if (poll.query.count !== view.records.count) {
        view.records.count = poll.query.count;
        view.grid.layout = undefined;
      }
      view.records.searching =
        poll.query.done || view.records.plain()
          ? ""
          : poll.query.note ||
            `looked at ${formatCount(poll.query.checked)} of ${poll.exact ? "" : "≥ "}${formatCount(poll.total)}${readSoFar(view.scan.shards)}`;
      view.records.failed = poll.query.error;
      if (view.records.failed) {
        view.status.say(view.records.failed, "bad");
        view.tools.filter.setAttribute("aria-invalid", "true");
      }
      this.followFirst();
    }
    view.scan.state = poll.status;
    view.scan.columns = poll.table;
    if (view.calm) {
      view.facets.follow();
      view.classes.follow();
      view.map.follow();
    }
    view.keep.take(poll.job);
    if (poll.summary) {
      view.scan.summary = poll.summary;
      view.rail.drawMore();
      view.tools.offerFields(view.scan.summary.fields);
    }
    const bytes = view.scan.shards.reduce((sum, shard) => sum + (shard?.size ?? 0), 0);
    const about = poll.exact ? "" : "≥ ";
    fill(
      view.facts,
      [plural(view.scan.shards.length, "shard"), about + plural(poll.total, "record"), bytes ? formatBytes(bytes) : ""]
        .filter(Boolean)
        .join(" · "),
    );
    view.status.tell();
    view.tools.offerShards();
    view.rail.draw();
    view.grid.draw();
  }

  reordered() {
    const { view } = this;
    view.rows.clear();
    view.table.key = "";
    view.records.follow ||= view.pane.record !== undefined && view.records.at === 0;
  }

  /** After a search the pane shows the first record found, or that there is none. */
  followFirst() {
    const { view } = this;
    if (!view.records.follow || (!view.records.count && !view.records.done)) return;
    if (view.records.count) {
      view.records.follow = false;
      view.select(0);
    } else if (view.pane.record) view.pane.fill();
  }
}

/** How much of far shards was read, while some of them still are. @param {any[]} shards */
function readSoFar(shards) {
  const known = shards.filter((shard) => shard?.size && shard.share !== null);
  const size = known.reduce((sum, shard) => sum + shard.size, 0);
  const read = known.reduce((sum, shard) => sum + shard.size * shard.share, 0);
  return known.some((shard) => shard.state === "scanning") && read < size ? `, ${formatBytes(read)} of ${formatBytes(size)} read` : "";
}
