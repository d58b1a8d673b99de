// The parts of the shard browser's page over its real controller: what leaves it, the rail, the line below, the pane, the keys.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { BrowserView } from "../../tarviz/widgets/browse/page/browse.mjs";
import { Opening } from "../../tarviz/widgets/browse/page/opening.mjs";
import { RpcError } from "../../tarviz/widgets/host/requests.mjs";
import { click, placed, press, put, test, until, wheel } from "./dom.mjs";
import { opened } from "./pages.mjs";

let page;
let copied;
afterEach(() => {
  page?.end();
  page = undefined;
  history.replaceState(null, "", "/");
});

/** A page at rest, and a clipboard that keeps what it is given. */
async function browsing(name = "browse") {
  copied = [];
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => copied.push(text) }, configurable: true });
  page = await opened(name, BrowserView);
  await until(() => page.all(".tvz-tile:not(.tvz-waiting)").length && page.find(".tvz-pane h2"));
  await until(() => page.view.scan.exact && page.view.facets.settled && !page.view.facets.busy && page.find(".tvz-facet .tvz-figures"));
  page.grid = page.find(".tvz-grid");
  if (page.view.marks.size) press(page.grid, "N");
  await until(() => !page.view.marks.size);
  return page.view;
}
const status = () => page.find(".tvz-status [role=status]").textContent;
const texts = (selector) => page.all(selector).map((one) => one.textContent);
/** Nothing more is drawn by itself from now on: what is handed in stays. A poll under way is waited for. */
const alone = (view) => until(() => !view.polls.polling && (view.polls.polling = true));

test("a key, a record, a field of it and the call are copied", async () => {
  const view = await browsing();
  press(page.grid, "y");
  await until(() => copied.length === 1);
  assert.deepEqual(["set/n000000"], copied);
  await until(() => status() === "copied: set/n000000");
  press(page.grid, "Y");
  await until(() => copied.length === 2);
  assert.match(copied[1], /^[^\n]+\n?[^\n]*$/);
  press(page.grid, "2");
  await until(() => page.find(".tvz-chip[aria-selected=true] b")?.textContent === "cls");
  click(page.button("copy as Python").parentElement.querySelector("button"));
  press(page.grid, "Y");
  await until(() => copied.at(-1).endsWith('\nrecord["cls"]'));
  await until(() => /^copied: .* · record\["cls"\]$/.test(status()) || status().length === "copied: ".length + 160);
  copied.length = 0;
  click(page.find(".tvz-head").querySelector("button[title^='copy the call']"));
  await until(() => copied.length);
  assert.match(copied[0], /browse/);
  assert.deepEqual({}, page.last("call"));
  page.change = (name, answer) =>
    name === "call" ? { ...answer, r: undefined, err: { type: "X", msg: "no", hint: "", code: "E_X" } } : answer;
  await view.copies.spec();
  await until(() => copied.length === 2);
  assert.equal(view.config.python, copied[1]);
});

test("a clipboard that is closed is told, and only what is marked can be compared", async () => {
  const view = await browsing();
  press(page.grid, "c");
  assert.equal("Nothing is marked: Space marks the record.", status());
  press(page.grid, " ");
  await until(() => view.marks.size === 1);
  press(page.grid, "c");
  await until(() => copied.length);
  assert.match(copied[0], /compare/);
  assert.deepEqual({ marked: true }, page.last("call"));
  Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("no")) }, configurable: true });
  document.execCommand = () => false;
  press(page.grid, "y");
  await until(() => status() === "the clipboard is closed to this page");
  document.execCommand = () => true;
  press(page.grid, "y");
  await until(() => /^copied: set/.test(status()));
  press(page.grid, "N");
  await until(() => !view.marks.size);
});

test("what is shown or marked is saved through the page, under the name of the shards", async (t) => {
  const view = await browsing();
  const saved = [];
  t.mock.method(HTMLAnchorElement.prototype, "click", function () {
    saved.push([this.download, this.isConnected]);
  });
  await view.copies.save("");
  assert.equal(undefined, page.last("export"));
  press(page.grid, " ");
  await until(() => view.marks.size === 1);
  view.copies.save("txt");
  assert.equal("gathering the marked …", status());
  await until(() => saved.length === 1);
  assert.deepEqual({ kind: "txt", query: view.records.query, marked: true, columns: null }, page.last("export"));
  assert.match(saved[0][0], /-marked\.txt$/);
  assert.match(status(), /^1 records saved as .*-marked\.txt$/);
  press(page.grid, "N");
  await until(() => !view.marks.size);
  view.table.columns = ["cls"];
  assert.equal(null, view.copies.columns); // the table is not what shows
  view.table.root.hidden = false;
  view.config.title = "a/b/train-0.tar and more";
  put(page.find(".tvz-save"), "csv");
  await until(() => /^60 shown/.test(page.find(".tvz-saver .tvz-save-words").textContent));
  assert.deepEqual([false, false, false], [view.keep.download.hidden, view.keep.kind.hidden, view.keep.download.disabled]);
  click(view.keep.download);
  assert.ok(view.keep.bar.hidden);
  await until(() => saved.length === 2);
  assert.deepEqual(
    ["csv", false, ["cls"]],
    ["kind", "marked", "columns"].map((name) => page.last("export")[name]),
  );
  assert.deepEqual(["train-0-shown.csv", true], saved[1]);
  assert.equal("60 records saved as train-0-shown.csv", status());
  view.config.title = ".tar";
  await view.copies.save("txt");
  assert.equal("records-shown.txt", saved[2][0]);
});

test("shards too large for a page cannot be downloaded as tar", async () => {
  const view = await browsing();
  const bytes = (number) => (page.change = (name, answer) => (name === "preview" ? { ...answer, r: { count: 3, bytes: number } } : answer));
  const disabled = async (kind, number) => {
    bytes(number);
    view.keep.kind.value = kind;
    await view.keep.open();
    return [page.find(".tvz-saver .tvz-save-words").textContent, view.keep.download.disabled];
  };
  assert.deepEqual(["3 shown · 537 MB", false], await disabled("tar", 512 * 2 ** 20));
  assert.deepEqual(["3 shown · 537 MB", true], await disabled("tar", 512 * 2 ** 20 + 1));
  assert.deepEqual(["3 shown · 1.00 GB", false], await disabled("csv", 1e9));
  put(view.keep.kind, "tar");
  assert.ok(view.keep.download.disabled);
  put(view.keep.kind, "txt");
  assert.ok(!view.keep.download.disabled);
  click(view.keep.bar.querySelector("[aria-label=close]"));
  assert.ok(view.keep.bar.hidden);
});

test("all records are checked, what is found is tagged, and clean shards are written", async () => {
  const view = await browsing();
  const link = (name) => page.find(`.tvz-checks [data-name='${name}']`);
  assert.equal("check all", link("check all").textContent);
  assert.equal(null, link("write clean"));
  click(link("check all"));
  await until(() => page.last("check"));
  await until(() => !view.keep.job.running && view.keep.job.text);
  await until(() => link("check all") && !link("stop job") && view.keep.job.text.startsWith("checked"));
  await alone(view);
  view.keep.take({ number: 9, running: true, text: "checking 3 of 60", bad: false });
  assert.deepEqual(["checking 3 of 60", "stop"], [page.find(".tvz-checks .tvz-busy").textContent, link("stop job").textContent]);
  assert.equal(null, link("check all"));
  click(link("stop job"));
  await until(() => page.answered("stop_job"));
  view.keep.tags = [
    ["odd", 4],
    ["dup", 8],
  ];
  view.keep.take({ number: 9, running: false, text: "8 are twice", bad: true });
  assert.equal("8 are twice", status());
  assert.ok(page.find(".tvz-status .tvz-bad"));
  assert.deepEqual(["odd4", "dup8"], texts(".tvz-checks .tvz-bar"));
  assert.deepEqual(
    ["0.5", "1"],
    page.all(".tvz-checks .tvz-bar").map((bar) => bar.style.getPropertyValue("--share")),
  );
  assert.equal("check again", link("check all").textContent);
  click(link("write clean"));
  await until(() => /neither bad nor a duplicate/.test(view.keep.words.textContent));
  assert.deepEqual(
    [true, true, false, "clean-{}.tar"],
    [view.keep.download.hidden, view.keep.kind.hidden, view.keep.bar.hidden, view.keep.path.value],
  );
  view.keep.tags = [["odd", 4]];
  view.keep.draw();
  assert.equal(null, link("write clean"));
  view.scan.columns = { ...view.scan.columns, state: "scanning" };
  view.keep.draw();
  assert.equal("", view.keep.checks.textContent);
});

test("other shards are opened by their path, or from those opened last", async () => {
  const [asked, told] = [[], []];
  const answers = { recent: { recent: ["a.tar", "s3://b/c.tar"] }, open: { address: "http://localhost/#opened" } };
  const rpc = async (name, msg) => (asked.push([name, msg]), answers[name] ? { r: answers[name] } : Promise.reject(new Error(name)));
  const { box, path, list, recent } = new Opening({ rpc, status: { trouble: (error) => told.push(error.message) } }, false);
  const place = placed(box);
  assert.ok(!box.open);
  box.dispatchEvent(new Event("toggle"));
  assert.deepEqual([], asked, "folded, it asks nothing");
  box.open = true;
  await until(() => list.children.length);
  assert.deepEqual([["recent", undefined]], asked.splice(0, 9));
  assert.equal(path, document.activeElement);
  assert.deepEqual(
    ["a.tar", "s3://b/c.tar"],
    [...list.querySelectorAll("button")].map((one) => one.textContent),
  );
  assert.deepEqual(
    ["a.tar", "s3://b/c.tar"],
    [...recent.children].map((one) => one.value),
  );
  assert.equal(path.getAttribute("list"), recent.id);
  const gone = [];
  const listen = (event) => (gone.push(event.detail), event.preventDefault());
  window.addEventListener("tarviz-open", listen);
  click(list.querySelectorAll("button")[1]);
  path.value = "d.tar";
  press(path, "x");
  press(path, "Enter");
  click([...box.querySelectorAll("button")].find((one) => one.textContent === "open"));
  await until(() => gone.length === 3);
  assert.deepEqual(
    ["s3://b/c.tar", "d.tar", "d.tar"],
    asked.splice(0, 9).map(([name, { url }]) => (assert.equal("open", name), url)),
  );
  assert.equal(answers.open.address, gone[0]);
  assert.equal("", location.hash);
  window.removeEventListener("tarviz-open", listen);
  click(list.querySelector("button"));
  await until(() => location.hash === "#opened");
  delete answers.open;
  delete answers.recent;
  click(list.querySelector("button"));
  box.dispatchEvent(new Event("toggle"));
  await until(() => told.length === 2);
  assert.deepEqual(["open", "recent"], told);
  assert.ok(!press(path, "x") && box.open);
  press(path, "Escape");
  assert.ok(!box.open);
  assert.equal("open …", document.activeElement.textContent);
  assert.ok(new Opening({ rpc }, true).box.open);
  place.remove();
});

test("the line below says where the cursor is, what goes on, and offers what helps", async () => {
  const view = await browsing();
  await alone(view);
  const tell = (change) => {
    const told = { pages: 1, searching: "", state: "", words: [], exact: true, done: true, ...change };
    for (const [name, value] of Object.entries(told)) (name in view.records ? view.records : view.scan)[name] = value;
    view.status.message = undefined;
    view.status.tell();
    return [view.status.text.textContent, view.status.text.className, texts(".tvz-status button")];
  };
  const [first, second, third] = view.scan.shards;
  const shard = (more) => ({ ...first, ...more });
  assert.deepEqual(["#0 of 60", "tvz-cut", []], tell({}));
  assert.deepEqual(["#0 of 60 · reading", "tvz-cut", []], tell({ exact: false, state: "reading" }));
  assert.deepEqual(["#0 of 60 · searched for the word red", "tvz-cut", []], tell({ words: ["red"] }));
  assert.deepEqual(
    ["#0 of 60 · searched for the words red, disc · 2 pages look at these shards", "tvz-cut", []],
    tell({ words: ["red", "disc"], pages: 2 }),
  );
  view.marks.rows.add(0);
  assert.equal("#0 of 60 · 1 marked", tell({})[0]);
  assert.equal("#0 of 60 · 1 marked, for all pages · 2 pages look at these shards", tell({ pages: 2 })[0]);
  view.marks.rows.clear();
  assert.deepEqual(["#0 of 60 · looked at 9", "tvz-cut tvz-busy", ["Stop"]], tell({ searching: "looked at 9", done: false }));
  click(page.find(".tvz-status button"));
  await until(() => page.answered("stop"));
  assert.deepEqual(["#0 of 60", "tvz-cut tvz-busy", []], tell({ exact: false, shards: [shard({ state: "scanning" }), second, third] }));
  assert.deepEqual(["scan all"], tell({ shards: [shard({ state: "paused" }), second, third] })[2]);
  click(page.find(".tvz-status button"));
  await until(() => page.answered("go_on"));
  assert.deepEqual(["retry"], tell({ shards: [shard({ state: "unreachable" }), second, third] })[2]);
  assert.deepEqual(["scan again"], tell({ shards: [shard({ state: "missing" }), second, third] })[2]);
  tell({ shards: [shard({}), second, third] });
  assert.deepEqual(["scan again"], tell({ shards: [shard({ stale: true, number: 1 }), second, third] })[2]);
  click(page.find(".tvz-status button"));
  await until(() => page.answered("again"));
  assert.equal(1, page.last("again").shard);
  tell({ count: 0, selected: 4, wish: { ...view.records.wish, where: "x", objects: true } });
  assert.equal("0 boxes shown", view.status.text.textContent);
  tell({ count: 12_345, selected: -1 });
  assert.equal("12,345 boxes shown", view.status.text.textContent);
});

test("what is said stands for a while, bad news longer, a button does what it says", async (t) => {
  const view = await browsing();
  await alone(view);
  const { status: line } = view;
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const usual = /^#0 of 60/;
  const stands = () =>
    [4000, 8000, 15_000].filter((time) => {
      now = 1000 + time - 1;
      line.tell();
      const before = !usual.test(line.text.textContent);
      return before;
    }).length;
  for (const [count, ...saying] of [
    [1, "so"],
    [2, "so", "", "act", () => (now = -1)],
    [3, "so", "bad"],
  ]) {
    now = 1000;
    line.message = undefined;
    line.say(...saying);
    assert.deepEqual(
      ["so", "so", saying[1] === "bad" ? "tvz-cut tvz-bad" : "tvz-cut"],
      [line.text.textContent, line.text.title, line.text.className],
    );
    if (count === 2) assert.deepEqual(["act"], texts(".tvz-status button"));
    assert.equal(count, stands());
  }
  now = 1000;
  line.say("again", "", "act", () => (now = -1));
  click(page.find(".tvz-status button"));
  assert.equal(-1, now);
  now = 1000;
  const later = t.mock.method(globalThis, "setTimeout", () => {});
  line.say("so");
  later.mock.restore();
  const [act, wait] = later.mock.calls[0].arguments;
  now += wait;
  act();
  assert.match(status(), usual, "then it goes by itself");
});

test("trouble is told with its hint; a lost server is bad news, a saved picture is not; overtaken requests are none", async () => {
  const view = await browsing();
  await alone(view);
  const told = (fault) => {
    view.scan.lost = false;
    view.status.text.textContent = "";
    view.status.trouble(fault instanceof Error ? fault : new RpcError({ type: "X", code: "E_X", msg: "no", hint: "", ...fault }));
    return [view.status.text.textContent, view.status.text.className.includes("bad"), view.scan.lost];
  };
  assert.deepEqual(["no", true, false], told({}));
  assert.deepEqual(["no try so", true, false], told({ hint: "try so" }));
  assert.deepEqual(["Error: odd", true, false], told(new Error("odd")));
  assert.deepEqual(["no try The pictures that were there stay.", true, true], told({ code: "no-kernel", hint: "try" }));
  assert.deepEqual(["no", false, true], told({ code: "no-kernel", type: "Saved", hint: "try" }));
  assert.deepEqual(["", false, false], told({ code: "overtaken" }));
  view.scan.lost = false;
});

test("an answer that takes long is told, and taken back when it comes", async () => {
  const view = await browsing();
  await alone(view);
  view.scan.far = "s3://b: waits";
  const { polls } = view;
  let looks = 0;
  view.status.around.polls = { now: async () => (looks += 1) };
  await view.status.tellSlow(true);
  assert.equal("s3://b: waits", status());
  assert.equal(1, looks, "it may be a store that does not answer: the page is asked");
  view.scan.lost = true;
  await view.status.tellSlow(true);
  assert.equal(1, looks);
  view.scan.lost = false;
  view.status.around.polls = polls;
  await view.status.tellSlow(false);
  assert.match(status(), /^#0 of 60/);
  view.scan.far = "";
  await view.status.tellSlow(true);
  assert.match(status(), /^The server of this page has not answered yet/);
  assert.ok(page.find(".tvz-status .tvz-bad"));
  const { media } = view.model;
  view.model.media = undefined;
  await view.status.tellSlow(true);
  assert.match(status(), /^No answer from the kernel/);
  view.model.media = media;
});

test("the shards of the rail: their names, how many records, what is wrong with them", async () => {
  const view = await browsing();
  await alone(view);
  const rows = () =>
    page
      .all(".tvz-shard")
      .map((row) => [row.textContent, row.style.top, row.style.getPropertyValue("--share"), row.getAttribute("aria-selected")]);
  assert.deepEqual(
    [
      ["all shards60", "0px", "", "true"],
      ["s-0.tar20", "24px", "1", "false"],
      ["s-1.tar20", "48px", "1", "false"],
      ["s-2.tar20", "72px", "1", "false"],
    ],
    rows(),
  );
  assert.deepEqual(["96px", "98px", 0], [view.rail.area.style.height, view.rail.list.style.maxHeight, view.rail.list.tabIndex]);
  assert.deepEqual(["all shards", "s-0.tar", "s-1.tar", "s-2.tar"], texts(".tvz-shard-select option"));
  const shards = view.scan.shards;
  const title = (more) => {
    view.scan.shards = [{ ...shards[0], ...more }, ...shards.slice(1)];
    view.rail.draw();
    return page.all(".tvz-shard")[1];
  };
  assert.match(
    title({ url: "u", size: 2000, count: 1234, compression: "gzip", trouble: "late", stale: true }).title,
    /^u\n2.00 kB\n1,234 records\ndone\ngzip\nlate\nchanged since the scan$/,
  );
  assert.match(title({ url: "u", size: null, compression: "", trouble: "", stale: false }).title, /^u\n20 records\ndone$/);
  const scanned = title({ state: "scanning", share: 0.25, count: 7 });
  assert.deepEqual(["s-0.tar≥ 7", "0.25"], [scanned.textContent, scanned.style.getPropertyValue("--share")]);
  assert.equal("0.35", title({ state: "scanning", share: null, count: 7 }).style.getPropertyValue("--share"));
  for (const state of ["done", "damaged", "missing", "unreachable"]) assert.equal("s-0.tar7", title({ state, count: 7 }).textContent);
  for (const [state, tone] of [
    ["done", "tvz-warn"],
    ["damaged", "tvz-bad"],
    ["missing", "tvz-bad"],
    ["unreachable", "tvz-bad"],
  ]) {
    const sign = title({ state, faults: 3 }).querySelector("[aria-label='3 findings']");
    assert.deepEqual([tone, "⚠"], [sign.className, sign.textContent]);
  }
  view.scan.shards = shards.slice(0, 1);
  view.rail.draw();
  view.tools.offerShards();
  assert.deepEqual(
    [["s-0.tar20"], true, -1, "24px"],
    [texts(".tvz-shard"), view.tools.shard.hidden, view.rail.list.tabIndex, view.rail.area.style.height],
  );
  view.scan.shards = Array.from({ length: 600 }, (_, number) => ({ ...shards[0], number, name: `s-${number}` }));
  view.rail.draw();
  view.tools.offerShards();
  assert.deepEqual(
    [501, "14424px", "218px"],
    [view.tools.shard.options.length, view.rail.area.style.height, view.rail.list.style.maxHeight],
  );
  assert.equal(27, page.all(".tvz-shard").length, "25 in view and two more below");
  view.scan.shards = shards;
});

test("findings, fields and sets of fields in the rail, few at first", async () => {
  const view = await browsing();
  await alone(view);
  const fault = { code: "E_CRC", shard: 0, offset: 1234, key: "a/b", message: "bad sum" };
  view.scan.summary = {
    faults: [fault, { ...fault, code: "W_ODD", key: "", shard: 9 }, { ...fault, offset: null, key: "" }, fault, fault],
    fields: Array.from({ length: 9 }, (_, at) => [`f${at}`, 10 - at]),
    sets: [
      [["f0", "f1"], 6],
      [["f0"], 5],
    ],
  };
  const more = () => [...view.rail.scanned.querySelectorAll("button.tvz-link")].filter((one) => / more$/.test(one.textContent));
  view.rail.drawMore();
  assert.deepEqual(
    ["findings", "fields", "records that have …"],
    [...view.rail.scanned.querySelectorAll("h2")].map((one) => one.textContent),
  );
  assert.deepEqual(["E_CRC s-0.tarbyte 1,234bad sumb", "W_ODD  byte 1,234bad sum", "E_CRC s-0.tarbad sum"], texts(".tvz-finding"));
  assert.deepEqual(
    ["tvz-bad", "tvz-warn", "tvz-bad"],
    page.all(".tvz-finding strong").map((one) => one.className),
  );
  assert.deepEqual(
    ["2 more", "2 more"],
    more().map((one) => one.textContent),
  );
  assert.equal("f0 f1", view.scan.common);
  const bars = () => [...view.rail.scanned.querySelectorAll(".tvz-bar")];
  assert.deepEqual(
    [7, "f010", "1", "0.4"],
    [bars().length, bars()[0].textContent, bars()[0].style.getPropertyValue("--share"), bars()[6].style.getPropertyValue("--share")],
  );
  click(more()[1]);
  assert.equal(9, bars().length);
  click(more()[0]);
  assert.deepEqual([5, 0], [texts(".tvz-finding").length, more().length]);
  assert.deepEqual(["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "records"], texts(".tvz-matrix th"));
  assert.deepEqual(["●●·······6", "●········5"], texts(".tvz-matrix tbody tr"));
  assert.deepEqual(
    ["has f0", "no f1"],
    [...page.all(".tvz-matrix tbody tr")[1].children].slice(0, 2).map((one) => one.getAttribute("aria-label")),
  );
  view.scan.summary.sets = [
    [["f0"], 4],
    [["f1"], 5],
  ];
  view.rail.drawMore();
  assert.equal("", view.scan.common, "less than half have it");
  view.scan.summary = {
    ...view.scan.summary,
    faults: view.scan.summary.faults.slice(0, 3),
    fields: view.scan.summary.fields.slice(0, 7),
    sets: [[["f0"], 4]],
  };
  view.rail.allFaults = view.rail.allFields = false;
  view.rail.drawMore();
  assert.deepEqual([0, "", null], [more().length, view.scan.common, page.find(".tvz-matrix")]);
  const [byte, key] = page.find(".tvz-finding").querySelectorAll("button");
  page.change = (name, answer) => (name === "find" ? { ...answer, err: undefined, r: { position: 4, row: 4 } } : answer);
  click(byte);
  await until(() => page.last("find")?.text === "a/b");
  assert.equal("bytes", view.pane.tab);
  await until(() => view.records.at === 4);
  click(key);
  await until(() => page.asked.filter(({ name }) => name === "find").length === 2);
});

test("below the shards the rail is one Tab stop: arrows, Home and End walk it", async () => {
  const view = await browsing();
  await alone(view);
  const stops = () => [...view.rail.more.querySelectorAll("button, [tabindex]")];
  const reached = () => stops().filter((one) => one.tabIndex === 0);
  assert.equal(1, reached().length);
  stops()[0].focus();
  const walk = (key) => {
    assert.equal(key !== "q", press(document.activeElement, key));
    assert.deepEqual([document.activeElement], reached());
    return stops().indexOf(document.activeElement);
  };
  const last = stops().length - 1;
  assert.ok(last > 8);
  assert.deepEqual(
    [1, 2, 1, 0, 0, last, last, 0, 0],
    ["ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp", "End", "ArrowDown", "Home", "q"].map(walk),
  );
  walk("End");
  const name = document.activeElement.dataset.name;
  view.rail.drawMore();
  view.rail.rove();
  assert.equal(name, reached()[0].dataset.name, "it stays the stop when the rail is drawn anew");
  view.rail.list.focus();
  assert.ok(press(view.rail.list, "ArrowDown"));
  await until(() => page.last("search")?.shard === 0);
  press(view.rail.list, "ArrowUp");
  await until(() => page.last("search").shard === null);
  view.scan.shards = view.scan.shards.slice(0, 2);
  for (const shard of [0, 1, null]) {
    press(view.rail.list, "ArrowDown");
    await until(() => page.last("search").shard === shard);
  }
  view.scan.shards = view.scan.shards.slice(0, 1);
  view.searches.stepShard(1);
  assert.equal(null, view.searches.next.shard, "one shard is all there are");
});

test("keys: shuffled, and anew; boxes; the filter; labels hidden while Shift is held", async () => {
  const view = await browsing();
  press(page.grid, "r");
  await until(() => page.last("search")?.sort === "random" && !view.searches.running);
  const { seed } = page.last("search");
  press(page.grid, "r");
  await until(() => page.last("search").seed === seed + 1 && !view.searches.running);
  press(page.grid, "o");
  assert.deepEqual([false, "boxes and masks are hidden"], [view.layers.shown, status()]);
  press(page.grid, "o");
  assert.deepEqual([true, "boxes and masks are shown"], [view.layers.shown, status()]);
  assert.ok(press(page.grid, "/"));
  assert.equal(page.find(".tvz-filter"), document.activeElement);
  assert.ok(!press(page.find(".tvz-filter"), "t") && !view.table.shown, "who types presses no keys");
  press(page.find(".tvz-filter"), "Escape");
  assert.equal(page.grid, document.activeElement);
  assert.ok(!press(page.grid, "Shift"));
  assert.ok(page.root.classList.contains("tvz-bare"));
  page.grid.dispatchEvent(new KeyboardEvent("keyup", { key: "Shift", bubbles: true }));
  assert.ok(!page.root.classList.contains("tvz-bare"));
  press(page.grid, "Shift");
  page.grid.dispatchEvent(new Event("focusout", { bubbles: true }));
  assert.ok(!page.root.classList.contains("tvz-bare"));
  press(page.grid, "a", { metaKey: true });
  await until(() => view.marks.size === 60);
  press(page.grid, "z", { metaKey: true });
  await until(() => !view.marks.size);
  press(page.grid, "Z", { ctrlKey: true });
  await until(() => view.marks.size === 60);
  press(page.grid, "N");
  await until(() => !view.marks.size);
  assert.ok(!press(page.button("table"), "Enter"), "a button's own key");
  press(page.grid, "0");
  assert.equal("", view.pane.field);
  press(page.grid, "9");
  assert.equal("", view.pane.field, "there is no ninth field");
});

test("keys go to what is open first: Escape closes the sheet, menus, the rail, the picture, in this order", async () => {
  const view = await browsing();
  press(page.grid, "Enter");
  view.showRail(true);
  page.find(".tvz-views").open = true;
  view.sql.toggle();
  press(page.grid, "?");
  const states = () => [
    page.find(".tvz-sheet") !== null,
    page.find(".tvz-views").open,
    view.sql.shown,
    page.root.classList.contains("tvz-railed"),
    page.root.classList.contains("tvz-zoomed"),
  ];
  const after = Array.from({ length: 5 }, () => (press(page.root, "Escape"), states().filter(Boolean).length));
  assert.deepEqual([4, 3, 2, 1, 0], after);
  view.showRail(true);
  assert.equal("true", view.tools.rail.getAttribute("aria-expanded"));
  click(view.tools.rail);
  assert.equal("false", view.tools.rail.getAttribute("aria-expanded"));
  press(page.grid, "Enter");
  await until(() => page.find(".tvz-pane .tvz-frame")?.view.picture);
  const { view: picture } = page.find(".tvz-pane .tvz-frame");
  const { scale } = picture.shown();
  press(page.grid, "-");
  assert.ok(Math.abs(picture.scale - scale / 1.5) < 1e-9);
  press(page.grid, "+");
  assert.ok(Math.abs(picture.scale - scale) < 1e-9);
});

test("the pane walks the records, tells each field, sums its bytes, saves it", async (t) => {
  const view = await browsing();
  const words = () => page.find(".tvz-walk span").textContent;
  assert.equal("1 of 60", words());
  const [before, next, back] = page.all(".tvz-walk button");
  click(before);
  assert.equal(0, view.records.at);
  view.select(60);
  assert.equal(0, view.records.at, "there is no record behind the last");
  click(next);
  await until(() => words() === "2 of 60");
  click(page.find("[aria-label='record before (←)']"));
  await until(() => words() === "1 of 60");
  view.zoom(true);
  click(page.find("[aria-label^='back to the grid']"));
  assert.ok(!page.root.classList.contains("tvz-zoomed") && back);
  const { record } = view.pane;
  const of = (count) => ({
    ...record,
    fields: Array.from({ length: count }, (_, at) => ({ ...record.fields[0], ext: at ? `f${at}` : "png" })),
  });
  const chipsOf = (count) => (view.pane.fill(of(count)), page.all(".tvz-chips .tvz-chip"));
  assert.deepEqual(
    [1, 3, 11],
    [1, 2, 10].map((count) => chipsOf(count).length),
    "one field is no card",
  );
  assert.deepEqual(
    [true, false],
    chipsOf(10)
      .slice(-2)
      .map(({ title }) => / \(key 9\)$/.test(title)),
  );
  assert.match(chipsOf(10).at(-1).title, /byte 512$/);
  view.pane.fill(record);
  const chips = page.all(".tvz-chips .tvz-chip");
  assert.deepEqual(
    ["true", "false"],
    chips.slice(0, 2).map((chip) => chip.getAttribute("aria-selected")),
  );
  assert.match(chips[1].title, /^image, .* byte 512 \(key 1\)$/);
  assert.match(page.find(".tvz-pane-head div").textContent, /^#0 of s-0\.tar$/);
  click(chips[2]);
  await until(() => page.find(".tvz-chip[aria-selected=true] b").textContent === "cls");
  click(page.button("Bytes"));
  await until(() => page.button("SHA-256"));
  assert.match(page.find(".tvz-body .tvz-row").textContent, /^1 bytes from byte [\d,]+ \(0x[0-9a-f]+\) SHA-256$/);
  click(page.button("SHA-256"));
  await until(() => /[0-9a-f]{64}/.test(page.find(".tvz-body .tvz-row").textContent));
  const saved = [];
  t.mock.method(HTMLAnchorElement.prototype, "click", function () {
    saved.push(this.download);
  });
  click(page.button("save .cls"));
  await until(() => saved.length);
  assert.deepEqual(["n000000.cls"], saved);
  assert.equal("reading .cls: 100 %", status());
  click(page.find(".tvz-pane-foot button[title='Enter']"));
  assert.ok(page.root.classList.contains("tvz-zoomed"));
  page.change = (name, answer) =>
    name === "header" ? { ...answer, r: undefined, err: { type: "X", msg: "no header", hint: "", code: "E_HEADER" } } : answer;
  click(page.button("Tar header"));
  await until(() => page.find(".tvz-body [role=alert]")?.textContent === "E_HEADER: no header");
});

test("a record that cannot be read says why; without a server its thumbnail stays", async () => {
  const view = await browsing();
  const fail = (code) =>
    (page.change = (name, answer) =>
      name === "record" ? { ...answer, r: undefined, err: { type: "X", msg: "cut short", hint: "scan again", code } } : answer);
  fail("E_CUT");
  view.select(1);
  await until(() => page.find(".tvz-pane [role=alert]")?.textContent === "cut short scan again");
  fail("no-kernel");
  view.select(2);
  await until(() => page.find(".tvz-pane .tvz-saved"));
  assert.equal("set/n000002", page.find(".tvz-pane h2").textContent);
  assert.match(page.find(".tvz-pane").textContent, /No kernel: only the saved thumbnail can be shown\.fields: png, cls, json$/);
  view.scan.lost = false;
});

test("nothing found says why, what could be asked for, and shows all again", async () => {
  const view = await browsing();
  put(page.find(".tvz-filter"), "cls = 7 and json.w > 500");
  press(page.find(".tvz-filter"), "Enter");
  await until(() => page.find(".tvz-names"));
  const rows = page.all(".tvz-why tr").map((row) => [row.className, ...[...row.children].map((cell) => cell.textContent)]);
  assert.equal(2, rows.length);
  assert.deepEqual(["tvz-bad", "cls = 7", "fits none"], rows[0].slice(0, 3));
  assert.deepEqual(["", "json.w > 500", ""], rows[1].slice(0, 3));
  assert.match(rows[1][3], /^alone 8/);
  assert.match(page.find(".tvz-empty").textContent, /^No record fits\. show all/);
  assert.match(page.find(".tvz-names").textContent, /^These records have: .*cls/);
  assert.equal("region", page.grid.getAttribute("role"));
  click(page.button("show all"));
  await until(() => view.records.count === 60 && page.find(".tvz-empty").hidden);
  assert.equal("listbox", page.grid.getAttribute("role"));
});

test("what cannot be found is told, what is picked is taken away at once", async () => {
  const view = await browsing();
  await view.searches.goTo("  ");
  assert.equal(undefined, page.last("find"));
  await view.searches.goTo("nowhere");
  assert.ok(view.tools.go.hidden);
  assert.equal("No record 'nowhere' among 60.", status());
  page.change = (name, answer) => (name === "find" ? { ...answer, err: undefined, r: { position: null } } : answer);
  await view.searches.goTo("far");
  assert.equal("It is known, but not shown yet: the shards before it are still being scanned.", status());
  assert.equal(undefined, page.last("search"), "nothing was filtered, so nothing is let go");
  await view.searches.startAt("far", 3);
  assert.equal("far is not among the records shown.", status());
  assert.deepEqual({ text: "far", at: 3 }, page.last("find"));
  page.change = (_, answer) => answer;
  view.searches.pick("a", "cls = 1", "ones");
  await until(() => texts(".tvz-pick").length === 1 && !view.searches.running);
  assert.equal(null, page.find(".tvz-picks .tvz-link"));
  view.searches.pick("b", "json.w > 100", "wide");
  await until(() => texts(".tvz-pick").length === 2 && !view.searches.running);
  assert.deepEqual(["ones ✕", "wide ✕"], texts(".tvz-pick"));
  assert.equal("take away the filter ones", page.find(".tvz-pick").getAttribute("aria-label"));
  click(page.button("all away"));
  await until(() => !texts(".tvz-pick").length && view.records.count === 60);
  assert.ok(page.find(".tvz-picks").hidden);
  view.searches.pick("a", "cls = 1", "ones");
  view.searches.pick("a", "cls = 1", "ones");
  await until(() => !view.searches.running && !view.records.picks.size);
  view.searches.pick("b", "json.w > 100", "wide");
  await until(() => texts(".tvz-pick").length === 1 && !view.searches.running);
  const steps = view.history.done.length;
  page.change = (name, answer) => (name === "find" ? { ...answer, err: undefined, r: { position: null } } : answer);
  await view.searches.goTo("far");
  assert.deepEqual([[], steps], [texts(".tvz-pick"), view.history.done.length], "a filter is let go for a key, and that is no step");
  page.change = (_, answer) => answer;
});

test("names, paths and filters are not spell-checked; the sheet of keys begins at its beginning", async (t) => {
  await browsing();
  const boxes = page.all(".tvz-tools input, .tvz-saver input");
  assert.equal(6, boxes.length);
  assert.deepEqual(
    [],
    boxes.filter((box) => box.spellcheck !== false).map((box) => box.className),
  );
  const focused = t.mock.method(HTMLElement.prototype, "focus");
  press(page.grid, "?");
  assert.deepEqual([{ preventScroll: true }], focused.mock.calls.at(-1).arguments);
});

test("a search that the controller forgot is asked again, and is no step of the reader's", async () => {
  const view = await browsing();
  const shown = (view.searches.restoring = {});
  view.searches.running = 1;
  view.searches.renew();
  assert.equal(undefined, page.last("search"), "one is under way");
  view.searches.running = 0;
  view.searches.renew();
  assert.equal(shown, view.searches.restoring);
  await until(() => page.answered("search") && !view.searches.running);
});

test("a page says what it shows to whoever saves it, and keeps Back for steps", async () => {
  const view = await browsing();
  const states = [];
  const { send } = view.model;
  view.model.send = (content) => (content.k === "tvz:state" && states.push(content.state), send(content));
  view.places.remember();
  const [{ selected, px, image, shown }] = states;
  assert.deepEqual(
    [0, 160, "", "order", "", false, null, "set/n000000", 0],
    [selected, px, image, shown.sort, shown.view, shown.large, shown.label, shown.row, shown.at],
  );
  view.records.selected = -1;
  view.rows.items.get(0).key = "k".repeat(300);
  view.places.remember();
  assert.deepEqual([null, "#0"], [states[1].selected, states[1].shown.row]);
  view.scan.lost = true;
  view.places.remember();
  assert.equal(2, states.length);
  view.scan.lost = false;
  const { length } = history;
  view.places.remember();
  assert.equal(length, history.length);
});

test("a page that has just opened can be saved before anything is answered, and asks for its record once", async () => {
  const { length } = history;
  page = await opened("browse", BrowserView);
  const states = [];
  const { send } = page.view.model;
  page.view.model.send = (content) => (content.k === "tvz:state" && states.push(content.state), send(content));
  assert.ok(!page.answered("poll"));
  assert.equal(page.find(".tvz-grid"), document.activeElement, "the keys of its own page are its own");
  page.view.places.remember();
  assert.equal(1, states.length);
  await until(() => page.find(".tvz-pane h2") && page.view.calm);
  assert.equal(1, page.asked.filter(({ name }) => name === "record").length, "the record is asked for once");
  page.view.places.remember();
  assert.equal(length, history.length, "Back leads to what was before the page");
  let fetched = 0;
  page.view.pane.open = () => (fetched += 1);
  page.view.zoom(true);
  page.view.zoom(false);
  assert.equal(0, fetched, "enlarged, it is there");
  page.view.records.selected = -1;
  page.view.zoom(true);
  assert.equal(1, fetched, "one that was not chosen yet is, when it is enlarged");
});

test("rows and cells are asked for twice at once at most, and of a server that is lost not at all", async () => {
  const view = await browsing();
  press(page.grid, "t");
  await until(() => page.find(".tvz-trow [role=gridcell]") && !view.table.asked.size && !view.rows.asked.size);
  const all = () => ((view.rows.fetch(), view.table.fetch(80 * at, 80 * ++at)), [view.rows.asked.size, view.table.asked.size]);
  let at = 10;
  view.scan.lost = true;
  view.rows.clear();
  assert.deepEqual([0, 0], all());
  view.scan.lost = false;
  view.table.asked.clear();
  assert.deepEqual(
    [1, 2, 2],
    [all(), all(), all()].map(([, cells]) => cells),
  );
});

test("cells far from the view are let go where there are more than 4,000", async () => {
  const view = await browsing();
  view.table.draw = () => {};
  for (let at = 0; at < 4100; at += 1) if (at !== 2005) view.table.items.set(at, {});
  await view.table.fetch(2005, 2006);
  const kept = [...view.table.items.keys()];
  assert.deepEqual([1605, 2406], [kept[0], kept.at(-1)]);
});

test("menus close when something else is pressed; files are looked at when the keys come back after a while", async () => {
  const view = await browsing();
  const menu = page.find(".tvz-views");
  const open = (pressed) => ((menu.open = true), click(pressed, {}, "pointerdown"), menu.open);
  assert.deepEqual([true, false], [menu.querySelector("input"), page.grid].map(open));
  await alone(view);
  const looked = (ago) => {
    [view.polls.looked, view.polls.polled] = [false, performance.now() - ago];
    page.grid.dispatchEvent(new Event("focusin", { bubbles: true }));
    return view.polls.looked;
  };
  assert.deepEqual([false, true], [0, 4001].map(looked));
  view.polls.looked = false;
});

test("the records in view are there when one has come, none is on its way, or there is none", async () => {
  const view = await browsing();
  await alone(view);
  const { rows, records, table } = view;
  const calm = (items, count, done, shown = false) => {
    rows.items = new Map(items.map((at) => [at, {}]));
    [records.count, records.done, table.root.hidden] = [count, done, !shown];
    return view.calm;
  };
  assert.deepEqual(
    [false, true, false, true, false, true],
    [calm([], 3, true), calm([0], 3, false), calm([], 0, false), calm([], 0, true), calm([], 1, true), calm([], 3, false, true)],
  );
  rows.asked.add("0-36");
  assert.ok(!calm([0], 3, true));
});

test("a page on few pixels is narrow, and its parts know", async () => {
  const view = await browsing();
  const at = (width, middle = width) => {
    for (const [element, size] of [
      [page.root, width],
      [view.middle, middle],
    ])
      Object.defineProperty(element, "clientWidth", { value: size, configurable: true });
    view.resized();
    return ["narrow", "medium", "map-beside"].map((name) => page.root.classList.contains(`tvz-${name}`));
  };
  assert.deepEqual([true, false, false], at(559));
  assert.deepEqual([false, true, false], at(560));
  assert.deepEqual([false, true, true], at(899, 821));
  assert.deepEqual([false, false, false], at(900, 820));
  const size = { value: 559, configurable: true };
  Object.defineProperty(page.root, "clientWidth", size);
  assert.ok(view.narrow(), "it knows before it has looked at its size");
  Object.defineProperty(page.root, "clientWidth", { ...size, value: 0 });
  assert.ok(!view.narrow(), "a page that is not shown has no size");
});

test("rows of the table: numbers to the right and short, texts on one line, the marked and the chosen told", async () => {
  const view = await browsing();
  page.change = (name, answer) =>
    name === "cells"
      ? { ...answer, r: { ...answer.r, rows: answer.r.rows.map((row) => ({ ...row, cells: [1234567, 0.123456789, null, "a\nb"] })) } }
      : answer;
  press(page.grid, "t");
  await until(() => page.find("[data-position='1'] .tvz-number"));
  view.table.columns = ["a", "b", "url", "d"];
  view.table.draw();
  const row = (position) => page.find(`.tvz-trow[data-position='${position}']`);
  await until(() => row(1)?.children.length === 6 && row(1).lastChild.textContent);
  assert.deepEqual(
    ["", "set/n000001", "1,234,567", "0.123457", "", "a ⏎ b"],
    [...row(1).children].map((cell) => cell.textContent),
  );
  assert.deepEqual(
    ["ltr", "ltr", "auto", "auto"],
    [...row(1).children].slice(2).map((cell) => cell.dir),
  );
  assert.deepEqual(
    ["", "", "", "a\nb"],
    [...row(1).children].slice(2).map((cell) => cell.title),
  );
  assert.deepEqual(
    ["72px", "3", "false", "true"],
    [row(1).style.top, row(1).getAttribute("aria-rowindex"), row(1).getAttribute("aria-selected"), row(0).getAttribute("aria-selected")],
  );
  assert.equal("40px 170px 116px 116px 280px 116px", row(1).style.gridTemplateColumns);
  const { root } = view.table;
  assert.deepEqual(
    ["61", "6", row(0).id],
    [root.getAttribute("aria-rowcount"), root.getAttribute("aria-colcount"), root.getAttribute("aria-activedescendant")],
  );
  assert.equal(25, page.all(".tvz-trow").length, "17 in view and eight more");
  press(root, "j");
  await until(() => row(1).getAttribute("aria-selected") === "true");
  press(root, " ");
  await until(() => row(1).classList.contains("tvz-marked") && !row(0).classList.contains("tvz-marked"));
  press(root, "N");
  await until(() => !view.marks.size);
  press(root, "PageDown");
  assert.equal(16, view.records.at);
  click(row(3).lastChild);
  assert.equal(3, view.records.at);
  click(row(3), {}, "dblclick");
  assert.ok(page.root.classList.contains("tvz-zoomed"));
  const boxes = () => page.all(".tvz-columns-list input").filter((box) => box.checked).length;
  assert.equal(4, boxes());
});
