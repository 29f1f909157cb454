// @ts-check
/** The filters that were applied before, for stepping through them. */

const MOST = 100;

/**
 * With one more, the newest last; one that is in the list already moves to the end.
 * @param {readonly string[]} list
 * @param {string} text
 */
export function addToMemory(list, text) {
  const words = text.trim();
  return words ? [...list.filter((each) => each !== words), words].slice(-MOST) : [...list];
}

/**
 * One step: older is -1, newer is 1. `at` is the place in the list, its length being what is just written.
 * @param {readonly string[]} list
 * @param {number} at
 * @param {number} by
 */
export function stepThrough(list, at, by) {
  return Math.min(Math.max(at + by, 0), list.length);
}
