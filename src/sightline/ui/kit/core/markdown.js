// @ts-check
/**
 * Parses Markdown into a tree of harmless nodes: a closed set of tags, text that stays text, and addresses that are
 * only http, https or mailto. HTML in the source is text. The work is linear in the length of the text.
 */

import { DEEPEST, inline } from "./markdown-inline.js";
import { formulaBlock } from "./maths.js";

/** @import { Element, Node, Tag, Ways } from "./markdown-inline.js" */

/** @type {Ways} */
const PLAIN = {};

/** @param {string} text @param {Ways} [ways] @returns {Element[]} */
export function parse(text, ways = PLAIN) {
  return blocks(text.replaceAll("\r\n", "\n").split("\n"), 0, ways);
}

/**
 * A text that was read, with the places where its blocks begin.
 * @typedef {{ text: string, elements: Element[], starts: number[], ways: Ways }} Grown
 */

/**
 * The same for a text that grows at its end: what stands before its last two blocks stays the very same elements.
 * @param {Grown | null} before
 * @param {string} text
 * @param {Ways} [ways]
 * @returns {Grown}
 */
export function parseGrowing(before, text, ways = PLAIN) {
  if (before?.text === text && before.ways.isOpen === ways.isOpen) return before;
  const isMore =
    before?.ways.isOpen &&
    before.ways.hasMaths === ways.hasMaths &&
    !text.includes("\r") &&
    text.startsWith(before.text);
  const kept = isMore ? Math.max(before.elements.length - 2, 0) : 0;
  const from = kept && before ? before.starts[kept] : 0;
  const lines = text.slice(from).replaceAll("\r\n", "\n").split("\n");
  /** @type {number[]} */
  const begun = [];
  const elements = blocks(lines, 0, ways, begun);
  const offsets = placesOf(lines, from);
  return {
    text,
    ways,
    elements: [...(before?.elements.slice(0, kept) ?? []), ...elements],
    starts: [...(before?.starts.slice(0, kept) ?? []), ...begun.map((line) => offsets[line])],
  };
}

/** @param {string[]} lines @param {number} from @returns {number[]} where each line begins */
function placesOf(lines, from) {
  let at = from;
  return lines.map((line) => {
    const start = at;
    at += line.length + 1;
    return start;
  });
}

// No pattern has two repetitions side by side that take the same sign: one of them would be tried again for each sign.
const FENCE = /^ {0,3}(`{3,}|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|[ \t]*)$/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$/;
const MARKUP_LINE = /^ {0,3}<\/?[A-Za-z][\w.:-]*(?:\s[^<>]{0,400})?\/?>[ \t]*$/;

/**
 * @param {string[]} lines
 * @param {number} depth
 * @param {Ways} ways
 * @param {number[]} [starts] receives the first line of each block
 * @returns {Element[]}
 */
function blocks(lines, depth, ways, starts) {
  /** @type {Element[]} */
  const found = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at++;
      continue;
    }
    starts?.push(at);
    const read =
      readFence(lines, at) ??
      readFormula(lines, at, ways) ??
      readHeading(line, at, ways) ??
      (depth < DEEPEST ? (readQuote(lines, at, depth, ways) ?? readList(lines, at, depth, ways)) : null) ??
      readTable(lines, at, ways);
    if (read) {
      found.push(read.element);
      at = read.next;
      continue;
    }
    const from = at++;
    while (at < lines.length && lines[at].trim() && !interrupts(lines, at, depth, ways)) at++;
    found.push({ tag: "p", children: inline(lines.slice(from, at).join("\n"), 0, ways) });
  }
  return found;
}

/** What is open is so at its end only, and that is no list's and no quotation's. @param {Ways} ways @returns {Ways} */
function within(ways) {
  return ways.isOpen ? { ...ways, isOpen: false } : ways;
}

/** @param {string[]} lines @param {number} at @param {number} depth @param {Ways} ways */
function interrupts(lines, at, depth, ways) {
  const line = lines[at];
  const first = line.trimStart()[0];
  if (first === "$" || first === "\\") return readFormula(lines, at, ways) !== null;
  if (first === "<" || lines[at - 1].trimStart()[0] === "<")
    return MARKUP_LINE.test(line) || MARKUP_LINE.test(lines[at - 1]);
  if (!"`~#-*_>+0123456789|".includes(first)) return false;
  if (FENCE.test(line) || HEADING.test(line) || RULE.test(line)) return true;
  if (depth >= DEEPEST) return false;
  return QUOTE.test(line) || /^ {0,3}(?:[-*+]|1[.)])[ \t]+\S/.test(line);
}

/** @typedef {{ element: Element, next: number }} Read */

/** @param {string[]} lines @param {number} at @returns {Read | null} */
function readFence(lines, at) {
  const opening = FENCE.exec(lines[at]);
  if (!opening) return null;
  const [, fence, info] = opening;
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end].trim();
    if (line.length >= fence.length && line[0] === fence[0] && line === fence[0].repeat(line.length)) break;
    end++;
  }
  const language = info.trim().split(/\s/)[0].slice(0, 30);
  return { element: { tag: "pre", language, children: [lines.slice(at + 1, end).join("\n")] }, next: end + 1 };
}

/** @param {string[]} lines @param {number} at @param {Ways} ways @returns {Read | null} */
function readFormula(lines, at, ways) {
  const formula = ways.hasMaths ? formulaBlock(lines, at, ways.isOpen ?? false) : null;
  if (!formula) return null;
  const { source, isUnfinished, next } = formula;
  return {
    element: { tag: "math", isDisplay: true, ...(isUnfinished ? { isUnfinished } : {}), children: [source] },
    next,
  };
}

/** @param {string} line @param {number} at @param {Ways} ways @returns {Read | null} */
function readHeading(line, at, ways) {
  if (RULE.test(line)) return { element: { tag: "hr", children: [] }, next: at + 1 };
  const heading = HEADING.exec(line);
  if (!heading) return null;
  const tag = /** @type {Tag} */ (`h${heading[1].length}`);
  const words = heading[2]
    .trim()
    .replace(/(?:^|[ \t])#+$/, "")
    .trimEnd();
  return { element: { tag, children: inline(words, 0, ways) }, next: at + 1 };
}

/** @param {string[]} lines @param {number} at @param {number} depth @param {Ways} ways @returns {Read | null} */
function readQuote(lines, at, depth, ways) {
  if (!QUOTE.test(lines[at])) return null;
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end++;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return { element: { tag: "blockquote", children: blocks(inner, depth + 1, within(ways)) }, next: end };
}

/** @param {string[]} lines @param {number} at @param {number} depth @param {Ways} ways @returns {Read | null} */
function readList(lines, at, depth, ways) {
  const first = ITEM.exec(lines[at]);
  if (!first) return null;
  const isOrdered = /\d/.test(first[2]);
  /** @type {Element[]} */
  const items = [];
  let next = at;
  while (next < lines.length) {
    const begun = ITEM.exec(lines[next]);
    if (!begun || /\d/.test(begun[2]) !== isOrdered || RULE.test(lines[next])) break;
    const width = begun[1].length + begun[2].length + 1;
    const inner = [begun[3] ?? ""];
    next++;
    while (next < lines.length) {
      const line = lines[next];
      const isBlank = !line.trim();
      const indent = line.length - line.trimStart().length;
      if (
        !isBlank &&
        indent < Math.min(width, 2) &&
        (!lines[next - 1].trim() || ITEM.test(line) || interrupts(lines, next, depth, ways))
      )
        break;
      // Two blank lines, or one before something that is not indented, end the item.
      if (isBlank && !/^\s{2,}\S/.test(lines[next + 1] ?? "") && !ITEM.test(lines[next + 1] ?? "")) break;
      inner.push(line.slice(Math.min(indent, width)));
      next++;
    }
    items.push(item(inner, depth, ways));
    while (next < lines.length && !lines[next].trim() && ITEM.test(lines[next + 1] ?? "")) next++;
  }
  /** @type {Element} */
  const element = { tag: isOrdered ? "ol" : "ul", children: items };
  if (isOrdered && Number.parseInt(first[2], 10) !== 1) element.start = Number.parseInt(first[2], 10);
  return { element, next };
}

/** @param {string[]} inner @param {number} depth @param {Ways} ways @returns {Element} */
function item(inner, depth, ways) {
  const task = /^\[([ xX])\][ \t]+/.exec(inner[0]);
  if (task) inner[0] = inner[0].slice(task[0].length);
  const children = blocks(inner, depth + 1, within(ways));
  // A tight item is a line, not a paragraph.
  /** @type {Node[]} */
  const tight = children[0]?.tag === "p" ? [...children[0].children, ...children.slice(1)] : children;
  return { tag: "li", children: tight, ...(task ? { checked: task[1] !== " " } : {}) };
}

/** @param {string[]} lines @param {number} at @param {Ways} ways @returns {Read | null} */
function readTable(lines, at, ways) {
  if (!lines[at].includes("|") || !TABLE_RULE.test(lines[at + 1] ?? "") || !lines[at + 1].includes("-")) return null;
  const head = cells(lines[at]);
  const rules = cells(lines[at + 1]);
  if (head.length !== rules.length) return null;
  /** @type {(Element["align"])[]} */
  const aligns = rules.map((rule) => (/^:-+:$/.test(rule) ? "center" : rule.endsWith(":") ? "right" : "left"));
  /** @param {string} line @param {"th" | "td"} tag @returns {Element} */
  const row = (line, tag) => {
    // A row that lacks cells gets none: else a few short rows under a wide head would be more than a browser can draw.
    const texts = cells(line).slice(0, aligns.length);
    return {
      tag: "tr",
      children: texts.map((cell, column) => ({ tag, align: aligns[column], children: inline(cell, 0, ways) })),
    };
  };
  let end = at + 2;
  while (end < lines.length && lines[end].trim() && lines[end].includes("|")) end++;
  const body = lines.slice(at + 2, end).map((line) => row(line, "td"));
  const children = [
    { tag: /** @type {Tag} */ ("thead"), children: [row(lines[at], "th")] },
    { tag: /** @type {Tag} */ ("tbody"), children: body },
  ];
  return { element: { tag: "table", children }, next: end };
}

/** @param {string} line @returns {string[]} */
function cells(line) {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}
