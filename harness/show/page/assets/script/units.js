// Numbers as the tables write them: binary units for bytes, two decimals.

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// bytes returns a size with two decimals in the largest unit that leaves a digit before the point.
function bytes(n) {
  let k = 0;
  while (k + 1 < BYTE_UNITS.length && n >= 1024 ** (k + 1)) k++;
  return k === 0 ? `${Math.round(n)} B` : `${(n / 1024 ** k).toFixed(2)} ${BYTE_UNITS[k]}`;
}

// bytesOnAxis formats evenly spaced sizes with the fewest digits that keep them distinct.
function bytesOnAxis(values) {
  const most = Math.max(...values.map(Math.abs), 1);
  const k = Math.min(Math.floor(Math.log2(most) / 10), BYTE_UNITS.length - 1);
  const digits = values.length < 2 ? 0 : decimals((values[1] - values[0]) / 1024 ** k);
  return values.map((v) => (v === 0 ? "0" : `${(v / 1024 ** k).toFixed(digits)} ${BYTE_UNITS[k]}`));
}

// decimals returns the number of decimals that shows a step exactly, at most three.
function decimals(step) {
  for (let d = 0; d < 3; d++) if (Math.abs(step * 10 ** d - Math.round(step * 10 ** d)) < 1e-9) return d;
  return 3;
}

// nanoseconds formats a time as in the tables.
function nanoseconds(ns) {
  const a = Math.abs(ns);
  if (a < 1e3) return `${Math.round(ns)} ns`;
  if (a < 1e6) return `${(ns / 1e3).toFixed(2)} µs`;
  if (a < 1e9) return `${(ns / 1e6).toFixed(2)} ms`;
  return `${(ns / 1e9).toFixed(2)} s`;
}

// count formats an integer with thousands separators.
function count(n) {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// percent formats a share.
function percent(x) {
  return `${(100 * x).toFixed(1)} %`;
}

// address formats an address in hexadecimal.
function address(n) {
  return `0x${n.toString(16)}`;
}

// plural formats a number with its noun.
function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// ticks returns about count round values within [from, to]. base 2 gives steps of powers of two.
function ticks(from, to, about, base = 10) {
  const rough = (to - from) / Math.max(about, 1);
  if (!(rough > 0)) return [from];
  let step;
  if (base === 2) {
    step = 2 ** Math.ceil(Math.log2(rough));
  } else {
    const power = 10 ** Math.floor(Math.log10(rough));
    step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  }
  const list = [];
  for (let v = Math.ceil(from / step) * step; v <= to + step * 1e-9; v += step) list.push(v);
  return list;
}
