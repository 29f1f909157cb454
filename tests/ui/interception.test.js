// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  MODES,
  moveItem,
  newRule,
  refusalOf,
  sentence,
  rulesToSend,
} from "../../src/sightline/ui/views/interception/core/interception.js";

test("there are four modes, each with words of its own", () => {
  assert.deepEqual(
    MODES.map((each) => each.mode),
    ["off", "next", "every", "rules"],
  );
  assert.equal(new Set(MODES.map((each) => each.help)).size, 4);
});

test("a rule reads as a sentence", () => {
  assert.equal(sentence(newRule()), "Hold requests of every kind.");
  assert.equal(
    sentence({
      filter: "model:gpt-*",
      action: "hold",
      phase: "tool_calls",
      once: true,
      timeout_s: 5,
      on_timeout: "drop",
    }),
    "Hold tool calls of replies that match model:gpt-*, once; after 5 s drop it.",
  );
  assert.equal(
    sentence({ filter: "", action: "hold", phase: "request", timeout_s: 9 }),
    "Hold requests of every kind; after 9 s send it.",
  );
  assert.equal(sentence({ filter: "x", action: "pass", phase: "request" }), "Let pass requests that match x.");
});

test("only what matters is sent", () => {
  assert.deepEqual(
    rulesToSend([
      { ...newRule(), filter: " a:1 " },
      { ...newRule(), timeout_s: 3 },
      { ...newRule(), action: "drop", timeout_s: 3 },
      { filter: "", action: "hold", phase: "request", timeout_s: 1 },
    ]),
    [
      { filter: "a:1", action: "hold", phase: "request", once: false },
      { filter: "", action: "hold", phase: "request", once: false, timeout_s: 3, on_timeout: "send" },
      { filter: "", action: "drop", phase: "request", once: false },
      { filter: "", action: "hold", phase: "request", once: false, timeout_s: 1, on_timeout: "send" },
    ],
  );
});

test("a refusal names its rule and its place", () => {
  const refusal = refusalOf({ message: "rule 2: filter, column 1: there is no field", hint: "Look.\n  tol\n  ^^^" });
  assert.deepEqual([refusal.rule, refusal.error?.column, refusal.error?.length], [1, 1, 3]);
  assert.deepEqual(refusalOf({ message: "no list" }), { rule: -1, message: "no list", hint: "", error: null });
});

test("rules change places, and stop at the ends", () => {
  assert.deepEqual(moveItem([1, 2, 3], 1, -1), [2, 1, 3]);
  assert.deepEqual(moveItem([1, 2, 3], 2, 1), [1, 2, 3]);
  assert.deepEqual(moveItem([1, 2, 3], 0, -1), [1, 2, 3]);
});
