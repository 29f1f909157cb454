// @ts-check
/** The dialog that asks for a name. */

import { h, html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { button } from "./button.js";
import { Dialog } from "./dialog.js";
import { textField } from "./fields.js";

/**
 * `about` stands above the field, and what `noteOf` says of the name below it. `onSave` closes the dialog, or returns
 * why the name was refused.
 * @param {{ title: string, verb: string, first?: string, about?: any, noteOf: (name: string) => any, width?: number,
 *   isOptional?: boolean, field?: Record<string, unknown>, onSave: (name: string) => Promise<string | void>,
 *   onClose: () => void }} props
 */
export function NameDialog({ title, verb, first = "", about, noteOf, width, isOptional, field = {}, onSave, onClose }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [name, setName] = useState(first);
  const [refusal, setRefusal] = useState("");
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  const rename = (/** @type {string} */ next) => {
    setName(next);
    setRefusal("");
  };
  const onSubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setRefusal((await onSave(name.trim())) ?? "");
  };
  return h(Dialog, {
    title,
    width,
    onClose,
    children: html`<form class="name-form stacked wraps" onSubmit=${onSubmit}>
      ${about ?? null}
      <label class="edit-field">
        <span class="soft">Name</span>
        ${textField(name, rename, { ref: input, autocomplete: "off", "aria-invalid": refusal !== "", ...field })}
      </label>
      ${refusal ? html`<p class="refusal" role="alert">${refusal}</p>` : noteOf(name.trim())}
      <div class="in-row">
        <button type="submit" class="button primary" disabled=${!isOptional && !name.trim()}>${verb}</button>
        ${button("Cancel", onClose, { kind: "quiet" })}
      </div>
    </form>`,
  });
}
