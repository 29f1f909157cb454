// @ts-check
/** One case of a run: the results of its graders as a tree, and where its parts are in the suite's file. */

import { countOf, duration, money } from "../../../kit/core/format.js";
import { formatScore } from "./evals.js";

/** @import { Note, Score } from "../../../api-types.d.ts" */
/** @typedef {import("../../../api-types.d.ts").MessageShown} Message */
/** @typedef {import("../../../api-types.d.ts").TurnShown} Turn */
/** @typedef {import("../../../api-types.d.ts").CaseShown} Case */

/**
 * Whether a grader, or one inside it, has something that a person should see at once.
 * @param {Score} score
 * @returns {boolean}
 */
export function isNoteworthy(score) {
  return (
    score.verdict === "fail" ||
    score.verdict === "not_graded" ||
    (score.checks ?? []).some((check) => !check.passed) ||
    (score.scores ?? []).some(isNoteworthy)
  );
}

/** What stands beside a grader's name. @param {Score} score */
export function scoreFacts(score) {
  return [
    score.weight !== undefined && score.weight !== 1 ? `weight ${formatScore(score.weight)}` : "",
    score.required != null ? `required ≥ ${formatScore(score.required)}` : "",
    (score.checks?.length ?? 0) > 1
      ? `${score.checks?.filter((check) => check.passed).length} of ${countOf(score.checks?.length ?? 0, "check")} held`
      : "",
    score.cost ? money(score.cost) : "",
    score.seconds != null && score.seconds >= 0.05 ? duration(score.seconds) : "",
  ].filter(Boolean);
}

const KINDS = /** @type {Record<Note["kind"], string>} */ ({
  extracted: "moved to the front",
  inlined: "put in as text",
  attached: "put in as a part",
  moved: "moved",
  merged: "merged",
  skipped: "left out",
  added: "added",
  unclear: "may be misread",
});

/** What delivery did, in words. @param {Note} note */
export function noteKind(note) {
  return KINDS[note.kind];
}

/**
 * A pointer of JSON as the steps of a path: numbers where a list is gone through.
 * @param {unknown} source
 * @param {string} pointer
 * @returns {(string | number)[]}
 */
export function pathFrom(source, pointer) {
  /** @type {any} */
  let here = source;
  return pointer
    .split("/")
    .slice(1)
    .map((step) => {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      const key = Array.isArray(here) ? Number(name) : name;
      here = here?.[key];
      return key;
    });
}

/** A path as it is read: `input[0].content`. @param {readonly (string | number)[]} path */
export function pathWords(path) {
  return path.map((step, place) => (typeof step === "number" ? `[${step}]` : `${place ? "." : ""}${step}`)).join("");
}

/**
 * What was said in a turn, and what had been said before it.
 * @param {readonly Message[]} messages
 * @returns {{ before: readonly Message[], own: readonly Message[] }}
 */
export function turnMessages(messages) {
  const last = messages.findLastIndex((message) => message.role === "assistant");
  return { before: messages.slice(0, last + 1), own: messages.slice(last + 1) };
}

/** The exchange that holds what was asked: the last one. @param {Pick<Case, "exchanges">} shown */
export function exchangeOf(shown) {
  return shown.exchanges.at(-1) ?? "";
}

/** A new suite's file by what was typed: with an ending, and inside the folder of suites. @param {string} typed */
export function fileNamed(typed) {
  const name = typed.trim().replaceAll("\\", "/").replace(/^\/+/, "");
  if (!name || name.split("/").includes("..")) return "";
  return /\.(ya?ml|jsonl)$/i.test(name) ? name : `${name}.yaml`;
}
