// The heap after one event: regions as rows of chunks, with sums beside them.

const ROW = 17; // points of a row
const ROW_GAP = 5;
const ROW_LABEL = 112; // points for addresses
const MOST_ROWS = 32;

// STATE_STYLES is the style of chunks by state: the colour, if not the block's own, and the
// texture, so that states are distinguishable without colours.
const STATE_STYLES = {
  free: { texture: "none" },
  live: { texture: "none", block: true },
  pending: { texture: "dots", block: true },
  cached: { texture: "lines" },
  unmapped: { texture: "cross" },
  slack: { texture: "dense" },
  aliased: { texture: "columns" },
};

// InstantView is the section that shows the heap after one event.
class InstantView {
  constructor(app) {
    this.app = app;
    this.controls = el("div", { class: "vy-controls" });
    this.note = el("p", { class: "vy-note", "aria-live": "polite" });
    this.canvas = el("canvas", { class: "vy-instant" });
    this.plot = el(
      "div",
      {
        class: "vy-plot",
        ...slider("State of memory at one instant. Left and right go to another event, up and down to another block."),
      },
      this.canvas,
    );
    this.side = el("div", { class: "vy-side" });
    this.legend = el("div", { class: "vy-key-row" });
    this.bins = el("div", {});
    this.section = el(
      "section",
      { id: "vy-instant" },
      el("h2", { text: "State at one instant", "data-short": "Instant" }),
      this.controls,
      this.note,
      this.legend,
      el("div", { class: "vy-split" }, this.plot, this.side),
      this.bins,
    );
    this.plot.addEventListener("pointermove", (e) => this.hover(e));
    this.plot.addEventListener("pointerleave", () => showTip(null, null));
    this.plot.addEventListener("click", (e) => {
      const c = this.chunkAt(e);
      if (e.pointerType === "touch") this.hover(e);
      app.state.set({ pin: c && this.isBlock(c) ? c.id : null });
    });
    this.plot.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      const block = { ArrowUp: -1, ArrowDown: 1 }[e.key];
      if (by) this.go(app.state.event + by);
      if (block) this.pinNext(block);
      if (by || block) e.preventDefault();
    });
    app.state.view((changed) => this.update(changed), true);
  }

  // run returns the displayed run.
  run() {
    const run = this.app.trace.runs[this.app.state.run];
    return run?.drawn ? run : this.app.trace.runs.find((r) => r.drawn);
  }

  // pinNext selects another block, by its distance in address order.
  pinNext(by) {
    const blocks = this.heap.chunks.filter((c) => this.isBlock(c));
    if (!blocks.length) return;
    const at = blocks.findIndex((c) => c.id === this.app.state.pin);
    const to = at < 0 ? (by > 0 ? 0 : blocks.length - 1) : Math.min(Math.max(at + by, 0), blocks.length - 1);
    this.app.state.set({ pin: blocks[to].id });
  }

  // go moves to another event.
  go(event) {
    const last = Math.max(this.app.trace.events - 1, 0);
    const at = Math.min(Math.max(Math.round(event) || 0, 0), last);
    this.app.state.set({ event: at, cursor: at });
  }

  // update follows the state.
  update(changed) {
    const has = (...names) => names.some((n) => changed.has(n));
    if (!has("trace", "run", "event", "paint", "theme", "pin")) return;
    const run = this.run();
    this.section.hidden = !run;
    if (!run) return;
    if (has("trace", "run", "event") || !this.heap) {
      this.heap = heapAt(this.app.trace, run, this.app.state.event);
      this.layout = rowsOf(this.heap.regions, MOST_ROWS);
      this.drawControls(run);
      this.drawSide();
      this.showNote(run);
    }
    if (has("trace", "run", "event", "paint", "theme"))
      this.paint = new Paint(this.app.trace, run, this.app.state.paint);
    if (has("trace", "run", "event", "paint")) this.lifetimes = this.app.state.paint === "lifetime" ? lifetimesAt(run, this.heap) : null;
    if (has("trace", "theme")) this.drawLegend();
    this.draw();
  }

  // renew redraws with the data that has arrived.
  renew() {
    this.heap = null;
    this.update(new Set(["event"]));
  }

  // drawControls makes the controls for strategies and snapshots.
  drawControls(run) {
    const { state, trace } = this.app;
    const runs = trace.runs.filter((r) => r.drawn).map((r) => [r.index, r.strategy]);
    const jumps = el(
      "span",
      { class: "vy-switch", role: "group", "aria-label": "Go to" },
      el("span", { text: "Go to" }),
    );
    for (const i of run.instants) {
      const b = button(i.labels.join(", "), `Event ${count(i.event)}`, () => this.go(i.event));
      b.setAttribute("aria-pressed", String(i.event === state.event));
      jumps.append(b);
    }
    const number = el("input", {
      type: "number",
      min: 0,
      max: Math.max(trace.events - 1, 0),
      value: state.event,
      on: { change: () => this.go(Number(number.value)) },
    });
    refill(
      this.controls,
      choice("Strategy", runs, run.index, (v) =>
        state.set({ run: Number(v), pin: null, event: state.event }),
      ),
      jumps,
      el("label", { class: "vy-choice" }, el("span", { text: "Event" }), number),
      button("‹", "The event before", () => this.go(state.event - 1)),
      button("›", "The next event", () => this.go(state.event + 1)),
    );
  }

  // showNote describes the picture and its source.
  showNote(run) {
    const h = this.heap;
    const held = heldBytes(h);
    const parts = [
      `${run.strategy} after event ${count(h.event)}: ${plural(h.regions.length, "region")}, ${bytes(held)}.`,
    ];
    if (h.how === "nearest")
      parts.push(
        this.app.live
          ? `The trace is replayed up to event ${count(this.app.state.event)} …`
          : `This is the recorded instant nearest to event ${count(this.app.state.event)}: the file does not hold every block of this run.`,
      );
    if (h.how === "recorded") parts.push("As recorded, chunk by chunk.");
    if (h.how === "ended") parts.push(`The run ended there, before event ${count(this.app.state.event)}.`);
    if (h.how === "rebuilt") {
      parts.push("Rebuilt from the blocks of the map: memory of a region without a block is shown as one free range.");
      if (this.app.live) parts.push("Replaying the trace up to here for every chunk …");
    }
    if (h.how === "unknown") parts.push("The page has no state for this event.");
    if (h.more) parts.push(`${plural(h.more, "small chunk")} left out.`);
    if (this.layout.rows) parts.push(`A row is ${bytes(this.layout.width)}.`);
    this.note.textContent = parts.join(" ");
    setSlider(this.plot, Math.max(this.app.trace.events - 1, 0), h.event, this.note.textContent);
  }

  // drawLegend draws the legend of the textures.
  drawLegend() {
    this.legend.replaceChildren();
    const colors = pageColors();
    const names = [...this.app.report.states.filter((s) => s in STATE_STYLES), "rounding loss"];
    for (const name of names) {
      const canvas = el("canvas", { class: "vy-swatch", "aria-hidden": "true" });
      const g = sizeCanvas(canvas, 26, 13);
      const style = STATE_STYLES[name] ?? { texture: "stripes", block: true };
      chunkBox(g, 0.5, 0.5, 25, 12, style, style.block ? areaColor(0, colors.dark) : null, colors);
      this.legend.append(el("span", { class: "vy-key" }, canvas, el("span", { text: name })));
    }
  }

  // draw draws all rows.
  draw() {
    const { layout, heap } = this;
    const width = Math.max(this.plot.clientWidth, 240);
    this.scale = (width - ROW_LABEL - 8) / layout.width;
    const g = sizeCanvas(this.canvas, width, Math.max(layout.rows * (ROW + ROW_GAP) + 6, 30));
    const colors = pageColors();
    g.font = colors.font;
    const first = firstChunks(heap);
    let label = -1;
    for (const piece of layout.pieces) {
      const y = piece.row * (ROW + ROW_GAP) + 3;
      const x = ROW_LABEL + piece.from * this.scale;
      if (piece.row !== label) {
        g.fillStyle = colors.faint;
        g.textBaseline = "middle";
        g.textAlign = "right";
        g.fillText(address(piece.addr), ROW_LABEL - 6, y + ROW / 2);
        label = piece.row;
      }
      g.fillStyle = colors.held;
      g.fillRect(x, y, piece.size * this.scale, ROW);
      for (
        let i = first[piece.region];
        i < heap.chunks.length && heap.chunks[i].region === piece.region;
        i++
      ) {
        this.drawChunk(g, heap.chunks[i], piece, x, y, colors);
      }
      g.strokeStyle = colors.faint;
      g.lineWidth = 1;
      g.strokeRect(x, y, piece.size * this.scale, ROW);
    }
  }

  // drawChunk draws the part of a chunk inside a piece of its region.
  drawChunk(g, c, piece, x, y, colors) {
    const from = Math.max(c.addr, piece.addr);
    const to = Math.min(c.addr + c.size, piece.addr + piece.size);
    if (to <= from) return;
    const style = STATE_STYLES[this.app.report.states[c.state]] ?? STATE_STYLES.slack;
    const left = x + (from - piece.addr) * this.scale;
    const wide = (to - from) * this.scale;
    const color = style.block ? this.paint.color({ born: 0, dies: NEVER, ...c, ...this.lifetimes?.get(c.id) }) : null;
    chunkBox(g, left, y, wide, ROW, style, color, colors);
    const used = c.addr + c.requested; // end of the requested bytes; rounding loss follows
    const striped = style.block && c.requested && used < to;
    if (striped) {
      const at = x + (Math.max(used, from) - piece.addr) * this.scale;
      if (left + wide - at >= 1)
        chunkBox(g, at, y, left + wide - at, ROW, { texture: "stripes", block: true }, color, colors);
    }
    if (from === c.addr) {
      const plain = striped ? Math.min((used - from) * this.scale, wide) : wide; // stripes and letters mix badly
      const text = bytes(c.size);
      g.fillStyle = color && luminance(color) < 0.18 ? "#ffffff" : color ? "#000000" : colors.faint;
      g.textAlign = "left";
      g.textBaseline = "middle";
      if (plain > 40 && g.measureText(text).width + 8 <= plain) g.fillText(text, left + 4, y + ROW / 2 + 0.5);
    }
    if (c.id === this.app.state.pin && style.block) {
      g.strokeStyle = colors.focus;
      g.lineWidth = 2.5;
      g.strokeRect(left, y, Math.max(wide, 2), ROW);
    }
  }

  // chunkAt returns the chunk at the pointer, or null.
  chunkAt(e) {
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((e.clientY - box.top - 3) / (ROW + ROW_GAP));
    const at = (e.clientX - box.left - ROW_LABEL) / this.scale;
    const piece = this.layout.pieces.find((p) => p.row === row && p.from <= at && at < p.from + p.size);
    if (!piece) return null;
    const addr = piece.addr + at - piece.from;
    return (
      this.heap.chunks.find((c) => c.region === piece.region && c.addr <= addr && addr < c.addr + c.size) ??
      null
    );
  }

  // hover shows the tooltip of the chunk at the pointer.
  hover(e) {
    const c = this.chunkAt(e);
    showTip(e, c && [...this.describe(c), ...innermost(this.heap.stacks, c.stack)]);
  }

  // isBlock reports whether a chunk is in use.
  isBlock(c) {
    return Boolean(STATE_STYLES[this.app.report.states[c.state]]?.block);
  }

  // describe returns the properties of a chunk as names and texts.
  describe(c) {
    const { trace, report } = this.app;
    const list = [
      ["state", report.states[c.state]],
      ["size", bytes(c.size)],
      ["address", address(c.addr)],
    ];
    if (this.isBlock(c)) {
      list.push(
        ["block", String(c.id)],
        ["requested", bytes(c.requested)],
        ["tag", tagName(trace, c.tag)],
        ["stream", streamName(trace, c.stream)],
      );
      const { rects } = this.run().map;
      const i = blockById(rects, c.id, this.heap.event);
      if (i >= 0) {
        list.push(
          ["born", `event ${count(rects.born[i])}`],
          ["dies", rects.dies[i] === NEVER ? "not within the trace" : `event ${count(rects.dies[i])}`],
        );
      }
    }
    if (c.class >= 0) list.push(["class", String(c.class)]);
    return list;
  }

  // drawSide draws the sums by state and by class.
  drawSide() {
    const { report } = this.app;
    const { chunks } = this.heap;
    const held = heldBytes(this.heap) || 1;
    const rows = report.states.map((name, s) => {
      const of = chunks.filter((c) => c.state === s);
      return { name, n: of.length, size: of.reduce((n, c) => n + c.size, 0) };
    });
    const loss = chunks.reduce(
      (n, c) => n + (c.requested && c.state !== STATE_FREE ? c.size - c.requested : 0),
      0,
    );
    const largest = chunks.reduce((n, c) => (c.state === STATE_FREE ? Math.max(n, c.size) : n), 0);
    const lines = rows
      .filter((r) => r.n)
      .map((r) => [r.name, count(r.n), bytes(r.size), percent(r.size / held)]);
    lines.push(
      ["rounding loss", "", bytes(loss), percent(loss / held)],
      [this.heap.how === "rebuilt" ? "longest free range" : "largest free", "", bytes(largest), percent(largest / held)],
    );
    this.side.replaceChildren(
      table("By state", ["state", "chunks", "bytes", "share"], lines, [1, 2, 3]),
      ...(this.heap.how === "rebuilt" ? this.classesOfBlocks() : [this.classes(this.heap)]),
    );
    this.bins.replaceChildren(...[binColumns(this.heap.how === "rebuilt" ? this.nearestRecorded() : this.heap)].filter(Boolean));
  }

  // nearestRecorded returns the recorded heap that is nearest to the event.
  nearestRecorded() {
    const best = nearest(this.run(), this.heap.event);
    return best ? recorded(this.app.trace, best, "nearest") : { chunks: [] };
  }

  // byClass adds up the chunks of each bin, order or size class.
  byClass(chunks) {
    const of = new Map();
    for (const c of chunks) {
      if (c.class < 0) continue;
      const line = of.get(c.class) ?? { live: 0, liveBytes: 0, free: 0, freeBytes: 0 };
      const live = this.isBlock(c);
      line[live ? "live" : "free"]++;
      line[live ? "liveBytes" : "freeBytes"] += c.size;
      of.set(c.class, line);
    }
    return [...of].sort((a, b) => a[0] - b[0]);
  }

  // classes returns the table of bins, orders or size classes of a recorded snapshot, with the share in use of each.
  // If only free chunks have a class, as in bfc, there is no share.
  classes(heap, caption = "By bin, order or size class") {
    const of = this.byClass(heap.chunks);
    if (!of.length) return el("p", { class: "vy-note", text: "The chunks of this instant have no class." });
    if (of.every(([, l]) => !l.live)) {
      const free = of.map(([k, l]) => [String(k), count(l.free), bytes(l.freeBytes)]);
      const heads = ["class", "free chunks", "bytes"];
      return el("div", { class: "vy-classes" }, table(`${caption} (free)`, heads, free, [0, 1, 2]));
    }
    const rows = of.map(([k, l]) => {
      const bar = el("meter", {
        min: 0,
        max: l.liveBytes + l.freeBytes || 1,
        value: l.liveBytes,
        "aria-label": "share in use",
      });
      return [String(k), count(l.live), bytes(l.liveBytes), count(l.free), bytes(l.freeBytes), bar];
    });
    const heads = ["class", "live", "bytes", "free", "bytes", "in use"];
    return el("div", { class: "vy-classes" }, table(caption, heads, rows, [0, 1, 2, 3, 4]));
  }

  // classesOfBlocks returns the tables of classes for a rebuilt heap: blocks as recorded, and free chunks of the
  // nearest recorded snapshot.
  classesOfBlocks() {
    const blocks = this.heap.chunks.filter((c) => this.isBlock(c));
    const rows = this.byClass(blocks).map(([k, l]) => [String(k), count(l.live), bytes(l.liveBytes)]);
    const parts = [];
    if (rows.length) {
      const heads = ["class", "blocks", "bytes"];
      parts.push(
        el("div", { class: "vy-classes" }, table("Blocks by bin, order or size class", heads, rows, [0, 1, 2])),
      );
      const without = blocks.filter((c) => c.class < 0).length;
      if (without) parts.push(el("p", { class: "vy-note", text: `${plural(without, "block")} without a known class.` }));
    }
    const then = this.nearestRecorded();
    if (this.byClass(then.chunks).length) {
      parts.push(
        el("p", { class: "vy-note", text: "The class of free memory is known at recorded instants only." }),
        this.classes(then, `As of event ${count(then.event)}, the nearest recorded`),
      );
    }
    return parts;
  }
}

// lifetimesAt returns the first and last event of the blocks of a heap, by ID, if the map has them. Of several blocks with
// one ID it is the live one.
function lifetimesAt(run, heap) {
  const wanted = new Set(heap.chunks.map((c) => c.id));
  const { id, born, dies } = run.map?.rects ?? { id: [] };
  const lives = new Map();
  for (let i = 0; i < id.length; i++)
    if (wanted.has(id[i]) && born[i] <= heap.event && heap.event < dies[i]) lives.set(id[i], { born: born[i], dies: dies[i] });
  return lives;
}

// firstChunks returns the index of the first chunk of each region.
function firstChunks(heap) {
  const first = new Array(heap.regions.length).fill(heap.chunks.length);
  for (let i = heap.chunks.length - 1; i >= 0; i--) first[heap.chunks[i].region] = i;
  return first;
}

// luminance returns the relative luminance of a colour, 0 to 1. Above 0.18 black text has more contrast than white.
function luminance(hex) {
  const [r, g, b] = rgb(hex).map((v) => (v / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// chunkBox draws a box with its texture.
function chunkBox(g, x, y, w, h, style, color, colors) {
  g.save();
  g.beginPath();
  g.rect(x, y, Math.max(w, 0.75), h);
  g.fillStyle = color ?? (style.texture === "none" ? colors.paper : colors.held);
  g.fill();
  if (w > 3) {
    g.strokeStyle = colors.faint;
    g.lineWidth = 0.75;
    g.stroke();
  }
  if (style.texture !== "none" && w > 2) {
    g.clip();
    g.strokeStyle = g.fillStyle = style.texture === "stripes" ? colors.paper : colors.text;
    g.lineWidth = style.texture === "stripes" ? 1.5 : 0.75;
    texturePath(g, style.texture, x, y, w, h);
  }
  g.restore();
}

// texturePath draws a texture into a clipped box.
function texturePath(g, kind, x, y, w, h) {
  g.beginPath();
  if (kind === "dots") {
    for (let i = x + 2; i < x + w; i += 5) for (let j = y + 3; j < y + h; j += 5) g.fillRect(i, j, 1.5, 1.5);
    return;
  }
  if (kind === "lines") for (let j = y + 3; j < y + h; j += 4) line(g, x, j, x + w, j);
  if (kind === "columns") for (let i = x + 3; i < x + w; i += 4) line(g, i, y, i, y + h);
  const step = kind === "dense" ? 3 : 5;
  if (kind !== "lines" && kind !== "columns") for (let i = x - h; i < x + w; i += step) line(g, i, y + h, i + h, y);
  if (kind === "cross") for (let i = x - h; i < x + w; i += step) line(g, i, y, i + h, y + h);
  g.stroke();
}

// line adds a line segment to the path.
function line(g, x0, y0, x1, y1) {
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
}
