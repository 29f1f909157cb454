// @ts-check
/** A list whose rows are walked by keys, and of which two are chosen to be compared. */

import { useShortcuts } from "./keyboard.js";
import { useEffect, useLayoutEffect, useState } from "../vendor/preact.js";

/** @import { Wanted } from "./keyboard.js" */

/**
 * `ids` are those of the rows, `at` is where the keyboard begins, `compare` a row that is chosen from the start, and
 * `group` is what the help calls the list. The row with the keyboard has the classes `run-row` and `is-here`.
 * @param {{ ids: readonly string[], at?: number, compare: string, group: string, onOpen: (id: string) => void,
 *   onCompare: (chosen: string[]) => void, more?: readonly Wanted[] }} list
 */
export function useChosenPair({ ids, at: first = 0, compare, group, onOpen, onCompare, more = [] }) {
  const [chosen, setChosen] = useState(/** @type {string[]} */ (compare ? [compare] : []));
  const [at, setAt] = useState(first);
  // Before the next key, which it would take back.
  useLayoutEffect(() => setChosen(compare ? [compare] : []), [compare]);
  const move = (/** @type {number} */ by) =>
    setAt((now) => Math.min(Math.max(now + by, 0), Math.max(ids.length, 1) - 1));
  const toggle = (/** @type {string} */ id) =>
    setChosen((now) => (now.includes(id) ? now.filter((each) => each !== id) : [...now, id].slice(-2)));
  useShortcuts(
    group,
    [
      { keys: "j", also: ["down"], label: "Next run", run: () => move(1) },
      { keys: "k", also: ["up"], label: "Run before", run: () => move(-1) },
      { keys: "enter", label: "Open the run", run: () => ids[at] && onOpen(ids[at]) },
      { keys: "x", label: "Choose the run to compare", run: () => ids[at] && toggle(ids[at]) },
      { keys: "c", label: "Compare the two chosen runs", run: () => chosen.length === 2 && onCompare(chosen) },
      ...more,
    ],
    [ids.join(" "), at, chosen],
  );
  useEffect(() => document.querySelector(".run-row.is-here")?.scrollIntoView({ block: "nearest" }), [at]);
  return { chosen, at, toggle };
}
