// @ts-check
/** A virtual list of rows with known heights. New rows above do not move what is being read. */

import { html, useEffect, useLayoutEffect, useMemo, useRef } from "../vendor/preact.js";
import { offsetsOf, rowAt } from "./core/rows.js";
import { useRowsInSight } from "./rows-in-sight.js";

const BEYOND = 8;

/**
 * `keys` name the rows and `heights` are theirs; `active` is the index that must stay in sight, -1 for none. `header`
 * stays above the rows.
 * @param {{ keys: readonly string[], heights: readonly number[], active: number, render: (index: number) => any,
 *   attributes?: Record<string, unknown>, header?: any, headerHeight?: number, onNearEnd?: () => void }} props
 */
export function VirtualList({
  keys,
  heights,
  active,
  render,
  attributes = {},
  header = null,
  headerHeight = 0,
  onNearEnd,
}) {
  /** @type {{ current: HTMLDivElement | null }} */
  const scroller = useRef(null);
  const offsets = useMemo(() => offsetsOf(heights), [heights]);
  const seen = useRef({ keys, offsets, top: 0, active: "" });
  const { measure: look, ...view } = useRowsInSight(scroller, (offset) => rowAt(seen.current.offsets, offset), BEYOND);
  const measure = () => {
    seen.current.top = scroller.current?.scrollTop ?? 0;
    look();
  };

  useLayoutEffect(() => {
    const element = scroller.current;
    const before = seen.current;
    if (element && before.keys !== keys && before.top > 0) {
      const top = rowAt(before.offsets, before.top);
      const kept = before.keys.slice(top, top + 20).find((key) => keys.includes(key));
      if (kept !== undefined) {
        const moved = offsets[keys.indexOf(kept)] - before.offsets[before.keys.indexOf(kept)];
        if (moved) element.scrollTop = before.top + moved;
      }
    }
    before.keys = keys;
    before.offsets = offsets;
    measure();
  }, [keys, offsets]);

  const activeKey = keys[active] ?? "";
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !activeKey || activeKey === seen.current.active) return;
    seen.current.active = activeKey;
    const end = headerHeight + offsets[active + 1] - element.clientHeight;
    if (offsets[active] < element.scrollTop) element.scrollTop = offsets[active];
    else if (end > element.scrollTop) element.scrollTop = end;
  }, [activeKey]);

  const first = Math.min(view.first, Math.max(keys.length - 1, 0));
  const last = Math.min(view.last, keys.length);
  useEffect(() => {
    if (last >= keys.length - 20) onNearEnd?.();
  }, [last, keys.length]);

  const rows = [];
  for (let index = first; index < last; index += 1) {
    const place = { transform: `translateY(${offsets[index]}px)`, height: `${heights[index]}px` };
    rows.push(
      html`<div key=${keys[index]} class="virtual-row" role="presentation" style=${place}>${render(index)}</div>`,
    );
  }
  return html`<div ref=${scroller} class="virtual-list" onScroll=${measure} ...${attributes}>
    ${header}
    <div class="virtual-space" role="presentation" style=${{ height: `${offsets[keys.length] ?? 0}px` }}>${rows}</div>
  </div>`;
}
