// @ts-check
/** The groups of costs as words, and as filters that find their exchanges. */

import { literal, term } from "../../../kit/core/filter.js";

const FIELDS = /** @type {Record<string, string>} */ ({
  day: "date",
  model: "model",
  provider: "provider",
  client: "client",
  session: "session",
  project: "session",
  tag: "tag",
});

/** What a group is called; a value that is empty says what is missing. @param {string} by @param {string} key */
export function keyWords(by, key) {
  return key || `no ${by}`;
}

/**
 * The filter that takes the exchanges of a group and of the filter before; empty where no filter can.
 * @param {string} by
 * @param {string} key
 * @param {string} filter
 */
export function groupFilter(by, key, filter) {
  const field = FIELDS[by];
  if (!field || !key) return "";
  // A session may be named `name@project` or `name@project#tag`.
  const exact = literal(key);
  const patterns = by === "project" ? [`*@${exact}`, `*@${exact}#*`] : [exact];
  const terms = patterns.map((pattern) => term(field, pattern));
  const group = terms.length > 1 ? `(${terms.join(" | ")})` : terms[0];
  return filter.trim() ? `(${filter.trim()}) & ${group}` : group;
}
