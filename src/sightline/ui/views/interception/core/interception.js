// @ts-check
/** Texts of the interception modes, and rules while they are edited. */

import { errorOf } from "../../../kit/core/filter.js";

/** @typedef {"off" | "next" | "every" | "rules"} Mode */
/** @typedef {{ filter: string, action: "hold" | "pass" | "drop", phase: "request" | "tool_calls", once?: boolean,
 *   timeout_s?: number | null, on_timeout?: "send" | "drop" }} Rule */
/**
 * @typedef {{ rule: number, message: string, hint: string, error: import("../../../kit/core/filter.js").FilterError |
 *   null }} Refusal
 */

/** @type {{ mode: Mode, label: string, help: string }[]} */
export const MODES = [
  { mode: "off", label: "Off", help: "Nothing is held; every request passes." },
  { mode: "next", label: "Next", help: "The next request is held, then the mode returns to what it was." },
  { mode: "every", label: "Every", help: "Every request is held until you send or drop it." },
  { mode: "rules", label: "Rules", help: "The first rule that matches a request decides." },
];

/** @returns {Rule} */
export function newRule() {
  return { filter: "", action: "hold", phase: "request", once: false, timeout_s: null, on_timeout: "send" };
}

/** A rule in one sentence. @param {Rule} rule */
export function sentence(rule) {
  const what = rule.phase === "tool_calls" ? "tool calls of replies" : "requests";
  const verb = { hold: "Hold", pass: "Let pass", drop: "Drop" }[rule.action];
  const which = rule.filter.trim() ? `that match ${rule.filter.trim()}` : "of every kind";
  const end =
    rule.action === "hold" && rule.timeout_s != null
      ? `; after ${rule.timeout_s} s ${rule.on_timeout === "drop" ? "drop" : "send"} it`
      : "";
  return `${verb} ${what} ${which}${rule.once ? ", once" : ""}${end}.`;
}

/**
 * Which rule a list was refused for, and where in its filter.
 * @param {{ message: string, hint?: string }} refusal
 * @returns {Refusal}
 */
export function refusalOf(refusal) {
  const named = /\brule (\d+)\b/i.exec(refusal.message);
  const isFilter = /\bcolumn \d+: /.test(refusal.message);
  return {
    rule: named ? Number(named[1]) - 1 : -1,
    message: refusal.message,
    hint: refusal.hint ?? "",
    error: isFilter ? errorOf(refusal) : null,
  };
}

/**
 * Rules as the server takes them: what does not matter is left out.
 * @param {readonly Rule[]} rules
 * @returns {Rule[]}
 */
export function rulesToSend(rules) {
  return rules.map((rule) => {
    /** @type {Rule} */
    const trimmed = { filter: rule.filter.trim(), action: rule.action, phase: rule.phase, once: rule.once ?? false };
    if (rule.action !== "hold" || rule.timeout_s == null) return trimmed;
    return { ...trimmed, timeout_s: rule.timeout_s, on_timeout: rule.on_timeout ?? "send" };
  });
}

/**
 * The list with one moved by a step.
 * @template T
 * @param {readonly T[]} list
 * @param {number} index
 * @param {-1 | 1} step
 */
export function moveItem(list, index, step) {
  const to = index + step;
  if (to < 0 || to >= list.length) return [...list];
  const next = [...list];
  [next[index], next[to]] = [next[to], next[index]];
  return next;
}
