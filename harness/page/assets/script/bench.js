// A benchmark: time and memory against the number of live blocks.

// benchView returns the section of a benchmark, and draws it once it is in the page.
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
      text: "Bars reach from the shortest to the longest round; times are on a logarithmic axis. Memory is what was held at most; what takes the whole device at once is left out of it.",
    }),
  );
  const draws = [];
  for (const [title, runs] of workloads(bench.runs)) {
    const pair = el("div", { class: "vy-pair" });
    const memory = runs.filter((r) => !r.preallocates);
    for (const about of [
      {
        title: `${title}: time of a pair`,
        axis: "ns a pair, logarithmic",
        log: true,
        runs,
        of: (r) => r.ns_per_pair_median,
        ends: (r) => [r.ns_per_pair_min, r.ns_per_pair_max],
      },
      { title: `${title}: memory`, axis: "reserved ∕ live bytes", runs: memory, of: (r) => r.reserved_ratio },
    ]) {
      const canvas = el("canvas", {
        role: "img",
        "aria-label": `${about.title}, by strategy and number of live blocks`,
      });
      const plot = el("div", { class: "vy-plot" }, canvas);
      pair.append(el("figure", {}, el("figcaption", { text: about.title }), plot));
      draws.push(() => drawDots(canvas, plot.clientWidth, about, colors));
    }
    section.append(pair);
  }
  if (report.calls?.some((c) => c.alloc.count.length)) section.append(...callsOf(report, draws));
  return { section, draw: () => draws.forEach((d) => d()) };
}

// callsOf returns the distribution of single calls, of one workload and number of live blocks at a time, and adds to
// what is drawn.
function callsOf({ bench, calls, colors }, draws) {
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
  const note = "The clock is read before and after each call, which is in every figure. The longest, one in ten thousand, are in the tables.";
  return [
    el("h3", { text: "Latency of single calls" }),
    el("div", { class: "vy-controls" }, choice("Workload", options, chosen, choose)),
    pair,
    el("p", { class: "vy-note", text: note }),
  ];
}

// workloads returns the runs of each workload, whatever the number of live blocks.
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

// decades returns 1, 2, 3, 5 and 7 of every power of ten within [from, to].
function decades(from, to) {
  const list = [];
  for (let p = 10 ** Math.floor(Math.log10(from)); p <= to; p *= 10)
    for (const m of [1, 2, 3, 5, 7]) if (m * p >= from && m * p <= to) list.push(m * p);
  return list;
}

// drawDots draws one figure of every strategy against live blocks, which are on a logarithmic axis.
function drawDots(canvas, width, about, strategyColors) {
  const colors = ink();
  const g = sharp(canvas, width, DOTS_HEIGHT);
  const [w, h] = [width - GUTTER - MARGIN, DOTS_HEIGHT - 50];
  g.font = colors.font;
  g.fillStyle = colors.text;
  if (!about.runs.length) {
    g.fillText("no strategy of this table takes memory step by step", GUTTER, 40);
    return;
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
  let free = 0; // no number begins before this
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
  const names = [...new Set(about.runs.map((r) => r.strategy))];
  names.forEach((name, k) => {
    const runs = about.runs.filter((r) => r.strategy === name).sort((a, b) => a.live - b.live);
    g.strokeStyle = g.fillStyle = lineColor(strategyColors[name], colors.dark);
    g.lineWidth = 1.5;
    const aside = (k - (names.length - 1) / 2) * 4; // bars of one number stand beside each other
    g.beginPath();
    for (const r of runs) g.lineTo(xAt(r.live) + aside, yAt(about.of(r)));
    g.stroke();
    for (const r of runs) {
      symbol(g, lineMark(strategyColors[name]) || 1, xAt(r.live) + aside, yAt(about.of(r)), 4);
      if (about.ends) {
        const [a, b] = about.ends(r).map(yAt);
        g.strokeRect(xAt(r.live) + aside, b, 0, a - b);
      }
    }
  });
}
