// @ts-check
// Colours and values of the map, as canvases hold them and as people read them.

/** A colour and its strength as one number, as it lies in memory. @param {number} red @param {number} green @param {number} blue @param {number} [strength] */
export const packed = (red, green, blue, strength = 0xff) => ((strength << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** Colours of points by their codes. @param {Uint8Array} codes @param {Uint8Array} palette red, green, blue of each code @param {number} strength 0 … 255 */
export function paint(codes, palette, strength) {
  return Uint32Array.from(codes, (code) => packed(palette[3 * code], palette[3 * code + 1], palette[3 * code + 2], strength));
}

/** Red, green, blue of a colour as a style has it. @param {string} text */
export function channels(text) {
  const found =
    text
      .match(/[\d.]+/g)
      ?.slice(0, 3)
      .map(Number) ?? [];
  return /^color\(srgb/.test(text) ? found.map((share) => Math.round(share * 255)) : found.length === 3 ? found : [20, 96, 184];
}

/** A value with as many digits as tell it from others within a span. @param {number} value @param {number} span */
export function shortValue(value, span) {
  const digits = Math.max(0, 2 - Math.floor(Math.log10(span || 1)));
  const text = Math.abs(value) >= 1e9 || (span && span < 1e-9) ? value.toPrecision(6) : value.toFixed(digits);
  return String(Number(text)).replace("-", "−");
}
