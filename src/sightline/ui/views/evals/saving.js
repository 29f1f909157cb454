// @ts-check
/**
 * A change to a suite's file: shown as a diff before it is written, and undone as long as nothing else wrote to the
 * file.
 */

import { ApiError, post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { Dialog } from "../../kit/dialog.js";
import { Icon } from "../../kit/icon.js";
import { JsonView } from "../../kit/json-view.js";
import { LineDiff } from "../../kit/line-diff.js";
import { toast, toastError } from "../../kit/toast.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";
import { pathFrom, pathWords } from "./core/case.js";
import { pathOf } from "./feed.js";

/** @import { Case } from "./core/case.js" */
/** @import { SavedShown as Saved } from "../../api-types.d.ts" */
/**
 * `words` name what is changed; `write` writes it, or tells what it would write.
 * @typedef {{ words: string, write: (dry: boolean) => Promise<Saved> }} Proposal
 */
/** @typedef {ReturnType<typeof useSaving>} Saving */

/** @param {string} run @param {string} name @param {() => void} onReload */
export function useSaving(run, name, onReload) {
  const [asked, setAsked] = useState(/** @type {{ proposal: Proposal, saved: Saved } | null} */ (null));
  const [done, setDone] = useState(/** @type {{ words: string, saved: Saved } | null} */ (null));
  const [isStale, setStale] = useState(false);
  const [isBusy, setBusy] = useState(false);
  /** @template T @param {() => Promise<T>} what @returns {Promise<T | null>} */
  const tried = async (what) => {
    setBusy(true);
    try {
      return await what();
    } catch (error) {
      if (error instanceof ApiError && error.status === 409 && /changed since/.test(error.message)) setStale(true);
      else toastError(error);
      return null;
    } finally {
      setBusy(false);
    }
  };
  const propose = async (/** @type {Proposal} */ proposal) => {
    const saved = await tried(() => proposal.write(true));
    if (saved) setAsked({ proposal, saved });
  };
  const undo = async () => {
    const { file, sha256 } = done?.saved ?? {};
    if (!sha256 || !(await tried(() => post(`${pathOf(run)}/case/undo`, { case: name, sha256 })))) return;
    setDone(null);
    toast(`${file} is as it was.`);
    onReload();
  };
  const accept = async () => {
    const proposal = asked?.proposal;
    const saved = proposal ? await tried(() => proposal.write(false)) : null;
    setAsked(null);
    if (!proposal || !saved) return;
    setDone({ words: proposal.words, saved });
    setStale(false);
    toast(`${proposal.words} is saved in ${saved.file}.`);
    onReload();
  };
  return {
    propose,
    accept,
    undo,
    asked,
    done,
    isStale,
    isBusy,
    refuse: () => setAsked(null),
    reload: () => {
      setStale(false);
      onReload();
    },
  };
}

/** What would be written, line by line. @param {{ saving: Saving }} props */
export function SaveDialog({ saving }) {
  const { asked, isBusy } = saving;
  if (!asked) return null;
  const { file, change } = asked.saved;
  const footer = html`${button("Cancel", saving.refuse)}
    ${button(isBusy ? "Saving…" : "Save", () => void saving.accept(), {
      kind: "primary",
      isDisabled: isBusy,
      hasFocus: true,
    })}`;
  return h(Dialog, {
    title: "Save in the suite",
    width: 760,
    onClose: saving.refuse,
    footer,
    children: html`<p class="soft">
        This is what changes in <code>${file}</code>
        ${change ? ` from line ${change.line} on` : ""}; everything else stays byte for byte.
      </p>
      ${change ? html`<div class="save-diff boxed">${h(LineDiff, withoutLastEnd(change))}</div>` : null}`,
  });
}

/**
 * The end of the last line, where both have it, would look like a line of its own.
 * @param {{ before: string, after: string }} change
 */
function withoutLastEnd({ before, after }) {
  return before.endsWith("\n") && after.endsWith("\n")
    ? { before: before.slice(0, -1), after: after.slice(0, -1) }
    : { before, after };
}

/** How the file stands after a change. @param {{ saving: Saving, onRerun: () => void }} props */
function SavingNote({ saving, onRerun }) {
  const { done, isStale, isBusy } = saving;
  return html`${
    isStale &&
    html`<p class="note" role="alert">
      ${h(Icon, { name: "warn" })} The file was changed in the meantime, so that nothing was saved.${" "}
      ${button("Load it again", saving.reload)}
    </p>`
  }
    ${
      done &&
      html`<p class="note" role="status">
        <code>${done.words}</code> was changed in <code>${done.saved.file}</code>
        ; what is shown of this run is from before.${" "}
        ${button("Run it again", onRerun, { icon: "replay" })}${" "}
        ${button("Undo", () => void saving.undo(), { isDisabled: isBusy })}
      </p>`
    }`;
}

/**
 * A case as the suite's file has it. Every value can be edited in place, and the file keeps its comments.
 * @param {{ run: string, shown: Case, saving: Saving, onRerun: () => void }} props
 */
export function Source({ run, shown, saving, onRerun }) {
  const text = useMemo(() => (shown.source ? JSON.stringify(shown.source) : ""), [shown.source]);
  const place = shown.place.file ? `${shown.place.file}${shown.place.line ? `:${shown.place.line}` : ""}` : "";
  /** @param {string} pointer @param {unknown} value */
  const save = (pointer, value) => {
    const path = pathFrom(shown.source, pointer);
    void saving.propose({
      words: pathWords(path),
      write: (dry) =>
        post(`${pathOf(run)}/case/save`, { case: shown.case, path, value, sha256: shown.source_sha256, dry }),
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
