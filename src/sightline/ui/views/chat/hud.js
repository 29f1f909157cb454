// @ts-check
/** The details of every send: parameters, trimming, errors. */

import { html } from "../../vendor/preact.js";
import { hud } from "./core/chat.js";
import { preferences, view } from "./feed.js";

export function HudFacts() {
  const shown = view.value;
  if (!shown) return null;
  return hud(shown, preferences.value.settings).map(
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
  );
}
