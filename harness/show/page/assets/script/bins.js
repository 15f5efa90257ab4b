// The free chunks of a heap as columns: one for each bin, order or size class.

const MOST_SIZES = 16; // boxes of a column

// binColumns returns a figure with the columns of a recorded heap, or null if its free chunks have no class. A box
// stands for the chunks of one size, the smallest first.
function binColumns(heap) {
  const bins = new Map(); // number of chunks, by class and size
  for (const c of heap.chunks) {
    if (c.state !== STATE_FREE || c.class < 0) continue;
    const sizes = bins.get(c.class) ?? new Map();
    bins.set(c.class, sizes.set(c.size, (sizes.get(c.size) ?? 0) + 1));
  }
  if (!bins.size) return null;
  const columns = [...bins].sort((a, b) => a[0] - b[0]).map(([number, sizes]) => {
    const all = [...sizes].sort((a, b) => a[0] - b[0]);
    const chunks = all.reduce((n, [, times]) => n + times, 0);
    const sum = all.reduce((n, [size, times]) => n + size * times, 0);
    const boxes = all.slice(0, MOST_SIZES).map(([size, times]) =>
      el("li", { text: times > 1 ? `${count(times)} × ${bytes(size)}` : bytes(size) }),
    );
    const rest = all.length - boxes.length;
    return el(
      "li",
      {},
      el("b", { text: String(number) }),
      el("small", { text: `${count(chunks)}: ${bytes(sum)}` }),
      el("ol", {}, ...boxes),
      rest > 0 ? el("small", { text: `${plural(rest, "larger size")} left out` }) : null,
    );
  });
  return el(
    "figure",
    { class: "vy-figure" },
    el(
      "figcaption",
      { text: "Free chunks by bin, order or size class" },
      el("small", { text: `after event ${count(heap.event)}: number and bytes of each column, then its chunks by size` }),
    ),
    el("ul", { class: "vy-bins" }, ...columns),
  );
}
