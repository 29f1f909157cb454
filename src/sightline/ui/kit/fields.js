// @ts-check
/** Fields, and their handlers. */

import { html } from "../vendor/preact.js";

/** Calls `run` with what a field says. @param {(value: string) => unknown} run */
export function onValue(run) {
  return (/** @type {Event} */ event) => void run(/** @type {HTMLInputElement} */ (event.target).value);
}

/**
 * A field for a line of text. `kind` are more classes of it, `label` names it for assistive technology, `isCode` keeps
 * the browser from correcting it; whatever else is an attribute.
 * @param {unknown} value
 * @param {(value: string) => unknown} run
 * @param {{ kind?: string, label?: string, isCode?: boolean, [attribute: string]: unknown }} [options]
 */
export function textField(value, run, { kind, label, isCode = false, ...more } = {}) {
  const code = isCode ? { spellcheck: false, autocomplete: "off" } : {};
  const name = kind ? `field ${kind}` : "field";
  return html`<input class=${name} aria-label=${label} ...${code} ...${more} value=${value} onInput=${onValue(run)} />`;
}
