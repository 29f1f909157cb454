// @ts-check
/** The calls that are allowed for all runs without asking; each can be revoked. */

import { button } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { toast } from "../../kit/toast.js";
import { html, useState } from "../../vendor/preact.js";
import { ruleWords } from "./core/runs.js";
import { revokeApproval, useApprovals } from "./feed.js";

/** @import { ApprovalShown } from "./feed.js" */

/** Nothing where nothing is kept. `version` changes when there may be others. @param {{ version: unknown }} props */
export function Approvals({ version }) {
  const { approvals, trouble, again } = useApprovals(version);
  const [isOpen, setOpen] = useState(false);
  if (trouble && !approvals)
    return html`<p class="note run-note" role="alert">${trouble.message} ${trouble.hint ?? ""}</p>`;
  if (!approvals?.length) return null;
  const takeBack = async (/** @type {ApprovalShown} */ approval) => {
    if (!(await revokeApproval(approval))) return;
    toast(`${approval.tool} is asked about again.`);
    again();
  };
  return html`<details
    class="fold-block approvals"
    open=${isOpen}
    onToggle=${(/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.currentTarget).open)}
  >
    <summary>
      <span class="fold-mark" aria-hidden="true"></span>
      <span class="fold-title">Always allowed</span>
      <span class="faint number">${countOf(approvals.length, "rule")}</span>
    </summary>
    <ul class="fold-inside approval-list" aria-label="Always allowed">
      ${approvals.map(
        (each) => html`<li key=${`${each.place}\n${each.words}`}>
          <span class="approval-words">
            <b>${ruleWords({ tool: each.tool, ruling: "allow", arguments: each.arguments })}</b> <span class="faint">
              ${each.place}
            </span>
          </span>
          ${button("Take back", () => void takeBack(each), {
            icon: "trash",
            name: `Ask again about ${each.words}`,
            title: "Calls like this are asked about again",
          })}
        </li>`,
      )}
    </ul>
  </details>`;
}
