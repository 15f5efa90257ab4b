// Data that a served page requests on zoom. A page in a file requests nothing.

const LIVE_BLOCKS = 1_000_000; // most blocks of a window; the browser draws these in a few frames
const LIVE_YIELD = 50_000; // least blocks for which unpacking yields to the browser between columns
const LIVE_BUCKETS = 4096; // most buckets of the curves: more than a screen has columns
const LIVE_STATES = 64; // most heaps that are cached for a run
const LIVE_WAIT = 90; // milliseconds without a change of the window before a request

// Live requests data from the program that serves the page.
class Live {
  constructor(app) {
    this.app = app;
    this.inFlight = new Map(); // the abort controller of each request in flight, by kind
    this.alarm = el("p", { class: "vy-alarm", role: "alert", hidden: true });
    document.querySelector("header").after(this.alarm);
    for (const trace of app.report.traces) {
      trace.whole = { buckets: trace.buckets, bound: trace.bound, time: trace.time, shift: trace.shift };
      for (const run of trace.runs) run.whole = run.series;
    }
    app.state.view((changed) => {
      const has = (...names) => names.some((n) => changed.has(n));
      if (has("from", "to", "trace", "hidden")) this.schedule();
      if (has("event", "run", "trace")) this.requestState();
    });
    this.exposeRequests();
    this.schedule();
    this.requestState();
  }

  // schedule requests the blocks and curves of the window once it has stopped moving.
  schedule() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const panel of this.app.map.list ?? []) this.requestBlocks(panel);
      this.requestCurves();
    }, LIVE_WAIT);
  }

  // request fetches a URL and passes the decoded answer to show. A request of the same kind replaces one that is
  // in flight.
  async request(kind, url, show) {
    this.inFlight.get(kind)?.abort();
    const stop = new AbortController();
    this.inFlight.set(kind, stop);
    this.exposeRequests();
    try {
      const answer = await fetch(url, { signal: stop.signal });
      if (!answer.ok) throw new Error(await answer.text());
      const full = await decodeAnswer(await answer.arrayBuffer());
      addSites(this.app.trace, full.stacks, full.rects ?? full.chunks);
      if (stop.signal.aborted) return;
      this.alarm.hidden = true;
      show(full);
    } catch (e) {
      if (e.name === "AbortError") return;
      this.alarm.textContent = `The program that serves this page does not answer: ${e.message}. The page shows the last data that it received.`;
      this.alarm.hidden = false;
    } finally {
      if (this.inFlight.get(kind) === stop) this.inFlight.delete(kind);
      this.exposeRequests();
    }
  }

  // exposeRequests exposes the number of requests in flight in the page.
  exposeRequests() {
    document.documentElement.dataset.requests = this.inFlight.size;
  }

  // cancel aborts a request in flight.
  cancel(kind) {
    this.inFlight.get(kind)?.abort();
    this.inFlight.delete(kind);
    this.exposeRequests();
  }

  // requestBlocks requests the blocks of a map's window and of half its width on either side, so that panning finds
  // them loaded.
  requestBlocks(panel) {
    const { state, trace } = this.app;
    const { map, index } = panel.run;
    const kind = `tile ${index}`;
    if (map.complete) {
      if (panel.tile !== map) panel.show(map);
      return;
    }
    const [low, high] = [Math.floor(panel.y0), Math.ceil(panel.y1)];
    const { window: loaded } = panel.tile;
    const covered = loaded && loaded.from <= state.from && state.to <= loaded.to && loaded.low <= low && high <= loaded.high;
    const fine = covered && loaded.to - loaded.from <= 2.2 * (state.to - state.from) && loaded.high - loaded.low <= 1.1 * (high - low);
    if (covered && (panel.tile.complete || fine)) {
      this.cancel(kind);
      return;
    }
    const more = (state.to - state.from) / 2;
    const from = Math.max(Math.floor(state.from - more), 0);
    const to = Math.min(Math.ceil(state.to + more), trace.events);
    const q = new URLSearchParams({ run: index, from, to, low, high, most: LIVE_BLOCKS });
    this.request(kind, `tile?${q}`, (t) => panel.show({ ...map, ...t, window: { from, to, low, high } }));
  }

  // requestCurves requests the curves of the window in finer buckets.
  requestCurves() {
    const { state, trace } = this.app;
    const [from, to] = [Math.max(Math.floor(state.from), 0), Math.min(Math.ceil(state.to), trace.events)];
    if (trace.whole.shift === 0) return;
    if (to - from >= trace.events / 2) {
      this.cancel("series");
      if (trace.buckets !== trace.whole.buckets) this.mergeCurves(null);
      return;
    }
    const q = new URLSearchParams({ from, to, most: LIVE_BUCKETS });
    this.request("series", `series?${q}`, (part) => this.mergeCurves(part));
  }

  // mergeCurves replaces the buckets of the whole trace with finer ones, or restores them.
  mergeCurves(part) {
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

  // requestState requests the heap after the selected event.
  requestState() {
    const { state, trace } = this.app;
    const run = this.app.instant.run();
    const { event } = state;
    if (!run) return;
    run.fetched ??= new Map();
    if (run.instants.some((i) => i.event === event) || run.fetched.has(event)) {
      this.cancel("blocks at event");
      this.cancel("state");
      return;
    }
    const show = () => {
      if (this.app.trace === trace && state.event === event && this.app.instant.run() === run)
        this.app.instant.renew();
    };
    // The blocks at the event arrive first; the full state takes a replay up to the event.
    const { map } = run;
    if (!map.complete && !map.regions.left_out.count) {
      const q = { run: run.index, from: event, to: event + 1, low: 0, high: Math.ceil(map.space), most: LIVE_BLOCKS };
      this.request("blocks at event", `tile?${new URLSearchParams(q)}`, (tile) => {
        if (!tile.complete || run.fetched.has(event)) return;
        run.mapAt = { event, map: { ...map, ...tile } };
        show();
      });
    }
    const q = new URLSearchParams({ run: run.index, event });
    this.request("state", `state?${q}`, (instant) => {
      if (run.fetched.size >= LIVE_STATES) run.fetched.delete(run.fetched.keys().next().value);
      run.fetched.set(event, instant);
      show();
    });
  }
}

// decodeAnswer decodes an answer: the length of a description, the description, and its arrays.
async function decodeAnswer(buffer) {
  const n = new DataView(buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, n)));
  const full = revive(about, buffer, 4 + n);
  if (full.rects) full.rects = await unpackRects(full.rects);
  return full;
}

// unpackRects decodes packed rectangles; see WriteTile in package page. 32-bit numbers wrap.
async function unpackRects(packed) {
  const { n } = packed;
  const rects = { class: packed.class };
  if (packed.stack) rects.stack = unpackColumn(packed.stack);
  const yieldToPage = () => (n < LIVE_YIELD ? null : new Promise((done) => setTimeout(done)));
  for (const name of ["y", "size", "tag", "stream", "id"]) {
    rects[name] = unpackColumn(packed[name]);
    await yieldToPage();
  }
  const of = (type, f) => {
    const list = new type(n);
    for (let i = 0; i < n; i++) list[i] = f(i);
    return list;
  };
  const [loss, born, life, tail] = ["loss", "born", "life", "tail"].map((name) => unpackColumn(packed[name]));
  let at = 0;
  rects.requested = of(Float64Array, (i) => rects.size[i] - loss[i]);
  await yieldToPage();
  rects.born = of(Uint32Array, (i) => (at += born[i]));
  await yieldToPage();
  rects.dies = of(Uint32Array, (i) => rects.born[i] + life[i]);
  await yieldToPage();
  rects.freed = of(Uint32Array, (i) => rects.dies[i] - tail[i]);
  reachOf(rects);
  return rects;
}

// unpackColumn decodes a packed column.
function unpackColumn({ v, by }) {
  if (by === 1) return v;
  const list = new Float64Array(v.length);
  for (let i = 0; i < v.length; i++) list[i] = v[i] * by;
  return list;
}
