// @ts-check
/** Small line icons, one path each, on a square of 16. */

import { html } from "../vendor/preact.js";

/** @type {Record<string, string>} */
const SHAPES = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14",
  close: "m4 4 8 8M12 4l-8 8",
  down: "m4 6 4 4 4-4",
  right: "m6 4 4 4-4 4",
  back: "M10 3 5 8l5 5",
  plug: "M6 2v3M10 2v3M4.5 5h7v2.5a3.5 3.5 0 0 1-7 0ZM8 11v3",
  copy:
    "M5.5 5.5v-2a1 1 0 0 1 1-1h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-2" +
    "M3.5 5.5h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-6a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1Z",
  check: "m3 8.5 3.2 3.2L13 5",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  chats: "M2.5 3h11v7.5H8l-3 3v-3H2.5Z",
  rules: "M2.5 4h11M4.5 8h7M6.5 12h3",
  plus: "M8 3v10M3 8h10",
  up: "m4 10 4-4 4 4",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3ZM6.8 14.5h2.4",
  warn: "M8 2 14.5 13.5h-13ZM8 6.5v3M8 11.6v.01",
  replay: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5v3h3",
  keyboard: "M2 4.5h12v7H2ZM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5.5 9.5h5",
  edit: "m10.5 3 2.5 2.5L5.5 13H3v-2.5ZM9 4.5 11.5 7",
  undo: "M6 3 3 6l3 3M3 6h6a4 4 0 0 1 0 8H6",
  redo: "m10 3 3 3-3 3M13 6H7a4 4 0 0 0 0 8h3",
  send: "M2.5 8 13.5 3 10 13.5 7.5 9ZM7.5 9l6-6",
  hand: "M3 12.5h10M4 9.5 10.5 3l2 2L6 11.5l-2.5.5Z",
  columns: "M2.5 3h11v10h-11ZM8 3v10",
  link: "M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a3 3 0 0 1 4.2 4.2L11 9M9 11.5 7.5 13a3 3 0 0 1-4.2-4.2L5 7",
  star: "M8 2.2 9.8 6l4.1.5-3 2.9.8 4.1L8 11.5l-3.7 2 .8-4.1-3-2.9L6.2 6Z",
  flag: "M4 14V2.5h7.5L10 5.5l1.5 3H4",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  stop: "M4.5 4.5h7v7h-7Z",
  gauge: "M2.5 12a6 6 0 1 1 11 0M8 9.5 11 6",
  folder: "M2 4.5h4l1.5 1.5H14v6.5H2Z",
  pin: "M8 14v-4M5 10h6l-1-3V3.5H6V7Z",
  swap: "M3 5.5h9M9.5 3 12 5.5 9.5 8M13 10.5H4M6.5 8 4 10.5 6.5 13",
  share: "M5 6.5H3.5v7h9v-7H11M8 10V2M5 4.8 8 2l3 2.8",
  bookmark: "M4.5 2.5h7v11L8 10.5l-3.5 3Z",
  sun:
    "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6Z" +
    "M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
};

/** @param {{ name: keyof typeof SHAPES & string, class?: string }} props */
export function Icon(props) {
  return html`<svg class=${`icon-shape ${props.class ?? ""}`} viewBox="0 0 16 16" aria-hidden="true">
    <path d=${SHAPES[props.name]} />
  </svg>`;
}
