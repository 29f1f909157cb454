// @ts-check
/** Ranks commands by how well some characters match them. */

/**
 * How well letters match a text: higher is better, -1 is not at all. Beginnings of words count most, then neighbours.
 * @param {string} wanted
 * @param {string} text
 */
export function score(wanted, text) {
  const letters = wanted.toLowerCase().replace(/\s+/g, "");
  const low = text.toLowerCase();
  if (!letters) return 0;
  const straight = low.indexOf(wanted.toLowerCase().trim());
  if (straight >= 0) return 1000 - straight + (isStart(low, straight) ? 500 : 0);
  let total = 0;
  let at = -1;
  for (const letter of letters) {
    const next = low.indexOf(letter, at + 1);
    if (next < 0) return -1;
    total += next === at + 1 ? 5 : isStart(low, next) ? 8 : 0;
    total -= Math.min(next - at - 1, 10) * 0.2;
    at = next;
  }
  return Math.max(total, 0);
}

/**
 * The best first; the order of equals stays.
 * @template {{ label: string, detail?: string, group?: string }} T
 * @param {readonly T[]} commands
 * @param {string} wanted
 * @returns {T[]}
 */
export function rank(commands, wanted) {
  if (!wanted.trim()) return [...commands];
  return commands
    .map((command, place) => ({ command, place, points: best(command, wanted) }))
    .filter((each) => each.points >= 0)
    .sort((a, b) => b.points - a.points || a.place - b.place)
    .map((each) => each.command);
}

/** @param {{ label: string, detail?: string }} command @param {string} wanted */
function best(command, wanted) {
  return Math.max(score(wanted, command.label), score(wanted, command.detail ?? "") - (command.detail ? 200 : 1));
}

/** @param {string} text @param {number} at */
function isStart(text, at) {
  return at === 0 || /[\s\-_/.:@]/.test(text[at - 1]);
}
