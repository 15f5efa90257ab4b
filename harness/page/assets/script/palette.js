// Colours. LINES, those of strategies, are harness/palette's: the program writes them above. A test holds
// them apart. More than eight repeat with a mark on the line. Areas take Tol's muted ones, which are made to lie side by side.

const AREAS = [
  "#88ccee",
  "#cc6677",
  "#ddcc77",
  "#117733",
  "#332288",
  "#aa4499",
  "#44aa99",
  "#999933",
  "#882255",
];

// NEUTRAL is the colour of what has no tag, or one of those that are not told apart.
const NEUTRAL = "#a8a8a8";

// Cividis in eight steps, from little to much.
const RAMP = ["#00224e", "#223b6e", "#4c5570", "#6e7075", "#918c78", "#b7a96d", "#dfcb53", "#fee838"];

// lineColor returns the colour of a strategy by its number. Those with a mark are further from the paper.
function lineColor(number, dark) {
  const color = LINES[dark ? "dark" : "light"][number % LINES.light.length];
  return lineMark(number) % 2 === 0 ? color : mixed(color, dark ? "#ffffff" : "#000000", 0.38);
}

// lineMark returns which mark a strategy has on its lines: 0 is none.
function lineMark(number) {
  return Math.floor(number / LINES.light.length);
}

// rgb returns the parts of a colour that is written in six digits.
function rgb(hex) {
  const v = parseInt(hex.slice(1), 16);
  return [v >> 16, (v >> 8) & 255, v & 255];
}

// mixed returns a colour between two; share 0 is the first.
function mixed(a, b, share) {
  const [x, y] = [rgb(a), rgb(b)];
  const parts = x.map((v, i) =>
    Math.round(v + (y[i] - v) * share)
      .toString(16)
      .padStart(2, "0"),
  );
  return `#${parts.join("")}`;
}

// areaColor returns the colour of the n-th kind of area; the second nine are lighter, the others alike.
function areaColor(n) {
  if (n < AREAS.length) return AREAS[n];
  return n < 2 * AREAS.length ? mixed(AREAS[n - AREAS.length], "#ffffff", 0.45) : NEUTRAL;
}

// rampColor returns the colour of a share from 0 to 1.
function rampColor(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const k = Math.min(Math.floor(at), RAMP.length - 2);
  return mixed(RAMP[k], RAMP[k + 1], at - k);
}

// pixel returns a colour as a pixel of an image on a little-endian machine, which all that run this are.
function pixel(hex) {
  const [r, g, b] = rgb(hex);
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}
