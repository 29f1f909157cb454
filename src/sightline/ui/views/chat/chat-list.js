// @ts-check
/** The list of chats beside the history: open, search, begin, name and delete them. */

import { post } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { countOf, room, when } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Dialog } from "../../kit/dialog.js";
import { checkbox, textField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { Menu } from "../../kit/menu.js";
import { NameDialog } from "../../kit/name-dialog.js";
import { readStored, store } from "../../kit/storage.js";
import { attempt, toast, toastError } from "../../kit/toast.js";
import { computed, h, html, signal, useEffect, useState } from "../../vendor/preact.js";
import { dialog } from "./actions.js";
import {
  chat,
  chats,
  createChat,
  current,
  deleteChat,
  listed,
  listTrouble,
  MAIN,
  renameChat,
  search,
  searchChats,
  startChats,
} from "./chats.js";
import { view } from "./feed.js";
import { goToPair, toInput } from "./modes.js";

/** @import { ChatBrief, ForgetResult } from "../../api-types.d.ts" */

const NAME = "chat.list";
/** A search begins so many milliseconds after the last key. */
const PAUSE = 200;
/** Where there is no room beside the history, the list stands above it. */
const NARROW = matchMedia("(max-width: 1000px)");

/** Whether the user has opened or closed the list; empty where neither. */
const choice = signal(NARROW.matches ? "" : readStored(NAME));
/** The list is there without being asked for once there is something to choose from. */
export const isListOpen = computed(() =>
  choice.value ? choice.value === "yes" : !NARROW.matches && (chats.value?.length ?? 0) > 1,
);

/** @param {boolean} isOpen */
export function showList(isOpen) {
  choice.value = isOpen ? "yes" : "no";
  if (!NARROW.matches) store(NAME, choice.value);
}

/** A chat was picked: on a narrow screen the list has done its work. */
function closeIfAbove() {
  if (NARROW.matches) showList(false);
}

/** Begin a chat and write its first question. */
export async function beginChat() {
  if (!(await attempt(createChat))) return;
  closeIfAbove();
  requestAnimationFrame(toInput);
}

/** The button that opens the list; it names the chat that is open. */
export function ChatListButton() {
  useEffect(startChats, []);
  const title = current.value?.title ?? "Chats";
  return html`<button
    type="button"
    class="button chats-button"
    aria-expanded=${isListOpen.value}
    aria-controls="chat-list"
    title=${`Chats (Alt+C) · ${title}`}
    onClick=${() => showList(!isListOpen.value)}
  >
    ${h(Icon, { name: "chats" })}<span class="unseen">Chats: </span><span class="cut">${title}</span>
  </button>`;
}

export function ChatList() {
  const [words, setWords] = useState(search.value);
  useEffect(() => {
    const timer = setTimeout(() => searchChats(words), words ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [words]);
  useEffect(() => {
    choice.value = "yes"; // it stays until it is closed, also if only one chat is left
    return () => searchChats("");
  }, []);
  const rows = listed.value;
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    if (words) setWords("");
    else showList(false);
  };
  return html`<aside id="chat-list" class="chat-list" aria-label="Chats" onKeyDown=${onKey}>
    <div class="chat-list-head in-row">
      <h2>Chats</h2>
      ${button("New", () => void beginChat(), { icon: "plus", title: "New chat (Alt+N)" })}
      ${iconButton("close", "Close the list of chats", () => showList(false))}
    </div>
    ${textField(words, setWords, {
      label: "Search the chats",
      type: "search",
      placeholder: "Search names and texts",
    })}
    ${
      listTrouble.value
        ? html`<p class="refusal" role="alert">${listTrouble.value.message}</p>`
        : rows === null
          ? html`<p class="faint" role="status">Loading…</p>`
          : rows.length
            ? html`<ul>
                ${rows.map((each) => h(ChatRow, { key: each.id, brief: each }))}
              </ul>`
            : html`<p class="faint" role="status">No chat contains these words.</p>`
    }
  </aside>`;
}

/** @param {{ brief: ChatBrief, key?: string }} props */
function ChatRow({ brief }) {
  const now = useNow();
  const href = hashOf({ view: "chat", filter: "", ...(brief.id !== MAIN && { chat: brief.id }) });
  const open = () => {
    closeIfAbove();
    if (!brief.found_in) return;
    pendingPair = { id: brief.id, pair: brief.found_in };
    // A filter may hide the pair. The link removes the filter, and the page calls `goToFound` when that is done.
    if (!view.value?.filter) goToFound();
  };
  return html`<li class=${brief.id === chat.value ? "is-open" : ""}>
    <a href=${href} aria-current=${brief.id === chat.value ? "true" : null} title=${brief.title} onClick=${open}>
      <span class="cut">${brief.title}</span>
      <span class="faint number cut">
        ${brief.is_sending ? html`<span class="chat-busy">answering</span>${" · "}` : null}
        ${countOf(brief.pairs, "pair")}
        ${brief.latest ? ` · ${when(brief.latest, now)}` : ""}
      </span>
      ${brief.found ? html`<span class="soft found-text wraps">${brief.found}</span>` : null}
    </a>
    ${h(Menu, {
      label: `More for ${brief.title}`,
      choices: [
        { label: "Rename…", run: () => void (dialog.value = { kind: "rename-chat", brief }) },
        { label: "Delete…", isDanger: true, run: () => void (dialog.value = { kind: "delete-chat", brief }) },
      ],
    })}
  </li>`;
}

/** The pair to go to once its chat is open. */
let pendingPair = { id: "", pair: "" };

/** A chat is shown: go to the pair that was searched for in it. */
export function goToFound() {
  const { id, pair } = pendingPair;
  if (id !== chat.value) return;
  pendingPair = { id: "", pair: "" };
  void goToPair(pair);
}

/** @param {{ brief: ChatBrief, onClose: () => void }} props */
export function RenameChat({ brief, onClose }) {
  return h(NameDialog, {
    title: "Rename the chat",
    verb: "Rename",
    width: 480,
    first: brief.name || brief.title,
    isOptional: true,
    noteOf: () => html`<p class="soft">Without a name, the chat is named after its first question.</p>`,
    onSave: (name) => renameChat(brief.id, name).then(onClose, ({ message, hint = "" }) => `${message}. ${hint}`),
    onClose,
  });
}

/** @param {{ brief: ChatBrief, onClose: () => void }} props */
export function DeleteChat({ brief, onClose }) {
  const [record, setRecord] = useState(/** @type {ForgetResult | null} */ (null));
  const [withRequests, setWithRequests] = useState(true);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    post("/api/forget", { filter: `session:${brief.session}`, dry_run: true }).then(setRecord, toastError);
  }, []);
  const confirm = async () => {
    setBusy(true);
    if (!(await attempt(() => deleteChat(brief.id, withRequests)))) return setBusy(false);
    onClose();
    toast(brief.id === MAIN ? "The chat is empty." : "The chat is deleted.");
    return undefined;
  };
  return h(Dialog, {
    title: `Delete “${brief.title}”`,
    width: 480,
    onClose,
    children: html`<p>
        <b>${countOf(brief.pairs, "pair")}</b> will be deleted for good. This cannot be undone.
        ${brief.id === MAIN ? " The main chat itself stays, without pairs." : ""}
      </p>
      ${
        record?.exchanges
          ? checkbox(
              html`Also delete its runs, and its ${countOf(record.exchanges, "request")} in Traffic
              (${room(record.bytes)})`,
              withRequests,
              setWithRequests,
              { kind: "" },
            )
          : null
      }`,
    footer: html`${button("Cancel", onClose)}
      ${button(isBusy ? "Deleting…" : "Delete for good", () => void confirm(), {
        kind: "danger",
        isDisabled: isBusy || !record,
      })}`,
  });
}
