// @ts-check
/** The current route. Views read `route` and navigate by `go`. */

import { signal } from "../vendor/preact.js";
import { hashOf, routeOf } from "./core/routes.js";

/** @import { Route } from "./core/routes.js" */

/** @type {import("../vendor/preact.js").Signal<Route>} */
export const route = signal(routeOf(location.hash));

/** The exchange and the chat that were open last, and the filters that the list and the chat had: the ways back. */
export const lastOpened = signal("");
export const lastFilter = signal("");
export const lastChat = signal(/** @type {Extract<Route, { view: "chat" }>} */ ({ view: "chat", filter: "" }));

/** @type {string | null} */
let seen = null;

addEventListener("hashchange", arrive);
arrive();

function arrive() {
  if (location.hash === seen) return;
  seen = location.hash;
  const at = routeOf(seen);
  if (at.view === "request") lastOpened.value = at.id;
  if (at.view === "traffic") lastFilter.value = at.filter;
  if (at.view === "chat") lastChat.value = at;
  route.value = at;
}

/**
 * @param {Route} to
 * @param {{ isReplacing?: boolean }} [options] without a step in the history, as while a filter is typed
 */
export function go(to, { isReplacing = false } = {}) {
  const hash = hashOf(to);
  if (hash === location.hash) return;
  if (isReplacing) history.replaceState(null, "", hash);
  else location.hash = hash;
  // The browser tells it later, and the next key is already meant for there.
  arrive();
}

/** An exchange that is not on record is no way back. @param {string} id */
export function forgetOpened(id) {
  if (lastOpened.peek() === id) lastOpened.value = "";
}

/** Back to the list as it was. */
export function toTraffic() {
  go({ view: "traffic", filter: lastFilter.value });
}

/** To the chat as it was. */
export function toChat() {
  go(lastChat.value);
}

/** @param {string} id @param {string} [tab] */
export function toExchange(id, tab = "sections") {
  go({ view: "request", id, tab });
}
