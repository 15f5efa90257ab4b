// A broken invariant: the calls of the shrunk trace, and memory after each of them.

// stepsView returns the section of failures of a check, and draws it once it is in the page.
function stepsView(report) {
  const section = el(
    "section",
    { id: "vy-steps" },
    el("h2", { text: "Step by step", "data-short": "Steps" }),
  );
  section.append(
    el("p", {
      class: "vy-note",
      text: "Memory after each call, a row for each region. What the call changed stands out; the last call broke the invariant, and what the invariant names has a frame.",
    }),
  );
  const draws = [];
  for (const f of report.failed) {
    section.append(el("h3", { text: f.subject }), el("p", { class: "vy-alarm", text: f.violation }));
    const named = [...f.violation.matchAll(/0x[0-9a-f]+/g)].map((m) => Number(m[0]));
    const list = el("ol", { class: "vy-steps", start: "0" });
    let before = new Map();
    f.steps.forEach((step, k) => {
      const chunks = step.chunks.map(chunkOf);
      const last = k === f.steps.length - 1;
      const canvas = el("canvas", { role: "img", "aria-label": `Memory after: ${step.call}` });
      const plot = el("div", { class: "vy-plot" }, canvas);
      list.append(
        el(
          "li",
          { class: last ? "vy-broken" : null },
          el("code", { text: step.call }),
          chunks.length ? plot : null,
        ),
      );
      const was = before;
      const marks = last ? named : [];
      if (chunks.length)
        draws.push(() => drawStep(canvas, plot.clientWidth, chunks, was, marks, report.states));
      if (chunks.length) before = new Map(chunks.map((c) => [c.addr, c]));
    });
    section.append(list);
  }
  return { section, draw: () => draws.forEach((d) => d()) };
}

// chunkOf returns a chunk of a step by its parts.
function chunkOf([region, addr, size, requested, state, kind, stream]) {
  return { region, addr, size, requested, state, class: kind, stream };
}

// drawStep draws the chunks after a call. was has those after the call before, by address; what lies at one of
// the addresses in marks has a frame.
function drawStep(canvas, width, chunks, was, marks, states) {
  const regions = [...new Set(chunks.map((c) => c.region))];
  const ends = regions.map((r) =>
    Math.max(...chunks.filter((c) => c.region === r).map((c) => c.addr + c.size - r)),
  );
  const scale = (width - ROW_LABEL - 4) / Math.max(...ends, 1);
  const g = sharp(canvas, width, regions.length * (ROW + ROW_GAP) + 4);
  const colors = ink();
  g.font = colors.font;
  g.textBaseline = "middle";
  regions.forEach((region, row) => {
    const y = row * (ROW + ROW_GAP) + 2;
    g.fillStyle = colors.faint;
    g.textAlign = "right";
    g.fillText(address(region), ROW_LABEL - 6, y + ROW / 2);
    g.textAlign = "left";
    for (const c of chunks.filter((c) => c.region === region)) {
      const x = ROW_LABEL + (c.addr - region) * scale;
      const wide = c.size * scale;
      const look = STATE_LOOKS[states[c.state]] ?? STATE_LOOKS.slack;
      const old = was.get(c.addr);
      const changed = !old || old.size !== c.size || old.state !== c.state;
      const color = look.block ? (changed ? AREAS[2] : AREAS[0]) : null;
      chunkBox(g, x, y, wide, ROW, look, color, colors);
      if (changed && !look.block) underline(g, x, y, wide, AREAS[2]);
      const text = `${states[c.state]} ${bytes(c.size)}`;
      if (g.measureText(text).width + 8 < wide) {
        g.fillStyle = color ? "#000000" : colors.text;
        g.fillText(text, x + 4, y + ROW / 2 + 0.5);
      }
      if (!marks.some((a) => c.addr <= a && a < c.addr + c.size)) continue;
      g.strokeStyle = colors.alarm;
      g.lineWidth = 2.5;
      g.strokeRect(x, y, Math.max(wide, 2), ROW);
    }
  });
}

// underline marks a box that has no colour of its own.
function underline(g, x, y, w, color) {
  g.fillStyle = color;
  g.fillRect(x, y + ROW - 3, Math.max(w, 1), 3);
}
