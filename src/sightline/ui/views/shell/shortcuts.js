// @ts-check
/** The help with all shortcuts that work now. */

import { Dialog } from "../../kit/dialog.js";
import { KeyCaps } from "../../kit/keycaps.js";
import { h, html } from "../../vendor/preact.js";

/** @import { Shortcut } from "../../kit/keyboard.js" */

/** What works in every place comes after what works in this one. */
const LAST = ["Everywhere", "Holding"];

/** @param {{ onClose: () => void, shortcuts: readonly Shortcut[] }} props */
export function Shortcuts({ onClose, shortcuts }) {
  /** @type {Map<string, Shortcut[]>} */
  const groups = new Map();
  for (const each of shortcuts) {
    if (each.keys && !each.isUnlisted) groups.set(each.group, [...(groups.get(each.group) ?? []), each]);
  }
  const ordered = [...groups].sort(([a], [b]) => LAST.indexOf(a) - LAST.indexOf(b));
  return h(Dialog, {
    title: "Keyboard shortcuts",
    width: 760,
    onClose,
    children: html`<div class="shortcut-groups">
      ${ordered.map(
        ([name, list]) => html`<section key=${name} aria-label=${name}>
          <h3>${name}</h3>
          <dl>
            ${list.map(
              (each) => html`<div key=${each.keys}>
                <dt>${each.label}</dt>
                <dd>
                  ${[each.keys, ...(each.also ?? [])].map(
                    (keys, place) => html`${place ? html`<span class="faint">or</span>` : null}
                      ${h(KeyCaps, { keys })}`,
                  )}
                </dd>
              </div>`,
            )}
          </dl>
        </section>`,
      )}
    </div>`,
  });
}
