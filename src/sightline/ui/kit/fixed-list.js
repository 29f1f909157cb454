// @ts-check
/** A virtual list of very many rows of one height. */

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { useRowsInSight } from "./rows-in-sight.js";

const BEYOND = 12;

/**
 * `active` is the row that is brought into sight whenever it, or `aim`, changes; -1 for none.
 * @param {{ count: number, rowHeight: number, active: number, aim?: unknown, render: (index: number) => any, label:
 *   string }} props
 */
export function FixedList({ count, rowHeight, active, aim, render, label }) {
  const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
  const { measure, ...view } = useRowsInSight(scroller, (offset) => Math.floor(offset / rowHeight), BEYOND);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || active < 0) return;
    const top = active * rowHeight;
    const isSeen =
      top >= element.scrollTop + rowHeight && top + 3 * rowHeight <= element.scrollTop + element.clientHeight;
    if (!isSeen) element.scrollTop = Math.max(0, top - element.clientHeight / 3);
    measure();
  }, [active, aim]);
  const last = Math.min(count, view.last);
  const first = Math.max(0, Math.min(view.first, last - 1));
  const rows = [];
  for (let index = first; index < last; index++) rows.push(html`<div key=${index}>${render(index)}</div>`);
  return html`<div
    class="fixed-list"
    ref=${scroller}
    onScroll=${measure}
    tabindex="0"
    role="region"
    aria-label=${label}
  >
    <div class="fixed-space" style=${{ height: `${count * rowHeight}px` }}>
      <div class="fixed-rows" style=${{ transform: `translateY(${first * rowHeight}px)` }}>${rows}</div>
    </div>
  </div>`;
}
