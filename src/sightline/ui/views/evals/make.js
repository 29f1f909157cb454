// @ts-check
/** “Make a case of this”: proposes a recorded exchange as a case, which the user edits and saves in a suite. */

import { countOf } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { Editor } from "../../kit/editor.js";
import { onValue } from "../../kit/fields.js";
import { toast } from "../../kit/toast.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { fileNamed } from "./core/case.js";
import { makeCase, saveMade } from "./feed.js";

/** @import { Made } from "./feed.js" */
/** @typedef {{ message: string, hint?: string }} Refusal */

const NEW = "\0new";
/** Where the last case went: the next one is likely to belong there too. */
let lastFile = "";

/** @param {{ exchanges: readonly string[], onClose: () => void }} props */
export function MakeCase({ exchanges, onClose }) {
  const [made, setMade] = useState(/** @type {Made | null} */ (null));
  const [text, setText] = useState("");
  const [fromTurn, setFromTurn] = useState(/** @type {number | null} */ (null));
  const [suite, setSuite] = useState("");
  const [name, setName] = useState("");
  const [isSaving, setSaving] = useState(false);
  const [refusal, setRefusal] = useState(/** @type {Refusal | null} */ (null));
  /** Which proposal was asked for last: an older one that comes late is not taken. */
  const latest = useRef(0);
  const saving = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const propose = async (/** @type {number | null} */ turn) => {
    const own = (latest.current += 1);
    try {
      const response = await makeCase(exchanges, turn);
      if (own !== latest.current) return;
      if (made && text !== made.yaml) {
        const [before, beforeTurn] = [text, fromTurn];
        toast("The text was proposed again.", {
          action: {
            label: "Undo",
            run: () => {
              setText(before);
              setFromTurn(beforeTurn);
            },
          },
        });
      }
      setMade(response);
      setText(response.yaml);
      setFromTurn(turn);
      setRefusal(null);
      setSuite((now) => now || (response.suites.includes(lastFile) ? lastFile : response.suites[0]) || NEW);
    } catch (error) {
      if (own === latest.current) setRefusal(/** @type {Refusal} */ (error));
    }
  };
  useEffect(() => void propose(null), []);
  const file = suite === NEW ? fileNamed(name) : suite;
  const save = async () => {
    if (!file || isSaving) return;
    setSaving(true);
    try {
      const saved = await saveMade(file, text, exchanges, fromTurn);
      lastFile = saved.file;
      onClose();
      toast(`The case is in ${saved.file}.`, { hint: `Run it: sightline eval run ${saved.file}` });
    } catch (error) {
      setRefusal(/** @type {Refusal} */ (error));
      setSaving(false);
    }
  };
  // Escape out of a text that was changed does not throw it away.
  const leave = () => (text === made?.yaml ? onClose() : saving.current?.focus());
  const footer = html`<button
      type="button"
      ref=${saving}
      class="button primary"
      disabled=${!made || !file || isSaving}
      onClick=${() => void save()}
    >
      ${isSaving ? "Saving…" : "Save"}
    </button>
    <button type="button" class="button quiet" onClick=${onClose}>Cancel</button>
    <span class="shell-gap"></span>
    <span class="soft cut">${file ? html`to <code>${file}</code>` : "Name the file first."}</span>`;
  return h(Dialog, {
    title: "Make a case of this",
    class: "make-dialog",
    isKept: true,
    onClose,
    footer,
    children: html`${
      refusal ? html`<p class="refusal" role="alert">${refusal.message} ${refusal.hint ?? ""}</p>` : null
    }
      ${
        made
          ? html`<div class="make-choices">
                ${h(Beginning, { turns: made.turns, value: fromTurn, onChange: (turn) => void propose(turn) })}
                ${h(SuiteChoice, { suites: made.suites, suite, name, onSuite: setSuite, onName: setName })}
              </div>
              <div class="make-editor">
                ${h(Editor, {
                  value: text,
                  label: "The case as YAML",
                  language: "text",
                  onChange: setText,
                  onDone: leave,
                })}
              </div>
              ${h(About, { made })}`
          : refusal
            ? null
            : html`<p class="soft" role="status">Loading…</p>`
      }`,
  });
}

/** @param {{ turns: number, value: number | null, onChange: (turn: number | null) => void }} props */
function Beginning({ turns, value, onChange }) {
  return html`<label class="edit-field">
    <span class="soft">Begins</span>
    <select
      class="field"
      value=${value ?? ""}
      onChange=${(/** @type {Event} */ event) => {
        const chosen = /** @type {HTMLSelectElement} */ (event.target).value;
        onChange(chosen ? Number(chosen) : null);
      }}
    >
      <option value="">with the last request, as it was sent</option>
      ${Array.from(
        { length: turns },
        (_, place) => html`<option key=${place} value=${place + 1}>
          ${place ? `live from turn ${place + 1} on; what was said before is fixed` : "live from the first turn on"}
        </option>`,
      )}
    </select>
  </label>`;
}

/**
 * @param {{ suites: readonly string[], suite: string, name: string, onSuite: (suite: string) => void, onName: (name:
 *   string) => void }} props
 */
function SuiteChoice({ suites, suite, name, onSuite, onName }) {
  return html`<label class="edit-field">
      <span class="soft">Suite</span>
      <select
        class="field"
        value=${suite}
        onChange=${onValue(onSuite)}
      >
        ${suites.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}
        <option value=${NEW}>A new file…</option>
      </select>
    </label>
    ${
      suite === NEW &&
      html`<label class="edit-field">
        <span class="soft">Name of the file</span>
        <input
          class="field mono"
          value=${name}
          placeholder="support.yaml"
          spellcheck=${false}
          autocomplete="off"
          onInput=${onValue(onName)}
        />
      </label>`
    }`;
}

/** What was replaced, put beside, and left out. @param {{ made: Made }} props */
function About({ made }) {
  const placeholders = Object.entries(made.placeholders);
  const { left } = made;
  return html`<div class="make-about">
    ${
      placeholders.length
        ? html`<details class="fold-block" open=${placeholders.length <= 4}>
            <summary>
              <span class="fold-mark" aria-hidden="true"></span>
              <span class="fold-title">${countOf(placeholders.length, "placeholder")}</span>
              <span class="faint">for what is another each time</span>
            </summary>
            <dl class="fold-inside make-placeholders">
              ${placeholders.map(
                ([key, words]) => html`<div key=${key}>
                  <dt><code>{{ ${key} }}</code></dt>
                  <dd class="soft cut" title=${words}>${words}</dd>
                </div>`,
              )}
            </dl>
          </details>`
        : null
    }
    ${
      made.files.length
        ? html`<p class="soft">
            Beside the suite: ${made.files.map(
              (file, index) => html`${index ? ", " : ""}
                <code>${file}</code>`,
            )}
          </p>`
        : null
    }
    ${
      left.length
        ? html`<details class="fold-block" open>
            <summary>
              <span class="fold-mark" aria-hidden="true"></span>
              <span class="fold-title">Not in the case</span>
              <span class="faint number">${left.length}</span>
            </summary>
            <ul class="fold-inside make-left">
              ${left.map(
                (each, index) => html`<li key=${index}>
                  ${each.what}: <span class="soft">${each.why}</span>
                </li>`,
              )}
            </ul>
          </details>`
        : null
    }
  </div>`;
}
