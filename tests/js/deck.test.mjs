// A deck on a page: slides that hold more than fits are shrunk, notes belong to their slide, widgets are drawn.
import assert from "node:assert/strict";

import { placed, press, test } from "./dom.mjs";

test("a page of slides is made ready", async () => {
  const place = placed();
  place.innerHTML = `<div class="reveal"><div class="slides">
    <section><section><div class="page" id="fits">a <p class="fragment">b <aside class="notes">say it</aside></p></div></section></section>
    <section><div class="page" id="long">c</div></section>
    <section><div class="page" id="over">d</div></section>
    <section><div class="page" id="endless">e</div></section></div></div>
    <script type="application/json" id="tarviz-widgets">{"models": {}}</script>`;
  const heights = { fits: 721, over: 722, long: 1080, endless: 9000 };
  const pages = Object.keys(heights).map((id) => document.getElementById(id));
  const hidden = ({ localName, style }) => localName === "section" && style.display !== "block"; // as Reveal has all but one
  const scaleOf = ({ style }) => style.getPropertyValue("--scale");
  for (const page of pages)
    page.getBoundingClientRect = () => {
      const shown = !hidden(page.parentElement) && !hidden(page.parentElement.parentElement);
      return { height: shown ? heights[page.id] * Number(scaleOf(page) || 1) : 0 };
    };
  const [fits, over, long, endless] = pages;
  Object.defineProperty(document, "images", { value: [], configurable: true }); // happy-dom has no such list
  const told = [];
  globalThis.RevealNotes = {};
  globalThis.Reveal = { initialize: async (options) => told.push(options) };
  globalThis.mountAll = (...given) => told.push(given);

  await import("../../tarviz/commands/deck/template/tarviz/start.mjs");

  assert.deepEqual(
    ["1.00", "0.98", "0.66", "0.50"],
    pages.map((page) => page.dataset.scale),
  );
  assert.ok(Math.abs(parseFloat(long.style.height) - 720 / Number(scaleOf(long))) < 0.1);
  assert.deepEqual(
    ["", "", "", "scrolls"],
    [fits, over, long, endless].map((page) => page.className.replace(/page ?/, "")),
  );
  assert.equal("1368px", endless.style.height, "twice the room that is above its number");
  const turned = [];
  let [at, slide] = [0, endless];
  Object.defineProperty(endless, "scrollTop", { get: () => at, set: (to) => (at = Math.max(0, Math.min(200, to))) });
  globalThis.Reveal.getCurrentSlide = () => slide.parentElement;
  const turns = ({ key }) => turned.push([key, at]);
  document.body.addEventListener("keydown", turns);
  for (const key of ["ArrowDown", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"]) press(document.body, key);
  press(endless, "ArrowDown"); // in a widget it is the widget's
  slide = long;
  press(document.body, "ArrowDown");
  document.body.removeEventListener("keydown", turns);
  assert.deepEqual(
    [
      ["ArrowRight", 160],
      ["ArrowDown", 200],
      ["ArrowUp", 0],
      ["ArrowDown", 0],
      ["ArrowDown", 0],
    ],
    turned,
    "what scrolls a slide does not turn it",
  );
  assert.equal(fits, fits.querySelector("aside.notes").parentElement);
  assert.equal("", fits.parentElement.style.display);
  const size = { width: 1280, height: 720, margin: 0.02, center: false };
  const quiet = { hash: true, transition: "none", backgroundTransition: "none", slideNumber: "c/t" };
  const print = { pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1, plugins: [globalThis.RevealNotes] };
  assert.deepEqual({ ...size, ...quiet, ...print }, told[0]);
  assert.equal("1280px", place.querySelector(".slides").style.width);
  assert.deepEqual([{ models: {} }, document, false], told[1]);
  assert.equal("ready", document.documentElement.dataset.tarvizDeck);
  place.remove();
});
