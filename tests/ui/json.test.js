// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  exactRows,
  exactValue,
  rowsOf,
  isJson,
  keyOf,
  nodeAt,
  scan,
  step,
  stringOf,
  wrapRow,
} from "../../src/sightline/ui/kit/core/json.js";

test("every value knows where it stands", () => {
  const text = ' {"a":[1.0, 12345678901234567890, "x\\ny"], "b/c": {"~": null}, "e":{}} ';
  const root = scan(text);
  assert.ok(root);
  const at = (/** @type {string} */ pointer) => {
    const node = nodeAt(text, root, pointer);
    return node && text.slice(node.start, node.end);
  };
  assert.equal(at("/a/1"), "12345678901234567890");
  assert.equal(at("/a/0"), "1.0");
  assert.equal(at("/b~1c/~0"), "null");
  assert.equal(at("/a/7"), null);
  assert.equal(at("/nope/x"), null);
  assert.equal(stringOf(text, /** @type {any} */ (nodeAt(text, root, "/a/2"))), "x\ny");
  assert.equal(keyOf(text, /** @type {any} */ (root.items)[1]), "b/c");
  assert.equal(step("b/c~"), "/b~1c~0");
});

test("what is not JSON is not read", () => {
  for (const text of [
    "",
    "{",
    '{"a"}',
    "[1,]",
    "[1 2]",
    "01",
    '"\n"',
    '"\\x"',
    "tru",
    "{a:1}",
    "[1]]",
    "[".repeat(5000),
    '"abc',
    "-",
    "NaN",
  ])
    assert.equal(scan(text), null, text.slice(0, 20));
  for (const text of [
    "0",
    "-1.5e+3",
    "[]",
    "{}",
    '"\\u00e9"',
    "null",
    '[[],{"a":{}}]',
    "[".repeat(1000) + "]".repeat(1000),
  ])
    assert.ok(scan(text), text.slice(0, 20));
});

test("a string of megabytes is one node", () => {
  const text = JSON.stringify("é\n".repeat(1_000_000));
  assert.equal(scan(text)?.end, text.length);
});

test("indented rows hold every character but the space between values", () => {
  const value = { a: [1, { b: "x, y" }], c: {}, d: [] };
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 3)]) {
    const rows = rowsOf(text, /** @type {any} */ (scan(text)));
    assert.equal(
      rows
        .map((row) => text.slice(row.from, row.to))
        .join("")
        .replaceAll(/[\n ]/g, ""),
      JSON.stringify(value).replaceAll(" ", ""),
    );
    assert.deepEqual(
      rows.map((row) => row.indent),
      [0, 1, 2, 2, 3, 2, 1, 1, 1, 0],
    );
  }
});

test("exact rows are the text, cut at lines and at the edge, never inside an emoji", () => {
  const text = "short\n" + "👋".repeat(60) + "\n";
  const rows = exactRows(text, 51);
  assert.equal(rows[0].to, 5);
  assert.ok(rows.every((row) => text.slice(row.from, row.to).isWellFormed()));
  assert.equal(rows.map((row) => text.slice(row.from, row.to)).join(""), text.replaceAll("\n", ""));
  assert.deepEqual(wrapRow({ from: 0, to: 4, indent: 0 }, "abcd", 10), [{ from: 0, to: 4, indent: 0 }]);
});

test("whether a text is JSON, and its value with every number as far as the engine can keep it", () => {
  assert.equal(isJson('{"a":1}'), true);
  assert.equal(isJson('{"a":'), false);
  assert.equal(exactValue('{"a":[true,"x",2]}').a[2], 2);
  if ("rawJSON" in JSON)
    assert.equal(
      JSON.stringify(exactValue('{"a":1.0,"b":12345678901234567890}')),
      '{"a":1.0,"b":12345678901234567890}',
    );
});
