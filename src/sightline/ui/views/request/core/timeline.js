// @ts-check
/** The timeline of an exchange from its facts: bars for phases, marks for moments, and the pieces of the reply. */

/** @import { Fact } from "./exchange.js" */
/**
 * @typedef {{ kind: "held" | "attempt" | "wait" | "reply", from: number, to: number, label: string, detail: string,
 *   isFailed: boolean }} Stretch
 */
/** @typedef {{ at: number, kind: string, label: string }} Moment */
/** @typedef {{ at: number, size: number }} Piece */
/**
 * @typedef {{ span: number, stretches: Stretch[], moments: Moment[], pieces: Piece[], bytes: number,
 *   isOpen: boolean }} Timeline times in seconds since the first fact
 */

const ENDS = new Set(["finished", "failed", "dropped", "cancelled", "answered"]);
/** What is a moment, and how it is called. @type {Record<string, (fact: Fact) => string>} */
const MOMENTS = {
  received: () => "Received",
  translated: ({ dialect }) => `Translated to ${dialect}`,
  edited: ({ operation }) =>
    operation === "mask" ? "Changed by a kept edit" : `Edited (${String(operation).split(/[\s{(:]/)[0]})`,
  released: () => "Released",
  dropped: ({ reason }) => (reason ? `Dropped: ${reason}` : "Dropped"),
  answered: () => "Answered by hand",
  finished: ({ finish }) => (finish ? `Finished (${finish})` : "Finished"),
  failed: ({ code, fault }) => `Failed (${code ?? fault?.code ?? ""})`,
  cancelled: () => "Cancelled",
};

/**
 * The frames that one event tells of: what came since the last one.
 * @param {{ n: number, at: number[], after: number[], size: number[] }} event
 * @returns {Fact[]}
 */
export function framesIn({ n, at, after, size }) {
  return at.map((each, index) => ({
    kind: "frame",
    n: n + index,
    at: each,
    after: after[index],
    size: size[index],
  }));
}

/**
 * @param {readonly Fact[]} facts
 * @param {number} now in seconds; an exchange that has not ended lasts until then
 * @returns {Timeline | null}
 */
export function timeline(facts, now) {
  if (!facts.length) return null;
  const start = facts[0].at;
  const isOpen = !facts.some((fact) => ENDS.has(fact.kind));
  const end = isOpen ? Math.max(now, facts[facts.length - 1].at) : facts[facts.length - 1].at;
  const since = (/** @type {number} */ at) => Math.max(0, at - start);
  /** @type {Stretch[]} */
  const stretches = [];
  /** @type {Moment[]} */
  const moments = [];
  /** @type {Piece[]} */
  const pieces = [];
  let bytes = 0;
  /** @type {Stretch | null} */
  let open = null;
  let attemptAt = 0;
  const close = (/** @type {number} */ at) => {
    if (open) open.to = at;
    open = null;
  };
  /**
   * A stretch lasts until it is closed, else until `to`.
   * @type {(kind: Stretch["kind"], from: number, label: string, detail?: string, to?: number) => Stretch}
   */
  const begin = (kind, from, label, detail = "", to = since(end)) => {
    const stretch = { kind, from, to, label, detail, isFailed: false };
    stretches.push(stretch);
    return stretch;
  };
  for (const fact of facts) {
    const at = since(fact.at);
    if (fact.kind === "frame") {
      const moment = fact.after !== undefined && attemptAt ? attemptAt + fact.after : at;
      if (!pieces.length || open?.kind === "attempt") {
        close(moment);
        open = begin("reply", moment, "Reply");
      }
      pieces.push({ at: moment, size: fact.size });
      bytes += fact.size;
      continue;
    }
    const label = MOMENTS[fact.kind]?.(fact);
    if (label) moments.push({ at, kind: fact.kind, label });
    if (fact.kind === "held") {
      close(at);
      open = begin("held", at, fact.phase === "tool_calls" ? "Held (tool calls)" : "Held");
    } else if (fact.kind === "attempt") {
      const left = Math.max(0, at - (fact.waited ?? 0));
      if (open?.kind === "attempt") open.isFailed = true;
      close(left);
      if (fact.waited > 0) begin("wait", left, "Waiting", fact.reason ?? "", at);
      attemptAt = at;
      const detail = [fact.provider, fact.reason && `after ${fact.reason}`].filter(Boolean).join(" · ");
      open = begin("attempt", at, `Attempt ${fact.number ?? ""}`.trim(), detail);
    } else if (fact.kind === "released" || ENDS.has(fact.kind)) {
      if (open && fact.kind === "failed") open.isFailed = true;
      close(at);
    }
  }
  const last = pieces.length ? pieces[pieces.length - 1].at : 0;
  return { span: Math.max(since(end), last, 0.001), stretches, moments, pieces, bytes, isOpen };
}

/**
 * The facts from the last release on: a hold of minutes would leave a reply of seconds a hair's breadth.
 * @param {readonly Fact[]} facts
 * @returns {readonly Fact[]}
 */
export function sinceRelease(facts) {
  const at = facts.findLastIndex((fact) => fact.kind === "released");
  return at < 0 ? facts : facts.slice(at);
}

/**
 * Pieces put together into so many columns: each with its bytes.
 * @param {readonly Piece[]} pieces
 * @param {number} span
 * @param {number} columns
 * @returns {number[]}
 */
export function columnsOf(pieces, span, columns) {
  const sums = new Array(columns).fill(0);
  for (const { at, size } of pieces) sums[Math.min(columns - 1, Math.floor((at / span) * columns))] += size;
  return sums;
}

/** Round steps for an axis. @param {number} span @param {number} most @returns {number[]} */
export function ticks(span, most) {
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10;
  const size = unit * power;
  const found = [];
  for (let at = 0; at <= span * 1.0001 && found.length < 50; at += size) found.push(Number(at.toPrecision(6)));
  return found;
}

/** @param {number} seconds @returns {string} 12 ms · 1.24 s · 2:05 */
export function duration(seconds) {
  if (seconds < 0.00005) return "0";
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")} min`;
}
