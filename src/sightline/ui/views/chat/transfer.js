// @ts-check
/** Import and export of chats. What an import would add is counted before anything is imported. */

import { bytes, upload } from "../../kit/api.js";
import { button, iconButton, linkButton } from "../../kit/button.js";
import { countOf, whole } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { saveBlob } from "../../kit/download.js";
import { checkbox } from "../../kit/fields.js";
import { foldBlock } from "../../kit/fold-block.js";
import { attempt, toast } from "../../kit/toast.js";
import { h, html, useRef, useState } from "../../vendor/preact.js";
import { inChat } from "./chats.js";
import { formatBytes } from "./core/attachments.js";
import { view, viewId } from "./feed.js";

/** @typedef {import("../../api-types.d.ts").ImportShown} Counted */
/**
 * @typedef {{ file: File, state: "reading" | "ready" | "importing" | "done" | "failed", report: Counted | null,
 *   problem: string }} Candidate
 */

const LARGEST = 200 * 1024 * 1024;
const FORMATS = /** @type {Record<string, string>} */ ({
  chatgpt: "ChatGPT export",
  claude: "Claude export",
  maichat: "MaiChat JSON",
  sightline: "Sightline JSON",
  markdown: "Markdown",
});
const MOST_PROBLEMS = 20;

/** @param {{ onClose: () => void }} props */
export function ImportDialog({ onClose }) {
  const [list, setList] = useState(/** @type {Candidate[]} */ ([]));
  const [isOver, setOver] = useState(false);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const change = (/** @type {File} */ file, /** @type {Partial<Candidate>} */ to) =>
    setList((now) => now.map((each) => (each.file === file ? { ...each, ...to } : each)));
  const look = async (/** @type {File} */ file) => {
    try {
      if (file.size > LARGEST)
        throw new Error(`It has ${formatBytes(file.size)}; ${formatBytes(LARGEST)} are the most.`);
      change(file, { state: "ready", report: await upload(addressOf(file, true), file) });
    } catch (error) {
      change(file, { state: "failed", problem: wordsOf(error) });
    }
  };
  const add = (/** @type {readonly File[]} */ more) => {
    setList((now) => [
      ...now,
      ...more.map((file) => /** @type {Candidate} */ ({ file, state: "reading", report: null, problem: "" })),
    ]);
    for (const file of more) void look(file);
  };
  const ready = list.filter((each) => each.state === "ready" && (each.report?.pairs ?? 0) > 0);
  const pairs = ready.reduce((sum, each) => sum + (each.report?.pairs ?? 0), 0);
  const isBusy = list.some((each) => each.state === "reading" || each.state === "importing");
  const take = async () => {
    let taken = 0;
    for (const { file } of ready) {
      change(file, { state: "importing" });
      try {
        const report = await upload(addressOf(file, false), file);
        taken += report.pairs;
        change(file, { state: "done", report });
      } catch (error) {
        change(file, { state: "failed", problem: wordsOf(error) });
      }
    }
    if (taken) toast(`${countOf(taken, "pair")} imported.`);
  };
  /** @param {DragEvent} event */
  const dropped = (event) => {
    event.preventDefault();
    setOver(false);
    add([...(event.dataTransfer?.files ?? [])]);
  };
  return h(Dialog, {
    title: "Import chats",
    isKept: list.length > 0,
    onClose,
    footer: html`<span class="shell-gap"></span>
      ${button(list.some((each) => each.state === "done") ? "Close" : "Cancel", onClose)}
      ${button(pairs ? `Import ${countOf(pairs, "pair")}` : "Import", () => void take(), {
        kind: "primary",
        isDisabled: !pairs || isBusy,
      })}`,
    children: html`
      <p class="soft">
        Exports of ChatGPT (
        <code>conversations.json</code>
        ) and Claude, MaiChat and Sightline JSON, and Markdown. Pairs that are already here are skipped.
      </p>
      <div
        class=${isOver ? "drop-place is-over" : "drop-place"}
        onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true))}
        onDragLeave=${() => setOver(false)}
        onDrop=${dropped}
      >
        <input
          ref=${input}
          class="unseen"
          type="file"
          multiple
          accept=".json,.jsonl,.md,.markdown,.txt,application/json,text/markdown"
          tabindex="-1"
          aria-hidden="true"
          onChange=${(/** @type {Event} */ event) => {
            const field = /** @type {HTMLInputElement} */ (event.target);
            add([...(field.files ?? [])]);
            field.value = "";
          }}
        />
        <p>
          Drop files here, or ${linkButton("choose them", () => input.current?.click())}.
        </p>
        <p class="faint">Nothing is imported until you confirm.</p>
      </div>
      ${
        list.length
          ? html`<ul class="import-list stacked" aria-label="Files">
              ${list.map((each, index) =>
                h(ImportRow, {
                  key: String(index),
                  candidate: each,
                  onRemove: () => setList(list.filter((other) => other !== each)),
                }),
              )}
            </ul>`
          : null
      }`,
  });
}

/** @param {File} file @param {boolean} isDry */
function addressOf(file, isDry) {
  return inChat(`/api/chat/import?${new URLSearchParams({ name: file.name, dry_run: isDry ? "1" : "0" })}`);
}

/** @param {unknown} error */
function wordsOf(error) {
  const { message, hint } = /** @type {{ message?: string, hint?: string }} */ (error);
  return [message ?? String(error), hint].filter(Boolean).join(" ");
}

/** @param {{ candidate: Candidate, onRemove: () => void, key?: string }} props */
function ImportRow({ candidate, onRemove }) {
  const { file, state, report, problem } = candidate;
  const words = { reading: "reading…", ready: "", importing: "importing…", done: "imported", failed: "" }[state];
  const problems = report?.problems ?? [];
  return html`<li class=${`import-row boxed ${state}`}>
    <div class="import-head in-row">
      <b class="cut">${file.name}</b>
      <span class="faint number">${formatBytes(file.size)}</span>
      <span class="shell-gap"></span>
      ${words ? html`<span class=${state === "done" ? "good" : "soft pulse"} role="status">${words}</span>` : null}
      ${(state === "ready" || state === "failed") && iconButton("close", `Leave out ${file.name}`, onRemove)}
    </div>
    ${
      report &&
      html`<p class="number soft">
        ${FORMATS[report.format] ?? report.format}: ${countOf(report.pairs, "pair")}
        ${report.topics ? `, ${countOf(report.topics, "topic")}` : ""}
        ${report.skipped ? `; ${whole(report.skipped)} skipped` : ""}
      </p>`
    }
    ${problem ? html`<p class="bad" role="alert">${problem}</p>` : null}
    ${
      problems.length
        ? foldBlock(
            countOf(problems.length, "problem"),
            html`<ul class="fold-inside import-problems">
              ${problems.slice(0, MOST_PROBLEMS).map((each, index) => html`<li key=${index}>${each}</li>`)}
              ${
                problems.length > MOST_PROBLEMS &&
                html`<li class="faint">and ${whole(problems.length - MOST_PROBLEMS)} more</li>`
              }
            </ul>`,
          )
        : null
    }
  </li>`;
}

const KINDS = /** @type {const} */ ([
  ["markdown", "Markdown", "For reading. It can be imported again.", "md"],
  ["json", "JSON", "Everything about each pair, and the topics.", "json"],
  ["jsonl", "JSONL", "For fine-tuning: one conversation per line.", "jsonl"],
]);

/** @param {{ onClose: () => void }} props */
export function ExportDialog({ onClose }) {
  const filter = view.value?.filter ?? "";
  const [kind, setKind] = useState(/** @type {string} */ ("markdown"));
  const [isAll, setAll] = useState(filter.trim() === "");
  const [isWhole, setWhole] = useState(false);
  const [isSaving, setSaving] = useState(false);
  const save = async () => {
    const query = new URLSearchParams({
      view: viewId,
      as: kind,
      filter: isAll ? "" : filter,
      whole_topics: isWhole ? "1" : "0",
    });
    const ending = KINDS.find(([name]) => name === kind)?.[3] ?? "txt";
    setSaving(true);
    const isDone = await attempt(async () => {
      const data = await bytes(inChat(`/api/chat/export?${query}`));
      saveBlob(new Blob([/** @type {any} */ (data)]), `chat.${ending}`);
    });
    if (isDone) onClose();
    else setSaving(false);
  };
  return h(Dialog, {
    title: "Export the chat",
    onClose,
    footer: html`<span class="shell-gap"></span>
      ${button("Cancel", onClose)}
      ${button(isSaving ? "Preparing…" : "Download", () => void save(), { kind: "primary", isDisabled: isSaving })}`,
    children: html`
      <fieldset class="choices">
        <legend>As</legend>
        ${KINDS.map(
          ([name, label, help]) => html`<label key=${name} class="choice">
            <input type="radio" name="export-kind" checked=${kind === name} onChange=${() => setKind(name)} />
            <span><b>${label}</b><span class="faint">${help}</span></span>
          </label>`,
        )}
      </fieldset>
      <fieldset class="choices">
        <legend>Which</legend>
        ${
          filter.trim() &&
          html`<label class="choice">
            <input type="radio" name="export-range" checked=${!isAll} onChange=${() => setAll(false)} />
            <span><b>What the filter shows</b><code class="faint cut">${filter}</code></span>
          </label>`
        }
        <label class="choice">
          <input type="radio" name="export-range" checked=${isAll} onChange=${() => setAll(true)} />
          <span><b>The whole chat</b></span>
        </label>
      </fieldset>
      ${
        kind === "jsonl" && checkbox("One conversation for each topic, instead of one for each pair", isWhole, setWhole)
      }`,
  });
}
