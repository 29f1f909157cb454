// @ts-check
/** What this browser tab remembers of the chat. */

import { readStored, readStoredJson, store } from "../../kit/storage.js";

/**
 * The id of this tab's view, the same after a reload. A copy of the tab has the same storage, and gets another view.
 * @returns {string}
 */
export function ownViewId() {
  const [opening] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  const found =
    (opening?.type === "reload" && readStored("chat.view-id", "sessionStorage")) || `v-${crypto.randomUUID()}`;
  store("chat.view-id", found, "sessionStorage");
  return found;
}

/**
 * Where this tab keeps what it remembers of a chat.
 * @param {string} name as it is for the main chat
 * @param {string} chat
 */
export function keyOf(name, chat) {
  return chat === "main" ? name : `${name}.${chat}`;
}

/**
 * The model and the topic that this tab had last.
 * @param {string} chat
 * @returns {{ model?: string, topic?: string }}
 */
export function lastChoice(chat) {
  const { model, topic } = readStoredJson(keyOf("chat.view", chat), "sessionStorage");
  const usual = model || readStored("chat.model");
  return { ...(usual && { model: usual }), ...(topic && { topic }) };
}

/** @param {string} chat @param {{ model?: string, topic?: string }} choice */
export function rememberChoice(chat, { model, topic }) {
  store(keyOf("chat.view", chat), JSON.stringify({ model, topic }), "sessionStorage");
  if (model) store("chat.model", model);
}
