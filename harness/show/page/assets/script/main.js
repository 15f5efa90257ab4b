// The page: reads its data, builds the views and connects them to one state.

// App is the shared context of the views.
class App {
  constructor(report, state) {
    this.report = report;
    this.state = state;
    this.choose();
    this.state.view((changed) => {
      if (changed.has("trace") || changed.has("unit")) this.choose();
    });
    this.overview = new Overview(this);
    this.holders = new HolderView(this);
    this.timeline = new Timeline(this);
    this.map = new BlockMap(this);
    this.instant = new InstantView(this);
    this.failures = new FailureView(this);
    this.latency = new LatencyView(this);
    this.sections = [this.holders, this.timeline, this.map, this.instant, this.failures, this.latency];
    this.state.view((changed) => {
      if (changed.has("trace")) this.overview.drawNav();
    }, true);
  }

  // choose applies the trace and the axis of the state.
  choose() {
    this.trace = this.report.traces[this.state.trace];
    this.axis = new Axis(this.trace, this.state.unit);
  }

  // show puts the views into the page.
  show(host) {
    host.replaceChildren(this.overview.element, ...this.sections.map((s) => s.section));
  }

  // lineColors returns the colours of the strategies.
  lineColors(dark) {
    return LINES[dark ? "dark" : "light"];
  }

  // resize redraws everything for another width.
  resize() {
    this.state.runLateViews();
    this.overview.resize();
    this.timeline.resize();
    this.map.resize();
    this.instant.draw();
    this.latency.resize();
  }
}

// follow redraws the page when its width, the colour scheme or the medium (print) changes.
function follow(state, resize) {
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    resize();
  });
  const all = () => state.set({ theme: state.theme }, true);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  const print = (on) => {
    state.printing = on;
    document.documentElement.toggleAttribute("data-print", on);
    state.changed.add("trace").add("theme");
    state.notify(); // the browser prints without waiting for a frame
  };
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
}

// applyTheme makes the page light or dark; "auto" follows the system. Print is light.
function applyTheme(state) {
  forgetPageColors();
  const theme = state.printing ? "light" : state.theme;
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

// themeSwitch adds the theme selector to the head of the page.
function themeSwitch(state) {
  const host = el("div", { class: "vy-theme" });
  const options = [
    ["auto", "auto"],
    ["light", "light"],
    ["dark", "dark"],
  ];
  const build = () =>
    refill(host, switches("Theme", options, state.theme, (theme) => state.set({ theme }, true)));
  state.view((changed) => {
    if (!changed.has("theme")) return;
    applyTheme(state);
    build();
  });
  build();
  document.querySelector("header").append(host);
}

// start builds the page.
async function start() {
  const host = document.getElementById("vy-app");
  enhanceTables();
  let report;
  try {
    report = await readReport();
  } catch (e) {
    host.dataset.state = "none";
    host.replaceChildren(
      el("p", {
        class: "vy-alarm",
        role: "alert",
        text: `The pictures cannot be shown: ${e.message}. They need a browser of 2023 or newer, and the whole file. The tables are complete.`,
      }),
    );
    return;
  }
  const state = new State(report);
  const own = ownView(report);
  const traces = report.traces.some((t) => t.runs.some((r) => r.drawn));
  if (!own && !traces) {
    host.dataset.state = "none";
    return;
  }
  themeSwitch(state);
  const app = traces ? new App(report, state) : null;
  follow(state, () => {
    app?.resize();
    own?.draw();
  });
  app?.show(host);
  if (app && report.live) state.view(() => (app.live ??= new Live(app)), true);
  if (own) {
    if (own.first) {
      document.getElementById("vy-tables").before(own.section); // the text output below repeats the view, so it is folded
      for (const d of document.querySelectorAll(".vy-output")) d.open = false;
    } else host.prepend(own.section);
    state.view((changed) => {
      if (changed.has("theme")) own.draw();
    });
  }
  state.view(() => performance.mark("vy-picture"));
  state.set({ theme: state.theme }, true);
  window.vramyard = app;
}

// ownView returns the view that is specific to this kind of report, or null.
function ownView(report) {
  if (report.bench) return benchView(report);
  if (report.whatif) return answerView(report);
  if (report.check?.length) return proofView(report);
  return null;
}

start();
