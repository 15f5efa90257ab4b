// The state at one instant: as it was recorded, or rebuilt from the rectangles of the map.

// heapAt returns the chunks of a run after an event, or of the nearest recorded instant where they are not known
// for that event. "how" says which: recorded, rebuilt, nearest, or ended where the run did before.
function heapAt(trace, run, event) {
  const known = run.instants.find((i) => i.event === event) ?? run.asked?.get(event);
  if (known) return recorded(trace, known, "recorded");
  const end = run.instants.find((i) => i.labels.includes("end"));
  if (end && event > end.event) return recorded(trace, end, "ended");
  const { map } = run;
  if (run.then?.event === event) return rebuilt(trace, run.then.map, event);
  if (map.complete && !map.regions.left_out.count) return rebuilt(trace, map, event);
  const best = nearest(run, event);
  return best ? recorded(trace, best, "nearest") : { event, how: "unknown", regions: [], chunks: [], more: 0 };
}

// nearest returns the recorded instant nearest to an event, or null.
function nearest(run, event) {
  let best = null;
  for (const i of run.instants)
    if (!best || Math.abs(i.event - event) < Math.abs(best.event - event)) best = i;
  return best;
}

// recorded returns a recorded instant, chunk by chunk.
function recorded(trace, instant, how) {
  const c = instant.chunks;
  const chunks = Array.from(c.addr, (_, i) => rowOf(c, i));
  const stacks = instant.stacks ?? trace.stacks;
  return { event: instant.event, how, regions: instant.regions, chunks, more: instant.more, stacks };
}

// STATE_FREE, STATE_LIVE and STATE_PENDING are the states that can be rebuilt.
const STATE_FREE = 0;
const STATE_LIVE = 1;
const STATE_PENDING = 2;

// rebuilt returns what the rectangles say of an event: which memory is held, the blocks in it, and that the
// rest is free.
function rebuilt(trace, map, event) {
  const areas = [];
  for (let i = 0; i < map.regions.y.length; i++) {
    if (map.regions.born[i] <= event && event < map.regions.dies[i]) {
      areas.push({
        y: map.regions.y[i],
        size: map.regions.size[i],
        stream: map.regions.stream[i],
        pool: map.regions.pool[i],
      });
    }
  }
  const blocks = [];
  for (let i = 0; i < atMost(map.rects.born, event); i++) {
    if (map.rects.dies[i] > event) blocks.push(rowOf(map.rects, i));
  }
  const regions = joined(
    map,
    areas.sort((a, b) => a.y - b.y),
  );
  const chunks = [];
  blocks.sort((a, b) => a.y - b.y);
  for (const b of blocks) b.addr = addressAt(map.ranges, b.y);
  let next = 0;
  const live = (b, region) => ({ ...b, region, state: b.freed <= event ? STATE_PENDING : STATE_LIVE });
  regions.forEach((r, k) => {
    let at = r.addr;
    const end = r.addr + r.size;
    const free = (to) => {
      if (to > at)
        chunks.push({
          addr: at,
          region: k,
          size: to - at,
          requested: 0,
          state: STATE_FREE,
          class: -1,
          stream: r.stream,
          tag: 0,
          id: 0,
        });
    };
    for (; next < blocks.length && blocks[next].addr < end; next++) {
      free(blocks[next].addr);
      chunks.push(live(blocks[next], k));
      at = blocks[next].addr + blocks[next].size;
    }
    free(end);
  });
  return { event, how: "rebuilt", regions, chunks, more: blocks.length - next, stacks: map.stacks ?? trace.stacks };
}

// joined returns areas that lie side by side as one region. Memory that is mapped page by page would else
// be thousands.
function joined(map, areas) {
  const list = [];
  for (const a of areas) {
    const addr = addressAt(map.ranges, a.y);
    const last = list[list.length - 1];
    if (last && last.addr + last.size === addr && last.mapped) last.size += a.size;
    else if (last && last.addr + last.size === addr && a.size === last.size && a.size <= 32 * 2 ** 20) {
      Object.assign(last, { size: last.size + a.size, mapped: true });
    } else list.push({ addr, size: a.size, stream: a.stream, pool: a.pool });
  }
  return list;
}

// rowsOf lays regions out in rows of equally many bytes. Each region begins a row while that keeps the picture
// small; else they follow each other. A piece lies in one row.
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
