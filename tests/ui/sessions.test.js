// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { hashOf, routeOf } from "../../src/sightline/ui/kit/core/routes.js";
import {
  allIds,
  colourOf,
  growth,
  mainTurns,
  mostTokens,
  rowsOf,
  threadWords,
} from "../../src/sightline/ui/views/sessions/core/session.js";

/** @import { SessionThread, SessionTurn, TurnDetails } from "../../src/sightline/ui/api-types.d.ts" */

/** @param {string} id @param {SessionThread[]} [below] @param {Partial<SessionTurn>} [more] @returns {SessionTurn} */
const turn = (id, below = [], more = {}) => ({
  id,
  at: 1,
  state: "finished",
  model: "m",
  asked: `ask ${id}`,
  status: 200,
  fault: "",
  tools: [],
  input_tokens: 10,
  cached_tokens: null,
  output_tokens: 1,
  cost: null,
  total: 0,
  elapsed: 1,
  below,
  ...more,
});

/** @param {SessionTurn[]} turns @param {SessionThread["kind"]} [kind] @returns {SessionThread} */
const thread = (turns, kind = "conversation") => ({ kind, title: "Mend it", requests: turns.length, cost: 0, turns });

const agent = thread([turn("b"), turn("c", [], { input_tokens: 500 })], "agent");
const session = [thread([turn("a", [agent]), turn("d")])];

test("what a turn caused is folded below it", () => {
  assert.deepEqual(
    rowsOf(session, new Set()).map((row) => row.key),
    ["a", "f:b", "d"],
  );
  const open = rowsOf(session, new Set(["f:b"]));
  assert.deepEqual(
    open.map((row) => [row.key, "depth" in row ? row.depth : 0]),
    [
      ["a", 0],
      ["f:b", 1],
      ["b", 1],
      ["c", 1],
      ["d", 0],
    ],
  );
});

test("several conversations of a session have headings, one has none", () => {
  const rows = rowsOf([thread([turn("a")]), thread([turn("b")])], new Set());
  assert.deepEqual(
    rows.map((row) => row.kind),
    ["thread", "turn", "thread", "turn"],
  );
});

test("turns of conversations are read before those below them", () => {
  assert.deepEqual(allIds(session), ["a", "d", "b", "c"]);
  assert.equal(mostTokens(session), 501);
  assert.equal(threadWords(agent), "Sub-agent: Mend it");
});

test("the context grows by kind; a turn that is not read yet has an empty column", () => {
  /** @param {string} name @param {number} tokens */
  const row = (name, tokens) => ({ name, tokens, count: 1, server: "", results: 0 });
  /** @type {TurnDetails} */
  const known = { id: "a", calls: [], kinds: [row("User", 5), row("Tools", 20)], broken: null, is_gone: false };
  const found = growth(mainTurns(session), new Map([["a", known]]));
  assert.deepEqual(found.names, ["Tools", "User"]);
  assert.deepEqual(
    found.columns.map((column) => column.tokens),
    [
      [20, 5],
      [0, 0],
    ],
  );
  assert.equal(found.most, 25);
  assert.equal(colourOf("Tools of github"), "server");
  assert.equal(colourOf("Options"), "other");
});

test("a session and a diff against the turn before have addresses", () => {
  const at = hashOf({ view: "session", name: "fix/it@shop" });
  assert.equal(at, "#/sessions/fix%2Fit%40shop");
  assert.deepEqual(routeOf(at), { view: "session", name: "fix/it@shop" });
  const diff = hashOf({ view: "request", id: "x_1", tab: "diff", against: "previous" });
  assert.deepEqual(routeOf(diff), { view: "request", id: "x_1", tab: "diff", against: "previous" });
  assert.deepEqual(routeOf("#/x/x_1"), { view: "request", id: "x_1", tab: "sections" });
});
