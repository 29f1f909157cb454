// @ts-check
/** The tree of topics: ordered, searched, and with what each topic inherits. */

import { countOf } from "../../../kit/core/format.js";
import { linesOf } from "./settings.js";

/** @typedef {Partial<import("../../../api-types.d.ts").TopicParameters>} Parameters */
/**
 * Of what can be inherited, null is as above it; an empty text is none.
 * @typedef {Pick<import("../../../api-types.d.ts").TopicShown, "id" | "name" | "parent"> &
 *   Partial<import("../../../api-types.d.ts").TopicShown>} Topic
 */
/** @typedef {{ topic: Topic, depth: number, path: string }} Row */
/**
 * @typedef {{ system_prompt: string, instructions: string, model: string, style_directives: readonly string[],
 *   parameters: Parameters, toolsets: readonly string[] }} Inherited
 */

export const BETWEEN = " › ";
const ROOT = "";

/**
 * Every topic below the root, parents before children, children by name.
 * @param {readonly Topic[]} topics
 * @returns {Row[]}
 */
export function tree(topics) {
  /** @type {Map<string, Topic[]>} */
  const children = new Map();
  for (const topic of topics)
    if (topic.id !== ROOT) children.set(topic.parent ?? ROOT, [...(children.get(topic.parent ?? ROOT) ?? []), topic]);
  /** @type {Row[]} */
  const rows = [];
  const walk = (/** @type {string} */ parent, /** @type {number} */ depth, /** @type {string} */ above) => {
    const named = [...(children.get(parent) ?? [])].sort((a, b) => a.name.localeCompare(b.name));
    children.delete(parent); // a topic has one place, even if the list names it twice
    for (const topic of named) {
      const path = above ? above + BETWEEN + topic.name : topic.name;
      rows.push({ topic, depth, path });
      walk(topic.id, depth + 1, path);
    }
  };
  walk(ROOT, 0, "");
  return rows;
}

/**
 * The rows whose path has all of these words; without any, all of them.
 * @param {readonly Row[]} rows
 * @param {string} text
 * @returns {readonly Row[]}
 */
export function findRows(rows, text) {
  const words = text
    .toLowerCase()
    .split(/[\s›>/]+/)
    .filter(Boolean);
  if (!words.length) return rows;
  const fitting = rows.filter((row) => words.every((word) => row.path.toLowerCase().includes(word)));
  // What is named so comes before what only stands below it.
  return fitting.sort((a, b) => Number(hasOwn(b, words)) - Number(hasOwn(a, words)));
}

/** @param {Row} row @param {string[]} words */
function hasOwn(row, words) {
  return words.some((word) => row.topic.name.toLowerCase().includes(word));
}

/**
 * The topic that typed words would make: `Work › Plans` below Work, if there is a Work. Null where it is there already.
 * @param {readonly Row[]} rows
 * @param {string} text
 * @returns {{ name: string, parent: string, above: string } | null}
 */
export function topicToCreate(rows, text) {
  const steps = text
    .split(/[›>/]/)
    .map((step) => step.trim())
    .filter(Boolean);
  const name = steps.pop();
  if (!name) return null;
  const above = steps.join(BETWEEN).toLowerCase();
  const parent = above ? rows.find((row) => row.path.toLowerCase() === above) : null;
  if (parent === undefined) return null;
  const isThere = rows.some(
    (row) => row.topic.parent === (parent?.topic.id ?? ROOT) && row.topic.name.toLowerCase() === name.toLowerCase(),
  );
  return isThere ? null : { name, parent: parent?.topic.id ?? ROOT, above: parent?.path ?? "" };
}

/**
 * What a topic inherits from those above it: it fills the topic's empty fields.
 * @param {readonly Topic[]} topics
 * @param {string} parent
 * @returns {Inherited}
 */
export function inheritanceOf(topics, parent) {
  const known = new Map(topics.map((topic) => [topic.id, topic]));
  /** @type {Topic[]} */
  const above = [];
  for (
    let at = known.get(parent);
    at && above.length < 64;
    at = at.id === ROOT ? undefined : known.get(at.parent ?? ROOT)
  )
    above.unshift(at);
  /** @type {Inherited} */
  let inherited = {
    system_prompt: "",
    instructions: "",
    model: "",
    style_directives: [],
    parameters: {},
    toolsets: [],
  };
  for (const topic of above) {
    inherited = {
      system_prompt: topic.system_prompt ?? inherited.system_prompt,
      instructions: topic.instructions ?? inherited.instructions,
      model: topic.model ?? inherited.model,
      style_directives: topic.style_directives ?? inherited.style_directives,
      parameters: { ...inherited.parameters, ...withoutUnset(topic.parameters ?? {}) },
      toolsets: topic.toolsets ?? inherited.toolsets,
    };
  }
  return inherited;
}

/** @param {Parameters} parameters @returns {Parameters} */
function withoutUnset(parameters) {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value != null));
}

/** Where a topic may stand: nowhere below itself. @param {readonly Row[]} rows @param {string} id @returns {Row[]} */
export function parentsFor(rows, id) {
  const own = rows.find((row) => row.topic.id === id);
  return rows.filter((row) => row.topic.id !== id && !(own && row.path.startsWith(own.path + BETWEEN)));
}

/** Why a topic cannot be deleted; empty where it can. @param {readonly Topic[]} topics @param {Topic} topic */
export function whyKept(topics, topic) {
  const below = topics.filter((each) => each.id !== ROOT && each.parent === topic.id).length;
  if (below === 1) return "It has a topic below it. Move or delete it first.";
  if (below) return `It has ${below} topics below it. Move or delete them first.`;
  if (topic.direct === 1) return "A pair is in it. Move or delete it first.";
  return topic.direct ? `It has ${countOf(topic.direct, "pair")}. Move or delete them first.` : "";
}

/**
 * A topic as its form has it: texts, and what is inherited as null.
 * @typedef {{ name: string, parent: string, system_prompt: string | null, instructions: string | null, model: string |
 *   null, directives: string | null, toolsets: readonly string[] | null, temperature: string, top_p: string,
 *   max_tokens: string, effort: string, verbosity: string }} Form
 */

/** @param {Partial<Topic> | null} topic @param {string} [parent] @returns {Form} */
export function formOf(topic, parent = ROOT) {
  const parameters = topic?.parameters ?? {};
  return {
    name: topic?.name ?? "",
    parent: topic?.parent ?? parent,
    system_prompt: topic?.system_prompt ?? null,
    instructions: topic?.instructions ?? null,
    model: topic?.model ?? null,
    directives: topic?.style_directives?.join("\n") ?? null,
    toolsets: topic?.toolsets ?? null,
    temperature: parameters.temperature == null ? "" : String(parameters.temperature),
    top_p: parameters.top_p == null ? "" : String(parameters.top_p),
    max_tokens: parameters.max_tokens == null ? "" : String(parameters.max_tokens),
    effort: parameters.effort ?? "",
    verbosity: parameters.verbosity ?? "",
  };
}

/**
 * The limits of what is a number.
 * @type {Record<"temperature" | "top_p" | "max_tokens", { least: number, most: number, isWhole: boolean }>}
 */
export const NUMBERS = {
  temperature: { least: 0, most: 2, isWhole: false },
  top_p: { least: 0, most: 1, isWhole: false },
  max_tokens: { least: 1, most: 10_000_000, isWhole: true },
};

/** What is wrong with a form, by field. @param {Form} form @param {boolean} isRoot @returns {Record<string, string>} */
export function problemsOf(form, isRoot) {
  /** @type {Record<string, string>} */
  const problems = {};
  if (!form.name.trim() && !isRoot) problems.name = "A topic needs a name.";
  for (const [name, { least, most, isWhole }] of Object.entries(NUMBERS)) {
    const text = form[/** @type {keyof typeof NUMBERS} */ (name)].trim();
    const number = Number(text);
    if (text && !(number >= least && number <= most && (!isWhole || Number.isInteger(number))))
      problems[name] = `${isWhole ? "A whole number" : "A number"} from ${least} to ${most}.`;
  }
  return problems;
}

/** As the server takes it. @param {Form} form */
export function bodyOf(form) {
  /** @type {Record<string, unknown>} */
  const parameters = {};
  for (const name of /** @type {(keyof typeof NUMBERS)[]} */ (Object.keys(NUMBERS)))
    if (form[name].trim()) parameters[name] = Number(form[name]);
  if (form.effort.trim()) parameters.effort = form.effort.trim();
  if (form.verbosity.trim()) parameters.verbosity = form.verbosity.trim();
  return {
    name: form.name.trim(),
    parent: form.parent,
    system_prompt: form.system_prompt,
    instructions: form.instructions,
    model: form.model,
    style_directives: form.directives === null ? null : linesOf(form.directives),
    toolsets: form.toolsets,
    parameters,
  };
}
