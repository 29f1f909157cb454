// @ts-check
/** Which requests are held: the mode and the rules, as the server has them. */

import { ApiError, get, onFact, onReconnect, put } from "../../kit/api.js";
import { toastError } from "../../kit/toast.js";
import { signal } from "../../vendor/preact.js";

/** @import { Mode, Rule } from "./core/interception.js" */

/** @type {import("../../vendor/preact.js").Signal<Mode>} */
export const mode = signal("off");
/** @type {import("../../vendor/preact.js").Signal<Rule[]>} */
export const rules = signal([]);
/** Whether this server can hold at all. */
export const canHold = signal(false);

/** Ask for the mode and the rules. */
export async function fetchInterception() {
  try {
    const [interception, listed] = await Promise.all([get("/api/interception"), get("/api/rules")]);
    mode.value = interception.mode;
    rules.value = listed;
    canHold.value = true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) canHold.value = false;
  }
}

/** @param {Mode} wanted */
export async function setMode(wanted) {
  const before = mode.value;
  mode.value = wanted;
  try {
    mode.value = (await put("/api/interception", { mode: wanted }))?.mode ?? wanted;
  } catch (error) {
    mode.value = before;
    toastError(error);
  }
}

/**
 * Put other rules in place; a refusal is the caller's to show.
 * @param {Rule[]} wanted
 */
export async function saveRules(wanted) {
  const response = await put("/api/rules", wanted);
  rules.value = Array.isArray(response) ? response : wanted;
  // The first rules switch holding on, as long as nobody has chosen a mode.
  void fetchInterception();
}

/** Begin to follow; called once. A hold can use up a rule, or the mode `next`; another page can change both. */
export function startInterception() {
  void fetchInterception();
  onReconnect(fetchInterception);
  onFact((fact) => {
    if (fact.kind === "held") void fetchInterception();
  });
  addEventListener("focus", () => void fetchInterception());
}
