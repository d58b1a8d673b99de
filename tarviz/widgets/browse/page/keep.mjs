// @ts-check
// From found to kept, beside the grid: what would be saved and where to, checks whose findings are tags.

import { fill, focusedBeside, formatBytes, formatCount, h } from "../../host/core.mjs";
import { Doctor } from "./doctor.mjs";

const KINDS = [
  ["tar", "shards (.tar)"],
  ["csv", "a table (.csv)"],
  ["parquet", "a table (.parquet)"],
  ["txt", "keys (.txt)"],
];
const MOST_DOWNLOADED = 512 * 2 ** 20;

export class Keep {
  /** @param {Pick<import("./state.mjs").Page, "rpc" | "records" | "scan" | "marks" | "searches" | "status" | "leave">
   *  & { rail: import("./rail.mjs").Rail, copies: import("./copies.mjs").Copies }} around */
  constructor(around) {
    this.around = around;
    /** @type {any} what the controller says of its job: whether it runs, its last word, whether that is bad */
    this.job = {};
    /** @type {[string, number][]} */
    this.tags = [];
    this.tagVersion = -1;
    /** what the records would be as a tar */
    this.bytes = 0;
    /** what is drawn, so that nothing is drawn anew for nothing */
    this.key = "";
    this.words = h("span", { class: "tvz-save-words" });
    this.kind = h(
      "select",
      { "aria-label": "what is written", onchange: () => (this.name(), this.allow()) },
      ...KINDS.map(([value, text]) => h("option", { value }, text)),
    );
    this.path = h("input", {
      type: "text",
      class: "tvz-save-path tvz-mono",
      spellcheck: false,
      "aria-label": "name of what is written, where the kernel runs",
      title: "where the kernel runs; {} counts shards of at most 1 GB",
      onkeydown: (/** @type {KeyboardEvent} */ e) => e.key === "Enter" && this.write(),
    });
    this.download = h(
      "button",
      {
        title: "save it through this page",
        onclick: () => {
          this.close();
          around.copies.save(this.kind.value);
        },
      },
      "download",
    );
    this.bar = h(
      "div",
      { class: "tvz-saver", role: "group", "aria-label": "save records", hidden: true },
      this.words,
      this.kind,
      this.path,
      h("button", { title: "write it where the kernel runs", onclick: () => this.write() }, "write"),
      this.download,
      h("button", { "aria-label": "close", title: "close", onclick: () => this.close() }, "✕"),
    );
    this.checks = h("div", { class: "tvz-checks" });
    this.doctor = new Doctor(around);
    this.root = h("div", {}, this.checks, this.doctor.root);
  }

  /** Ask how much would be kept. @param {boolean} [clean] all that is neither bad nor twice */
  async open(clean = false) {
    const { rpc, records, marks, status } = this.around;
    this.clean = clean;
    this.bar.hidden = false;
    this.download.hidden = clean;
    this.kind.hidden = clean;
    this.name();
    fill(this.words, "…");
    try {
      if (clean) fill(this.words, "all that is neither bad nor a duplicate");
      else {
        await marks.told;
        const marked = marks.size > 0;
        const { r } = await rpc("preview", { query: records.query, marked });
        fill(this.words, `${formatCount(r.count)} ${marked ? "marked" : "shown"} · ${formatBytes(r.bytes)}`);
        this.bytes = r.bytes;
        this.allow();
      }
    } catch (error) {
      status.trouble(error);
    }
    this.path.focus();
    this.path.select();
  }

  name() {
    const kind = this.clean ? "tar" : this.kind.value;
    this.path.value = this.clean ? "clean-{}.tar" : kind === "tar" ? "subset-{}.tar" : kind === "txt" ? "keys.txt" : `subset.${kind}`;
  }

  /** Shards too large for a page are only written. */
  allow() {
    this.download.disabled = this.kind.value === "tar" && this.bytes > MOST_DOWNLOADED;
  }

  close() {
    if (this.bar.contains(focusedBeside(this.bar))) this.around.leave();
    this.bar.hidden = true;
  }

  async write() {
    const { rpc, records, scan, marks, status, copies } = this.around;
    try {
      await marks.told;
      const { r } = this.clean
        ? await rpc("clean", { path: this.path.value })
        : await rpc("keep", {
            path: this.path.value,
            query: records.query,
            marked: marks.size > 0,
            columns: copies.columns,
          });
      this.close();
      this.take(r);
      scan.wake();
    } catch (error) {
      status.trouble(error);
    }
  }

  /** What the controller says of its job. @param {any} job */
  take(job) {
    const ended = this.job.running && !job.running;
    this.job = job;
    if (ended) this.around.status.say(job.text, job.bad ? "bad" : "");
    this.follow();
  }

  /** Tags and predictions, when columns or tags are others than before. */
  async follow() {
    const { rpc, scan, status } = this.around;
    const { state, version } = scan.columns;
    if (state === "ready" && version !== this.tagVersion && !scan.lost) {
      this.tagVersion = version;
      try {
        this.tags = (await rpc("tags")).r.tags;
        await this.doctor.ask();
      } catch (error) {
        status.trouble(error);
      }
    }
    this.draw();
  }

  draw() {
    const { job } = this;
    const { rpc, records, scan, rail } = this.around;
    if (scan.columns.state === "none" || scan.columns.state === "scanning") return fill(this.checks);
    const most = Math.max(...this.tags.map(([, n]) => n));
    const rows = this.tags.map(([tag, n]) => rail.bar(tag, n, most, `is:${tag}`, `is:${tag}`));
    const key = JSON.stringify([job.running, job.text, this.tags, [...records.picks.keys()]]);
    if (this.key === key) return undefined;
    this.key = key;
    fill(
      this.checks,
      h("h2", {}, "checks"),
      job.running
        ? h(
            "p",
            { class: "tvz-figures" },
            h("span", { class: "tvz-busy" }, job.text),
            " ",
            h("button", { class: "tvz-link", "data-name": "stop job", onclick: () => rpc("stop_job").catch(() => {}) }, "stop"),
          )
        : null,
      ...rows,
      job.running
        ? null
        : h(
            "div",
            { class: "tvz-figures" },
            h(
              "button",
              {
                class: "tvz-link",
                "data-name": "check all",
                title: "decode every field, compare all payloads; what is found is tagged is:bad, is:dup",
                onclick: () => this.check(),
              },
              this.tags.length ? "check again" : "check all",
            ),
            this.tags.some(([tag]) => tag === "bad" || tag === "dup")
              ? h(
                  "button",
                  {
                    class: "tvz-link",
                    "data-name": "write clean",
                    title: "new shards of all records that are neither bad nor a duplicate",
                    onclick: () => this.open(true),
                  },
                  "write clean shards …",
                )
              : null,
          ),
    );
    rail.rove();
    return undefined;
  }

  async check() {
    try {
      this.take((await this.around.rpc("check")).r);
      this.around.scan.wake();
    } catch (error) {
      this.around.status.trouble(error);
    }
  }
}
