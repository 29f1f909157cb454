// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { keyCapsOf, matchSequence, keyOf } from "../../src/sightline/ui/kit/core/keys.js";
import { rank, score } from "../../src/sightline/ui/kit/core/ranking.js";
import { hashOf, routeOf } from "../../src/sightline/ui/kit/core/routes.js";

const PLAIN = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

test("an address leads to a view and back", () => {
  for (const hash of [
    "#/traffic",
    "#/traffic?filter=model%3Aa+b",
    "#/x/x_1",
    "#/x/x_1/wire",
    "#/sessions",
    "#/sessions/a%40b",
    "#/chat",
    "#/chat?filter=s%3E%3D2",
    "#/evals",
    "#/costs",
    "#/costs?by=model&filter=age%3C7d",
  ])
    assert.equal(hashOf(routeOf(hash)), hash);
  assert.deepEqual(routeOf("#/x/x_1/nonsense"), { view: "request", id: "x_1", tab: "sections" });
  assert.deepEqual(routeOf(""), { view: "traffic", filter: "" });
  assert.deepEqual(routeOf("#/x/%E0%A4%A"), { view: "request", id: "%E0%A4%A", tab: "sections" });
  assert.deepEqual(routeOf("#/traffic?filter=a?b"), { view: "traffic", filter: "a?b" });
});

test("keys have one name each", () => {
  assert.equal(keyOf({ ...PLAIN, key: "K", metaKey: true, shiftKey: true }), "ctrl+shift+k");
  assert.equal(keyOf({ ...PLAIN, key: "?", shiftKey: true }), "?");
  assert.equal(keyOf({ ...PLAIN, key: "ArrowDown" }), "down");
  assert.equal(keyOf({ ...PLAIN, key: "Enter", shiftKey: true }), "shift+enter");
  assert.equal(keyOf({ ...PLAIN, key: " ", altKey: true }), "alt+space");
  assert.equal(keyOf({ ...PLAIN, key: "Shift", shiftKey: true }), "");
});

test("keys follow each other", () => {
  const known = ["g t", "j", "ctrl+k"];
  assert.deepEqual(matchSequence(known, "", "g"), { found: "", pending: "g" });
  assert.deepEqual(matchSequence(known, "g", "t"), { found: "g t", pending: "" });
  assert.deepEqual(matchSequence(known, "g", "j"), { found: "j", pending: "" });
  assert.deepEqual(matchSequence(known, "g", "g"), { found: "", pending: "g" });
  assert.deepEqual(matchSequence(known, "", "x"), { found: "", pending: "" });
});

test("keys are drawn as caps", () => {
  assert.deepEqual(keyCapsOf("ctrl+k"), [["Ctrl", "K"]]);
  assert.deepEqual(keyCapsOf("ctrl+k", true), [["⌘", "K"]]);
  assert.deepEqual(keyCapsOf("g t"), [["g"], ["t"]]);
  assert.deepEqual(keyCapsOf("D"), [["Shift", "D"]]);
  assert.deepEqual(keyCapsOf("enter"), [["↵"]]);
  assert.deepEqual(keyCapsOf("f5"), [["F5"]]);
});

test("commands are found by some of their letters, the best first", () => {
  const commands = [
    { label: "Go to traffic" },
    { label: "Fold all conversations" },
    { label: "Theme: dark" },
    { label: "An exchange", detail: "claude-opus · x_1" },
  ];
  assert.equal(rank(commands, "tra")[0].label, "Go to traffic");
  assert.equal(rank(commands, "fac")[0].label, "Fold all conversations");
  assert.deepEqual(
    rank(commands, "opus").map((each) => each.label),
    ["An exchange"],
  );
  assert.deepEqual(rank(commands, "zzz"), []);
  assert.equal(rank(commands, " ").length, 4);
  assert.ok(score("dark", "Theme: dark") > score("ark", "Theme: dark"));
});
