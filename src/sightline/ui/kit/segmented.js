// @ts-check
/** A segmented control: one of a few choices, side by side. */

import { html } from "../vendor/preact.js";

/**
 * `name` is what assistive technology reads instead of `label`.
 * @template T
 * @typedef {{ value: T, label: any, name?: string, isDisabled?: boolean }} Choice
 */

/**
 * @template {string | number | boolean} T
 * @param {{ label: string, value: T, choices: readonly Choice<T>[], onChange: (value: T) => void }} props
 */
export function segmentControl({ label, value, choices, onChange }) {
  return html`<div class="segmented" role="radiogroup" aria-label=${label}>
    ${choices.map(
      (choice) => html`<button
        key=${String(choice.value)}
        type="button"
        role="radio"
        aria-checked=${choice.value === value}
        aria-label=${choice.name}
        title=${typeof choice.label === "string" && choice.label.length > 24 ? choice.label : null}
        disabled=${choice.isDisabled}
        onClick=${() => onChange(choice.value)}
      >
        ${choice.label}
      </button>`,
    )}
  </div>`;
}
