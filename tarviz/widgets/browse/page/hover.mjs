// @ts-check
// Film and sound on tiles play while the pointer rests on them.

import { h } from "../../host/core.mjs";

const HOVER_REST = 350; // milliseconds until it begins
const PLAYED = { video: /\.?(mp4|m4v|webm|mov|mkv|ogv)$/i, audio: /\.?(wav|mp3|flac|ogg|oga|opus|m4a|aac)$/i };

/** Whether a field is film or sound that browsers play: "video", "audio" or "". @param {string} ext @returns {"video" | "audio" | ""} */
export const playedKind = (ext) => (PLAYED.video.test(ext) ? "video" : PLAYED.audio.test(ext) ? "audio" : "");

/**
 * @param {HTMLElement} area what holds the tiles @param {(position: number) => { kind: string, url: string } | undefined} found what a tile plays
 * @param {AbortSignal} signal
 */
export function hoverPlay(area, found, signal) {
  /** @type {any} */
  let timer;
  /** @type {HTMLMediaElement | undefined} */
  let player;
  /** @type {HTMLElement | null} */
  let over = null;
  const stop = () => {
    clearTimeout(timer);
    player?.pause();
    player?.remove();
    player = undefined;
  };
  const begin = (/** @type {HTMLElement} */ tile) => {
    const film = found(Number(tile.dataset.position));
    if (!film || !tile.isConnected) return;
    player = /** @type {HTMLMediaElement} */ (
      h(film.kind, { class: "tvz-playing", src: film.url, muted: film.kind === "video", loop: true, "aria-hidden": "true" })
    );
    tile.querySelector(".tvz-box")?.append(player);
    player.play().catch(stop); // sound before the first click on a page: the browser refuses
  };
  area.addEventListener(
    "pointerover",
    (/** @type {PointerEvent} */ e) => {
      const tile = /** @type {HTMLElement} */ (e.target).closest?.(".tvz-tile");
      if (tile === over) return;
      stop();
      over = /** @type {HTMLElement | null} */ (tile);
      if (over) timer = setTimeout(begin, HOVER_REST, over);
    },
    { signal },
  );
  area.addEventListener(
    "pointerleave",
    () => {
      stop();
      over = null;
    },
    { signal },
  );
  signal.addEventListener("abort", stop);
}
