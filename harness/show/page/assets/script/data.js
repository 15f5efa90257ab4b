// The data of the page: a description in JSON, and one compressed block with all arrays.

const ARRAYS = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  i16: Int16Array,
  f32: Float32Array,
  f64: Float64Array,
};

// NEVER is the event number of something that does not happen within the trace.
const NEVER = 0xffffffff;

// OTHER_STREAM is the index of all streams that are not in the list.
const OTHER_STREAM = 0xffff;

// fromBase64 decodes base64. Browsers from before 2025 lack Uint8Array.fromBase64, which is
// five times as fast.
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

// revive replaces references with the arrays, which begin at an offset of the buffer.
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
  data.remove(); // frees the memory of the text
  full.traces.forEach(prepare);
  return full;
}

// prepare adds derived tables to a trace.
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
    addSites(trace, trace.stacks, run.map?.rects);
    for (const i of run.instants ?? []) addSites(trace, trace.stacks, i.chunks);
  }
  trace.paint = bestPaint(trace);
}

// bestPaint returns the colouring of blocks that distinguishes the most in this trace.
function bestPaint(trace) {
  const drawn = trace.runs.filter((r) => r.map);
  const some = (of) => drawn.some((r) => r.map.rects[of]?.some((v) => v > 0));
  if (some("site")) return "site";
  if (some("tag")) return "tag"; // marks and refusals have tags, too
  if (trace.streams.length > 1) return "stream";
  const distinct = (run) => new Set(run.map.rects.class.filter(hasColor)).size > 1;
  return drawn.every(distinct) ? "class" : "lifetime";
}

// rising returns nondecreasing times: events before the first time get that time.
function rising(times) {
  const first = times.find((t) => t >= 0) ?? 0;
  let most = first;
  return times.map((t) => (most = Math.max(most, t)));
}

// bucketOf returns the bucket of an event.
function bucketOf(trace, event) {
  return Math.max(atMost(trace.buckets.first, event) - 1, 0);
}

// streamName returns the display name of a stream.
function streamName(trace, index) {
  if (index === OTHER_STREAM) return "several or other streams";
  const s = trace.streams[index] ?? 0;
  return s === 0 ? "default stream" : s > 4096 ? `stream ${address(s)}` : `stream ${s}`;
}

// tagName returns the display name of a tag.
function tagName(trace, index) {
  return trace.tags[index] || (trace.tags.length > 1 ? "no tag, or a rare one" : "no tag");
}

// STACK_LEFT_OUT is the number of all omitted stacks; 0 means unknown.
const STACK_LEFT_OUT = 1;

// siteOf returns the call site of a stack, or null if unknown.
function siteOf(stacks, number) {
  if (!stacks || !number || number === STACK_LEFT_OUT) return null;
  stacks.texts ??= new TextDecoder().decode(stacks.places).split("\n");
  return stacks.texts[stacks.sites[number - 2]];
}

// stackLines returns the frames of a stack, innermost first, or null if unknown.
function stackLines(stacks, number) {
  if (!stacks || !number) return null;
  if (number === STACK_LEFT_OUT) return ["omitted: the page keeps the stacks of the blocks with the largest size × lifetime"];
  stacks.texts ??= new TextDecoder().decode(stacks.places).split("\n");
  const from = stacks.starts[number - 2];
  return Array.from(stacks.frames.subarray(from, stacks.starts[number - 1]), (n) =>
    n === NEVER ? "… outer frames omitted" : stacks.texts[n],
  );
}

// innermost returns the innermost frames of a stack as names and texts; empty if unknown.
function innermost(stacks, number) {
  const lines = stackLines(stacks, number);
  if (!lines) return [];
  const rest = lines.length - MOST_SHOWN;
  const shown = lines.slice(0, MOST_SHOWN).join("\n");
  return [["requested at", rest > 0 ? `${shown}\n… ${plural(rest, "more", "more")}: click the block` : shown]];
}

// MOST_SHOWN is the maximum number of frames in the tooltip.
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

  // text formats a position.
  text(x) {
    return this.times ? nanoseconds(x) : count(x);
  }

  // texts formats evenly spaced positions in one unit.
  texts(values) {
    if (!this.times) return values.map(count);
    const most = Math.max(...values.map(Math.abs), 1);
    const [unit, name] =
      most < 1e3 ? [1, "ns"] : most < 1e6 ? [1e3, "µs"] : most < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const digits = values.length < 2 ? 0 : decimals((values[1] - values[0]) / unit);
    return values.map((v) => `${(v / unit).toFixed(digits)} ${name}`);
  }
}
