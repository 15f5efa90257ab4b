// DOM elements. Content from files is set as text, never as markup.

// el makes an element. props holds attributes; "text" is its text, "on" its listeners by event.
function el(name, props = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") e.textContent = value;
    else if (key === "on") for (const [event, f] of Object.entries(value)) e.addEventListener(event, f);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// button makes a button. If its text is a symbol, the title is its accessible name.
function button(text, title, press) {
  const sign = title && text && !/[\p{L}\p{N}]/u.test(text);
  return el("button", { type: "button", text, title, "aria-label": sign ? title : null, on: { click: press } });
}

// refill replaces the controls of an element. The focus stays on the control at the same index, so that keyboard
// navigation does not restart at the top of the page.
function refill(host, ...children) {
  const controls = () => [...host.querySelectorAll("button, select, input, summary")];
  const at = controls().indexOf(document.activeElement);
  host.replaceChildren(...children);
  if (at >= 0) controls()[at]?.focus({ preventScroll: true });
}

// slider returns the ARIA attributes of a picture that arrow keys move along an axis. As a slider with a range and a
// value it receives keys from screen readers too.
function slider(label) {
  return { tabindex: "0", role: "slider", "aria-label": label, "aria-valuemin": "0", "aria-valuenow": "0" };
}

// setSlider updates the value of a slider, as a number and in words.
function setSlider(plot, most, now, text) {
  plot.setAttribute("aria-valuemax", String(most));
  plot.setAttribute("aria-valuenow", String(now));
  plot.setAttribute("aria-valuetext", text);
}

// choice makes a labelled list to choose from. options are pairs of value and text.
function choice(label, options, value, choose) {
  const list = el("select", { on: { change: () => choose(list.value) } });
  for (const [v, text] of options)
    list.append(el("option", { value: v, text, selected: String(v) === String(value) }));
  return el("label", { class: "vy-choice" }, el("span", { text: label }), list);
}

// switches makes a row of buttons, one of which is pressed.
function switches(label, options, value, choose) {
  const row = el(
    "span",
    { class: "vy-switch", role: "group", "aria-label": label },
    el("span", { text: label }),
  );
  for (const [v, text] of options) {
    const b = button(text, "", () => choose(v));
    b.setAttribute("aria-pressed", String(v === value));
    row.append(b);
  }
  return row;
}

// table makes a table of texts. Cells may be elements; numeric columns are right-aligned.
function table(caption, heads, rows, numeric = []) {
  const side = (i) => (numeric.includes(i) ? "vy-right" : null);
  const cell = (name, v, i) =>
    v instanceof Node ? el(name, { class: side(i) }, v) : el(name, { class: side(i), text: v });
  return el(
    "table",
    { class: "vy-table" },
    caption ? el("caption", { text: caption }) : null,
    el(
      "thead",
      {},
      el("tr", {}, ...heads.map((h, i) => el("th", { scope: "col", class: side(i), text: h }))),
    ),
    el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((v, i) => cell("td", v, i))))),
  );
}

// copyBox shows a command with a copy button.
function copyBox(text) {
  const copy = button("Copy", "Copy to the clipboard", () => copyText(text, copy));
  return el("div", { class: "vy-copybox" }, el("pre", {}, el("code", { text })), copy);
}

// facts makes a list of names and values.
function facts(pairs) {
  const list = el("dl", { class: "vy-facts" });
  for (const [name, value] of pairs) list.append(el("dt", { text: name }), el("dd", { text: value }));
  return list;
}

// TIP is the tooltip. The page has one.
const TIP = el("div", { class: "vy-tip", role: "status", hidden: true });
document.body.append(TIP);
document.addEventListener("touchstart", () => showTip(null, null), { passive: true });

// showTip shows a tooltip beside a point of the window, or hides it for null.
function showTip(at, pairs) {
  TIP.hidden = !pairs;
  if (!pairs) return;
  TIP.replaceChildren(facts(pairs));
  const { offsetWidth: w, offsetHeight: h } = TIP;
  const beside = (from, size, end) => (from + 14 + size > end ? Math.max(from - 14 - size, 0) : from + 14);
  TIP.style.transform = `translate(${beside(at.clientX, w, window.innerWidth)}px, ${beside(at.clientY, h, window.innerHeight)}px)`;
}

// sizeCanvas sizes a canvas in CSS pixels and returns its context, in which one unit is one
// CSS pixel at any screen resolution.
function sizeCanvas(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  return g;
}

let cachedColors = null; // a query makes the browser compute the style of the whole page

// forgetPageColors discards the cached colours after a change of style.
function forgetPageColors() {
  cachedColors = null;
}

// pageColors returns the colours of the current style.
function pageColors() {
  if (cachedColors) return cachedColors;
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return (cachedColors = {
    dark: of("dark") === "1",
    paper: of("paper"),
    text: of("text"),
    faint: of("faint"),
    line: of("line"),
    held: of("held"),
    alarm: of("alarm"),
    focus: of("focus"),
    font: of("font-small"),
  });
}
