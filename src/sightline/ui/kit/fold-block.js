// @ts-check
/** A block that shows its title, and the rest once it is opened. */

import { html } from "../vendor/preact.js";

/**
 * `kind` are more classes of it, `aside` stands beside the title. With `onToggle` the caller draws `inside` only while
 * it is open.
 * @param {any} title
 * @param {any} inside
 * @param {{ kind?: string, aside?: any, isOpen?: boolean, onToggle?: (event: Event) => void }} [options]
 */
export function foldBlock(title, inside, { kind = "", aside = null, isOpen, onToggle } = {}) {
  return html`<details class=${`fold-block boxed ${kind}`} open=${isOpen} onToggle=${onToggle}>
    <summary>
      <span class="fold-mark" aria-hidden="true"></span>
      <span class="fold-title">${title}</span>
      ${aside}
    </summary>
    ${inside}
  </details>`;
}
