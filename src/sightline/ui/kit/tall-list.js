// @ts-check
/**
 * A virtual list of rows whose heights are measured as they are drawn. What is being read stays in place, whatever
 * changes above it.
 */

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

/** @import { Heights } from "./core/heights.js" */

/** So many pixels are drawn beyond either edge. */
const BEYOND = 600;
const AT_END = 6;

/**
 * Where the reader is: at a row, at the end of all, or following an answer, whose beginning does not leave the screen.
 * @typedef {{ kind: "row", key: string, index: number, delta: number } | { kind: "end" } | { kind: "follow" }} Anchor
 */
/**
 * @typedef {object} TallHandle
 * @property {(index: number, where?: "nearest" | "start" | "middle") => void} show
 * @property {() => void} toEnd
 * @property {() => void} follow
 * @property {() => boolean} isAtEnd
 * @property {(pixels: number) => void} scroll
 * @property {() => HTMLElement | null} element
 */

/**
 * `tick` is another value whenever `heights` was filled anew or rows are others; `keyOf` and `placeOf` tell rows by
 * name. What has `data-lead` in a row is what follows the screen's upper edge while it is followed.
 * @param {{ heights: Heights, tick: unknown, keyOf: (index: number) => string, placeOf: (key: string) => number |
 *   undefined,
 * render: (index: number) => any, onWindow: (first: number, last: number) => void, onMeasured: (index: number, height:
 * number) => void,
 *   handle: { current: TallHandle | null }, attributes?: Record<string, unknown> }} props
 */
export function TallList({ heights, tick, keyOf, placeOf, render, onWindow, onMeasured, handle, attributes = {} }) {
  const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
  const anchor = useRef(/** @type {Anchor} */ ({ kind: "end" }));
  const own = useRef(-1);
  const shape = useRef("");
  const [view, setView] = useState({ first: 0, last: 0 });
  const observed = useRef(/** @type {ResizeObserver | null} */ (null));

  const measure = () => {
    const element = scroller.current;
    if (!element) return;
    const top = element.scrollTop;
    const first = heights.at(top - BEYOND);
    const last = heights.count ? heights.at(top + element.clientHeight + BEYOND) + 1 : 0;
    setView((before) => (before.first === first && before.last === last ? before : { first, last }));
    onWindow(first, last);
  };
  const settle = () => {
    const element = scroller.current;
    if (!element) return;
    const wanted = Math.max(
      Math.min(topFor(element, heights, anchor.current, placeOf), heights.total - element.clientHeight),
      0,
    );
    if (Math.abs(element.scrollTop - wanted) >= 1) {
      element.scrollTop = wanted;
      own.current = element.scrollTop;
    }
    shape.current = shapeOf(element);
    measure();
  };
  const scrolled = () => {
    const element = scroller.current;
    if (!element) return;
    // Another size scrolls by itself; the user did not ask for that.
    if (Math.abs(element.scrollTop - own.current) >= 1 && shape.current === shapeOf(element)) {
      own.current = -1;
      anchor.current = anchorOf(element, heights, keyOf);
    }
    measure();
  };
  // The space must have its new height before the place in it is set.
  const redraw = () => setView((before) => ({ ...before }));

  useLayoutEffect(() => {
    const sized = new ResizeObserver((entries) => {
      let grown = 0;
      for (const entry of entries) {
        if (entry.target === scroller.current) grown += 1;
        else if (entry.target instanceof HTMLElement && entry.target.isConnected) {
          const index = Number(entry.target.dataset.index);
          const height = entry.borderBoxSize[0].blockSize;
          if (height > 0 && heights.set(index, height) !== 0) {
            onMeasured(index, height);
            grown += 1;
          }
        }
      }
      if (grown) redraw();
    });
    observed.current = sized;
    if (scroller.current) sized.observe(scroller.current);
    return () => sized.disconnect();
  }, []);
  useLayoutEffect(settle, [tick, view]);

  handle.current = {
    show(index, where = "nearest") {
      const element = scroller.current;
      if (!element) return;
      const [top, end] = [heights.top(index), heights.top(index + 1)];
      const [from, to] = [element.scrollTop, element.scrollTop + element.clientHeight];
      let wanted = from;
      if (where === "start" || (where === "nearest" && (top < from || end - top > element.clientHeight))) wanted = top;
      else if (where === "middle") wanted = Math.min(top, (top + end - element.clientHeight) / 2);
      else if (end > to) wanted = end - element.clientHeight;
      anchor.current = { kind: "row", key: keyOf(index), index, delta: wanted - top };
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
    isAtEnd: () => anchor.current.kind !== "row",
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
  for (let index = first; index < last; index += 1)
    rows.push(
      html`<div
        key=${keyOf(index) || `at-${index}`}
        class="tall-row"
        data-index=${index}
        role="presentation"
        ref=${watch}
      >
        ${render(index)}
      </div>`,
    );
  return html`<div ref=${scroller} class="tall-list" onScroll=${scrolled} ...${attributes}>
    <div class="tall-space" role="presentation" style=${{ height: `${heights.total}px` }}>
      <div class="tall-rows" role="presentation" style=${{ transform: `translateY(${heights.top(first)}px)` }}>
        ${rows}
      </div>
    </div>
  </div>`;
}

/** @param {HTMLElement} element */
function shapeOf(element) {
  return `${element.clientWidth} ${element.clientHeight} ${element.scrollHeight}`;
}

/** @param {HTMLElement} element @param {Heights} heights @param {(index: number) => string} keyOf @returns {Anchor} */
function anchorOf(element, heights, keyOf) {
  if (element.scrollTop + element.clientHeight >= heights.total - AT_END) return { kind: "end" };
  const index = heights.at(element.scrollTop);
  return { kind: "row", key: keyOf(index), index, delta: element.scrollTop - heights.top(index) };
}

/**
 * @param {HTMLElement} element
 * @param {Heights} heights
 * @param {Anchor} anchor
 * @param {(key: string) => number | undefined} placeOf
 */
function topFor(element, heights, anchor, placeOf) {
  const end = heights.total - element.clientHeight;
  if (anchor.kind === "end") return end;
  if (anchor.kind === "row") {
    anchor.index = (anchor.key ? placeOf(anchor.key) : undefined) ?? anchor.index;
    return heights.top(anchor.index) + anchor.delta;
  }
  const row = element.querySelector(`[data-index="${heights.count - 1}"]`);
  const lead = row?.querySelector("[data-lead]");
  const inside = row && lead ? lead.getBoundingClientRect().top - row.getBoundingClientRect().top : 0;
  return Math.min(end, heights.top(heights.count - 1) + Math.max(inside - 8, 0));
}
