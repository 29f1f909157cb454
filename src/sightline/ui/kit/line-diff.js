// @ts-check
/** Two texts as one list of lines: removed, added, and unchanged around them. */

import { html, useMemo, useState } from "../vendor/preact.js";
import { lineDiff } from "./core/text-diff.js";
import { memo } from "./memo.js";

/** @import { Span } from "./core/text-diff.js" */

const MOST_ROWS = 400;
const SIGNS = { same: " ", removed: "−", added: "+" };
const NAMES = { same: "", removed: "removed: ", added: "added: " };

export const LineDiff = memo(function LineDiff(/** @type {{ before: string, after: string }} */ { before, after }) {
  const [context, setContext] = useState(3);
  const [most, setMost] = useState(MOST_ROWS);
  const rows = useMemo(() => lineDiff(before, after, context), [before, after, context]);
  if (!rows.length) return html`<p class="faint line-diff-same">The texts are the same.</p>`;
  return html`<div class="line-diff" role="group" aria-label="Text difference">
    ${rows.slice(0, most).map((row, index) =>
      row.kind === "gap"
        ? html`<button key=${index} type="button" class="line-gap" onClick=${() => setContext(1e9)}>
            ⋯ ${row.count} lines that are the same
          </button>`
        : html`<div key=${index} class=${`line ${row.kind}`} dir="auto">
            <span class="line-sign" aria-hidden="true">${SIGNS[row.kind]}</span>
            <span class="unseen">${NAMES[row.kind]}</span>
            <span class="line-text">${row.spans.map(spanOf)}</span>
          </div>`,
    )}
    ${
      rows.length > most &&
      html`<button type="button" class="line-gap" onClick=${() => setMost(most + 5000)}>
        ${rows.length - most} more lines
      </button>`
    }
  </div>`;
});

/** @param {Span} span */
function spanOf(span) {
  return span.changed ? html`<mark>${span.text}</mark>` : span.text;
}
