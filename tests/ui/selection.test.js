// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  STRIPPED,
  editsOf,
  matchingSections,
  rangeOf,
  resultsOf,
} from "../../src/sightline/ui/views/request/core/selection.js";

/** @param {string} id @param {string} kind @param {string} text @param {boolean} deleted @returns {any} */
const section = (id, kind, text = "", deleted = false) => ({
  id,
  kind,
  label: `${kind} ${id}`,
  text,
  deleted,
  parts: [],
});

const sections = [
  section("s1", "system", "Be brief"),
  section("s2", "user", "Read it"),
  section("s3", "tool_call"),
  section("s4", "tool_result", "PARSER text"),
  section("s5", "tool_result", "", true),
  section("s6", "tool_result"),
  { ...section("s7", "user"), parts: [{ text: "the parser again" }] },
  section("s8", "tools", "parser"),
];

test("all results are meant, or those before a section; a deleted one is not", () => {
  assert.deepEqual(resultsOf(sections), ["s4", "s6"]);
  assert.deepEqual(resultsOf(sections, "s6"), ["s4"]);
  assert.deepEqual(resultsOf(sections, "s99"), []);
});

test("a range goes in either direction and leaves tools and options out", () => {
  assert.deepEqual(rangeOf(sections, "s4", "s2"), ["s2", "s3", "s4"]);
  assert.deepEqual(rangeOf(sections, "s6", "s8"), ["s6", "s7"]);
  assert.deepEqual(rangeOf(sections, "", "s3"), ["s2", "s3"]);
  assert.deepEqual(rangeOf(sections, "s1", "s99"), []);
  assert.deepEqual(rangeOf(sections.slice(0, 1), "", "s1"), []);
});

test("words are looked for in labels, texts and parts", () => {
  assert.deepEqual(matchingSections(sections, " Parser "), ["s4", "s7"]);
  assert.deepEqual(matchingSections(sections, "tool_call"), ["s3"]);
});

test("what is selected is deleted, restored or stripped, or all other messages are deleted", () => {
  const picked = new Set(["s2", "s4", "s5"]);
  const list = sections.map((each) => ({ ...each, editable: true }));
  /** @param {"delete" | "restore" | "strip" | "only"} what */
  const edits = (what) => editsOf(list, picked, what).map((edit) => `${edit.op} ${edit.section}`);
  assert.deepEqual(edits("delete"), ["delete s2", "delete s4"]);
  assert.deepEqual(edits("restore"), ["restore s5"]);
  assert.deepEqual(edits("strip"), ["set_text s2", "set_text s4"]);
  assert.deepEqual(edits("only"), ["delete s3", "delete s6", "delete s7"]);
  assert.equal(editsOf([{ ...list[3], text: STRIPPED }], picked, "strip").length, 0);
});
