// @ts-check
// What the reader asks the controller to do anew: more records, new seeds, another runner, another number in a chain.

export class Changes {
  /** @param {import("./compare.mjs").CompareView} view */
  constructor(view) {
    this.view = view;
    this.tuned = Promise.resolve(); // requests of their own may overtake each other: the last number is to stay
  }

  /** Ask, and follow what comes of it. @param {string} name @param {any} message @param {(r: any) => string | undefined | void} [then] gives a sentence where nothing is to follow */
  async ask(name, message, then) {
    const { view } = this;
    try {
      const { r } = await view.rpc(name, message);
      const said = then?.(r);
      if (said) return view.tell(said);
      view.running = true;
      view.loop();
    } catch (error) {
      view.trouble(error);
    }
    return undefined;
  }

  more() {
    const { view } = this;
    return this.ask("more", { count: 1 }, (r) => {
      if (!r.found) return r.count >= view.config.most ? `At most ${view.config.most} records.` : "There are no more records.";
      view.at = { ...view.at, record: r.count - 1 };
      return undefined;
    });
  }

  /** @param {number | null} column */
  reroll(column) {
    const { view } = this;
    if (column !== null && !view.columns[column]?.random) return view.tell("This chain draws no random numbers.");
    return this.ask("reroll", { column });
  }

  /** @param {string} runner */
  add(runner) {
    return this.ask("add", { runner });
  }

  /** @param {number} column @param {import("./sliders.mjs").Wheel} wheel @param {number} value */
  tune(column, wheel, value) {
    const { op, name, at } = wheel;
    return (this.tuned = this.tuned.then(() => this.ask("tune", { column, op, name, at, value })));
  }
}
