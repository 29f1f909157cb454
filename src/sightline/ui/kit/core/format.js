// @ts-check
/** Formats numbers, durations, times and names. */

const MINUTE = 60;
const DAY = 24 * 3600;

// Made once: making one takes longer than drawing a row.
const COUNTS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const DATES = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const STAMPS = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** A count in full: 12,345. @param {number | null | undefined} count */
export function whole(count) {
  return count == null ? "" : COUNTS.format(Math.round(count));
}

/** A count in four characters at most: 950, 1.2k, 34k, 1.2M. @param {number | null | undefined} count */
export function short(count) {
  if (count == null) return "";
  if (count < 1000) return String(Math.round(count));
  for (const [size, letter] of /** @type {[number, string][]} */ ([
    [1e3, "k"],
    [1e6, "M"],
    [1e9, "G"],
  ])) {
    const scaled = count / size;
    if (scaled < 9.95) return `${scaled.toFixed(1).replace(/\.0$/, "")}${letter}`;
    if (scaled < 999.5) return `${Math.round(scaled)}${letter}`;
  }
  return count.toExponential(1);
}

/** Room on a disk: 812 bytes, 43.0 kB, 1.2 MB. @param {number} bytes */
export function room(bytes) {
  if (bytes < 1000) return countOf(bytes, "byte");
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** US dollars, with as many places as a small sum needs. @param {number | null | undefined} dollars */
export function money(dollars) {
  if (dollars == null) return "";
  if (dollars === 0) return "$0";
  const size = Math.abs(dollars);
  const places = size >= 1 ? 2 : size >= 0.01 ? 3 : size >= 0.0001 ? 4 : 6;
  return `${dollars < 0 ? "−" : ""}$${size.toFixed(places)}`;
}

/**
 * What one answer cost, with a tilde where that is estimated.
 * @param {{ cost?: number | null, is_estimated?: boolean }} of
 */
export function costOf({ cost, is_estimated: isEstimated }) {
  return cost == null ? "" : `${isEstimated ? "~" : ""}${money(cost)}`;
}

/**
 * What many answers cost: a tilde where some of it is estimated, a plus sign where it is only the least.
 * @param {{ cost?: number | null, unpriced?: number, estimated_cost?: number }} sums
 */
export function sumOfCosts({ cost, unpriced, estimated_cost: estimated }) {
  if (cost == null) return "";
  return !cost && unpriced ? "unknown" : `${estimated ? "~" : ""}${money(cost)}${unpriced ? "+" : ""}`;
}

/**
 * What is to be known of such a sum.
 * @param {{ unpriced?: number, estimated_cost?: number }} sums
 */
export function aboutCosts({ unpriced, estimated_cost: estimated }) {
  return [
    estimated ? `${money(estimated)} of it estimated` : "",
    unpriced ? `${countOf(unpriced, "request")} without a known price` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

/** A length of time: 43 ms, 1.23 s, 12.3 s, 2 m 05 s, 1 h 02 m. @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds == null) return "";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 3600) return `${Math.floor(rounded / MINUTE)} m ${pad(rounded % MINUTE)} s`;
  return `${Math.floor(rounded / 3600)} h ${pad(Math.floor((rounded % 3600) / MINUTE))} m`;
}

/** How long something has run so far: 0:07, 14:39, 1:02:03. @param {number} seconds */
export function formatRunning(seconds) {
  const whole = Math.max(Math.floor(seconds), 0);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / MINUTE);
  return `${hours ? `${hours}:${pad(minutes)}` : minutes}:${pad(whole % MINUTE)}`;
}

/**
 * When something came: the time of day, and the day where that is another one.
 * @param {number} at seconds since 1970
 * @param {number} now
 */
export function when(at, now) {
  const then = new Date(at * 1000);
  const time = `${pad(then.getHours())}:${pad(then.getMinutes())}:${pad(then.getSeconds())}`;
  if (then.toDateString() === new Date(now * 1000).toDateString()) return time;
  const day = DATES.format(then);
  return Math.abs(now - at) < 300 * DAY ? `${day} ${time.slice(0, 5)}` : `${day} ${then.getFullYear()}`;
}

/** The full date and time, for a tip. @param {number} at */
export function stamp(at) {
  return STAMPS.format(new Date(at * 1000));
}

/**
 * A program's name without its version and platform: `claude-cli/2.0 (external)` is claude-cli.
 * @param {string | undefined} client
 */
export function clientName(client) {
  return (client ?? "").split(/[\s(]/)[0].replace(/\/v?\d.*$/, "");
}

/** `1 request`, `2 requests`. @param {number} count @param {string} one @param {string} [many] */
export function countOf(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** @param {number} number */
function pad(number) {
  return String(number).padStart(2, "0");
}
