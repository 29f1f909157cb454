// @ts-check
/** The vertical positions of a list's rows. */

/**
 * The upper edge of each row, and the end of the last.
 * @param {readonly number[]} heights
 * @returns {Float64Array}
 */
export function offsetsOf(heights) {
  const offsets = new Float64Array(heights.length + 1);
  for (let index = 0; index < heights.length; index += 1) offsets[index + 1] = offsets[index] + heights[index];
  return offsets;
}

/**
 * The row that covers a place; beyond the end, the last one.
 * @param {Float64Array} offsets
 * @param {number} place
 */
export function rowAt(offsets, place) {
  let low = 0;
  let high = Math.max(offsets.length - 2, 0);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle] <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
