// @ts-check
/** Parts that several pages show: a warning that a page is out of date, the head of a panel. */

import { h, html } from "../vendor/preact.js";
import { iconButton } from "./button.js";
import { Icon } from "./icon.js";

/** Nothing while all is well. @param {{ trouble: { message: string } | null | undefined }} props */
export function Stale({ trouble }) {
  if (!trouble) return null;
  return html`<p class="stale" role="status">
    ${h(Icon, { name: "warn" })}What is shown may be out of date: ${trouble.message}
  </p>`;
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
