// @ts-check
// Two ways to paint many points on a canvas: by a graphics card, and pixel by pixel where there is none.

/**
 * How places (−1 … 1) become pixels of the canvas: x · scaleX + atX, atY − y · scaleY.
 * @typedef {{ scaleX: number, scaleY: number, atX: number, atY: number, dot: number }} Look
 * @typedef {{ canvas: HTMLCanvasElement, kind: string, fill: (places: Float32Array, colours: Uint32Array) => void,
 *   draw: (look: Look, spans: [number, number][]) => void, end: () => void }} Painter
 */

/** Whether WebGL would be worked out by the processor, which does it more slowly than `pixelPainter`. @param {WebGL2RenderingContext} gl */
export function isSoftware(gl) {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(
    String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)),
  );
}

const VERTEX = `#version 300 es
in vec2 place; in vec4 colour; uniform vec2 scale; uniform vec2 at; uniform float side; out vec4 shade;
void main() { gl_Position = vec4(place * scale + at, 0.0, 1.0); gl_PointSize = side; shade = colour; }`;
const FRAGMENT = `#version 300 es
precision highp float; in vec4 shade; uniform float side; out vec4 pixel;
void main() { vec2 off = gl_PointCoord - 0.5; if (side > 3.0 && off.x * off.x + off.y * off.y > 0.25) discard; pixel = vec4(shade.rgb * shade.a, shade.a); }`;

/**
 * Points by WebGL 2; undefined where that cannot be had, or where it would be worked out by the processor and `software` is false.
 * @param {{ software?: boolean }} [options] @returns {Painter | undefined}
 */
export function glPainter({ software = false } = {}) {
  const canvas = document.createElement("canvas");
  const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true, powerPreference: "high-performance" });
  if (!gl || (!software && isSoftware(gl))) {
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
    return undefined;
  }
  const program = gl.createProgram();
  for (const [kind, text] of /** @type {[number, string][]} */ ([
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ])) {
    const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return undefined;
  gl.useProgram(program);
  const [scale, at, side] = ["scale", "at", "side"].map((name) => gl.getUniformLocation(program, name));
  const buffers = [gl.createBuffer(), gl.createBuffer()];
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  return {
    canvas,
    kind: "webgl",
    fill(places, colours) {
      const pair = /** @type {[string, ArrayBufferView, number, number, boolean][]} */ ([
        ["place", places, 2, gl.FLOAT, false],
        ["colour", colours, 4, gl.UNSIGNED_BYTE, true],
      ]);
      pair.forEach(([name, data, size, type, whole], number) => {
        const place = gl.getAttribLocation(program, name);
        gl.bindBuffer(gl.ARRAY_BUFFER, buffers[number]);
        gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
        gl.enableVertexAttribArray(place);
        gl.vertexAttribPointer(place, size, type, whole, 0, 0);
      });
    },
    draw(look, spans) {
      const { width, height } = canvas;
      gl.viewport(0, 0, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(scale, (2 * look.scaleX) / width, (2 * look.scaleY) / height);
      gl.uniform2f(at, (2 * look.atX) / width - 1, 1 - (2 * look.atY) / height);
      gl.uniform1f(side, look.dot);
      for (const [first, count] of spans) gl.drawArrays(gl.POINTS, first, count);
    },
    end: () => gl.getExtension("WEBGL_lose_context")?.loseContext(),
  };
}

/** Points pixel by pixel: a million in a few hundredths of a second on one core. @returns {Painter} */
export function pixelPainter() {
  const canvas = document.createElement("canvas");
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  /** @type {Float32Array} */
  let places = new Float32Array();
  /** @type {Uint32Array} */
  let colours = new Uint32Array();
  /** @type {ImageData | undefined} */
  let image;
  let pixels = new Uint32Array();
  return {
    canvas,
    kind: "canvas",
    fill(newPlaces, newColours) {
      places = newPlaces;
      colours = newColours;
    },
    draw(look, spans) {
      const { width, height } = canvas;
      if (image?.width !== width || image.height !== height) {
        image = pen.createImageData(width, height);
        pixels = new Uint32Array(image.data.buffer);
      }
      pixels.fill(0);
      for (const [first, count] of spans) splat(pixels, width, height, places, colours, look, first, first + count);
      pen.putImageData(image, 0, 0);
    },
    end: () => {},
  };
}

/**
 * Points first…stop−1 into pixels (RGBA, one number each), later ones over earlier ones; round where they are large.
 * @param {Uint32Array} pixels @param {number} width @param {number} height @param {Float32Array} places @param {Uint32Array} colours
 * @param {Look} look @param {number} first @param {number} stop
 */
export function splat(pixels, width, height, places, colours, look, first, stop) {
  const { scaleX, scaleY, atX, atY } = look;
  const dot = Math.max(1, Math.round(look.dot));
  if (dot === 1) {
    for (let point = first; point < stop; point += 1) {
      const x = Math.floor(places[2 * point] * scaleX + atX);
      const y = Math.floor(atY - places[2 * point + 1] * scaleY);
      if (x >= 0 && y >= 0 && x < width && y < height) pixels[y * width + x] = colours[point];
    }
    return;
  }
  const half = dot / 2;
  /** @type {[number, number][]} runs of pixels of a dot, a line each: from, to */
  const lines = Array.from({ length: dot }, (_, down) => {
    const reach = Math.sqrt(half * half - (down + 0.5 - half) ** 2);
    return [Math.round(half - reach), Math.round(half + reach)];
  });
  for (let point = first; point < stop; point += 1) {
    const left = Math.round(places[2 * point] * scaleX + atX - half);
    const top = Math.round(atY - places[2 * point + 1] * scaleY - half);
    if (left <= -dot || left >= width) continue;
    const colour = colours[point];
    for (let down = Math.max(0, -top); down < dot && top + down < height; down += 1) {
      const row = (top + down) * width;
      const from = Math.max(0, left + lines[down][0]);
      const to = Math.min(width, left + lines[down][1]);
      for (let x = from; x < to; x += 1) pixels[row + x] = colour;
    }
  }
}
