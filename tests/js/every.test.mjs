// Every module of the package's JavaScript is imported by a test, itself or by one that imports it.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const TESTS = new URL("./", import.meta.url);
const PACKAGE = new URL("../../tarviz/", import.meta.url);

/** The modules a file imports, whole addresses. */
const imported = (file) =>
  [...readFileSync(file, "utf-8").matchAll(/(?:from|import\()\s*"(\.[^"]+\.mjs)"/g)].map(([, path]) => new URL(path, file).href);

test("every module is reached by a test", () => {
  const files = readdirSync(PACKAGE, { recursive: true }).filter((name) => name.endsWith(".mjs"));
  const waiting = readdirSync(TESTS)
    .filter((name) => name.endsWith(".test.mjs") && name !== "every.test.mjs")
    .map((name) => new URL(name, TESTS).href);
  const reached = new Set();
  for (let file = waiting.pop(); file; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    waiting.push(...imported(new URL(file)));
  }

  assert.ok(files.length > 50);
  assert.deepEqual(
    [],
    files.filter((name) => !reached.has(new URL(name, PACKAGE).href)),
  );
});
