// @ts-check
/** What is wrong with a section or a request, and the buttons that fix it. */

import { button } from "../../kit/button.js";
import { Icon } from "../../kit/icon.js";
import { toast } from "../../kit/toast.js";
import { h, html } from "../../vendor/preact.js";

/** @import { Problem } from "./core/exchange.js" */
/** @import { Desk } from "./desk.js" */

/** @param {{ desk: Desk, problems: readonly Problem[], isEditable: boolean }} props */
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

/** @param {Desk} desk @param {import("../../api-types.d.ts").Fix} fix */
async function applyFix(desk, fix) {
  const operations = fix.operations;
  const isDone = await desk.apply(
    operations.length === 1 ? /** @type {any} */ (operations[0]) : { op: "batch", operations },
  );
  if (isDone) toast(`Done: ${fix.label}.`, { action: { label: "Undo", run: () => void desk.apply({ op: "undo" }) } });
}
