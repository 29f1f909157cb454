// @ts-check
/** The settings dialog. Each setting is saved when its field is left; a problem is shown at the field. */

import { get } from "../../kit/api.js";
import { button, linkButton } from "../../kit/button.js";
import { Dialog } from "../../kit/dialog.js";
import { selectField } from "../../kit/fields.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";
import { FIELDS, isUsual, read, USUAL, fieldText } from "./core/settings.js";
import { savePreferences, storedPreferences } from "./feed.js";

/** @import { ChatSettings, Field } from "./core/settings.js" */

/** @param {{ onClose: () => void }} props */
export function ChatSettingsDialog({ onClose }) {
  useEffect(() => void storedPreferences.refresh(), []);
  const kept = storedPreferences.value.value;
  const trouble = storedPreferences.trouble.value;
  const save = async (/** @type {Field} */ field, /** @type {unknown} */ value) => {
    // Another page may have set something else meanwhile: what is sent is the newest with this one change.
    const { settings } = await get("/api/chat/preferences");
    await savePreferences({ settings: { ...settings, [field.name]: value } });
  };
  return h(Dialog, {
    title: "Chat settings",
    width: 680,
    onClose,
    footer: html`<span class="faint">Changes are saved at once and apply to all open pages.</span>
      <span class="shell-gap"></span>
      ${button("Close", onClose)}`,
    children: html`
      ${trouble && html`<p class="refusal" role="alert">${trouble.message} ${trouble.hint}</p>`}
      ${
        kept
          ? html`<div class="settings">
              ${FIELDS.map((field) =>
                h(Setting, {
                  key: field.name,
                  field,
                  settings: { ...USUAL, ...kept.settings },
                  onSave: (/** @type {unknown} */ value) => save(field, value),
                }),
              )}
            </div>`
          : trouble
            ? null
            : html`<p class="faint">Loading…</p>`
      }`,
  });
}

/** @param {{ field: Field, settings: ChatSettings, onSave: (value: unknown) => Promise<void>, key?: string }} props */
function Setting({ field, settings, onSave }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const [problem, setProblem] = useState("");
  const [isSaved, setSaved] = useState(false);
  const id = `setting-${field.name}`;
  const value = typed ?? fieldText(settings[field.name]);
  const commit = async (/** @type {string} */ text) => {
    const meant = read(field, text);
    if ("problem" in meant) return setProblem(meant.problem);
    if (fieldText(meant.value) === fieldText(settings[field.name])) return (setTyped(null), setProblem(""));
    try {
      await onSave(meant.value);
      setTyped(null);
      setProblem("");
      setSaved(true);
      setTimeout(() => setSaved(false), 4000);
    } catch (error) {
      const { message, hint } = /** @type {Error & { hint?: string }} */ (error);
      setProblem([message, hint].filter(Boolean).join(" "));
    }
    return undefined;
  };
  /** @param {Event} event */
  const typing = (event) => (setTyped(/** @type {HTMLInputElement} */ (event.target).value), setProblem(""));
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key === "Enter" && field.kind !== "lines") (event.preventDefault(), void commit(value));
    else if (event.key === "Escape" && typed !== null)
      (event.preventDefault(), event.stopPropagation(), setTyped(null), setProblem(""));
  };
  const shared = { id, "aria-describedby": `${id}-help`, "aria-invalid": problem ? "true" : null };
  const written = { ...shared, value, onInput: typing, onBlur: () => void commit(value), onKeyDown: onKey };
  const control = () => {
    switch (field.kind) {
      case "switch":
        return html`<input
          type="checkbox"
          ...${shared}
          checked=${settings[field.name]}
          onChange=${(/** @type {Event} */ event) =>
            void commit(String(/** @type {HTMLInputElement} */ (event.target).checked))}
        />`;
      case "choice":
        return selectField(value, commit, field.choices, shared);
      case "lines":
        return html`<textarea class="field tall" rows="3" ...${written}></textarea>`;
      default:
        return html`<input class="field number setting-number" inputmode="decimal" ...${written} />`;
    }
  };
  return html`<div class=${`setting kind-${field.kind}`}>
    <label for=${id} class="setting-label">
      ${field.label}
      ${field.unit ? html` <span class="faint">${field.unit}</span>` : null}
    </label>
    <div class="setting-value in-row">
      ${control()}
      ${
        isUsual(settings, field.name) && typed === null
          ? null
          : linkButton(
              `usual${field.kind === "number" ? `: ${fieldText(USUAL[field.name])}` : ""}`,
              () => (setTyped(null), void commit(fieldText(USUAL[field.name]))),
              { title: `Back to ${fieldText(USUAL[field.name]) || "none"}` },
            )
      }
      <span class="good" role="status">${isSaved ? "saved" : ""}</span>
    </div>
    <p id=${`${id}-help`} class="setting-help faint">${field.help}</p>
    ${problem ? html`<p class="field-problem setting-problem" role="alert">${problem}</p>` : null}
  </div>`;
}
