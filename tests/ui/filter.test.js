// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  applyCompletion,
  errorOf,
  fitting,
  literal,
  splitAtError,
  markWords,
  term,
  termStart,
} from "../../src/sightline/ui/kit/core/filter.js";

test("a term begins behind a blank or a sign, but not inside quotes", () => {
  assert.equal(termStart("model:gpt sta", 13), 10);
  assert.equal(termStart("!(mod", 5), 2);
  assert.equal(termStart('text:"two words', 15), 0);
  assert.equal(termStart("text:'a b' x", 12), 11);
});

test("a completion takes the place of the term before the cursor", () => {
  assert.deepEqual(applyCompletion("model:gpt sta", 13, { text: "state:" }), { text: "model:gpt state:", at: 16 });
  assert.deepEqual(applyCompletion("st & ok", 2, { text: "state:" }), { text: "state: & ok", at: 6 });
  assert.deepEqual(applyCompletion("model:cl", 8, { text: "claude-*", from: 6 }), { text: "model:claude-*", at: 14 });
});

test("offers for an earlier text stay only where they go on from what is written since", () => {
  const offers = [{ text: "id:" }, { text: "session:", from: 0 }, { text: "state:" }];
  assert.equal(fitting(offers, "se", "se", 2), offers);
  assert.deepEqual(fitting(offers, "", "Ses", 3), [offers[1]]);
  assert.deepEqual(fitting(offers, "", "", 0), offers);
  assert.deepEqual(fitting(offers, "", "ok & st", 7), [offers[2]]);
});

test("an error is told without its column, and marked where it is", () => {
  const error = errorOf({
    message: 'filter, column 11: there is no field "modle"',
    hint: 'Did you mean "model"?\n  state:ok & modle:x\n             ^^^^^',
  });
  assert.deepEqual(error, {
    message: 'There is no field "modle"',
    column: 11,
    length: 5,
    hint: 'Did you mean "model"?',
  });
  assert.deepEqual(splitAtError("state:ok & modle:x", { ...error, column: 12 }), ["state:ok & ", "modle", ":x"]);
  assert.deepEqual(splitAtError("a &", { ...error, column: 9, length: 1 }), ["a &", " ", ""]);
  assert.deepEqual(errorOf({ message: "wrong", column: 3, length: 2 }), {
    message: "Wrong",
    column: 3,
    length: 2,
    hint: "",
  });
  assert.equal(errorOf({ message: "wrong" }).column, 1);
});

test("a pattern is quoted where it must be", () => {
  assert.equal(term("model", "claude-opus-*"), "model:claude-opus-*");
  assert.equal(term("session", 'my "task"'), 'session:"my \\"task\\""');
});

test("a name with a wildcard or a backslash means itself", () => {
  assert.equal(term("session", literal("a*b?")), 'session:"a\\*b\\?"');
  assert.equal(term("session", literal("a\\b")), 'session:"a\\\\b"');
});

test("a text is split at the words that are looked for, whatever their case and their signs", () => {
  assert.deepEqual(markWords("Read parser.py, not PARSERXPY", ["parser.py"]), [
    { text: "Read ", isHit: false },
    { text: "parser.py", isHit: true },
    { text: ", not PARSERXPY", isHit: false },
  ]);
  assert.deepEqual(
    markWords("Dad tells a joke", ["joke", "dad", ""]).map((piece) => piece.text),
    ["Dad", " tells a ", "joke"],
  );
  assert.deepEqual(markWords("nothing", []), [{ text: "nothing", isHit: false }]);
});
