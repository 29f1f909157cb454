// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { FIELDS, isUsual, read, USUAL, fieldText } from "../../src/sightline/ui/views/chat/core/settings.js";
import {
  bodyOf,
  topicToCreate,
  formOf,
  findRows,
  inheritanceOf,
  parentsFor,
  problemsOf,
  tree,
  whyKept,
} from "../../src/sightline/ui/views/chat/core/topics.js";

const TOPICS = [
  { id: "", name: "", parent: "", system_prompt: "Be brief.", parameters: { temperature: 0.5 } },
  { id: "w", name: "Work", parent: "", model: "m1", toolsets: ["files"] },
  { id: "p", name: "Plans", parent: "w", system_prompt: "", parameters: { top_p: 0.9 } },
  { id: "h", name: "Home", parent: "", direct: 2, total: 2 },
  { id: "q", name: "Plans", parent: "h", style_directives: ["Short."] },
];

test("topics stand in the order of their tree, by name", () => {
  assert.deepEqual(
    tree(TOPICS).map((row) => [row.path, row.depth]),
    [
      ["Home", 0],
      ["Home › Plans", 1],
      ["Work", 0],
      ["Work › Plans", 1],
    ],
  );
});

test("a topic is found by letters of its path; its own name comes first", () => {
  const rows = tree(TOPICS);
  assert.deepEqual(
    findRows(rows, "work").map((row) => row.topic.id),
    ["w", "p"],
  );
  assert.deepEqual(
    findRows(rows, "pl wo").map((row) => row.topic.id),
    ["p"],
  );
  assert.equal(findRows(rows, " ").length, 4);
});

test("what is typed can become a topic, unless it is one or hangs in the air", () => {
  const rows = tree(TOPICS);
  assert.deepEqual(topicToCreate(rows, "New"), { name: "New", parent: "", above: "" });
  assert.deepEqual(topicToCreate(rows, "work > Plans > Q3"), { name: "Q3", parent: "p", above: "Work › Plans" });
  assert.equal(topicToCreate(rows, "WORK"), null);
  assert.equal(topicToCreate(rows, "Nowhere / X"), null);
  assert.equal(topicToCreate(rows, "  "), null);
});

test("a topic has from above what it does not say itself", () => {
  assert.deepEqual(inheritanceOf(TOPICS, "p"), {
    system_prompt: "",
    instructions: "",
    model: "m1",
    style_directives: [],
    parameters: { temperature: 0.5, top_p: 0.9 },
    toolsets: ["files"],
  });
  assert.equal(inheritanceOf(TOPICS, "w").system_prompt, "Be brief.");
  assert.equal(inheritanceOf(TOPICS, "gone").model, "");
  assert.equal(
    inheritanceOf([...TOPICS, { ...TOPICS[1], id: "x", instructions: "Use metres." }], "x").instructions,
    "Use metres.",
  );
});

test("no topic can stand below itself, and only an empty one can go", () => {
  const rows = tree(TOPICS);
  assert.deepEqual(
    parentsFor(rows, "w").map((row) => row.topic.id),
    ["h", "q"],
  );
  assert.match(whyKept(TOPICS, TOPICS[1]), /a topic below it/);
  assert.match(whyKept(TOPICS, { ...TOPICS[4], direct: 3 }), /It has 3 pairs/);
  assert.equal(whyKept(TOPICS, TOPICS[2]), "");
});

test("a form says what is wrong, and what is left open stays open", () => {
  const form = formOf(TOPICS[2]);
  assert.deepEqual(
    [form.system_prompt, form.model, form.directives, form.top_p, form.temperature],
    ["", null, null, "0.9", ""],
  );
  assert.deepEqual(problemsOf({ ...form, name: " ", temperature: "3", max_tokens: "1.5" }, false), {
    name: "A topic needs a name.",
    temperature: "A number from 0 to 2.",
    max_tokens: "A whole number from 1 to 10000000.",
  });
  assert.deepEqual(problemsOf({ ...form, name: "" }, true), {});
  assert.deepEqual(bodyOf({ ...form, directives: "One.\n\n Two. ", effort: "low" }), {
    name: "Plans",
    parent: "w",
    system_prompt: "",
    instructions: null,
    model: null,
    style_directives: ["One.", "Two."],
    toolsets: null,
    parameters: { top_p: 0.9, effort: "low" },
  });
  assert.equal(bodyOf(formOf(null, "w")).parent, "w");
});

test("settings take what they can hold, and say why not", () => {
  const field = (/** @type {string} */ name) => /** @type {any} */ (FIELDS.find((each) => each.name === name));
  assert.deepEqual(read(field("userRequestAllowance"), "1,200"), { value: 1200 });
  assert.deepEqual(read(field("userRequestAllowance"), "1.5"), { problem: "A whole number from 0 to 10,000,000." });
  assert.ok("problem" in read(field("maxTrimAttempts"), ""));
  assert.deepEqual(read(field("charsPerToken"), "3.5"), { value: 3.5 });
  assert.deepEqual(read(field("preflightTrimming"), "false"), { value: false });
  assert.ok("problem" in read(field("estimation"), "guess"));
  assert.deepEqual(read(field("estimation"), "characters"), { value: "characters" });
  assert.deepEqual(read(field("styleDirectives"), "a\n\n b "), { value: ["a", "b"] });
  assert.equal(fieldText(["a", "b"]), "a\nb");
  assert.ok(isUsual(USUAL, "charsPerToken") && !isUsual({ ...USUAL, styleDirectives: ["x"] }, "styleDirectives"));
  assert.deepEqual(FIELDS.map((each) => each.name).sort(), Object.keys(USUAL).sort());
});
