// @ts-check
/** Marks for the state of a result; each has its own shape and word. */

import { html } from "../../vendor/preact.js";
import { MARKS, percent, formatScore } from "./core/evals.js";

/** @import { Standing, TargetLine } from "./core/evals.js" */

/** @param {Standing} standing */
export function toneOf(standing) {
  return standing.replace(" ", "-");
}

/** @param {{ standing: Standing, isNamed?: boolean }} props */
export function Mark({ standing, isNamed = false }) {
  return html`<span
    class=${`eval-mark ${toneOf(standing)}`}
    role=${isNamed ? null : "img"}
    aria-label=${isNamed ? null : standing}
    title=${standing}
  >
    <span aria-hidden="true">${MARKS[standing]}</span>
    ${isNamed ? ` ${standing}` : null}
  </span>`;
}

/** A share of passes and the mean beside it. @param {{ line: TargetLine }} props */
export function Rates({ line }) {
  return html`<span class="number">
    ${
      line.pass_rate === null
        ? html`<span class="faint">no score</span>`
        : html`<b>${percent(line.pass_rate)}</b> <span class="soft">passed</span>`
    }
    ${
      line.mean === null
        ? null
        : html` <span class="soft">
              · ${formatScore(line.mean)}
              ${line.stderr === null ? "" : ` ± ${formatScore(line.stderr)}`}
            </span>`
    }
  </span>`;
}
