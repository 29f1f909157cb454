// @ts-check
/** Words and numbers of the chat: usage, standing of a pair, why an answer is incomplete, the groups of the HUD. */

import { costOf, countOf, duration, formatRunning, whole } from "../../../kit/core/format.js";

/** @import { AnswerShown, PairShown, ViewShown } from "../../../api-types.d.ts" */
/** @typedef {import("../../../api-types.d.ts").TokenBand} Band */
/** @typedef {PairShown["standing"]} Standing */
/** @typedef {"view" | "input" | "command"} Mode */

/** `X / Y`, with a sign in front while the newest pair is hidden by the filter. @param {ViewShown} view */
export function counterText(view) {
  return `${view.newest_hidden ? "(-) " : ""}${view.counter.text}`;
}

/**
 * The rows of the breakdown in words: what a row is called, and what it means.
 * @type {Record<string, [string, string]>}
 */
const MEANINGS = {
  Predicted: ["Pairs to send", "with your next question"],
  "Predicted tokens": ["Their tokens", "of the number beside Send"],
  Visible: ["Visible pairs", "that the filter shows"],
  "Left out by hand": ["Left out by hand", "shown, and not sent"],
  Trimmed: ["Trimmed", "left out of the last send"],
  Sent: ["Sent", "with the last question"],
  ML: ["Model limit", "tokens of one request"],
  System: ["System prompt", "kept for it"],
  Tools: ["Tools", "kept for their definitions"],
  URA: ["Question", "kept for it"],
  Reply: ["Answer", "kept for it"],
  Margin: ["Margin", "kept back, because sizes are estimates"],
  AUT: ["Your text", "what is written now"],
  CPT: ["Characters per token", "where tokens are counted by characters"],
};

/**
 * The rows behind the counter: name, number, meaning. `written` is what the present text takes; without it, the row is
 * about the last send.
 * @param {ViewShown} view
 * @param {{ written?: number, charsPerToken?: number }} [now]
 * @returns {{ label: string, number: string, meaning: string }[]}
 */
export function breakdown(view, { written, charsPerToken } = {}) {
  const describe = (/** @type {string} */ name, /** @type {string} */ number, /** @type {string} */ said = "") => {
    const [label, meaning] = MEANINGS[name] ?? [name, ""];
    return { label, number, meaning: said || meaning };
  };
  const rows = view.counter.breakdown.map(([name, number]) => describe(name, whole(number)));
  const sent = view.last?.telemetry?.AUT;
  if (written !== undefined) rows.push(describe("AUT", whole(written)));
  else if (sent != null) rows.push(describe("AUT", whole(sent), "what you asked last"));
  if (charsPerToken !== undefined) rows.push(describe("CPT", String(charsPerToken)));
  return rows;
}

/** `~120 ± 8`, `120` where it is exact; where it could be more than double, `~33, at most 146`. @param {Band} band */
export function about(band) {
  const half = Math.max(band.high - band.tokens, band.tokens - band.low, 0);
  if (half > band.tokens && band.tokens > 0) return `~${whole(band.tokens)}, at most ${whole(band.high)}`;
  return half > 0 ? `~${whole(band.tokens)} ± ${whole(half)}` : whole(band.tokens);
}

/**
 * How a pair stands. The place decides, so that what was fetched before the boundary moved is not wrong.
 * @param {PairShown} pair
 * @param {number} index
 * @param {number} start
 * @returns {Standing}
 */
export function standingOf(pair, index, start) {
  if (pair.standing === "left_out" || pair.hand === "out") return "left_out";
  return index >= start ? "included" : "excluded";
}

/**
 * What an answer took: predicted beside what the provider reports.
 * @param {AnswerShown} answer
 * @returns {{ text: string, help: string }[]}
 */
export function usageOf(answer) {
  const found = [];
  const usage = answer.usage;
  const isCounted = !usage?.is_estimated;
  const reported = (isCounted && usage?.input_tokens) || null;
  if (answer.predicted != null && reported != null)
    found.push({
      text: `~${whole(answer.predicted)} predicted, ${whole(reported)} counted${answer.run ? " in all" : ""}`,
      help: answer.run
        ? "Prompt tokens: predicted for the first request, and reported by the provider for all requests"
        : "Tokens of the prompt: what was predicted, and what the provider reports",
    });
  else if (answer.predicted != null)
    found.push({
      text: `~${whole(answer.predicted)} predicted`,
      help: "Tokens of the prompt; the provider has not reported any",
    });
  else if (reported != null)
    found.push({ text: `${whole(reported)} in`, help: "Tokens of the prompt, as reported by the provider" });
  if (usage?.output_tokens != null)
    found.push({
      text: `${isCounted ? "" : "~"}${whole(usage.output_tokens)} out`,
      help: `Tokens of the answer, ${isCounted ? "as reported by the provider" : "estimated"}`,
    });
  if (answer.cost != null)
    found.push({
      text: answer.cost ? costOf({ cost: answer.cost, is_estimated: usage?.is_estimated }) : "free",
      help: `By the provider's prices in the catalogue${isCounted ? "" : ", from estimated tokens"}`,
    });
  if (answer.seconds != null)
    found.push({ text: duration(answer.seconds), help: "From the question to the end of the answer" });
  return found;
}

/** Whether a run with tools was begun for the answer and has not become it. @param {PairShown} pair */
export function isLeft(pair) {
  return pair.run !== "" && pair.state !== "sending" && (pair.trouble !== null || Boolean(pair.answer?.is_partial));
}

/** Why an answer ended before its end; empty where it did not. @param {AnswerShown} answer */
export function whyIncomplete(answer) {
  switch (answer.finish) {
    case "cancelled":
      return "interrupted";
    case "error":
      return "incomplete";
    case "length":
      return "cut at the limit";
    case "content_filter":
      return "stopped by the provider's filter";
    default:
      return answer.is_partial ? "incomplete" : "";
  }
}

/**
 * Whether a new answer takes the focus: only if the input has the focus and is empty, and by default for more than fits
 * on the screen. `focus` and `threshold` are the person's own settings.
 * @param {{ mode: Mode, isEmpty: boolean, height: number, viewport: number, focus?: "tall" | "always" | "never",
 *   threshold?: number }} now
 */
export function takesFocus({ mode, isEmpty, height, viewport, focus = "tall", threshold = 1 }) {
  if (mode !== "input" || !isEmpty || focus === "never") return false;
  return focus === "always" || height > viewport * threshold;
}

/** The next of none, one, two, three stars. @param {number} star */
export function nextStar(star) {
  return (star + 1) % 4;
}

/**
 * Whether a line has a colon command in it, outside of quotes and parentheses, and not right behind a field's name.
 * @param {string} text
 */
export function hasCommand(text) {
  let quote = "";
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index];
    if (quote) {
      if (letter === quote) quote = "";
    } else if (letter === "'" || letter === '"') quote = letter;
    else if (letter === "(") depth += 1;
    else if (letter === ")") depth -= 1;
    else if (
      letter === ":" &&
      depth <= 0 &&
      (index === 0 || /[\s)'"]/.test(text[index - 1])) &&
      /^(?:[a-z]|$)/i.test(text.slice(index + 1))
    )
      return true;
  }
  return false;
}

/** @typedef {{ name: string, rows: { label: string, value: string }[] }} HudGroup */

/** The three groups of the HUD. @param {ViewShown} view @param {Record<string, any>} settings @returns {HudGroup[]} */
export function hud(view, settings) {
  const telemetry = view.last?.telemetry ?? null;
  const { room } = view;
  const parameters = [
    row("Model", view.model),
    row("Model limit", room.limit),
    row("Reserved for your question", room.user),
    row("Reserved for the answer", room.reply),
    row("Reserved as a margin", room.margin),
    row("System", room.system),
    row("Tools", room.tools),
    row("For history", room.history),
    row("Predicted history", view.history_tokens),
    row("Characters per token", settings.charsPerToken ?? telemetry?.charsPerToken),
    row("Trim attempts", settings.maxTrimAttempts ?? telemetry?.maxTrimAttempts),
    row("Estimation", settings.estimation),
  ];
  const trimming = telemetry
    ? [
        row("Stage", telemetry.stage),
        row("Pairs predicted", telemetry.predictedMessageCount),
        row("Pairs trimmed", telemetry.trimmedCount),
        row("Pairs sent", telemetry.sentCount),
        row("Attempts", telemetry.attemptsUsed),
        row("History, predicted", telemetry.predictedHistoryTokens),
        row("Request, predicted", telemetry.predictedTotalTokens),
        row("History, as sent", telemetry.attemptHistoryTokens),
        row("Request, as sent", telemetry.attemptTotalTokens),
        row("Your text", telemetry.AUT),
        row("Left of its allowance", telemetry.remainingReserve),
        row("Trimmed before sending", telemetry.preflightTrimmedCount),
        row("Tokens trimmed", telemetry.trimmingRemovedTokens),
        row("Tokens delivered", telemetry.finalDeliveredTokens),
        row("Counted by the provider", telemetry.reportedInputTokens),
        row("Summary", view.last?.trim_summary),
      ]
    : [{ label: "Nothing was sent yet", value: "" }];
  const trouble = view.last?.trouble ?? null;
  const error =
    trouble || telemetry?.lastErrorMessage
      ? [
          row("Code", trouble?.code),
          row("Class", trouble?.label),
          row("Message", trouble?.message ?? telemetry?.lastErrorMessage),
          row("Taken for an overflow", telemetry?.overflowMatched),
          row("What to do", trouble?.hint),
        ]
      : [{ label: "None", value: "" }];
  return [
    { name: "PARAMETERS", rows: parameters.filter((each) => each.value !== "") },
    { name: "TRIMMING", rows: trimming.filter((each) => each.value !== "" || !telemetry) },
    { name: "ERROR", rows: error.filter((each) => each.value !== "" || each.label === "None") },
  ];
}

/** @param {string} label @param {unknown} value */
function row(label, value) {
  if (value == null) return { label, value: "" };
  if (typeof value === "boolean") return { label, value: value ? "yes" : "no" };
  return {
    label,
    value: typeof value === "number" ? (Number.isInteger(value) ? whole(value) : String(value)) : String(value),
  };
}

/**
 * What a command is about to do, for the dialog that asks for confirmation.
 * @param {string} command
 * @param {number} count
 */
export function confirmationText(command, count) {
  const pairs = countOf(count, "pair");
  switch (command) {
    case "delete":
      return { title: `Delete ${pairs}?`, button: `Delete ${pairs}` };
    case "tchange":
      return { title: `Move ${pairs} to another topic?`, button: `Move ${pairs}` };
    default:
      return { title: `:${command} on ${pairs}?`, button: "Go on" };
  }
}

/**
 * The stretch between two places, whichever comes first; the second is where the last step went.
 * @param {number} anchor
 * @param {number} active
 * @returns {[number, number]} the first, and the one behind the last
 */
export function rangeOf(anchor, active) {
  return [Math.min(anchor, active), Math.max(anchor, active) + 1];
}

/**
 * Which limit a send waits for; a running clock beside it shows how long.
 * @param {string} line as the server says it
 */
export function limitLine(line) {
  const limit = /^can go in [^:]+: (.*)$/s.exec(line)?.[1];
  const words = limit === undefined ? line : `limited by ${limit}`;
  return words && `${words[0].toUpperCase()}${words.slice(1)}.`;
}

/** How long until a moment: `0:42`; empty once it has come. @param {number} then @param {number} now */
export function timeUntil(then, now) {
  const left = Math.ceil(then - now);
  return left > 0 ? formatRunning(left) : "";
}

/** So many of the filters that were applied before are kept, for stepping through them. */
const MOST_KEPT = 100;

/**
 * With one more, the newest last; one that is in the list already moves to the end.
 * @param {readonly string[]} list
 * @param {string} text
 */
export function addToMemory(list, text) {
  const words = text.trim();
  return words ? [...list.filter((each) => each !== words), words].slice(-MOST_KEPT) : [...list];
}

/**
 * One step: older is -1, newer is 1. `at` is the place in the list, its length being what is just written.
 * @param {readonly string[]} list
 * @param {number} at
 * @param {number} by
 */
export function stepThrough(list, at, by) {
  return Math.min(Math.max(at + by, 0), list.length);
}
