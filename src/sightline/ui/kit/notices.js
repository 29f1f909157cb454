// @ts-check
/** Parts that several pages show: a warning that a page is out of date, the head of a panel. */

import { h, html } from "../vendor/preact.js";
import { button, iconButton } from "./button.js";
import { Icon } from "./icon.js";

/** Nothing while all is well. @param {{ trouble: { message: string } | null | undefined }} props */
export function Stale({ trouble }) {
  if (!trouble) return null;
  return html`<p class="stale" role="status">
    ${h(Icon, { name: "warn" })}What is shown may be out of date: ${trouble.message}
  </p>`;
}

/**
 * One of the totals of a page: its name, its number and what is to be known of it.
 * @param {string} name
 * @param {string} value
 * @param {string} [note]
 * @param {{ isBad?: boolean }} [options]
 */
export function figure(name, value, note = "", { isBad = false } = {}) {
  return html`<div>
    <dt class="soft">${name}</dt>
    <dd class=${isBad ? "number bad" : "number"}>${value}</dd>
    <dd class="faint">${note}</dd>
  </div>`;
}

/** What went wrong on the way. @param {{ fault: { code: string, message: string, hint?: string } }} props */
export function FaultNote({ fault }) {
  return html`<div class="fault" role="alert">
    ${h(Icon, { name: "warn" })}
    <div>
      <p><b>${fault.code}</b> ${fault.message}</p>
      ${fault.hint ? html`<p class="soft">${fault.hint}</p>` : null}
    </div>
  </div>`;
}

/**
 * What stands in place of something that could not be loaded; `lines` say why, `ways` are what to do.
 * @param {{ title: string, lines: readonly any[], ways: any }} props
 */
export function Unloaded({ title, lines, ways }) {
  return html`<div class="empty" role="alert">
    <h1>${title}</h1>
    ${lines.map((line) => (typeof line === "object" ? line : html`<p class="soft">${line}</p>`))}
    <p class="empty-actions">${ways}</p>
  </div>`;
}

/**
 * The same as a whole page: `what` may have gone from the record, `way` leads to all of its kind.
 * @param {{ trouble: { message: string, hint?: string, status?: number }, what: string, way: any, again: () => void }}
 *   props
 */
export function NotOnRecord({ trouble, what, way, again }) {
  const isGone = trouble.status === 404;
  return html`<main class="runs-view is-empty">
    ${h(Unloaded, {
      title: isGone ? `${what} is not on record` : "It could not be loaded",
      lines: isGone ? ["The link may be from another record.", ""] : [trouble.message, trouble.hint],
      ways: html`${way} ${button("Try again", again)}`,
    })}
  </main>`;
}

/** `about` is shown where there is room. @param {{ title: string, about?: string, onClose: () => void }} props */
export function PanelHead({ title, about = "", onClose }) {
  return html`<div class="toolbar">
    <h2>${title}</h2>
    ${about && html`<span class="soft wide-only">${about}</span>`}
    <span class="card-gap"></span>
    ${iconButton("close", "Close", onClose)}
  </div>`;
}
