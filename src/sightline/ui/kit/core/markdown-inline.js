// @ts-check
/** The inline part of Markdown: emphasis, code, links, formulas and addresses inside a block. */

import { formulaAt } from "./maths.js";

/** @typedef {string | Element} Node */
/**
 * @typedef {object} Element
 * @property {Tag} tag
 * @property {Node[]} children
 * @property {string} [href]
 * @property {string} [src]
 * @property {string} [language]
 * @property {number} [start]
 * @property {boolean} [checked]
 * @property {"left" | "center" | "right"} [align]
 * @property {boolean} [isDisplay] of a formula: it stands alone
 * @property {boolean} [isUnfinished] of a formula: its end has not come yet
 */
/**
 * What else is read: formulas, and as `isOpen` a text that is still being written.
 * @typedef {{ hasMaths?: boolean, isOpen?: boolean }} Ways
 */
/**
 * @typedef {"p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "hr" | "blockquote" | "ul" | "ol" | "li" | "pre" | "table"
 *   | "thead" | "tbody" | "tr" | "th" | "td" | "code" | "strong" | "em" | "del" | "a" | "img" | "remote" | "markup" |
 *   "math"} Tag
 */

/** Blocks and inline elements nest no deeper. */
export const DEEPEST = 8;
/** A paragraph that is longer than this is shown as plain text: parsing it would block the page. */
const LONGEST_INLINE = 40_000;

/** @type {Ways} */
const PLAIN = {};

/**
 * An address that may be a link's target; null for everything that could run a script or load something by itself.
 * @param {string} text
 * @returns {string | null}
 */
export function safeAddress(text) {
  const address = text.trim();
  // Browsers skip control signs and white space inside a scheme; an address that has any is not one.
  if (/[\u0000-\u0020\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(address)) return null;
  return /^(?:https?:\/\/[^/\\]|mailto:[^/\\?])/i.test(address) ? address : null;
}

/**
 * An image that is in the text itself, and of a kind that cannot hold a script.
 * @param {string} text
 * @returns {string | null}
 */
export function safeImage(text) {
  return /^data:image\/(?:png|jpe?g|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=]+$/i.test(text.trim()) ? text.trim() : null;
}

const SPECIAL = /[\\`*_~[!<$]|https?:\/\//g;
const PUNCTUATION = /[!-/:-@[-`{-~]/;

/**
 * What stands inside a block. Every sign that could open something looks ahead for its end with one search; a search
 * that found nothing is not made again.
 * @param {string} text
 * @param {number} [depth]
 * @param {Ways} [ways]
 * @returns {Node[]}
 */
export function inline(text, depth = 0, ways = PLAIN) {
  if (text.length > LONGEST_INLINE || depth > DEEPEST) return text ? [text] : [];
  /** @type {Node[]} */
  const found = [];
  /** @type {Set<string>} */
  const missing = new Set();
  let plain = 0;
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const match = SPECIAL.exec(text);
    if (!match) break;
    const read = readInline(text, match.index, match[0], missing, depth, ways);
    if (!read) {
      at = match.index + match[0].length;
      continue;
    }
    if (match.index > plain) found.push(text.slice(plain, match.index));
    found.push(...read.nodes);
    plain = at = read.next;
  }
  if (plain < text.length) found.push(text.slice(plain));
  return found;
}

/** @typedef {{ nodes: Node[], next: number }} Piece */

/**
 * @param {string} text
 * @param {number} at
 * @param {string} sign
 * @param {Set<string>} missing
 * @param {number} depth
 * @param {Ways} ways
 * @returns {Piece | null}
 */
function readInline(text, at, sign, missing, depth, ways) {
  const formula = ways.hasMaths && (sign === "$" || sign === "\\") ? formulaAt(text, at, missing) : null;
  if (formula)
    return { nodes: [{ tag: "math", isDisplay: formula.isDisplay, children: [formula.source] }], next: formula.next };
  switch (sign) {
    case "$":
      return null;
    case "\\":
      return PUNCTUATION.test(text[at + 1] ?? "") ? { nodes: [text[at + 1]], next: at + 2 } : null;
    case "`":
      return codeSpan(text, at, missing);
    case "*":
    case "_":
    case "~":
      return emphasis(text, at, missing, depth, ways);
    case "!":
      return text[at + 1] === "[" ? readLink(text, at + 1, missing, depth, ways, true) : null;
    case "[":
      return readLink(text, at, missing, depth, ways, false);
    case "<":
      return markup(text, at);
    default:
      return bare(text, at);
  }
}

/** @param {string} text @param {number} at @param {Set<string>} missing @returns {Piece | null} */
function codeSpan(text, at, missing) {
  let ticks = 1;
  while (text[at + ticks] === "`") ticks++;
  const fence = "`".repeat(ticks);
  if (missing.has(fence)) return { nodes: [fence], next: at + ticks };
  let end = text.indexOf(fence, at + ticks);
  while (end >= 0 && text[end + ticks] === "`") {
    let run = end;
    while (text[run] === "`") run++;
    end = text.indexOf(fence, run);
  }
  if (end < 0) {
    missing.add(fence);
    return { nodes: [fence], next: at + ticks };
  }
  const inner = text.slice(at + ticks, end);
  const trimmed = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() ? inner.slice(1, -1) : inner;
  return { nodes: [{ tag: "code", children: [trimmed] }], next: end + ticks };
}

/**
 * @param {string} text
 * @param {number} at
 * @param {Set<string>} missing
 * @param {number} depth
 * @param {Ways} ways
 * @returns {Piece | null}
 */
function emphasis(text, at, missing, depth, ways) {
  const sign = text[at];
  const isDouble = text[at + 1] === sign;
  if (sign === "~" && !isDouble) return null;
  const mark = isDouble ? sign + sign : sign;
  const from = at + mark.length;
  if (
    missing.has(mark) ||
    !text[from] ||
    /\s/.test(text[from]) ||
    (sign === "_" && /[\p{L}\p{N}]/u.test(text[at - 1] ?? ""))
  )
    return null;
  let end = text.indexOf(mark, from + 1);
  for (let tries = 0; end >= 0; end = text.indexOf(mark, end + mark.length)) {
    const isInside =
      /\s/.test(text[end - 1]) ||
      text[end - 1] === "\\" ||
      (sign === "_" && /[\p{L}\p{N}]/u.test(text[end + mark.length] ?? ""));
    const isLonger = !isDouble && (text[end + 1] === sign || text[end - 1] === sign);
    if (!isInside && !isLonger) break;
    if (++tries > 50) return null;
  }
  if (end < 0) {
    missing.add(mark);
    return null;
  }
  const tag = sign === "~" ? "del" : isDouble ? "strong" : "em";
  return { nodes: [{ tag, children: inline(text.slice(from, end), depth + 1, ways) }], next: end + mark.length };
}

const DESTINATION = new RegExp(
  String.raw`\]\(\s{0,3}<?([^\s<>()]{0,2000}(?:\([^\s<>()]{0,500}\)[^\s<>()]{0,500})?|data:[^\s<>()]+)>?` +
    String.raw`(?:\s+"[^"]{0,300}")?\s{0,3}\)`,
  "y",
);

/**
 * @param {string} text
 * @param {number} at where the bracket stands
 * @param {Set<string>} missing
 * @param {number} depth
 * @param {Ways} ways
 * @param {boolean} isImage
 * @returns {Piece | null}
 */
function readLink(text, at, missing, depth, ways, isImage) {
  if (missing.has("](")) return null;
  const close = text.indexOf("](", at);
  if (close < 0) {
    missing.add("](");
    return null;
  }
  if (close - at > 1000 || text.slice(at + 1, close).includes("[")) return null;
  DESTINATION.lastIndex = close;
  const match = DESTINATION.exec(text);
  if (!match) return null;
  const label = text.slice(at + 1, close);
  const next = close + match[0].length;
  if (isImage) {
    const src = safeImage(match[1]);
    if (src) return { nodes: [{ tag: "img", src, children: [label] }], next };
    const href = safeAddress(match[1]);
    return href ? { nodes: [{ tag: "remote", href, children: [label || href] }], next } : null;
  }
  const href = safeAddress(match[1]);
  // An address that is not safe stays what it is: text that a person can read.
  return href ? { nodes: [{ tag: "a", href, children: inline(label, depth + 1, ways) }], next } : null;
}

const MARKUP = /<(?:\/?[A-Za-z][\w.:-]{0,60}(?:\s[^<>]{0,400})?\/?|!--[^<>]{0,400}--)>/y;

/**
 * Tags are shown as the text that they are, only quieter.
 * @param {string} text
 * @param {number} at
 * @returns {Piece | null}
 */
function markup(text, at) {
  MARKUP.lastIndex = at;
  const match = MARKUP.exec(text);
  if (match) return { nodes: [{ tag: "markup", children: [match[0]] }], next: at + match[0].length };
  const auto = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
  auto.lastIndex = at;
  const link = auto.exec(text);
  const href = link ? safeAddress(link[1]) : null;
  return link && href ? { nodes: [{ tag: "a", href, children: [link[1]] }], next: at + link[0].length } : null;
}

/** @param {string} text @param {number} at @returns {Piece | null} */
function bare(text, at) {
  const pattern = /https?:\/\/[^\s<>"'`\\|^{}]{1,2000}/y;
  pattern.lastIndex = at;
  const match = pattern.exec(text);
  if (!match || /[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) return null;
  let address = match[0].replace(/[.,;:!?*_~\]]+$/, "");
  if (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
  const href = safeAddress(address);
  return href ? { nodes: [{ tag: "a", href, children: [address] }], next: at + address.length } : null;
}
