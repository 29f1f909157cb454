// @ts-check
/** Buttons: words, an icon, or both. */

import { h, html } from "../vendor/preact.js";
import { Icon } from "./icon.js";
import { KeyCaps } from "./keycaps.js";

/**
 * `kind` are more classes of it: primary, quiet, danger. `name` is read by assistive technology in place of the words.
 * `keys` is a shortcut to show.
 * @typedef {{ key?: string, kind?: string, icon?: string, keys?: string, name?: string, title?: string, isDisabled?:
 *   boolean, isPressed?: boolean, isExpanded?: boolean, hasFocus?: boolean, ref?: any }} ButtonOptions
 */

/** @param {any} label @param {(event: MouseEvent) => unknown} onClick @param {ButtonOptions} [options] */
export function button(label, onClick, options = {}) {
  return drawButton("button", label, onClick, options);
}

/**
 * A button that looks like a link.
 * @param {any} label
 * @param {() => unknown} onClick
 * @param {ButtonOptions} [options]
 */
export function linkButton(label, onClick, options = {}) {
  return drawButton("link", label, onClick, options);
}

/**
 * @param {string} look
 * @param {any} label
 * @param {(event: MouseEvent) => unknown} onClick
 * @param {ButtonOptions} options
 */
function drawButton(look, label, onClick, options) {
  const { icon, keys } = options;
  return html`<button
    type="button"
    key=${options.key}
    ref=${options.ref}
    class=${options.kind ? `${look} ${options.kind}` : look}
    aria-label=${options.name}
    aria-pressed=${options.isPressed}
    aria-expanded=${options.isExpanded}
    title=${options.title}
    disabled=${options.isDisabled}
    autofocus=${options.hasFocus}
    onClick=${onClick}
  >
    ${icon ? h(Icon, { name: icon }) : null}${label}${keys ? html` ${h(KeyCaps, { keys })}` : null}
  </button>`;
}

/**
 * A button that shows an icon alone.
 * @param {string} icon
 * @param {string} name
 * @param {(event: MouseEvent) => unknown} onClick
 * @param {ButtonOptions} [options]
 */
export function iconButton(icon, name, onClick, options = {}) {
  const kind = options.kind ? `quiet icon ${options.kind}` : "quiet icon";
  return button(null, onClick, { ...options, kind, icon, name });
}
