// After host.mjs in one module: turns the page into slides and wakes its widgets.

const WIDTH = 1280;
const HEIGHT = 720;
const printing = /print-pdf/i.test(location.search);
const least = printing ? 0.1 : 0.5;
if (printing) globalThis.requestAnimationFrame = (draw) => setTimeout(draw, 16); // printed by a command, a page has no frames

/** The arrows scroll a slide that is longer than the screen; at its ends they turn it. */
function scroll(event) {
  const by = { ArrowDown: 160, ArrowUp: -160 }[event.key];
  const page = event.target === document.body && Reveal.getCurrentSlide().querySelector(".scrolls");
  if (!by || !page) return;
  const before = page.scrollTop;
  page.scrollTop += by;
  if (page.scrollTop !== before) event.stopImmediatePropagation();
}

/** Shrink slides that hold more than fits: on paper all of it, on a screen never below half, and the rest is scrolled to. */
function fit() {
  const slides = document.querySelector(".reveal .slides");
  slides.style.width = `${WIDTH}px`;
  for (const page of slides.querySelectorAll(".page")) {
    const shown = [page.parentElement, page.parentElement.parentElement].filter((element) => element.localName === "section");
    shown.forEach((section) => section.style.setProperty("display", "block", "important"));
    page.style.height = "auto";
    const height = () => page.getBoundingClientRect().height;
    let scale = 1;
    while (height() > HEIGHT + 1 && scale > least) {
      scale = Math.max(least, scale * Math.min(0.98, Math.sqrt(HEIGHT / height())));
      page.style.setProperty("--scale", String(scale));
    }
    const scrolls = height() > HEIGHT + 1;
    page.classList.toggle("scrolls", scrolls); // above its number
    page.style.height = `${(scrolls ? HEIGHT - 36 : HEIGHT) / scale}px`;
    page.dataset.scale = scale.toFixed(2);
    shown.forEach((section) => section.style.removeProperty("display"));
  }
}

// In Jupyter notes belong to the slide, in reveal.js those inside a fragment to the fragment alone.
for (const note of document.querySelectorAll(".fragment aside.notes")) note.closest(".page").append(note);
await Promise.allSettled([...document.images].map((image) => image.decode()));
fit();
document.addEventListener("keydown", scroll, true);
await Reveal.initialize({
  width: WIDTH,
  height: HEIGHT,
  margin: 0.02,
  center: false,
  hash: true,
  transition: "none",
  backgroundTransition: "none",
  slideNumber: "c/t",
  pdfSeparateFragments: false,
  pdfMaxPagesPerSlide: 1,
  plugins: [RevealNotes],
});
mountAll(JSON.parse(document.getElementById("tarviz-widgets").textContent), document, printing);
document.documentElement.dataset.tarvizDeck = "ready";
