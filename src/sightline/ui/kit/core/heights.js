// @ts-check
/**
 * The heights of a very long list's rows, most of them estimated: a tree that finds a row by offset and updates one
 * height.
 */

/** Sums of heights in a tree: a height is set, and a place found, in a few steps, however many rows there are. */
export class Heights {
  /**
   * @param {number} count
   * @param {number} usual the height of a row that is not measured yet
   * @param {(index: number) => number | undefined} [known] the height of one that is
   */
  constructor(count, usual, known = () => undefined) {
    this.usual = usual;
    this.count = 0;
    this.heights = new Float64Array(0);
    this.sums = new Float64Array(1);
    this.fill(count, known);
  }

  /**
   * Other rows. `known` tells the height of those that were measured.
   * @param {number} count
   * @param {(index: number) => number | undefined} known
   */
  fill(count, known) {
    this.count = count;
    this.heights = new Float64Array(count);
    this.sums = new Float64Array(count + 1);
    for (let index = 0; index < count; index += 1) {
      this.heights[index] = known(index) ?? this.usual;
      this.sums[index + 1] += this.heights[index];
      const parent = index + 1 + ((index + 1) & -(index + 1));
      if (parent <= count) this.sums[parent] += this.sums[index + 1];
    }
  }

  /** @param {number} index */
  of(index) {
    return this.heights[index] ?? 0;
  }

  /** @param {number} index @param {number} height @returns {number} by how much it has grown */
  set(index, height) {
    if (index < 0 || index >= this.count) return 0;
    const grown = height - this.heights[index];
    if (grown === 0) return 0;
    this.heights[index] = height;
    for (let node = index + 1; node <= this.count; node += node & -node) this.sums[node] += grown;
    return grown;
  }

  /** The upper edge of a row; of the one behind the last, the end. @param {number} index */
  top(index) {
    let sum = 0;
    for (let node = Math.min(Math.max(index, 0), this.count); node > 0; node -= node & -node) sum += this.sums[node];
    return sum;
  }

  get total() {
    return this.top(this.count);
  }

  /** The row that covers a place; beyond the ends, the first or the last. @param {number} place */
  at(place) {
    let index = 0;
    let left = place;
    for (let step = 1 << (31 - Math.clz32(Math.max(this.count, 1))); step > 0; step >>= 1) {
      if (index + step <= this.count && this.sums[index + step] <= left) {
        index += step;
        left -= this.sums[index];
      }
    }
    return Math.max(Math.min(index, this.count - 1), 0);
  }
}
