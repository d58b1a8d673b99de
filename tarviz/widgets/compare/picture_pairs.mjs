// @ts-check
// Two pictures as numbers: where one lies in its room, and how much they differ.

/**
 * Where a picture lies in its room: `zoom` 1 fits it in (small ones grow by whole numbers), `x` and `y` (0…1) is the point in the middle.
 * @param {{ width: number, height: number }} picture @param {{ width: number, height: number }} room @param {{ zoom: number, x: number, y: number }} view
 */
export function placed(picture, room, { zoom, x, y }) {
  const fitting = Math.min(room.width / picture.width, room.height / picture.height);
  const scale = (fitting > 2 ? Math.min(16, Math.floor(fitting)) : fitting) * zoom;
  return { scale, left: room.width / 2 - x * picture.width * scale, top: room.height / 2 - y * picture.height * scale };
}

/**
 * |a − b| × gain, channel by channel, opaque; and the largest difference before the gain.
 * @param {Uint8ClampedArray} a RGBA @param {Uint8ClampedArray} b RGBA, as long @param {number} gain @param {Uint8ClampedArray} [out]
 */
export function gained(a, b, gain, out = new Uint8ClampedArray(a.length)) {
  let largest = 0;
  for (let at = 0; at < a.length; at += 4) {
    for (let channel = 0; channel < 3; channel += 1) {
      const delta = Math.abs(a[at + channel] - b[at + channel]);
      largest = Math.max(largest, delta);
      out[at + channel] = delta * gain;
    }
    out[at + 3] = 255;
  }
  return { out, largest };
}

/** A gain doubled `by` times, or halved; 1 … 64. @param {number} gain @param {number} by */
export const nextGain = (gain, by) => Math.max(1, Math.min(64, gain * 2 ** by));
