// @ts-check
/** What this browser tab remembers of the chat. */

/**
 * The id of this tab's view, the same after a reload. A copy of the tab has the same storage, and gets another view.
 * @returns {string}
 */
export function ownViewId() {
  const made = `v-${crypto.randomUUID()}`;
  try {
    const [opening] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
    const found = (opening?.type === "reload" && sessionStorage.getItem("sightline.chat.view-id")) || made;
    sessionStorage.setItem("sightline.chat.view-id", found);
    return found;
  } catch {
    return made;
  }
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
  try {
    const { model, topic } = JSON.parse(sessionStorage.getItem(keyOf("sightline.chat.view", chat)) ?? "{}");
    const usual = model || localStorage.getItem("sightline.chat.model");
    return { ...(usual && { model: usual }), ...(topic && { topic }) };
  } catch {
    return {};
  }
}

/** @param {string} chat @param {{ model?: string, topic?: string }} choice */
export function rememberChoice(chat, { model, topic }) {
  try {
    sessionStorage.setItem(keyOf("sightline.chat.view", chat), JSON.stringify({ model, topic }));
    if (model) localStorage.setItem("sightline.chat.model", model);
  } catch {
    // A browser that keeps nothing starts afresh next time.
  }
}
