// @ts-check
/** A case as its suite's file has it: every value can be changed in its place, and the file keeps its comments. */

import { ApiError } from "../../api.js";
import { saveInSuite } from "../../eval-feed.js";
import { pathOf, pathWords } from "../../state/evals-case.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";
import { Icon } from "../../widgets/icon.js";
import { JsonView } from "../../widgets/json-view.js";
import { toast, toastError } from "../../widgets/toast.js";

/** @import { Case } from "../../state/evals-case.js" */

/** @param {{ run: string, shown: Case, onRerun: () => void, onReload: () => void }} props */
export function Source({ run, shown, onRerun, onReload }) {
  const [changed, setChanged] = useState("");
  const [isStale, setStale] = useState(false);
  const text = useMemo(() => (shown.source ? JSON.stringify(shown.source) : ""), [shown.source]);
  const place = shown.place.file ? `${shown.place.file}${shown.place.line ? `:${shown.place.line}` : ""}` : "";
  /** @param {string} pointer @param {unknown} value */
  const save = async (pointer, value) => {
    const path = pathOf(shown.source, pointer);
    try {
      await saveInSuite(run, { case: shown.case, path, value, sha256: shown.source_sha256 });
      setChanged(pathWords(path));
      setStale(false);
      toast(`${pathWords(path)} is saved in ${shown.place.file || "the suite"}.`);
      onReload();
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) setStale(true);
      else toastError(error);
    }
  };
  if (!place && !text) return null;
  return html`<section class="case-source" aria-label="In the suite">
    <h2>In the suite ${place ? html`<code class="soft">${place}</code>` : null}</h2>
    ${isStale ? html`<p class="note" role="alert">${h(Icon, { name: "warn" })}The file was changed in the meantime, so that nothing was saved. <button type="button" class="button" onClick=${() => { setStale(false); onReload(); }}>Load it again</button></p>` : null}
    ${changed ? html`<p class="note" role="status"><code>${changed}</code> was changed; what is shown of this run is from before. <button type="button" class="button" onClick=${onRerun}>${h(Icon, { name: "replay" })}Run it again</button></p>` : null}
    ${text ? html`<p class="faint">Click a value to change it. It is written into the file, which keeps its comments and its form.</p>${h(JsonView, { text, open: 3, label: "The case in the suite", onSet: (pointer, value) => void save(pointer, value) })}` : null}
  </section>`;
}
