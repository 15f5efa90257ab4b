// Line charts over the common axis, drawn by uPlot, and the gestures that all views of the axis share.

// GUTTER and MARGIN are the points left and right of every plot, so that all line up. The margin has room for half a
// number of eight digits, which stands below the end of the axis.
const GUTTER = 74;
const MARGIN = 32;

// DASHES distinguish the sums of one strategy.
const DASHES = { requested: [2, 3], allocated: [6, 3], active: [10, 3, 2, 3], reserved: [] };

// POWERS are the tick steps of an axis in bytes.
const POWERS = Array.from({ length: 51 }, (_, k) => 2 ** k);

// VALUE_TEXTS formats a value, by unit.
const VALUE_TEXTS = { bytes, count, share: percent, time: nanoseconds };

// WHOLES are the tick steps of an axis of counts, which are integers.
const WHOLES = Array.from({ length: 16 }, (_, k) => [1, 2, 2.5, 5].map((n) => n * 10 ** k))
  .flat()
  .filter(Number.isInteger);

// AXIS_TEXTS formats tick labels, by unit.
const AXIS_TEXTS = {
  bytes: bytesOnAxis,
  count: (v) => v.map(count),
  share: (v) => {
    const digits = v.length < 2 ? 0 : decimals(100 * (v[1] - v[0]));
    return v.map((x) => `${(100 * x).toFixed(digits)} %`);
  },
  time: (v) => v.map(nanoseconds),
};

// STEPS draws a value from its event to the next.
const STEPS = uPlot.paths.stepped({ align: 1 });

// gestures makes an element pan and zoom the window of the axis. box returns the position of the axis in the browser's
// window. The wheel zooms with Ctrl, or after a click on the element; otherwise it scrolls the page.
function gestures(app, element, box) {
  const state = app.state;
  const shareAt = (at) => (at.clientX - box().left) / box().width;
  const positionAt = (at) => {
    const [from, to] = [app.axis.x(state.from), app.axis.x(state.to)];
    return from + shareAt(at) * (to - from);
  };
  element.addEventListener(
    "wheel",
    (e) => {
      if (!e.ctrlKey && !e.metaKey && !element.contains(document.activeElement)) return;
      e.preventDefault();
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        const by = ((state.to - state.from) * e.deltaX) / 800;
        state.window(state.from + by, state.to + by);
      } else {
        state.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), app.axis.event(positionAt(e)));
      }
    },
    { passive: false },
  );
  element.addEventListener("dblclick", () => state.window(0, app.trace.events));
  element.addEventListener("keydown", (e) => steer(app, e));
  fingers(app, element, shareAt, positionAt);
}

// fingers handles touch. Two fingers pan and zoom the window; one finger pans it if it shows a part of the axis,
// and else moves the cursor. A vertical swipe with one finger scrolls the page.
function fingers(app, element, shareAt, positionAt) {
  const state = app.state;
  let held = []; // the position under each finger
  const hold = (e) => {
    held = [...e.touches].slice(0, 2).map((t) => ({ finger: t.identifier, position: positionAt(t) }));
  };
  const move = (e) => {
    const now = held.map((h) => [...e.touches].find((t) => t.identifier === h.finger));
    if (!now.length || now.includes(undefined)) return;
    const [from, to, end] = [state.from, state.to, app.trace.events].map((event) => app.axis.x(event));
    let width = to - from;
    if (now.length === 2) {
      if (e.cancelable) e.preventDefault();
      width = (held[1].position - held[0].position) / (shareAt(now[1]) - shareAt(now[0]));
      if (!(width > 0 && width < Infinity)) return; // the fingers have crossed
      width = Math.min(width, end);
    } else if (state.from <= 0 && state.to >= app.trace.events) {
      const event = Math.floor(app.axis.event(positionAt(now[0])));
      state.set({ cursor: Math.min(Math.max(event, 0), Math.max(app.trace.events - 1, 0)) });
      return;
    }
    const start = Math.min(Math.max(held[0].position - shareAt(now[0]) * width, 0), end - width);
    state.window(app.axis.event(start), app.axis.event(start + width));
  };
  element.style.touchAction = "pan-y";
  for (const what of ["touchstart", "touchend", "touchcancel"]) element.addEventListener(what, hold, { passive: true });
  element.addEventListener("touchmove", move, { passive: false });
}

// steer moves the cursor and the window with the keyboard.
function steer(app, e) {
  const state = app.state;
  const last = Math.max(app.trace.events - 1, 0);
  const width = state.to - state.from;
  const step = e.shiftKey ? Math.max(width / 10, 1) : Math.max(Math.round(width / 200), 1);
  const at = state.cursor ?? Math.floor((state.from + state.to) / 2);
  const moves = {
    ArrowLeft: () => move(at - step),
    ArrowRight: () => move(at + step),
    Home: () => move(0),
    End: () => move(last),
    "+": () => state.zoom(0.5, at),
    "=": () => state.zoom(0.5, at),
    "-": () => state.zoom(2, at),
    Escape: () => state.window(0, app.trace.events),
    Enter: () => state.set({ event: at, pin: null }),
  };
  const move = (event) => {
    const to = Math.min(Math.max(Math.round(event), 0), last);
    state.set({ cursor: to });
    if (to < state.from) state.window(to, to + width);
    if (to > state.to) state.window(to - width, to);
  };
  if (e.target instanceof HTMLButtonElement || !(e.key in moves) || e.ctrlKey || e.metaKey || e.altKey)
    return;
  e.preventDefault();
  moves[e.key]();
}

// holes replaces values that were not sampled with null, and repeats the last value at the end.
function holes(values) {
  const list = Array.from(values, (v) => (Number.isNaN(v) ? null : v));
  list.push(list.length ? list[list.length - 1] : null);
  return list;
}

// Chart is one plot of lines.
//
// about has: title, unit (of AXIS_TEXTS), axis (the words at the vertical axis), height, lines (a
// function that returns them: color, values, low, dash, mark, run, width), top (a function that returns the
// points above the plot) and over (draws on top).
class Chart {
  constructor(app, about) {
    this.app = app;
    this.about = about;
    this.plot = el("div", {
      class: "vy-plot",
      ...slider(`${about.title}. ${KEYS_HELP}`),
    });
    this.plot.addEventListener("focus", () => this.announce());
    this.element = el("figure", { class: "vy-figure" }, el("figcaption", { text: about.title }), this.plot);
    gestures(app, this.plot, () => this.u.over.getBoundingClientRect());
  }

  // build rebuilds the plot.
  build() {
    this.u?.destroy();
    const { app, about } = this;
    const colors = pageColors();
    const { trace, axis } = app;
    this.lines = about.lines(colors);
    const xs = Array.from(trace.buckets.first, (e) => axis.x(e));
    xs.push(axis.x(trace.events));
    const data = [xs];
    const series = [{}];
    const bands = [];
    for (const l of this.lines) {
      data.push(holes(l.values));
      series.push({
        stroke: l.color,
        width: l.width ?? 1.5,
        dash: l.dash,
        paths: STEPS,
        spanGaps: true,
        alpha: 1,
        points: { show: false },
      });
      if (l.low && !trace.exact) {
        data.push(holes(l.low));
        series.push({ paths: STEPS, spanGaps: true, width: 0, points: { show: false } });
        bands.push({ series: [series.length - 2, series.length - 1], fill: `${l.color}30` });
      }
      l.at = data.length - 1 - (l.low && !trace.exact ? 1 : 0);
    }
    this.u = new uPlot(this.options(colors, series, bands), data, this.plot);
    this.plot.dataset.lines = this.lines.length;
  }

  // options returns the options of uPlot.
  options(colors, series, bands) {
    const { app, about } = this;
    const axisOf = { stroke: colors.text, font: colors.font, labelFont: colors.font, labelGap: 0 };
    const grid = { stroke: colors.line, width: 1 };
    return {
      width: Math.max(this.plot.clientWidth, 200),
      height: about.height,
      series,
      bands,
      padding: [about.top?.() ?? 10, MARGIN, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, range: () => [app.axis.x(app.state.from), app.axis.x(app.state.to)] },
        y: {
          range: (u, low, high) => [
            0,
            high > 0 ? Math.min(high * 1.06, about.unit === "share" ? 1 : Infinity) : 1,
          ],
        },
      },
      axes: [
        {
          ...axisOf,
          grid,
          ticks: grid,
          size: 30,
          space: 90,
          label: app.axis.label,
          labelSize: 16,
          values: (u, v) => app.axis.texts(v),
          ...(app.axis.times ? {} : { incrs: WHOLES }),
        },
        {
          ...axisOf,
          grid,
          ticks: { ...grid, size: 4 }, // short, so that long numbers stay off the words
          gap: 3,
          size: GUTTER - 18,
          label: about.axis,
          labelSize: 18,
          space: 34,
          values: (u, v) => AXIS_TEXTS[about.unit](v),
          ...(about.unit === "bytes" ? { incrs: POWERS } : about.unit === "count" ? { incrs: WHOLES } : {}),
        },
      ],
      cursor: {
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
        focus: { prox: -1 },
      },
      hooks: {
        setCursor: [(u) => this.moved(u)],
        setSelect: [(u) => this.selected(u)],
        draw: [(u) => this.over(u, colors)],
      },
    };
  }

  // moved handles a movement of the pointer.
  moved(u) {
    if (this.quiet || u.cursor.left < 0) return;
    const event = Math.floor(this.app.axis.event(u.posToVal(u.cursor.left, "x")) + 1e-6);
    this.app.state.set({ cursor: Math.min(Math.max(event, 0), Math.max(this.app.trace.events - 1, 0)) });
  }

  // selected handles a dragged selection.
  selected(u) {
    const { left, width } = u.select;
    if (width < 4) return;
    const at = (x) => this.app.axis.event(u.posToVal(x, "x"));
    const [from, to] = [at(left), at(left + width)];
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.app.state.window(from, to);
  }

  // over draws the marks on the lines that distinguish strategies of one colour.
  over(u, colors) {
    const g = u.ctx;
    const scale = window.devicePixelRatio || 1;
    g.save();
    g.beginPath();
    g.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    g.clip();
    for (const [k, l] of this.lines.filter((l) => l.mark).entries()) this.symbols(u, g, l, k, scale);
    g.restore();
    this.about.over?.(u, g, scale, colors, this);
  }

  // symbols draws small symbols along a line.
  symbols(u, g, l, k, scale) {
    const gap = 90 * scale;
    g.fillStyle = l.color;
    for (let x = u.bbox.left + ((k * 31) % 90) * scale; x < u.bbox.left + u.bbox.width; x += gap) {
      const i = atMost(u.data[0], u.posToVal(x, "x", true)) - 1;
      const v = u.data[l.at][i];
      if (v === null || v === undefined) continue;
      symbol(g, l.mark, x, u.valToPos(v, "y", true), 4 * scale);
    }
  }

  // follow applies the window and the cursor of the state.
  follow() {
    if (!this.u) return;
    this.u.setScale("x", { min: 0, max: 1 }); // the range is what the state says
    this.point();
  }

  // point moves the cursor to the event of the state.
  point() {
    const { state, axis } = this.app;
    this.quiet = true;
    const left = state.cursor === null ? -10 : this.u.valToPos(axis.x(state.cursor), "x");
    this.u.setCursor({ left, top: left < 0 ? -10 : 10 }, false);
    this.quiet = false;
    if (document.activeElement === this.plot) this.announce();
  }

  // announce reports the values at the cursor to screen readers.
  announce() {
    const { state, trace } = this.app;
    const last = Math.max(trace.events - 1, 0);
    if (state.cursor === null || !this.u) {
      setSlider(this.plot, last, Math.floor(state.from), "no cursor");
      return;
    }
    const write = VALUE_TEXTS[this.about.unit];
    const at = atMost(this.u.data[0], this.app.axis.x(state.cursor)) - 1;
    const values = this.lines.map((l) => {
      const v = this.u.data[l.at][at];
      const name = l.kind ?? (l.run === undefined ? "lower bound" : trace.runs[l.run].strategy);
      return `${name}${l.what ? ` ${l.what}` : ""} ${v === null || v === undefined ? "unknown" : write(v)}`;
    });
    setSlider(this.plot, last, state.cursor, `event ${count(state.cursor)}: ${values.join(", ")}`);
  }

  // highlight highlights the lines of one run, or none.
  highlight(run) {
    if (!this.u) return;
    for (const l of this.lines)
      this.u.series[l.at].alpha = run === null || l.run === undefined || l.run === run ? 1 : 0.2;
    this.u.redraw(false);
  }

  // resize adapts to the width of the page.
  resize() {
    this.u?.setSize({ width: Math.max(this.plot.clientWidth, 200), height: this.about.height });
  }
}

// KEYS_HELP describes the keyboard shortcuts.
const KEYS_HELP =
  "Arrow keys move the cursor, plus and minus zoom, Home and End go to the ends, Enter shows the instant";

// symbol draws a disc, a square or a triangle: kinds 1 to 3 are filled, 4 to 6 hollow, and so on.
function symbol(g, kind, x, y, size) {
  const hollow = Math.floor((kind - 1) / 3) % 2 === 1;
  g.beginPath();
  if (kind % 3 === 1) g.arc(x, y, size * 0.9, 0, 7);
  else if (kind % 3 === 2) g.rect(x - size * 0.8, y - size * 0.8, 1.6 * size, 1.6 * size);
  else {
    g.moveTo(x, y - size);
    g.lineTo(x + size, y + size * 0.8);
    g.lineTo(x - size, y + size * 0.8);
    g.closePath();
  }
  if (!hollow) {
    g.fill();
    return;
  }
  g.save();
  g.setLineDash([]);
  g.strokeStyle = g.fillStyle;
  g.lineWidth = size * 0.4;
  g.stroke();
  g.fillStyle = pageColors().paper;
  g.fill();
  g.restore();
}

// swatch returns a sample of the line style of a run.
function swatch(run) {
  const canvas = el("canvas", { class: "vy-swatch", "aria-hidden": "true" });
  const colors = pageColors();
  const g = sizeCanvas(canvas, 22, 10);
  g.strokeStyle = g.fillStyle = lineColor(run.color, colors.dark);
  g.lineWidth = 2.5;
  g.beginPath();
  g.moveTo(0, 5);
  g.lineTo(22, 5);
  g.stroke();
  if (lineMark(run.color)) symbol(g, lineMark(run.color), 11, 5, 4);
  return canvas;
}
