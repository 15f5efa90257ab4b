// Latency of single calls, as histograms over a logarithmic axis.

// LatencyView is the section of latencies.
class LatencyView {
  constructor(app) {
    this.app = app;
    this.charts = el("div", { class: "vy-pair" });
    this.table = el("div");
    this.section = el(
      "section",
      { id: "vy-latency" },
      el("h2", { text: "Latency of single calls", "data-short": "Latency" }),
      this.charts,
      this.table,
    );
    this.plots = [];
    app.state.view((changed) => {
      if (["trace", "hidden", "theme"].some((n) => changed.has(n))) this.build();
    }, true);
  }

  // build draws the histograms of the runs that have them.
  build() {
    const runs = this.app.state.shown().filter((r) => r.latency);
    this.section.hidden = !runs.length;
    this.plots.forEach((u) => u.destroy());
    this.plots = [];
    this.charts.replaceChildren();
    for (const what of ["alloc", "free"]) {
      if (!runs.length) continue;
      const plot = el("div", {
        class: "vy-plot",
        role: "img",
        "aria-label": `Histogram of the latency of ${what}`,
      });
      this.charts.append(
        el(
          "figure",
          { class: "vy-figure" },
          el("figcaption", { text: what === "alloc" ? "Alloc" : "Free" }),
          plot,
        ),
      );
      this.plots.push(latencyChart(plot, runs, what));
    }
    this.table.replaceChildren(runs.length ? this.quantiles(runs) : "");
  }

  // quantiles returns the table of latency quantiles.
  quantiles(runs) {
    const heads = ["strategy", "call", "calls", "median", "99 %", "99.9 %", "longest"];
    const rows = [];
    for (const r of runs) {
      for (const what of ["alloc", "free"]) {
        const h = r.latency[what];
        const all = h.count.reduce((a, b) => a + b, 0);
        const at = [0.5, 0.99, 0.999, 1].map((q) => (all ? nanoseconds(quantile(h, all * q)) : "—"));
        const name = el("span", { class: "vy-key" }, swatch(r), el("span", { text: r.strategy }));
        rows.push([name, what, count(all), ...at]);
      }
    }
    return el("div", { class: "vy-scroll" }, table("", heads, rows, [2, 3, 4, 5, 6]));
  }

  // resize adapts to the width of the page.
  resize() {
    for (const u of this.plots)
      u.setSize({ width: Math.max(u.root.parentElement.clientWidth, 200), height: 200 });
  }
}

// latencyChart draws the calls of each run by their latency, in quarters of an octave. The slowest 0.01 % of
// the calls appear only in the table.
function latencyChart(plot, runs, what) {
  const colors = pageColors();
  const bins = runs.map((r) => binned(r.latency[what]));
  const low = Math.min(...bins.map((b) => b.low));
  const high = Math.max(...bins.map((b) => b.most));
  const xs = [];
  for (let k = low; k <= high + 1; k++) xs.push((k / 4) * Math.log10(2));
  const data = [xs, ...bins.map((b) => xs.map((_, i) => b.share[i + low - b.low] ?? 0))];
  const grid = { stroke: colors.line, width: 1 };
  const axis = {
    stroke: colors.text,
    font: colors.font,
    labelFont: colors.font,
    labelSize: 18,
    grid,
    ticks: grid,
  };
  const lines = runs.map((r) => ({
    stroke: lineColor(r.color, colors.dark),
    width: 1.5,
    paths: STEPS,
    points: { show: false },
  }));
  const decade = (v) => v.map((x) => nanoseconds(10 ** x).replace(".00", ""));
  const about = {
    width: Math.max(plot.clientWidth, 200),
    height: 200,
    padding: [10, MARGIN, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: [xs[0], Math.max(xs[xs.length - 1], xs[0] + 0.5)] },
      y: { range: (u, a, b) => [0, b * 1.06 || 1] },
    },
    series: [{}, ...lines],
    hooks: { draw: [(u) => runs.forEach((r, k) => latencyMarks(u, lineMark(r.color), lines[k].stroke, k + 1))] },
    axes: [
      {
        ...axis,
        label: "latency of a call, logarithmic",
        size: 32,
        incrs: [1, 2, 3],
        values: (u, v) => decade(v),
      },
      { ...axis, label: "share of calls", size: GUTTER - 18, values: (u, v) => AXIS_TEXTS.share(v) },
    ],
  };
  return new uPlot(about, data, plot);
}

// latencyMarks draws the mark of a strategy on the bars of at least half its maximum.
function latencyMarks(u, mark, color, k) {
  if (!mark) return;
  const [xs, shares] = [u.data[0], u.data[k]];
  const most = Math.max(...shares);
  const scale = window.devicePixelRatio || 1;
  u.ctx.save();
  u.ctx.fillStyle = color;
  for (let i = 0; i + 1 < xs.length; i++) {
    if (!(shares[i] > 0 && shares[i] >= most / 2)) continue;
    symbol(u.ctx, mark, u.valToPos((xs[i] + xs[i + 1]) / 2, "x", true), u.valToPos(shares[i], "y", true), 4 * scale);
  }
  u.ctx.restore();
}

// binned sums a histogram in bins of a quarter octave.
function binned(histogram) {
  const bins = new Map();
  let all = 0;
  histogram.upto_ns.forEach((ns, i) => {
    const k = Math.floor(4 * Math.log2(Math.max(ns, 1)));
    bins.set(k, (bins.get(k) ?? 0) + histogram.count[i]);
    all += histogram.count[i];
  });
  const keys = [...bins.keys()];
  const low = keys.length ? Math.min(...keys) : 0;
  const high = keys.length ? Math.max(...keys) : 0;
  const share = [];
  for (let k = low; k <= high; k++) share.push((bins.get(k) ?? 0) / (all || 1));
  let most = high;
  for (let rest = 0; most > low && (rest += share[most - low]) < 1e-4;) most--;
  return { low, most, share };
}

// quantile returns the latency that a share of the calls does not exceed.
function quantile(histogram, calls) {
  let seen = 0;
  const i = histogram.count.findIndex((n) => (seen += n) >= calls);
  return histogram.upto_ns[i < 0 ? histogram.upto_ns.length - 1 : i];
}
