// @ts-check
/** Answering by hand: the user writes the reply that the client gets. */

import { button } from "../../kit/button.js";
import { isJson } from "../../kit/core/json.js";
import { Editor } from "../../kit/editor.js";
import { selectField, textField } from "../../kit/fields.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { PanelHead } from "../../kit/notices.js";
import { toast } from "../../kit/toast.js";
import { h, html, useRef, useState } from "../../vendor/preact.js";

/** @import { Desk } from "./desk.js" */
/** @typedef {{ key: number, id: string, name: string, arguments: string }} Call */

/**
 * What an editor begins with. It is not given what was typed into it: by the time that comes round, more has been
 * typed.
 */
const NO_ARGUMENTS = "{}";
const FINISHES = ["stop", "length", "content_filter", "refusal"];

/** @param {{ desk: Desk, onClose: () => void }} props */
export function Answer({ desk, onClose }) {
  const text = useRef("");
  const [calls, setCalls] = useState(/** @type {Call[]} */ ([]));
  const [finish, setFinish] = useState("stop");
  const [problem, setProblem] = useState("");
  const tools =
    desk.sections.value
      .find((section) => section.kind === "tools")
      ?.parts.filter((part) => !part.deleted && part.name)
      .map((part) => String(part.name)) ?? [];
  const add = () =>
    setCalls([
      ...calls,
      {
        key: Date.now() + calls.length,
        id: `call_${Math.random().toString(36).slice(2, 12)}`,
        name: tools[0] ?? "",
        arguments: NO_ARGUMENTS,
      },
    ]);
  const change = (/** @type {number} */ key, /** @type {Partial<Call>} */ to) =>
    setCalls((now) => now.map((call) => (call.key === key ? { ...call, ...to } : call)));
  const send = async () => {
    const wrong = calls.find((call) => !call.name.trim() || !isJson(call.arguments));
    if (wrong)
      return setProblem(
        wrong.name.trim() ? `The arguments of ${wrong.name} are not JSON.` : "A call needs the name of a tool.",
      );
    const parts = [
      ...(text.current ? [{ type: "text", text: text.current }] : []),
      ...calls.map(({ id, name, arguments: args }) => ({ type: "tool_call", id, name, arguments: args })),
    ];
    if (!parts.length) return setProblem("Write some text or add a call.");
    setProblem("");
    const reply = { role: "assistant", parts, finish: calls.length ? "tool_calls" : finish };
    if (await desk.answer(reply)) {
      toast("Answered. The client has your reply.");
      onClose();
    }
    return undefined;
  };
  useShortcuts(
    "Answer by hand",
    [{ keys: "ctrl+enter", label: "Send the answer", run: () => void send(), whileTyping: true }],
    [calls, finish],
  );
  return html`<div class="answer">
    ${h(PanelHead, {
      title: "Answer by hand",
      about: "The request is not sent. The client gets this as the model's reply, in its own dialect.",
      onClose,
    })}
    <div class="answer-body stacked">
      <h3 class="field-label">Text</h3>
      ${h(Editor, {
        value: "",
        label: "Text of the reply",
        language: "markdown",
        isFocused: true,
        onChange: (typed) => (text.current = typed),
        onDone: onClose,
      })}
      ${calls.map(
        (call, index) => html`<fieldset key=${call.key} class="answer-call stacked">
          <legend>Tool call ${index + 1}</legend>
          <div class="answer-row in-row">
            <label>
              Tool ${textField(call.name, (value) => change(call.key, { name: value }), {
                kind: "mono",
                list: "known-tools",
              })}
            </label>
            <label>
              Id ${textField(call.id, (value) => change(call.key, { id: value }), { kind: "mono" })}
            </label>
            ${button("Remove", () => setCalls(calls.filter((each) => each.key !== call.key)), { kind: "quiet" })}
          </div>
          ${h(Editor, {
            value: NO_ARGUMENTS,
            label: `Arguments of call ${index + 1}`,
            language: "json",
            onChange: (typed) => change(call.key, { arguments: typed }),
          })}
          ${isJson(call.arguments) ? null : html`<p class="editing-refusal">Not JSON yet.</p>`}
        </fieldset>`,
      )}
      <datalist id="known-tools">${tools.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
      <div class="answer-foot in-row">
        ${button("Add a tool call", add, { icon: "plus" })}
        <label class="check">
          Ends with ${
            calls.length
              ? selectField("tool_calls", setFinish, ["tool_calls"], { disabled: true })
              : selectField(finish, setFinish, FINISHES)
          }
        </label>
        <span class="card-gap"></span>
        ${problem ? html`<span class="bad" role="alert">${problem}</span>` : null}
        ${button(desk.doing.value === "answer" ? "Sending…" : "Send this answer", () => void send(), {
          kind: "primary",
          keys: "ctrl+enter",
          isDisabled: desk.doing.value !== "",
        })}
      </div>
    </div>
  </div>`;
}
