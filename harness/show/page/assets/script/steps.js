// Broken invariants: the shrunk calls one by one, and the memory after each.

const STEP_ROW = 26; // points of a region
const STEP_GAP = 8;
const STEP_ROWS = 40; // regions that are drawn

// Chunks of a step are lists of numbers; these are the indexes.
const [C_REGION, C_OFFSET, C_SIZE, C_REQUESTED, C_STATE, C_CLASS, C_POOL, C_MORE] = [0, 1, 2, 3, 4, 5, 6, 7];

// proofView returns the section of broken invariants. It is drawn once it is in the page.
function proofView(report) {
  const view = new ProofView(report);
  return { section: view.section, first: true, draw: () => view.draw() };
}

// ProofView is the section of broken invariants.
class ProofView {
  constructor(report) {
    this.report = report;
    this.head = el("div");
    this.list = el("ol", { class: "vy-steps vy-tall" });
    this.details = el("div", { "aria-live": "polite" });
    this.canvas = el("canvas");
    this.plot = el(
      "div",
      {
        class: "vy-plot",
        ...slider("Memory after a step. Arrow keys go to the next and the last step, Home and End to the ends."),
      },
      this.canvas,
    );
    this.chunks = el("div", { class: "vy-scroll vy-tall" });
    this.controls = el("div", { class: "vy-controls" });
    this.keys = el("div", { class: "vy-key-row" });
    this.section = el(
      "section",
      { id: "vy-proof" },
      el("h2", { text: "How the invariant broke", "data-short": "Steps" }),
      this.head,
      this.controls,
      this.list,
      this.details,
      this.plot,
      this.keys,
      this.chunks,
    );
    this.section.addEventListener("keydown", (e) => this.key(e));
    this.choose(0);
  }

  // choose shows another failure, at the step where it broke.
  choose(number) {
    this.broken = this.report.check[number];
    this.number = number;
    this.step = this.broken.steps.length - 1;
    this.drawHead();
    this.drawList();
    this.go(this.step);
  }

  // key handles the keyboard.
  key(e) {
    const last = this.broken.steps.length - 1;
    const to = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1, Home: 0, End: last }[e.key];
    if (to === undefined || e.ctrlKey || e.metaKey || e.altKey || e.target instanceof HTMLSelectElement) return;
    e.preventDefault();
    this.go(to);
  }

  // go shows another step.
  go(step) {
    this.step = Math.min(Math.max(step, 0), this.broken.steps.length - 1);
    [...this.list.children].forEach((item, k) =>
      item.firstChild.setAttribute("aria-current", k === this.step ? "step" : "false"),
    );
    const item = this.list.children[this.step];
    if (item.offsetTop < this.list.scrollTop || item.offsetTop + 24 > this.list.scrollTop + this.list.clientHeight)
      this.list.scrollTop = item.offsetTop - 24;
    this.drawControls();
    this.showStep();
    this.draw();
  }

  // drawHead shows the violation and the command that reproduces it.
  drawHead() {
    const b = this.broken;
    const parts = [];
    if (this.report.check.length > 1) {
      const options = this.report.check.map((c, k) => [k, `${c.subject}: ${c.number} ${c.name}`]);
      parts.push(choice("Failure", options, this.number, (v) => this.choose(Number(v))));
    }
    parts.push(
      el(
        "p",
        { class: "vy-alarm", role: "alert" },
        el("strong", { text: `${b.subject} broke ${b.number} (${b.name}). ` }),
        el("span", { text: `${b.detail}.` }),
      ),
    );
    const list = [
      ["seed", String(b.seed)],
      ["shrunk", `from ${plural(b.generated_count, "call")} to ${count(b.shrunk_count)}`],
    ];
    if (b.refused_device_call) list.push(["injected failure", `device call ${b.refused_device_call}`]);
    parts.push(facts(list), ...b.again.filter((c) => !c.endsWith("…")).map(copyBox));
    refill(this.head, ...parts);
  }

  // drawList lists the steps.
  drawList() {
    const { steps, left_out_count: before, number } = this.broken;
    this.list.start = before;
    this.list.replaceChildren(
      ...steps.map((s, k) => {
        const b = button("", "", () => this.go(k));
        b.append(el("code", { text: s.call }), el("span", { text: s.answer ? ` → ${s.answer}` : "" }));
        if (k === steps.length - 1) b.append(el("strong", { text: ` broke ${number}` }));
        return el("li", { class: k === steps.length - 1 ? "vy-broken" : null }, b);
      }),
    );
  }

  // drawControls makes the buttons.
  drawControls() {
    const { steps, left_out_count: before } = this.broken;
    const last = steps.length - 1;
    if (!this.buttons) {
      this.buttons = [
        button("first", "The first step (Home)", () => this.go(0)),
        button("‹ previous", "The step before (arrow left)", () => this.go(this.step - 1)),
        button("next ›", "The next step (arrow right)", () => this.go(this.step + 1)),
        button("where it broke", "The last step (End)", () => this.go(Infinity)),
      ];
      this.where = el("output", { class: "vy-window" });
      this.controls.append(...this.buttons, this.where);
    }
    this.buttons.forEach((b, k) => (b.disabled = k < 2 ? this.step === 0 : this.step === last));
    this.where.textContent = `step ${before + this.step} of ${before + last}`;
  }

  // showStep describes the step and lists its chunks.
  showStep() {
    const s = this.broken.steps[this.step];
    const broke = this.step === this.broken.steps.length - 1;
    const parts = [el("h3", { text: `Step ${this.broken.left_out_count + this.step}: ${s.call}` })];
    const list = [["answer", s.answer || "none"]];
    for (const d of s.device ?? []) list.push(["device", d]);
    parts.push(facts(list));
    if (s.trouble) parts.push(el("p", { class: "vy-alarm", text: s.trouble }));
    if (broke)
      parts.push(
        el("p", { class: "vy-alarm", text: `Broken here: ${this.broken.number} (${this.broken.name}): ${this.broken.detail}` }),
      );
    if (!s.chunks?.length) parts.push(el("p", { class: "vy-note", text: "No memory is held after this step." }));
    this.details.replaceChildren(...parts);
    this.drawTable(s);
  }

  // before returns the keys of the chunks before the step.
  before() {
    const s = this.broken.steps[this.step - 1];
    return new Set((s?.chunks ?? []).map((c) => chunkKey(s, c)));
  }

  // named reports whether the violation mentions an address in a chunk, at the violating step.
  named(step, c) {
    if (this.step !== this.broken.steps.length - 1) return false;
    const at = step.regions[c[C_REGION]].addr + c[C_OFFSET];
    return (this.broken.addresses ?? []).some((a) => a === at || (at < a && a < at + c[C_SIZE] * (1 + c[C_MORE])));
  }

  // drawTable lists the chunks of a step.
  drawTable(s) {
    if (!s.chunks?.length) {
      this.chunks.replaceChildren();
      return;
    }
    const before = this.before();
    const rows = s.chunks.map((c) => [
      address(s.regions[c[C_REGION]].addr),
      String(c[C_OFFSET]),
      String(c[C_SIZE]) + (c[C_MORE] ? ` (and ${count(c[C_MORE])} more like it)` : ""),
      this.report.states[c[C_STATE]],
      String(c[C_REQUESTED]),
      c[C_CLASS] < 0 ? "—" : String(c[C_CLASS]),
      c[C_POOL] ? String(c[C_POOL]) : "",
      [
        this.step > 0 && !before.has(chunkKey(s, c)) ? "new or changed" : "",
        this.named(s, c) ? "named by the invariant" : "",
      ]
        .filter(Boolean)
        .join(", "),
    ]);
    const heads = ["region", "offset", "size", "state", "requested", "class", "pool", "notes"];
    this.chunks.replaceChildren(table("Chunks after this step, in bytes", heads, rows, [1, 2, 4, 5, 6]));
    if (s.left_out_count)
      this.chunks.append(el("p", { class: "vy-note", text: `At least ${plural(s.left_out_count, "chunk")} more.` }));
  }

  // draw draws the memory after the step: a row for each region.
  draw() {
    const s = this.broken.steps[this.step];
    const regions = (s.regions ?? []).slice(0, STEP_ROWS);
    const width = Math.max(this.plot.clientWidth, 240);
    const room = width - ROW_LABEL - 8;
    const g = sizeCanvas(this.canvas, width, regions.length * (STEP_ROW + STEP_GAP) + 4);
    const colors = pageColors();
    const before = this.before();
    const layout = new ChunkLayout(this.broken, room);
    g.font = colors.font;
    g.textBaseline = "middle";
    regions.forEach((r, k) => {
      const y = k * (STEP_ROW + STEP_GAP) + 3;
      g.fillStyle = colors.faint;
      g.textAlign = "right";
      g.fillText(address(r.addr), ROW_LABEL - 6, y + STEP_ROW / 2);
      const chunks = s.chunks.filter((c) => c[C_REGION] === k);
      const edges = layout.edges(chunks);
      g.fillStyle = colors.alarm; // shows through where no chunk covers the region
      g.globalAlpha = 0.35;
      g.fillRect(ROW_LABEL, y, edges.end, STEP_ROW);
      g.globalAlpha = 1;
      g.textAlign = "left";
      chunks.forEach((c, i) => this.drawChunk(g, s, c, ROW_LABEL + edges.from[i], y, edges.wide[i], before, colors));
    });
    this.drawKeys(colors, s, layout.toScale);
  }

  // drawChunk draws a chunk, or a group of equal ones.
  drawChunk(g, s, c, x, y, wide, before, colors) {
    const style = STATE_STYLES[this.report.states[c[C_STATE]]] ?? STATE_STYLES.slack;
    const color = style.block ? AREAS[0] : null;
    chunkBox(g, x, y, wide, STEP_ROW, style, color, colors);
    const loss = style.block && !c[C_MORE] && c[C_REQUESTED] < c[C_SIZE] ? 1 - c[C_REQUESTED] / c[C_SIZE] : 0;
    if (loss * wide >= 1)
      chunkBox(g, x + (1 - loss) * wide, y, loss * wide, STEP_ROW, { texture: "stripes", block: true }, color, colors);
    const text = c[C_MORE] ? `${count(1 + c[C_MORE])} × ${bytes(c[C_SIZE])}` : bytes(c[C_SIZE]);
    if (g.measureText(text).width + 8 < wide * (1 - loss)) {
      g.fillStyle = color ? "#000000" : colors.faint;
      g.fillText(text, x + 4, y + STEP_ROW / 2 + 0.5);
    }
    const named = this.named(s, c);
    if (!named && (this.step === 0 || before.has(chunkKey(s, c)))) return;
    g.strokeStyle = named ? colors.alarm : colors.focus;
    g.lineWidth = 2.5;
    g.strokeRect(x + 1, y + 1, Math.max(wide - 2, 2), STEP_ROW - 2);
  }

  // drawKeys draws the legend of colours and textures.
  drawKeys(colors, s, even) {
    this.keys.replaceChildren();
    const entry = (text, draw) => {
      const canvas = el("canvas", { class: "vy-swatch", "aria-hidden": "true" });
      draw(sizeCanvas(canvas, 26, 13));
      this.keys.append(el("span", { class: "vy-key" }, canvas, el("span", { text })));
    };
    const used = new Set((s.chunks ?? []).map((c) => this.report.states[c[C_STATE]]));
    for (const name of [...used].filter((n) => n in STATE_STYLES)) {
      const style = STATE_STYLES[name];
      entry(name, (g) => chunkBox(g, 0.5, 0.5, 25, 12, style, style.block ? AREAS[0] : null, colors));
    }
    if (!used.size) return;
    entry("rounding loss", (g) =>
      chunkBox(g, 0.5, 0.5, 25, 12, { texture: "stripes", block: true }, AREAS[0], colors),
    );
    const outline = (color) => (g) => {
      g.strokeStyle = color;
      g.lineWidth = 2.5;
      g.strokeRect(1.5, 1.5, 23, 10);
    };
    entry("new or changed", outline(colors.focus));
    entry("named by the invariant", outline(colors.alarm));
    entry("in no chunk", (g) => {
      g.globalAlpha = 0.35;
      g.fillStyle = colors.alarm;
      g.fillRect(0, 0, 26, 13);
    });
    if (!even)
      this.keys.append(el("span", { class: "vy-note", text: "Small chunks are widened: lengths are not to scale." }));
  }
}

// chunkKey identifies a chunk by its displayed properties.
function chunkKey(step, c) {
  return [step.regions[c[C_REGION]].addr, ...c.slice(1)].join();
}

// SMALLEST is the minimum width of a chunk in points for lengths to scale.
const SMALLEST = 7;

// ChunkLayout lays chunks out: to scale if all chunks of all steps stay visible, else by the logarithm
// of their size, so that a chunk has the same width in every step.
class ChunkLayout {
  constructor(broken, room) {
    const all = broken.steps.flatMap((s) => s.chunks ?? []);
    const longest = Math.max(1, ...broken.steps.flatMap((s) => (s.regions ?? []).map((r) => r.size)));
    const least = all.reduce((n, c) => (c[C_SIZE] > 0 ? Math.min(n, c[C_SIZE]) : n), longest);
    this.toScale = (least * room) / longest >= SMALLEST;
    this.weight = this.toScale ? (n) => n : (n) => 1 + Math.log2(Math.max(n / least, 1));
    let most = 1;
    for (const s of broken.steps) {
      (s.regions ?? []).forEach((r, k) => {
        most = Math.max(most, this.total(s.chunks.filter((c) => c[C_REGION] === k)));
      });
    }
    this.scale = room / most;
  }

  // pieces returns the lengths of the chunks of a region and of the gaps between them.
  pieces(chunks) {
    const list = [];
    let at = 0;
    for (const c of chunks) {
      const length = c[C_SIZE] * (1 + c[C_MORE]);
      list.push({ gap: Math.max(c[C_OFFSET] - at, 0), back: Math.max(at - c[C_OFFSET], 0), length });
      at = Math.max(at, c[C_OFFSET] + length);
    }
    return list;
  }

  // total returns the weight of a region.
  total(chunks) {
    const of = (n) => (n > 0 ? this.weight(n) : 0);
    return this.pieces(chunks).reduce((n, p) => n + of(p.gap) - of(p.back) + of(p.length), 0);
  }

  // edges returns the positions and widths of the chunks of a region, and the end of the region.
  edges(chunks) {
    const of = (n) => (n > 0 ? this.weight(n) * this.scale : 0);
    const from = [];
    const wide = [];
    let x = 0;
    let end = 0;
    for (const p of this.pieces(chunks)) {
      x += of(p.gap) - of(p.back);
      from.push(x);
      wide.push(of(p.length));
      x += of(p.length);
      end = Math.max(end, x);
    }
    return { from, wide, end };
  }
}
