/** The search of the site: any word finds a page, the one that says most of them first; Sphinx's own wants all of them. */
"use strict";

/** What people type, and what our pages call it; or the page, where no word of it would do. */
const MEANT = {
  annotations: "objects labels",
  augmentation: "notebooks/20-op-chains reference/ops",
  aws: "s3",
  azure: "az",
  bbox: "boxes",
  begin: "install tour",
  benchmark: "bench notebooks/80-throughput",
  bounding: "boxes",
  brace: "template braces",
  broken: "damaged verify docs/troubleshooting",
  bucket: "s3 store",
  cache: "cached reference/verbs",
  cheatsheet: "shell",
  cluster: "ray",
  colab: "notebook docs/hosts",
  compression: "gzip zstd packed reference/formats",
  conda: "install",
  corrupt: "damaged verify docs/troubleshooting",
  credentials: "s3 stores token",
  csv: "sql",
  damaged: "verify docs/troubleshooting",
  ddp: "ranks torch",
  decode: "reference/ops",
  distributed: "ranks",
  duplicate: "near",
  exit: "reference/shell docs/troubleshooting",
  expansion: "template",
  extract: "cat tar",
  filter: "conditions notebooks/15-ask-your-shards",
  gcs: "gs",
  getting: "install tour",
  google: "gs",
  gpu: "ranks torch",
  hotkeys: "keys",
  huggingface: "hf accelerate",
  kaggle: "hosts",
  keyboard: "keys notebooks/10-browse",
  lightning: "torch training",
  migrate: "tools dialect",
  migration: "webdataset tools dialect",
  missing: "install extra",
  multi: "ranks",
  performance: "throughput bench",
  pip: "install",
  quickstart: "install tour",
  resize: "notebooks/20-op-chains reference/ops",
  restart: "stopped state",
  resume: "stopped state",
  shortcuts: "keys",
  shuffle: "docs/training",
  slow: "throughput bench docs/troubleshooting",
  speed: "throughput bench",
  start: "install tour",
  started: "install tour",
  tutorial: "tour",
  video: "film docs/gallery",
  view: "browse",
  viewer: "browse",
  visualize: "browse",
  workers: "workers ranks",
  write: "reference/writing",
};
/** Pages for who works on tarviz, or asks what it brings, not for who works with it. */
const BESIDE = /^(CHANGELOG|CONTRIBUTING|SECURITY|docs\/(growth|cost|figures|licences|scale|faults|design)|reference\/testing)$/;

/** @type {Map<number, number> | undefined} words of each page */
let lengths;

const ranked = (query, _terms, excluded) => {
  const { docnames, filenames, titles, terms, titleterms, alltitles } = Search._index;
  const stemmer = new Stemmer();
  const stem = (word) => stemmer.stemWord(word.toLowerCase());
  const stems = (text) => splitQuery(text).map(stem);
  const pages = (table, word) => (Object.hasOwn(table, word) ? [table[word]].flat() : []);
  if (!lengths) {
    lengths = new Map(docnames.map((_, page) => [page, 0]));
    for (const word of Object.keys(terms)) for (const page of pages(terms, word)) lengths.set(page, lengths.get(page) + 1);
  }
  const mean = [...lengths.values()].reduce((sum, count) => sum + count, 0) / docnames.length;
  const words = splitQuery(query.toLowerCase()).filter((word) => !stopwords.has(word) && !word.startsWith("-"));
  const asked = words.map((word) => [stem(word), ...(MEANT[word] ?? "").split(" ").filter(Boolean).map((each) => (each.includes("/") ? each : stem(each)))]);
  const rare = (count) => Math.log(1 + docnames.length / (1 + count));

  const scores = new Map(docnames.map((_, page) => [page, { sum: 0, words: 0 }]));
  const named = titles.map((title) => new Set(stems(title)));
  for (const [at, meant] of asked.entries()) {
    const best = new Map();
    for (const [number, word] of meant.entries()) {
      if (word.includes("/")) {
        best.set(docnames.indexOf(word), 5 * rare(0));
        continue;
      }
      let inText = pages(terms, word);
      let inTitle = pages(titleterms, word);
      let part = number ? 0.7 : 1;
      if (!number && !inText.length && !inTitle.length && word.length > 2) {
        const alike = (table) => Object.keys(table).filter((each) => each.startsWith(word) || (word.length > 3 && each.includes(word)));
        inText = alike(terms).flatMap((each) => pages(terms, each));
        inTitle = alike(titleterms).flatMap((each) => pages(titleterms, each));
        part = 0.6;
      }
      const weight = part * rare(new Set([...inText, ...inTitle]).size);
      const give = (page, score) => best.set(page, Math.max(best.get(page) ?? 0, score));
      for (const page of inText) give(page, weight / (0.5 + (0.5 * lengths.get(page)) / mean));
      for (const page of inTitle) give(page, 2 * weight);
      named.forEach((own, page) => own.has(word) && give(page, 4 * weight));
      if (docnames.some((name) => name.endsWith(`/${words[at]}`)))
        docnames.forEach((name, page) => name.endsWith(`/${words[at]}`) && give(page, 5 * weight));
    }
    best.delete(-1); // a page that this site was built without
    for (const [page, score] of best) {
      scores.get(page).sum += score;
      scores.get(page).words += 1;
    }
  }

  const places = new Map(); // page → the heading that says most of what was asked, and how much that is
  for (const [title, found] of Object.entries(alltitles)) {
    const own = new Set(stems(title));
    const said = asked.filter((meant) => meant.some((word) => own.has(word))).length;
    if (!said) continue;
    const share = (said / asked.length) * (said / Math.max(own.size, said));
    for (const [page, id] of found)
      if (share > (places.get(page)?.share ?? 0)) places.set(page, { share, title, id: titles[page] === title ? null : id });
  }
  const code = query.trim().match(/^[EW]_[A-Z_]+$/i)?.[0].toUpperCase();
  const results = [];
  for (const [page, { sum, words: said }] of scores) {
    if ([...excluded].some((word) => pages(terms, word).includes(page))) continue;
    const help = code && docnames[page] === "docs/troubleshooting";
    const place = places.get(page);
    const score = (sum * said * (1 + (place?.share ?? 0)) * (BESIDE.test(docnames[page]) ? 0.3 : 1)) / Math.max(asked.length, 1) + (help ? 1e6 : 0);
    if (!score) continue;
    const at = place && place.share >= 0.3 && place.id;
    const anchor = help ? `#codes:~:text=${code}` : at ? `#${at}` : "";
    results.push([docnames[page], at ? `${titles[page]} > ${place.title}` : titles[page], anchor, null, score, filenames[page], "text"]);
  }
  document.getElementById("search-progress")?.replaceChildren();
  return results.sort((a, b) => a[4] - b[4]); // the best is the last: it is taken first
};

if (typeof Search !== "undefined") Search._performSearch = ranked; // the page of the search alone has it
