// @ts-check
/** How many pairs are sent with the next question; hover or focus shows how that number came about. */

import { html, useState } from "../../vendor/preact.js";
import { breakdown, counterText } from "./core/chat.js";
import { size } from "./draft.js";
import { preferences } from "./feed.js";

/** @import { ViewShown } from "./core/chat.js" */

/** @param {{ view: ViewShown }} props */
export function Counter({ view }) {
  const [isOpen, setOpen] = useState(false);
  const text = counterText(view);
  const trimmed = view.counter.trimmed > 0;
  const summary = view.last?.trim_summary ?? "";
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.preventDefault();
    event.stopPropagation();
    setOpen(false);
  };
  return html`<div
    class="counter"
    onMouseEnter=${() => setOpen(true)}
    onMouseLeave=${() => setOpen(false)}
    onKeyDown=${onKey}
  >
    <button
      type="button"
      class=${trimmed ? "counter-text number trimmed" : "counter-text number"}
      aria-label=${`Context: ${text}`}
      aria-describedby=${isOpen ? "counter-breakdown" : null}
      aria-expanded=${isOpen}
      onFocus=${() => setOpen(true)}
      onBlur=${() => setOpen(false)}
    >
      ${text}
    </button>
    ${
      isOpen &&
      html`<div id="counter-breakdown" class="counter-breakdown" role="tooltip">
        <p>${view.counter.predicted} of ${view.counter.visible} visible pairs are sent with your next question.</p>
        ${view.newest_hidden ? html`<p class="counter-note">(-) The newest pair is hidden by the filter.</p>` : null}
        ${summary ? html`<p class="counter-note">Last send: ${summary}</p>` : null}
        <table>
          <tbody>
            ${breakdown(view, {
              written: size.value?.prompt,
              charsPerToken: preferences.value.settings.charsPerToken,
            }).map(
              (each) => html`<tr key=${each.label}>
                <th scope="row">${each.label}</th>
                <td class="number">${each.number}</td>
                <td class="faint">${each.meaning}</td>
              </tr>`,
            )}
          </tbody>
        </table>
      </div>`
    }
  </div>`;
}
