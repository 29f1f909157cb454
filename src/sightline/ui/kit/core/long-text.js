// @ts-check
/** Where a long text is folded, and whether it has characters that change its reading direction. */

/**
 * The beginning of a long text, which is shown until the user opens all of it.
 * @param {string} text
 * @param {number} [lines]
 * @param {number} [characters]
 * @returns {{ text: string, isFolded: boolean, lines: number, characters: number }}
 */
export function foldText(text, lines = 16, characters = 1600) {
  let end = -1;
  let count = 0;
  while (count < lines) {
    const next = text.indexOf("\n", end + 1);
    if (next < 0) {
      end = text.length;
      break;
    }
    end = next;
    count++;
  }
  if (end > characters) {
    // Between two words if one ends nearby, and never inside a pair of surrogates.
    const space = text.lastIndexOf(" ", characters);
    end = space > characters - 80 ? space : characters;
    if (isLowSurrogate(text.charCodeAt(end))) end--;
  }
  // What would hide only a little is shown whole.
  if (text.length - end < 200) return { text, isFolded: false, lines: 0, characters: text.length };
  return { text: text.slice(0, end), isFolded: true, lines: lineCount(text), characters: text.length };
}

/** @param {number} code */
function isLowSurrogate(code) {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** @param {string} text */
export function lineCount(text) {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

const BIDI = /[\u202a-\u202e\u2066-\u2069]/;

/** Whether signs in it turn the direction of writing, so that it may read otherwise than it is. @param {string} text */
export function hasTurnedText(text) {
  return BIDI.test(text);
}
