// @ts-check
/** Which rows of a scrolling element are in sight: virtual lists draw only these. */

import { useEffect, useState } from "../vendor/preact.js";

/**
 * `rowAt` finds the row at an offset; `beyond` rows more are drawn at either edge. `measure` looks again.
 * @param {{ current: HTMLElement | null }} scroller
 * @param {(offset: number) => number} rowAt
 * @param {number} beyond
 * @returns {{ first: number, last: number, measure: () => void }} `last` is the row behind the last one
 */
export function useRowsInSight(scroller, rowAt, beyond) {
  const [view, setView] = useState({ first: 0, last: 60 });
  const measure = () => {
    const element = scroller.current;
    if (!element) return;
    const first = Math.max(rowAt(element.scrollTop) - beyond, 0);
    const last = rowAt(element.scrollTop + element.clientHeight) + 1 + beyond;
    setView((before) => (before.first === first && before.last === last ? before : { first, last }));
  };
  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const sized = new ResizeObserver(measure);
    sized.observe(element);
    return () => sized.disconnect();
  }, []);
  return { ...view, measure };
}
