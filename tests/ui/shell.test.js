// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { caps, followed, pressed } from "../../src/sightline/ui/kit/core/keys.js";
import { ranked, score } from "../../src/sightline/ui/kit/core/ranking.js";
import { hashOf, routeOf } from "../../src/sightline/ui/kit/core/routes.js";
import { offsetsOf, rowAt } from "../../src/sightline/ui/kit/core/rows.js";

const PLAIN = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

test("an address leads to a view and back", () => {
  for (const hash of [
    "#/traffic",
    "#/traffic?filter=model%3Aa+b",
    "#/x/x_1",
    "#/x/x_1/wire",
    "#/chat",
    "#/chat?filter=s%3E%3D2",
    "#/evals",
  ])
    assert.equal(hashOf(routeOf(hash)), hash);
  assert.deepEqual(routeOf("#/x/x_1/nonsense"), { view: "request", id: "x_1", tab: "sections" });
  assert.deepEqual(routeOf(""), { view: "traffic", filter: "" });
  assert.deepEqual(routeOf("#/x/%E0%A4%A"), { view: "request", id: "%E0%A4%A", tab: "sections" });
  assert.deepEqual(routeOf("#/traffic?filter=a?b"), { view: "traffic", filter: "a?b" });
});

test("keys have one name each", () => {
  assert.equal(pressed({ ...PLAIN, key: "K", metaKey: true, shiftKey: true }), "ctrl+shift+k");
  assert.equal(pressed({ ...PLAIN, key: "?", shiftKey: true }), "?");
  assert.equal(pressed({ ...PLAIN, key: "ArrowDown" }), "down");
  assert.equal(pressed({ ...PLAIN, key: "Enter", shiftKey: true }), "shift+enter");
  assert.equal(pressed({ ...PLAIN, key: " ", altKey: true }), "alt+space");
  assert.equal(pressed({ ...PLAIN, key: "Shift", shiftKey: true }), "");
});

test("keys follow each other", () => {
  const known = ["g t", "j", "ctrl+k"];
  assert.deepEqual(followed(known, "", "g"), { found: "", pending: "g" });
  assert.deepEqual(followed(known, "g", "t"), { found: "g t", pending: "" });
  assert.deepEqual(followed(known, "g", "j"), { found: "j", pending: "" });
  assert.deepEqual(followed(known, "g", "g"), { found: "", pending: "g" });
  assert.deepEqual(followed(known, "", "x"), { found: "", pending: "" });
});

test("keys are drawn as caps", () => {
  assert.deepEqual(caps("ctrl+k"), [["Ctrl", "K"]]);
  assert.deepEqual(caps("ctrl+k", true), [["⌘", "K"]]);
  assert.deepEqual(caps("g t"), [["G"], ["T"]]);
  assert.deepEqual(caps("D"), [["Shift", "D"]]);
  assert.deepEqual(caps("enter"), [["↵"]]);
  assert.deepEqual(caps("f5"), [["f5"]]);
});

test("commands are found by some of their letters, the best first", () => {
  const commands = [
    { label: "Go to traffic" },
    { label: "Fold all conversations" },
    { label: "Theme: dark" },
    { label: "An exchange", detail: "claude-opus · x_1" },
  ];
  assert.equal(ranked(commands, "tra")[0].label, "Go to traffic");
  assert.equal(ranked(commands, "fac")[0].label, "Fold all conversations");
  assert.deepEqual(
    ranked(commands, "opus").map((each) => each.label),
    ["An exchange"],
  );
  assert.deepEqual(ranked(commands, "zzz"), []);
  assert.equal(ranked(commands, " ").length, 4);
  assert.ok(score("dark", "Theme: dark") > score("ark", "Theme: dark"));
});

test("the row at a place", () => {
  const offsets = offsetsOf([10, 20, 10]);
  assert.deepEqual([...offsets], [0, 10, 30, 40]);
  assert.deepEqual(
    [0, 9, 10, 29, 30, 99].map((place) => rowAt(offsets, place)),
    [0, 0, 1, 1, 2, 2],
  );
  assert.equal(rowAt(offsetsOf([]), 5), 0);
});
