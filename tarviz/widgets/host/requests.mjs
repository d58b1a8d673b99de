// @ts-check
// Requests to the controller of a widget, and its answers.

/**
 * The AFM model a host hands to a widget (tarviz/widgets/host/view.py, host.mjs).
 * @typedef {object} Model
 * @property {(name: string) => any} get
 * @property {(event: string, callback: (...args: any[]) => void) => void} on
 * @property {(event: string, callback: (...args: any[]) => void) => void} off
 * @property {(content: any, callbacks?: any, buffers?: any[]) => void} send
 * @property {string} [session] the page's own name, where the host has given it one
 * @typedef {{ type: string, msg: string, hint: string, code: string }} Fault
 * @typedef {{ r: any, buffers: DataView[] }} Answer
 */

/** An error the controller answered with: `fault` says type, message, hint and code. */
export class RpcError extends Error {
  /** @param {Fault} fault */
  constructor(fault) {
    super(fault.msg);
    this.fault = fault;
  }
}

/** What is said where a kernel keeps silent. */
export const NO_ANSWER = "No answer from the kernel: it is busy, or it was restarted. Run the cell again to go on.";

/**
 * Requests over a model: at most two in flight, an older one of the same name cancelled, a sentence when none comes back.
 * @param {Model} model
 * @param {{ signal?: AbortSignal, limit?: number, timeout?: number, onSlow?: (waiting: boolean) => void }} [options]
 */
export function makeRpc(model, { signal, limit = 2, timeout = 4000, onSlow = () => {} } = {}) {
  /** @typedef {{ id: string, name: string, msg: any, done: (a: Answer) => void, fail: (e: Error) => void, timer: any, keep: boolean }} Job */
  /** @type {Map<string, Job>} */
  const flying = new Map();
  /** @type {Job[]} */
  const waiting = [];
  let count = 0;
  let slow = 0;
  const session = model.session ?? Math.random().toString(36).slice(2, 12);

  const drop = (/** @type {Job} */ job) => {
    flying.delete(job.id);
    clearTimeout(job.timer);
    if (job.timer === "slow" && --slow === 0) onSlow(false);
  };
  const fly = (/** @type {Job} */ job) => {
    flying.set(job.id, job);
    job.timer = setTimeout(() => {
      job.timer = "slow";
      slow += 1;
      onSlow(true);
    }, timeout);
    try {
      model.send({ k: "tvz:req", id: job.id, session, name: job.name, msg: job.msg });
    } catch (error) {
      drop(job);
      job.fail(
        new RpcError({
          type: "NoKernel",
          msg: `The kernel behind this was restarted or is gone (${/** @type {any} */ (error).message}).`,
          hint: "Run the cell again.",
          code: "no-kernel",
        }),
      );
    }
  };
  const pump = () => {
    while (flying.size < limit && waiting.length) fly(/** @type {Job} */ (waiting.shift()));
  };
  const overtaken = () => new RpcError({ type: "Overtaken", msg: "overtaken by a later request", hint: "", code: "overtaken" });

  const receive = (/** @type {any} */ content, /** @type {DataView[]} */ buffers) => {
    if (content?.k !== "tvz:res") return;
    const job = flying.get(content.id);
    if (!job) return;
    drop(job);
    pump();
    if (content.err) job.fail(new RpcError(content.err));
    else job.done({ r: content.r, buffers: (buffers ?? []).map(asView) });
  };
  model.on("msg:custom", receive);
  signal?.addEventListener("abort", () => {
    model.off("msg:custom", receive);
    for (const job of [...flying.values(), ...waiting.splice(0)]) {
      drop(job);
      job.fail(overtaken());
    }
  });

  /**
   * @param {string} name
   * @param {any} [msg]
   * @param {{ keep?: boolean, urgent?: boolean }} [options] `keep`: do not cancel older requests of the same name; `urgent`: do not wait
   *   for those in flight, which may wait for a far server
   * @returns {Promise<Answer>}
   */
  const call = (name, msg = {}, { keep = false, urgent = false } = {}) =>
    new Promise((done, fail) => {
      if (!keep) {
        for (const job of [...waiting]) {
          if (job.name !== name || job.keep) continue;
          waiting.splice(waiting.indexOf(job), 1);
          job.fail(overtaken());
        }
        for (const job of [...flying.values()]) {
          if (job.name !== name || job.keep) continue;
          drop(job);
          job.fail(overtaken());
          try {
            model.send({ k: "tvz:cancel", id: job.id });
          } catch {
            // the kernel is gone: the request that follows says so
          }
        }
      }
      const job = { id: `${session}-${(count += 1)}`, name, msg, done, fail, timer: 0, keep };
      if (urgent) fly(job);
      else waiting.push(job);
      pump();
    });
  return Object.assign(call, { session });
}

/** @param {any} buffer @returns {DataView} */
export const asView = (buffer) =>
  buffer instanceof DataView
    ? buffer
    : ArrayBuffer.isView(buffer)
      ? new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
      : new DataView(buffer);

/** What went wrong, and what to do about it. @param {unknown} error */
export const wordsOf = (error) => (error instanceof RpcError ? `${error.fault.msg} ${error.fault.hint}`.trim() : String(error));

/** @param {unknown} error */
export const isOvertaken = (error) => error instanceof RpcError && error.fault.code === "overtaken";
