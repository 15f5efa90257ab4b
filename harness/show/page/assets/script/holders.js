// Holders of memory at the peak and at the last refused request: by category, by call site and as a flame graph.

// FLAME_ROW is the height of a row of a flame graph in points, with the gap below it.
const FLAME_ROW = 19;

// FLAME_LEAST is the minimum width of a visible box, as a share.
const FLAME_LEAST = 0.001;

// HolderView is the section.
class HolderView {
  constructor(app) {
    this.app = app;
    this.body = el("div");
    this.section = el(
      "section",
      { id: "vy-holders" },
      el("h2", { text: "Memory by holder", "data-short": "Memory" }),
      this.body,
    );
    app.state.view((changed) => {
      if (changed.has("trace")) this.build();
      else if (changed.has("theme")) this.draw();
    });
  }

  // build rebuilds the section for the peak.
  build() {
    const { top } = this.app.trace;
    this.section.hidden = !top;
    if (!top) return;
    this.moment = 0;
    this.controls = el("div", { class: "vy-controls" });
    this.shares = el("div", { class: "vy-shares", "aria-hidden": "true" });
    this.key = el("div", { class: "vy-key-row" });
    this.flame = el("div", {});
    this.body.replaceChildren(
      ...top.summary.map((text) => el("p", { text })),
      this.controls,
      this.shares,
      this.key,
      this.flame,
      el("div", { class: "vy-scroll" }, this.table(top.sheet)),
      ...top.notes.map((text) => el("p", { class: "vy-note", text })),
    );
    this.draw();
  }

  // table makes the table of the largest holders.
  table(sheet) {
    const numeric = sheet.Columns.flatMap((c, i) => (c.Number ? [i] : []));
    const cell = (c) => el("span", { text: c.Text, title: c.Hint && c.Hint !== c.Text ? c.Hint : null });
    const rows = sheet.Rows.map((r) => r.map(cell));
    return table(sheet.Title, sheet.Columns.map((c) => c.Name), rows, numeric);
  }

  // draw shows a moment.
  draw() {
    const { top } = this.app.trace;
    if (!top) return;
    const m = top.moments[this.moment];
    const choose = (v) => {
      this.moment = v;
      this.draw();
    };
    const go = () => {
      this.app.instant.go(m.event);
      this.app.instant.section.scrollIntoView();
    };
    refill(
      this.controls,
      ...(top.moments.length > 1 ? [switches("At the", top.moments.map((x, i) => [i, x.name]), this.moment, choose)] : []),
      button(`memory after event ${count(m.event)}`, "Show every block at this event", go),
    );
    this.shares.replaceChildren();
    this.key.replaceChildren();
    this.shares.hidden = this.key.hidden = !top.categorized;
    for (const c of m.categories) {
      const part = el("span", {});
      part.style.flexGrow = c.bytes;
      part.style.background = categoryColor(top, c.category);
      this.shares.append(part);
      const box = el("span", { class: "vy-box", "aria-hidden": "true" });
      box.style.background = categoryColor(top, c.category);
      const text = `${top.categories[c.category]} ${bytes(c.bytes)}, ${percent(c.bytes / (m.bytes || 1))}`;
      this.key.append(el("span", { class: "vy-key" }, box, el("span", { text })));
    }
    this.flame.replaceChildren(new Flame(top, m).element);
  }
}

// categoryColor returns the colour of a category. The last one is that of what is not known.
function categoryColor(top, category) {
  return category === top.categories.length - 1 ? NEUTRAL : areaColor(category, pageColors().dark);
}

// Flame is a flame graph, the outermost line at the top. A box is as wide as its share of the bytes. One box has the
// focus; arrow keys move it.
class Flame {
  constructor(top, moment) {
    this.top = top;
    this.total = moment.bytes || 1;
    this.root = this.boxOf(moment.flame, null);
    this.at = this.root; // the box that fills the width
    this.focus = this.root;
    const keys =
      "Arrow keys move to the callers and callees of a line, Enter fills the width with it, Escape shows all.";
    this.boxes = el("div", { class: "vy-flame", role: "tree", "aria-label": `Stacks of the live bytes, as a flame graph. ${keys}` });
    this.element = el(
      "figure",
      { class: "vy-figure" },
      el(
        "figcaption",
        {},
        el("span", { text: `Live bytes by ${top.grouped_by === "call site" ? "stack" : top.grouped_by}` }),
        el("small", { text: "outermost at the top; click a box, or press Enter, to fill the width with it" }),
      ),
      this.boxes,
    );
    this.boxes.addEventListener("keydown", (e) => this.key(e));
    this.boxes.addEventListener("pointerleave", () => showTip(null, null));
    this.draw();
  }

  // boxOf returns a box of the graph, and the boxes inside.
  boxOf([number, size, blocks, category, below], parent) {
    const box = { text: this.top.names[number], size, blocks, category, parent, depth: parent ? parent.depth + 1 : 0 };
    box.below = below.map((b) => this.boxOf(b, box));
    return box;
  }

  // draw lays out the box that fills the width, the boxes around it above and those inside below.
  draw() {
    this.shown = [];
    const around = [];
    for (let b = this.at.parent; b; b = b.parent) around.unshift(b);
    for (const b of around) this.shown.push({ box: b, left: 0, width: 1 });
    const lay = (box, left, width) => {
      this.shown.push({ box, left, width });
      let x = left;
      for (const b of box.below) {
        const w = (width * b.size) / (box.size || 1);
        if (w >= FLAME_LEAST) lay(b, x, w);
        x += w;
      }
    };
    lay(this.at, 0, 1);
    const deepest = this.shown.reduce((n, s) => Math.max(n, s.box.depth), 0);
    this.boxes.style.height = `${(deepest + 1) * FLAME_ROW}px`;
    this.boxes.replaceChildren(...this.shown.map((s) => this.boxElement(s, around.includes(s.box))));
    if (!this.shown.some((s) => s.box === this.focus)) this.focus = this.at;
    this.focus.element.tabIndex = 0;
  }

  // boxElement makes the element of a box.
  boxElement({ box, left, width }, faint) {
    const share = percent(box.size / this.total);
    const e = el("div", {
      class: "vy-flame-box",
      role: "treeitem",
      tabindex: "-1",
      "aria-level": String(box.depth + 1),
      "aria-expanded": box.below.length ? "true" : null,
      "aria-label": `${box.text}, ${bytes(box.size)}, ${share}, ${plural(box.blocks, "block")}`,
      text: withoutFolders(box.text),
      on: {
        click: () => this.zoom(box),
        pointermove: (p) => showTip(p, this.describe(box)),
      },
    });
    const color = this.color(box);
    Object.assign(e.style, {
      left: `${100 * left}%`,
      width: `${100 * width}%`,
      top: `${box.depth * FLAME_ROW}px`,
      background: color,
      color: luminance(color) < 0.18 ? "#ffffff" : "#000000",
      opacity: faint ? 0.55 : 1,
    });
    box.element = e;
    return e;
  }

  // color returns the colour of a box: of its category, or where no category is known one by its name.
  color(box) {
    if (this.top.categorized) return categoryColor(this.top, box.category);
    if (!box.parent) return NEUTRAL;
    let n = 0;
    for (const c of box.text) n = (31 * n + c.codePointAt(0)) % 997;
    return areaColor(n % AREAS.length, pageColors().dark);
  }

  // describe returns what is known of a box, as names and texts.
  describe(box) {
    return [
      ["line", box.text],
      ["live", `${bytes(box.size)}, ${percent(box.size / this.total)}`],
      ["blocks", count(box.blocks)],
      ...(this.top.categorized ? [["category", this.top.categories[box.category]]] : []),
    ];
  }

  // zoom fills the width with a box, or shows all if it does already.
  zoom(box) {
    showTip(null, null);
    this.at = this.at === box ? this.root : box;
    this.focus = box;
    this.draw();
    box.element.focus({ preventScroll: true });
  }

  // key moves the focus, or zooms.
  key(e) {
    const { focus } = this;
    const seen = (list) => list.filter((b) => this.shown.some((s) => s.box === b));
    const beside = (by) => {
      const list = seen(focus.parent?.below ?? []);
      return list[list.indexOf(focus) + by];
    };
    const to = {
      ArrowDown: () => seen(focus.below)[0],
      ArrowUp: () => focus.parent,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => this.root,
    }[e.key];
    if (to) this.move(to());
    else if (e.key === "Enter" || e.key === " ") this.zoom(focus);
    else if (e.key === "Escape") this.zoom(this.root === this.at ? this.root : this.at);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  // move gives another box the focus.
  move(box) {
    if (!box) return;
    this.focus.element.tabIndex = -1;
    this.focus = box;
    box.element.tabIndex = 0;
    box.element.focus();
  }
}
