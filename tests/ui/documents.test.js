// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { missingFrom, readDocument } from "../../src/sightline/ui/views/shell/core/documents.js";

const dialects = [
  { name: "openai-chat", container: "messages" },
  { name: "plain", container: "turns" },
];

test("the dialect of a document is read off its shape", () => {
  const cases = /** @type {[unknown, string, string][]} */ ([
    [{ model: "m", messages: [{ role: "user", content: "x" }], max_tokens: 9 }, "openai-chat", "m"],
    [{ model: "m", messages: [{ role: "user", content: "x" }], system: "s" }, "anthropic", "m"],
    [{ messages: [{ role: "user", content: [{ type: "tool_result" }] }], max_tokens: 9 }, "anthropic", ""],
    [{ model: "m", input: "x" }, "openai-responses", "m"],
    [{ contents: [{ parts: [] }] }, "gemini", ""],
    [[{ role: 1, content: "x" }], "raw", ""],
    [{ messages: [{ role: 1, content: "x" }] }, "raw", ""],
    [{ model: "m", turns: [] }, "plain", "m"],
  ]);
  for (const [body, dialect, model] of cases)
    assert.deepEqual(readDocument(JSON.stringify(body), dialects), { dialect, model });
});

test("what is no request has no dialect", () => {
  for (const text of ["", "{", "5", "null", "[]", "{}", '[{"role":"user"}]'])
    assert.equal(readDocument(text, dialects), null);
});

test("what is still missing is said", () => {
  assert.equal(missingFrom(" ", "", ""), "");
  assert.equal(missingFrom("{", "raw", "m"), "This is not JSON.");
  assert.equal(missingFrom("{}", "", "m"), "Choose the dialect.");
  assert.equal(missingFrom("{}", "raw", ""), "Name the model that should answer.");
  assert.equal(missingFrom("{}", "raw", "m"), null);
});
