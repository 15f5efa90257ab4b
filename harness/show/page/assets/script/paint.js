// The colouring of blocks.

// PAINTS are the ways to colour blocks. kind returns the number of a colour among areas, or null for
// none; amount returns the value of the ramp, on a logarithmic scale.
const PAINTS = {
  site: { text: "call site", kind: (b) => (b.site ? b.site - 1 : null), name: (t, n) => withoutFolders(t.sites.names[n]) },
  tag: { text: "tag", kind: (b) => (b.tag ? b.tag - 1 : null), name: (t, n) => tagName(t, n + 1) },
  stream: {
    text: "stream",
    kind: (b) => (b.stream === OTHER_STREAM ? null : b.stream),
    name: (t, n) => streamName(t, n),
  },
  class: { text: "size class", kind: (b) => (b.class < 0 ? null : b.class), name: (t, n) => `class ${n}` },
  lifetime: {
    text: "lifetime",
    amount: (b, events) => Math.min(b.dies, events) - b.born,
    write: (v) => plural(v, "event"),
  },
  size: { text: "size", amount: (b) => b.size, write: bytes },
};

// rowOf returns row i of a column store as an object.
function rowOf(columns, i) {
  const row = { index: i };
  for (const name in columns) row[name] = columns[name][i];
  return row;
}

// colorFields copies the properties that colours depend on from rectangle i. One object is reused: a million would
// burden the garbage collector.
function colorFields(block, rects, i) {
  block.site = rects.site?.[i];
  block.tag = rects.tag[i];
  block.stream = rects.stream[i];
  block.class = rects.class[i];
  block.born = rects.born[i];
  block.dies = rects.dies[i];
  block.size = rects.size[i];
  return block;
}

// sitesOf numbers the call sites of a trace by the weight of their blocks, largest first; the numbers select colours.
function sitesOf(trace) {
  const weights = new Map();
  for (const { map } of trace.runs) {
    if (!map?.rects.stack) continue;
    const { stack, size, born, dies } = map.rects;
    for (let i = 0; i < stack.length; i++) {
      const site = siteOf(trace.stacks, stack[i]);
      const weight = size[i] * (Math.min(dies[i], trace.events) - born[i]);
      if (site) weights.set(site, (weights.get(site) ?? 0) + weight);
    }
  }
  const names = [...weights].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([site]) => site);
  return { names, numbers: new Map(names.map((site, n) => [site, n + 1])) };
}

// addSites adds the column of call-site numbers to blocks, 0 if unknown. Sites that are missing in the trace,
// because the page omits some stacks, are added.
function addSites(trace, stacks, columns) {
  if (!stacks || !columns?.stack) return;
  const { names, numbers } = trace.sites;
  const known = new Map(); // by number of the stack
  columns.site = Uint32Array.from(columns.stack, (number) => {
    if (!known.has(number)) {
      const site = siteOf(stacks, number);
      if (site && !numbers.has(site)) numbers.set(site, names.push(site));
      known.set(number, numbers.get(site) ?? 0);
    }
    return known.get(number);
  });
}

// Paint assigns colours to the blocks of one run.
class Paint {
  constructor(trace, run, way) {
    this.trace = trace;
    this.way = PAINTS[way];
    this.dark = pageColors().dark;
    this.low = Infinity;
    this.high = 1;
    const { rects } = run.map;
    if (this.way.amount) {
      const block = {};
      for (let i = 0; i < rects.y.length; i++) {
        const v = Math.max(this.way.amount(colorFields(block, rects, i), trace.events), 1);
        this.low = Math.min(this.low, v);
        this.high = Math.max(this.high, v);
      }
    }
    this.known = new Map(); // cached colours
  }

  // color returns the colour of a block.
  color(block) {
    if (!this.way.amount) {
      const n = this.way.kind(block);
      return n === null ? NEUTRAL : areaColor(n, this.dark);
    }
    const span = Math.log(this.high / this.low) || 1;
    const step = Math.round(
      (63 * Math.log(Math.max(this.way.amount(block, this.trace.events), 1) / this.low)) / span,
    );
    if (!this.known.has(step)) this.known.set(step, rampColor(step / 63, this.dark));
    return this.known.get(step);
  }
}

// Tints are the colours of rectangles as pixels, computed lazily, REACH at a time.
class Tints {
  constructor(rects, paint) {
    this.rects = rects;
    this.paint = paint;
    this.pixels = new Uint32Array(rects.y.length);
    this.filled = new Uint8Array(Math.ceil(rects.y.length / REACH));
    this.known = new Map(); // pixels by colour
  }

  // fill computes batch k.
  fill(k) {
    if (this.filled[k]) return;
    this.filled[k] = 1;
    const { rects, paint, pixels, known } = this;
    const block = {};
    const end = Math.min((k + 1) * REACH, pixels.length);
    let last = "";
    let p = 0;
    for (let i = k * REACH; i < end; i++) {
      const color = paint.color(colorFields(block, rects, i));
      if (color !== last) {
        last = color;
        p = known.get(color);
        if (p === undefined) known.set(color, (p = pixel(color)));
      }
      pixels[i] = p;
    }
  }
}

// paintKey returns the legend of the colours for the blocks of some runs.
function paintKey(trace, runs, way) {
  const key = el("div", { class: "vy-key-row" });
  const { dark } = pageColors();
  const entry = (color, text) => {
    const box = el("span", { class: "vy-box", "aria-hidden": "true" });
    box.style.background = color;
    key.append(el("span", { class: "vy-key" }, box, el("span", { text })));
  };
  if (PAINTS[way].amount) {
    const paints = runs.map((r) => new Paint(trace, r, way)).filter((p) => p.low <= p.high);
    const low = Math.min(...paints.map((p) => p.low));
    const high = Math.max(...paints.map((p) => p.high));
    if (!paints.length) return key;
    const bar = el("span", { class: "vy-ramp", "aria-hidden": "true" });
    bar.style.background = `linear-gradient(to right, ${RAMP.map((_, i) => rampColor(i / (RAMP.length - 1), dark)).join(", ")})`;
    key.append(
      el(
        "span",
        { class: "vy-key" },
        el("span", { text: PAINTS[way].write(low) }),
        bar,
        el("span", { text: `${PAINTS[way].write(high)} (logarithmic)` }),
      ),
    );
    return key;
  }
  const weights = new Map(); // bytes times events, by kind
  for (const r of runs) {
    const { rects } = r.map;
    const b = {};
    for (let i = 0; i < rects.y.length; i++) {
      colorFields(b, rects, i);
      const n = PAINTS[way].kind(b) ?? -1;
      weights.set(n, (weights.get(n) ?? 0) + b.size * (Math.min(b.dies, trace.events) - b.born));
    }
  }
  const byWeight = [...weights].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([n]) => n);
  const named = byWeight.filter(hasColor).slice(0, 12);
  for (const n of named) entry(areaColor(n, dark), short(PAINTS[way].name(trace, n)));
  const more = byWeight.filter((n) => !named.includes(n));
  const none = { tag: tagName(trace, 0), site: "no known stack" };
  if (more.length === 1 && more[0] < 0) entry(NEUTRAL, none[way] ?? "none");
  else if (more.length) entry(NEUTRAL, `${plural(more.length, "other", "others")}, in repeated colours or grey`);
  return key;
}

// withoutFolders returns a call site with base names of files.
function withoutFolders(site) {
  return site.replace(/\S*[/\\](?=[^/\\\s]+:\d)/g, "");
}

// short truncates a text. The tooltip of a block has the full text.
function short(text) {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
