// Data that a served page requests on zoom. A page in a file requests nothing.

const LIVE_BLOCKS = 1_000_000; // of a window, so many are drawn in some frames
const LIVE_BREATH = 50_000; // blocks from which on the page breathes while they are unpacked
const LIVE_BUCKETS = 4096; // more than a screen has columns
const LIVE_STATES = 64; // that are kept
const LIVE_WAIT = 90; // milliseconds that a window must rest before it is asked for

// Live requests data from the program that serves the page.
class Live {
  constructor(app) {
    this.app = app;
    this.asked = new Map(); // what is under way, by what it is for
    this.says = el("p", { class: "vy-alarm", role: "alert", hidden: true });
    document.querySelector("header").after(this.says);
    for (const trace of app.report.traces) {
      trace.whole = { buckets: trace.buckets, bound: trace.bound, time: trace.time, shift: trace.shift };
      for (const run of trace.runs) run.whole = run.series;
    }
    app.state.view((changed) => {
      const has = (...names) => names.some((n) => changed.has(n));
      if (has("from", "to", "trace", "hidden")) this.look();
      if (has("event", "run", "trace")) this.state();
    });
    this.tell();
    this.look();
    this.state();
  }

  // look requests the blocks and curves of the window once it has stopped moving.
  look() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const panel of this.app.map.list ?? []) this.blocks(panel);
      this.curves();
    }, LIVE_WAIT);
  }

  // ask sends a request and passes the answer on. A request of the same kind replaces one that is
  // in flight.
  async ask(what, question, show) {
    this.asked.get(what)?.abort();
    const stop = new AbortController();
    this.asked.set(what, stop);
    this.tell();
    try {
      const answer = await fetch(question, { signal: stop.signal });
      if (!answer.ok) throw new Error(await answer.text());
      const full = await answered(await answer.arrayBuffer());
      placeSites(this.app.trace, full.stacks, full.rects ?? full.chunks);
      if (stop.signal.aborted) return;
      this.says.hidden = true;
      show(full);
    } catch (e) {
      if (e.name === "AbortError") return;
      this.says.textContent = `The program that serves this page does not answer: ${e.message}. The page shows the last data that it received.`;
      this.says.hidden = false;
    } finally {
      if (this.asked.get(what) === stop) this.asked.delete(what);
      this.tell();
    }
  }

  // tell exposes the number of requests in flight in the page.
  tell() {
    document.documentElement.dataset.asking = this.asked.size;
  }

  // drop cancels a request in flight.
  drop(what) {
    this.asked.get(what)?.abort();
    this.asked.delete(what);
    this.tell();
  }

  // blocks requests the blocks of a map's window and of half its width on either side, so that panning finds
  // them loaded.
  blocks(panel) {
    const { state, trace } = this.app;
    const { map, index } = panel.run;
    const what = `tile ${index}`;
    if (map.complete) {
      if (panel.tile !== map) panel.show(map);
      return;
    }
    const [low, high] = [Math.floor(panel.y0), Math.ceil(panel.y1)];
    const { of } = panel.tile;
    const there = of && of.from <= state.from && state.to <= of.to && of.low <= low && high <= of.high;
    const fine = there && of.to - of.from <= 2.2 * (state.to - state.from) && of.high - of.low <= 1.1 * (high - low);
    if (there && (panel.tile.complete || fine)) {
      this.drop(what);
      return;
    }
    const more = (state.to - state.from) / 2;
    const from = Math.max(Math.floor(state.from - more), 0);
    const to = Math.min(Math.ceil(state.to + more), trace.events);
    const q = new URLSearchParams({ run: index, from, to, low, high, most: LIVE_BLOCKS });
    this.ask(what, `tile?${q}`, (t) => panel.show({ ...map, ...t, of: { from, to, low, high } }));
  }

  // curves requests the curves of the window in finer buckets.
  curves() {
    const { state, trace } = this.app;
    const [from, to] = [Math.max(Math.floor(state.from), 0), Math.min(Math.ceil(state.to), trace.events)];
    if (trace.whole.shift === 0) return;
    if (to - from >= trace.events / 2) {
      this.drop("series");
      if (trace.buckets !== trace.whole.buckets) this.join(null);
      return;
    }
    const q = new URLSearchParams({ from, to, most: LIVE_BUCKETS });
    this.ask("series", `series?${q}`, (part) => this.join(part));
  }

  // join replaces the buckets of the whole trace with finer ones, or restores them.
  join(part) {
    const { trace } = this.app;
    const { whole } = trace;
    Object.assign(trace, whole);
    for (const run of trace.runs) run.series = run.whole;
    if (part) {
      const n = whole.buckets.n;
      const a = atMost(whole.buckets.first, part.buckets.first[0]) - 1;
      const b = atMost(whole.buckets.last, part.buckets.last[part.buckets.n - 1]);
      const mixed = (all, some) => {
        const list = new all.constructor(a + some.length + n - b);
        list.set(all.subarray(0, a));
        list.set(some, a);
        list.set(all.subarray(b), a + some.length);
        return list;
      };
      const deep = (all, some) => {
        if (ArrayBuffer.isView(all)) return mixed(all, some ?? new all.constructor(part.buckets.n));
        return Object.fromEntries(Object.keys(all).map((k) => [k, deep(all[k], some?.[k])]));
      };
      trace.buckets = {
        n: a + part.buckets.n + n - b,
        first: mixed(whole.buckets.first, part.buckets.first),
        last: mixed(whole.buckets.last, part.buckets.last),
      };
      trace.bound = mixed(whole.bound, part.bound);
      if (whole.time) trace.time = rising(mixed(whole.time, part.time));
      trace.shift = part.shift;
      part.runs.forEach((series, i) => {
        if (trace.runs[i].drawn) trace.runs[i].series = deep(trace.runs[i].whole, series);
      });
    }
    trace.exact = trace.shift === 0;
    this.app.timeline.renew();
  }

  // state requests the heap after the selected event.
  state() {
    const { state, trace } = this.app;
    const run = this.app.instant.run();
    const { event } = state;
    if (!run) return;
    run.asked ??= new Map();
    if (run.instants.some((i) => i.event === event) || run.asked.has(event)) {
      this.drop("blocks then");
      this.drop("state");
      return;
    }
    const show = () => {
      if (this.app.trace === trace && state.event === event && this.app.instant.run() === run)
        this.app.instant.renew();
    };
    // The blocks of the event are known at once; the state in full takes a replay up to there.
    const { map } = run;
    if (!map.complete && !map.regions.left_out.count) {
      const q = { run: run.index, from: event, to: event + 1, low: 0, high: Math.ceil(map.space), most: LIVE_BLOCKS };
      this.ask("blocks then", `tile?${new URLSearchParams(q)}`, (tile) => {
        if (!tile.complete || run.asked.has(event)) return;
        run.then = { event, map: { ...map, ...tile } };
        show();
      });
    }
    const q = new URLSearchParams({ run: run.index, event });
    this.ask("state", `state?${q}`, (instant) => {
      if (run.asked.size >= LIVE_STATES) run.asked.delete(run.asked.keys().next().value);
      run.asked.set(event, instant);
      show();
    });
  }
}

// answered decodes an answer: the length of a description, the description, and its arrays.
async function answered(buffer) {
  const n = new DataView(buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, n)));
  const full = revive(about, buffer, 4 + n);
  if (full.rects) full.rects = await unpacked(full.rects);
  return full;
}

// unpacked decodes packed rectangles; see Tile in package page. 32-bit numbers wrap.
async function unpacked(packed) {
  const { n } = packed;
  const rects = { class: packed.class };
  if (packed.stack) rects.stack = whole(packed.stack);
  const breath = () => (n < LIVE_BREATH ? null : new Promise((done) => setTimeout(done)));
  for (const name of ["y", "size", "tag", "stream", "id"]) {
    rects[name] = whole(packed[name]);
    await breath();
  }
  const of = (type, f) => {
    const list = new type(n);
    for (let i = 0; i < n; i++) list[i] = f(i);
    return list;
  };
  const [loss, born, life, tail] = ["loss", "born", "life", "tail"].map((name) => whole(packed[name]));
  let at = 0;
  rects.requested = of(Float64Array, (i) => rects.size[i] - loss[i]);
  await breath();
  rects.born = of(Uint32Array, (i) => (at += born[i]));
  await breath();
  rects.dies = of(Uint32Array, (i) => rects.born[i] + life[i]);
  await breath();
  rects.freed = of(Uint32Array, (i) => rects.dies[i] - tail[i]);
  reachOf(rects);
  return rects;
}

// whole decodes a packed column.
function whole({ v, by }) {
  if (by === 1) return v;
  const list = new Float64Array(v.length);
  for (let i = 0; i < v.length; i++) list[i] = v[i] * by;
  return list;
}
