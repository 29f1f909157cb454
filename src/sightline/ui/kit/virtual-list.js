// @ts-check
/**
 * The page's one virtual list: it draws only the rows in sight. What is being read stays in place, whatever changes
 * above it. Heights are known, or measured as rows are drawn.
 */

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

/** @import { Heights } from "./core/heights.js" */

/** So many pixels are drawn beyond either edge. */
const BEYOND = 600;
const AT_END = 6;
/** So many rows below the anchor can replace it when it is gone, as when a conversation is folded. */
const SPARE = 20;

/**
 * Where the reader is: at an edge of the list, at a row (the first of `rows` that is still there, `delta` pixels above
 * the screen's upper edge), or following an answer, whose beginning does not leave the screen.
 * @typedef {{ kind: "start" } | { kind: "end" } | { kind: "follow" } | { kind: "row", index: number, delta: number,
 *   rows: { key: string, delta: number }[] }} Anchor
 */
/**
 * `show` with "third" moves only what is not comfortably in sight, to a third of the height.
 * @typedef {object} ListHandle
 * @property {(index: number, where?: "nearest" | "start" | "middle" | "third") => void} show
 * @property {() => void} toEnd
 * @property {() => void} follow
 * @property {() => boolean} isAtEnd
 * @property {(pixels: number) => void} scroll
 * @property {() => HTMLElement | null} element
 */

/**
 * `version` is another value whenever the same `heights` were filled anew or rows are others; `keyOf` and `placeOf`
 * tell rows by name. `edge` is where the list begins, and stays while its reader is there. With `onMeasured`, rows have
 * the height of what is in them; without, the one of `heights`. What has `data-lead` in a row is what follows the
 * screen's upper edge while it is followed. `header` stays above the rows.
 * @param {{
 *   heights: Heights, version?: unknown, keyOf?: (index: number) => string,
 *   placeOf?: (key: string) => number | undefined, render: (index: number) => any, edge?: "start" | "end",
 *   onWindow?: (first: number, last: number) => void, onMeasured?: (index: number, height: number) => void,
 *   handle: { current: ListHandle | null }, header?: any, headerHeight?: number, attributes?: Record<string, unknown>
 * }} props
 */
export function VirtualList({
  heights,
  version,
  keyOf = String,
  placeOf = Number,
  render,
  edge = "start",
  onWindow,
  onMeasured,
  handle,
  header = null,
  headerHeight = 0,
  attributes = {},
}) {
  const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
  const anchor = useRef(/** @type {Anchor} */ ({ kind: edge }));
  const own = useRef(-1);
  const shape = useRef("");
  const [view, setView] = useState({ first: 0, last: 0 });
  const observed = useRef(/** @type {ResizeObserver | null} */ (null));
  const current = useRef(heights);
  current.current = heights;

  /** @param {HTMLElement} element */
  const roomOf = (element) => element.clientHeight - headerHeight;
  const measure = () => {
    const element = scroller.current;
    if (!element) return;
    const top = element.scrollTop;
    const first = heights.at(top - BEYOND);
    const last = heights.count ? heights.at(top + roomOf(element) + BEYOND) + 1 : 0;
    setView((before) => (before.first === first && before.last === last ? before : { first, last }));
    onWindow?.(first, last);
  };
  const settle = () => {
    const element = scroller.current;
    if (!element) return;
    const end = heights.total - roomOf(element);
    const wanted = Math.max(Math.min(topFor(element, heights, anchor.current, end, placeOf), end), 0);
    if (Math.abs(element.scrollTop - wanted) >= 1) {
      element.scrollTop = wanted;
      own.current = element.scrollTop;
    }
    shape.current = shapeOf(element);
    measure();
  };
  /** @param {number} index @param {number} top @returns {Anchor} */
  const anchorAt = (index, top) => {
    if (edge === "start" && top <= 0) return { kind: "start" };
    const rows = [];
    for (let at = index; at < Math.min(index + SPARE, heights.count); at += 1)
      if (keyOf(at)) rows.push({ key: keyOf(at), delta: top - heights.top(at) });
    return { kind: "row", index, delta: top - heights.top(index), rows };
  };
  const scrolled = () => {
    const element = scroller.current;
    if (!element) return;
    // Another size scrolls by itself; the user did not ask for that.
    if (Math.abs(element.scrollTop - own.current) >= 1 && shape.current === shapeOf(element)) {
      own.current = -1;
      const isAtEnd = element.scrollTop + roomOf(element) >= heights.total - AT_END;
      anchor.current =
        edge === "end" && isAtEnd ? { kind: "end" } : anchorAt(heights.at(element.scrollTop), element.scrollTop);
    }
    measure();
  };

  useLayoutEffect(() => {
    const sized = new ResizeObserver((entries) => {
      let grown = 0;
      for (const entry of entries) {
        if (entry.target === scroller.current) grown += 1;
        else if (entry.target instanceof HTMLElement && entry.target.isConnected) {
          const index = Number(entry.target.dataset.index);
          const height = entry.borderBoxSize[0].blockSize;
          if (height > 0 && current.current.set(index, height) !== 0) {
            onMeasured?.(index, height);
            grown += 1;
          }
        }
      }
      // The space must have its new height before the place in it is set.
      if (grown) setView((before) => ({ ...before }));
    });
    observed.current = sized;
    if (scroller.current) sized.observe(scroller.current);
    return () => sized.disconnect();
  }, []);
  useLayoutEffect(settle, [heights, version, view]);

  handle.current = {
    show(index, where = "nearest") {
      const element = scroller.current;
      if (!element) return;
      const [top, end, room] = [heights.top(index), heights.top(index + 1), roomOf(element)];
      const from = element.scrollTop;
      const isComfortable = 2 * top - end >= from && 3 * end - 2 * top <= from + room;
      let wanted = from;
      if (where === "start" || (where === "nearest" && (top < from || end - top > room))) wanted = top;
      else if (where === "middle") wanted = Math.min(top, (top + end - room) / 2);
      else if (where === "third") wanted = isComfortable ? from : Math.max(top - room / 3, 0);
      else if (end > from + room) wanted = end - room;
      anchor.current = anchorAt(index, wanted);
      settle();
    },
    toEnd() {
      anchor.current = { kind: "end" };
      settle();
    },
    follow() {
      anchor.current = { kind: "follow" };
      settle();
    },
    isAtEnd: () => anchor.current.kind === "end" || anchor.current.kind === "follow",
    scroll(pixels) {
      scroller.current?.scrollBy({ top: pixels });
    },
    element: () => scroller.current,
  };
  // At once: a component that returns quickly has set it again before the old one is cleaned up.
  useLayoutEffect(() => () => void (handle.current = null), []);

  // One function for good: another one each time would have every row measured anew.
  const { current: watch } = useRef((/** @type {HTMLElement | null} */ row) => {
    if (row) observed.current?.observe(row, { box: "border-box" });
  });
  const last = Math.min(view.last, heights.count);
  const first = Math.max(Math.min(view.first, last - 1), 0);
  const rows = [];
  for (let index = first; index < last; index += 1) {
    // Where heights are known each row has a place of its own: one that stays in sight is neither laid out nor painted
    // again while others come and go.
    const size = onMeasured
      ? { class: "virtual-row", ref: watch }
      : { class: "virtual-row is-placed", style: { top: `${heights.top(index)}px`, height: `${heights.of(index)}px` } };
    rows.push(
      html`<div
        key=${keyOf(index) || `at-${index}`}
        data-index=${index}
        role="presentation"
        ...${size}
      >
        ${render(index)}
      </div>`,
    );
  }
  const offset = onMeasured ? { transform: `translateY(${heights.top(first)}px)` } : {};
  return html`<div ref=${scroller} class="virtual-list" onScroll=${scrolled} ...${attributes}>
    ${header}
    <div class="virtual-space" role="presentation" style=${{ height: `${heights.total}px` }}>
      <div class="virtual-rows" role="presentation" style=${offset}>
        ${rows}
      </div>
    </div>
  </div>`;
}

/** @param {HTMLElement} element */
function shapeOf(element) {
  return `${element.clientWidth} ${element.clientHeight} ${element.scrollHeight}`;
}

/**
 * @param {HTMLElement} element
 * @param {Heights} heights
 * @param {Anchor} anchor
 * @param {number} end
 * @param {(key: string) => number | undefined} placeOf
 */
function topFor(element, heights, anchor, end, placeOf) {
  if (anchor.kind === "start") return 0;
  if (anchor.kind === "end") return end;
  if (anchor.kind === "row") {
    for (const row of anchor.rows) {
      const index = placeOf(row.key) ?? -1;
      if (index < 0) continue;
      Object.assign(anchor, { index, delta: row.delta });
      break;
    }
    return heights.top(anchor.index) + anchor.delta;
  }
  const row = element.querySelector(`[data-index="${heights.count - 1}"]`);
  const lead = row?.querySelector("[data-lead]");
  const inside = row && lead ? lead.getBoundingClientRect().top - row.getBoundingClientRect().top : 0;
  return Math.min(end, heights.top(heights.count - 1) + Math.max(inside - 8, 0));
}
