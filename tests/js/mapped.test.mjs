// The map beside the grid over its real controller: what it is of, what colours mean, records inside a line.
import assert from "node:assert/strict";
import { afterEach } from "node:test";

import { BrowserView } from "../../tarviz/widgets/browse/page/browse.mjs";
import { click, press, put, test, until } from "./dom.mjs";
import { golden } from "./golden.mjs";
import { opened } from "./pages.mjs";

let page;
afterEach(() => {
  page?.end();
  history.replaceState(null, "", "/");
});

const choose = (name, value) => put(page.find(`select[aria-label='${name}']`), value);
const note = () => page.find(".tvz-map-note").textContent;

/** The map of two columns of numbers, drawn. */
async function mapped() {
  page = await opened("map", BrowserView);
  await until(() => page.all(".tvz-tile:not(.tvz-waiting)").length && page.find(".tvz-pane h2"));
  press(page.find(".tvz-grid"), "p");
  await until(() => page.find(".tvz-map-tools option[value=columns]"));
  choose("what the map is of", "columns");
  choose("across", "json.w");
  choose("upward", "json.score");
  await until(() => page.find(".tvz-map-up").textContent.includes("json.score") && page.view.map.across.textContent.includes("json.w"));
  const asking = () =>
    page.view.map.choosing || page.view.map.making || page.asked.some(({ name, answered }) => !answered && /^(map_|search)/.test(name));
  await until(() => page.view.map.places.length === 120 && !asking());
  return page.view.map;
}

test("what a map can be of, its axes and its colours", async () => {
  const map = await mapped();
  assert.match(note(), /^60 points/);
  choose("colour of the points", "cls");
  await until(() => page.all(".tvz-map-entry").length === 3);
  await golden("map-tools", page.find(".tvz-map-tools"));
  await golden("map-legend", page.find(".tvz-map-legend"));
  choose("colour of the points", "json.score");
  await until(() => page.find(".tvz-map-bar"));
  assert.ok(new Set(map.scatter.drawnColours).size > 20);
  choose("colour of the points", "");
  await until(() => !page.find(".tvz-map-legend").children.length && new Set(map.scatter.drawnColours).size === 1);
  choose("what the map is of", "pca emb.npy");
  await until(() => /^5\d points/.test(note()));
  assert.ok(page.find("select[aria-label=across]").hidden);
});

test("axes that are chosen fast are asked for one after the other, and the last ones are shown", async () => {
  const map = await mapped();
  await until(() => page.asked.every(({ answered }) => answered)); // a request waits for its turn behind some others
  const before = page.asked.length;
  const asked = () => page.asked.slice(before).filter(({ name }) => name === "map_points");
  choose("across", "json.score");
  choose("upward", "json.w");
  choose("across", "size");
  assert.equal(asked().length, 1);
  await until(() => map.across.textContent.includes("size") && map.upward.textContent.includes("json.w"));
  assert.deepEqual(
    asked().map(({ msg }) => [msg.x, msg.y]),
    [
      ["json.score", "json.score"],
      ["size", "json.w"],
    ],
  );
});

test("what a map can be of is asked again while columns are read, and then no more", async () => {
  page = await opened("map", BrowserView);
  const states = ["scanning", "making"];
  page.change = (name, answer) =>
    name === "map_choices" && states.length ? { ...answer, r: { ...answer.r, fields: [], state: states.shift() } } : answer;
  press(page.find(".tvz-grid"), "p");
  await until(() => note() === "reading columns");
  await until(() => page.find(".tvz-map-tools option[value=columns]") && note() !== "reading columns");
  assert.equal(3, page.asked.filter(({ name }) => name === "map_choices").length);
});

test("a colour chosen while another is being read stays", async () => {
  const map = await mapped();
  page.change = (name, answer) => (name === "map_colours" ? { ...answer, r: { making: "reading cls" } } : answer);
  choose("colour of the points", "cls");
  await until(() => page.find(".tvz-map-legend").textContent === "reading cls");
  page.change = (_, answer) => answer;
  choose("colour of the points", "json.score");
  await until(() => page.find(".tvz-map-bar"));
  await new Promise((go) => setTimeout(go, 300)); // what has waited for the other looks once more
  assert.ok(page.find(".tvz-map-bar"));
});

test("a line keeps the records inside it, and its chip lets them all back", async () => {
  const map = await mapped();
  map.circle([-1.1, -1.1, 0, -1.1, 0, 1.1, -1.1, 1.1]);
  await until(() => page.find(".tvz-pick")?.textContent.startsWith("inside the line"));
  await until(() => /30 shown/.test(page.find(".tvz-status").textContent));
  await until(() => map.mask && map.scatter.faint === 30);
  click(page.find(".tvz-pick"));
  await until(() => page.last("search").area === null && !map.scatter.line.length);
  await until(() => map.scatter.faint === 0);
  click(page.button("lasso"));
  assert.ok(map.scatter.lassoing);
  map.scatter.zoomBy(2);
  click(page.button("in view"));
  await until(() => page.last("search").area?.length === 8);
});

test("a point under the pointer shows its record, a click opens it", async () => {
  const map = await mapped();
  const { scaleX, scaleY, atX, atY } = map.scatter.look();
  const [x, y] = map.places.slice(14, 16);
  const number = Math.round(((x + 1) / 2) * 59); // json.w is the number of the record, from one edge of the map to the other
  const spot = { clientX: x * scaleX + atX, clientY: atY - y * scaleY };
  click(map.scatter.root, spot, "pointermove");
  const key = `k${String(number).padStart(4, "0")}`;
  await until(() => !map.card.hidden && map.card.textContent.endsWith(key));
  assert.ok(Math.abs(parseFloat(map.card.style.left) - spot.clientX - 30) < 0.01);
  click(map.scatter.root, spot, "pointerdown");
  click(map.scatter.root, spot, "pointerup");
  map.pointed = 0; // and the pointer moves on before the record is there
  map.showCard();
  await until(() => page.find(".tvz-pane h2").title === key);
  assert.equal(number, page.view.records.at);
  click(map.scatter.root, {}, "pointerleave");
  assert.ok(map.card.hidden);
});
