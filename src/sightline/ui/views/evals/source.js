// @ts-check
/** A case as the suite's file has it. Every value can be edited in place, and the file keeps its comments. */

import { JsonView } from "../../kit/json-view.js";
import { h, html, useMemo } from "../../vendor/preact.js";
import { pathOf, pathWords } from "./core/case.js";
import { saveInSuite } from "./feed.js";
import { SavingNote } from "./saving.js";

/** @import { Case } from "./core/case.js" */
/** @import { Saving } from "./saving.js" */

/** @param {{ run: string, shown: Case, saving: Saving, onRerun: () => void }} props */
export function Source({ run, shown, saving, onRerun }) {
  const text = useMemo(() => (shown.source ? JSON.stringify(shown.source) : ""), [shown.source]);
  const place = shown.place.file ? `${shown.place.file}${shown.place.line ? `:${shown.place.line}` : ""}` : "";
  /** @param {string} pointer @param {unknown} value */
  const save = (pointer, value) => {
    const path = pathOf(shown.source, pointer);
    void saving.propose({
      words: pathWords(path),
      write: (dry) => saveInSuite(run, { case: shown.case, path, value, sha256: shown.source_sha256, dry }),
    });
  };
  if (!place && !text) return null;
  return html`<section class="case-source" aria-label="In the suite">
    <h2>In the suite ${place ? html`<code class="soft">${place}</code>` : null}</h2>
    ${h(SavingNote, { saving, onRerun })}
    ${
      text
        ? html`<p class="faint">
              Click a value to change it. You see what changes in the file before it is written; comments and formatting
              are kept.
            </p>
            ${h(JsonView, { text, open: 3, label: "The case in the suite", onSet: save })}`
        : html`<p class="faint">
            It cannot be changed from here: the case no longer exists, or is outside the folder of suites.
          </p>`
    }
  </section>`;
}
