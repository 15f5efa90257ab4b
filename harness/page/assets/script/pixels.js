// The memory map as pixels. Rectangles go straight into an image: a hundred thousand take some tens of
// milliseconds, where drawing them one by one through the canvas takes many times that.

// View is the part of events and addresses that an image shows.
//   xOf      position of an event on the axis, see Axis.x
//   x0, x1   positions at the left and right edge
//   y0, y1   bytes of the axis of addresses at the lower and upper edge

// paintMap draws blocks, and the regions they lie in, into an image of w times h pixels. colors are pixels: paper, held (memory that is held),
// cover (blocks that are not kept one by one) and dark. paint gives each block its colour.
function paintMap(image, map, view, paint, colors, scale) {
  const { width: w, height: h } = image;
  const px = new Uint32Array(image.data.buffer);
  const canvas = { px, w, h, sx: w / (view.x1 - view.x0), sy: h / (view.y1 - view.y0), view };
  px.fill(colors.paper);
  const { regions, rects } = map;
  for (let i = 0; i < regions.y.length; i++) {
    const r = place(canvas, regions.born[i], regions.dies[i], regions.y[i], regions.y[i] + regions.size[i]);
    if (r) fill(canvas, r, colors.held);
  }
  if (!map.complete) shade(canvas, map.raster, colors);
  const n = atMost(rects.born, view.last);
  for (let i = 0; i < n; i++) {
    if (rects.dies[i] < view.first) continue;
    drawBlock(canvas, rects, i, paint[i], colors, scale);
  }
}

// atMost returns how many of rising numbers are at most a limit.
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

// place returns the pixels from column a to b and from row c to d, at least one each, or null outside.
function place(canvas, born, dies, low, high) {
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
  return { a, b, c, d, left: from >= 0, right: to <= w, whole: bottom - top };
}

// fill fills a rectangle.
function fill({ px, w }, { a, b, c, d }, color) {
  for (let y = c; y < d; y++) px.fill(color, y * w + a, y * w + b);
}

// drawBlock draws a block: its colour, an edge where there is room, stripes on what rounding added and dots from
// the free to the end of a delayed one.
function drawBlock(canvas, rects, i, color, colors, scale) {
  const y = rects.y[i];
  const size = rects.size[i];
  const r = place(canvas, rects.born[i], rects.dies[i], y, y + size);
  if (!r) return;
  fill(canvas, r, color);
  const wide = r.b - r.a;
  const high = r.d - r.c;
  if (rects.freed[i] < rects.dies[i] && wide > 3) {
    const p = place(canvas, rects.freed[i], rects.dies[i], y, y + size);
    if (p) texture(canvas, p, colors.dark, (x, row) => x % 4 === 0 && row % 4 === 0);
  }
  const loss = ((size - rects.requested[i]) / size) * r.whole;
  if (loss >= 2 * scale && wide > 2) {
    const top = { ...r, d: Math.min(r.d, r.c + Math.round(loss)) };
    texture(canvas, top, colors.paper, (x, row) => (x + row) % 5 === 0);
  }
  if (wide > 4 * scale && high > 4 * scale) edge(canvas, r, darker(color));
}

// texture sets the pixels of a rectangle that a rule chooses.
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

// shade darkens what blocks cover that are not kept one by one, by the share of each cell.
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

// blockAt returns the number of the block at an event and a place on the axis of addresses, or -1.
function blockAt(rects, event, y) {
  for (let i = atMost(rects.born, event) - 1; i >= 0; i--) {
    if (rects.dies[i] > event && rects.y[i] <= y && y < rects.y[i] + rects.size[i]) return i;
  }
  return -1;
}

// blockById returns the number of the block of an allocation, or -1. Of several of that name it is the
// one that is there at an event, or the last.
function blockById(rects, id, event) {
  let last = -1;
  for (let i = 0; i < rects.id.length; i++) {
    if (rects.id[i] !== id) continue;
    last = i;
    if (rects.born[i] <= event && event < rects.dies[i]) return i;
  }
  return last;
}

// addressAt returns the address at a place on the axis of addresses.
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
