// @ts-check
/**
 * What the user looks for, marked in every text of an element. The marks are ranges of the browser's (CSS custom
 * highlights), so that no element changes, also not one under edit.
 */

import { signal, useEffect } from "../vendor/preact.js";
import { patternOf } from "./core/filter.js";

/** The words that are looked for on this page; long texts that have one of them are unfolded. */
export const sought = signal(/** @type {readonly string[]} */ ([]));

const NAME = "found";
/** A text with more hits is marked as far as this: each one is a range that the browser keeps up to date. */
const MOST = 2000;
const SOON = 100;

/** The hits in an element, as ranges. @param {Element} element @param {RegExp} pattern */
function findRanges(element, pattern) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  /** @type {Range[]} */
  const found = [];
  for (let node = walker.nextNode(); node && found.length < MOST; node = walker.nextNode()) {
    for (const match of (node.nodeValue ?? "").matchAll(pattern)) {
      const range = new Range();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      found.push(range);
    }
  }
  return found;
}

/**
 * Mark the words in an element for as long as this component is shown.
 * @param {string} id of the element
 * @param {readonly string[]} words
 */
export function useMarks(id, words) {
  useEffect(() => {
    const pattern = patternOf(words);
    const element = document.getElementById(id);
    if (!pattern || !element || !("highlights" in CSS)) return undefined;
    const mark = () => CSS.highlights.set(NAME, new Highlight(...findRanges(element, pattern)));
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const observer = new MutationObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(mark, SOON);
    });
    observer.observe(element, { childList: true, subtree: true, characterData: true });
    mark();
    return () => {
      observer.disconnect();
      clearTimeout(timer);
      CSS.highlights.delete(NAME);
    };
  }, [id, words]);
}

/** Bring the first mark inside an element into sight. @param {Element} element @param {readonly string[]} words */
export function showFirstMark(element, words) {
  const pattern = patternOf(words);
  const [first] = pattern ? findRanges(element, pattern) : [];
  first?.startContainer.parentElement?.scrollIntoView({ block: "center" });
}
