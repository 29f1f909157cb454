// @ts-check
/** The rows of a history of which only some are fetched. */

/** @import { PairShown } from "../../../api-types.d.ts" */

/** So many are fetched at once. */
export const PAGE = 60;

/** What is known of the rows, by their places. */
export class Rows {
  constructor() {
    this.total = 0;
    this.version = -1;
    /** @type {Map<number, PairShown>} */
    this.known = new Map();
    /** @type {Map<string, number>} */
    this.places = new Map();
  }

  /** @param {number} index */
  at(index) {
    return this.known.get(index);
  }

  /** @param {string} id */
  pair(id) {
    const place = this.places.get(id);
    return place === undefined ? undefined : this.known.get(place);
  }

  /** Nothing is known any more but how many there are. @param {number} total */
  clear(total) {
    this.total = total;
    this.known.clear();
    this.places.clear();
  }

  /**
   * An answer of the server. One about another number of rows makes everything else unknown.
   * @param {{ version: number, total: number, from: number, rows: readonly PairShown[] }} page
   * @returns {boolean} whether places have moved
   */
  take(page) {
    const hasMoved = page.total !== this.total;
    if (hasMoved) this.clear(page.total);
    this.version = Math.max(this.version, page.version);
    page.rows.forEach((pair, step) => this.put(page.from + step, pair));
    return hasMoved;
  }

  /** @param {number} index @param {PairShown} pair */
  put(index, pair) {
    const before = this.known.get(index);
    if (before && before.id !== pair.id && this.places.get(before.id) === index) this.places.delete(before.id);
    this.known.set(index, pair);
    this.places.set(pair.id, index);
  }

  /** These are not what they were. @param {readonly string[]} ids */
  forget(ids) {
    for (const id of ids) {
      const place = this.places.get(id);
      if (place === undefined) continue;
      this.known.delete(place);
      this.places.delete(id);
    }
  }

  /**
   * The stretch around these rows that has to be fetched; null where all is known.
   * @param {number} first
   * @param {number} last the one behind the last
   * @returns {{ from: number, limit: number } | null}
   */
  missing(first, last) {
    let from = Math.max(first, 0);
    const end = Math.min(last, this.total);
    while (from < end && this.known.has(from)) from += 1;
    if (from >= end) return null;
    let to = end;
    while (to > from && this.known.has(to - 1)) to -= 1;
    // What is near is wanted soon, on whichever side nothing is known yet.
    for (let isGrowing = true; isGrowing && to - from < PAGE;) {
      isGrowing = false;
      if (from > 0 && !this.known.has(from - 1)) ((from -= 1), (isGrowing = true));
      if (to < this.total && !this.known.has(to)) ((to += 1), (isGrowing = true));
    }
    return { from, limit: Math.min(to - from, 200) };
  }

  /** The newest that is known, if it is the last of all. */
  get last() {
    return this.known.get(this.total - 1);
  }
}
