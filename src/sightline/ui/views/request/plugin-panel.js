// @ts-check
/** A tab that a plug-in adds: its module fills an element, and what it breaks stays in here. */

import { get } from "../../kit/api.js";
import { addressOf } from "../../kit/events.js";
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";

/** @import { PanelShown } from "../../api-types.d.ts" */
/** @import { View } from "./core/exchange.js" */

/** Why panels failed, by name: such a panel is not called again until the page is loaded again. */
const failures = /** @type {Map<string, string>} */ (new Map());

/** @param {{ panel: PanelShown, view: View, key?: string }} props */
export function PluginPanel({ panel, view }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [, setFailure] = useState("");
  /** @param {unknown} error */
  const fail = (error) => {
    failures.set(panel.name, String(error));
    setFailure(String(error));
  };
  useEffect(() => {
    if (!place.current) return undefined;
    // Each call has an element of its own: what an earlier one adds late is seen by no one.
    const element = document.createElement("div");
    place.current.append(element);
    const opened = open(panel.name, element, view);
    opened.catch(fail);
    return () => {
      void opened.then(
        (close) => attempt(close, fail),
        () => {},
      );
      element.remove();
    };
  }, [panel.name, view]);
  const failure = failures.get(panel.name);
  if (failure)
    return html`<div class="empty" role="alert">
      <h1>${panel.title} failed</h1>
      <p class="soft">The panel is of the plug-in <code>${panel.plugin}</code>: ${failure}</p>
      <p class="soft">It is off until you load this page again.</p>
    </div>`;
  return html`<section class="plugin-panel" ref=${place} aria-label=${panel.title}></section>`;
}

/**
 * Let a panel fill its element. It gets a copy of the exchange, so that it cannot change what the page shows.
 * @param {string} name
 * @param {HTMLElement} element
 * @param {View} view
 * @returns {Promise<unknown>} what it wants to be called when it closes
 */
async function open(name, element, view) {
  const { default: show } = await import(addressOf(`/api/panels/${encodeURIComponent(name)}`));
  if (typeof show !== "function") throw new TypeError("its module has no function as its default export");
  return show(element, structuredClone(view), { get });
}

/** @param {unknown} close @param {(error: unknown) => void} fail */
function attempt(close, fail) {
  try {
    if (typeof close === "function") close();
  } catch (error) {
    fail(error);
  }
}
