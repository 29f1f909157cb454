// @ts-check
/** A filter's text: where a term begins, how a completion is applied, where an error is, how a term is written. */

/** @typedef {{ text: string, label?: string, help?: string, from?: number }} Completion */
/** @typedef {{ message: string, column: number, length: number, hint: string }} FilterError */

/** Terms are parted by these, outside of quotes. */
const PARTING = " \t&|!()";

/** Where the term begins in which the cursor stands. @param {string} text @param {number} at */
export function termStart(text, at) {
  let quote = "";
  let start = 0;
  for (let index = 0; index < at; index += 1) {
    const letter = text[index];
    if (quote) {
      if (letter === quote) quote = "";
    } else if (letter === '"' || letter === "'") quote = letter;
    else if (PARTING.includes(letter)) start = index + 1;
  }
  return start;
}

/**
 * The text with a completion in place of the term, and where the cursor goes.
 * @param {string} text
 * @param {number} at
 * @param {Completion} completion
 */
export function applyCompletion(text, at, completion) {
  const start = completion.from ?? termStart(text, at);
  const before = text.slice(0, start) + completion.text;
  const after = text.slice(at);
  return { text: before + after, at: before.length };
}

/**
 * Offers that were made for an earlier text, as far as they still go on from what is written now.
 * @param {readonly Completion[]} offers
 * @param {string} asked the text that they were made for
 * @param {string} text
 * @param {number} at
 */
export function fitting(offers, asked, text, at) {
  if (asked === text) return offers;
  return offers.filter((each) =>
    each.text.toLowerCase().startsWith(text.slice(each.from ?? termStart(text, at), at).toLowerCase()),
  );
}

/**
 * An error as the page shows it, whether it comes from the look-up or from the list itself.
 * @param {{ message: string, hint?: string, column?: number, length?: number }} failure
 * @returns {FilterError}
 */
export function errorOf(failure) {
  const [hint = "", ...drawn] = (failure.hint ?? "").split("\n");
  const carets = /\^+/.exec(drawn.join("\n"));
  const named = /\bcolumn (\d+): /.exec(failure.message);
  const column = failure.column ?? (named ? Number(named[1]) : 1);
  return {
    message: capital(failure.message.replace(/^.*?\bcolumn \d+: /, "")),
    column,
    length: failure.length ?? carets?.[0].length ?? 1,
    hint,
  };
}

/**
 * The text in three pieces, the middle one being what is wrong; it is never empty, so that it can be underlined.
 * @param {string} text
 * @param {FilterError} error
 * @returns {[string, string, string]}
 */
export function splitAtError(text, error) {
  const start = Math.min(Math.max(error.column - 1, 0), text.length);
  const end = Math.min(start + Math.max(error.length, 1), text.length);
  return [text.slice(0, start), text.slice(start, end) || " ", text.slice(end)];
}

/**
 * What finds any of these words, whatever the case of their letters; null where there are none.
 * @param {readonly string[]} words
 */
export function patternOf(words) {
  const sought = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return sought.length ? new RegExp(`(${sought.join("|")})`, "giu") : null;
}

/**
 * A text in pieces, those that are one of the words marked.
 * @param {string} text
 * @param {readonly string[]} words
 * @returns {{ text: string, isHit: boolean }[]}
 */
export function markWords(text, words) {
  const pattern = patternOf(words);
  if (!pattern) return [{ text, isHit: false }];
  const pieces = text.split(pattern);
  return pieces.map((piece, index) => ({ text: piece, isHit: index % 2 === 1 })).filter((piece) => piece.text);
}

/** A pattern that means just this text. @param {string} text */
export function literal(text) {
  return text.replace(/[\\*?]/g, "\\$&");
}

/** Takes values that a pattern fits; it is in quotes where it must be. @param {string} field @param {string} pattern */
export function term(field, pattern) {
  return /^[\w.*@#/:-]+$/.test(pattern) ? `${field}:${pattern}` : `${field}:"${pattern.replaceAll('"', '\\"')}"`;
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
