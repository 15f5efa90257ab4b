// Colours. LINES, the colours of strategies, come from harness/show/chart: the program inserts them above. Tests check
// that they are distinguishable. From the ninth on lines have a mark. Areas use Tol's muted palette, which is designed
// for adjacent areas; on a dark page its darkest colours are lighter.

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

// DARK_AREAS are the same on a dark page.
const DARK_AREAS = [
  "#88ccee",
  "#cc6677",
  "#ddcc77",
  "#2f9a55",
  "#8a7df0",
  "#c65fb6",
  "#44b8a6",
  "#a3a33a",
  "#c4528a",
];

// NEUTRAL is the colour of blocks without a tag, or with one that has no colour of its own.
const NEUTRAL = "#a8a8a8";

// Cividis in eight steps, from little to much.
const RAMP = ["#00224e", "#223b6e", "#4c5570", "#6e7075", "#918c78", "#b7a96d", "#dfcb53", "#fee838"];

// lineColor returns the colour of a strategy by its number.
function lineColor(number, dark) {
  return LINES[dark ? "dark" : "light"][number % LINES.light.length];
}

// lineMark returns the mark on a strategy's lines, 0 for none. It distinguishes strategies of one colour.
function lineMark(number) {
  return Math.floor(number / LINES.perMark);
}

// rgb returns the components of a colour in six hexadecimal digits.
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
function areaColor(n, dark) {
  const areas = dark ? DARK_AREAS : AREAS;
  if (n < areas.length) return areas[n];
  return n < 2 * areas.length ? mixed(areas[n - areas.length], "#ffffff", 0.45) : NEUTRAL;
}

// hasColor reports whether the n-th kind of area has a colour of its own.
function hasColor(n) {
  return n >= 0 && n < 2 * AREAS.length;
}

// DARKEST is the share of the ramp that a dark page omits because it would be invisible.
const DARKEST = 0.45;

// rampColor returns the colour of a share from 0 to 1.
function rampColor(share, dark) {
  const seen = Math.min(Math.max(share, 0), 1);
  const at = (dark ? DARKEST + (1 - DARKEST) * seen : seen) * (RAMP.length - 1);
  const k = Math.min(Math.floor(at), RAMP.length - 2);
  return mixed(RAMP[k], RAMP[k + 1], at - k);
}

// pixel returns a colour as a 32-bit pixel; every supported machine is little-endian.
function pixel(hex) {
  const [r, g, b] = rgb(hex);
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}
