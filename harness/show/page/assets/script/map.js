// The memory map: addresses over events, every block a rectangle, one strategy above the other.

// BlockMap is the section of all maps.
class BlockMap {
  constructor(app) {
    this.app = app;
    this.controls = el("div", { class: "vy-controls" });
    this.key = el("div", {});
    this.panels = el("div", { class: "vy-maps" });
    this.card = el("div", { class: "vy-card", "aria-live": "polite", hidden: true });
    this.missing = el("p", { class: "vy-note", hidden: true });
    this.section = el(
      "section",
      { id: "vy-map" },
      el("h2", { text: "Memory map" }),
      el("p", {
        class: "vy-note",
        text: "Addresses over events. Tinted: reserved. Coloured: live blocks. Striped: rounding. Dotted: freed, waiting for a stream. The axis omits addresses that were never reserved; ticks at the right edge mark the gaps. Drag to zoom in both directions, click a block to pin it.",
      }),
      this.controls,
      this.key,
      this.panels,
      this.missing,
      this.card,
    );
    app.state.view((changed) => this.update(changed), true);
  }

  // update follows the state.
  update(changed) {
    const has = (...names) => names.some((n) => changed.has(n));
    const { state, trace } = this.app;
    if (has("trace", "hidden")) {
      this.list = state
        .shown()
        .filter((r) => r.map)
        .map((run) => this.list?.find((p) => p.run === run) ?? new MapPanel(this, run));
      this.panels.replaceChildren(...this.list.map((p) => p.element));
      const left = trace.stacks?.left_out ?? 0;
      this.missing.hidden = !left;
      this.missing.textContent = `${plural(left, "stack")} omitted: the page keeps those of the blocks with the largest size × lifetime.`;
    }
    if (has("trace", "hidden", "paint", "theme")) {
      refill(
        this.controls,
        switches(
          "Colour by",
          Object.entries(PAINTS)
            .filter(([k]) => k !== "site" || trace.sites.names.length)
            .map(([k, p]) => [k, p.text]),
          state.paint,
          (paint) => state.set({ paint }),
        ),
      );
      this.key.replaceChildren(
        paintKey(
          trace,
          this.list.map((p) => p.run),
          state.paint,
        ),
      );
      for (const p of this.list) p.colors();
    }
    if (has("trace", "hidden", "paint", "theme", "unit", "from", "to")) for (const p of this.list) p.draw();
    if (has("trace", "hidden", "unit", "from", "to", "cursor", "pin", "event", "run", "theme"))
      for (const p of this.list) p.drawOver();
    if (has("trace", "pin", "run", "event")) this.showPinned();
  }

  // resize adapts to the width of the page.
  resize() {
    for (const p of this.list ?? []) {
      p.draw();
      p.drawOver();
    }
  }

  // showPinned shows the properties of the selected block.
  showPinned() {
    const { state } = this.app;
    const { pin } = state;
    this.card.hidden = pin === null;
    if (pin === null) return;
    const { run, pairs, lines } = this.pinned() ?? {};
    const unpin = button("unpin", "Unpin this block", () => state.set({ pin: null }));
    this.card.replaceChildren(
      el("h3", {}, el("span", { text: `Block ${pin}${run ? ` of ${run.strategy}` : ""} ` }), unpin),
      pairs ? facts(pairs) : el("p", { text: "The page omits this block: it keeps those with the largest size × lifetime." }),
    );
    if (lines) {
      this.card.append(
        el("h3", { text: "Requested by, innermost call first" }),
        el("ol", { class: "vy-calls" }, ...lines.map((text) => el("li", { text }))),
      );
    }
  }

  // pinned returns the selected block, from the map or else from the snapshot.
  pinned() {
    const { state, trace, instant } = this.app;
    const run = instant.run();
    const tile = this.list?.find((p) => p.run === run)?.tile;
    for (const t of [tile, run?.map]) {
      const i = t ? blockById(t.rects, state.pin, state.event) : -1;
      if (i < 0) continue;
      const b = rowOf(t.rects, i);
      return { run, pairs: describeBlock(trace, run, b), lines: stackLines(t.stacks ?? trace.stacks, b.stack) };
    }
    const c = instant.heap?.chunks.find((x) => x.id === state.pin && instant.isBlock(x));
    return c && { run, pairs: instant.describe(c), lines: stackLines(instant.heap.stacks, c.stack) };
  }
}

// MAP_HEIGHT is the height of a map in points, labels included.
const MAP_HEIGHT = 230;
const MAP_FOOT = 34;

// MapPanel is the map of one run.
class MapPanel {
  constructor(map, run) {
    this.map = map;
    this.app = map.app;
    this.run = run;
    this.tile = run.map; // source of the drawn blocks: the map of the page, or a loaded window
    this.y0 = 0;
    this.y1 = Math.max(run.map.space, 1);
    this.frame = el("canvas", { "aria-hidden": "true" });
    this.pixels = el("canvas", { class: "vy-pixels", "aria-hidden": "true" });
    this.over = el("canvas", { class: "vy-over", "aria-hidden": "true" });
    this.plot = el(
      "div",
      {
        class: "vy-plot vy-stack",
        ...slider(`Memory map of ${run.strategy}. ${KEYS_HELP}`),
        "data-run": run.index,
      },
      this.frame,
      this.pixels,
      this.over,
    );
    this.painter = new Painter(this.pixels, (painting) => (this.plot.dataset.ms = painting.spent.toFixed(1)));
    this.blockCount = el("small", {});
    this.reset = button("all addresses", "Show the whole axis of addresses", () =>
      this.range(0, this.run.map.space),
    );
    this.reset.hidden = true;
    this.element = el(
      "figure",
      { class: "vy-figure" },
      el(
        "figcaption",
        {},
        swatch(run),
        el("span", { text: run.strategy }),
        this.blockCount,
        this.reset,
      ),
      this.plot,
    );
    this.showCount();
    this.listen();
  }

  // showCount shows the number of drawn blocks.
  showCount() {
    const { tile, run } = this;
    const n = tile.rects.y.length;
    const left = run.map.left_out.count;
    this.blockCount.textContent = tile.complete
      ? plural(n, "block")
      : tile === run.map
        ? `${count(n)} of ${plural(left + n, "block")} drawn one by one; grey stands for the others`
        : `${plural(n, "block")} that cover most of the window; grey stands for the others`;
  }

  // show draws other blocks.
  show(tile) {
    this.tile = tile;
    this.showCount();
    this.colors();
    this.draw();
    this.drawOver();
    if (this.run.index === this.app.state.run) this.map.showPinned();
  }

  // listen follows the pointer.
  listen() {
    gestures(this.app, this.plot, () => this.pixels.getBoundingClientRect());
    this.plot.addEventListener("pointermove", (e) => this.move(e));
    this.plot.addEventListener("pointerleave", () => showTip(null, null));
    this.plot.addEventListener("dblclick", () => this.range(0, this.run.map.space));
    this.plot.addEventListener("pointerdown", (e) => {
      if (e.button !== 0 || e.pointerType === "touch") return;
      this.drag = this.at(e);
      this.plot.setPointerCapture(e.pointerId);
    });
    this.plot.addEventListener("pointerup", (e) => this.endDrag(e));
    this.plot.addEventListener("click", (e) => this.click(e));
  }

  // at returns the position of the pointer: points of the plot, event and offset on the address axis.
  at(e) {
    const box = this.pixels.getBoundingClientRect();
    const x = e.clientX - box.left;
    const y = e.clientY - box.top;
    const { x0, x1 } = this.view();
    return {
      x,
      y,
      event: this.app.axis.event(x0 + (x / box.width) * (x1 - x0)),
      bytes: this.y1 - (y / box.height) * (this.y1 - this.y0),
    };
  }

  // view returns the visible part.
  view() {
    const { state, axis } = this.app;
    return {
      xOf: axis.times ? (e) => axis.x(e) : (e) => e,
      linear: !axis.times,
      x0: axis.x(state.from),
      x1: axis.x(state.to),
      y0: this.y0,
      y1: this.y1,
      first: Math.floor(state.from),
      last: Math.ceil(state.to),
    };
  }

  // range shows a part of the address axis.
  range(from, to) {
    const space = Math.max(this.run.map.space, 1);
    const width = Math.min(Math.max(to - from, 64), space);
    this.y0 = Math.min(Math.max(from, 0), space - width);
    this.y1 = this.y0 + width;
    this.reset.hidden = width >= space;
    this.draw();
    this.drawOver();
    this.app.live?.schedule();
  }

  // move handles a pointer move: the cursor, the tooltip of a block, or the selection rectangle.
  move(e) {
    if (e.pointerType === "touch") return; // fingers move the window
    const p = this.at(e);
    if (this.drag) {
      this.dragged = p;
      this.drawOver();
      showTip(null, null);
      return;
    }
    const last = Math.max(this.app.trace.events - 1, 0);
    const event = Math.min(Math.max(Math.floor(p.event), 0), last);
    this.app.state.set({ cursor: event });
    showTip(e, this.describe(event, p.bytes));
  }

  // describe returns the properties of the block at a position, or of the position.
  describe(event, y) {
    const { trace } = this.app;
    const i = blockAt(this.tile.rects, event, y);
    if (i >= 0) {
      const b = rowOf(this.tile.rects, i);
      return [...describeBlock(trace, this.run, b), ...innermost(this.tile.stacks ?? trace.stacks, b.stack)];
    }
    if (y < 0 || y >= this.run.map.space) return null;
    const { regions } = this.run.map;
    let held = -1;
    for (let k = atMost(regions.born, event) - 1; k >= 0 && held < 0; k--) {
      if (regions.dies[k] > event && regions.y[k] <= y && y < regions.y[k] + regions.size[k]) held = k;
    }
    const list = [
      ["here", held < 0 ? "not reserved" : this.tile.complete ? "free" : "free, or small blocks"],
      ["address", address(Math.floor(addressAt(this.run.map.ranges, y)))],
      ["event", count(event)],
    ];
    if (held >= 0)
      list.push(["region", `${bytes(regions.size[held])}, ${streamName(trace, regions.stream[held])}`]);
    return list;
  }

  // endDrag ends a drag and zooms to the selection.
  endDrag(e) {
    const from = this.drag;
    this.drag = this.dragged = null;
    if (!from) return;
    const to = this.at(e);
    const wide = Math.abs(to.x - from.x) > 5;
    const high = Math.abs(to.y - from.y) > 12;
    this.moved = wide || high;
    if (high) this.range(Math.min(from.bytes, to.bytes), Math.max(from.bytes, to.bytes));
    if (wide) this.app.state.window(Math.min(from.event, to.event), Math.max(from.event, to.event));
    this.drawOver();
  }

  // click selects the block at the pointer and shows the heap at that event.
  click(e) {
    if (this.moved) {
      this.moved = false;
      return;
    }
    const p = this.at(e);
    const event = Math.floor(p.event);
    if (event < 0 || event >= this.app.trace.events) return;
    const i = blockAt(this.tile.rects, event, p.bytes);
    if (i < 0 && e.pointerType === "touch") showTip(e, this.describe(event, p.bytes));
    this.app.state.set({
      run: this.run.index,
      event,
      pin: i < 0 ? null : this.tile.rects.id[i],
      cursor: event,
    });
  }

  // colors chooses the colours of blocks.
  colors() {
    const { trace, state } = this.app;
    this.tints = new Tints(this.tile.rects, new Paint(trace, this.run, state.paint));
  }

  // draw draws map, axes and frame.
  draw() {
    const width = Math.max(this.plot.clientWidth, 200);
    const [w, h] = [width - GUTTER - MARGIN, MAP_HEIGHT - MAP_FOOT - 4];
    const scale = window.devicePixelRatio || 1;
    sizeCanvas(this.pixels, w, h);
    const colors = pageColors();
    const tones = {
      paper: pixel(colors.paper),
      held: pixel(colors.held),
      cover: pixel(NEUTRAL),
      dark: pixel(colors.text),
    };
    const size = { w: this.pixels.width, h: this.pixels.height };
    const { printing } = this.app.state; // print: the browser does not wait for a later frame
    this.painter.paint(
      { map: this.tile, view: this.view(), tints: this.tints, colors: tones, scale, ...size },
      printing,
    );
    for (const c of [this.pixels, this.over]) {
      c.style.left = `${GUTTER}px`;
      c.style.top = "4px";
    }
    this.drawFrame(width, w, h, colors);
  }

  // drawFrame draws the axes.
  drawFrame(width, w, h, colors) {
    const { axis } = this.app;
    const { x0, x1 } = this.view();
    const g = sizeCanvas(this.frame, width, MAP_HEIGHT);
    g.font = colors.font;
    g.fillStyle = colors.text;
    g.strokeStyle = colors.line;
    g.textAlign = "right";
    g.textBaseline = "middle";
    const rows = ticks(this.y0, this.y1, h / 36, 2);
    bytesOnAxis(rows).forEach((text, i) => {
      const y = 4 + h - ((rows[i] - this.y0) / (this.y1 - this.y0)) * h;
      g.fillText(text, GUTTER - 6, Math.min(Math.max(y, 9), 4 + h - 2));
      g.strokeRect(GUTTER - 4, y, 4, 0);
    });
    g.save();
    g.translate(9, 4 + h / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.fillText("reserved address space", 0, 0);
    g.restore();
    g.textAlign = "center";
    g.textBaseline = "top";
    const many = Math.max(w / 110, 3);
    const columns = ticks(x0, x1, axis.times ? many : Math.min(many, x1 - x0)); // there are no half events
    axis.texts(columns).forEach((text, i) => {
      const x = GUTTER + ((columns[i] - x0) / (x1 - x0)) * w;
      g.strokeRect(x, 4 + h, 0, 4);
      g.fillText(text, x, 4 + h + 5);
    });
    g.fillText(axis.label, GUTTER + w / 2, 4 + h + 18);
    g.strokeStyle = colors.faint;
    g.strokeRect(GUTTER - 0.5, 3.5, w + 1, h + 1);
    this.breaks(g, w, h, colors);
  }

  // breaks marks gaps in the address axis at the right edge.
  breaks(g, w, h, colors) {
    g.fillStyle = colors.faint;
    for (const r of this.run.map.ranges.slice(1)) {
      if (r.y <= this.y0 || r.y >= this.y1) continue;
      const y = 4 + h - ((r.y - this.y0) / (this.y1 - this.y0)) * h;
      g.fillRect(GUTTER + w + 1, y - 0.5, 6, 1);
    }
  }

  // drawOver draws the moving parts: cursor, snapshot line, selected block, selection rectangle.
  drawOver() {
    const { state, axis } = this.app;
    const [w, h] = [this.pixels.clientWidth, this.pixels.clientHeight];
    const g = sizeCanvas(this.over, w, h);
    const colors = pageColors();
    const { x0, x1 } = this.view();
    const xAt = (event) => ((axis.x(event) - x0) / (x1 - x0)) * w;
    const yAt = (y) => h - ((y - this.y0) / (this.y1 - this.y0)) * h;
    if (state.cursor !== null) {
      g.strokeStyle = colors.text;
      g.setLineDash([3, 3]);
      g.strokeRect(Math.round(xAt(state.cursor)) + 0.5, 0, 0, h);
      g.setLineDash([]);
    }
    if (state.run === this.run.index) {
      g.strokeStyle = colors.focus;
      g.lineWidth = 1.5;
      g.strokeRect(xAt(state.event + 0.5), 0, 0, h);
      const i = state.pin === null ? -1 : blockById(this.tile.rects, state.pin, state.event);
      if (i >= 0) {
        const b = rowOf(this.tile.rects, i);
        const left = xAt(b.born);
        const right = b.dies === NEVER ? w + 4 : xAt(b.dies);
        g.lineWidth = 2.5;
        g.strokeRect(
          left - 1,
          yAt(b.y + b.size) - 1,
          Math.max(right - left, 1) + 2,
          Math.max(yAt(b.y) - yAt(b.y + b.size), 1) + 2,
        );
      }
    }
    if (this.drag && this.dragged) {
      const [a, b] = [this.drag, this.dragged];
      const high = Math.abs(a.y - b.y) > 12;
      g.fillStyle = colors.dark ? "#ffffff30" : "#00000020";
      g.fillRect(
        Math.min(a.x, b.x),
        high ? Math.min(a.y, b.y) : 0,
        Math.abs(a.x - b.x),
        high ? Math.abs(a.y - b.y) : h,
      );
    }
  }
}

// describeBlock returns the properties of a block as names and texts.
function describeBlock(trace, run, b) {
  const loss = b.size - b.requested;
  const list = [
    ["block", String(b.id)],
    ["size", loss ? `${bytes(b.size)}, ${bytes(b.requested)} requested` : bytes(b.size)],
  ];
  if (loss) list.push(["rounding", `${bytes(loss)}, ${percent(loss / b.size)}`]);
  list.push(["tag", tagName(trace, b.tag)], ["stream", streamName(trace, b.stream)]);
  if (b.class >= 0) list.push(["class", String(b.class)]);
  list.push(
    ["address", address(Math.round(addressAt(run.map.ranges, b.y)))],
    ["born", `event ${count(b.born)}`],
  );
  if (b.freed !== NEVER && b.freed !== b.dies) list.push(["freed", `event ${count(b.freed)}, then pending`]);
  list.push(["dies", b.dies === NEVER ? "not within the trace" : `event ${count(b.dies)}`]);
  list.push(["lifetime", plural(Math.min(b.dies, trace.events) - b.born, "event")]);
  return list;
}
