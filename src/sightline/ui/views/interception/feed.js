// @ts-check
/** Which requests are held: the mode and the rules, as the server has them. */

import { onAnnounced, onFact, put, stopAll } from "../../kit/api.js";
import { resource } from "../../kit/resource.js";
import { toastError } from "../../kit/toast.js";
import { computed } from "../../vendor/preact.js";
import { newRule } from "./core/interception.js";

/** @import { Mode, Rule } from "./core/interception.js" */

/**
 * A hold can use up a rule, or the mode `next`; another page can change both.
 * @type {import("../../kit/core/resource.js").Follow}
 */
const followHolds = (again) =>
  stopAll(
    onFact((fact) => fact.kind === "held" && again()),
    onAnnounced("interception", again),
  );
const interception = resource("/api/interception", followHolds);
const ruleList = resource("/api/rules", followHolds);

/** @type {import("../../vendor/preact.js").ReadonlySignal<Mode>} */
export const mode = computed(() => interception.value.value?.mode ?? "off");
/** The server leaves out what is usual. @type {import("../../vendor/preact.js").ReadonlySignal<Rule[]>} */
export const rules = computed(() => (ruleList.value.value ?? []).map((rule) => ({ ...newRule(), ...rule })));
/** Whether this server can hold at all. */
export const canHold = computed(
  () =>
    interception.value.value !== null && ruleList.value.value !== null && interception.trouble.value?.status !== 404,
);

/** @param {Mode} wanted */
export async function setMode(wanted) {
  const before = interception.value.value;
  interception.value.value = { mode: wanted };
  try {
    interception.value.value = (await put("/api/interception", { mode: wanted })) ?? { mode: wanted };
  } catch (error) {
    interception.value.value = before;
    toastError(error);
  }
}

/** Put other rules in place; a refusal is the caller's to show. @param {Rule[]} wanted */
export async function saveRules(wanted) {
  const response = await put("/api/rules", wanted);
  ruleList.value.value = Array.isArray(response) ? response : wanted;
  // The first rules switch holding on, unless the user has chosen a mode.
  void interception.refresh();
  void ruleList.refresh();
}

/** Begin to follow; called once. */
export function startInterception() {
  interception.start();
  ruleList.start();
}
