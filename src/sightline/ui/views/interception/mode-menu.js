// @ts-check
/** Which requests are held: off, the next one, every one, or by rule. */

import { iconButton } from "../../kit/button.js";
import { Icon } from "../../kit/icon.js";
import { onArrows, useShortcuts } from "../../kit/keyboard.js";
import { Menu } from "../../kit/menu.js";
import { h, html } from "../../vendor/preact.js";
import { MODES } from "./core/interception.js";
import { canHold, mode, rules, setMode } from "./feed.js";

/** @param {{ onRules: () => void }} props */
export function Interception({ onRules }) {
  useShortcuts(
    "Holding",
    MODES.map((each) => ({
      keys: { off: "h o", next: "h n", every: "h e", rules: "h r" }[each.mode],
      label: `Hold: ${each.label.toLowerCase()}`,
      detail: each.help,
      run: () => void setMode(each.mode),
    })),
  );
  if (!canHold.value) return null;
  const chosen = mode.value;
  const count = rules.value.length;
  const place = MODES.findIndex((each) => each.mode === chosen);
  const onKey = onArrows(MODES.length, place, (next) => void setMode(MODES[next].mode));
  const choices = MODES.map((each) => ({
    label: each.label,
    detail: each.help,
    isChosen: each.mode === chosen,
    run: () => void setMode(each.mode),
  }));
  return html`<div class=${`holding in-row mode-${chosen}`}>
    <span class="holding-label soft" id="holding-label">Hold</span>
    <div class="segmented" role="radiogroup" aria-labelledby="holding-label" onKeyDown=${onKey}>
      ${MODES.map(
        (each) => html`<button
          key=${each.mode}
          type="button"
          role="radio"
          aria-checked=${each.mode === chosen}
          tabindex=${each.mode === chosen ? 0 : -1}
          title=${each.help}
          onClick=${() => setMode(each.mode)}
        >
          ${each.label}
          ${each.mode === "rules" && count ? html`<span class="count">${count}</span>` : null}
        </button>`,
      )}
    </div>
    <span class="holding-menu">
      ${h(Menu, {
        label: "What is held",
        class: "button",
        choices: [...choices, "line", { label: "Edit rules…", run: onRules }],
        children: html`${h(Icon, { name: "rules" })}
          <span class="holding-mode">${MODES[place]?.label}</span>`,
      })}
    </span>
    ${iconButton("rules", "Edit the rules", onRules, { kind: "rules-button", title: "Edit the rules (g r)" })}
  </div>`;
}
