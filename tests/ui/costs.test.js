// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { groupFilter, keyWords } from "../../src/sightline/ui/views/costs/core/costs.js";

test("a group has a filter that finds its exchanges", () => {
  assert.equal(groupFilter("day", "2026-01-31", ""), "date:2026-01-31");
  assert.equal(
    groupFilter("project", "shop", "age<7d | cost>1"),
    "(age<7d | cost>1) & (session:*@shop | session:*@shop#*)",
  );
  assert.equal(groupFilter("tag", "release 2", ""), 'tag:"release 2"');
  assert.equal(groupFilter("session", 'my "own"', ""), 'session:"my \\"own\\""');
  assert.equal(groupFilter("session", "a*", ""), 'session:"a\\*"', "and not those of a session named ab");
  assert.equal(groupFilter("project", "shop?", ""), '(session:"*@shop\\?" | session:"*@shop\\?#*")');
  assert.equal(groupFilter("client", "", ""), "");
});

test("a group without a value says what is missing", () => {
  assert.equal(keyWords("session", ""), "no session");
  assert.equal(keyWords("model", "gpt"), "gpt");
});
