// @ts-check
/** A shortcut drawn as key caps. */

import { html } from "../vendor/preact.js";
import { keyCapsOf } from "./core/keys.js";

const IS_MAC = /mac/i.test(navigator.platform);

/** @param {{ keys: string }} props */
export function KeyCaps({ keys }) {
  return html`<span class="keys">
    ${keyCapsOf(keys, IS_MAC).map(
      (step, place) => html`${place ? html`<span class="faint">then</span>` : null}
        ${step.map((cap) => html`<kbd class="key">${cap}</kbd>`)}`,
    )}
  </span>`;
}
