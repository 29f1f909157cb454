// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { message, rolesOf } from "../../src/sightline/ui/views/request/core/messages.js";

test("a new message is written as its dialect writes one", () => {
  assert.deepEqual(message("anthropic", "user", "x"), { role: "user", content: "x" });
  assert.deepEqual(message("openai-chat", "assistant", "x"), { role: "assistant", content: "x" });
  assert.deepEqual(message("openai-responses", "assistant", "x"), {
    type: "message",
    role: "assistant",
    content: [{ type: "output_text", text: "x" }],
  });
  assert.deepEqual(message("gemini", "assistant", "x"), { role: "model", parts: [{ text: "x" }] });
  assert.deepEqual(message("raw", "user", "x"), { role: 1, content: [{ type: 1, text: "x" }] });
});

test("roles are those that the dialect has for an item", () => {
  assert.deepEqual(rolesOf("anthropic"), ["user", "assistant"]);
  assert.ok(rolesOf("openai-chat").includes("developer"));
  assert.ok(!rolesOf("raw").includes("developer"));
});
