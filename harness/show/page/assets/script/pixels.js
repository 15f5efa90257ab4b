// The memory map as pixels. Rectangles go straight into an image: a million take some tens of milliseconds, where
// drawing them one by one through the canvas takes many times that.

// View is the part of events and addresses that an image shows.
//   xOf      position of an event on the axis, see Axis.x
//   linear   the position of an event is its number
//   x0, x1   positions at the left and right edge
//   y0, y1   bytes of the axis of addresses at the lower and upper edge

// REACH is the number of blocks, by birth, that are skipped at once if none is in the view.
const REACH = 1024;

// reaches caches, for each batch of REACH rectangles, the event at which the last one ends.
const reaches = new WeakMap();

// reachOf returns, for each batch of REACH rectangles, the event at which the last one ends.
function reachOf(rects) {
  let reach = reaches.get(rects);
  if (reach) return reach;
  reach = new Uint32Array(Math.ceil(rects.dies.length / REACH));
  for (let i = 0; i < rects.dies.length; i++) {
    const k = Math.floor(i / REACH);
    if (rects.dies[i] > reach[k]) reach[k] = rects.dies[i];
  }
  reaches.set(rects, reach);
  return reach;
}

// Painting draws blocks and their regions into an image, in time slices. colors are
// pixels: paper, held (reserved memory), cover (blocks that are stored as a raster) and dark. tints give each
// block its colour.
class Painting {
  constructor({ image, map, view, tints, colors, scale }) {
    const { width: w, height: h } = image;
    const px = new Uint32Array(image.data.buffer);
    Object.assign(this, { image, map, view, tints, colors, scale });
    this.canvas = { px, w, h, sx: w / (view.x1 - view.x0), sy: h / (view.y1 - view.y0), view };
    this.next = -1; // number of the next REACH blocks; -1 before the background
    this.spent = 0; // milliseconds
  }

  // go paints until a deadline and reports whether the image is complete.
  go(until) {
    const start = performance.now();
    const done = this.slices(until);
    this.spent += performance.now() - start;
    return done;
  }

  // slices paints in slices until a deadline.
  slices(until) {
    const { map, view, tints, canvas, colors, scale } = this;
    if (this.next < 0) {
      this.ground();
      this.next = 0;
    }
    const n = atMost(map.rects.born, view.last);
    const reach = reachOf(map.rects);
    for (; this.next * REACH < n; this.next++) {
      if (reach[this.next] < view.first) continue;
      if (performance.now() >= until) return false;
      const from = this.next * REACH;
      tints.fill(this.next);
      drawBlocks(canvas, map.rects, from, Math.min(from + REACH, n), tints.pixels, colors, scale);
    }
    return true;
  }

  // ground paints the background of the blocks.
  ground() {
    const { map, canvas, colors } = this;
    canvas.px.fill(colors.paper);
    const { regions } = map;
    for (let i = 0; i < regions.y.length; i++) {
      const r = pixelRect(canvas, regions.born[i], regions.dies[i], regions.y[i], regions.y[i] + regions.size[i]);
      if (r) fill(canvas, r, colors.held);
    }
    if (!map.complete) shade(canvas, map.raster, colors);
  }
}

// atMost returns the number of elements of a sorted array that are at most a limit.
function atMost(list, limit) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

// pixelRect returns the pixels from column a to b and from row c to d, at least one each, or null outside the view.
function pixelRect(canvas, born, dies, low, high) {
  const { view, sx, sy, w, h } = canvas;
  if (high <= view.y0 || low >= view.y1) return null;
  const from = (view.xOf(born) - view.x0) * sx;
  const to = dies === NEVER ? w : (view.xOf(dies) - view.x0) * sx;
  if (to < 0 || from >= w) return null;
  const a = Math.max(0, Math.floor(from));
  const b = Math.min(w, Math.max(Math.floor(to), a + 1));
  const bottom = Math.round(h - (low - view.y0) * sy);
  const top = Math.round(h - (high - view.y0) * sy);
  const d = Math.max(1, Math.min(h, bottom));
  const c = Math.min(Math.max(0, top), d - 1);
  return { a, b, c, d };
}

// fill fills a rectangle.
function fill({ px, w }, { a, b, c, d }, color) {
  for (let y = c; y < d; y++) px.fill(color, y * w + a, y * w + b);
}

// drawBlocks draws some blocks. Most of a million are smaller than a pixel, so drawing one allocates nothing
// and calls no function for a small one.
function drawBlocks(canvas, rects, from, to, pixels, colors, scale) {
  const { px, w, h, sx, sy, view } = canvas;
  const { x0, y0, y1, first, xOf, linear } = view;
  const { born, dies, freed, y, size, requested } = rects;
  for (let i = from; i < to; i++) {
    if (dies[i] < first) continue;
    const low = y[i];
    const high = low + size[i];
    if (high <= y0 || low >= y1) continue;
    const left = ((linear ? born[i] : xOf(born[i])) - x0) * sx;
    const right = dies[i] === NEVER ? w : ((linear ? dies[i] : xOf(dies[i])) - x0) * sx;
    if (right < 0 || left >= w) continue;
    const a = left > 0 ? Math.floor(left) : 0;
    const b = Math.min(w, Math.max(Math.floor(right), a + 1));
    const bottom = Math.round(h - (low - y0) * sy);
    const top = Math.round(h - (high - y0) * sy);
    const d = Math.max(1, Math.min(h, bottom));
    const c = Math.min(Math.max(0, top), d - 1);
    const color = pixels[i];
    if (b - a > 16) {
      for (let row = c; row < d; row++) px.fill(color, row * w + a, row * w + b);
    } else {
      for (let row = c; row < d; row++) {
        const end = row * w + b;
        for (let at = row * w + a; at < end; at++) px[at] = color;
      }
    }
    if (b - a < 3) continue;
    const loss = ((size[i] - requested[i]) / size[i]) * (bottom - top);
    if (freed[i] < dies[i] || loss >= 2 * scale || d - c > 4 * scale)
      decorate(canvas, rects, i, { a, b, c, d, left: left >= 0 }, loss, color, colors, scale);
  }
}

// decorate draws the details that fit on a block: an edge, stripes on rounding, and dots from the
// free of a delayed block to its end.
function decorate(canvas, rects, i, r, loss, color, colors, scale) {
  const wide = r.b - r.a;
  if (rects.freed[i] < rects.dies[i] && wide > 3) {
    const y = rects.y[i];
    const p = pixelRect(canvas, rects.freed[i], rects.dies[i], y, y + rects.size[i]);
    if (p) texture(canvas, p, colors.dark, (x, row) => x % 4 === 0 && row % 4 === 0);
  }
  if (loss >= 2 * scale) {
    const top = { ...r, d: Math.min(r.d, r.c + Math.round(loss)) };
    texture(canvas, top, colors.paper, (x, row) => (x + row) % 5 === 0);
  }
  if (wide > 4 * scale && r.d - r.c > 4 * scale) edge(canvas, r, darker(color));
}

// texture sets the pixels of a rectangle that a predicate selects.
function texture({ px, w }, { a, b, c, d }, color, rule) {
  for (let y = c; y < d; y++) for (let x = a; x < b; x++) if (rule(x, y)) px[y * w + x] = color;
}

// edge draws the upper and the left edge of a rectangle.
function edge({ px, w }, { a, b, c, d, left }, color) {
  px.fill(color, c * w + a, c * w + b);
  if (left) for (let y = c; y < d; y++) px[y * w + a] = color;
}

// darker returns a pixel with a third less light.
function darker(p) {
  const part = (shift) => Math.floor(((p >>> shift) & 255) * 0.66) << shift;
  return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
}

// shade darkens the raster of the remaining blocks, by the share of each cell that they cover.
function shade(canvas, raster, colors) {
  const { px, w, h, view, sx, sy } = canvas;
  if (raster.w === 0 || raster.h === 0) return;
  const blend = Array.from({ length: 256 }, (_, v) =>
    v ? between(colors.held, colors.cover, 0.15 + (0.85 * v) / 255) : 0,
  );
  const row = new Int32Array(h);
  for (let y = 0; y < h; y++)
    row[y] = Math.min(Math.floor((view.y0 + (h - y - 0.5) / sy) / raster.row_bytes), raster.h - 1);
  const first = Math.max(Math.floor(view.first / raster.column_events), 0);
  for (let column = first; column < raster.w; column++) {
    const from = column * raster.column_events;
    if (from > view.last) break;
    const a = Math.max(0, Math.floor((view.xOf(from) - view.x0) * sx));
    const b = Math.min(w, Math.floor((view.xOf(from + raster.column_events) - view.x0) * sx));
    for (let y = 0; y < h; y++) {
      const v = raster.data[column * raster.h + row[y]];
      if (v && b > a) px.fill(blend[v], y * w + a, y * w + b);
    }
  }
}

// between returns a pixel between two; share 0 is the first.
function between(p, q, share) {
  const part = (shift) => {
    const x = (p >>> shift) & 255;
    return Math.round(x + (((q >>> shift) & 255) - x) * share) << shift;
  };
  return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
}

// blockAt returns the index of the block at an event and an offset on the address axis, or -1.
function blockAt(rects, event, y) {
  const reach = reachOf(rects);
  for (let i = atMost(rects.born, event) - 1; i >= 0; i--) {
    const k = Math.floor(i / REACH);
    if (reach[k] <= event) i = k * REACH;
    else if (rects.dies[i] > event && rects.y[i] <= y && y < rects.y[i] + rects.size[i]) return i;
  }
  return -1;
}

// blockById returns the index of the block of an allocation, or -1. Of several with that ID it is the
// one that is live at an event, or the last.
function blockById(rects, id, event) {
  let last = -1;
  for (let i = rects.id.indexOf(id); i >= 0; i = rects.id.indexOf(id, i + 1)) {
    last = i;
    if (rects.born[i] <= event && event < rects.dies[i]) return i;
  }
  return last;
}

// addressAt returns the address at an offset on the address axis.
function addressAt(ranges, y) {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle].y <= y) low = middle + 1;
    else high = middle;
  }
  const r = ranges[Math.max(low - 1, 0)];
  return r ? r.addr + (y - r.y) : y;
}
