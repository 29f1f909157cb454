// @ts-check
/** Which chat is open, and all chats as the server has them. */

import { ApiError, addressOf, get, onAnnounced, onReconnect, post, put, remove, stopAll } from "../../kit/api.js";
import { Resource } from "../../kit/core/resource.js";
import { go } from "../../kit/navigation.js";
import { followTogether } from "../../kit/resource.js";
import { computed, signal } from "../../vendor/preact.js";

/** @import { ChatBrief } from "../../api-types.d.ts" */

/** The chat that is always there. */
export const MAIN = "main";
/** Changes within so many milliseconds are asked for together. */
const TOGETHER = 300;

/** The chat that is open. */
export const chat = signal(MAIN);
/** The words that the list is searched for. */
export const search = signal("");

/**
 * The path of a call in the chat that is open.
 * @template {string} P
 * @param {P} path the same call in the main chat
 * @returns {P}
 */
export function inChat(path) {
  if (chat.value === MAIN) return path;
  return /** @type {P} */ (path.replace("/api/chat/", `/api/chats/${encodeURIComponent(chat.value)}/`));
}

/**
 * Where the pictures of an answer are, with `#` for the number.
 * @param {string} pair
 * @param {number} [earlier] which of the pair's earlier answers, if it is one
 */
export function mediaOf(pair, earlier) {
  const query = earlier === undefined ? "of=answer" : `of=answer&earlier=${earlier}`;
  return addressOf(inChat(`/api/chat/pairs/${encodeURIComponent(pair)}/media/#?${query}`));
}

/** Whether the server refused what was asked. @param {unknown} error @returns {error is ApiError} */
export function isRefusal(error) {
  return error instanceof ApiError && error.status >= 400 && error.status < 500;
}

/** How the requests of the chat that is open are labelled in the record. */
export function sessionOfChat() {
  return chat.value === MAIN ? "chat" : `chat-${chat.value}`;
}

/** @type {Resource<ChatBrief[], ApiError>} */
const all = new Resource(
  () => get("/api/chats"),
  (again) => {
    const follow = followTogether(
      (changed) => onAnnounced("chat", (event) => ["changed", "chats"].includes(event.kind) && changed()),
      TOGETHER,
    );
    const both = () => {
      again();
      if (search.value) void found.refresh();
    };
    return stopAll(follow(both), onReconnect(again));
  },
);

/** @type {Resource<ChatBrief[], ApiError>} */
const found = new Resource(
  () => get(`/api/chats?${new URLSearchParams({ text: search.value })}`),
  () => () => {},
);

/** All chats, the one that was used last first; null until they are here. */
export const chats = computed(() => all.value.value);
/** Those that have the words of the search, or all. */
export const listed = computed(() => (search.value ? found.value.value : all.value.value));
export const listTrouble = computed(() => (search.value ? found : all).trouble.value);
/** The chat that is open, as the list has it. */
export const current = computed(() => chats.value?.find((each) => each.id === chat.value) ?? null);

let isStarted = false;

/** Keep the list in step, from the first time that it is needed. */
export function startChats() {
  if (!isStarted) all.start();
  isStarted = true;
}

/** Search names and what was said; no words are all chats. @param {string} words */
export function searchChats(words) {
  search.value = words.trim();
  if (search.value) void found.refresh();
}

/** @param {string} id @param {string} [filter] */
export function goToChat(id, filter = "") {
  go({ view: "chat", filter, ...(id !== MAIN && { chat: id }) });
}

/** Begin an empty chat and open it. */
export async function createChat() {
  const made = await post("/api/chats", {});
  await all.refresh();
  goToChat(made.id);
}

/** Begin a chat with what this one has up to a pair, and open it. @param {string} pair */
export async function forkChat(pair) {
  const made = await post(`/api/chats/${encodeURIComponent(chat.value)}/fork`, { pair });
  await all.refresh();
  goToChat(made.id);
  return made;
}

/** @param {string} id @param {string} name */
export async function renameChat(id, name) {
  await put(`/api/chats/${encodeURIComponent(id)}`, { name });
  await all.refresh();
}

/**
 * Delete a chat for good, and open the one that was used last.
 * @param {string} id
 * @param {boolean} withRequests
 */
export async function deleteChat(id, withRequests) {
  const gone = await remove(`/api/chats/${encodeURIComponent(id)}${withRequests ? "?requests=1" : ""}`);
  await all.refresh();
  if (search.value) void found.refresh();
  if (id === chat.value) goToChat(chats.value?.find((each) => each.id !== id)?.id ?? MAIN);
  return /** @type {{ exchanges: number }} */ (gone);
}
