// After host.mjs in one module: turns the page into slides and wakes its widgets.

const WIDTH = 1280;
const HEIGHT = 720;
const printing = /print-pdf/i.test(location.search);

/** Shrink slides that hold more than fits, never below half. */
function fit() {
  const slides = document.querySelector(".reveal .slides");
  slides.style.width = `${WIDTH}px`;
  for (const page of slides.querySelectorAll(".page")) {
    const shown = [page.parentElement, page.parentElement.parentElement].filter((element) => element.localName === "section");
    shown.forEach((section) => section.style.setProperty("display", "block", "important"));
    page.style.height = "auto";
    const height = () => page.getBoundingClientRect().height;
    let scale = 1;
    while (height() > HEIGHT + 1 && scale > 0.5) {
      scale = Math.max(0.5, scale * Math.min(0.98, Math.sqrt(HEIGHT / height())));
      page.style.zoom = String(scale);
    }
    page.style.height = `${HEIGHT / scale}px`;
    page.dataset.scale = scale.toFixed(2);
    shown.forEach((section) => section.style.removeProperty("display"));
  }
}

// In Jupyter notes belong to the slide, in reveal.js those inside a fragment to the fragment alone.
for (const note of document.querySelectorAll(".fragment aside.notes")) note.closest(".page").append(note);
await Promise.allSettled([...document.images].map((image) => image.decode()));
fit();
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
