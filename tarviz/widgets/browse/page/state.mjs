// @ts-check
// What the parts of the shard browser's page share: the records that show, how they look, how far their shards are read.

/**
 * What the parts share; each says what it takes of it.
 * @typedef {object} Page
 * @property {any} model
 * @property {any} config
 * @property {AbortSignal} signal ends the page
 * @property {ReturnType<typeof import("../../host/requests.mjs").makeRpc>} rpc
 * @property {Records} records
 * @property {Look} look
 * @property {Scan} scan
 * @property {import("../marking/marks.mjs").Marks} marks
 * @property {import("../marking/history.mjs").History} history
 * @property {import("./search.mjs").Search} searches
 * @property {import("./polls.mjs").Polls} polls
 * @property {import("./status.mjs").StatusLine} status
 * @property {() => void} leave gives the keys back to the records
 * @property {(position: number, row?: number) => void} select puts the cursor there
 */

/** The records that show: what was searched for, and what was found so far. */
export class Records {
  /** @param {any} config @param {{ rows: any, poll: any }} first */
  constructor(config, first) {
    /** the number of the search */
    this.query = first.rows.query;
    this.count = 0;
    /** the position of the cursor, and the row that is there; −1 where none was chosen */
    this.at = 0;
    this.selected = -1;
    this.wish = {
      where: config.where,
      sort: config.sort,
      seed: config.seed,
      shard: null,
      only: false,
      descending: false,
      column: undefined,
      /** a tile for each box */
      objects: false,
      /** corners of a line around points of the map @type {number[] | null} */
      area: null,
    };
    /** @type {Map<string, { where: string, text: string, parts: string[], span?: number[] }>} conditions that were clicked, by what they are about */
    this.picks = new Map(config.also.map((/** @type {string} */ where) => [where, { where, text: where, parts: [where] }]));
    /** words that were searched for @type {string[]} */
    this.words = [];
    /** the rows that were fetched are in the order wished for */
    this.ordered = first.poll.query.ordered;
    /** the search is at its end; what it does till then */
    this.done = first.poll.query.done;
    this.searching = "";
    /** why the search ended early, "" where it did not */
    this.failed = "";
    /** the pane is to show the first record of the search that runs */
    this.follow = false;
  }

  /** Whether nothing is filtered or sorted: the records as they lie. */
  plain() {
    const { where, sort, descending, shard, only, objects, area } = this.wish;
    return where.trim() === "" && !this.picks.size && sort === "order" && !descending && shard === null && !only && !objects && !area;
  }
}

/** How the records look: tiles of `px` pixels, with a field as the picture (`image`, "" for the first) above a line (`label`). */
export class Look {
  /** @param {any} config @param {string | null} label */
  constructor(config, label) {
    this.px = config.px;
    this.image = config.image;
    this.label = label ?? "";
    /** somebody chose the label */
    this.labelChosen = false;
    /** it was chosen, or the controller has said which one it takes */
    this.labelKnown = false;
  }
}

/** How far the shards are read, as the controller said last. */
export class Scan {
  version = -1;
  /** @type {any[]} */
  shards = [];
  total = 0;
  /** all shards were read to their end: `total` is the number of their records */
  exact = false;
  /** how far they are read, in words */
  state = "";
  /** @type {any} fields, classes and findings of the shards read so far */
  summary = undefined;
  /** fields that most records have, "" where there is no such set */
  common = "";
  /** @type {any} how far columns are made */
  columns = { state: "none" };
  /** how many pages look at these shards */
  pages = 1;
  /** what a far shard waits for, "" where all answer */
  far = "";
  /** the controller does not answer any more */
  lost = false;
  /** @type {(value?: any) => void} ends the rest between two polls */
  wake = () => {};
}
