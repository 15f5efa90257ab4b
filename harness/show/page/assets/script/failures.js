// Refused requests: the request, the free memory, the blocks in the way, and the result of the other
// strategies at the same event.

// FailureView is the section of failures.
class FailureView {
  constructor(app) {
    this.app = app;
    this.list = el("div");
    this.section = el(
      "section",
      { id: "vy-failures" },
      el("h2", { text: "Refused requests", "data-short": "Failures" }),
      this.list,
    );
    app.state.view((changed) => {
      if (changed.has("trace")) this.build();
    }, true);
  }

  // build rebuilds the section.
  build() {
    const runs = this.app.trace.runs.filter((r) => r.drawn && r.failure_count > 0);
    if (!runs.length) {
      this.list.replaceChildren(el("p", { text: "Every strategy granted every request." }));
      return;
    }
    const granted = this.app.trace.runs.filter((r) => r.drawn && !r.failure_count).map((r) => r.strategy);
    const all = granted.length ? [el("p", { text: `${granted.join(", ")} granted every request.` })] : [];
    for (const run of runs) all.push(this.runOf(run, runs.length === 1 || this.app.state.printing));
    this.list.replaceChildren(...all);
  }

  // runOf returns the failures of a run.
  runOf(run, open) {
    const { trace } = this.app;
    const rows = run.failures.map((f) => [
      button(count(f.event), "Show the instant", () => this.show(run, f)),
      bytes(f.requested),
      f.reason || f.text,
      f.reason ? bytes(f.free) : "—",
      f.reason ? bytes(f.hole) : "—",
      streamName(trace, f.stream),
      tagName(trace, f.tag),
    ]);
    const heads = ["event", "requested", "reason", "free", "largest free", "stream", "tag"];
    const first = run.failures[0];
    const rest = run.failure_count - run.failures.length;
    const parts = [
      el(
        "summary",
        {},
        swatch(run),
        el("span", {
          text: ` ${run.strategy}: ${plural(run.failure_count, "request")} of ${count(trace.events)} events`,
        }),
      ),
    ];
    if (first)
      parts.push(
        el("h3", { text: `The ${whichOf("first", run.failure_count)}: ${bytes(first.requested)} at event ${count(first.event)}` }),
        this.details(run, first),
      );
    parts.push(el("div", { class: "vy-scroll vy-tall" }, table("One by one", heads, rows, [0, 1, 3, 4])));
    if (rest > 0)
      parts.push(
        el("p", {
          class: "vy-note",
          text: `${plural(rest, "more", "more")} are counted but not listed.`,
        }),
      );
    return el("details", { open }, ...parts);
  }

  // show moves the page to the event of a failure.
  show(run, f) {
    this.app.state.set({ run: run.index, event: f.event, cursor: f.event, pin: null });
    document.getElementById("vy-instant").scrollIntoView({ block: "start" });
  }

  // details returns the details of a failure.
  details(run, f) {
    const box = el("div", { class: "vy-failure" });
    const why = f.report?.report ?? f.report;
    if (why) box.append(...postmortem(why));
    else {
      const pairs = [["error of the strategy", f.text]];
      if (f.reason)
        pairs.push(["reason", f.reason], ["free chunks", bytes(f.free)], ["largest free chunk", bytes(f.hole)]);
      box.append(facts(pairs));
    }
    if (this.app.trace.runs.length === 1)
      box.append(
        el("p", {
          class: "vy-note",
          text: "Only this strategy was replayed. For the same file, vramyard whatif reports the need of other settings and strategies, and vramyard compare draws them side by side.",
        }),
      );
    const others = this.app.trace.runs
      .filter((r) => r.drawn && r !== run)
      .map((r) => {
        const other = f.report?.others?.find((v) => v.strategy === r.strategy);
        return [r.strategy, other ? verdict(other) : this.atEvent(r, f.event), this.heldAt(r, f.event)];
      });
    if (others.length) {
      const caption = `Outcome under other strategies at event ${count(f.event)}`;
      box.append(
        el("div", { class: "vy-scroll" }, table(caption, ["strategy", "outcome", "reserved"], others, [2])),
      );
    }
    return box;
  }

  // atEvent returns the result of a run at an event, if known.
  atEvent(run, event) {
    const own = run.failures.find((f) => f.event === event);
    if (own) return `refused: ${own.reason || own.text}`;
    const last = run.failures[run.failures.length - 1];
    if (!run.failure_count || run.failures.length === run.failure_count || (last && event <= last.event))
      return "granted";
    const n = run.series.oom[bucketOf(this.app.trace, event)];
    return n
      ? `${plural(n, "request")} refused within ${count(2 ** this.app.trace.shift)} events around it`
      : "granted";
  }

  // heldAt returns the bytes that a run holds at an event.
  heldAt(run, event) {
    const v = run.series.reserved.max[bucketOf(this.app.trace, event)];
    return Number.isNaN(v) ? "—" : bytes(v);
  }
}

// verdict returns the outcome of a request in a strategy's own replay.
function verdict(v) {
  if (v.outcome !== "granted") return v.report ? `refused: ${v.report.verdict}` : v.outcome;
  const parts = ["granted"];
  if (v.taken_bytes) parts.push(`took ${bytes(v.taken_bytes)} from the device`);
  if (v.given_back_bytes) parts.push(`gave ${bytes(v.given_back_bytes)} back`);
  if (v.device_calls) parts.push(`${plural(v.device_calls, "call")} to the device`);
  if (v.refused_before_count) parts.push(`${plural(v.refused_before_count, "request")} refused before`);
  return parts.join(", ");
}

// postmortem returns the report of a refused request.
function postmortem(r) {
  const amount = (a) => (a && a.count ? `${bytes(a.bytes)} in ${plural(a.count, "chunk")}` : "none");
  const more = (text, of) => (text === "none" ? text : `${text}, ${of}`);
  const list = [
    [
      "requested",
      `${bytes(r.requested_bytes)}; needs a free chunk of at least ${bytes(r.block_bytes)}`,
    ],
    ["requested from the device", r.segment_bytes ? bytes(r.segment_bytes) : "nothing"],
    [
      "free on the device",
      r.device_free_bytes === undefined || r.device_free_bytes === null
        ? "unknown"
        : bytes(r.device_free_bytes),
    ],
    ["reserved", bytes(r.reserved_bytes)],
    ["live", more(amount(r.live).replace("chunk", "block"), `rounding loss ${bytes(r.rounding_loss_bytes)}`)],
    ["free", more(amount(r.free), `the largest ${bytes(r.largest_hole_bytes)}`)],
    ["usable for the request", more(amount(r.usable), `the largest ${bytes(r.largest_usable_bytes)}`)],
    ["pending on streams", amount(r.pending)],
    ["set aside", amount(r.set_aside)],
    ["free, but pinned", amount(r.pinned)],
  ];
  const parts = [el("p", { class: "vy-verdict", text: r.verdict }), facts(list)];
  const scroll = (t) => el("div", { class: "vy-scroll" }, t);
  const stream = (s) => (s === 0 ? "default" : String(s));
  if (r.streams?.length) {
    parts.push(
      scroll(
        table(
          "By stream",
          ["stream", "reserved", "free", "largest free", "usable", "pending"],
          r.streams.map((s) => [
            stream(s.stream),
            bytes(s.reserved_bytes),
            bytes(s.free_bytes),
            bytes(s.largest_hole_bytes),
            bytes(s.usable_bytes),
            bytes(s.pending_bytes),
          ]),
          [1, 2, 3, 4, 5],
        ),
      ),
    );
  }
  if (r.pinned_by?.length) {
    const name = (p) => p.tag || (p.stack?.length ? p.stack[0] : "no tag");
    parts.push(
      scroll(
        table(
          "Owners of blocks in regions with free memory",
          ["owner", "pinned bytes", "pinned alone", "regions", "blocks", "oldest"],
          r.pinned_by.map((p) => [
            name(p),
            bytes(p.pinned_bytes),
            bytes(p.pinned_alone_bytes),
            count(p.region_count),
            count(p.blocks.count),
            plural(p.oldest_age_events, "event"),
          ]),
          [1, 2, 3, 4, 5],
        ),
      ),
    );
  }
  const stackDetails = (text, stack) =>
    el("details", {}, el("summary", { text }), el("ol", { class: "vy-calls" }, ...stack.map((line) => el("li", { text: line }))));
  if (r.asker?.stack?.length) parts.push(stackDetails(`Requested by: ${r.asker.stack[0]}`, r.asker.stack));
  for (const p of r.pinned_by ?? [])
    if (p.stack?.length)
      parts.push(stackDetails(`${bytes(p.pinned_bytes)} pinned by ${plural(p.blocks.count, "block")} of ${p.stack[0]}`, p.stack));
  if (r.plans?.length) {
    const proven = (p) =>
      p.proven === true ? "tried: granted" : p.proven === false ? "tried: refused" : "not tried";
    parts.push(
      scroll(
        table(
          "Ways to make room",
          ["way", "blocks to free or move", "their bytes", "proof"],
          r.plans.map((p) => [p.way, count(p.block_count), bytes(p.copied_bytes), proven(p)]),
          [1, 2],
        ),
      ),
    );
  }
  return parts;
}
