// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  about,
  addToMemory,
  breakdown,
  confirmationText,
  counterText,
  hasCommand,
  hud,
  limitLine,
  nextStar,
  rangeOf,
  standingOf,
  stepThrough,
  takesFocus,
  timeUntil,
  usageOf,
  whyIncomplete,
} from "../../src/sightline/ui/views/chat/core/chat.js";
import { Heights } from "../../src/sightline/ui/kit/core/heights.js";
import { moreComplete, applyDelta, NOTHING } from "../../src/sightline/ui/views/chat/core/live.js";
import { PAGE, Rows } from "../../src/sightline/ui/views/chat/core/rows.js";

/** @param {string} id @param {object} [more] @returns {any} */
const pair = (id, more = {}) => ({ id, standing: "included", hand: "", ...more });

/** @returns {any} */
const view = () => ({
  model: "local",
  counter: {
    text: "12 / 34",
    breakdown: [
      ["Predicted", 12],
      ["ML", 2048],
      ["Other", 1],
    ],
  },
  room: { limit: 2048, system: 10, tools: 0, user: 100, reply: 800, usable: 1238, history: 1138 },
  history_tokens: 900,
  last: null,
});

test("the counter says when the newest pair is hidden by the filter", () => {
  assert.equal(counterText(view()), "12 / 34");
  assert.equal(counterText({ ...view(), newest_hidden: true }), "(-) 12 / 34");
});

test("the breakdown behind the counter explains its names", () => {
  assert.deepEqual(breakdown(view())[1], { label: "Model limit", number: "2,048", meaning: "tokens of one request" });
  assert.equal(breakdown(view())[2].meaning, "");
  assert.deepEqual(
    breakdown(view(), { written: 1200, charsPerToken: 3.5 })
      .slice(-2)
      .map((each) => [each.label, each.number]),
    [
      ["Your text", "1,200"],
      ["Characters per token", "3.5"],
    ],
  );
});

test("an estimate is told with its band, and without one where it is exact", () => {
  assert.equal(about({ tokens: 1200, low: 1150, high: 1290 }), "~1,200 ± 90");
  assert.equal(about({ tokens: 7, low: 7, high: 7 }), "7");
  assert.equal(about({ tokens: 33, low: 30, high: 146 }), "~33, at most 146");
});

test("the place decides whether a pair will be sent, but a person's word goes first", () => {
  assert.equal(standingOf(pair("a"), 3, 4), "excluded");
  assert.equal(standingOf(pair("a", { standing: "excluded" }), 4, 4), "included");
  assert.equal(standingOf(pair("a", { standing: "left_out" }), 9, 4), "left_out");
  assert.equal(standingOf(pair("a", { hand: "out" }), 9, 4), "left_out");
});

test("what was predicted stands beside what the provider counted", () => {
  const answer = {
    ...NOTHING,
    predicted: 120,
    usage: { input_tokens: 118, output_tokens: 9 },
    cost: 0.02,
    seconds: 1.5,
  };
  assert.deepEqual(
    usageOf(answer).map((each) => each.text),
    ["~120 predicted, 118 counted", "9 out", "$0.020", "1.50 s"],
  );
  assert.deepEqual(
    usageOf({ ...answer, run: "r_1" }).map((each) => each.text)[0],
    "~120 predicted, 118 counted in all",
  );
  assert.deepEqual(
    usageOf({ ...NOTHING, predicted: 5 }).map((each) => each.text),
    ["~5 predicted"],
  );
  assert.deepEqual(
    usageOf({ ...NOTHING, usage: { input_tokens: 5 } }).map((each) => each.text),
    ["5 in"],
  );
});

test("an answer that is not whole says why", () => {
  assert.equal(whyIncomplete({ ...NOTHING, finish: "cancelled" }), "interrupted");
  assert.equal(whyIncomplete({ ...NOTHING, finish: "error" }), "incomplete");
  assert.equal(whyIncomplete({ ...NOTHING, finish: "length" }), "cut at the limit");
  assert.equal(whyIncomplete({ ...NOTHING, finish: "content_filter" }), "stopped by the provider's filter");
  assert.equal(whyIncomplete({ ...NOTHING, finish: "stop" }), "");
  assert.equal(whyIncomplete({ ...NOTHING, is_partial: true }), "incomplete");
});

test("workflow 4.10: only who waits at an empty input for more than fits is brought to the answer", () => {
  const now = { mode: /** @type {const} */ ("input"), isEmpty: true, height: 900, viewport: 700 };
  assert.equal(takesFocus(now), true);
  assert.equal(takesFocus({ ...now, height: 700 }), false);
  assert.equal(takesFocus({ ...now, isEmpty: false }), false);
  assert.equal(takesFocus({ ...now, mode: "view" }), false);
  assert.equal(takesFocus({ ...now, mode: "command" }), false);
  assert.equal(takesFocus({ ...now, focus: "never" }), false);
  assert.equal(takesFocus({ ...now, height: 1, focus: "always" }), true);
  assert.equal(takesFocus({ ...now, height: 1, focus: "always", isEmpty: false }), false);
  assert.equal(takesFocus({ ...now, height: 700, threshold: 0.5 }), true);
  assert.equal(takesFocus({ ...now, threshold: 10 }), false);
});

test("a colon command is told from a field's colon", () => {
  for (const text of [
    ":hud on",
    "r20 :export md",
    "t'a : b' :delete",
    "model:x :",
    ":",
    "(s3 | b):delete",
    "t'AI':export",
  ])
    assert.ok(hasCommand(text), text);
  for (const text of ["", "model:claude-*", "c'so :delete'", "(model :x)", "age<7d & s>=2", 'text:":export"'])
    assert.ok(!hasCommand(text), text);
});

test("stars go round, and a stretch has two ends", () => {
  assert.deepEqual([0, 1, 2, 3].map(nextStar), [1, 2, 3, 0]);
  assert.deepEqual(rangeOf(5, 2), [2, 6]);
  assert.deepEqual(rangeOf(2, 2), [2, 3]);
});

test("the HUD has three groups, before anything was sent and after", () => {
  const before = hud(view(), { charsPerToken: 3.5, maxTrimAttempts: 10 });
  assert.deepEqual(
    before.map((group) => group.name),
    ["PARAMETERS", "TRIMMING", "ERROR"],
  );
  assert.deepEqual(
    before[0].rows.find((row) => row.label === "Characters per token"),
    { label: "Characters per token", value: "3.5" },
  );
  assert.deepEqual(before[1].rows, [{ label: "Nothing was sent yet", value: "" }]);
  assert.deepEqual(before[2].rows, [{ label: "None", value: "" }]);
  const told = {
    stage: "success",
    predictedMessageCount: 12,
    trimmedCount: 1,
    sentCount: 11,
    AUT: 40,
    lastErrorMessage: "too long",
    overflowMatched: true,
  };
  const after = hud(
    { ...view(), last: { telemetry: told, trim_summary: "1 of 12 pairs was left out.", trouble: null } },
    {},
  );
  const names = after.flatMap((group) => group.rows.map((row) => row.label));
  assert.deepEqual(
    names.filter((name) => /^[A-Z]{2,}$|[a-z][A-Z]/.test(name)),
    [],
    "words, and no names of fields",
  );
  assert.ok(after[1].rows.some((row) => row.label === "Your text" && row.value === "40"));
  assert.deepEqual(
    after[2].rows.map((row) => row.value),
    ["too long", "yes"],
  );
});

test("a command asks for what it is about to do", () => {
  assert.equal(confirmationText("delete", 1).title, "Delete 1 pair?");
  assert.equal(confirmationText("tchange", 3).button, "Move 3 pairs");
  assert.equal(confirmationText("compact", 3).title, ":compact on 3 pairs?");
});

test("how long until a moment", () => {
  assert.equal(timeUntil(100, 58), "0:42");
  assert.equal(timeUntil(4000, 0), "1:06:40");
  assert.equal(timeUntil(100, 100), "");
});

test("a place is found among a hundred thousand rows whose heights change", () => {
  const heights = new Heights(100_000, 100);
  assert.equal(heights.total, 10_000_000);
  assert.equal(heights.set(5, 250), 150);
  assert.equal(heights.set(5, 250), 0);
  assert.equal(heights.set(100_000, 1), 0);
  assert.equal(heights.of(5), 250);
  assert.equal(heights.top(5), 500);
  assert.equal(heights.top(6), 750);
  assert.deepEqual(
    [-1, 0, 99, 100, 500, 749, 750, 99_999_999].map((place) => heights.at(place)),
    [0, 0, 0, 1, 5, 5, 6, 99_999],
  );
  heights.fill(3, (index) => [10, undefined, 30][index]);
  assert.deepEqual(
    [0, 1, 2, 3].map((index) => heights.top(index)),
    [0, 10, 110, 140],
  );
  assert.equal(heights.at(139), 2);
  assert.equal(new Heights(0, 100).at(5), 0);
});

test("every place of every row is found, whatever the heights", () => {
  const heights = new Heights(37, 10);
  for (let index = 0; index < 37; index += 1) heights.set(index, ((index * 7919) % 23) + 1);
  for (let index = 0; index < 37; index += 1) {
    assert.equal(heights.at(heights.top(index)), index);
    assert.equal(heights.at(heights.top(index + 1) - 0.5), index);
  }
});

test("rows are known by place and by id, and another number of them makes the rest unknown", () => {
  const rows = new Rows();
  assert.equal(rows.take({ version: 1, total: 100, from: 98, rows: [pair("y"), pair("z")] }), true);
  assert.equal(rows.last?.id, "z");
  assert.equal(rows.pair("y")?.id, "y");
  assert.equal(rows.pair("nobody"), undefined);
  assert.equal(rows.take({ version: 2, total: 100, from: 98, rows: [pair("x"), pair("z")] }), false);
  assert.equal(rows.pair("y"), undefined);
  rows.forget(["z", "nobody"]);
  assert.equal(rows.at(99), undefined);
  assert.equal(rows.take({ version: 3, total: 101, from: 100, rows: [pair("new")] }), true);
  assert.deepEqual([...rows.known.keys()], [100]);
  assert.equal(rows.version, 3);
});

test("a stretch is fetched where it is not known, with its neighbourhood", () => {
  const rows = new Rows();
  rows.clear(1000);
  const asked = rows.missing(500, 520);
  assert.ok(asked && asked.from < 500 && asked.from + asked.limit >= 520 && asked.limit <= PAGE);
  rows.take({ version: 1, total: 1000, from: 500, rows: Array.from({ length: 20 }, (_, step) => pair(`p${step}`)) });
  assert.equal(rows.missing(500, 520), null);
  assert.equal(rows.missing(515, 525)?.from, 520);
  assert.equal(rows.missing(995, 1010)?.limit, PAGE);
  assert.equal(rows.missing(0, 0), null);
  assert.equal(rows.missing(0, 5)?.from, 0);
});

/** @param {import("../../src/sightline/ui/views/chat/core/chat.js").Block[]} blocks */
const answer = (...blocks) => ({ ...NOTHING, blocks });

test("an answer grows piece by piece, and only the block that grows is another one", () => {
  let live = NOTHING;
  for (const delta of [
    { block: 0, type: "thinking", offset: 0, text: "Hm" },
    { block: 1, type: "text", offset: 0, text: "Hello 😀" },
    { block: 1, type: "text", offset: 8, text: "!" },
  ]) {
    const next = applyDelta(live, /** @type {any} */ ({ pair: "p", ...delta }));
    assert.ok(next);
    live = next;
  }
  assert.deepEqual(live.blocks, [
    { type: "thinking", text: "Hm" },
    { type: "text", text: "Hello 😀!" },
  ]);
  assert.equal(
    applyDelta(live, { pair: "p", block: 1, type: "text", offset: 9, text: "?" })?.blocks[0],
    live.blocks[0],
  );
});

test("a piece that is known already is not told twice, and one that is missing is noticed", () => {
  const live = answer({ type: "text", text: "Hello" });
  assert.equal(applyDelta(live, { pair: "p", block: 0, type: "text", offset: 0, text: "Hel" }), live);
  assert.deepEqual(applyDelta(live, { pair: "p", block: 0, type: "text", offset: 3, text: "lo th" })?.blocks, [
    { type: "text", text: "Hello th" },
  ]);
  assert.equal(applyDelta(live, { pair: "p", block: 0, type: "text", offset: 9, text: "x" }), null);
  assert.equal(applyDelta(live, { pair: "p", block: 2, type: "text", offset: 0, text: "x" }), null);
  assert.equal(applyDelta(live, { pair: "p", block: 1, type: "text", offset: 4, text: "x" }), null);
});

test("another attempt begins with other words in the same place, and is noticed", () => {
  assert.equal(
    applyDelta(answer({ type: "text", text: "Hello" }), {
      pair: "p",
      block: 0,
      type: "text",
      offset: 0,
      text: "Good day",
    }),
    null,
  );
});

test("a call's arguments grow as a text does", () => {
  const live = applyDelta(NOTHING, {
    pair: "p",
    block: 0,
    type: "call",
    offset: 0,
    text: '{"a"',
    name: "look",
    id: "c1",
  });
  assert.ok(live);
  const next = applyDelta(live, { pair: "p", block: 0, type: "call", offset: 4, text: ":1}" });
  assert.deepEqual(next?.blocks, [{ type: "call", id: "c1", name: "look", arguments: '{"a":1}', result: null }]);
  const media = answer({ type: "media", n: 0, media_type: "image/png" });
  assert.equal(applyDelta(media, { pair: "p", block: 0, type: "text", offset: 0, text: "x" }), media);
});

test("of two states of one answer the fuller is kept", () => {
  const short = answer({ type: "text", text: "Hel" });
  const long = answer({ type: "text", text: "Hello" });
  assert.equal(moreComplete(short, long), long);
  assert.equal(moreComplete(long, short), long);
  assert.equal(moreComplete(short, answer({ type: "text", text: "" }, { type: "text", text: "" })).blocks.length, 2);
});

test("applied filters are gone through, the newest first, and none stands twice", () => {
  const list = addToMemory(addToMemory(addToMemory([], "s3"), "b"), " s3 ");
  assert.deepEqual(list, ["b", "s3"]);
  assert.deepEqual(addToMemory(list, "  "), list);
  assert.equal(
    addToMemory(
      Array.from({ length: 100 }, (_, index) => `r${index}`),
      "x",
    ).length,
    100,
  );
  assert.equal(stepThrough(list, 2, -1), 1);
  assert.equal(stepThrough(list, 0, -1), 0);
  assert.equal(stepThrough(list, 1, 5), 2);
});

test("a limit is named without the seconds, which pass", () => {
  assert.equal(limitLine("can go in 61 s: requests per minute (1)"), "Limited by requests per minute (1).");
  assert.equal(
    limitLine("9 tokens are more than tokens per day allow (2); make the request smaller"),
    "9 tokens are more than tokens per day allow (2); make the request smaller.",
  );
  assert.equal(limitLine(""), "");
});
