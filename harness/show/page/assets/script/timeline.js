// Memory, fragmentation and device calls over the run.

// FROM_TOP lists the sums from the largest to the smallest.
const FROM_TOP = CURVES.toReversed();

// RUG is the height in points of a row of failures above the plot of memory.
const RUG = 6;

// Timeline is all charts over the axis, with one legend that also shows and hides lines.
class Timeline {
  constructor(app) {
    this.app = app;
    this.memory = new Chart(app, {
      title: "Memory over time",
      unit: "bytes",
      axis: "memory",
      height: 300,
      top: () => 20 + RUG * this.failing().length,
      lines: (colors) => this.sums(colors),
      over: (u, g, scale, colors) => this.annotations(u, g, scale, colors),
    });
    this.charts = [
      this.memory,
      this.chart("Internal fragmentation: 1 − requested ∕ allocated", "internal", "share", "share"),
      this.chart("External fragmentation: 1 − largest free chunk ∕ free bytes", "external", "share", "share"),
      this.chart("Largest free chunk", "largest_free", "bytes", "memory"),
      new Chart(app, {
        title: "Calls to the device",
        unit: "count",
        axis: "calls",
        height: 170,
        last: true,
        lines: (c) => this.calls(c),
      }),
    ];
    this.legend = el("div", { class: "vy-legend" });
    this.callsChoice = el("div", { class: "vy-controls" });
    const [memory, internal, external, largest, calls] = this.charts.map((c) => c.element);
    calls.querySelector("figcaption").after(this.callsChoice);
    this.section = el(
      "section",
      { id: "vy-timeline" },
      el("h2", { text: "Over time" }),
      memory,
      this.legend,
      el("div", { class: "vy-pair" }, internal, external),
      largest,
      calls,
    );
    app.state.view((changed) => this.update(changed));
    app.state.view((changed) => this.updateSmall(changed), true);
  }

  // chart returns a small chart of one figure of all strategies.
  chart(title, what, unit, axis) {
    const lines = (colors) =>
      this.app.state.shown().map((run) => ({
        run: run.index,
        values: run.series[what].max,
        low: run.series[what].min,
        color: lineColor(run.color, colors.dark),
        mark: lineMark(run.color),
      }));
    return new Chart(this.app, { title, unit, axis, height: 150, lines });
  }

  // sums returns the lines of the chosen sums, and the lower bound.
  sums(colors) {
    const { state, trace } = this.app;
    // The bound is drawn first, so that a strategy that reaches it stays visible.
    const lines = [{ values: trace.bound, color: colors.text, dash: [3, 3], width: 1.25 }];
    for (const run of state.shown()) {
      for (const what of state.curves) {
        lines.push({
          run: run.index,
          what,
          values: run.series[what].max,
          low: run.series[what].min,
          color: lineColor(run.color, colors.dark),
          mark: lineMark(run.color),
          dash: DASHES[what],
          width: what === "reserved" ? 1.75 : 1.25,
        });
      }
    }
    return lines;
  }

  // calls returns the lines of calls: of all strategies, or by kind of one.
  calls(colors) {
    const { state, trace } = this.app;
    const of = this.callsShown();
    const run = trace.runs[Number(of)];
    const words = this.charts[4].about;
    const time = of === "time" || of === "time-sum";
    const sum = of === "sum" || of === "time-sum";
    words.unit = time ? "time" : "count";
    words.axis = sum
      ? `cumulative ${time ? "device time" : "calls"}`
      : `${time ? "device time" : "calls"} ${trace.exact ? "per event" : `per ${count(2 ** trace.shift)} events`}`;
    if (run?.drawn) {
      return Object.keys(run.series.calls)
        .sort()
        .map((kind, k) => ({
          kind,
          values: run.series.calls[kind],
          color: lineColor(k, colors.dark),
          mark: lineMark(k),
        }));
    }
    return state.shown().map((r) => ({
      run: r.index,
      color: lineColor(r.color, colors.dark),
      mark: lineMark(r.color),
      values: (sum ? running : (list) => list)(time ? r.series.device_time : total(Object.values(r.series.calls), trace.buckets.n)),
    }));
  }

  // callsShown returns the mode of the calls chart. Calls of many strategies overlap; their running sums do not.
  callsShown() {
    const { state } = this.app;
    return state.calls ?? (state.shown().length > MOST_SPIKES ? "sum" : "all");
  }

  // failing returns the visible runs with failures.
  failing() {
    return this.app.state.shown().filter((r) => r.failure_count > 0);
  }

  // annotations draws the annotations: failures, marks and the capacity.
  annotations(u, g, scale, colors) {
    g.save();
    g.font = colors.font.replace(/(\d+)px/, (_, n) => `${n * scale}px`);
    g.textBaseline = "bottom";
    g.textAlign = "left"; // uPlot leaves the alignment of its last axis and the dashes of its last curve
    g.setLineDash([]);
    g.lineWidth = scale;
    this.marks(u, g, scale, colors);
    this.rug(u, g, scale, colors);
    this.capacity(u, g, scale, colors);
    g.restore();
  }

  // marks draws the trace's marks as faint lines, with labels above the plot where they fit.
  marks(u, g, scale, colors) {
    const { trace, axis } = this.app;
    const { left, top, width, height } = u.bbox;
    const above = top - (4 + RUG * this.failing().length) * scale;
    let free = left; // left limit of the next label
    g.strokeStyle = g.fillStyle = colors.faint;
    for (const mark of trace.marks) {
      const x = Math.round(u.valToPos(axis.x(mark.event), "x", true));
      if (x < left || x > left + width) continue;
      g.globalAlpha = 0.35;
      g.strokeRect(x, top, 0, height);
      g.globalAlpha = 1;
      const text = mark.text.length > 18 ? `${mark.text.slice(0, 17)}…` : mark.text;
      const room = g.measureText(text).width;
      if (x < free || x + room > left + width) continue;
      g.fillText(text, x, above);
      free = x + room + 12 * scale;
    }
  }

  // rug draws failures as ticks above the plot, a row for each strategy.
  rug(u, g, scale, colors) {
    const { trace, axis } = this.app;
    const { left, top, width } = u.bbox;
    const runs = this.failing();
    runs.forEach((run, row) => {
      g.fillStyle = lineColor(run.color, colors.dark);
      const y = top - (2 + RUG * (runs.length - row)) * scale;
      run.series.oom.forEach((n, bucket) => {
        const x = n ? u.valToPos(axis.x(trace.buckets.first[bucket]), "x", true) : -1;
        if (x >= left && x <= left + width)
          g.fillRect(Math.round(x) - scale * 0.5, y, 1.5 * scale, (RUG - 2) * scale);
      });
    });
    if (!runs.length) return;
    g.fillStyle = colors.faint;
    g.textAlign = "right";
    g.fillText("failures", left - 6 * scale, top - scale);
    g.textAlign = "left";
  }

  // capacity draws the end of the device's memory where the plot reaches it.
  capacity(u, g, scale, colors) {
    const { left, width, top } = u.bbox;
    const ends = new Set(this.app.state.shown().map((r) => r.device.capacity_bytes));
    if (ends.size > 1) return; // strategies that reserve all memory at start run on devices of different sizes
    for (const bytesOf of ends) {
      const y = bytesOf ? Math.round(u.valToPos(bytesOf, "y", true)) : 0;
      if (y <= top) continue;
      g.strokeStyle = g.fillStyle = colors.alarm;
      g.setLineDash([8 * scale, 3 * scale]);
      g.strokeRect(left, y, width, 0);
      g.setLineDash([]);
      g.textAlign = "right";
      g.fillText(`capacity ${bytes(bytesOf)}`, left + width - 4 * scale, y - 3 * scale);
      g.textAlign = "left";
    }
  }

  // update follows the state: the plot of memory, and the legend.
  update(changed) {
    const has = (...names) => names.some((n) => changed.has(n));
    if (has("trace", "hidden", "curves", "theme", "unit")) this.drawLegend();
    this.follow([this.memory], changed);
    if (has("trace", "hidden", "curves", "unit", "theme", "cursor", "from", "to")) this.values();
  }

  // updateSmall follows the state with the smaller plots.
  updateSmall(changed) {
    const [, ...small] = this.charts;
    if (["trace", "hidden", "curves", "theme", "unit", "calls"].some((n) => changed.has(n))) this.choices();
    this.follow(small, changed);
  }

  // follow redraws some charts.
  follow(charts, changed) {
    const has = (...names) => names.some((n) => changed.has(n));
    const rebuild = has("trace", "hidden", "curves", "theme", "unit");
    for (const c of charts) {
      if (rebuild || (has("calls") && c === this.charts[4])) c.build();
      if (has("from", "to")) c.follow();
      if (rebuild || has("cursor", "from", "to", "calls")) c.point();
      if (has("highlighted")) c.highlight(this.app.state.highlighted);
    }
  }

  // renew redraws the curves with the data that has arrived.
  renew() {
    for (const c of this.charts) {
      c.build();
      c.point();
    }
    this.values();
  }

  // resize adapts to the width of the page.
  resize() {
    for (const c of this.charts) c.resize();
  }

  // choices makes the selector of the calls chart.
  choices() {
    const { state, trace } = this.app;
    const options = [
      ["sum", "cumulative number, by strategy"],
      ["all", "number, by strategy"],
      ["time-sum", "cumulative time, by strategy"],
      ["time", "time, by strategy"],
    ];
    for (const r of trace.runs) if (r.drawn) options.push([String(r.index), `by kind: ${r.strategy}`]);
    refill(this.callsChoice, choice("Show", options, this.callsShown(), (v) => state.set({ calls: v })));
    const run = trace.runs[Number(this.callsShown())];
    if (!run?.drawn) return;
    const dark = pageColors().dark;
    Object.keys(run.series.calls)
      .sort()
      .forEach((kind, k) => {
        const key = el("span", { class: "vy-key" }, swatch({ color: k }), el("span", { text: kind }));
        key.style.setProperty("--swatch", lineColor(k, dark));
        this.callsChoice.append(key);
      });
  }

  // drawLegend makes the table of strategies and sums, which shows values and toggles lines.
  drawLegend() {
    const { state, trace } = this.app;
    const head = el("tr", {}, el("th", { scope: "col", text: "strategy" }));
    for (const what of FROM_TOP) {
      const box = el("input", {
        type: "checkbox",
        checked: state.curves.includes(what),
        on: { change: () => this.toggleCurve(what) },
      });
      head.append(
        el(
          "th",
          { scope: "col", class: "vy-right" },
          el("label", {}, box, el("span", { text: what }), dashes(what)),
        ),
      );
    }
    for (const name of ["largest free", "failures"])
      head.append(el("th", { scope: "col", class: "vy-right", text: name }));
    this.cells = [];
    const body = el("tbody");
    for (const run of trace.runs) body.append(this.legendRow(run));
    this.boundCell = el("td", { class: "vy-right" });
    body.append(
      el(
        "tr",
        {},
        el(
          "th",
          { scope: "row" },
          el("span", { class: "vy-bound", "aria-hidden": "true" }),
          el("span", { text: "lower bound" }),
        ),
        this.boundCell,
      ),
    );
    this.caption = el("caption");
    refill(
      this.legend,
      el(
        "div",
        { class: "vy-scroll" },
        el("table", { class: "vy-table" }, this.caption, el("thead", {}, head), body),
      ),
    );
  }

  // legendRow makes the row of a run.
  legendRow(run) {
    const { state } = this.app;
    const shown = run.drawn && !state.hidden.includes(run.index);
    const box = el("input", {
      type: "checkbox",
      checked: shown,
      disabled: !run.drawn,
      on: { change: () => this.toggleRun(run.index) },
    });
    const name = el("label", {}, box, swatch(run), el("span", { text: run.strategy }));
    if (!run.drawn) {
      const why = el("td", { colspan: "6", class: "vy-note", text: run.missing || "not drawn" });
      return el("tr", {}, el("th", { scope: "row" }, name), why);
    }
    const row = el(
      "tr",
      {
        on: {
          pointerenter: () => state.set({ highlighted: shown ? run.index : null }),
          pointerleave: () => state.set({ highlighted: null }),
        },
      },
      el("th", { scope: "row" }, name),
    );
    const cells = [...FROM_TOP, "largest_free"].map((what) => {
      const td = el("td", { class: "vy-right" });
      row.append(td);
      return { what, td, run };
    });
    this.cells.push(...cells);
    row.append(el("td", { class: "vy-right", text: run.failure_count ? count(run.failure_count) : "none" }));
    return row;
  }

  // toggleRun shows or hides a run.
  toggleRun(index) {
    const { state } = this.app;
    const hidden = state.hidden.includes(index)
      ? state.hidden.filter((i) => i !== index)
      : [...state.hidden, index];
    state.set({ hidden: hidden.sort((a, b) => a - b) });
  }

  // toggleCurve shows or hides a sum.
  toggleCurve(what) {
    const { state } = this.app;
    const on = state.curves.includes(what) ? state.curves.filter((c) => c !== what) : [...state.curves, what];
    state.set({ curves: CURVES.filter((c) => on.includes(c)) });
  }

  // values writes the values at the cursor into the legend, or without a cursor the maxima in the window.
  values() {
    const { state, trace, axis } = this.app;
    const at = state.cursor;
    const [from, to] =
      at === null
        ? [bucketOf(trace, state.from), bucketOf(trace, state.to)]
        : [bucketOf(trace, at), bucketOf(trace, at)];
    for (const { what, td, run } of this.cells) {
      const v = highest(run.series[what].max, from, to);
      td.textContent = v === null ? "—" : bytes(v);
    }
    this.boundCell.textContent = bytes(highest(trace.bound, from, to) ?? 0);
    this.caption.textContent =
      at === null
        ? "Highest in the window"
        : `At event ${count(at)}${axis.times ? `, ${axis.text(axis.x(at))}` : ""}${trace.exact ? "" : `: highest within ${count(2 ** trace.shift)} events`}`;
  }
}

// dashes returns a sample of the line style of a sum.
function dashes(what) {
  const canvas = el("canvas", { class: "vy-swatch", "aria-hidden": "true" });
  const g = sizeCanvas(canvas, 26, 8);
  g.strokeStyle = pageColors().text;
  g.lineWidth = 1.5;
  g.setLineDash(DASHES[what]);
  g.beginPath();
  g.moveTo(0, 4);
  g.lineTo(26, 4);
  g.stroke();
  return canvas;
}

// MOST_SPIKES is the maximum number of strategies whose calls are drawn side by side.
const MOST_SPIKES = 3;

// running returns running sums.
function running(list) {
  let sum = 0;
  return Float64Array.from(list, (v) => (sum += v || 0));
}

// total sums counts by bucket.
function total(lists, n) {
  const sum = new Float64Array(n);
  for (const list of lists) for (let i = 0; i < n; i++) sum[i] += list[i];
  return sum;
}

// highest returns the highest known value of some buckets, or null.
function highest(values, from, to) {
  let most = null;
  for (let i = from; i <= to; i++) if (values[i] >= (most ?? -Infinity)) most = values[i];
  return most;
}
