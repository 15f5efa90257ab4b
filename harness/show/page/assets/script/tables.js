// The tables of the page, which also work without scripts: sorted by a click, copied as CSV.

// enhanceTables makes tables sortable and copyable.
function enhanceTables() {
  for (const t of document.querySelectorAll("#vy-tables table")) {
    [...t.tHead.rows[0].cells].forEach((th, column) => {
      const b = el("button", {
        type: "button",
        class: "vy-sort",
        text: th.textContent,
        title: th.title || "Sort",
        on: { click: () => sortBy(t, th, column) },
      });
      th.replaceChildren(b);
    });
    const copy = button("Copy as CSV", "All figures of this table, in full", () => copyText(csv(t), copy));
    copy.classList.add("vy-copy");
    t.parentElement.after(copy);
  }
}

// sortBy sorts a table by a column, or reverses the order. Rows without a value
// come last.
function sortBy(t, th, column) {
  const down = th.getAttribute("aria-sort") === "ascending";
  for (const other of t.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  th.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => {
    const cell = row.cells[column];
    const v = cell?.dataset.v;
    if (v !== undefined && v !== "") return Number(v);
    return cell?.classList.contains("vy-right") ? null : (cell?.textContent ?? "");
  };
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    const order =
      typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en");
    return down ? -order : order;
  };
  t.tBodies[0].append(...[...t.tBodies[0].rows].sort(compare));
}

// csv returns a table as CSV, with full values where cells have them.
function csv(t) {
  const quoted = (s) => (/[",\r\n]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s);
  return (
    [...t.rows]
      .map((r) => [...r.cells].map((c) => quoted(c.dataset.v || c.textContent)).join(","))
      .join("\r\n") + "\r\n"
  );
}

// copyText copies a text to the clipboard and confirms on the button. Some browsers refuse this
// for pages from files; the fallback copies a selected text.
async function copyText(text, pressed) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { class: "vy-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  const was = pressed.textContent;
  pressed.textContent = done ? "Copied" : "Could not copy";
  setTimeout(() => {
    pressed.textContent = was;
  }, 1500);
}
