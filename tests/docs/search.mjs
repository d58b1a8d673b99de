/** What the site's search answers: `node search.mjs SITE QUERIES` prints the pages found for each query, the best first. */
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [site, queries] = process.argv.slice(2);
const nothing = () => null;
const document = { getElementById: nothing, addEventListener: nothing, readyState: "loading" };
const context = vm.createContext({
  document,
  localStorage: { setItem: nothing },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _ready: nothing,
  _: String,
});
context.window = context;
context.addEventListener = nothing;
const scripts = ["_static/searchtools.js", "_static/language_data.js", "_static/search.js", "searchindex.js"];
const answer = `${queries}.map((query) => {
  const [text, terms, no] = Search._parseQuery(query);
  return Search._performSearch(text, terms, no).slice(-3).reverse().map((found) => found[0] + found[2]);
})`;
console.log(
  JSON.stringify(vm.runInContext([...scripts.map((name) => readFileSync(`${site}/${name}`, "utf8")), answer].join("\n;"), context)),
);
