// What would have carried a run: the answer in words, what every setting needs, and the failure.

// answerView returns the section of the answer, and colours its bars once it is in the page.
function answerView(report) {
  const { answer, failure } = report.whatif;
  const setting = answer.verdict === "setting"; // then the first sentence is the answer, and the setting follows it
  const words = setting ? answer.text.slice(0, 1) : answer.text;
  const bars = needs(report);
  const section = el(
    "section",
    { id: "vy-answer" },
    el("h2", { text: "Answer" }),
    el("p", { class: "vy-answer", text: words.join(" ") }),
    answer.environment?.length ? copyBox(answer.environment.map((e) => `export ${e}`).join("\n")) : null,
    setting && answer.text.length > 1 ? el("p", { text: answer.text.slice(1).join(" ") }) : null,
    el("h3", { text: "How sure" }),
    el("ul", {}, ...(answer.how_sure ?? []).map((text) => el("li", { text }))),
    el("h3", { text: "What each setting needs" }),
    bars.element,
  );
  if (failure) section.append(...refusal(report.whatif));
  return { section, first: true, draw: bars.draw };
}

// needs draws the capacity that every setting needs as bars, with the lower bound and the card as lines.
function needs(report) {
  const { runs, lower_bound_bytes: bound, card_bytes: card } = report.whatif;
  const reach = (p) => p.completes_at_bytes ?? p.fails_at_bytes ?? 0;
  const most = 1.04 * Math.max(bound, card, ...runs.map(reach));
  const place = (e, name, n) => e.style.setProperty(name, `${((100 * n) / most).toFixed(3)}%`);
  const lines = [["lower bound", bound, "vy-at-bound"]];
  if (card) lines.push(["card", card, "vy-at-card"]);
  const painted = []; // bars with the number of their colour
  const bar = (p) => {
    const cell = el("div", { class: "vy-bars" });
    const add = (cls, from, to) => {
      const b = el("span", { class: cls });
      place(b, "left", from);
      place(b, "width", to - from);
      painted.push([b, report.colors[p.strategy] ?? 0]);
      cell.append(b);
    };
    const known = p.min_capacity_bytes ?? p.fails_at_bytes ?? 0;
    if (known) add("vy-bar-sure", 0, known);
    if (p.completes_at_bytes > known) add("vy-bar-open", known, p.completes_at_bytes);
    for (const [, n, cls] of lines) {
      const line = el("i", { class: cls });
      place(line, "left", n);
      cell.append(line);
    }
    return cell;
  };
  const amount = (p) =>
    p.min_capacity_bytes !== null && p.min_capacity_bytes !== undefined
      ? bytes(p.min_capacity_bytes)
      : p.completes_at_bytes
        ? `≤ ${bytes(p.completes_at_bytes)}`
        : p.fails_at_bytes
          ? `> ${bytes(p.fails_at_bytes)}`
          : "—";
  const label = (p) => {
    const e = el("span", { class: "vy-label", text: breakable(p.label) });
    if (p.is_recorded) e.append(el("strong", { text: " as recorded" }));
    if (p.label === report.whatif.answer.label) e.append(el("strong", { text: " in the answer" }));
    return e;
  };
  const carried = (p) => (p.carried === null ? "—" : p.carried ? "carried" : "fails");
  const row = (p) => [
    ...[label(p), bar(p), amount(p), carried(p), bytes(p.peak_reserved_bytes), count(p.device_calls)],
    nanoseconds(p.device_time_ns),
  ];
  const heads = ["setting", "smallest device", "bytes", "on the card", "peak reserved", "device calls", "device time"];
  const t = table("", heads, runs.map(row), [2, 4, 5, 6]);
  t.classList.add("vy-needs");
  const key = el("div", { class: "vy-key-row" });
  for (const [name, n, cls] of lines)
    key.append(
      el("span", { class: "vy-key" }, el("i", { class: `vy-line-key ${cls}` }), el("span", { text: `${name} ${bytes(n)}` })),
    );
  key.append(
    el("span", {
      class: "vy-note",
      text: "A colour is a strategy. Hatched: the minimum lies somewhere in it. Where nothing was seen to complete, the bar ends where it still fails.",
    }),
  );
  const draw = () => {
    const { dark } = ink();
    for (const [b, color] of painted) b.style.setProperty("--bar", lineColor(color, dark));
  };
  return { element: el("div", {}, key, el("div", { class: "vy-scroll" }, t)), draw };
}

// breakable lets a label be broken behind what joins its parts.
function breakable(label) {
  return label.replaceAll(/[,:_]/g, "$&\u200b");
}

// refusal explains the request that found no memory, and says what became of it elsewhere.
function refusal({ failure, runs }) {
  const why = failure.recorded ?? failure.replayed?.report;
  const where = failure.recorded ? "in the recording" : "in the replay of the recorded settings";
  const parts = [];
  if (why) {
    parts.push(el("h3", { text: `The failure at event ${count(failure.event)}, ${where}` }), ...postmortem(why));
  }
  const moments = runs.filter((p) => p.at_failure);
  if (!moments.length) return parts;
  const rows = moments.map(({ label, at_failure: m }) => [
    el("span", { class: "vy-label", text: breakable(label) }),
    m.cause ? `${m.outcome}: ${m.cause}` : m.outcome,
    m.refused_before_count ? count(m.refused_before_count) : "none",
    bytes(m.taken_bytes),
    count(m.device_calls),
  ]);
  const heads = ["setting", "that request", "refused before", "taken from the device", "device calls"];
  parts.push(
    el("h3", { text: "What each setting does with that request" }),
    el("div", { class: "vy-scroll vy-tall" }, table("", heads, rows, [2, 3, 4])),
  );
  return parts;
}
