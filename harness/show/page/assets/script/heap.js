// The heap after one event: recorded, or rebuilt from the rectangles of the map.

// heapAt returns the chunks of a run after an event, or those of the nearest recorded snapshot if they are unknown
// for that event. "how" is recorded, rebuilt, nearest, or ended if the run had ended before.
function heapAt(trace, run, event) {
  const known = run.instants.find((i) => i.event === event) ?? run.fetched?.get(event);
  if (known) return recorded(trace, known, "recorded");
  const end = run.instants.find((i) => i.labels.includes("end"));
  if (end && event > end.event) return recorded(trace, end, "ended");
  const { map } = run;
  if (run.mapAt?.event === event) return rebuilt(trace, run.mapAt.map, event);
  if (map.complete && !map.regions.left_out.count) return rebuilt(trace, map, event);
  const best = nearest(run, event);
  return best ? recorded(trace, best, "nearest") : { event, how: "unknown", regions: [], chunks: [], more: 0 };
}

// nearest returns the recorded snapshot nearest to an event, or null.
function nearest(run, event) {
  let best = null;
  for (const i of run.instants)
    if (!best || Math.abs(i.event - event) < Math.abs(best.event - event)) best = i;
  return best;
}

// recorded returns the chunks of a recorded snapshot.
function recorded(trace, instant, how) {
  const c = instant.chunks;
  const chunks = Array.from(c.addr, (_, i) => rowOf(c, i));
  const stacks = instant.stacks ?? trace.stacks;
  return { event: instant.event, how, regions: instant.regions, chunks, more: instant.more, stacks };
}

// The states of chunks, numbered as in package alloc.
const STATE_FREE = 0;
const STATE_LIVE = 1;
const STATE_PENDING = 2;
const STATE_UNMAPPED = 4;
const STATE_ALIASED = 6;

// rebuilt returns the state after an event from the rectangles: the regions, the blocks in them, the gaps between
// mapped pages, and the rest as free. Adjacent free chunks of a region appear as one.
function rebuilt(trace, map, event) {
  const { regions, gaps } = regionsAt(map, event);
  const taken = gaps;
  for (let i = 0; i < atMost(map.rects.born, event); i++) {
    if (map.rects.dies[i] <= event) continue;
    const b = rowOf(map.rects, i);
    taken.push({ ...b, addr: addressAt(map.ranges, b.y), state: b.freed <= event ? STATE_PENDING : STATE_LIVE });
  }
  taken.sort((a, b) => a.addr - b.addr);
  const chunks = [];
  let next = 0;
  regions.forEach((r, region) => {
    let at = r.addr;
    const end = r.addr + r.size;
    const plain = { requested: 0, class: -1, stream: r.stream, tag: 0, id: 0 };
    const free = (to) => {
      if (to > at) chunks.push({ ...plain, addr: at, region, size: to - at, state: STATE_FREE });
    };
    for (; next < taken.length && taken[next].addr < end; next++) {
      free(taken[next].addr);
      chunks.push({ ...plain, ...taken[next], region });
      at = taken[next].addr + taken[next].size;
    }
    free(end);
  });
  return { event, how: "rebuilt", regions, chunks, more: taken.length - next, stacks: map.stacks ?? trace.stacks };
}

// regionsAt returns the regions after an event by address, and the gaps between the mapped pages of one region.
// Adjacent regions stay separate.
function regionsAt(map, event) {
  const { y, size, stream, pool, region, born, dies } = map.regions;
  const areas = [];
  for (let i = 0; i < y.length; i++) {
    if (event < born[i] || dies[i] <= event) continue;
    areas.push({ addr: addressAt(map.ranges, y[i]), size: size[i], stream: stream[i], pool: pool[i], number: region[i] });
  }
  const regions = [];
  const gaps = [];
  for (const a of areas.sort((a, b) => a.addr - b.addr)) {
    const last = regions.at(-1);
    if (last?.number !== a.number) {
      regions.push(a);
      continue;
    }
    const end = last.addr + last.size;
    if (a.addr > end) gaps.push({ addr: end, size: a.addr - end, state: STATE_UNMAPPED });
    last.size = a.addr + a.size - last.addr;
  }
  return { regions, gaps };
}

// heldBytes returns the mapped bytes of the regions of a state.
function heldBytes(heap) {
  const without = (n, c) => (c.state === STATE_UNMAPPED || c.state === STATE_ALIASED ? n - c.size : n);
  return heap.chunks.reduce(without, heap.regions.reduce((n, r) => n + r.size, 0));
}

// rowsOf lays regions out in rows of equal size. Each region begins a row as long as that keeps the picture
// small; otherwise they follow each other. A piece lies in one row.
function rowsOf(regions, most) {
  let width = 2 ** 20;
  const rows = () => regions.reduce((n, r) => n + Math.ceil(r.size / width), 0);
  const apart = regions.length <= most;
  const total = regions.reduce((n, r) => n + r.size, 0);
  while (apart ? rows() > most : total / width > most) width *= 2;
  if (regions.length === 1 && total < width) width = total;
  const pieces = [];
  let row = 0;
  let used = 0;
  regions.forEach((r, k) => {
    if (apart && used) [row, used] = [row + 1, 0];
    for (let at = 0; at < r.size;) {
      if (used >= width) [row, used] = [row + 1, 0];
      const size = Math.min(width - used, r.size - at);
      pieces.push({ region: k, row, from: used, addr: r.addr + at, size });
      at += size;
      used += size;
    }
  });
  return { width, pieces, rows: pieces.length ? row + 1 : 0 };
}
