// A benchmark: time and memory against the number of live blocks.

// benchView returns the section of a benchmark. It is drawn once it is in the page.
function benchView(report) {
  const { bench, colors } = report;
  const section = el(
    "section",
    { id: "vy-bench" },
    el("h2", { text: "Time and memory against live blocks" }),
  );
  const names = Object.keys(colors).filter((name) => bench.runs.some((r) => r.strategy === name));
  names.sort((a, b) => colors[a] - colors[b]);
  const key = el("div", { class: "vy-key-row" });
  for (const name of names) {
    key.append(el("span", { class: "vy-key" }, swatch({ color: colors[name] }), el("span", { text: name })));
  }
  section.append(
    key,
    el("p", {
      class: "vy-note",
      text: "Bars reach from the shortest to the longest round; times are on a logarithmic axis. Memory is the highest reserved; strategies that reserve the whole device at start are omitted.",
    }),
  );
  const draws = [];
  for (const [title, runs] of workloads(bench.runs)) {
    const pair = el("div", { class: "vy-pair" });
    const memory = runs.filter((r) => !r.preallocates);
    for (const about of [
      {
        title: `${title}: time of a pair`,
        axis: "ns per pair, logarithmic",
        log: true,
        runs,
        of: (r) => r.ns_per_pair_median,
        ends: (r) => [r.ns_per_pair_min, r.ns_per_pair_max],
      },
      { title: `${title}: memory`, axis: "reserved ∕ live bytes", runs: memory, of: (r) => r.reserved_ratio },
    ]) {
      const dots = new Dots(about, colors);
      pair.append(el("figure", {}, el("figcaption", { text: about.title }), dots.plot));
      draws.push(() => dots.draw());
    }
    section.append(pair);
  }
  if (report.calls?.some((c) => c.alloc.count.length)) section.append(...callLatencies(report, draws));
  return { section, draw: () => draws.forEach((d) => d()) };
}

// callLatencies returns the latency distribution of single calls, for one workload and number of live blocks at a time. It
// adds its drawing functions to the list.
function callLatencies({ bench, calls, colors }, draws) {
  const loads = new Map();
  for (const [title, runs] of workloads(bench.runs))
    for (const r of runs) {
      const name = `${title}, ${plural(r.live, "live block")}`;
      const run = { strategy: r.strategy, color: colors[r.strategy], latency: calls[bench.runs.indexOf(r)] };
      loads.set(name, [...(loads.get(name) ?? []), run]);
    }
  const names = [...loads.keys()];
  let chosen = names[0];
  let plots = [];
  const pair = el("div", { class: "vy-pair" });
  const draw = () => {
    plots.forEach((u) => u.destroy());
    pair.replaceChildren();
    plots = ["alloc", "free"].map((what) => {
      const title = what === "alloc" ? "Alloc" : "Free";
      const plot = el("div", { class: "vy-plot", role: "img", "aria-label": `Latency of ${title}: ${chosen}` });
      pair.append(el("figure", { class: "vy-figure" }, el("figcaption", { text: title }), plot));
      return latencyChart(plot, loads.get(chosen), what);
    });
  };
  const choose = (name) => {
    chosen = name;
    draw();
  };
  draws.push(draw);
  const options = names.map((n) => [n, n]);
  const note = "Every figure includes the time of reading the clock before and after the call. The chart omits the slowest 0.01 % of the calls.";
  return [
    el("h3", { text: "Latency of single calls" }),
    el("div", { class: "vy-controls" }, choice("Workload", options, chosen, choose)),
    pair,
    el("p", { class: "vy-note", text: note }),
  ];
}

// workloads groups the runs by workload, over all numbers of live blocks.
function workloads(runs) {
  const of = new Map();
  for (const r of runs) {
    const sizes = Object.entries(r.parameters).filter(([k]) => !["seed", "live", "pairs"].includes(k));
    const title = [r.workload, ...sizes.map(([k, v]) => `${k} ${v}`)].join(", ");
    of.set(title, [...(of.get(title) ?? []), r]);
  }
  return of;
}

// DOTS_HEIGHT is the height in points of a chart of a benchmark.
const DOTS_HEIGHT = 230;

// decades returns 1, 2, 3, 5 and 7 of every power of ten within [from, to], or even steps where those are too few.
function decades(from, to) {
  const list = [];
  for (let p = 10 ** Math.floor(Math.log10(from)); p <= to; p *= 10)
    for (const m of [1, 2, 3, 5, 7]) if (m * p >= from && m * p <= to) list.push(m * p);
  return list.length < 3 ? ticks(from, to, 4) : list;
}

// Dots is a chart of one figure of every strategy against live blocks.
class Dots {
  constructor(about, colors) {
    this.about = about;
    this.colors = colors;
    this.canvas = el("canvas", {});
    this.plot = el(
      "div",
      {
        class: "vy-plot",
        tabindex: "0",
        role: "application", // with this role, screen readers pass arrow keys to the page
        "aria-label": `${about.title}, by strategy and number of live blocks. Left and right go from dot to dot of a strategy, up and down to other strategies.`,
      },
      this.canvas,
    );
    this.plot.addEventListener("pointermove", (e) => this.point(e));
    this.plot.addEventListener("click", (e) => this.point(e));
    for (const away of ["pointerleave", "blur"]) this.plot.addEventListener(away, () => this.highlight(null));
    this.plot.addEventListener("keydown", (e) => this.key(e));
  }

  // draw redraws the chart, with a ring around the highlighted dot.
  draw() {
    this.dots = drawDots(this.canvas, this.plot.clientWidth, this.about, this.colors, this.highlighted);
  }

  // highlight highlights a dot, or none for null.
  highlight(dot, at) {
    if ((dot?.run ?? null) !== (this.highlighted ?? null)) {
      this.highlighted = dot?.run ?? null;
      this.draw();
    }
    const box = this.canvas.getBoundingClientRect();
    showTip(at ?? (dot && { clientX: box.left + dot.x, clientY: box.top + dot.y }), dot && describeDot(dot.run));
  }

  // point highlights the dot nearest to the pointer.
  point(e) {
    const box = this.canvas.getBoundingClientRect();
    const far = (d) => Math.hypot(e.clientX - box.left - d.x, e.clientY - box.top - d.y);
    const near = this.dots.reduce((a, b) => (a && far(a) <= far(b) ? a : b), null);
    this.highlight(near && far(near) < 24 ? near : null, e);
  }

  // key moves the highlight with the arrow keys.
  key(e) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (!by || !this.dots.length) return;
    e.preventDefault();
    const at = this.dots.find((d) => d.run === this.highlighted);
    if (!at) {
      this.highlight(this.dots[0]);
      return;
    }
    const names = [...new Set(this.dots.map((d) => d.run.strategy))];
    const next = names[names.indexOf(at.run.strategy) + by[1]] ?? at.run.strategy;
    const line = this.dots.filter((d) => d.run.strategy === next);
    const same = Math.max(line.findIndex((d) => d.run.live >= at.run.live), 0);
    this.highlight(line[Math.min(Math.max(same + by[0], 0), line.length - 1)]);
  }
}

// describeDot returns the figures of a benchmark run as names and texts: time and memory.
function describeDot(r) {
  const ns = (v) => `${Number(v.toPrecision(4))} ns`;
  return [
    ["strategy", r.strategy],
    ["live blocks", count(r.live)],
    ["time of a pair", `${ns(r.ns_per_pair_median)}, the median of ${plural(r.ns_per_pair_rounds.length, "round")}`],
    ["rounds", `from ${ns(r.ns_per_pair_min)} to ${ns(r.ns_per_pair_max)}`],
    ["memory", r.preallocates ? `${bytes(r.peak_reserved_bytes)}, reserved at start` : bytes(r.peak_reserved_bytes)],
    ["reserved ∕ live", r.reserved_ratio.toFixed(3)],
  ];
}

// drawDots plots one figure of every strategy against live blocks, on a logarithmic axis, with a ring around the
// highlighted run. It returns the position of each dot, by strategy.
function drawDots(canvas, width, about, strategyColors, highlighted) {
  const colors = pageColors();
  const g = sizeCanvas(canvas, width, DOTS_HEIGHT);
  const [w, h] = [width - GUTTER - MARGIN, DOTS_HEIGHT - 50];
  g.font = colors.font;
  g.fillStyle = colors.text;
  if (!about.runs.length) {
    g.fillText("every strategy of this table reserves the whole device at start", GUTTER, 40);
    return [];
  }
  const lives = [...new Set(about.runs.map((r) => r.live))].sort((a, b) => a - b);
  const [low, high] = [Math.log(lives[0] / 1.5), Math.log(lives[lives.length - 1] * 1.5)];
  const top = 1.08 * Math.max(...about.runs.map((r) => about.ends?.(r)[1] ?? about.of(r)));
  const xAt = (r) => GUTTER + ((Math.log(r) - low) / (high - low)) * w;
  const least = Math.min(...about.runs.map((r) => about.ends?.(r)[0] ?? about.of(r))) / 1.15;
  const log = about.log && least > 0;
  const share = (v) => (log ? Math.log(v / least) / Math.log(top / least) : v / top);
  const yAt = (v) => 10 + h - share(v) * h;
  g.textAlign = "right";
  g.textBaseline = "middle";
  g.strokeStyle = colors.line;
  for (const v of log ? decades(least, top) : ticks(0, top, 5)) {
    g.strokeRect(GUTTER, yAt(v), w, 0);
    g.fillText(String(Number(v.toFixed(2))), GUTTER - 6, yAt(v));
  }
  g.textAlign = "center";
  g.textBaseline = "top";
  let free = 0; // left limit of the next label
  for (const n of lives) {
    g.strokeRect(xAt(n), 10, 0, h);
    const room = g.measureText(count(n)).width / 2 + 6;
    if (xAt(n) - room < free) continue;
    g.fillText(count(n), xAt(n), 10 + h + 6);
    free = xAt(n) + room;
  }
  g.fillText("live blocks, logarithmic", GUTTER + w / 2, 10 + h + 24);
  g.save();
  g.translate(12, 10 + h / 2);
  g.rotate(-Math.PI / 2);
  g.fillText(about.axis, 0, 0);
  g.restore();
  const dots = [];
  const names = [...new Set(about.runs.map((r) => r.strategy))];
  names.forEach((name, k) => {
    const runs = about.runs.filter((r) => r.strategy === name).sort((a, b) => a.live - b.live);
    g.strokeStyle = g.fillStyle = lineColor(strategyColors[name], colors.dark);
    g.lineWidth = 1.5;
    const offset = (k - (names.length - 1) / 2) * 4; // places the bars of one number of live blocks side by side
    g.beginPath();
    for (const r of runs) g.lineTo(xAt(r.live) + offset, yAt(about.of(r)));
    g.stroke();
    for (const r of runs) {
      const [x, y] = [xAt(r.live) + offset, yAt(about.of(r))];
      dots.push({ run: r, x, y });
      symbol(g, lineMark(strategyColors[name]) || 1, x, y, 4);
      if (r === highlighted) {
        g.beginPath();
        g.arc(x, y, 8, 0, 7);
        g.stroke();
      }
      if (about.ends) {
        const [a, b] = about.ends(r).map(yAt);
        g.strokeRect(xAt(r.live) + offset, b, 0, a - b);
      }
    }
  });
  return dots;
}
