// The bar above the views: trace, axis, and reserved memory over the whole run with the visible window.

const OVERVIEW_HEIGHT = 44;

// Overview is the bar.
class Overview {
  constructor(app) {
    this.app = app;
    this.controls = el("div", { class: "vy-controls" });
    this.nav = el("nav", { "aria-label": "Views" });
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.brush = el(
      "div",
      {
        class: "vy-brush",
        tabindex: "0",
        role: "slider",
        "aria-label": "Window of the axis. Drag it, or move it with arrow keys, plus and minus.",
        "aria-valuemin": "0",
      },
      this.canvas,
    );
    this.element = el("div", { class: "vy-bar" }, this.controls, this.brush);
    this.listen();
    app.state.view((changed) => this.update(changed));
  }

  // listen follows the pointer and keys.
  listen() {
    const { state } = this.app;
    this.brush.addEventListener("pointerdown", (e) => {
      const at = this.eventAt(e);
      const edge = (this.app.trace.events * 8) / Math.max(this.brush.clientWidth, 1);
      const part =
        Math.abs(at - state.from) < edge
          ? "from"
          : Math.abs(at - state.to) < edge
            ? "to"
            : at > state.from && at < state.to && this.zoomed()
              ? "all"
              : "new";
      this.drag = { part, at, from: state.from, to: state.to };
      this.brush.setPointerCapture(e.pointerId);
    });
    this.brush.addEventListener("pointermove", (e) => {
      if (this.drag) this.dragTo(this.eventAt(e));
    });
    this.brush.addEventListener("pointerup", () => {
      this.drag = null;
    });
    this.brush.addEventListener("dblclick", () => state.window(0, this.app.trace.events));
    this.brush.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -0.25, ArrowRight: 0.25, Home: -1e9, End: 1e9 }[e.key];
      if (!by) return steer(this.app, e);
      e.preventDefault();
      state.window(state.from + by * (state.to - state.from), state.to + by * (state.to - state.from));
    });
  }

  // zoomed reports whether the window is smaller than the trace.
  zoomed() {
    const { state, trace } = this.app;
    return state.from > 0 || state.to < trace.events;
  }

  // eventAt returns the event at the pointer.
  eventAt(e) {
    const box = this.brush.getBoundingClientRect();
    const { axis, trace } = this.app;
    const share = Math.min(Math.max((e.clientX - box.left) / box.width, 0), 1);
    return axis.event(share * axis.x(trace.events));
  }

  // dragTo moves the window, or one of its edges.
  dragTo(event) {
    const { part, at, from, to } = this.drag;
    const { state } = this.app;
    if (part === "all") state.window(from + event - at, to + event - at);
    else {
      const other = part === "from" ? to : part === "to" ? from : at;
      if (event !== other) state.window(Math.min(event, other), Math.max(event, other));
    }
  }

  // update follows the state.
  update(changed) {
    const has = (...names) => names.some((n) => changed.has(n));
    if (has("trace", "unit", "theme")) this.drawControls();
    if (has("from", "to", "trace", "unit")) this.showWindow();
    if (has("trace", "hidden", "theme", "unit", "from", "to")) this.draw();
  }

  // drawControls makes the controls.
  drawControls() {
    const { state, report, trace } = this.app;
    const parts = [];
    if (report.traces.length > 1) {
      parts.push(
        choice(
          "Trace",
          report.traces.map((t, i) => [i, t.name]),
          state.trace,
          (v) => state.set({ trace: Number(v) }),
        ),
      );
    }
    if (trace.time)
      parts.push(
        switches(
          "Axis",
          [
            ["event", "events"],
            ["time", "time"],
          ],
          state.unit,
          (unit) => state.set({ unit }),
        ),
      );
    const width = () => state.to - state.from;
    this.text = el("output", { class: "vy-window" });
    parts.push(
      el(
        "span",
        { class: "vy-switch", role: "group", "aria-label": "Window" },
        el("span", { text: "Window" }),
        button("◂", "Move the window left", () =>
          state.window(state.from - width() / 2, state.to - width() / 2),
        ),
        button("+", "Zoom in", () => state.zoom(0.5, state.cursor)),
        button("−", "Zoom out", () => state.zoom(2, state.cursor)),
        button("▸", "Move the window right", () =>
          state.window(state.from + width() / 2, state.to + width() / 2),
        ),
        button("all", "Show the whole trace", () => state.window(0, trace.events)),
      ),
      this.text,
    );
    refill(this.controls, ...parts, this.nav);
  }

  // drawNav makes the buttons of the views that have content.
  drawNav() {
    this.nav.replaceChildren();
    for (const s of document.querySelectorAll("main section")) {
      const go = () => s.scrollIntoView({ block: "start" });
      if (!s.hidden)
        this.nav.append(button(s.querySelector("h2").dataset.short ?? s.querySelector("h2").textContent, "", go));
    }
  }

  // showWindow describes the window.
  showWindow() {
    const { state, axis, trace } = this.app;
    const text = this.zoomed()
      ? `${axis.text(axis.x(Math.floor(state.from)))} – ${axis.text(axis.x(Math.ceil(state.to)))} of ${axis.text(axis.x(trace.events))}`
      : `all ${plural(trace.events, "event")}`;
    this.text.textContent = text;
    this.brush.setAttribute("aria-valuemax", String(trace.events));
    this.brush.setAttribute("aria-valuenow", String(Math.round(state.from)));
    this.brush.setAttribute("aria-valuetext", text);
  }

  // draw plots reserved memory, the lower bound and the window.
  draw() {
    const { state, trace, axis } = this.app;
    const w = Math.max(this.brush.clientWidth, 100);
    const h = OVERVIEW_HEIGHT;
    const g = sizeCanvas(this.canvas, w, h);
    const colors = pageColors();
    const end = axis.x(trace.events) || 1;
    const runs = state.shown();
    const top = Math.max(
      1,
      ...runs.map((r) => highest(r.series.reserved.max, 0, trace.buckets.n - 1) ?? 0),
      highest(trace.bound, 0, trace.buckets.n - 1) ?? 0,
    );
    const trail = (values, color, fillIt) => {
      g.beginPath();
      g.moveTo(0, h);
      for (let i = 0; i < trace.buckets.n; i++) {
        const y = h - 2 - ((values[i] || 0) / top) * (h - 6);
        g.lineTo((axis.x(trace.buckets.first[i]) / end) * w, y);
        g.lineTo((axis.x(trace.buckets.last[i] + 1) / end) * w, y);
      }
      g.lineTo(w, h);
      g.strokeStyle = g.fillStyle = color;
      if (fillIt) g.fill();
      else g.stroke();
    };
    trail(trace.bound, colors.held, true);
    for (const r of runs) trail(r.series.reserved.max, lineColor(r.color, colors.dark), false);
    const [a, b] = [(axis.x(state.from) / end) * w, (axis.x(state.to) / end) * w];
    g.fillStyle = colors.dark ? "#000000a0" : "#ffffffb0";
    g.fillRect(0, 0, a, h);
    g.fillRect(b, 0, w - b, h);
    g.strokeStyle = colors.focus;
    g.lineWidth = 2;
    g.strokeRect(a + 1, 1, Math.max(b - a - 2, 2), h - 2);
  }

  // resize adapts to the width of the page.
  resize() {
    this.draw();
  }
}
