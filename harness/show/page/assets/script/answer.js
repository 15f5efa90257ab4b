// Which setting would have saved a run: the answer in words, the capacity that each setting needs, and the failure.

// VERDICTS are the outcomes of the run on the card: colour, symbol in the table, label in the key. Blue and
// vermilion are distinguishable with red-green color blindness; the table also has labels.
const VERDICTS = {
  completes: { color: 0, sign: "✓ completes", words: "completes on the card" },
  fails: { color: 1, sign: "✗ fails", words: "fails on the card" },
  unknown: { color: 7, sign: "—", words: "no card in question" },
};

// verdictOf returns the outcome of the run on the card with a setting.
function verdictOf({ carried }) {
  return VERDICTS[carried === true ? "completes" : carried === false ? "fails" : "unknown"];
}

// answerView returns the answer's section. Its bars are drawn once the section is in the page.
function answerView(report) {
  const { answer, failure, final_heap: heap, runs } = report.whatif;
  const first = ["setting", "pools"].includes(answer.verdict) ? 1 : answer.recipe ? 2 : answer.text.length; // sentences before the lines to copy
  const copied = answer.recipe ?? exported(report.whatif);
  const bars = runs.length ? needs(report) : null;
  const section = el(
    "section",
    { id: "vy-answer" },
    el("h2", { text: "Answer" }),
    el("p", { class: "vy-answer", text: answer.text.slice(0, first).join(" ") }),
    copied.length ? copyBox(copied.join("\n")) : null,
    answer.text.length > first ? el("p", { text: answer.text.slice(first).join(" ") }) : null,
  );
  const listed = (list) => el("ul", {}, ...list.map(item));
  const item = (text) => {
    const [head, ...below] = text.split("\n");
    return el("li", { text: head }, below.length ? listed(below) : null);
  };
  const sentences = (title, list) => {
    if (list?.length) section.append(el("h3", { text: title }), listed(list));
  };
  sentences("What changed", answer.changes);
  sentences("If it must also work with", answer.constraints?.map((c) => c.text));
  sentences("The deployment", answer.permits);
  sentences("How sure", answer.how_sure);
  if (heap) section.append(el("h3", { text: "The heap when the file was written" }), finalHeap(heap));
  if (bars) section.append(el("h3", { text: "What each setting needs" }), bars.element);
  if (failure) section.append(...refusal(report.whatif));
  return { section, first: true, draw: () => bars?.draw() };
}

// exported returns the lines that apply the recommended settings: Python, variables with the releases they are valid
// for, and the calls for settings that change.
function exported({ answer, recorded }) {
  const lines = (list, remark) => (list ?? []).map((e) => `export ${e}${remark}`);
  const { since, environment, before, python, calls } = answer;
  const call = ({ mark, conf }) =>
    `torch.cuda.memory._set_allocator_settings(${JSON.stringify(conf)})  # at the mark ${JSON.stringify(mark)}`;
  return [
    ...(python ?? []),
    ...lines(environment, since ? `  # ${recorded.framework} ${since} and newer` : ""),
    ...lines(since ? before : [], `  # before ${since}`),
    ...(calls ?? []).map(call),
  ];
}

// finalHeap lists the memory of a file without a history.
function finalHeap(heap) {
  const amount = ({ count: n, bytes: size }, what) => `${bytes(size)} in ${count(n)} ${what}${n === 1 ? "" : "s"}`;
  const pairs = [
    ["reserved", amount(heap.reserved, "segment")],
    ["live", amount(heap.live, "block")],
    ["empty", amount(heap.empty_segments, "segment")],
    ["returned by torch.cuda.empty_cache()", bytes(heap.empty_cache_bytes)],
    ["free in segments with live blocks", bytes(heap.free_beside_blocks_in_use_bytes)],
  ];
  const held = heap.sparse_segments.reduce((n, s) => n + s.free_bytes, 0);
  if (held) pairs.push(["thereof, in segments with at most a tenth in use", bytes(held)]);
  return facts(pairs);
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
      painted.push([b, verdictOf(p).color]);
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
  // Rows have the recorded pools, an answer with other pools has not.
  const answered = report.whatif.answer.verdict === "pools" ? null : report.whatif.answer.label;
  const label = (p) => {
    const e = el("span", { class: "vy-label", text: breakable(p.label) });
    if (p.is_recorded) e.append(el("strong", { text: " as recorded" }));
    if (p.label === answered) e.append(el("strong", { text: " in the answer" }));
    return e;
  };
  const completed = (p) => p.starts && !p.oom_count && !p.refused_count;
  const amount = (p) => {
    if (p.min_capacity_bytes) return bytes(p.min_capacity_bytes);
    if (p.completes_at_bytes) return `≤ ${bytes(p.completes_at_bytes)}`;
    if (p.fails_at_bytes) return `> ${bytes(p.fails_at_bytes)}`;
    return completed(p) ? "not searched" : "—";
  };
  const figures = (p) =>
    completed(p) ? [bytes(p.peak_reserved_bytes), count(p.device_calls), nanoseconds(p.device_time_ns)] : ["—", "—", "—"];
  const safe = (p) => (p.safe_from_bytes ? bytes(p.safe_from_bytes) : "—");
  const row = (p) => [label(p), bar(p), amount(p), safe(p), verdictOf(p).sign, ...figures(p)];
  const heads = ["setting", "smallest device", "bytes", "safe from", "on the card", "peak reserved", "device calls", "device time"];
  const t = table("", heads, runs.map(row), [2, 3, 5, 6, 7]);
  t.classList.add("vy-needs");
  const key = el("div", { class: "vy-key-row" });
  for (const [name, n, cls] of lines)
    key.append(
      el("span", { class: "vy-key" }, el("i", { class: `vy-line-key ${cls}` }), el("span", { text: `${name} ${bytes(n)}` })),
    );
  for (const verdict of new Set(runs.map(verdictOf))) {
    const box = el("i", { class: "vy-box vy-bar-key" });
    painted.push([box, verdict.color]);
    key.append(el("span", { class: "vy-key" }, box, el("span", { text: verdict.words })));
  }
  key.append(
    el("span", {
      class: "vy-note",
      text: "Hatched: the bracket of the minimum. If no capacity completed, the bar ends at the largest that failed.",
    }),
  );
  const draw = () => {
    const { dark } = pageColors();
    for (const [b, color] of painted) b.style.setProperty("--bar", lineColor(color, dark));
  };
  return { element: el("div", {}, key, el("div", { class: "vy-scroll" }, t)), draw };
}

// breakable adds line-break opportunities after the separators of a label.
function breakable(label) {
  return label.replaceAll(/[,:_]/g, "$&\u200b");
}

// whichOf returns the label of one of several failures, by its index.
function whichOf(place, of) {
  return of > 1 ? `${place} of ${count(of)} failures` : "only failure";
}

// refusal explains the request that failed, and its outcome with the other settings.
function refusal({ failure, runs }) {
  const why = failure.recorded ?? failure.replayed?.report;
  const where = failure.recorded ? "in the recording" : "in the replay of the recorded settings";
  const parts = [];
  if (why) {
    const which = whichOf(failure.which, failure.of_count);
    parts.push(el("h3", { text: `The ${which}, at event ${count(failure.event)}, ${where}` }), ...postmortem(why));
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
    el("h3", { text: "Outcome of that request under each setting" }),
    el("div", { class: "vy-scroll vy-tall" }, table("", heads, rows, [2, 3, 4])),
  );
  return parts;
}
