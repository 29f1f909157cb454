// @ts-check
/** The settings of the chat: name, help, default and valid values of each. */

/**
 * @typedef {{ charsPerToken: number, userRequestAllowance: number, assistantResponseAllowance: number, maxTrimAttempts:
 *   number, preflightTrimming: boolean, estimation: "model" | "characters", styleDirectives: readonly string[],
 *   replyFocus: "tall" | "always" | "never", partialHeightThreshold: number }} ChatSettings
 */
/**
 * @typedef {{ name: keyof ChatSettings, label: string, unit?: string, help: string } & (
 *   { kind: "number", least: number, most: number, isWhole?: boolean } | { kind: "switch" } | { kind: "lines" }
 *   | { kind: "choice", choices: [string, string][] })} Field
 */

/** @type {ChatSettings} */
export const USUAL = {
  charsPerToken: 3.5,
  userRequestAllowance: 100,
  assistantResponseAllowance: 800,
  maxTrimAttempts: 10,
  preflightTrimming: true,
  estimation: "model",
  styleDirectives: [],
  replyFocus: "tall",
  partialHeightThreshold: 1,
};

/** @type {readonly Field[]} */
export const FIELDS = [
  {
    name: "userRequestAllowance",
    label: "Reserved for your question",
    unit: "tokens",
    kind: "number",
    least: 0,
    most: 10_000_000,
    isWhole: true,
    help:
      "Tokens reserved for your question. The boundary between what is sent and what is left out stays where it is " +
      "until a question needs more.",
  },
  {
    name: "assistantResponseAllowance",
    label: "Reserved for the answer",
    unit: "tokens",
    kind: "number",
    least: 0,
    most: 10_000_000,
    isWhole: true,
    help: "Tokens reserved for the answer.",
  },
  {
    name: "maxTrimAttempts",
    label: "Maximum trim attempts",
    kind: "number",
    least: 0,
    most: 100,
    isWhole: true,
    help: "How often a request that is too long is sent again, each time without the oldest pair.",
  },
  {
    name: "preflightTrimming",
    label: "Trim before sending",
    kind: "switch",
    help:
      "When a question takes more than its allowance, the oldest pairs are left out before the first attempt. " +
      "Otherwise the whole request is sent first.",
  },
  {
    name: "estimation",
    label: "How tokens are counted",
    kind: "choice",
    choices: [
      ["model", "As the model counts"],
      ["characters", "By characters only"],
    ],
    help: "By the model's own vocabulary where it is public; by characters the same way for every model.",
  },
  {
    name: "charsPerToken",
    label: "Characters per token",
    kind: "number",
    least: 0.5,
    most: 20,
    help: "How many characters count as one token, where tokens are counted by characters.",
  },
  {
    name: "styleDirectives",
    label: "Style directives",
    kind: "lines",
    help: "Sent to every model after the topic's system prompt, one per line.",
  },
  {
    name: "replyFocus",
    label: "When an answer arrives",
    kind: "choice",
    choices: [
      ["tall", "Go to the history if it is tall"],
      ["always", "Always go to the history"],
      ["never", "Stay in the input"],
    ],
    help: "Only while you are in an empty input. VIEW mode then starts at the answer; otherwise you keep writing.",
  },
  {
    name: "partialHeightThreshold",
    label: "Tall answers",
    kind: "number",
    least: 0.1,
    most: 10,
    help:
      "How tall an answer is before it counts as tall, in heights of the history: 1 is more than fits on the screen, " +
      "0.5 more than half of it.",
  },
];

/**
 * What a typed value means, or why it means nothing.
 * @param {Field} field
 * @param {string} text
 * @returns {{ value: unknown } | { problem: string }}
 */
export function read(field, text) {
  if (field.kind === "lines") return { value: linesOf(text) };
  if (field.kind === "choice")
    return field.choices.some(([value]) => value === text) ? { value: text } : { problem: "Choose one of them." };
  if (field.kind === "switch") return { value: text === "true" };
  const number = Number(text.trim().replaceAll(/(?<=\d)[ ,](?=\d{3}\b)/g, ""));
  const isIn =
    text.trim() !== "" && number >= field.least && number <= field.most && (!field.isWhole || Number.isInteger(number));
  const kind = field.isWhole ? "A whole number" : "A number";
  const [least, most] = [field.least.toLocaleString("en-US"), field.most.toLocaleString("en-US")];
  return isIn ? { value: number } : { problem: `${kind} from ${least} to ${most}.` };
}

/** The lines of a text that say something. @param {string} text */
export function linesOf(text) {
  const lines = text.split("\n");
  return lines.map((line) => line.trim()).filter(Boolean);
}

/** A value as its field shows it. @param {unknown} value */
export function fieldText(value) {
  return Array.isArray(value) ? value.join("\n") : String(value ?? "");
}

/** Whether a value is the usual one. @param {ChatSettings} settings @param {keyof ChatSettings} name */
export function isUsual(settings, name) {
  return fieldText(settings[name]) === fieldText(USUAL[name]);
}
