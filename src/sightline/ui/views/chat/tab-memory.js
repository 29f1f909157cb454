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

/** The model and the topic that this tab had last. @returns {{ model?: string, topic?: string }} */
export function lastChoice() {
  try {
    const { model, topic } = JSON.parse(sessionStorage.getItem("sightline.chat.view") ?? "{}");
    const usual = model || localStorage.getItem("sightline.chat.model");
    return { ...(usual && { model: usual }), ...(topic && { topic }) };
  } catch {
    return {};
  }
}

/** @param {{ model?: string, topic?: string }} choice */
export function rememberChoice({ model, topic }) {
  try {
    sessionStorage.setItem("sightline.chat.view", JSON.stringify({ model, topic }));
    if (model) localStorage.setItem("sightline.chat.model", model);
  } catch {
    // A browser that keeps nothing starts afresh next time.
  }
}
