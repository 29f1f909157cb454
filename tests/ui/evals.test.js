// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cellScore,
  cellStanding,
  cellWords,
  evalTone,
  evalWords,
  gradersOf,
  describeLeftOut,
  neighbour,
  percent,
  runCost,
  formatScore,
  filterRows,
  formatDifference,
  describeSpending,
  standingCounts,
  suitesOf,
  trialToOpen,
  verdictStanding,
} from "../../src/sightline/ui/views/evals/core/evals.js";
import {
  exchangeOf,
  fileNamed,
  isNoteworthy,
  noteKind,
  pathFrom,
  pathWords,
  scoreFacts,
  turnMessages,
} from "../../src/sightline/ui/views/evals/core/case.js";
import {
  spreadLabels,
  bins,
  formatChance,
  casesByChange,
  changeWords,
  differenceRange,
  distributionWords,
  intervalWords,
  scale,
  scoreRange,
  ticks,
  trendOf,
  trendWords,
} from "../../src/sightline/ui/views/evals/core/plot.js";
import { hashOf, routeOf } from "../../src/sightline/ui/kit/core/routes.js";

/** @import { Cell, MatrixRow, TargetLine, Trial } from "../../src/sightline/ui/views/evals/core/evals.js" */

/** @param {number | null} score @param {Partial<Trial>} [more] @returns {Trial} */
const tried = (score, more = {}) => ({
  trial: 0,
  status: "ok",
  verdict: score === null ? "not_graded" : score >= 0.5 ? "pass" : "fail",
  score,
  cached: false,
  seconds: 1,
  cost: null,
  reason: "",
  ...more,
});
/**
 * @param {string} name
 * @param {Record<string, Trial[]>} cells
 * @param {Partial<MatrixRow>} [more]
 * @returns {MatrixRow}
 */
const row = (name, cells, more = {}) => ({
  case: name,
  group: "",
  tags: [],
  cells: Object.entries(cells).map(([target, trials]) => ({ target, trials })),
  ...more,
});

const MATRIX = [
  row("Good", { a: [tried(1)], b: [tried(0.9, { cached: true })] }, { tags: ["Smoke"] }),
  row("bad", { a: [tried(0.2, { status: "quality_failure" })], b: [tried(1)] }, { group: "billing" }),
  row("broken", { a: [tried(1)], b: [tried(null, { status: "execution_error" })] }),
  row("judge", { a: [tried(null)], b: [tried(null, { status: "waiting", verdict: null })] }),
  row("worse", {
    a: [tried(0.1), tried(0.9, { trial: 1 }), tried(0, { trial: 2 })],
    b: [tried(null, { status: "running", verdict: null })],
  }),
];

test("a cell stands as the worst of its tries, and its score is the mean of those that were graded", () => {
  assert.deepEqual(
    MATRIX.map((each) => each.cells.map(cellStanding)),
    [
      ["passed", "passed"],
      ["failed", "passed"],
      ["passed", "error"],
      ["not graded", "open"],
      ["failed", "running"],
    ],
  );
  assert.equal(cellStanding(undefined), "open");
  assert.equal(cellStanding({ target: "a", trials: [tried(null, { status: "skipped", verdict: "skip" })] }), "skipped");
  assert.equal(formatScore(cellScore(MATRIX[4].cells[0])), "0.333");
  assert.equal(cellScore(MATRIX[3].cells[0]), null);
  assert.equal(trialToOpen(MATRIX[4].cells[0]), 2);
  assert.equal(cellWords("worse", "a", MATRIX[4].cells[0]), "worse on a: failed, score 0.333, 1 of 3 tries passed");
  assert.equal(cellWords("judge", "b", MATRIX[3].cells[1]), "judge on b: open");
  assert.deepEqual(standingCounts(MATRIX), {
    error: 1,
    failed: 2,
    "not graded": 1,
    running: 1,
    open: 1,
    skipped: 0,
    passed: 4,
  });
});

test("failures come first, and a filter finds words, tags, groups, targets and standings", () => {
  const named = (/** @type {string} */ filter) => filterRows(MATRIX, filter, "worst").map((each) => each.case);
  assert.deepEqual(named(""), ["broken", "bad", "worse", "judge", "Good"]);
  assert.deepEqual(
    filterRows(MATRIX, "", "suite").map((each) => each.case),
    MATRIX.map((each) => each.case),
  );
  assert.deepEqual(named("o -worse"), ["broken", "Good"]);
  assert.deepEqual(
    [named("tag:smoke"), named("-tag:smoke").length, named("group:BILLING"), named('group:"billing"')],
    [["Good"], 4, ["bad"], ["bad"]],
  );
  assert.deepEqual(named("is:failed"), ["bad", "worse"]);
  assert.deepEqual(named("is:failed target:b"), []);
  assert.deepEqual(named("is:error target:b"), ["broken"]);
  assert.deepEqual(
    [named("is:not-graded"), named("is:cached"), named("is:bad").length, named("target:z")],
    [["judge"], ["Good"], 4, []],
  );
});

test("from a case the next one is the next cell that has an answer", () => {
  const rows = filterRows(MATRIX, "", "suite");
  assert.deepEqual(neighbour(rows, "Good", "a", 1), { case: "Good", target: "b", trial: 0 });
  assert.deepEqual(neighbour(rows, "Good", "b", 1), { case: "bad", target: "a", trial: 0 });
  assert.deepEqual(neighbour(rows, "judge", "a", 1), { case: "worse", target: "a", trial: 2 });
  assert.deepEqual([neighbour(rows, "Good", "a", -1), neighbour(rows, "worse", "a", 1)], [null, null]);
  assert.deepEqual(neighbour(rows, "gone", "a", 1), { case: "Good", target: "a", trial: 0 });
});

test("runs and targets in words", () => {
  const line = /** @type {TargetLine} */ ({
    target: "a",
    errors: 1,
    not_graded: 2,
    cost: 0.5,
    cost_at_least: 0.5,
    cost_unknown: 0,
    tokens: 1200,
    tokens_at_least: 1200,
    seconds: 1.5,
    pass_rate: 0.5,
  });
  assert.equal(evalWords({ state: "running", done: 3, of: 9 }), "running, 3 of 9");
  assert.equal(evalWords({ state: "interrupted", done: 3, of: 9 }), "interrupted, 3 of 9 done");
  assert.deepEqual(
    ["finished", "budget"].map((why) => evalWords({ state: "ended", done: 9, of: 9, why })),
    ["done", "stopped at its budget"],
  );
  assert.deepEqual(
    [
      evalTone({ state: "ended", summary: [line] }),
      evalTone({ state: "running", summary: [line] }),
      evalTone({ state: "ended", summary: [{ ...line, errors: 0, not_graded: 0, pass_rate: 1 }] }),
    ],
    ["bad", "", "good"],
  );
  assert.equal(describeLeftOut(line), "1 error, 2 not graded");
  assert.equal(evalTone({ state: "ended", summary: [{ ...line, errors: 0, not_graded: 0, pass_rate: null }] }), "");
  assert.equal(describeSpending(line), "$0.500 · 1.2k tokens · 1.50 s an answer");
  assert.equal(
    describeSpending({ ...line, cost: null, cost_unknown: 2, tokens: null }),
    "$0.500 + 2 unknown · at least 1.2k tokens · 1.50 s an answer",
  );
  assert.deepEqual(runCost([line, { ...line, cost: null, cost_at_least: 0, cost_unknown: 1 }]), {
    words: "$0.500 + 1 unknown",
    title: "What 1 request cost is not known.",
  });
  assert.deepEqual([runCost([]).words, runCost([{ cost_at_least: 0, cost_unknown: 3 }]).words], ["", "cost unknown"]);
  assert.deepEqual(
    [
      formatScore(1),
      formatScore(0.12345),
      formatScore(null),
      percent(0.824),
      percent(0.995),
      percent(1),
      percent(null),
      formatDifference(-0.25),
      formatDifference(0.1),
      formatDifference(-0.00001),
      formatDifference(null),
    ],
    ["1", "0.123", "", "82 %", "99.5 %", "100 %", "", "−0.25", "+0.1", "0", ""],
  );
  assert.deepEqual(suitesOf([{ suite: "a" }, { suite: "" }, { suite: "b" }, { suite: "a" }]), ["a", "b"]);
  const graders = gradersOf([
    { target: "a", name: "x", type: "t", mean: 1, n: 1, passes: 1, not_graded: 0 },
    { target: "b", name: "x", type: "t", mean: null, n: 0, passes: 0, not_graded: 1 },
  ]);
  assert.deepEqual(
    graders.map(({ name, lines }) => [name, [...lines.keys()]]),
    [["x", ["a", "b"]]],
  );
});

test("what graders said, and where a value stands in its suite", () => {
  const inner = {
    name: "i",
    type: "t",
    verdict: /** @type {const} */ ("pass"),
    score: 1,
    checks: [
      { text: "x", passed: true },
      { text: "y", passed: false },
    ],
    weight: 2,
    required: 0.5,
    cost: 0.01,
    seconds: 2,
  };
  assert.deepEqual(scoreFacts(inner), ["weight 2", "required ≥ 0.5", "1 of 2 checks held", "$0.010", "2.00 s"]);
  assert.ok(isNoteworthy({ name: "o", type: "composite", verdict: "pass", scores: [inner] }));
  assert.ok(!isNoteworthy({ name: "o", type: "composite", verdict: "pass", scores: [{ ...inner, checks: [] }] }));
  assert.deepEqual([verdictStanding("not_graded"), verdictStanding(null)], ["not graded", "open"]);
  const said = (/** @type {string} */ role) => ({ role, name: "", blocks: [] });
  assert.deepEqual(turnMessages([said("system"), said("user"), said("assistant"), said("user")]), {
    before: ["system", "user", "assistant"].map(said),
    own: [said("user")],
  });
  assert.equal(noteKind({ kind: "extracted", what: "a", why: "b" }), "moved to the front");
  const source = { input: [{ role: "user", "a/b~c": ["x"] }] };
  assert.deepEqual(pathFrom(source, "/input/0/a~1b~0c/0"), ["input", 0, "a/b~c", 0]);
  assert.equal(pathWords(["input", 0, "content", 1, "value"]), "input[0].content[1].value");
  assert.equal(exchangeOf({ exchanges: ["x1", "x2"] }) + exchangeOf({ exchanges: [] }), "x2");
  assert.deepEqual(["support", " /a/b.yml", "../x", "", "a.jsonl"].map(fileNamed), [
    "support.yaml",
    "a/b.yml",
    "",
    "",
    "a.jsonl",
  ]);
});

test("plots have round numbers, and say what they show", () => {
  assert.deepEqual(
    ticks({ low: 0, high: 1 }, { count: 4 }).map(({ label }) => label),
    ["0", "0.25", "0.5", "0.75", "1"],
  );
  assert.deepEqual(
    ticks({ low: -0.25, high: 0.25 }, { isSigned: true }).map(({ label }) => label),
    ["−0.2", "−0.1", "0", "+0.1", "+0.2"],
  );
  assert.deepEqual([0, 0.5, 1].map(scale({ low: 0, high: 1 }, 10, 110)), [10, 60, 110]);
  assert.deepEqual(scoreRange([0.2, null, 1.2]), { low: 0, high: 1.2 });
  assert.deepEqual(
    [differenceRange([0.02]), differenceRange([-0.3, 0.1]), differenceRange([2])].map(({ low, high }) => [low, high]),
    [
      [-0.1, 0.1],
      [-0.5, 0.5],
      [-1, 1],
    ],
  );
  assert.deepEqual(
    bins([0, 0.05, 0.3, 0.7, 1, 1]).map(({ count }) => count),
    [2, 0, 0, 1, 0, 0, 0, 1, 0, 2],
  );
  assert.equal(distributionWords("A", [0, 1, 0.5]), "A: 3 scores, mean 0.5; 1 of them 1, 1 of them 0, 1 between.");
  assert.equal(distributionWords("A", []), "A: no scores.");
  assert.equal(intervalWords("Mean", 0.5, 0.4, 0.6), "Mean: 0.5, 95 % interval from 0.4 to 0.6.");
  assert.deepEqual(
    [intervalWords("Mean", 0.5, null, null), intervalWords("Mean", null, null, null)],
    ["Mean: 0.5, no interval.", "Mean: no number."],
  );
  assert.deepEqual([formatChance(0.0001), formatChance(0.25), formatChance(null)], ["p < 0.001", "p = 0.25", ""]);
  assert.deepEqual(spreadLabels([{ at: 50 }, { at: 48 }, { at: 99 }], 10, 100), [58, 48, 99]);
  assert.deepEqual(spreadLabels([{ at: 99 }, { at: 98 }], 10, 100), [100, 90]);
});

test("runs of a suite are lines over time", () => {
  const point = (
    /** @type {string} */ run,
    /** @type {number} */ at,
    /** @type {string} */ target,
    /** @type {number | null} */ mean,
  ) => ({ run, at, target, mean, low: null, high: null, pass_rate: mean, results: 1, finding: null, change: "" });
  const trend = trendOf([point("r2", 2, "a", 0.7), point("r1", 1, "a", 0.5), point("r2", 2, "b", null)]);
  assert.deepEqual(
    trend.runs.map(({ run }) => run),
    ["r1", "r2"],
  );
  assert.deepEqual(
    trend.lines.map(({ target, points }) => [target, points.map(({ place, mean }) => [place, mean])]),
    [
      [
        "a",
        [
          [0, 0.5],
          [1, 0.7],
        ],
      ],
      ["b", []],
    ],
  );
  const told = trendOf([point("r1", 1, "a", 0.5), { ...point("r2", 2, "a", 0.5), change: "r1 and r2 score the same." }])
    .lines[0];
  const named = (/** @type {number} */ at) => `day ${at}`;
  assert.deepEqual(
    [changeWords(told, 1, named), changeWords(told, 0, named), changeWords(trend.lines[1], -1, named)],
    ["The run of day 1 and the run of day 2 score the same.", "", ""],
  );
  assert.deepEqual(trend.lines.map(trendWords), ["a: 2 runs, mean from 0.5 to 0.7, +0.2.", "b: no scores."]);
  assert.equal(trendWords(trendOf([point("r1", 1, "a", 0.5)]).lines[0]), "a: one run, mean 0.5.");
});

test("what changed between two runs: losses first, the largest of each first", () => {
  const compared = (/** @type {string} */ name, /** @type {number} */ difference) =>
    /** @type {any} */ ({ case: name, a: 0.5, b: 0.5 + difference, difference });
  const cases = [
    compared("same", 0),
    compared("up", 0.1),
    compared("down", -0.1),
    compared("far up", 0.4),
    compared("far down", -0.3),
  ];
  assert.deepEqual(
    casesByChange(cases, false).map((each) => each.case),
    ["far down", "down", "far up", "up"],
  );
  assert.equal(casesByChange(cases, true).at(-1)?.case, "same");
});

test("evals have addresses", () => {
  for (const route of /** @type {import("../../src/sightline/ui/kit/core/routes.js").Route[]} */ ([
    { view: "evals" },
    { view: "evals", suite: "evals/a b.yaml", compare: "e_1" },
    { view: "eval", id: "e_1" },
    { view: "eval", id: "e_1", filter: "is:failed x" },
    { view: "eval", id: "e_1", order: "suite" },
    { view: "eval-case", id: "e_1", case: "a", target: "t", trial: 0, filter: "is:bad", order: "suite" },
    { view: "eval-case", id: "e_1", case: "a/b?c", target: "openai/gpt-5", trial: 2 },
    { view: "eval-compare", a: "e_1", b: "e_2", targetA: "x", targetB: "y" },
    { view: "eval-trend", suite: "a.yaml" },
  ])) {
    assert.deepEqual(routeOf(hashOf(route)), route);
  }
});
