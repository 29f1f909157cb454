// @ts-check
/** Short messages at the lower edge; errors stay until they are closed. */

import { html, signal } from "../vendor/preact.js";
import { button, iconButton } from "./button.js";
import { onReconnect } from "./events.js";

/**
 * @typedef {{ id: number, message: string, hint: string, tone: "plain" | "bad", action?: { label: string, run: () =>
 *   void } }} Toast
 */

const shown = signal(/** @type {Toast[]} */ ([]));
let last = 0;

/**
 * @param {string} message
 * @param {{ hint?: string, tone?: "plain" | "bad", action?: { label: string, run: () => void } }} [options]
 * @returns {() => void} takes it away
 */
export function toast(message, { hint = "", tone = "plain", action } = {}) {
  const id = (last += 1);
  shown.value = [...shown.value.filter((each) => each.message !== message), { id, message, hint, tone, action }].slice(
    -3,
  );
  if (tone === "plain" && !action) setTimeout(() => close(id), 4000);
  return () => close(id);
}

/**
 * Say what went wrong, in the server's words. That it does not respond is said until it does.
 * @param {unknown} error
 */
export function toastError(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  const { code, message, hint } = /** @type {{ code?: string, message?: string, hint?: string }} */ (error);
  const takeAway = toast(message ?? String(error), { hint, tone: "bad" });
  if (code !== "unreachable") return;
  const stop = onReconnect(() => {
    stop();
    takeAway();
  });
}

/**
 * Do something, and say what went wrong.
 * @param {() => Promise<unknown>} order
 * @returns {Promise<boolean>} whether it was done
 */
export async function attempt(order) {
  try {
    await order();
    return true;
  } catch (error) {
    toastError(error);
    return false;
  }
}

/** @param {number} id */
function close(id) {
  shown.value = shown.value.filter((each) => each.id !== id);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.value.map(
      (each) => html`<div key=${each.id} class=${`toast in-row ${each.tone}`}>
        <div class="toast-text"><p>${each.message}</p>${each.hint ? html`<p class="soft">${each.hint}</p>` : null}</div>
        ${
          each.action &&
          button(each.action.label, () => {
            each.action?.run();
            close(each.id);
          })
        }
        ${iconButton("close", "Close message", () => close(each.id))}
      </div>`,
    )}
  </div>`;
}
