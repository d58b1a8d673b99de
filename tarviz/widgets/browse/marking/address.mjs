// @ts-check
// What a page shows as the part of its address behind the #, so that it can be sent, reloaded, and gone back to.

/**
 * What a page shows. `picks` are the conditions that were clicked, by what they are about.
 * @typedef {object} Shown
 * @property {string} where
 * @property {[string, any][]} picks
 * @property {string} sort
 * @property {number} seed
 * @property {string | undefined} column sorted by
 * @property {boolean} descending
 * @property {number | null} shard
 * @property {boolean} only the marked ones
 * @property {boolean} objects a tile for each box
 * @property {"" | "table"} view
 * @property {boolean} map
 * @property {boolean} large the record is enlarged
 * @property {number} px
 * @property {string} image the field on the tiles, "" for the first picture
 * @property {string | null} label the line below the tiles; null where it was not chosen
 * @property {number[] | null} [area] a line around points of the map, which no address holds
 * @property {string} row a key, or #number
 * @property {number} at where that record stands among those shown: keys may come twice, and a record may have many boxes
 */

/** @type {Shown} */
export const PLAIN = {
  where: "",
  picks: [],
  sort: "order",
  seed: 0,
  column: undefined,
  descending: false,
  shard: null,
  only: false,
  objects: false,
  view: "",
  map: false,
  large: false,
  px: 160,
  image: "",
  label: null,
  row: "",
  at: 0,
};

const NAMES = /** @type {Record<string, string>} */ ({ picks: "also", column: "by", only: "marked", objects: "boxes" });

/** What differs from the usual, without a #. @param {Shown} shown @param {Shown} [usual] @returns {string} */
export function written(shown, usual = PLAIN) {
  const words = new URLSearchParams();
  for (const name of Object.keys(PLAIN)) {
    const [value, before] = [shown, usual].map((one) => /** @type {any} */ (one)[name]);
    if (JSON.stringify(value) === JSON.stringify(before) || (name === "seed" && shown.sort !== "random")) continue;
    words.set(
      NAMES[name] ?? name,
      typeof value === "string" ? value : typeof value === "boolean" ? (value ? "on" : "off") : JSON.stringify(value ?? null),
    );
  }
  return String(words);
}

/** What an address says; what it does not say, or says wrongly, is missing. @param {string} hash with or without its # @returns {Partial<Shown>} */
export function read(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {any} */
  const shown = {};
  for (const [name, usual] of Object.entries(PLAIN)) {
    const text = words.get(NAMES[name] ?? name);
    if (text === null) continue;
    if (name === "picks") {
      const picks = readPicks(text);
      if (picks) shown.picks = picks;
    } else if (typeof usual === "boolean") shown[name] = text === "on";
    else if (typeof usual === "number" || name === "shard") {
      if (/^\d{1,15}$/.test(text)) shown[name] = Number(text);
      else if (name === "shard") shown.shard = null;
    } else shown[name] = text;
  }
  return shown;
}

/** The conditions in an address; undefined where there are none to read. @param {string | null} text @returns {[string, any][] | undefined} */
export function readPicks(text) {
  try {
    const found = JSON.parse(text ?? "");
    return Array.isArray(found) &&
      found.every((pair) => typeof pair?.[0] === "string" && typeof pair[1]?.where === "string" && typeof pair[1].text === "string")
      ? found
      : undefined;
  } catch {
    return undefined;
  }
}
