// @ts-check
/** The panels beside the history: one entry each says how it is opened, how wide it is and what is in it. */

import { iconButton } from "../../kit/button.js";
import { readStored, store } from "../../kit/storage.js";
import { h, html, signal, useEffect } from "../../vendor/preact.js";
import { hud } from "./core/chat.js";
import { preferences, view } from "./feed.js";
import { NextSend } from "./preview.js";

/** @import { Choice } from "../../kit/menu.js" */
/** @import { Wanted } from "../../kit/keyboard.js" */

/**
 * `label` names it in the help and in the palette, `menu` in the menu of the chat. With a `width` in pixels it has a
 * frame with its title, an edge to drag and a button that closes it, and it is open again next time; without one,
 * `content` is all of it, and it is closed with the chat. What it shows is styled in panels.css, if need be.
 * @typedef {{ name: string, title: string, content: import("../../vendor/preact.js").ComponentType<{ close: () => void
 *   }>, keys?: string, also?: string[], label?: string, menu?: string, width?: number }} Panel
 */

/** From left to right. @type {readonly Panel[]} */
const PANELS = [
  { name: "preview", title: "Next send", content: NextSend },
  {
    name: "hud",
    title: "HUD",
    content: HudFacts,
    keys: "H",
    also: ["ctrl+shift+d"],
    label: "Show or hide the HUD",
    menu: "Show the HUD",
    width: 300,
  },
];

const NARROWEST = 220;
const WIDEST = 640;
const STEP = 24;

/** The names of the open ones. */
const open = signal(
  new Set(PANELS.filter(({ name, width }) => width && readStored(`chat.${name}`)).map(({ name }) => name)),
);
const widths = signal(
  new Map(PANELS.map(({ name, width = 0 }) => [name, Number(readStored(`chat.${name}-width`)) || width])),
);

/** @param {string} name */
export function isPanelOpen(name) {
  return open.value.has(name);
}

/** Open or close a panel; by itself, the other of both. @param {string} name @param {boolean} [isOpen] */
export function showPanel(name, isOpen = !open.peek().has(name)) {
  const next = new Set(open.peek());
  if (isOpen) next.add(name);
  else next.delete(name);
  open.value = next;
  if (PANELS.find((each) => each.name === name)?.width) store(`chat.${name}`, isOpen ? "yes" : "");
}

/** @returns {Wanted[]} */
export function panelKeys() {
  return PANELS.flatMap(({ name, keys, also, label = "" }) =>
    keys === undefined ? [] : [{ keys, also, label, run: () => showPanel(name) }],
  );
}

/** @returns {Choice[]} */
export function panelChoices() {
  return PANELS.flatMap(({ name, keys, menu }) =>
    menu ? [{ label: menu, run: () => showPanel(name, true), keys }] : [],
  );
}

export function Panels() {
  useEffect(() => () => PANELS.filter((each) => !each.width).forEach((each) => showPanel(each.name, false)), []);
  if (!view.value) return null;
  return PANELS.filter((each) => open.value.has(each.name)).map((panel) => {
    const inside = h(panel.content, { key: panel.name, close: () => showPanel(panel.name, false) });
    return panel.width ? h(Frame, { key: panel.name, panel, children: inside }) : inside;
  });
}

/** @param {string} name @param {number} wanted */
function resize(name, wanted) {
  const width = Math.round(Math.min(Math.max(wanted, NARROWEST), WIDEST));
  widths.value = new Map(widths.value).set(name, width);
  store(`chat.${name}-width`, String(width));
}

/** @param {{ panel: Panel, children: unknown, key?: string }} props */
function Frame({ panel: { name, title, keys }, children }) {
  const width = widths.value.get(name) ?? 0;
  /** @param {PointerEvent} event */
  const grab = (event) => {
    const handle = /** @type {HTMLElement} */ (event.currentTarget);
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => resize(name, width + event.clientX - moved.clientX);
    handle.onpointerup = () => (handle.onpointermove = null);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    resize(name, width + step);
  };
  return html`<aside class="side-panel" aria-label=${title} style=${{ "--panel-width": `${width}px` }}>
    <div
      class="side-panel-edge"
      role="separator"
      tabindex="0"
      aria-orientation="vertical"
      aria-label=${`Width of the ${title}`}
      aria-valuemin=${NARROWEST}
      aria-valuemax=${WIDEST}
      aria-valuenow=${width}
      onPointerDown=${grab}
      onKeyDown=${onKey}
    ></div>
    <header class="side-panel-head">
      <h2>${title}</h2>
      ${iconButton("close", `Close the ${title}`, () => showPanel(name, false), {
        title: `Close the ${title}${keys ? ` (${keys})` : ""}`,
      })}
    </header>
    <div class="side-panel-body">${children}</div>
  </aside>`;
}

/** The details of every send: parameters, trimming, errors. */
function HudFacts() {
  const shown = view.value;
  if (!shown) return null;
  return hud(shown, preferences.value.settings).map(
    (group) => html`<section key=${group.name} aria-label=${group.name}>
      <h3>${group.name}</h3>
      <dl>
        ${group.rows.map(
          (row) => html`<div key=${row.label} class=${row.value.length > 24 ? "long" : null}>
            <dt>${row.label}</dt>
            <dd class="number">${row.value}</dd>
          </div>`,
        )}
      </dl>
    </section>`,
  );
}
