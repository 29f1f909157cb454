// @ts-check
/** The blocks of an answer, prepared for display: sources, argument summaries, unfinished ends. */

import { parseOrText } from "./json.js";

/** @typedef {import("../../api-types.d.ts").ResultShown} CallResult */
/** @typedef {Partial<import("../../api-types.d.ts").CitationShown>} Citation */
/** @typedef {{ number: number, title: string, url: string, quotes: string[] }} Source */
/**
 * What of an answer is drawn.
 * @typedef {Pick<import("../../api-types.d.ts").AnswerShown, "blocks" | "citations">} AnswerShown
 */

const LONGEST_SUMMARY = 90;

/**
 * A text that is being written, without the signs at its end that mean nothing until the next ones come: half of a
 * fence, of a formula's mark or of an escape would be seen for a moment and go away again.
 * @param {string} text
 */
export function trimUnfinishedEnd(text) {
  return text.replace(/(?:(?<=^|\n) {0,3}(?:`{1,2}|~{1,2})|\\|(?<!\$)\$)$/, "");
}

/**
 * The sources in the order in which they were named, each once.
 * @param {readonly Citation[]} citations
 * @returns {Source[]}
 */
export function sourcesOf(citations) {
  /** @type {Map<string, Source>} */
  const found = new Map();
  for (const { title = "", url = "", quote = "" } of citations) {
    const key = url || title || quote;
    if (!key) continue;
    const source = found.get(key) ?? { number: found.size + 1, title: title || url || "Source", url, quotes: [] };
    if (quote && !source.quotes.includes(quote)) source.quotes.push(quote);
    found.set(key, source);
  }
  return [...found.values()];
}

/**
 * What a call is about in one line: `path: src/a.py, limit: 3`.
 * @param {string | Record<string, unknown> | null | undefined} args as text or as what the text says
 */
export function argumentsLine(args) {
  const value = parseOrText(args);
  if (value === null || typeof value !== "object") return shortenLine(String(value ?? ""));
  const entries = Array.isArray(value) ? value.map((each) => ["", each]) : Object.entries(value);
  return shortenLine(
    entries
      .map(([name, each]) => `${name ? `${name}: ` : ""}${typeof each === "string" ? each : JSON.stringify(each)}`)
      .join(", "),
  );
}

/** @param {string} text */
function shortenLine(text) {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > LONGEST_SUMMARY ? `${line.slice(0, LONGEST_SUMMARY)}…` : line;
}

/**
 * How a call stands; `waiting` are the ids of those that a person has to decide about.
 * @param {{ id: string, result: Pick<CallResult, "is_error"> | null }} call
 * @param {boolean} isLive
 * @param {ReadonlySet<string>} [waiting]
 * @returns {"called" | "waiting" | "failed" | "done" | "open"}
 */
export function callState(call, isLive, waiting) {
  if (call.result) return call.result.is_error ? "failed" : "done";
  if (waiting?.has(call.id)) return "waiting";
  return isLive ? "called" : "open";
}
