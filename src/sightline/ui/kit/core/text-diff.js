// @ts-check
/** The differences of two texts: by lines for reading, by ranges for marking places in exact bytes. */

import { diffArrays } from "../../vendor/diff.js";

/** @typedef {{ from: number, to: number, fromB: number, toB: number }} Hunk a[from…to) became b[fromB…toB) */
/** @typedef {{ text: string, changed: boolean }} Span */
/** @typedef {{ kind: "same" | "removed" | "added", spans: Span[], a: number, b: number }} DiffLine */
/** @typedef {{ kind: "gap", count: number }} Gap */

const MOST_STEPS = 700;
const LONGEST_LINE_COMPARED = 4000;

/**
 * The hunks between two lists, the fewest where that is cheap; a difference that is too large is one hunk.
 * @param {readonly string[]} a
 * @param {readonly string[]} b
 * @param {number} [most] how many insertions and removals are searched for
 * @returns {Hunk[]}
 */
export function hunks(a, b, most = MOST_STEPS) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  if (start === endA && start === endB) return [];
  const whole = [{ from: start, to: endA, fromB: start, toB: endB }];
  if (start === endA || start === endB) return whole;
  const parts = diffArrays(a.slice(start, endA), b.slice(start, endB), { maxEditLength: most });
  if (!parts) return whole;
  /** @type {Hunk[]} */
  const found = [];
  let [from, fromB, isApart] = [start, start, true];
  for (const { count, added, removed } of parts) {
    const [to, toB] = [from + (added ? 0 : count), fromB + (removed ? 0 : count)];
    const last = found.at(-1);
    if (!added && !removed) isApart = true;
    else if (isApart || !last) {
      found.push({ from, to, fromB, toB });
      isApart = false;
    } else Object.assign(last, { to, toB });
    [from, fromB] = [to, toB];
  }
  return found;
}

/**
 * Words, runs of white space and single signs: what a person sees as one thing.
 * @param {string} text
 * @returns {string[]}
 */
export function words(text) {
  return text.match(/[\p{L}\p{N}\p{M}_]+|\s+|[^\p{L}\p{N}\p{M}_\s]/gu) ?? [];
}

/**
 * A line and the one that replaced it, with the words that differ.
 * @param {string} a
 * @param {string} b
 * @returns {[Span[], Span[]]}
 */
export function lineSpans(a, b) {
  if (a.length + b.length > LONGEST_LINE_COMPARED) {
    const [from, to, toB] = findChange(a, b);
    return [splitSpans(a, from, to), splitSpans(b, from, toB)];
  }
  const left = words(a);
  const right = words(b);
  const found = hunks(left, right, 200);
  const kept = left.length - found.reduce((sum, hunk) => sum + hunk.to - hunk.from, 0);
  // Lines that share next to nothing are easier to read as replaced than as confetti.
  if (kept * 5 < Math.max(left.length, right.length)) {
    return [[{ text: a, changed: true }], [{ text: b, changed: true }]];
  }
  return [
    spansOf(
      left,
      found.map(({ from, to }) => [from, to]),
    ),
    spansOf(
      right,
      found.map(({ fromB, toB }) => [fromB, toB]),
    ),
  ];
}

/**
 * @param {string} a
 * @param {string} b
 * @returns {[number, number, number]} where the texts part, and where each meets again
 */
export function findChange(a, b) {
  const most = Math.min(a.length, b.length);
  let from = 0;
  while (from < most && a.charCodeAt(from) === b.charCodeAt(from)) from++;
  let tail = 0;
  while (tail < most - from && a.charCodeAt(a.length - 1 - tail) === b.charCodeAt(b.length - 1 - tail)) tail++;
  return [from, a.length - tail, b.length - tail];
}

/** @param {string} text @param {number} from @param {number} to @returns {Span[]} */
function splitSpans(text, from, to) {
  const spans = [
    { text: text.slice(0, from), changed: false },
    { text: text.slice(from, to), changed: true },
    { text: text.slice(to), changed: false },
  ];
  return spans.filter((span) => span.text);
}

/** @param {string[]} pieces @param {number[][]} changed @returns {Span[]} */
function spansOf(pieces, changed) {
  /** @type {Span[]} */
  const spans = [];
  let at = 0;
  for (const [from, to] of changed) {
    if (from > at) spans.push({ text: pieces.slice(at, from).join(""), changed: false });
    if (to > from) spans.push({ text: pieces.slice(from, to).join(""), changed: true });
    at = to;
  }
  if (at < pieces.length) spans.push({ text: pieces.slice(at).join(""), changed: false });
  return spans;
}

/**
 * Two texts as one list of lines: kept, removed, added; long runs of kept lines are gaps.
 * @param {string} a
 * @param {string} b
 * @param {number} [context] how many kept lines stand around a change
 * @returns {(DiffLine | Gap)[]}
 */
export function lineDiff(a, b, context = 3) {
  const left = a.split("\n");
  const right = b.split("\n");
  /** @type {(DiffLine | Gap)[]} */
  const rows = [];
  let at = 0;
  let shift = 0;
  const found = hunks(left, right);
  found.forEach((hunk, index) => {
    keep(rows, left, at, hunk.from, shift, index === 0 ? 0 : context, context);
    pushReplacement(rows, left, right, hunk);
    at = hunk.to;
    shift = hunk.toB - hunk.to;
  });
  if (found.length) keep(rows, left, at, left.length, shift, context, 0);
  return rows;
}

/**
 * @param {(DiffLine | Gap)[]} rows
 * @param {string[]} left
 * @param {number} from
 * @param {number} to
 * @param {number} shift
 * @param {number} before
 * @param {number} after
 */
function keep(rows, left, from, to, shift, before, after) {
  const count = to - from;
  // A gap of one line would take as much room as the line.
  const hidden = count - before - after > 1 ? [from + before, to - after] : [to, to];
  for (let line = from; line < to; line++) {
    if (line === hidden[0]) {
      rows.push({ kind: "gap", count: hidden[1] - hidden[0] });
      line = hidden[1];
      if (line >= to) break;
    }
    rows.push({ kind: "same", spans: [{ text: left[line], changed: false }], a: line + 1, b: line + 1 + shift });
  }
}

/** @param {(DiffLine | Gap)[]} rows @param {string[]} left @param {string[]} right @param {Hunk} hunk */
function pushReplacement(rows, left, right, hunk) {
  const pairs = Math.min(hunk.to - hunk.from, hunk.toB - hunk.fromB);
  /** @type {DiffLine[]} */
  const added = [];
  for (let index = 0; index < hunk.to - hunk.from; index++) {
    const line = hunk.from + index;
    let spans = [{ text: left[line], changed: true }];
    if (index < pairs) {
      const [was, is] = lineSpans(left[line], right[hunk.fromB + index]);
      spans = was;
      added.push({ kind: "added", spans: is, a: 0, b: hunk.fromB + index + 1 });
    }
    rows.push({ kind: "removed", spans, a: line + 1, b: 0 });
  }
  for (let index = pairs; index < hunk.toB - hunk.fromB; index++) {
    const line = hunk.fromB + index;
    added.push({ kind: "added", spans: [{ text: right[line], changed: true }], a: 0, b: line + 1 });
  }
  rows.push(...added);
}

/**
 * Which places of `b` are not as they were in `a`, as character ranges; a place where something was only taken out is
 * an empty range. For documents of a megabyte: whole strings of JSON are compared first, so that what was taken out
 * here does not hide that there all is the same; only what differs is then compared word by word.
 * @param {string} a
 * @param {string} b
 * @returns {[number, number][]}
 */
export function rangesOfChanges(a, b) {
  if (a === b) return [];
  const left = strings(a);
  const right = strings(b);
  const starts = startsOf(right, 0);
  return hunks(left, right).flatMap((hunk) => {
    const was = left.slice(hunk.from, hunk.to).join("");
    const is = right.slice(hunk.fromB, hunk.toB).join("");
    return rangesWithin(was, is, starts[hunk.fromB]);
  });
}

/** @param {string} a @param {string} b @param {number} at where `b` begins @returns {[number, number][]} */
function rangesWithin(a, b, at) {
  const [from, to, toB] = findChange(a, b);
  const left = pieces(a.slice(from, to));
  const right = pieces(b.slice(from, toB));
  const starts = startsOf(right, at + from);
  return hunks(left, right).map((hunk) => {
    const was = left.slice(hunk.from, hunk.to).join("");
    const is = right.slice(hunk.fromB, hunk.toB).join("");
    const [head, , tail] = findChange(was, is);
    return [starts[hunk.fromB] + head, starts[hunk.fromB] + tail];
  });
}

/** @param {string[]} list @param {number} at @returns {number[]} */
function startsOf(list, at) {
  const starts = [at];
  for (const piece of list) starts.push(starts[starts.length - 1] + piece.length);
  return starts;
}

/** Each string of a JSON text, and each stretch between two of them. @param {string} text @returns {string[]} */
function strings(text) {
  const found = [];
  for (let at = 0; at < text.length;) {
    let end = text.indexOf('"', at);
    if (end === at) {
      end += 1;
      while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
      end += 1;
    } else if (end < 0) end = text.length;
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

/** @param {string} text @returns {string[]} */
function pieces(text) {
  return text.match(/[^",:\n\\[\]{} ]+|./gsu) ?? [];
}
