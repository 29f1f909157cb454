// @ts-check
/** The list of chats beside the history: open, search, begin, name and delete them. */

import { post } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { countOf, room, when } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Dialog } from "../../kit/dialog.js";
import { textField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { Menu } from "../../kit/menu.js";
import { toast, toastError } from "../../kit/toast.js";
import { computed, h, html, signal, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
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
import { goToPair, toInput } from "./modes.js";

/** @import { ChatBrief, ForgetResult } from "../../api-types.d.ts" */

const NAME = "sightline.chat.list";
/** A search begins so many milliseconds after the last key. */
const PAUSE = 200;
/** Where there is no room beside the history, the list stands above it. */
const NARROW = matchMedia("(max-width: 1000px)");

/** Whether the user has opened or closed the list; empty where neither. */
const choice = signal(readChoice());
/** The list is there without being asked for once there is something to choose from. */
export const isListOpen = computed(() =>
  choice.value ? choice.value === "yes" : !NARROW.matches && (chats.value?.length ?? 0) > 1,
);

function readChoice() {
  try {
    return (NARROW.matches ? "" : localStorage.getItem(NAME)) ?? "";
  } catch {
    return "";
  }
}

/** @param {boolean} isOpen */
export function showList(isOpen) {
  choice.value = isOpen ? "yes" : "no";
  try {
    if (!NARROW.matches) localStorage.setItem(NAME, choice.value);
  } catch {
    // Then it is as usual next time.
  }
}

/** A chat was picked: on a narrow screen the list has done its work. */
function closeIfAbove() {
  if (NARROW.matches) showList(false);
}

/** Begin a chat and write its first question. */
export async function beginChat() {
  try {
    await createChat();
    closeIfAbove();
    requestAnimationFrame(toInput);
  } catch (error) {
    toastError(error);
  }
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
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
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
      ref: field,
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
    if (brief.found_in) goWhenOpen(brief.id, brief.found_in);
  };
  return html`<li class=${brief.id === chat.value ? "is-open" : ""}>
    <a href=${href} aria-current=${brief.id === chat.value ? "true" : null} title=${brief.title} onClick=${open}>
      <span class="cut">${brief.title}</span>
      <span class="faint number cut">
        ${brief.is_sending ? html`<span class="chat-busy">answering</span>${" · "}` : null}
        ${countOf(brief.pairs, "pair")}
        ${brief.latest ? ` · ${when(brief.latest, now)}` : ""}
      </span>
      ${brief.found ? html`<span class="soft found-text">${brief.found}</span>` : null}
    </a>
    ${h(Menu, {
      label: `More for ${brief.title}`,
      choices: [
        { label: "Rename…", run: () => void (dialog.value = { kind: "rename-chat", brief }) },
        {
          label: "Delete…",
          isDanger: true,
          run: () => void (dialog.value = { kind: "delete-chat", brief }),
        },
      ],
    })}
  </li>`;
}

/** To a pair, once its chat is open. @param {string} id @param {string} pair */
function goWhenOpen(id, pair) {
  if (id === chat.value) void goToPair(pair);
  else pendingPair = { id, pair };
}

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
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [name, setName] = useState(brief.name || brief.title);
  const [refusal, setRefusal] = useState("");
  useLayoutEffect(() => field.current?.select(), []);
  /** @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    try {
      await renameChat(brief.id, name);
      onClose();
    } catch (error) {
      setRefusal(`${/** @type {Error} */ (error).message}. ${/** @type {{ hint?: string }} */ (error).hint ?? ""}`);
    }
  };
  return h(Dialog, {
    title: "Rename the chat",
    width: 480,
    onClose,
    children: html`<form class="save-filter" onSubmit=${save}>
      <label class="edit-field">
        <span class="soft">Name</span>
        ${textField(name, setName, { ref: field, autocomplete: "off", "aria-invalid": refusal !== "" })}
      </label>
      ${
        refusal
          ? html`<p class="refusal" role="alert">${refusal}</p>`
          : html`<p class="soft">Without a name, the chat is named after its first question.</p>`
      }
      <div class="save-actions">
        <button type="submit" class="button primary">Rename</button>
        ${button("Cancel", onClose, { kind: "quiet" })}
      </div>
    </form>`,
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
    try {
      await deleteChat(brief.id, withRequests);
      onClose();
      toast(brief.id === MAIN ? "The chat is empty." : "The chat is deleted.");
    } catch (error) {
      setBusy(false);
      toastError(error);
    }
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
          ? html`<label>
              <input
                type="checkbox"
                checked=${withRequests}
                onChange=${(/** @type {any} */ event) => setWithRequests(event.currentTarget.checked)}
              />
              ${` Also delete its runs, and its ${countOf(record.exchanges, "request")} in Traffic `}
              ${`(${room(record.bytes)})`}
            </label>`
          : null
      }`,
    footer: html`${button("Cancel", onClose)}
      ${button(isBusy ? "Deleting…" : "Delete for good", () => void confirm(), {
        kind: "danger",
        isDisabled: isBusy || !record,
      })}`,
  });
}
