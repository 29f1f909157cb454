// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf, routeOf } from "../../src/sightline/ui/kit/core/routes.js";
import {
  argumentsText,
  compareRounds,
  outcomeOf,
  toneOf,
  isSameArguments,
  freeArguments,
  patternsFor,
  describeLimit,
  readArguments,
  roundLine,
  ruleWords,
  spans,
  spendings,
  stateWords,
} from "../../src/sightline/ui/views/runs/core/runs.js";

/** @import { Round, Run, RunCall } from "../../src/sightline/ui/views/runs/core/runs.js" */

/** @param {string} name @param {object} args @param {string} [result] @returns {RunCall} */
const call = (name, args, result = "ok") => ({
  key: name,
  id: name,
  name,
  arguments: JSON.stringify(args),
  ran: /** @type {any} */ (args),
  fate: "ran",
  result: { text: result, is_error: false },
  seconds: 1,
});
/** @param {number} number @param {string} text @param {RunCall[]} calls @returns {Round} */
const round = (number, text, calls = []) => ({
  number,
  exchange: `x${number}`,
  text,
  thinking: "",
  calls,
  usage: { input_tokens: 10, output_tokens: 2 },
  cost: 0.01,
  seconds: 2,
});

test("arguments are edited as JSON, and free text as text", () => {
  assert.equal(argumentsText({ a: 1 }), '{\n  "a": 1\n}');
  assert.equal(argumentsText("free"), "free");
  assert.deepEqual(readArguments('{"a":2}', { a: 1 }), { value: { a: 2 } });
  assert.deepEqual(readArguments("not json", "free"), { value: "not json" });
  assert.ok("problem" in readArguments("[1]", {}) && "problem" in readArguments("{", {}));
  assert.ok(
    isSameArguments({ a: 1, b: { d: 2, c: [1] } }, { b: { c: [1], d: 2 }, a: 1 }) &&
      !isSameArguments({ a: 1 }, { a: "1" }),
  );
});

test("a rule offers the folder of a path, and the very value of anything else", () => {
  assert.deepEqual(patternsFor({ path: "src/a/b.py", command: "ls -l /tmp", depth: 3, edits: [{}], "a/b": true }), [
    { pointer: "/path", name: "path", pattern: "src/a/*" },
    { pointer: "/command", name: "command", pattern: "ls -l /tmp" },
    { pointer: "/depth", name: "depth", pattern: "3" },
    { pointer: "/a~1b", name: "a/b", pattern: "true" },
  ]);
  assert.deepEqual(patternsFor("some text"), [{ pointer: "", name: "text", pattern: "some text" }]);
  assert.deepEqual(
    patternsFor({ glob: "*.py", text: "two\nlines", none: "", long: "x".repeat(201) }),
    [],
    "no pattern means exactly these",
  );
  assert.deepEqual(patternsFor("two\nlines"), []);
  assert.deepEqual(
    freeArguments(
      { path: "a", "a/b": 1, text: "x" },
      { tool: "t", ruling: "allow", arguments: { "/path": "a", "/a~1b": "1" } },
    ),
    ["text"],
  );
  assert.deepEqual(
    [
      freeArguments("ls", { tool: "t", ruling: "allow" }),
      freeArguments("ls", { tool: "t", ruling: "allow", arguments: { "": "ls" } }),
    ],
    [["text"], []],
  );
  assert.equal(
    ruleWords({ tool: "read_file", ruling: "allow", arguments: { "/path": "src/*" } }),
    "read_file where path is src/*",
  );
  assert.equal(ruleWords({ tool: "x", ruling: "allow" }), "x, whatever its arguments");
});

test("limits and spendings in words", () => {
  assert.equal(describeLimit({ name: "requests", limit: 5, spent: 5 }), "The limit of 5 model requests is reached.");
  assert.match(
    describeLimit({ name: "cost", limit: 1.5, spent: 0, is_unmeasured: true }),
    /\$1\.50 US dollars cannot be enforced: the cost so far is not known/,
  );
  const run = /** @type {Run} */ ({
    spent: { requests: 2, tool_calls: 3, tokens: 1200, seconds: 4 },
    limits: { requests: 4 },
  });
  assert.deepEqual(
    spendings(run).map(({ name, spent, limit, share }) => [name, spent, limit, share]),
    [
      ["requests", "2", "4", 0.5],
      ["tool_calls", "3", "", null],
      ["tokens", "1,200", "", null],
      ["seconds", "4.00 s", "", null],
    ],
  );
  const unknown = spendings({ ...run, spent: { ...run.spent, cost: null } }).find(({ name }) => name === "cost");
  assert.deepEqual([unknown?.spent, unknown?.unit], ["unknown", "cost"]);
  assert.deepEqual(
    ["answered", "cancelled", "limit"].map((why) => toneOf({ state: "ended", why })),
    ["good", "", "bad"],
  );
  assert.equal(toneOf({ state: "running" }), "");
  assert.deepEqual(
    [
      stateWords({ state: "running" }),
      stateWords({ state: "ended", why: "limit" }),
      stateWords({ state: "ended", why: "x" }),
    ],
    ["running", "stopped at a limit", "x"],
  );
});

test("what became of a call", () => {
  const fates = [
    { fate: "ran", result: { text: "", is_error: true } },
    { fate: "denied", result: null },
    { fate: null, result: null, is_running: true, progress: "50 %" },
    { fate: null },
    { fate: "cut" },
    { fate: "answered", result: { text: "", is_error: false } },
  ];
  assert.deepEqual(
    fates.map((each) => Object.values(outcomeOf(/** @type {any} */ (each)))),
    [
      ["failed", "error"],
      ["failed", "denied"],
      ["running", "50 %"],
      ["open", "waits"],
      ["open", "not run: cut off"],
      ["done", "answered by hand"],
    ],
  );
  assert.equal(outcomeOf(/** @type {any} */ ({ fate: "denied", denied_by: "hook" })).words, "denied by a hook");
});

test("rounds share the run's time between the model and its tools", () => {
  const laid = spans([round(1, "a", [call("t", {})]), round(2, "b")]);
  assert.deepEqual(
    laid.map(({ start, model, tools }) => [start, model, tools]),
    [
      [0, 40, 20],
      [60, 40, 0],
    ],
  );
  assert.equal(roundLine(round(1, "a", [call("t", {})])), "1 call · 10 in · 2 out · $0.010 · 2.00 s");
  assert.deepEqual(spans([{ ...round(1, ""), seconds: null }])[0].model, 0);
});

test("two runs are compared round by round and call by call", () => {
  const left = [
    round(1, "same", [call("read", { p: 1 }), call("list", {})]),
    round(2, "left", [call("edit", { p: 1 })]),
    round(3, "end"),
  ];
  const right = [
    round(1, "same", [call("list", {}), call("read", { p: 1 })]),
    round(2, "right", [call("edit", { p: 2 }), call("run", {})]),
  ];
  const told = compareRounds(left, right);
  assert.deepEqual(
    told.map((each) => each.isSame),
    [true, false, false],
  );
  assert.deepEqual(
    told[1].calls.map((each) => each.difference),
    ["arguments", "only right"],
  );
  assert.equal(told[2].right, null);
  assert.equal(
    compareRounds([round(1, "", [call("a", {}, "x")])], [round(1, "", [call("a", {}, "y")])])[0].calls[0].difference,
    "result",
  );
  assert.equal(compareRounds([round(1, "", [call("a", {})])], [round(1, "", [])])[0].calls[0].difference, "only left");
});

test("runs have addresses", () => {
  for (const route of /** @type {import("../../src/sightline/ui/kit/core/routes.js").Route[]} */ ([
    { view: "runs", compare: "" },
    { view: "runs", compare: "r 1" },
    { view: "run", id: "a/b" },
    { view: "compare", a: "r1", b: "r2" },
  ]))
    assert.deepEqual(routeOf(hashOf(route)), route);
  assert.equal(hashOf({ view: "compare", a: "x", b: "y" }), "#/runs/x/compare/y");
});
