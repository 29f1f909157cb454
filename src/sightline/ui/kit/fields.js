// @ts-check
/** Fields, and their handlers. */

import { html } from "../vendor/preact.js";

/** Calls `run` with what a field says. @param {(value: string) => unknown} run */
export function onValue(run) {
  return (/** @type {Event} */ event) => void run(/** @type {HTMLInputElement} */ (event.target).value);
}

/** Calls `run` with whether a `details` is open, when that changes. @param {(isOpen: boolean) => unknown} run */
export function onToggle(run) {
  return (/** @type {Event} */ event) => void run(/** @type {HTMLDetailsElement} */ (event.currentTarget).open);
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

/**
 * A box to tick, with its label; `title` is of both, whatever else is an attribute of the box.
 * @param {any} label
 * @param {boolean | undefined} isChecked
 * @param {(isChecked: boolean) => unknown} run
 * @param {{ key?: string, kind?: string, title?: string, [attribute: string]: unknown }} [options]
 */
export function checkbox(label, isChecked, run, { key, kind = "check", title, ...more } = {}) {
  const onChange = (/** @type {Event} */ event) => void run(/** @type {HTMLInputElement} */ (event.target).checked);
  return html`<label key=${key} class=${kind} title=${title}>
    <input type="checkbox" ...${more} checked=${isChecked} onChange=${onChange} /> ${label}
  </label>`;
}

/**
 * A field with a list of choices, each a value and its words, or a value that is its own words; `label` names it for
 * assistive technology.
 * @template {string} T
 * @param {T} value
 * @param {(value: T) => unknown} run
 * @param {readonly (T | readonly [T, any])[]} choices
 * @param {{ label?: string, [attribute: string]: unknown }} [options]
 */
export function selectField(value, run, choices, { label, ...more } = {}) {
  const onChange = onValue((chosen) => run(/** @type {T} */ (chosen)));
  return html`<select class="field" aria-label=${label} ...${more} value=${value} onChange=${onChange}>
    ${choices.map((each) => {
      const [own, words] = typeof each === "string" ? [each, each] : each;
      return html`<option key=${own} value=${own} selected=${own === value}>${words}</option>`;
    })}
  </select>`;
}
