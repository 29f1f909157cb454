// @ts-check
/** Replay: send the request again, as it was, edited, or to several models, and compare the answers. */

import { about } from "../../kit/about.js";
import { bytes } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { countOf, duration, money } from "../../kit/core/format.js";
import { Editor } from "../../kit/editor.js";
import { textField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { JsonView } from "../../kit/json-view.js";
import { LongText, looksLikeJson } from "../../kit/long-text.js";
import { PanelHead } from "../../kit/notices.js";
import { useResource } from "../../kit/resource.js";
import { attempt } from "../../kit/toast.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { short } from "./core/budget.js";
import { followExchange } from "./reply.js";

/** @import { Desk } from "./desk.js" */
/** @typedef {{ id: string, label: string, isOwn: boolean }} Column */

/** @param {{ desk: Desk, onClose: () => void }} props */
export function Compare({ desk, onClose }) {
  const view = desk.view.value;
  const [columns, setColumns] = useState(
    /** @type {Column[]} */ ([
      { id: desk.id, label: view?.model ?? "", isOwn: true },
      ...(view?.replays ?? []).map((id) => ({ id, label: "", isOwn: false })),
    ]),
  );
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const [isSending, setSending] = useState(false);
  const [edited, setEdited] = useState(/** @type {string | null} */ (null));
  const typed = useRef("");
  const known = about.value.models;
  const add = async (/** @type {string} */ label, /** @type {{ model?: string, body?: string }} */ change) => {
    await attempt(async () => {
      const id = await desk.replay(change);
      setColumns((now) => [...now, { id, label, isOwn: false }]);
    });
  };
  const send = async () => {
    setSending(true);
    if (edited !== null) await add(`${view?.model ?? ""} (edited)`, { body: typed.current });
    else if (!chosen.length) await add(`${view?.model ?? ""} (again)`, {});
    else await Promise.all(chosen.map((model) => add(model, { model })));
    setSending(false);
  };
  const edit = async () => {
    if (edited !== null) return setEdited(null);
    await attempt(async () => {
      typed.current = new TextDecoder().decode(await bytes(`${desk.path}/body`));
      setEdited(typed.current);
    });
    return undefined;
  };
  return html`<div class="compare">
    ${h(PanelHead, { title: "Replay and compare", onClose })}
    <div class="compare-choice in-row">
      ${
        edited !== null
          ? null
          : h(Models, {
              models: known.map((each) => each.id),
              own: view?.model ?? "",
              chosen,
              onChange: setChosen,
              onSend: () => void send(),
            })
      }
      ${button(edited === null ? "Edit the body first" : "Use the recorded body", () => void edit(), {
        icon: "edit",
        isPressed: edited !== null,
      })}
      ${button(
        isSending
          ? "Sending…"
          : edited !== null
            ? "Send the edited body"
            : chosen.length
              ? `Send to ${countOf(chosen.length, "model")}`
              : "Send again unchanged",
        () => void send(),
        { kind: "primary", isDisabled: isSending },
      )}
    </div>
    ${
      edited !== null &&
      html`<div class="compare-editor">
        ${h(Editor, {
          value: edited,
          label: "Body to replay",
          language: "json",
          isFocused: true,
          onChange: (text) => (typed.current = text),
        })}
      </div>`
    }
    <div class="compare-columns">${columns.map((column) => h(Result, { key: column.id, column }))}</div>
  </div>`;
}

/**
 * Names are added by a comma, Enter, or leaving the field; Enter in the empty field sends.
 * @param {{ models: string[], own: string, chosen: string[], onChange: (models: string[]) => void, onSend: () =>
 *   void }} props
 */
function Models({ models, own, chosen, onChange, onSend }) {
  const [text, setText] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const add = (/** @type {string[]} */ names) => {
    const more = names.map((each) => each.trim()).filter((each) => each && !chosen.includes(each));
    if (more.length) onChange([...chosen, ...new Set(more)]);
  };
  const take = () => {
    add([text]);
    setText("");
  };
  const onText = (/** @type {string} */ words) => {
    const names = words.split(",");
    setText((names.pop() ?? "").trimStart());
    add(names);
  };
  const onEnter = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (text.trim()) take();
    else if (chosen.length) onSend();
  };
  return html`<div class="models in-row" role="group" aria-label="Models to send it to">
    ${chosen.map(
      (model) => html`<span key=${model} class="chip model">
        ${model}
        <button
          type="button"
          aria-label=${`Without ${model}`}
          onClick=${() => onChange(chosen.filter((each) => each !== model))}
        >
          ${h(Icon, { name: "close" })}
        </button>
      </span>`,
    )}
    ${textField(text, onText, {
      label: "Model",
      ref: field,
      list: "known-models",
      placeholder: chosen.length ? "another model" : "to other models: a, b, c",
      onKeyDown: onEnter,
      onBlur: take,
    })}
    <datalist id="known-models">
      ${models.filter((each) => each !== own).map((each) => html`<option key=${each} value=${each}></option>`)}
    </datalist>
  </div>`;
}

/** @param {{ column: Column, key?: string }} props */
function Result({ column }) {
  const path = /** @type {const} */ (`/api/exchanges/${encodeURIComponent(column.id)}`);
  const follow = followExchange(column.id);
  const { value: line, trouble } = useResource(`${path}?frames=0`, follow);
  const reply = /** @type {any} */ (useResource(`${path}/reply`, follow).value?.reply);
  const usage = reply?.usage ?? line?.tokens ?? {};
  const isOpen = line && ["received", "sending", "held"].includes(line.state);
  const cost = typeof line?.cost === "number" ? line.cost : null;
  const label = column.label || line?.model || "replay";
  return html`<section class="result boxed" aria-label=${label}>
    <header class="in-row">
      <b class="cut">${label}</b>
      ${column.isOwn ? html`<span class="chip">this one</span>` : null}
      <span class="card-gap"></span>
      <a href=${`#/x/${encodeURIComponent(column.id)}/reply`}>open</a>
    </header>
    <p class="result-facts in-row number soft">
      <span class=${`state-badge ${line?.state ?? "received"}`}>${line?.state ?? "…"}</span>
      ${line?.elapsed != null ? html`<span>${duration(line.elapsed)}</span>` : null}
      ${line?.first_byte != null && html`<span>first byte ${duration(line.first_byte)}</span>`}
      ${
        usage.output_tokens != null &&
        html`<span>${short(usage.input_tokens)} in, ${short(usage.output_tokens)} out</span>`
      }
      ${cost != null ? html`<span>${money(cost)}</span>` : null}
    </p>
    <div class="result-body stacked">
      ${trouble ? html`<p class="bad">${trouble.message}</p>` : null}
      ${(reply?.parts ?? []).map((/** @type {any} */ part, /** @type {number} */ index) =>
        part.type === "tool_call"
          ? html`<div key=${index} class="result-call">
              <b>calls ${part.name}</b>
              ${
                looksLikeJson(part.arguments ?? "")
                  ? h(JsonView, { text: part.arguments, open: 3 })
                  : html`<pre class="plain-text">${part.arguments}</pre>`
              }
            </div>`
          : part.type === "text"
            ? h(LongText, { key: String(index), text: part.text ?? "", isMarkdown: true, lines: 60 })
            : null,
      )}
      ${line?.fault?.message ? html`<p class="bad">${line.fault.message}</p>` : null}
      ${
        isOpen
          ? html`<p class="soft pulse">${line.state === "held" ? "held: open it to send it" : "arriving…"}</p>`
          : null
      }
    </div>
  </section>`;
}
