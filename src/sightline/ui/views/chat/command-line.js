// @ts-check
/** The command line: the filter that selects the context, commands on the pairs it matches, and saved filters. */

import { download } from "../../kit/download.js";
import { FilterBox } from "../../kit/filter-box.js";
import { Icon } from "../../kit/icon.js";
import { Menu } from "../../kit/menu.js";
import { route } from "../../kit/navigation.js";
import { readStoredJson, store } from "../../kit/storage.js";
import { attempt, toast, toastError } from "../../kit/toast.js";
import { h, html, signal, useRef, useState } from "../../vendor/preact.js";
import { dialog, runCommand, tryCommand } from "./actions.js";
import { beginChat, ChatListButton } from "./chat-list.js";
import { chat, current, goToChat, inChat, isRefusal } from "./chats.js";
import { addToMemory, breakdown, counterText, hasCommand, stepThrough } from "./core/chat.js";
import { size } from "./draft.js";
import { changeView, preferences, savePreferences, view } from "./feed.js";
import { COMMAND, mode, toView } from "./modes.js";
import { panelChoices, showPanel } from "./panels.js";

/** @import { ApiError } from "../../kit/api.js" */
/** @import { CommandShown, ViewShown } from "../../api-types.d.ts" */
/** @import { Mode } from "./core/chat.js" */
/** @import { Choice } from "../../kit/menu.js" */

const SOURCE = { cursor: "cursor", placeholder: "Filter: t'AI...' & s>=2 · or a command: e :delete" };
const MEMORY = "chat.filters";

/** What the server said of the last line. */
export const refused = signal(/** @type {ApiError | null} */ (null));

/** Goes up with each line that was obeyed. */
const done = signal(0);

/** @type {Record<Mode, string>} */
const MODES = { view: "VIEW", input: "INPUT", command: "COMMAND" };

/** @returns {string[]} */
function memory() {
  const list = readStoredJson(MEMORY, "localStorage");
  return Array.isArray(list) ? list.filter((each) => typeof each === "string") : [];
}

/** To the history, unless the person has gone on to write a question meanwhile. */
function toHistory() {
  if (mode.value !== "input") toView();
}

/** Do what a line says. @param {string} text */
async function execute(text) {
  refused.value = null;
  try {
    if (hasCommand(text)) {
      const outcome = await tryCommand(text);
      done.value += 1;
      await applyOutcome(text, outcome);
    } else {
      await changeView({ filter: text.trim() });
      // A user who left meanwhile must not be brought back.
      if (route.value.view === "chat") goToChat(chat.value, view.value?.filter ?? text.trim());
      done.value += 1;
      toHistory();
    }
    store(MEMORY, JSON.stringify(addToMemory(memory(), text)));
  } catch (error) {
    if (isRefusal(error)) refused.value = error;
    else toastError(error);
  }
}

/** @param {string} text @param {CommandShown} outcome */
async function applyOutcome(text, outcome) {
  toHistory();
  if (outcome.hud != null) return showPanel("hud", outcome.hud);
  if (outcome.export) return download(outcome.export);
  if (outcome.compact)
    return void (outcome.compact.length
      ? (dialog.value = { kind: "compact", ids: [...outcome.compact] })
      : toast("The filter matches no pair.", { hint: "There is nothing to summarize." }));
  const isSure =
    outcome.confirm === false &&
    !outcome.needs_force &&
    !outcome.done &&
    outcome.count > 0 &&
    /--no-confirm\b/.test(text);
  if (isSure) return runCommand(text);
  dialog.value = { kind: "command", text, outcome };
  return undefined;
}

export function CommandLine() {
  const shown = view.value;
  const place = useRef({ at: -1, own: "" });
  const applied = shown?.filter ?? "";
  /** @param {KeyboardEvent} event @param {string} text @param {(text: string) => void} write */
  const onKey = (event, text, write) => {
    const isControl = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    const key = event.key.toLowerCase();
    if (["control", "meta", "alt", "shift"].includes(key)) return false;
    const by =
      (isControl && key === "p") || (event.altKey && key === "arrowup")
        ? -1
        : (isControl && key === "n") || (event.altKey && key === "arrowdown")
          ? 1
          : 0;
    if (by) {
      const list = memory();
      if (place.current.at < 0 || place.current.at > list.length) place.current = { at: list.length, own: text };
      place.current.at = stepThrough(list, place.current.at, by);
      write(list[place.current.at] ?? place.current.own);
      return true;
    }
    place.current.at = -1;
    if (isControl && key === "u") write("");
    else if (isControl && key === "s") save(text);
    else return false;
    return true;
  };
  return html`<div id=${COMMAND} class="command-line in-row" data-zone="command">
    ${h(ChatListButton, {})}${h(ModeMark, {})}
    ${h(FilterBox, {
      value: applied,
      refused: refused.value,
      isExecuted: true,
      source: { lookup: inChat("/api/chat/filter"), ...SOURCE },
      group: "Chat: anywhere",
      reset: done.value,
      onFilter: (text) => void execute(text),
      onLeave: toView,
      onKey,
    })}
    ${h(FilterMenu, { applied })}
    ${shown ? h(Counter, { view: shown }) : null}
    ${h(ChatMenu, {})}
  </div>`;
}

function ModeMark() {
  return html`<span class=${`mode-mark ${mode.value}`} role="status" aria-label=${`Mode: ${MODES[mode.value]}`}>
    ${MODES[mode.value]}
  </span>`;
}

/** @param {string} text @returns {void} */
function save(text) {
  if (!text.trim() || hasCommand(text))
    toast("There is no filter to save.", { hint: "Write one first; a command cannot be saved." });
  else dialog.value = { kind: "save", filter: text.trim() };
}

/** @param {{ applied: string }} props */
function FilterMenu({ applied }) {
  const list = preferences.value.saved_filters;
  /** @param {string} name */
  const forget = async (name) => {
    if (!(await attempt(() => savePreferences({ saved_filters: list.filter((each) => each.name !== name) })))) return;
    toast(`The filter @${name} is deleted.`, {
      action: { label: "Undo", run: () => void attempt(() => savePreferences({ saved_filters: list })) },
    });
  };
  /** @type {Choice[]} */
  const choices = [
    ...list.map((each) => ({
      label: `@${each.name}`,
      detail: each.filter,
      run: () => void goToChat(chat.value, `@${each.name}`),
    })),
    ...(list.length ? /** @type {Choice[]} */ (["line"]) : []),
    {
      label: "Save this filter…",
      detail: applied || "Nothing is filtered now",
      run: () => void save(applied),
      keys: "ctrl+s",
    },
    ...list.map((each) => ({ label: `Delete @${each.name}`, isDanger: true, run: () => void forget(each.name) })),
  ];
  return h(Menu, {
    label: "Saved filters",
    class: "button quiet icon",
    children: h(Icon, { name: "bookmark" }),
    choices,
  });
}

function ChatMenu() {
  /** @param {"topics" | "import" | "export" | "settings"} kind */
  const open = (kind) => () => void (dialog.value = { kind });
  /** @param {"rename-chat" | "delete-chat"} kind */
  const openOwn = (kind) => () => {
    if (current.value) dialog.value = { kind, brief: current.value };
  };
  return h(Menu, {
    label: "Chat",
    choices: [
      { label: "New chat", run: () => void beginChat(), keys: "alt+n" },
      { label: "Rename this chat…", run: openOwn("rename-chat") },
      { label: "Delete this chat…", isDanger: true, run: openOwn("delete-chat") },
      "line",
      { label: "Topics…", run: open("topics"), keys: "alt+shift+t" },
      { label: "Settings…", run: open("settings"), keys: "ctrl+," },
      ...panelChoices(),
      "line",
      { label: "Export…", run: open("export") },
      { label: "Import…", run: open("import") },
    ],
  });
}

/**
 * How many pairs are sent with the next question; hover or focus shows how that number came about.
 * @param {{ view: ViewShown }} props
 */
function Counter({ view }) {
  const [isOpen, setOpen] = useState(false);
  const text = counterText(view);
  const trimmed = view.counter.trimmed > 0;
  const summary = view.last?.trim_summary ?? "";
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.preventDefault();
    event.stopPropagation();
    setOpen(false);
  };
  return html`<div
    class="counter"
    onMouseEnter=${() => setOpen(true)}
    onMouseLeave=${() => setOpen(false)}
    onKeyDown=${onKey}
  >
    <button
      type="button"
      class=${trimmed ? "counter-text number trimmed" : "counter-text number"}
      aria-label=${`Context: ${text}`}
      aria-describedby=${isOpen ? "counter-breakdown" : null}
      aria-expanded=${isOpen}
      onFocus=${() => setOpen(true)}
      onBlur=${() => setOpen(false)}
    >
      ${text}
    </button>
    ${
      isOpen &&
      html`<div id="counter-breakdown" class="counter-breakdown" role="tooltip">
        <p>${view.counter.predicted} of ${view.counter.visible} visible pairs are sent with your next question.</p>
        ${view.newest_hidden ? html`<p class="counter-note">(-) The newest pair is hidden by the filter.</p>` : null}
        ${summary ? html`<p class="counter-note">Last send: ${summary}</p>` : null}
        <table>
          <tbody>
            ${breakdown(view, {
              written: size.value?.prompt,
              charsPerToken: preferences.value.settings.charsPerToken,
            }).map(
              (each) => html`<tr key=${each.label}>
                <th scope="row">${each.label}</th>
                <td class="number">${each.number}</td>
                <td class="faint">${each.meaning}</td>
              </tr>`,
            )}
          </tbody>
        </table>
      </div>`
    }
  </div>`;
}
