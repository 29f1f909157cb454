// @ts-check
/** Opens a request from a file or the clipboard in the editor. It is held, and sent only when the user sends it. */

import { about } from "../../kit/about.js";
import { post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { Dialog } from "../../kit/dialog.js";
import { onValue, textField } from "../../kit/fields.js";
import { toExchange } from "../../kit/navigation.js";
import { h, html, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { missingFrom, readDocument } from "./core/documents.js";

/** @param {{ onClose: () => void }} props */
export function OpenDocument({ onClose }) {
  const [text, setText] = useState("");
  const [dialect, setDialect] = useState("");
  const [model, setModel] = useState("");
  const [problem, setProblem] = useState("");
  const [isOpening, setOpening] = useState(false);
  const file = useRef(/** @type {HTMLInputElement | null} */ (null));
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useLayoutEffect(() => area.current?.focus(), []); // the dialog is open by now: its own effect comes first
  const found = readDocument(text, about.value.dialects);
  const chosen = dialect || found?.dialect || "";
  const missing = missingFrom(text, chosen, model.trim() || found?.model || "");
  const write = (/** @type {string} */ written) => {
    setText(written);
    setProblem("");
  };
  const read = async (/** @type {File | undefined} */ picked) => {
    if (picked) write(await picked.text());
  };
  const open = async () => {
    setOpening(true);
    try {
      const made = await post("/api/exchanges", { dialect: chosen, body: text, model: model.trim() });
      onClose();
      toExchange(made.id);
    } catch (error) {
      const { message, hint } = /** @type {{ message: string, hint?: string }} */ (error);
      setProblem([message, hint].filter(Boolean).join(". "));
      setOpening(false);
    }
  };
  return h(Dialog, {
    title: "Open a document",
    class: "open-document",
    width: 720,
    isKept: text !== "",
    onClose,
    footer: html`<span class="soft" role="status">${missing}</span>
      <span class="shell-gap"></span>
      ${button("Cancel", onClose)}
      ${button(isOpening ? "Opening…" : "Open in the editor", () => void open(), {
        kind: "primary",
        isDisabled: missing !== null || isOpening,
      })}`,
    children: html`
      <p class="soft">
        A request body of any dialect. It is held, so that you can edit it; nothing is sent until you send it.
      </p>
      <textarea
        ref=${area}
        class="field mono"
        aria-label="Request body"
        placeholder="Paste JSON here, or drop a file"
        spellcheck=${false}
        rows="10"
        value=${text}
        onInput=${onValue(write)}
        onDragOver=${(/** @type {DragEvent} */ event) => event.preventDefault()}
        onDrop=${(/** @type {DragEvent} */ event) => {
          event.preventDefault();
          void read(event.dataTransfer?.files[0]);
        }}
      ></textarea>
      <div class="open-document-row">
        <input
          ref=${file}
          class="unseen"
          type="file"
          accept=".json,application/json"
          tabindex="-1"
          aria-hidden="true"
          onChange=${(/** @type {Event} */ event) =>
            void read(/** @type {HTMLInputElement} */ (event.target).files?.[0])}
        />
        ${button("Choose a file…", () => file.current?.click())}
        <label class="field-label">
          Dialect
          <select class="field" value=${chosen} onChange=${onValue(setDialect)}>
            <option value="" disabled>choose</option>
            ${about.value.dialects.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
          </select>
        </label>
        <label class="field-label">
          Model
          ${textField(model, setModel, {
            isCode: true,
            list: "open-document-models",
            placeholder: found?.model || "provider/model",
          })}
          <datalist id="open-document-models">
            ${about.value.models.map(
              (each) => html`<option
                key=${`${each.provider}/${each.id}`}
                value=${each.provider ? `${each.provider}/${each.id}` : each.id}
              ></option>`,
            )}
          </datalist>
        </label>
      </div>
      ${problem ? html`<p class="field-problem" role="alert">${problem}</p>` : null}`,
  });
}
