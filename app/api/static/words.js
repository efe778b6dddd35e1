// Numbers, sizes and times as people read them.

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];
const whole = new Intl.NumberFormat("en");

/** A whole number. */
export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));

/** So many of something. */
export const counted = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;

/** Some bytes. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let place = 0;
  while (bytes >= 1000 && place < UNITS.length - 1) {
    bytes /= 1000;
    place += 1;
  }
  return `${place && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${UNITS[place]}`;
}

/** A number with four digits that count. */
export function digits(number) {
  if (typeof number !== "number" || !Number.isFinite(number)) return "–";
  if (number === 0 || Number.isInteger(number)) return whole.format(number);
  const length = Math.abs(number);
  return length >= 1e5 || length < 1e-3
    ? number.toExponential(2).replace("e-", "e−").replace("e+", "e")
    : number.toPrecision(4).replace("-", "−");
}

/** A number at an axis, as short as it can be. */
export const mark = (number) =>
  Math.abs(number) >= 1e5 || (number && Math.abs(number) < 1e-3) ? digits(number) : String(number).replace("-", "−");

/** A duration. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** A moment, as long ago. */
export function ago(moment) {
  const seconds = (Date.now() - Date.parse(moment)) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(moment).toISOString().slice(0, 10);
}

/** A name of the service's in words: "moment_matching" is "moment matching". */
export const words = (name) => String(name).replace(/[_-]/g, " ");

/** A name as the start of a sentence. */
export const heading = (name) => words(name).replace(/^./, (first) => first.toUpperCase());
