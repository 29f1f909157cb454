// @ts-check
/** A run of the tool loop: its rounds, spending, pending questions, and how two runs differ. */

import { countOf, duration, money, whole } from "../../../kit/core/format.js";
import { parseOrText, step } from "../../../kit/core/json.js";

/** @import { Reached } from "../../../api-types.d.ts" */
/** @typedef {Record<string, unknown> | string} Arguments */
/** @typedef {Omit<import("../../../api-types.d.ts").CallShown, "ran"> & { ran: Arguments | null }} RunCall */
/** @typedef {Omit<import("../../../api-types.d.ts").RoundShown, "calls"> & { calls: readonly RunCall[] }} Round */
/** @typedef {NonNullable<import("../../../api-types.d.ts").RunShown["pending"]>} Pending */
/** @typedef {import("../../../api-types.d.ts").RunShown["state"]} State */
/** @typedef {Omit<import("../../../api-types.d.ts").RunShown, "rounds"> & { rounds: readonly Round[] }} Run */
/** @typedef {{ tool: string, ruling: "allow", arguments?: Record<string, string> }} Rule */
/**
 * @typedef {{ decision: "allowed", arguments?: Arguments, rule?: Rule, always?: boolean } | { decision: "denied",
 *   reason: string } | { decision: "answered", text: string, is_error: boolean }} Decision
 */

/** Arguments as a person edits them. @param {Arguments | null | undefined} args */
export function argumentsText(args) {
  return typeof args === "string" ? args : JSON.stringify(args ?? {}, null, 2);
}

/**
 * What was typed as the tool will get it: an object, or for a tool of free text the text itself.
 * @param {string} text
 * @param {Arguments} original
 * @returns {{ value: Arguments } | { problem: string }}
 */
export function readArguments(text, original) {
  if (typeof original === "string") return { value: text };
  try {
    const value = JSON.parse(text);
    if (value && typeof value === "object" && !Array.isArray(value)) return { value };
    return { problem: "The arguments are an object: { … }." };
  } catch (error) {
    return { problem: `Not JSON yet: ${/** @type {Error} */ (error).message}` };
  }
}

/** Whether two arguments say the same. @param {Arguments} a @param {Arguments} b */
export function isSameArguments(a, b) {
  return JSON.stringify(inOrder(a)) === JSON.stringify(inOrder(b));
}

/** @param {any} value @returns {any} */
function inOrder(value) {
  if (Array.isArray(value)) return value.map(inOrder);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, inOrder(value[key])]),
  );
}

/**
 * Patterns that a rule for calls like this one could have: what is below the same folder, or the very same value.
 * @param {Arguments} args
 * @returns {{ pointer: string, name: string, pattern: string }[]}
 */
export function patternsFor(args) {
  if (typeof args === "string") return fitsPattern(args) ? [{ pointer: "", name: "text", pattern: args }] : [];
  return Object.entries(args)
    .filter(([, value]) => fitsPattern(value))
    .map(([name, value]) => ({ pointer: step(name), name, pattern: patternOf(value) }));
}

/**
 * What fits into one line can be written as a pattern; with a star in it, it would mean more than it says.
 * @param {unknown} value
 */
function fitsPattern(value) {
  const text = String(value);
  return (
    ["string", "number", "boolean"].includes(typeof value) && text !== "" && text.length <= 200 && !/[\r\n*]/.test(text)
  );
}

/** The names of the arguments that a rule says nothing of. @param {Arguments} args @param {Rule} rule */
export function freeArguments(args, rule) {
  if (typeof args === "string") return rule.arguments ? [] : ["text"];
  return Object.keys(args).filter((name) => rule.arguments?.[step(name)] === undefined);
}

/** @param {unknown} value */
function patternOf(value) {
  const text = String(value);
  const folder = typeof value === "string" && !/\s/.test(text) ? /^(.*\/)[^/]*$/.exec(text)?.[1] : undefined;
  return folder ? `${folder}*` : text;
}

/** The rule in words: `edit_file where path is src/*`. @param {Rule} rule */
export function ruleWords(rule) {
  const parts = Object.entries(rule.arguments ?? {}).map(
    ([pointer, pattern]) => `${pointer.slice(1) || "its text"} is ${pattern}`,
  );
  return `${rule.tool}${parts.length ? ` where ${parts.join(" and ")}` : ", whatever its arguments"}`;
}

const LIMITS = /** @type {Record<string, string>} */ ({
  requests: "model requests",
  tool_calls: "tool calls",
  tokens: "tokens",
  cost: "US dollars",
  seconds: "seconds",
  repeats: "identical calls with the same result",
  mistakes: "rounds in a row with a call that could not be run",
});

/** A limit that was reached, as a sentence. @param {Reached} reached */
export function describeLimit(reached) {
  const what = LIMITS[reached.name] ?? reached.name;
  const limit = `The limit of ${amount(reached.name, reached.limit)} ${what}`;
  if (!reached.is_unmeasured) return `${limit} is reached.`;
  const why = reached.name === "cost" ? "the cost so far is not known" : "the provider does not report it";
  return `${limit} cannot be enforced: ${why}.`;
}

/** @param {string} name @param {number} value */
export function amount(name, value) {
  if (name === "cost") return money(value);
  return name === "seconds" ? duration(value) : whole(value);
}

/**
 * What was spent, beside its limit where there is one. In a line, `unit` follows the figure: dollars need none.
 * @param {Run} run
 * @returns {{ name: string, label: string, unit: string, spent: string, limit: string, share: number | null }[]}
 */
export function spendings(run) {
  const shown = /** @type {["requests" | "tool_calls" | "tokens" | "cost" | "seconds", string][]} */ ([
    ["requests", "requests"],
    ["tool_calls", "tool calls"],
    ["tokens", "tokens"],
    ["cost", "cost"],
    ["seconds", "time"],
  ]);
  return shown
    .map(([name, label]) => {
      const known = run.spent[name];
      const spent = known ?? 0;
      const limit = run.limits?.[name];
      return {
        name,
        label,
        unit: name === "cost" && known !== null ? "" : label,
        spent: known === null ? "unknown" : amount(name, spent),
        limit: limit == null ? "" : amount(name, limit),
        share: limit ? Math.min(spent / limit, 1) : null,
      };
    })
    .filter(({ name }) => name !== "cost" || run.spent.cost || run.spent.cost === null || run.limits?.cost != null);
}

const WHYS = /** @type {Record<string, string>} */ ({
  answered: "answered",
  length: "the reply was cut at its limit",
  content_filter: "stopped by the provider's filter",
  refusal: "the model refused",
  limit: "stopped at a limit",
  cancelled: "stopped by hand",
  failed: "failed",
});

/** How a run stands, in words. @param {{ state: State, why?: string }} run */
export function stateWords(run) {
  if (run.state === "ended") return WHYS[run.why ?? ""] ?? run.why ?? "ended";
  return { running: "running", waiting: "waits for you", interrupted: "interrupted" }[run.state];
}

/** How its end is to be seen. @param {{ state: State, why?: string }} run @returns {"" | "good" | "bad"} */
export function toneOf(run) {
  if (run.state !== "ended" || run.why === "cancelled") return "";
  return run.why === "answered" ? "good" : "bad";
}

const FATES = /** @type {Record<string, string>} */ ({
  ran: "done",
  refused: "not valid",
  denied: "denied",
  answered: "answered by hand",
  cancelled: "cancelled",
  limit: "not run: limit",
  cut: "not run: cut off",
});
const DENIED = /** @type {Record<string, string>} */ ({
  hook: "denied by a hook",
  rule: "denied by a rule",
  nobody: "denied: no one to approve it",
});

/** @param {RunCall} call @returns {{ state: "running" | "failed" | "done" | "open", words: string }} */
export function outcomeOf(call) {
  if (!call.fate && !call.result)
    return call.is_running
      ? { state: "running", words: call.progress || "running…" }
      : { state: "open", words: "waits" };
  if (call.fate === "ran" || call.fate === "answered")
    return call.result?.is_error
      ? { state: "failed", words: call.fate === "ran" ? "error" : FATES.answered }
      : { state: "done", words: FATES[call.fate] };
  const fate = call.fate ?? "";
  return {
    state: ["cancelled", "limit", "cut"].includes(fate) ? "open" : "failed",
    words: DENIED[call.denied_by ?? ""] ?? FATES[fate] ?? fate,
  };
}

/**
 * Where rounds lie on the time of the whole run: in percent of it, the model's part and the tools'.
 * @typedef {{ number: number, start: number, model: number, tools: number, seconds: number }} Span
 */

/** @param {readonly Round[]} rounds @returns {Span[]} */
export function spans(rounds) {
  const parts = rounds.map((round) => {
    const tools = round.calls.reduce((sum, call) => sum + (call.seconds ?? 0), 0);
    return { number: round.number, model: round.seconds ?? 0, tools };
  });
  const total = parts.reduce((sum, part) => sum + part.model + part.tools, 0) || 1;
  let at = 0;
  return parts.map(({ number, model, tools }) => {
    const span = {
      number,
      start: (at / total) * 100,
      model: (model / total) * 100,
      tools: (tools / total) * 100,
      seconds: model + tools,
    };
    at += model + tools;
    return span;
  });
}

/** One line about a round. @param {Round} round */
export function roundLine(round) {
  return [
    round.calls.length ? countOf(round.calls.length, "call") : "",
    round.usage?.input_tokens != null ? `${whole(round.usage.input_tokens)} in` : "",
    round.usage?.output_tokens != null ? `${whole(round.usage.output_tokens)} out` : "",
    round.cost ? money(round.cost) : "",
    round.seconds != null ? duration(round.seconds) : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/**
 * Two runs, round beside round.
 * @typedef {{ number: number, left: Round | null, right: Round | null, isSame: boolean, calls: { left: RunCall | null,
 *   right: RunCall | null, difference: "" | "only left" | "only right" | "arguments" | "result" }[] }} ComparedRound
 */

/** @param {readonly Round[]} left @param {readonly Round[]} right @returns {ComparedRound[]} */
export function compareRounds(left, right) {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const [a, b] = [left[index] ?? null, right[index] ?? null];
    const calls = pairCalls(a?.calls ?? [], b?.calls ?? []);
    return {
      number: index + 1,
      left: a,
      right: b,
      isSame: a !== null && b !== null && a.text === b.text && calls.every((each) => !each.difference),
      calls,
    };
  });
}

/** @param {readonly RunCall[]} left @param {readonly RunCall[]} right @returns {ComparedRound["calls"]} */
function pairCalls(left, right) {
  const open = [...right];
  const paired = left.map((call) => {
    // The same call first, else one of the same tool: the order in which a model names them says little.
    const same = open.findIndex(
      (other) => other.name === call.name && isSameArguments(parseArguments(other), parseArguments(call)),
    );
    const at = same >= 0 ? same : open.findIndex((other) => other.name === call.name);
    const other = at >= 0 ? open.splice(at, 1)[0] : null;
    return { left: call, right: other, difference: differenceOf(call, other) };
  });
  return [
    ...paired,
    ...open.map((call) => ({ left: null, right: call, difference: /** @type {const} */ ("only right") })),
  ];
}

/** @param {RunCall} call @param {RunCall | null} other @returns {"" | "only left" | "arguments" | "result"} */
function differenceOf(call, other) {
  if (!other) return "only left";
  if (!isSameArguments(parseArguments(call), parseArguments(other))) return "arguments";
  return call.result?.text === other.result?.text && call.fate === other.fate ? "" : "result";
}

/** What the tool got, else what the model wrote. @param {RunCall} call @returns {Arguments} */
export function parseArguments(call) {
  return parseOrText(call.ran ?? call.arguments);
}
