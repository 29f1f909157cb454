// @ts-check
/** What all that the filter takes adds up to, above the list; and what is folded away. */

import { aboutCosts, countOf, short, sumOfCosts, whole } from "../../kit/core/format.js";
import { go } from "../../kit/navigation.js";
import { html } from "../../vendor/preact.js";
import { foldedEvals, showEvals, showsEvals, sums } from "./feed.js";

/** @param {{ filter: string }} props */
export function Totals({ filter }) {
  const found = sums.value;
  const folded = foldedEvals.value;
  if (!found || (!found.requests && !folded && !showsEvals.value)) return null;
  const share = found.input_tokens ? Math.round((100 * found.cached_tokens) / found.input_tokens) : 0;
  return html`<div class="traffic-totals number" role="status" aria-label="Totals">
    <span><b>${whole(found.requests)}</b> ${found.requests === 1 ? "request" : "requests"}</span>
    ${
      found.failed
        ? html`<button
            type="button"
            class="link bad"
            title="Show only these"
            onClick=${() => go({ view: "traffic", filter: filter ? `(${filter}) & state:failed` : "state:failed" })}
          >
            ${whole(found.failed)} failed
          </button>`
        : html`<span class="faint">none failed</span>`
    }
    <span title=${`${whole(found.input_tokens)} tokens in, ${whole(found.cached_tokens)} cached`}>
      <b>${short(found.input_tokens)}</b> tokens in${found.cached_tokens ? `, ${share} % cached` : ""}
    </span>
    <span title=${`${whole(found.output_tokens)} tokens out`}><b>${short(found.output_tokens)}</b> out</span>
    <span title=${aboutCosts(found) || null}><b>${sumOfCosts(found)}</b> cost</span>
    ${
      folded || showsEvals.value
        ? html`<button
            type="button"
            class="link"
            aria-pressed=${showsEvals.value}
            onClick=${() => showEvals(!showsEvals.value)}
          >
            ${showsEvals.value ? "Hide requests of evals" : `Show ${countOf(folded, "request")} of evals`}
          </button>`
        : null
    }
  </div>`;
}
