// @ts-check
/** The token budget: how a request's tokens share the model's window, with the range of the estimate. */

import { whole } from "../../../kit/core/format.js";

/** Tokens for a character, where nothing better is known. */
const USUAL_RATE = 0.27;

/** @import { Tokens as Estimate, TokensShown } from "../../../api-types.d.ts" */
/**
 * @typedef {Estimate & { name: string, label: string, start: number, width: number }} Segment in percent of the bar
 */
/**
 * @typedef {object} Bar
 * @property {Segment[]} segments
 * @property {{ start: number, width: number } | null} band
 * @property {number | null} windowAt
 * @property {"fits" | "near" | "crowded" | "may exceed" | "exceeds" | "unknown"} verdict
 * @property {number} used
 * @property {number} low
 * @property {number} high
 * @property {number | null} window
 * @property {number} reserve
 */

/** What categories are called, in their order. */
const LABELS = /** @type {Record<string, string>} */ ({
  system: "System",
  tools: "Tools",
  history: "History",
  results: "Tool results",
  user: "User",
  attachments: "Attachments",
  options: "Options",
  reserve: "Reply reserve",
});
const ORDER = Object.keys(LABELS);
/** From this share of the window on, a request is called near its end. */
const NEAR = 0.85;

/** @param {TokensShown | null | undefined} tokens @returns {Bar} */
export function bar(tokens) {
  const known = (tokens?.categories ?? []).filter((category) => category.tokens > 0 || category.high > 0);
  const sorted = [...known].sort((a, b) => rank(a.name) - rank(b.name));
  const sum = sorted.reduce((total, category) => total + category.tokens, 0);
  const used = tokens?.estimate ?? sum;
  const low = Math.min(tokens?.low ?? used, used);
  const high = Math.max(tokens?.high ?? used, used);
  const window = tokens?.window || null;
  const reserve = Math.max(0, tokens?.reserve ?? 0);
  // Without a window the bar shows shares only; with one it shows how much is left.
  const full = Math.max(window ?? 0, used + reserve, high, 1);
  const percent = (/** @type {number} */ count) => (count / full) * 100;
  const parts = reserve ? [...sorted, { name: "reserve", tokens: reserve, low: reserve, high: reserve }] : sorted;
  let at = 0;
  const segments = parts.map((part) => {
    const start = percent(at);
    at += part.tokens;
    return { ...part, label: LABELS[part.name] ?? part.name, start, width: percent(part.tokens) };
  });
  return {
    segments,
    band: high > low ? { start: percent(low), width: percent(high - low) } : null,
    windowAt: window ? percent(window) : null,
    verdict: verdict(used, low, high, reserve, window),
    used,
    low,
    high,
    window,
    reserve,
  };
}

/** @param {string} name */
function rank(name) {
  const at = ORDER.indexOf(name);
  return at < 0 ? ORDER.length : at;
}

/**
 * @param {number} used
 * @param {number} low
 * @param {number} high
 * @param {number} reserve
 * @param {number | null} window
 * @returns {Bar["verdict"]}
 */
function verdict(used, low, high, reserve, window) {
  if (!window) return "unknown";
  if (low > window) return "exceeds";
  if (high > window) return "may exceed";
  if (used + reserve > window) return "crowded";
  return used + reserve > window * NEAR ? "near" : "fits";
}

/**
 * What a text that is being typed will cost, by the measure of the text that was counted: good for the fraction of a
 * second until the server has counted it.
 * @param {Estimate | null} counted
 * @param {number} length of the text that was counted
 * @param {number} now its length now
 * @returns {Estimate | null}
 */
export function predictTokens(counted, length, now) {
  if (!counted) return null;
  if (now === length) return counted;
  const known = length > 20 && counted.tokens > 0 ? counted.tokens / length : USUAL_RATE;
  // More than a token for a character is no text: a picture stands beside it, and that does not grow with the words.
  const rate = known > 1 ? USUAL_RATE : known;
  const more = Math.round((now - length) * rate);
  const slack = Math.abs(Math.round(more * 0.3));
  const atLeast = (/** @type {number} */ count) => Math.max(0, count);
  return {
    tokens: atLeast(counted.tokens + more),
    low: atLeast(counted.low + more - slack),
    high: atLeast(counted.high + more + slack),
  };
}

/** @param {number | null | undefined} count @returns {string} 1,234 · 12.3k · 1.2M */
export function short(count) {
  if (count === null || count === undefined) return "–";
  if (count < 10_000) return whole(count);
  if (count < 999_500) return `${count < 99_950 ? (count / 1000).toFixed(1) : Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(count < 9_950_000 ? 1 : 0)}M`;
}

/**
 * @param {Estimate | null | undefined} estimate
 * @returns {string} the band in words, empty where the number is exact
 */
export function band(estimate) {
  if (!estimate || estimate.low === estimate.high) return "";
  return `${whole(estimate.low)}–${whole(estimate.high)}`;
}

/**
 * The tokens of each tool, by its share of the text of all tools, and of each MCP server, the largest first; tools
 * that clients bring themselves count as one.
 * @param {{ tokens?: { tokens: number } | null, parts: readonly { id: string, name?: string, text?: string, tokens?:
 *   number | null, deleted?: boolean }[] }} section
 */
export function toolSizes(section) {
  const parts = section.parts.filter((part) => !part.deleted);
  const length = parts.reduce((sum, part) => sum + (part.text?.length ?? 0), 0) || 1;
  const whole = section.tokens?.tokens ?? 0;
  const tools = new Map(
    parts.map((part) => [part.id, part.tokens ?? Math.round((whole * (part.text?.length ?? 0)) / length)]),
  );
  /** @type {Map<string, { name: string, tokens: number, count: number }>} */
  const servers = new Map();
  for (const part of parts) {
    const name = /^mcp__(.+?)__/.exec(part.name ?? "")?.[1] ?? "";
    const sum = servers.get(name) ?? { name, tokens: 0, count: 0 };
    servers.set(name, { name, tokens: sum.tokens + (tools.get(part.id) ?? 0), count: sum.count + 1 });
  }
  return { tools, servers: [...servers.values()].sort((a, b) => b.tokens - a.tokens) };
}
