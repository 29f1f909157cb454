// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import { aboutCosts, costOf, sumOfCosts } from "../../src/sightline/ui/kit/core/format.js";
import {
  lineFrom,
  conversations,
  applyFacts,
  onlyHeld,
  joinPage,
  mergeLines,
  mostTokens,
  flatRows,
  nextSort,
  rowsOf,
  sumLines,
  stateOf,
  applyFact,
  titleOf,
  totals,
  turnWords,
} from "../../src/sightline/ui/views/traffic/core/lines.js";

/** @import { Line } from "../../src/sightline/ui/views/traffic/core/lines.js" */

/** @param {string} id @param {number} at @param {Partial<Line>} [rest] @returns {Line} */
const line = (id, at, rest = {}) => ({ id, at, state: "finished", ...rest });

/** A conversation of so many turns, newest first. @param {string} name @param {number} count @param {number} from */
const turns = (name, count, from) =>
  Array.from({ length: count }, (_, index) =>
    line(`${name}${index}`, from + index, { title: name, ...(index ? { previous: `${name}${index - 1}` } : {}) }),
  ).reverse();

/** @param {ReturnType<typeof rowsOf>} rows */
const drawn = (rows) => rows.map((row) => `${row.kind} ${row.key}`);

test("lines are merged once each, the newest first, and a fresh line wins", () => {
  const known = [line("b", 2, { state: "sending" }), line("a", 1)];
  assert.deepEqual(
    mergeLines(known, [line("c", 3), line("b", 2)]).map((each) => `${each.id} ${each.state}`),
    ["c finished", "b finished", "a finished"],
  );
  assert.deepEqual(
    mergeLines(known, [line("b", 2)]).map((each) => each.id),
    ["b", "a"],
  );
  assert.deepEqual(
    mergeLines([], [line("a", 1), line("b", 1)]).map((each) => each.id),
    ["b", "a"],
  );
});

test("a page that is read again leaves no gap in the list", () => {
  const known = [line("e", 50), line("c", 30), line("b", 20), line("a", 10)]; // what came before 30 is whole
  const ids = (/** @type {ReturnType<typeof joinPage>} */ { joined }) => joined.map((each) => each.id).join("");
  const near = joinPage(known, [line("d", 40), line("c", 30)], { wholeUntil: 30, isLast: false });
  assert.deepEqual([ids(near), near.hasGap], ["edcba", false]);
  const far = joinPage(known, [line("d", 40), line("x", 35)], { wholeUntil: 30, isLast: false });
  assert.deepEqual([ids(far), far.hasGap], ["edx", true]);
  const all = joinPage(known, [line("d", 40), line("x", 35)], { wholeUntil: 30, isLast: true });
  assert.deepEqual([ids(all), all.hasGap], ["edxcba", false]);
  assert.deepEqual(joinPage([], [], { wholeUntil: -1, isLast: true }), { joined: [], hasGap: false });
});

test("a fact moves a line at once", () => {
  const fresh = lineFrom({
    exchange: "x_1",
    at: 5,
    dialect: "anthropic",
    model: "claude",
    session: "s",
    client: "c",
    path: "/v1/messages",
    is_stream: true,
    origin: "",
  });
  assert.equal(fresh.state, "received");
  const states = ["held", "released", "attempt", "finished"].map((kind) => applyFact(fresh, { kind }).state);
  assert.deepEqual(states, ["held", "sending", "sending", "finished"]);
  const failed = applyFact(fresh, { kind: "failed", code: "auth", message: "no" });
  assert.deepEqual([failed.state, failed.fault, failed.message], ["failed", "auth", "no"]);
  assert.equal(applyFact(fresh, { kind: "dropped" }).state, "dropped");
  assert.equal(applyFact(fresh, { kind: "cancelled" }).state, "cancelled");
  assert.equal(applyFact(fresh, { kind: "translated", losses: 2 }).losses, 2);
  const sending = line("a", 1, { state: "sending" });
  assert.equal(applyFact(sending, { kind: "attempt" }), sending);
  assert.equal(applyFact(sending, { kind: "frame" }), sending);
});

test("facts are folded in together, and what has just come joins a list without a filter", () => {
  const facts = [
    { exchange: "n", kind: "received", at: 9, model: "m" },
    { exchange: "a", kind: "finished", at: 9, status: 200 },
    { exchange: "n", kind: "held", at: 9 },
    { exchange: "unknown", kind: "finished", at: 9 },
  ];
  const lines = [line("b", 2), line("a", 1, { state: "sending" })];
  assert.deepEqual(
    applyFacts(lines, facts, { isFiltered: false }).map((each) => `${each.id} ${each.state}`),
    ["n held", "b finished", "a finished"],
  );
  const filtered = applyFacts(lines, facts, { isFiltered: true });
  assert.deepEqual(
    filtered.map((each) => each.id),
    ["b", "a"],
  );
  assert.equal(filtered[0], lines[0]);
});

test("exchanges that continue each other are one conversation, also where its beginning is not loaded", () => {
  const found = conversations([
    line("d", 4, { previous: "c" }),
    line("z", 3),
    line("c", 2, { previous: "gone" }),
    line("b", 1, { previous: "gone" }),
  ]);
  assert.deepEqual(
    found.map((each) => each.lines.map((one) => one.id)),
    [["d", "c", "b"], ["z"]],
  );
});

test("a replay stands with what it replays, and a circle in the record does no harm", () => {
  const found = conversations([line("r", 3, { origin: "a" }), line("a", 1)]);
  assert.equal(found.length, 1);
  assert.equal(
    conversations([line("a", 2, { previous: "b" }), line("b", 1, { previous: "a" })]).flatMap((each) => each.lines)
      .length,
    2,
  );
});

test("a client's errand stands beside the nearest exchange of its session, or alone", () => {
  const side = line("t", 10, { is_side: true, session: "s" });
  const near = line("n", 11, { session: "s" });
  const far = line("f", 1, { session: "s" });
  const found = conversations([near, side, far]);
  assert.deepEqual(
    found.map((each) => [each.lines.map((one) => one.id), each.sides.map((one) => one.id)]),
    [
      [["n"], ["t"]],
      [["f"], []],
    ],
  );
  assert.deepEqual(
    conversations([line("late", 9999, { session: "s" }), side]).map((each) => each.sides.length),
    [0, 0],
  );
  assert.equal(conversations([line("t", 1, { is_side: true })])[0].lines.length, 1);
});

test("a conversation shows its newest turns and says how many are folded away", () => {
  const lines = turns("q", 9, 100);
  assert.deepEqual(drawn(rowsOf(lines, new Map(), new Set())), [
    "conversation c:q0",
    "line q8",
    "line q7",
    "line q6",
    "more m:q0",
  ]);
  assert.equal(rowsOf(lines, new Map([["q0", "all"]]), new Set()).length, 10);
  assert.deepEqual(drawn(rowsOf(lines, new Map([["q0", "none"]]), new Set())), ["conversation c:q0"]);
  assert.equal(rowsOf(turns("q", 4, 1), new Map(), new Set()).length, 5, "a row for one turn would save nothing");
});

test("replays of a turn are no turns of the conversation", () => {
  const [conversation] = conversations([line("r", 3, { origin: "q1", previous: "q0" }), ...turns("q", 2, 1)]);
  assert.equal(conversation.lines.length, 3);
  assert.equal(turnWords(conversation), "2 turns");
  assert.equal(turnWords({ ...conversation, lines: conversation.lines.slice(0, 1) }), "1 replay");
});

test("a single exchange is one row without a frame around it", () => {
  assert.deepEqual(drawn(rowsOf([line("a", 1)], new Map(), new Set())), ["line a"]);
});

test("held ones stand on top in the order of their arrival, and nowhere else", () => {
  const lines = [line("c", 3, { state: "held", previous: "a" }), line("b", 2, { state: "held" }), line("a", 1)];
  assert.deepEqual(
    onlyHeld(lines).map((each) => each.id),
    ["b", "c"],
  );
  assert.deepEqual(drawn(rowsOf(lines, new Map(), new Set())), [
    "heading held",
    "line b",
    "line c",
    "heading traffic",
    "conversation c:a",
    "line a",
  ]);
});

test("errands are folded into one row", () => {
  const lines = [
    line("b", 2, { session: "s", previous: "a" }),
    line("t", 1.5, { session: "s", is_side: true, title: "Title" }),
    line("a", 1, { session: "s" }),
  ];
  assert.deepEqual(drawn(rowsOf(lines, new Map(), new Set())), ["conversation c:a", "line b", "line a", "sides s:a"]);
  assert.deepEqual(drawn(rowsOf(lines, new Map(), new Set(["a"]))).at(-1), "line t");
});

test("a turn is labelled only where the person said something new", () => {
  const rows = rowsOf(turns("q", 3, 1), new Map(), new Set()).filter((row) => row.kind === "line");
  assert.deepEqual(
    rows.map((row) => row.label),
    ["", "", "q"],
  );
  const [replay] = rowsOf(
    [line("r", 2, { origin: "a", title: "q" }), line("a", 1, { title: "q" })],
    new Map(),
    new Set(),
  ).filter((row) => row.kind === "line");
  assert.equal(replay.label, "Replay · q");
});

test("what is estimated of a sum is marked, and said beside it", () => {
  const lines = [line("a", 1, { cost: 0.5 }), line("b", 2, { cost: 0.25, is_estimated: true })];
  const sums = totals({ key: "s", lines, sides: [], at: 0 });
  assert.equal(sumOfCosts(sums), "~$0.750");
  assert.equal(aboutCosts(sums), "$0.250 of it estimated");
  assert.equal(aboutCosts({ ...sums, unpriced: 2 }), "$0.250 of it estimated, 2 requests without a known price");
  assert.equal(lines.map(costOf).join(" "), "$0.500 ~$0.250");
});

test("a conversation is summed up, titled by its beginning, and as lively as its liveliest", () => {
  const conversation = {
    key: "a",
    at: 2,
    lines: [
      line("b", 2, { cost: 0.5, input_tokens: 10, title: "later" }),
      line("a", 1, { cost: 0.25, title: "first" }),
    ],
    sides: [line("t", 1, { state: "sending", output_tokens: 3 })],
  };
  assert.deepEqual(totals(conversation), {
    input_tokens: 10,
    output_tokens: 3,
    cached_tokens: undefined,
    cost: 0.75,
    unpriced: 1,
    estimated_cost: 0,
    elapsed: undefined,
    losses: undefined,
  });
  assert.equal(sumOfCosts(totals(conversation)), "$0.750+");
  assert.equal(sumOfCosts({ cost: 0.75, unpriced: 0 }), "$0.750");
  assert.equal(sumOfCosts({ cost: 0, unpriced: 0 }), "$0");
  assert.equal(sumOfCosts({ cost: 0, unpriced: 1 }), "unknown");
  assert.equal(sumOfCosts({ unpriced: 2 }), "");
  assert.equal(titleOf(conversation), "first");
  assert.equal(titleOf({ key: "", at: 0, lines: [], sides: [] }), "");
  assert.equal(stateOf(conversation), "sending");
  assert.equal(stateOf({ ...conversation, sides: [] }), "finished");
  assert.equal(mostTokens([line("a", 1, { input_tokens: 5, output_tokens: 2 }), line("b", 1)]), 7);
});

test("ten thousand exchanges are put in order", () => {
  const lines = Array.from({ length: 900 }, (_, index) => turns(`q${index}-`, 12, index * 100))
    .flat()
    .sort((a, b) => b.at - a.at);
  assert.equal(rowsOf(lines, new Map(), new Set()).length, 900 * 5);
});

test("a column is sorted one way, then the other, then not; numbers begin with the largest", () => {
  assert.deepEqual(
    [nextSort("", "cost", true), nextSort("-cost", "cost", true), nextSort("cost", "cost", true)],
    ["-cost", "cost", ""],
  );
  assert.deepEqual([nextSort("-cost", "model", false), nextSort("model", "model", false)], ["model", "-model"]);
  assert.deepEqual([nextSort("", "at", true), nextSort("at", "at", true)], ["at", ""]);
});

test("a sorted list has every exchange by itself, in the order in which it came", () => {
  const rows = flatRows([...turns("talk", 2, 1), line("z", 9, { state: "held" })]);
  assert.deepEqual(drawn(rows), ["line talk1", "line talk0", "line z"]);
});

test("the sums of a whole list count what failed and what has no price", () => {
  const list = [
    line("a", 1, { state: "failed" }),
    line("b", 2, { input_tokens: 10, cached_tokens: 4, output_tokens: 2, cost: 0.5 }),
    line("c", 3, { input_tokens: 5, output_tokens: 1 }),
  ];
  assert.deepEqual(sumLines(list), {
    requests: 3,
    failed: 1,
    input_tokens: 15,
    cached_tokens: 4,
    output_tokens: 3,
    cost: 0.5,
    unpriced: 1,
    estimated_cost: 0,
  });
});
