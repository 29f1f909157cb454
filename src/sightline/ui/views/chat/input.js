// @ts-check
/** The field for questions. Typing never waits for the server; the token estimate follows when the user pauses. */

import { about as server } from "../../kit/about.js";
import { put } from "../../kit/api.js";
import { button, linkButton } from "../../kit/button.js";
import { onValue } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { Menu } from "../../kit/menu.js";
import { toastError } from "../../kit/toast.js";
import { h, html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { cancel, choose, dialog, isPosting, isStepping, send, waitsFor } from "./actions.js";
import { AttachButton, AttachmentTray, attachmentsFrom, bringsFiles } from "./attachments.js";
import { inChat } from "./chats.js";
import { about } from "./core/chat.js";
import { isEmpty, items, replaces, size, text, write } from "./draft.js";
import { rows, sending, view } from "./feed.js";
import { INPUT, toCommand, toInput, toView } from "./modes.js";
import { isPanelOpen, showPanel } from "./panels.js";

export function pickModel() {
  dialog.value = {
    kind: "model",
    title: "The next question goes to",
    current: view.value?.model ?? "",
    onPick: (model) => void choose({ model }),
  };
}

export function pickTopicOfNext() {
  dialog.value = {
    kind: "topic",
    title: "The next question belongs to",
    current: view.value?.topic ?? "",
    onPick: (topic) => void choose({ topic }),
  };
}

/** Make the field as high as what is written in it, and not much higher than the window allows.
 * @param {HTMLTextAreaElement} field */
function fit(field) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, Math.max(innerHeight * 0.4, 80))}px`;
}

export function Input() {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [isOver, setOver] = useState(false);
  const words = text.value;
  const trouble = view.value?.tools_trouble ?? null;
  useLayoutEffect(() => {
    if (field.current) fit(field.current);
  }, [words]);
  useEffect(() => {
    const element = field.current;
    if (!element) return;
    let width = element.clientWidth;
    const sized = new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      fit(element);
    });
    sized.observe(element);
    return () => sized.disconnect();
  }, []);
  /** @param {DataTransfer | null} given */
  const attach = async (given) => {
    const more = await attachmentsFrom(given, items.value);
    if (more.length) write({ items: [...items.value, ...more] });
  };
  /** @param {ClipboardEvent} event */
  const pasted = (event) => {
    if (!bringsFiles(event.clipboardData) || event.clipboardData?.getData("text/plain")) return;
    event.preventDefault();
    void attach(event.clipboardData);
  };
  /** @param {DragEvent} event */
  const dropped = (event) => {
    setOver(false);
    if (!bringsFiles(event.dataTransfer)) return;
    event.preventDefault();
    void attach(event.dataTransfer);
  };
  /** @param {DragEvent} event */
  const over = (event) => {
    if (!bringsFiles(event.dataTransfer)) return;
    event.preventDefault();
    setOver(true);
  };
  return html`<section
    class=${isOver ? "chat-input is-over" : "chat-input"}
    aria-label="Your question"
    onDrop=${dropped}
    onDragOver=${over}
    onDragLeave=${() => setOver(false)}
  >
    ${replaces.value ? h(Replacing, {}) : null}
    ${
      trouble &&
      html`<div class="replacing in-row tools-trouble" role="alert">
        ${h(Icon, { name: "warn" })}
        <span>${trouble.message}. ${trouble.hint}</span>
      </div>`
    }
    ${
      items.value.length
        ? h(AttachmentTray, {
            items: items.value,
            onRemove: (index) => write({ items: items.value.filter((_, place) => place !== index) }),
          })
        : null
    }
    <textarea
      id=${INPUT}
      ref=${field}
      rows="1"
      dir="auto"
      aria-label="Question"
      aria-describedby="chat-estimate"
      placeholder=${
        waitsFor.value
          ? "The answer waits for you above"
          : sending.value
            ? "Keep writing while the answer arrives"
            : "Ask something"
      }
      value=${words}
      autocomplete="off"
      onInput=${onValue((value) => write({ text: value }))}
      onPaste=${pasted}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => onInputKey(event)}
    ></textarea>
    <div class="input-bar in-row">
      ${h(AttachButton, { items: items.value, onItems: (all) => write({ items: all }) })}
      ${h(Choices, {})}
      <span class="shell-gap"></span>
      ${h(Estimate, {})}
      ${button(html`<span>Preview</span>`, () => showPanel("preview"), {
        kind: "quiet preview-button",
        icon: "columns",
        name: "Preview of the request",
        title: "Preview of the request (p)",
        isPressed: isPanelOpen("preview"),
      })}
      ${h(SendButton, {})}
    </div>
  </section>`;
}

/** Keys of the input; what is not one of them is typed. @param {KeyboardEvent} event */
function onInputKey(event) {
  const field = /** @type {HTMLTextAreaElement} */ (event.target);
  const isControl = (event.ctrlKey || event.metaKey) && !event.altKey;
  const key = event.key.toLowerCase();
  if (event.isComposing) return;
  if (key === "enter" && !event.shiftKey && !event.altKey) void send();
  else if (key === "escape") onEscape();
  else if (isControl && key === "c" && field.selectionStart === field.selectionEnd && sending.value) void cancel();
  else if (isControl && !event.shiftKey && key === "u") {
    const start = field.value.lastIndexOf("\n", field.selectionStart - 1) + 1;
    field.setRangeText("", start, field.selectionStart, "end");
    write({ text: field.value });
  } else if (isControl && !event.shiftKey && key === "e") {
    const end = field.value.indexOf("\n", field.selectionEnd);
    const place = end < 0 ? field.value.length : end;
    field.setSelectionRange(place, place);
  } else if (isControl && key === "arrowup") toView();
  else if (isControl && key === "d") toCommand();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/** Stop the answer that is on its way; else give up the question that was to be asked again; else go to the history. */
function onEscape() {
  if (sending.value) void cancel();
  else if (replaces.value) write({ text: "", items: [], replaces: "" });
  else toView();
}

function Replacing() {
  const pair = rows.pair(replaces.value);
  return html`<div class="replacing in-row" role="status">
    ${h(Icon, { name: "replay" })}
    <span class="cut">
      Asked again as a new pair; the old one
      ${pair ? html`, <q>${pair.user_text.slice(0, 60)}</q>,` : ""} goes when you send.
    </span>
    ${linkButton(html`Cancel <kbd class="key">Esc</kbd>`, () => write({ text: "", items: [], replaces: "" }))}
  </div>`;
}

/** After a click one goes on writing, unless the screen is touched: a keyboard would cover half of it. */
function writeOn() {
  if (!matchMedia("(pointer: coarse)").matches) toInput();
}

/** The dialog of a choice gives the focus back to where it was before. @param {() => void} pick */
const thenWrite = (pick) => () => {
  writeOn();
  pick();
};

function Choices() {
  const shown = view.value;
  const topic = shown?.topic_path.length ? shown.topic_path.join(" › ") : "No topic";
  return html`<span class="chosen">
    <button
      type="button"
      class=${`button quiet cut topic-button ${shown?.topic_path.length ? "" : "is-unused"}`}
      aria-label=${`Topic: ${topic}`}
      title="Topic of the next question (T)"
      onClick=${thenWrite(pickTopicOfNext)}
    >
      ${h(Icon, { name: "folder" })}
      <span class="cut">${topic}</span>
    </button>
    <button
      type="button"
      class="button quiet cut"
      aria-label=${`Model: ${shown?.model || "Choose a model"}`}
      title=${`Model of the next question (Ctrl+M)${shown?.provider ? `, at ${shown.provider}` : ""}`}
      onClick=${thenWrite(pickModel)}
    >
      <span class="cut">${shown?.model || "Choose a model"}</span>
      ${h(Icon, { name: "down" })}
    </button>
    ${h(Tools, {})}
    ${
      shown?.inherited.toolsets.length
        ? button("Step", () => (isStepping.value = !isStepping.value), {
            kind: "quiet step",
            title: `Tools: ${shown.inherited.toolsets.join(", ")}. Step: each request of the tool loop waits for you`,
            isPressed: isStepping.value,
          })
        : null
    }
  </span>`;
}

/** Which tools the model may call, for the topic of the next question; without a topic, for the whole chat. */
function Tools() {
  const shown = view.value;
  const chosen = shown?.inherited.toolsets ?? [];
  const names = [...new Set([...(server.value.toolsets ?? []), ...chosen])].sort();
  const path = shown?.topic ? `/api/chat/topics/${encodeURIComponent(shown.topic)}` : "/api/chat/topics";
  const toggle = (/** @type {string} */ name) => {
    const toolsets = chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name];
    put(inChat(path), { toolsets }).catch(toastError);
    writeOn();
  };
  const unknown = {
    label: "No tools are configured",
    detail: "A table [tools.NAME] in sightline.toml adds some",
    run: () => {},
  };
  return h(Menu, {
    label: "Tools that the model may call",
    class: `button quiet tools-button ${chosen.length ? "" : "is-unused"}`,
    align: "left",
    children: html`${h(Icon, { name: "plug" })}<span class="cut">${chosen.join(", ") || "No tools"}</span>`,
    choices: names.length
      ? names.map((name) => ({ label: name, isChecked: chosen.includes(name), run: () => toggle(name) }))
      : [unknown],
  });
}

function Estimate() {
  const measured = size.value;
  return html`<span
    id="chat-estimate"
    class=${measured && !measured.fits ? "estimate number over" : "estimate number"}
    role="status"
    title=${measured?.line ?? ""}
  >
    ${measured ? about(measured) : ""}
    ${measured && !measured.fits ? " too long" : ""}
  </span>`;
}

/** The button goes with the question. */
function onSendClick() {
  void send();
  writeOn();
}

function SendButton() {
  const isBusy = Boolean(sending.value) || isPosting.value;
  if (isBusy) {
    return html`<span class="send-busy in-row">
      <button type="button" class="button send-button" aria-busy="true" disabled>
        <span class="thinking-badge">
          <i></i><i></i><i></i>${waitsFor.value || (view.value?.paused ? "waiting…" : "AI is thinking…")}
        </span>
      </button>
      ${button("Stop", cancel, { icon: "stop", title: "Stop the answer (Esc)" })}
    </span>`;
  }
  return button("Send", onSendClick, {
    kind: "primary send-button",
    icon: "send",
    title: "Send (Enter)",
    isDisabled: isEmpty(),
  });
}
