// @ts-check
// The line below the records: where the cursor is, what goes on, what went wrong, and the buttons that help.

import { button, fill, formatCount, h } from "../../host/core.mjs";
import { isOvertaken, NO_ANSWER, RpcError, wordsOf } from "../../host/requests.mjs";

export class StatusLine {
  /** @param {Pick<import("./state.mjs").Page, "model" | "signal" | "rpc" | "records" | "scan" | "marks" | "searches" | "polls">} around */
  constructor(around) {
    this.around = around;
    /** @type {{ until: number } | undefined} what was said last, while it stands */
    this.message = undefined;
    this.shownActions = "";
    this.text = h("span", { role: "status", "aria-live": "polite", class: "tvz-cut" });
    this.actions = h("span", {});
    this.root = h("footer", { class: "tvz-status" }, this.text, this.actions);
  }

  /** What is shown and how far the shards are read, with what can be done about it. */
  tell() {
    const { model, rpc, records, scan, marks, searches } = this.around;
    if (this.message && performance.now() < this.message.until) return;
    if (model.still) {
      this.text.textContent = `a saved picture: ${formatCount(records.count)} of ${formatCount(scan.total)} records; the first ones open by a click`;
      return;
    }
    this.message = undefined;
    const shown = records.plain() ? "" : `${formatCount(records.count)}${records.wish.objects ? " boxes" : ""} shown`;
    this.text.className = `tvz-cut${scan.exact && records.done ? "" : scan.shards.some((s) => s?.state === "scanning") || records.searching ? " tvz-busy" : ""}`;
    const text = [
      records.selected >= 0 && records.count ? `#${formatCount(records.at)} of ${formatCount(records.count)}` : "",
      shown,
      records.words.length ? `searched for the word${records.words.length > 1 ? "s" : ""} ${records.words.join(", ")}` : "",
      records.searching,
      scan.state,
      marks.size ? `${formatCount(marks.size)} marked${scan.pages > 1 ? ", for all pages" : ""}` : "",
      scan.pages > 1 ? `${scan.pages} pages look at these shards` : "",
    ]
      .filter(Boolean)
      .join(" · ");
    if (this.text.textContent !== text) this.text.textContent = text;
    const actions = [];
    if (records.searching) actions.push(h("button", { onclick: () => rpc("stop").catch(() => {}) }, "Stop"));
    if (scan.shards.some((s) => s?.state === "paused"))
      actions.push(
        button("scan all", "read all shards to their end", () =>
          rpc("go_on")
            .then(() => scan.wake())
            .catch(() => {}),
        ),
      );
    const stale = scan.shards.find((s) => s?.stale || s?.state === "missing" || s?.state === "unreachable");
    if (stale)
      actions.push(h("button", { onclick: () => searches.again(stale.number) }, stale.state === "unreachable" ? "retry" : "scan again"));
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
    setTimeout(() => !this.around.signal.aborted && this.tell(), stands + 100);
  }

  /** @param {unknown} error */
  trouble(error) {
    if (isOvertaken(error)) return;
    if (error instanceof RpcError && error.fault.code === "no-kernel") {
      this.around.scan.lost = true;
      if (error.fault.type === "Saved") this.say(error.fault.msg);
      else this.say(`${wordsOf(error)} The pictures that were there stay.`, "bad");
    } else this.say(wordsOf(error), "bad");
  }

  /** @param {boolean} slow */
  async tellSlow(slow) {
    if (slow && !this.around.scan.lost) await this.around.polls.now(); // is it the page that does not answer, or a store behind it?
    if (slow)
      this.say(
        this.around.scan.far
          ? this.around.scan.far
          : this.around.model.media
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
