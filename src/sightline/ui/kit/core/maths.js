// @ts-check
/**
 * Finds the formulas of a text: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. What only looks like a formula, such as a price,
 * stays text.
 */

/**
 * `next` is where reading goes on: a place in a text, or a line of a block.
 * @typedef {{ source: string, isDisplay: boolean, next: number }} Formula
 */

const LONGEST = 5000;
const MOST_LINES = 200;
/** @type {Record<string, string>} */
const CLOSING = { $$: "$$", "\\[": "\\]", "\\(": "\\)" };
const BLOCK = /^ {0,3}(\$\$|\\\[)/;

/** Whether a text can hold a formula at all. @param {string} text */
export function mayHoldMaths(text) {
  return text.includes("$") || text.includes("\\(") || text.includes("\\[");
}

/**
 * The formula that begins here inside a line or paragraph.
 * @param {string} text
 * @param {number} at
 * @param {Set<string>} missing ends that were looked for and are not there
 * @returns {Formula | null}
 */
export function formulaAt(text, at, missing) {
  const two = text.slice(at, at + 2);
  const closing = CLOSING[two];
  if (closing === undefined) return text[at] === "$" ? inDollars(text, at, missing) : null;
  if (missing.has(closing)) return null;
  const end = text.indexOf(closing, at + 2);
  if (end < 0) missing.add(closing);
  const source = end < 0 ? "" : text.slice(at + 2, end).trim();
  return source && source.length <= LONGEST ? { source, isDisplay: two !== "\\(", next: end + 2 } : null;
}

/** @param {string} text @param {number} at @param {Set<string>} missing @returns {Formula | null} */
function inDollars(text, at, missing) {
  if (missing.has("$") || !/[^\s$]/.test(text[at + 1] ?? "") || /[\p{L}\p{N}$]/u.test(text[at - 1] ?? "")) return null;
  for (let end = text.indexOf("$", at + 2), tries = 0; ; end = text.indexOf("$", end + 1), tries++) {
    if (end < 0) {
      missing.add("$");
      return null;
    }
    if (tries > 20 || end - at > LONGEST) return null;
    // The sign of a sum of money stands before a digit; the end of a formula does not stand after a space.
    if (text[end - 1] === "\\" || /\s/.test(text[end - 1]) || /[\p{L}\p{N}]/u.test(text[end + 1] ?? "")) continue;
    return { source: text.slice(at + 1, end), isDisplay: false, next: end + 1 };
  }
}

/**
 * The formula that fills the lines from here on; with `isOpen` one whose end has not come yet is returned with its
 * lines so
 * far.
 * @param {readonly string[]} lines
 * @param {number} at
 * @param {boolean} isOpen
 * @returns {(Formula & { isUnfinished: boolean }) | null}
 */
export function formulaBlock(lines, at, isOpen) {
  const opening = BLOCK.exec(lines[at]);
  if (!opening) return null;
  const closing = CLOSING[opening[1]];
  /** @type {string[]} */
  const inner = [];
  let size = 0;
  for (let next = at; next < lines.length && next - at < MOST_LINES && size <= LONGEST; next++) {
    const line = next === at ? lines[at].slice(opening[0].length) : lines[next];
    const end = line.indexOf(closing);
    if (end >= 0) {
      const source = [...inner, line.slice(0, end)].join("\n").trim();
      return line.slice(end + 2).trim() || !source
        ? null
        : { source, isDisplay: true, next: next + 1, isUnfinished: false };
    }
    inner.push(line);
    size += line.length;
    if (isOpen && next === lines.length - 1)
      return { source: inner.join("\n").trim(), isDisplay: true, next: lines.length, isUnfinished: true };
  }
  return null;
}
