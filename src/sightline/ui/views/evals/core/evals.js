// @ts-check
/** Runs of evals: their state in words, and the filtered, ordered matrix of cases and targets. */

import { countOf, duration, money, short } from "../../../kit/core/format.js";
import { lineSpans } from "../../../kit/core/text-diff.js";

/** @import { Cell, EvalBrief, Score } from "../../../api-types.d.ts" */
/** @typedef {import("../../../api-types.d.ts").TargetFigures} TargetLine */
/** @typedef {import("../../../api-types.d.ts").TrialShown} Trial */
/** @typedef {import("../../../api-types.d.ts").CaseRow} MatrixRow */
/** @typedef {import("../../../api-types.d.ts").GraderFigures} GraderLine */
/** @typedef {import("../../../api-types.d.ts").EvalShown} Eval */

/**
 * How a cell stands: the worst of its tries, for that is what a person has to look at.
 * @typedef {"error" | "failed" | "not graded" | "running" | "open" | "skipped" | "passed"} Standing
 */

const STANDING_OF = /** @type {const} */ ({
  pass: "passed",
  fail: "failed",
  not_graded: "not graded",
  skip: "skipped",
});

/** From the worst to the best. @type {readonly Standing[]} */
export const STANDINGS = ["error", "failed", "not graded", "running", "open", "skipped", "passed"];

/** A sign for each, so that no colour is needed to tell them apart. @type {Record<Standing, string>} */
export const MARKS = { error: "!", failed: "✗", "not graded": "?", running: "…", open: "·", skipped: "–", passed: "✓" };

/** @param {Pick<Trial, "status" | "verdict">} trial @returns {Standing} */
export function trialStanding(trial) {
  if (trial.status === "running") return "running";
  if (trial.status === "waiting") return "open";
  if (trial.status === "execution_error") return "error";
  if (trial.status === "skipped") return "skipped";
  return verdictStanding(trial.verdict ?? "not_graded");
}

/** @param {Score["verdict"] | null} verdict @returns {Standing} */
export function verdictStanding(verdict) {
  return verdict === null ? "open" : STANDING_OF[verdict];
}

/** @param {Cell | undefined} cell @returns {Standing} */
export function cellStanding(cell) {
  const found = (cell?.trials ?? []).map(trialStanding);
  return STANDINGS.find((each) => found.includes(each)) ?? "open";
}

/** The mean over the tries that were graded; null where none was. @param {Cell | undefined} cell */
export function cellScore(cell) {
  const graded = (cell?.trials ?? []).filter(
    (trial) => trial.score !== null && ["passed", "failed"].includes(trialStanding(trial)),
  );
  return graded.length ? graded.reduce((sum, trial) => sum + (trial.score ?? 0), 0) / graded.length : null;
}

/**
 * An answer with the words that are others than in the answer of another target.
 * @param {string} other
 * @param {string} answer
 */
export function answerSpans(other, answer) {
  return other ? lineSpans(other, answer)[1] : [{ text: answer, changed: false }];
}

/** The try whose answer a cell shows: the first that did not pass, else the first. @param {Cell | undefined} cell */
export function trialToShow(cell) {
  const trials = cell?.trials ?? [];
  return trials.find((trial) => ["failed", "error", "not graded"].includes(trialStanding(trial))) ?? trials[0];
}

/** A cell as a sentence. @param {string} name @param {string} target @param {Cell | undefined} cell */
export function cellWords(name, target, cell) {
  const score = cellScore(cell);
  const trials = cell?.trials ?? [];
  const tries =
    trials.length > 1
      ? `, ${trials.filter((trial) => trialStanding(trial) === "passed").length} of ${trials.length} tries passed`
      : "";
  return `${name} on ${target}: ${cellStanding(cell)}${score === null ? "" : `, score ${formatScore(score)}`}${tries}`;
}

/** The try that is opened first: the worst one. @param {Cell | undefined} cell */
export function trialToOpen(cell) {
  const trials = [...(cell?.trials ?? [])].sort(
    (a, b) => rank(trialStanding(a)) - rank(trialStanding(b)) || (a.score ?? 0) - (b.score ?? 0),
  );
  return trials[0]?.trial ?? 0;
}

/** @param {Standing} standing */
function rank(standing) {
  return STANDINGS.indexOf(standing);
}

/** A score: 0.5, 0.72, 1. @param {number | null | undefined} value */
export function formatScore(value) {
  return value == null ? "" : String(Number(value.toFixed(3)));
}

/** A share: 82 %, 99.5 %. @param {number | null | undefined} value */
export function percent(value) {
  if (value == null) return "";
  const whole = value * 100;
  return `${Number(whole.toFixed(whole > 99 && whole < 100 ? 1 : 0))} %`;
}

/** A difference with its sign. @param {number | null | undefined} value */
export function formatDifference(value) {
  if (value == null) return "";
  const size = formatScore(Math.abs(value));
  return size === "0" ? "0" : `${value < 0 ? "−" : "+"}${size}`;
}

/** @typedef {{ words: string[], not: string[], fields: { name: string, value: string }[] }} Wanted */

/**
 * What a filter over cases asks for: words that the id, the group or a tag has, `tag:`, `group:`, `target:` and `is:`,
 * and a minus before what must not be.
 * @param {string} text
 * @returns {Wanted}
 */
export function parseCaseFilter(text) {
  const found = /** @type {Wanted} */ ({ words: [], not: [], fields: [] });
  for (const [, sign, key, quoted, bare] of text
    .toLowerCase()
    .matchAll(/(-?)(?:(tag|group|target|is):)?(?:"([^"]*)"|(\S+))/g)) {
    const value = quoted ?? bare ?? "";
    if (key) found.fields.push({ name: key, value: sign + value });
    else if (sign && value) found.not.push(value);
    else if (value) found.words.push(value);
  }
  return found;
}

/** @param {MatrixRow} row @param {Wanted} asked */
export function isWanted(row, asked) {
  const own = [row.case, row.group, ...row.tags].map((each) => each.toLowerCase());
  const has = (/** @type {string} */ word) => own.some((each) => each.includes(word));
  const targets = asked.fields.filter(({ name }) => name === "target");
  const cells = row.cells.filter((cell) =>
    targets.every(({ value }) => matchesValue(value, (bare) => cell.target.toLowerCase().includes(bare))),
  );
  const holds = asked.fields.every(({ name, value }) => {
    if (name === "tag") return matchesValue(value, (bare) => row.tags.some((tag) => tag.toLowerCase() === bare));
    if (name === "group") return matchesValue(value, (bare) => row.group.toLowerCase() === bare);
    if (name === "is") return matchesValue(value, (bare) => cells.some((cell) => hasStanding(cell, bare)));
    return cells.length > 0;
  });
  return holds && asked.words.every(has) && !asked.not.some(has);
}

/** @param {string} value @param {(bare: string) => boolean} test */
function matchesValue(value, test) {
  return value.startsWith("-") ? !test(value.slice(1)) : test(value);
}

/** @param {Cell} cell @param {string} name */
function hasStanding(cell, name) {
  const meant = name.replaceAll(/[-_]/g, " ");
  return cell.trials.some((trial) => {
    const standing = trialStanding(trial);
    return (
      standing === meant ||
      (meant === "bad" && ["failed", "error", "not graded"].includes(standing)) ||
      (meant === "cached" && trial.cached)
    );
  });
}

/**
 * The rows that a filter leaves, in the order that is asked for: the worst first, or as the suite has them.
 * @param {readonly MatrixRow[]} matrix
 * @param {string} filter
 * @param {"worst" | "suite"} order
 * @returns {MatrixRow[]}
 */
export function filterRows(matrix, filter, order) {
  const asked = parseCaseFilter(filter);
  const rows = matrix.filter((row) => isWanted(row, asked));
  if (order === "suite") return rows;
  const placed = rows.map((row) => ({
    row,
    worst: Math.min(...row.cells.map((cell) => rank(cellStanding(cell))), STANDINGS.length),
    score: lowest(row),
  }));
  return placed.sort((a, b) => a.worst - b.worst || a.score - b.score).map(({ row }) => row);
}

/** @param {MatrixRow} row */
function lowest(row) {
  // An error without any score is worse than every score.
  return Math.min(...row.cells.map((cell) => cellScore(cell) ?? (cellStanding(cell) === "error" ? -1 : 2)), 2);
}

/** How many cells stand how. @param {readonly MatrixRow[]} matrix @returns {Record<Standing, number>} */
export function standingCounts(matrix) {
  const counts = /** @type {Record<Standing, number>} */ (Object.fromEntries(STANDINGS.map((each) => [each, 0])));
  for (const row of matrix) for (const cell of row.cells) counts[cellStanding(cell)] += 1;
  return counts;
}

/** How a run stands, in words. @param {Pick<EvalBrief, "state" | "done" | "of"> & { why?: string }} run */
export function evalWords(run) {
  const left = `${run.done} of ${run.of}`;
  if (run.state === "running") return `running, ${left}`;
  if (run.state === "ended") return run.why === "budget" ? "stopped at its budget" : "done";
  return `${run.state}, ${left} done`;
}

/** How well it went at a glance. @param {Pick<EvalBrief, "state" | "summary">} run @returns {"" | "good" | "bad"} */
export function evalTone(run) {
  if (run.state !== "ended" || !run.summary.length) return "";
  if (run.summary.some((line) => line.errors || line.not_graded || (line.pass_rate ?? 1) < 1)) return "bad";
  return run.summary.every((line) => line.pass_rate === 1) ? "good" : "";
}

/** What is known of a cost, and how many parts of it are not. @param {number} atLeast @param {number} unknown */
function costWords(atLeast, unknown) {
  if (!unknown) return atLeast ? money(atLeast) : "";
  return atLeast ? `${money(atLeast)} + ${unknown} unknown` : "cost unknown";
}

/** What a run cost on all its targets. @param {readonly Pick<TargetLine, "cost_at_least" | "cost_unknown">[]} lines */
export function runCost(lines) {
  const unknown = lines.reduce((sum, line) => sum + line.cost_unknown, 0);
  const words = costWords(
    lines.reduce((sum, line) => sum + line.cost_at_least, 0),
    unknown,
  );
  return { words, title: unknown ? `What ${countOf(unknown, "request")} cost is not known.` : "" };
}

/** What a target took. @param {TargetLine} line */
export function describeSpending(line) {
  const tokens = line.tokens_at_least
    ? `${line.tokens === null ? "at least " : ""}${short(line.tokens_at_least)} tokens`
    : "";
  return [
    costWords(line.cost_at_least, line.cost_unknown),
    tokens,
    line.seconds ? `${duration(line.seconds)} an answer` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** What no mean counts. @param {TargetLine} line */
export function describeLeftOut(line) {
  return [line.errors ? countOf(line.errors, "error") : "", line.not_graded ? `${line.not_graded} not graded` : ""]
    .filter(Boolean)
    .join(", ");
}

/**
 * Graders by name, with what each target got.
 * @param {readonly GraderLine[]} graders
 * @returns {{ name: string, lines: ReadonlyMap<string, GraderLine> }[]}
 */
export function gradersOf(graders) {
  const names = [...new Set(graders.map((each) => each.name))];
  return names.map((name) => ({
    name,
    lines: new Map(graders.filter((each) => each.name === name).map((each) => [each.target, each])),
  }));
}

/** The suites of runs, the newest first. @param {readonly Pick<EvalBrief, "suite">[]} runs */
export function suitesOf(runs) {
  return [...new Set(runs.map((run) => run.suite).filter(Boolean))];
}

/**
 * The cell before or after one, in the order in which rows are shown: first to the right, then down.
 * @param {readonly MatrixRow[]} rows
 * @param {string} name
 * @param {string} target
 * @param {1 | -1} by
 * @returns {{ case: string, target: string, trial: number } | null}
 */
export function neighbour(rows, name, target, by) {
  const cells = rows.flatMap((row) =>
    row.cells
      .filter((cell) => !["open", "running"].includes(cellStanding(cell)))
      .map((cell) => ({ case: row.case, target: cell.target, trial: trialToOpen(cell) })),
  );
  const at = cells.findIndex((cell) => cell.case === name && cell.target === target);
  return at < 0 ? (cells[0] ?? null) : (cells[at + by] ?? null);
}
