// @ts-check
/** The results of graders, nested: verdict, score, every check with its evidence, and the judge's own exchange. */

import { JsonView } from "../../kit/json-view.js";
import { h, html, useState } from "../../vendor/preact.js";
import { isNoteworthy, scoreFacts } from "./core/case.js";
import { formatScore, verdictStanding } from "./core/evals.js";
import { Mark } from "./marks.js";

/** @import { Check, Score } from "../../api-types.d.ts" */

/** @param {{ scores: readonly Score[], label: string }} props */
export function ScoreTree({ scores, label }) {
  if (!scores.length) return html`<p class="faint">No grader returned a result.</p>`;
  return html`<ul class="score-tree" aria-label=${label}>
    ${scores.map((score, index) => h(Branch, { key: String(index), score, depth: 0 }))}
  </ul>`;
}

/** @param {{ score: Score, depth: number, key?: string }} props */
function Branch({ score, depth }) {
  const [isOpen, setOpen] = useState(depth === 0 || isNoteworthy(score));
  const inside = score.scores ?? [];
  const checks = score.checks ?? [];
  const facts = scoreFacts(score);
  const hasDetails = Object.keys(score.details ?? {}).length > 0;
  const hasMore =
    checks.length > 0 || inside.length > 0 || !!score.reason || hasDetails || (score.exchanges ?? []).length > 0;
  const title = html`${h(Mark, { standing: verdictStanding(score.verdict) })}
    <b class="score-name wraps">${score.name || score.type}</b>
    ${score.name && score.type && score.name !== score.type ? html`<span class="faint">${score.type}</span>` : null}
    <span class="score-number number">
      ${
        score.score == null
          ? html`<span class="faint">${verdictStanding(score.verdict)}</span>`
          : formatScore(score.score)
      }
    </span>
    ${facts.length ? html`<span class="score-facts faint">${facts.join(" · ")}</span>` : null}`;
  return html`<li class=${`score-branch ${score.verdict}`}>
    ${
      hasMore
        ? html`<button type="button" class="score-head" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
            <span class=${isOpen ? "json-arrow open" : "json-arrow"} aria-hidden="true">▸</span>
            ${title}
          </button>`
        : html`<div class="score-head is-leaf">${title}</div>`
    }
    ${
      hasMore &&
      isOpen &&
      html`<div class="score-inside">
        ${score.reason ? html`<p class="score-reason">${score.reason}</p>` : null}
        ${
          checks.length
            ? html`<ul class="checks">
                ${checks.map((check, index) => h(CheckLine, { key: String(index), check }))}
              </ul>`
            : null
        }
        ${
          inside.length
            ? html`<ul class="score-tree">
                ${inside.map((each, index) => h(Branch, { key: String(index), score: each, depth: depth + 1 }))}
              </ul>`
            : null
        }
        ${
          hasDetails &&
          html`<details class="score-details">
            <summary class="soft">Details</summary>
            ${h(JsonView, { text: JSON.stringify(score.details), open: 1, label: `Details of ${score.name}` })}
          </details>`
        }
        ${(score.exchanges ?? []).map(
          (id, index) => html`<a key=${id} href=${`#/x/${encodeURIComponent(id)}`}>
            The judge's request${(score.exchanges ?? []).length > 1 ? ` ${index + 1}` : ""}
          </a>`,
        )}
      </div>`
    }
  </li>`;
}

/** @param {{ check: Check, key?: string }} props */
function CheckLine({ check }) {
  return html`<li class=${check.passed ? "check-line passed" : "check-line failed"}>
    ${h(Mark, { standing: check.passed ? "passed" : "failed" })}
    <div>
      <p>${check.text}</p>
      ${check.evidence ? html`<p class="evidence soft">${check.evidence}</p>` : null}
    </div>
  </li>`;
}
