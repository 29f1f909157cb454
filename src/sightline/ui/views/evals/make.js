// @ts-check
/** “Make a case of this”: proposes a recorded exchange as a case, which the user edits and saves in a suite. */

import { post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { Editor } from "../../kit/editor.js";
import { onValue, selectField } from "../../kit/fields.js";
import { foldBlock } from "../../kit/fold-block.js";
import { toast } from "../../kit/toast.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { fileNamed } from "./core/case.js";
import { FileNameField, RunDialog } from "./suites.js";

/** @import { MadeShown } from "../../api-types.d.ts" */
/** @typedef {{ message: string, hint?: string }} Refusal */

const NEW = "\0new";
/** Where the last case went: the next one is likely to belong there too. */
let lastFile = "";
/** What a new file is called, unless the user has a better name. */
const USUAL = "recorded.yaml";

/** From this turn on a case is held live; without one, it is not. @param {number | null} turn */
const liveFrom = (turn) => (turn === null ? {} : { from_turn: turn });

/** @param {{ exchanges: readonly string[], onClose: () => void }} props */
export function MakeCase({ exchanges, onClose }) {
  const [made, setMade] = useState(/** @type {MadeShown | null} */ (null));
  const [text, setText] = useState("");
  const [fromTurn, setFromTurn] = useState(/** @type {number | null} */ (null));
  const [suite, setSuite] = useState("");
  const [name, setName] = useState(USUAL);
  const [contains, setContains] = useState("");
  const [isSaving, setSaving] = useState(false);
  const [toRun, setToRun] = useState("");
  const [refusal, setRefusal] = useState(/** @type {Refusal | null} */ (null));
  /** Which proposal was asked for last: an older one that comes late is not taken. */
  const latest = useRef(0);
  /** The text as it is now, and the proposal under way: the text is saved once that has arrived. */
  const written = useRef("");
  const proposing = useRef(Promise.resolve());
  const saving = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const propose = async (/** @type {number | null} */ turn, /** @type {string} */ words) => {
    const own = (latest.current += 1);
    try {
      const response = await post("/api/evals/make", { exchanges, contains: words, ...liveFrom(turn) });
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
      written.current = response.yaml;
      setFromTurn(turn);
      setRefusal(null);
      setSuite((now) => now || (response.suites.includes(lastFile) ? lastFile : response.suites[0]) || NEW);
    } catch (error) {
      if (own === latest.current) setRefusal(/** @type {Refusal} */ (error));
    }
  };
  const begin = (/** @type {number | null} */ turn, /** @type {string} */ words = contains) =>
    void (proposing.current = propose(turn, words));
  useEffect(() => begin(null), []);
  written.current = text;
  const file = suite === NEW ? fileNamed(name) : suite;
  const save = async (/** @type {boolean} */ isRun) => {
    if (!file || isSaving) return;
    setSaving(true);
    try {
      await proposing.current;
      const saved = await post("/api/evals/save", { file, yaml: written.current, exchanges, ...liveFrom(fromTurn) });
      lastFile = saved.file;
      toast(`The case is in ${saved.file}.`, { hint: `At a terminal: sightline eval run ${saved.file}` });
      if (isRun) setToRun(saved.file);
      else onClose();
    } catch (error) {
      setRefusal(/** @type {Refusal} */ (error));
      setSaving(false);
    }
  };
  // Escape out of a text that was changed does not throw it away.
  const leave = () => (text === made?.yaml ? onClose() : saving.current?.focus());
  const footer = html`<span class="soft cut">
      ${file ? html`to <code>${file}</code>` : "Name the file first."}
    </span>
    <span class="shell-gap"></span>
    ${button("Cancel", onClose)}
    ${button(isSaving ? "Saving…" : "Save", () => void save(false), {
      kind: "primary",
      isDisabled: !made || !file || isSaving,
      ref: saving,
    })}
    ${button("Save and run…", () => void save(true), { isDisabled: !made || !file || isSaving })}`;
  if (toRun) return h(RunDialog, { file: toRun, onClose, onDone: onClose });
  return h(Dialog, {
    title: "Make a case of this",
    class: "make-dialog",
    width: 820,
    isKept: true,
    onClose,
    footer,
    children: html`${
      refusal ? html`<p class="refusal" role="alert">${refusal.message} ${refusal.hint ?? ""}</p>` : null
    }
      ${
        made
          ? html`<div class="make-choices">
                ${h(Beginning, { turns: made.turns, value: fromTurn, onChange: begin })}
                ${h(SuiteChoice, { suites: made.suites, suite, name, onSuite: setSuite, onName: setName })}
              </div>
              ${
                fromTurn === null &&
                h(Check, {
                  text,
                  value: contains,
                  onChange: (words) => {
                    setContains(words);
                    begin(fromTurn, words);
                  },
                })
              }
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
    ${selectField(String(value ?? ""), (chosen) => onChange(chosen ? Number(chosen) : null), [
      ["", "with the last request"],
      ...Array.from({ length: turns }, (_, place) => {
        const words = place ? `live from turn ${place + 1} on` : "live from the first turn on";
        return /** @type {[string, string]} */ ([String(place + 1), words]);
      }),
    ])}
  </label>`;
}

/**
 * What a good answer is recognised by: words that it has, or the judgement of a model.
 * @param {{ text: string, value: string, onChange: (words: string) => void }} props
 */
function Check({ text, value, onChange }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  return html`<label class="edit-field make-check">
    <span class="soft">A good answer contains</span>
    <input
      ref=${field}
      class="field"
      value=${value}
      placeholder="words, or nothing"
      autocomplete="off"
      onChange=${onValue(onChange)}
    />
    <span class="faint">
      ${
        /^\s*assertions:/m.test(text)
          ? "The assertions below grade it."
          : "Without words, a judge model compares the answer with the recorded one."
      }
    </span>
  </label>`;
}

/**
 * @param {{ suites: readonly string[], suite: string, name: string, onSuite: (suite: string) => void, onName: (name:
 *   string) => void }} props
 */
function SuiteChoice({ suites, suite, name, onSuite, onName }) {
  return html`<label class="edit-field">
      <span class="soft">Suite</span>
      ${selectField(suite, onSuite, [...suites, [NEW, "A new file…"]])}
    </label>
    ${suite === NEW && h(FileNameField, { name, onName })}`;
}

/** What was replaced, put beside, and left out. @param {{ made: MadeShown }} props */
function About({ made }) {
  const placeholders = Object.entries(made.placeholders);
  const { left } = made;
  return html`<div class="make-about stacked">
    ${
      placeholders.length
        ? foldBlock(
            countOf(placeholders.length, "placeholder"),
            html`<dl class="fold-inside make-placeholders">
              ${placeholders.map(
                ([key, words]) => html`<div key=${key}>
                  <dt><code>{{ ${key} }}</code></dt>
                  <dd class="soft cut" title=${words}>${words}</dd>
                </div>`,
              )}
            </dl>`,
            {
              isOpen: placeholders.length <= 4,
              aside: html`<span class="faint">for values that change each time</span>`,
            },
          )
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
        ? foldBlock(
            "Not in the case",
            html`<ul class="fold-inside make-left wraps">
              ${left.map(
                (each, index) => html`<li key=${index}>
                  ${each.what}: <span class="soft">${each.why}</span>
                </li>`,
              )}
            </ul>`,
            { isOpen: true, aside: html`<span class="faint number">${left.length}</span>` },
          )
        : null
    }
  </div>`;
}
