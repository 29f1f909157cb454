// @ts-check
/** Actions that several parts of the request view share. */

import { dialectOf } from "../../kit/about.js";
import { button } from "../../kit/button.js";
import { Icon } from "../../kit/icon.js";
import { toast } from "../../kit/toast.js";
import { h, html } from "../../vendor/preact.js";
import { placeOf } from "./core/exchange.js";
import { wireDialect } from "./desk.js";

/** @import { Fix, Section } from "../../api-types.d.ts" */
/** @import { Problem } from "./core/exchange.js" */
/** @import { Desk } from "./desk.js" */

/**
 * Open a section's editor. Tools and options have no text of their own and are edited as JSON; of what cannot be edited
 * it says why.
 * @param {Desk} desk
 * @param {Section} section
 * @param {boolean} isWhole whether the hold takes edits of the whole request
 */
export function edit(desk, section, isWhole) {
  if (section.editable) desk.edit({ section: section.id });
  else if (isWhole && (section.kind === "tools" || section.kind === "options"))
    desk.edit({ section: section.id, mode: "json" });
  else toast(section.reason || `${section.label} cannot be edited`);
}

/**
 * A new message below a section, open for writing: its placeholder is selected, so that the first key replaces it.
 * @param {Desk} desk
 * @param {Section} section
 * @param {"user" | "assistant"} role
 */
export async function insert(desk, section, role) {
  const place = placeOf(section);
  if (!place) return;
  const dialect = wireDialect(desk.view.peek());
  const value = dialectOf(dialect)?.messages[role];
  if (value === undefined) {
    toast(`The server has not said how ${dialect} writes a message`, { hint: "Reload the page.", tone: "bad" });
    return;
  }
  const before = new Set(desk.sections.peek().map((each) => each.id));
  if (!(await desk.apply({ op: "insert", pointer: `${place.list}/${place.index + 1}`, value }))) return;
  const made = desk.sections.peek().find((each) => !before.has(each.id));
  if (made) desk.edit({ section: made.id, isNew: true });
}

/**
 * What is wrong with a section or a request, and the buttons that fix it.
 * @param {{ desk: Desk, problems: readonly Problem[], isEditable: boolean }} props
 */
export function Problems({ desk, problems, isEditable }) {
  return html`<ul class="problems">
    ${problems.map(
      (problem, index) => html`<li key=${index} class=${`problem ${problem.severity}`}>
        ${h(Icon, { name: "warn" })}
        <span class="problem-text">
          <span class="unseen">${problem.severity}: </span>
          ${sentence(problem.message)}
          ${problem.pointer ? html` <code class="faint">${problem.pointer}</code>` : null}
        </span>
        ${
          isEditable
            ? (problem.fixes ?? []).map((fix) =>
                button(sentence(fix.label), () => void applyFix(desk, fix), { kind: "fix" }),
              )
            : null
        }
      </li>`,
    )}
  </ul>`;
}

/** @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {Desk} desk @param {Fix} fix */
async function applyFix(desk, fix) {
  const operations = fix.operations;
  const isDone = await desk.apply(
    operations.length === 1 ? /** @type {any} */ (operations[0]) : { op: "batch", operations },
  );
  if (isDone) toast(`Done: ${fix.label}.`, { action: { label: "Undo", run: () => void desk.apply({ op: "undo" }) } });
}
