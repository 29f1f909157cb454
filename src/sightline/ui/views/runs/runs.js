// @ts-check
/** The list of runs, the newest first. */

import { about } from "../../kit/about.js";
import { button } from "../../kit/button.js";
import { costOf, countOf, duration, short, stamp, when } from "../../kit/core/format.js";
import { onToggle } from "../../kit/fields.js";
import { foldBlock } from "../../kit/fold-block.js";
import { useChosenPair } from "../../kit/chosen-pair.js";
import { go } from "../../kit/navigation.js";
import { Unloaded } from "../../kit/notices.js";
import { toast } from "../../kit/toast.js";
import { h, html, useState } from "../../vendor/preact.js";
import { ruleWords, stateWords, toneOf } from "./core/runs.js";
import { revokeApproval, useApprovals, useRuns } from "./feed.js";

/** @import { ApprovalShown, RunBrief } from "../../api-types.d.ts" */

const PAGE = 100;

/** `compare` is a run that the next chosen one is compared with. @param {{ compare?: string }} props */
export function Runs({ compare = "" }) {
  const [limit, setLimit] = useState(PAGE);
  const { value: runs, trouble, again } = useRuns(limit);
  const onCompare = (/** @type {string[]} */ [a, b]) => go({ view: "compare", a, b });
  const { chosen, at, toggle } = useChosenPair({
    ids: (runs ?? []).map((run) => run.id),
    compare,
    group: "Runs",
    onOpen: (id) => go({ view: "run", id }),
    onCompare,
  });
  const isEmpty = runs?.length === 0;
  return html`<main class=${runs?.length ? "runs-view" : "runs-view is-empty"} aria-label="Runs">
    ${
      trouble &&
      !runs &&
      h(Unloaded, {
        title: "Runs could not be loaded",
        lines: [trouble.message, trouble.hint],
        ways: button("Try again", again),
      })
    }
    ${!runs && !trouble ? html`<p class="faint pad" role="status">Loading…</p>` : null}
    ${
      isEmpty &&
      html`<div class="empty">
        <h1>No runs yet</h1>
        <p class="soft">
          A run is a model that calls tools until it is done. Give a topic of the chat some tools, or start one on
          the command line:
        </p>
        <p><code>${about.value.program} ask --tools tools.py "…"</code></p>
        ${h(Approvals, { version: "" })}
      </div>`
    }
    ${
      runs?.length
        ? html`<header class="runs-head">
              <h1>Runs</h1>
              <span class="shell-gap"></span>
              <span class="soft" role="status">${chosen.length === 1 ? "Choose one more to compare." : ""}</span>
              ${button("Compare", () => onCompare(chosen), {
                icon: "columns",
                isDisabled: chosen.length !== 2,
              })}
            </header>
            <div class="runs-body">
              ${h(Approvals, { version: runs[0]?.id })}
              <table class="run-table">
                <thead>
                  <tr>
                    <th scope="col"><span class="unseen">Compare</span></th>
                    <th scope="col">State</th>
                    <th scope="col">Run</th>
                    <th scope="col" class="wide-cell">Model</th>
                    <th scope="col" class="wide-cell number">Rounds</th>
                    <th scope="col" class="wide-cell number">Tokens</th>
                    <th scope="col" class="wide-cell number">Cost</th>
                    <th scope="col" class="wide-cell number">Time</th>
                    <th scope="col" class="number">Began</th>
                  </tr>
                </thead>
                <tbody>
                  ${runs.map((run, index) =>
                    h(Line, {
                      key: run.id,
                      run,
                      isHere: index === at,
                      isChosen: chosen.includes(run.id),
                      onToggle: () => toggle(run.id),
                    }),
                  )}
                </tbody>
              </table>
              ${
                runs.length >= limit &&
                html`<p class="run-more">
                  ${button("Show more", () => setLimit(limit + PAGE * 4))}
                </p>`
              }
            </div>`
        : null
    }
  </main>`;
}

/** @param {{ run: RunBrief, isHere: boolean, isChosen: boolean, onToggle: () => void, key?: string }} props */
function Line({ run, isHere, isChosen, onToggle }) {
  const title = run.title || run.id;
  return html`<tr class=${`run-row ${isHere ? "is-here" : ""} ${isChosen ? "is-chosen" : ""}`}>
    <td><input type="checkbox" aria-label=${`Compare ${title}`} checked=${isChosen} onChange=${onToggle} /></td>
    <td><span class=${`run-state ${run.state} ${toneOf(run)}`}>${stateWords(run)}</span></td>
    <td class="run-name"><a class="cut" href=${`#/runs/${encodeURIComponent(run.id)}`} title=${title}>${title}</a></td>
    <td class="wide-cell soft cut">${run.model}</td>
    <td class="wide-cell number">${run.rounds}</td>
    <td
      class="wide-cell number"
      title=${run.spent?.tool_calls != null ? countOf(run.spent.tool_calls, "tool call") : null}
    >
      ${short(run.spent?.tokens)}
    </td>
    <td class="wide-cell number">
      ${run.spent?.cost ? costOf(run.spent) : run.spent?.cost === null ? "unknown" : ""}
    </td>
    <td class="wide-cell number">${run.spent?.seconds ? duration(run.spent.seconds) : ""}</td>
    <td class="number soft" title=${stamp(run.at)}>${when(run.at, Date.now() / 1000)}</td>
  </tr>`;
}

/**
 * The calls that are allowed for all runs without asking; nothing where there are none. `version` changes when there
 * may be others.
 * @param {{ version: unknown }} props
 */
export function Approvals({ version }) {
  const { approvals, trouble, again } = useApprovals(version);
  const [isOpen, setOpen] = useState(false);
  if (trouble && !approvals)
    return html`<p class="note wraps" role="alert">${trouble.message} ${trouble.hint ?? ""}</p>`;
  if (!approvals?.length) return null;
  const takeBack = async (/** @type {ApprovalShown} */ approval) => {
    if (!(await revokeApproval(approval))) return;
    toast(`${approval.tool} is asked about again.`);
    again();
  };
  const rules = html`<ul class="fold-inside approval-list" aria-label="Always allowed">
    ${approvals.map(
      (each) => html`<li key=${`${each.place}\n${each.words}`}>
        <span class="approval-words wraps">
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
  </ul>`;
  return foldBlock("Always allowed", rules, {
    kind: "approvals",
    aside: html`<span class="faint number">${countOf(approvals.length, "rule")}</span>`,
    isOpen,
    onToggle: onToggle(setOpen),
  });
}
