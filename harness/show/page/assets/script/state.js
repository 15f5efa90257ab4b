// The view state: one value that all views share, stored in the address of the page so that a view
// can be shared as a link.

const CURVES = ["requested", "allocated", "active", "reserved"];

// State holds the view state and notifies views of changes.
class State {
  constructor(report) {
    this.report = report;
    this.views = [];
    this.late = []; // late callbacks that have not run yet
    this.changed = new Set();
    this.start(0);
    this.curves = ["reserved"];
    this.unit = "event";
    this.painted = null; // the colouring of blocks that the reader chose; null: the default
    this.calls = null; // the content of the chart of calls that the reader chose; null: the default
    this.theme = "auto";
    this.read(location.hash);
    window.addEventListener("hashchange", () => {
      if (location.hash !== this.written) {
        this.read(location.hash);
        this.set({ trace: this.trace }, true);
      }
    });
  }

  // paint is the colouring of blocks.
  get paint() {
    const trace = this.report.traces[this.trace];
    const chosen = this.painted === "site" && !trace?.sites.names.length ? null : this.painted;
    return chosen ?? trace?.paint ?? "tag";
  }

  set paint(way) {
    this.painted = way;
  }

  // start shows a whole trace.
  start(trace) {
    this.trace = trace;
    const t = this.report.traces[trace];
    this.from = 0;
    this.to = t ? t.events : 0;
    this.cursor = null;
    this.hidden = [];
    this.run = t
      ? Math.max(
          t.runs.findIndex((r) => r.drawn),
          0,
        )
      : 0;
    this.event = t ? this.firstInstant(t.runs[this.run]) : 0;
    this.pin = null;
  }

  // firstInstant returns the initial event: the chosen one, the first failure, or the peak of requested bytes.
  firstInstant(run) {
    const known = (run && run.instants) || [];
    const of = (label) => known.find((i) => i.labels.includes(label));
    return (of("chosen") || of("first failure") || of("peak requested") || known[0] || { event: 0 }).event;
  }

  // view adds a callback that receives the changed names, at most once a frame. A late callback runs
  // first after the others are visible, so that views below the window do not delay the first picture.
  view(f, late = false) {
    (late ? this.late : this.views).push(f);
  }

  // runNextLate runs the next late callback. The page exposes the number of remaining ones.
  runNextLate() {
    const view = this.late.shift();
    view(new Set(["trace", "theme"])); // these make a view redraw everything
    this.views.push(view);
    document.documentElement.dataset.late = this.late.length;
  }

  // runLateByFrame runs all late callbacks, one per frame.
  runLateByFrame() {
    if (!this.late.length) return;
    this.runNextLate();
    setTimeout(() => this.runLateByFrame());
  }

  // runLateViews runs all late callbacks at once.
  runLateViews() {
    while (this.late.length) this.runNextLate();
  }

  // set changes the state.
  set(changes, all = false) {
    if ("trace" in changes && changes.trace !== this.trace) {
      this.start(changes.trace);
      all = true;
    }
    for (const [key, value] of Object.entries(changes)) {
      if (this[key] !== value || all) this.changed.add(key);
      this[key] = value;
    }
    if (all) this.changed.add("trace");
    if (this.changed.size && !this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => this.notify());
    }
  }

  // notify calls the views.
  notify() {
    this.waiting = false;
    const changed = this.changed;
    this.changed = new Set();
    for (const view of this.views) view(changed);
    if (this.printing) this.runLateViews();
    else if (this.late.length && !("late" in document.documentElement.dataset)) {
      document.documentElement.dataset.late = this.late.length;
      requestAnimationFrame(() => setTimeout(() => this.runLateByFrame())); // when the first picture is on the screen
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), 250);
  }

  // window sets the visible part of the axis in events, clamped to the trace and to a minimum width.
  window(from, to) {
    const events = this.report.traces[this.trace].events;
    const width = Math.min(Math.max(to - from, Math.min(4, events)), events);
    const start = Math.min(Math.max(from, 0), events - width);
    this.set({ from: start, to: start + width });
  }

  // zoom widens the window around an event by a factor.
  zoom(factor, around) {
    const at = around ?? (this.from + this.to) / 2;
    this.window(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  // write stores the state in the address of the page.
  write() {
    const t = this.report.traces[this.trace];
    if (!t) return;
    const p = new URLSearchParams();
    if (this.trace) p.set("trace", this.trace);
    if (this.from > 0 || this.to < t.events) p.set("x", `${this.from.toFixed(2)}-${this.to.toFixed(2)}`);
    if (this.unit !== "event") p.set("unit", this.unit);
    if (this.hidden.length) p.set("hide", this.hidden.join("."));
    if (this.curves.join() !== "reserved") p.set("curves", this.curves.join("."));
    if (this.painted) p.set("paint", this.painted);
    if (this.calls) p.set("calls", this.calls);
    p.set("at", `${this.run}.${this.event}`);
    if (this.pin !== null) p.set("block", this.pin);
    if (this.theme !== "auto") p.set("theme", this.theme);
    this.written = `#${p}`;
    history.replaceState(null, "", this.written);
  }

  // read restores the state from the address of the page. Invalid parts are ignored: an
  // address may be mistyped or belong to another report.
  read(hash) {
    const p = new URLSearchParams(hash.slice(1));
    const integer = (name, text, below) => {
      const n = Number(text);
      if (text !== null && text !== undefined && text !== "" && Number.isInteger(n) && n >= 0 && n < below)
        this[name] = n;
    };
    const oneOf = (name, allowed) => {
      if (allowed.includes(p.get(name))) this[name] = p.get(name);
    };
    oneOf("theme", ["auto", "light", "dark"]);
    if (p.has("trace")) {
      integer("trace", p.get("trace"), this.report.traces.length);
      this.start(this.trace);
    }
    const t = this.report.traces[this.trace];
    if (!t) return;
    const [from, to] = (p.get("x") ?? "").split("-").map(Number);
    if (from >= 0 && to > from && to <= t.events) Object.assign(this, { from, to });
    if (t.time) oneOf("unit", ["event", "time"]);
    oneOf("paint", Object.keys(PAINTS));
    const [run, event] = (p.get("at") ?? "").split(".");
    integer("run", run, t.runs.length);
    integer("event", event, t.events);
    integer("pin", p.get("block"), NEVER);
    const calls = p.get("calls");
    if (["all", "sum", "time", "time-sum"].includes(calls) || (calls && Number(calls) < t.runs.length)) this.calls = calls;
    const curves = (p.get("curves") ?? "").split(".").filter((c) => CURVES.includes(c));
    if (curves.length) this.curves = curves;
    if (p.has("hide"))
      this.hidden = p
        .get("hide")
        .split(".")
        .map(Number)
        .filter((i) => i < t.runs.length);
  }

  // shown returns the visible runs.
  shown() {
    const t = this.report.traces[this.trace];
    return t ? t.runs.filter((r) => r.drawn && !this.hidden.includes(r.index)) : [];
  }
}
