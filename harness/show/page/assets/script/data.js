// The data of the page: a description in JSON, and all arrays in one compressed piece beside it.

const ARRAYS = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  i16: Int16Array,
  f32: Float32Array,
  f64: Float64Array,
};

// NEVER is the event of what does not happen within the trace.
const NEVER = 0xffffffff;

// OTHER_STREAM stands for every stream that is not in the list.
const OTHER_STREAM = 0xffff;

// fromBase64 returns the bytes that a text in base64 stands for. Browsers from before 2025 do not know the short way,
// which takes a fifth of the time.
function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const packed = atob(text.trim());
  const raw = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) raw[i] = packed.charCodeAt(i);
  return raw;
}

// unpack returns the bytes of compressed data in base64.
async function unpack(text) {
  const raw = fromBase64(text);
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// revive puts arrays in the place of references to them. They begin at a byte of the buffer.
function revive(value, buffer, base = 0) {
  if (Array.isArray(value)) return value.map((v) => revive(v, buffer, base));
  if (value === null || typeof value !== "object") return value;
  if (typeof value.t === "string" && typeof value.o === "number" && value.t in ARRAYS) {
    return new ARRAYS[value.t](buffer, base + value.o, value.n);
  }
  for (const key of Object.keys(value)) value[key] = revive(value[key], buffer, base);
  return value;
}

// readReport returns the report that the page holds.
async function readReport() {
  const report = JSON.parse(document.getElementById("vy-report").textContent);
  const data = document.getElementById("vy-data");
  const full = revive(report, await unpack(data.textContent));
  data.remove(); // the text is long, and nobody needs it any more
  full.traces.forEach(prepare);
  return full;
}

// prepare adds to a trace what is asked for often.
function prepare(trace) {
  trace.shift = 0;
  while (trace.buckets.n > 1 && trace.buckets.first[1] >> trace.shift > 1) trace.shift++;
  trace.exact = trace.shift === 0;
  trace.runs.forEach((run, i) => {
    run.index = i;
    run.drawn = !run.missing && Boolean(run.series);
  });
  if (trace.time) trace.time = rising(trace.time);
  trace.streams ??= []; // a trace without events has none
  trace.sites = sitesOf(trace);
  for (const run of trace.runs) {
    placeSites(trace, trace.stacks, run.map?.rects);
    for (const i of run.instants ?? []) placeSites(trace, trace.stacks, i.chunks);
  }
  trace.paint = tellingPaint(trace);
}

// tellingPaint returns the way to colour the blocks of a trace that has something to tell.
function tellingPaint(trace) {
  const drawn = trace.runs.filter((r) => r.map);
  const some = (of) => drawn.some((r) => r.map.rects[of]?.some((v) => v > 0));
  if (some("site")) return "site";
  if (some("tag")) return "tag"; // marks and refusals have tags, too
  if (trace.streams.length > 1) return "stream";
  const told = (run) => new Set(run.map.rects.class.filter(hasColor)).size > 1;
  return drawn.every(told) ? "class" : "lifetime";
}

// rising returns times that never fall: what has none yet takes the first one.
function rising(times) {
  const first = times.find((t) => t >= 0) ?? 0;
  let most = first;
  return times.map((t) => (most = Math.max(most, t)));
}

// bucketOf returns the bucket of an event.
function bucketOf(trace, event) {
  return Math.max(atMost(trace.buckets.first, event) - 1, 0);
}

// streamName returns a stream as people read it.
function streamName(trace, index) {
  if (index === OTHER_STREAM) return "several or other streams";
  const s = trace.streams[index] ?? 0;
  return s === 0 ? "default stream" : s > 4096 ? `stream ${address(s)}` : `stream ${s}`;
}

// tagName returns a tag as people read it.
function tagName(trace, index) {
  return trace.tags[index] || (trace.tags.length > 1 ? "no tag, or a rare one" : "no tag");
}

// STACK_LEFT_OUT is the number of a stack that there was no room for; 0 is that of none that is known.
const STACK_LEFT_OUT = 1;

// siteOf returns the call site of a stack, null where it is not known.
function siteOf(stacks, number) {
  if (!stacks || !number || number === STACK_LEFT_OUT) return null;
  stacks.texts ??= new TextDecoder().decode(stacks.places).split("\n");
  return stacks.texts[stacks.sites[number - 2]];
}

// stackLines returns the places of a stack, the innermost first, or null where none is known.
function stackLines(stacks, number) {
  if (!stacks || !number) return null;
  if (number === STACK_LEFT_OUT) return ["omitted: the page has room for the stacks of the heaviest blocks only"];
  stacks.texts ??= new TextDecoder().decode(stacks.places).split("\n");
  const from = stacks.starts[number - 2];
  return Array.from(stacks.frames.subarray(from, stacks.starts[number - 1]), (n) =>
    n === NEVER ? "… and further out" : stacks.texts[n],
  );
}

// innermost returns the first places of a stack as names and texts: none where it is not known.
function innermost(stacks, number) {
  const lines = stackLines(stacks, number);
  if (!lines) return [];
  const rest = lines.length - MOST_SHOWN;
  const shown = lines.slice(0, MOST_SHOWN).join("\n");
  return [["asked for at", rest > 0 ? `${shown}\n… ${plural(rest, "more", "more")}: click the block` : shown]];
}

// MOST_SHOWN is how many places of a stack are shown at the pointer.
const MOST_SHOWN = 4;

// Axis maps events to the common horizontal axis and back. The position of an event is that of the state
// after it; the axis ends at the number of events, where the last state ends.
class Axis {
  constructor(trace, unit) {
    this.trace = trace;
    this.times = unit === "time" ? trace.time : null;
    this.start = this.times && this.times.length ? this.times[0] : 0;
    this.label = this.times ? "time since the first event" : "event";
  }

  // x returns the position of an event: its number, or nanoseconds since the first.
  x(event) {
    if (!this.times || this.times.length === 0) return event;
    const b = bucketOf(this.trace, event);
    const { first, last } = this.trace.buckets;
    const from = (b ? this.times[b - 1] : this.start) - this.start;
    const share = Math.min((event - first[b] + 1) / (last[b] - first[b] + 1), 1);
    return from + (this.times[b] - this.start - from) * share;
  }

  // event returns the event at a position, with its fraction.
  event(x) {
    if (!this.times || this.times.length === 0) return x;
    let low = 0;
    let high = this.trace.events;
    for (let i = 0; i < 50 && high - low > 1e-3; i++) {
      const middle = (low + high) / 2;
      if (this.x(middle) < x) low = middle;
      else high = middle;
    }
    return high;
  }

  // text returns a position as people read it.
  text(x) {
    return this.times ? nanoseconds(x) : count(x);
  }

  // texts returns positions at even steps, with one unit.
  texts(values) {
    if (!this.times) return values.map(count);
    const most = Math.max(...values.map(Math.abs), 1);
    const [unit, name] =
      most < 1e3 ? [1, "ns"] : most < 1e6 ? [1e3, "µs"] : most < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const digits = values.length < 2 ? 0 : decimals((values[1] - values[0]) / unit);
    return values.map((v) => `${(v / unit).toFixed(digits)} ${name}`);
  }
}
