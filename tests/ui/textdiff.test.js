// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { rangesOfChanges, hunks, lineDiff, lineSpans } from "../../src/sightline/ui/kit/core/text-diff.js";

/** @param {readonly string[]} a @param {readonly string[]} b */
function applied(a, b) {
  const made = [];
  let at = 0;
  for (const { from, to, fromB, toB } of hunks(a, b)) {
    made.push(...a.slice(at, from), ...b.slice(fromB, toB));
    at = to;
  }
  return [...made, ...a.slice(at)];
}

test("hunks turn one list into the other, whatever they are", () => {
  let seed = 7;
  const random = (/** @type {number} */ below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  for (let round = 0; round < 400; round++) {
    const list = () => Array.from({ length: random(12) }, () => "abc"[random(3)]);
    const [a, b] = [list(), list()];
    assert.deepEqual(applied(a, b), b);
    const found = hunks(a, b);
    assert.ok(
      found.every((hunk, at) => !at || (hunk.from > found[at - 1].to && hunk.fromB > found[at - 1].toB)),
      "kept things stand between",
    );
  }
  assert.deepEqual(hunks(["a"], ["a"]), []);
  assert.deepEqual(hunks(["a", "x", "b", "c"], ["a", "b", "c", "y"]), [
    { from: 1, to: 2, fromB: 1, toB: 1 },
    { from: 4, to: 4, fromB: 3, toB: 4 },
  ]);
});

test("a difference that is too large is one hunk, soon", () => {
  const a = Array.from({ length: 50_000 }, (_, at) => `a${at}`);
  const b = Array.from({ length: 50_000 }, (_, at) => `b${at}`);
  assert.deepEqual(hunks(["same", ...a], ["same", ...b]), [{ from: 1, to: 50_001, fromB: 1, toB: 50_001 }]);
});

test("a changed line shows the words that differ", () => {
  const [was, is] = lineSpans("You are a helpful assistant.", "You are a terse assistant.");
  assert.deepEqual(
    was.filter((span) => span.changed).map((span) => span.text),
    ["helpful"],
  );
  assert.deepEqual(
    is.filter((span) => span.changed).map((span) => span.text),
    ["terse"],
  );
  assert.deepEqual(lineSpans("abc", "xyz"), [[{ text: "abc", changed: true }], [{ text: "xyz", changed: true }]]);
  const long = "w ".repeat(5000);
  assert.deepEqual(lineSpans(long + "a", long + "b")[1].at(-1), { text: "b", changed: true });
});

test("long kept stretches are gaps, with the right line numbers behind them", () => {
  const lines = Array.from({ length: 40 }, (_, at) => `line ${at + 1}`);
  const other = [...lines];
  other.splice(20, 1, "line twenty-one", "and more");
  const rows = lineDiff(lines.join("\n"), other.join("\n"));
  assert.deepEqual(
    rows.map((row) => row.kind),
    ["gap", "same", "same", "same", "removed", "added", "added", "same", "same", "same", "gap"],
  );
  assert.deepEqual(rows[0], { kind: "gap", count: 17 });
  const behind = rows[7];
  assert.ok(behind.kind === "same" && behind.a === 22 && behind.b === 23);
  assert.deepEqual(lineDiff("a", "a"), []);
});

test("edited places of exact bytes are marked, those that only lost something too", () => {
  const a = '{"model":"m","messages":[{"role":"user","content":"hello world"}],"max_tokens":10}';
  const b = '{"model":"m","messages":[{"role":"user","content":"hello brave world"}],"max_tokens":20}';
  assert.deepEqual(
    rangesOfChanges(a, b).map(([from, to]) => b.slice(from, to)),
    ["brave ", "2"],
  );
  assert.deepEqual(
    rangesOfChanges("abc,def", "abc,").map(([from, to]) => [from, to]),
    [[4, 4]],
  );
  assert.deepEqual(rangesOfChanges(a, a), []);
});

test("two edits far apart in a megabyte are two places", () => {
  const filler = '{"k":"some text, and more"},'.repeat(40_000);
  const a = `one ${filler} two`;
  assert.equal(rangesOfChanges(a, `ONE ${filler} TWO`).length, 2);
});

test("emoji and right-to-left text are never cut apart by words", () => {
  const [, is] = lineSpans("שלום עולם 👋🏽", "שלום לכולם 👋🏽");
  assert.equal(is.map((span) => span.text).join(""), "שלום לכולם 👋🏽");
});

test("what was taken out here does not hide that there all is the same", () => {
  const item = (/** @type {string} */ text) => `{"role": "user", "content": ${JSON.stringify(text)}}`;
  const long = Array.from({ length: 900 }, (_, index) => `line ${index} of a "log"`).join("\n");
  const before = `[${item("Be brief.")}, ${item("kept as it is")}, ${item(long)}, ${item("the end")}]`;
  const after = `[${item("Be very brief.")}, ${item("kept as it is")}, ${item("the end")}]`;
  const found = rangesOfChanges(before, after);
  assert.deepEqual(
    found.map(([from, to]) => after.slice(from, to)),
    ["very ", ""],
  );
});
