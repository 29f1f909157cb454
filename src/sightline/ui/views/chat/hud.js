// @ts-check
/** The details of every send: parameters, trimming, errors. */

import { Icon } from "../../kit/icon.js";
import { h, html, signal } from "../../vendor/preact.js";
import { showHud } from "./actions.js";
import { hud } from "./core/chat.js";
import { preferences, view } from "./feed.js";

const NARROWEST = 220;
const WIDEST = 640;
const STEP = 24;

const width = signal(readWidth());

function readWidth() {
  try {
    return Number(localStorage.getItem("sightline.chat.hud-width")) || 300;
  } catch {
    return 300;
  }
}

/** @param {number} wanted */
function resize(wanted) {
  width.value = Math.round(Math.min(Math.max(wanted, NARROWEST), WIDEST));
  try {
    localStorage.setItem("sightline.chat.hud-width", String(width.value));
  } catch {
    // Then it has its usual width next time.
  }
}

export function Hud() {
  const shown = view.value;
  if (!shown) return null;
  /** @param {PointerEvent} event */
  const grab = (event) => {
    const handle = /** @type {HTMLElement} */ (event.currentTarget);
    const [from, before] = [event.clientX, width.value];
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => resize(before + from - moved.clientX);
    handle.onpointerup = () => (handle.onpointermove = null);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    resize(width.value + step);
  };
  return html`<aside class="hud" aria-label="HUD" style=${{ "--hud-width": `${width.value}px` }}>
    <div
      class="hud-edge"
      role="separator"
      tabindex="0"
      aria-orientation="vertical"
      aria-label="Width of the HUD"
      aria-valuemin=${NARROWEST}
      aria-valuemax=${WIDEST}
      aria-valuenow=${width.value}
      onPointerDown=${grab}
      onKeyDown=${onKey}
    ></div>
    <header class="hud-head">
      <h2>HUD</h2>
      <button
        type="button"
        class="button quiet icon"
        aria-label="Close the HUD"
        title="Close the HUD (H)"
        onClick=${() => showHud(false)}
      >
        ${h(Icon, { name: "close" })}
      </button>
    </header>
    <div class="hud-groups">
      ${hud(shown, preferences.value.settings).map(
        (group) => html`<section key=${group.name} aria-label=${group.name}>
          <h3>${group.name}</h3>
          <dl>
            ${group.rows.map(
              (row) => html`<div key=${row.label} class=${row.value.length > 24 ? "long" : null}>
                <dt>${row.label}</dt>
                <dd class="number">${row.value}</dd>
              </div>`,
            )}
          </dl>
        </section>`,
      )}
    </div>
  </aside>`;
}
