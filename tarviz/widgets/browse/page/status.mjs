// @ts-check
// The line below the records: where the cursor is, what goes on, what went wrong, and the buttons that help.

import { button, fill, formatCount, h } from "../../host/core.mjs";
import { isOvertaken, NO_ANSWER, RpcError, wordsOf } from "../../host/requests.mjs";

export class StatusLine {
  /** @param {import("./browse.mjs").BrowserView} view */
  constructor(view) {
    this.view = view;
    /** @type {{ until: number } | undefined} what was said last, while it stands */
    this.message = undefined;
    this.shownActions = "";
    this.text = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.actions = h("span", {});
    this.root = h("footer", { class: "tvz-status" }, this.text, this.actions);
  }

  /** What is shown and how far the shards are read, with what can be done about it. */
  tell() {
    const { view } = this;
    if (this.message && performance.now() < this.message.until) return;
    if (view.model.still) {
      this.text.textContent = `a saved picture: ${formatCount(view.records.count)} of ${formatCount(view.scan.total)} records; the first ones open by a click`;
      return;
    }
    this.message = undefined;
    const shown = view.records.plain() ? "" : `${formatCount(view.records.count)}${view.records.wish.objects ? " boxes" : ""} shown`;
    this.text.className = `tvz-cut${view.scan.exact && view.records.done ? "" : view.scan.shards.some((s) => s?.state === "scanning") || view.records.searching ? " tvz-busy" : ""}`;
    const text = [
      view.records.selected >= 0 && view.records.count ? `#${formatCount(view.records.at)} of ${formatCount(view.records.count)}` : "",
      shown,
      view.records.words.length ? `searched for the word${view.records.words.length > 1 ? "s" : ""} ${view.records.words.join(", ")}` : "",
      view.records.searching,
      view.scan.state,
      view.marks.size ? `${formatCount(view.marks.size)} marked${view.scan.pages > 1 ? ", for all pages" : ""}` : "",
      view.scan.pages > 1 ? `${view.scan.pages} pages look at these shards` : "",
    ]
      .filter(Boolean)
      .join(" · ");
    if (this.text.textContent !== text) this.text.textContent = text;
    const actions = [];
    if (view.records.searching) actions.push(h("button", { onclick: () => view.rpc("stop").catch(() => {}) }, "Stop"));
    if (view.scan.shards.some((s) => s?.state === "paused"))
      actions.push(
        button("scan all", "read all shards to their end", () =>
          view
            .rpc("go_on")
            .then(() => view.scan.wake())
            .catch(() => {}),
        ),
      );
    const stale = view.scan.shards.find((s) => s?.stale || s?.state === "missing" || s?.state === "unreachable");
    if (stale)
      actions.push(
        h("button", { onclick: () => view.searches.again(stale.number) }, stale.state === "unreachable" ? "retry" : "scan again"),
      );
    const key = [...actions.map((a) => a.textContent), stale?.number].join();
    if (this.shownActions !== key) {
      this.shownActions = key;
      fill(this.actions, ...actions);
    }
  }

  /** @param {string} text @param {"" | "bad"} [tone] @param {string} [action] a button beside it, and what it does @param {() => void} [act] */
  say(text, tone = "", action = "", act = () => {}) {
    const stands = tone ? 15_000 : action ? 8000 : 4000;
    this.message = { until: performance.now() + stands };
    this.text.className = tone === "bad" ? "tvz-cut tvz-bad" : "tvz-cut";
    this.text.textContent = text;
    this.text.title = text;
    if (action) {
      this.shownActions = action;
      fill(this.actions, h("button", { onclick: act }, action));
    }
    setTimeout(() => !this.view.signal.aborted && this.tell(), stands + 100);
  }

  /** @param {unknown} error */
  trouble(error) {
    if (isOvertaken(error)) return;
    if (error instanceof RpcError && error.fault.code === "no-kernel") {
      this.view.scan.lost = true;
      if (error.fault.type === "Saved") this.say(error.fault.msg);
      else this.say(`${wordsOf(error)} The pictures that were there stay.`, "bad");
    } else this.say(wordsOf(error), "bad");
  }

  /** @param {boolean} slow */
  async tellSlow(slow) {
    if (slow && !this.view.scan.lost) await this.view.polls.now(false); // is it the page that does not answer, or a store behind it?
    if (slow)
      this.say(
        this.view.scan.far
          ? this.view.scan.far
          : this.view.model.media
            ? "The server of this page has not answered yet: it is reading, or it was stopped (tarviz browse, in its terminal)."
            : NO_ANSWER,
        "bad",
      );
    else {
      this.message = undefined;
      this.tell();
    }
  }
}
