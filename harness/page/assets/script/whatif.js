// What-if: the smallest card on which each setting carries the run, as bars.

// whatifView returns the section of a what-if.
function whatifView(report) {
  const w = report.whatif;
  const runs = w.runs.filter((r) => r.completes_at_bytes);
  const most = Math.max(w.card_bytes, ...runs.map((r) => r.completes_at_bytes));
  const bar = (size, kind) => {
    const b = el("div", { class: `vy-bar-of ${kind}`, role: "img", "aria-label": bytes(size) });
    b.style.width = `${(100 * size) / most}%`;
    return el("div", { class: "vy-track" }, b);
  };
  const rows = [
    ["lower bound", bar(w.lower_bound_bytes, "vy-bound-of"), bytes(w.lower_bound_bytes), "—", "—", "—"],
  ];
  if (w.card_bytes)
    rows.push(["the card of the run", bar(w.card_bytes, "vy-card-of"), bytes(w.card_bytes), "—", "—", "—"]);
  for (const r of runs) {
    rows.push([
      r.is_recorded ? `${r.label} (as recorded)` : r.label,
      bar(r.completes_at_bytes, r.carried === false ? "vy-fails-of" : "vy-run-of"),
      bytes(r.completes_at_bytes),
      bytes(r.peak_reserved_bytes),
      count(r.device_calls),
      nanoseconds(r.device_time_ns),
    ]);
  }
  const note = el("p", {
    class: "vy-note",
    text: "Striped: it did not carry the run on the card of the run.",
  });
  const heads = ["setting", "smallest card", "", "peak reserved", "device calls", "device time"];
  const body = el("div", { class: "vy-scroll" }, table("", heads, rows, [2, 3, 4, 5]));
  return {
    section: el(
      "section",
      { id: "vy-whatif" },
      el("h2", { text: "The smallest card for each setting", "data-short": "Cards" }),
      runs.some((r) => r.carried === false) ? note : null,
      body,
    ),
    draw: () => {},
  };
}
