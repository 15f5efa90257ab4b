// The page: reads its data, builds the views and lets them follow one state.

// App is what the views share.
class App {
  constructor(report) {
    this.report = report;
    this.state = new State(report);
    this.choose();
    this.state.view((changed) => {
      if (changed.has("trace") || changed.has("unit")) this.choose();
      if (changed.has("theme")) applyTheme(this.printing ? "light" : this.state.theme);
    });
    this.overview = new Overview(this);
    this.timeline = new Timeline(this);
    this.map = new BlockMap(this);
    this.instant = new InstantView(this);
    this.failures = new FailureView(this);
    this.latency = new LatencyView(this);
    this.sections = [this.timeline, this.map, this.instant, this.failures, this.latency];
  }

  // choose takes the trace and the axis from the state.
  choose() {
    this.trace = this.report.traces[this.state.trace];
    this.axis = new Axis(this.trace, this.state.unit);
  }

  // show puts the views into the page.
  show(host) {
    host.replaceChildren(this.overview.element, ...this.sections.map((s) => s.section));
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      this.resize();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.state.set({ trace: this.state.trace }, true),
    );
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    this.state.set({ theme: this.state.theme }, true);
  }

  // lineColors returns the colours of strategies without a mark.
  lineColors(dark) {
    return LINES[dark ? "dark" : "light"];
  }

  // resize draws everything for another width.
  resize() {
    this.overview.resize();
    this.timeline.resize();
    this.map.resize();
    this.instant.draw();
    this.latency.resize();
  }

  // print draws everything on white and as wide as paper, or as it was.
  print(on) {
    this.printing = on;
    document.documentElement.toggleAttribute("data-print", on);
    this.state.changed.add("trace").add("theme");
    this.state.tell();
  }
}

// applyTheme makes the page light or dark; "auto" is as the reader's system.
function applyTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

// themeSwitch puts the choice of the theme into the head of the page.
function themeSwitch(state) {
  const host = el("div", { class: "vy-theme" });
  const options = [
    ["auto", "auto"],
    ["light", "light"],
    ["dark", "dark"],
  ];
  const build = () =>
    host.replaceChildren(switches("Theme", options, state.theme, (theme) => state.set({ theme }, true)));
  state.view((changed) => {
    if (changed.has("theme")) build();
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
  if (!report.traces.some((t) => t.runs.some((r) => r.drawn))) {
    host.dataset.state = "none";
    return;
  }
  const app = new App(report);
  themeSwitch(app.state);
  app.state.view(() => performance.mark("vy-picture"));
  app.show(host);
  window.vramyard = app;
}

start();
