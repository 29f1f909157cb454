// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  columnsOf,
  duration,
  framesIn,
  sinceRelease,
  ticks,
  timeline,
} from "../../src/sightline/ui/views/request/core/timeline.js";

/** @param {string} kind @param {number} at @param {object} [more] @returns {any} */
const fact = (kind, at, more = {}) => ({ n: 0, kind, at, ...more });

test("an event tells of the frames that came since the last one", () => {
  assert.deepEqual(framesIn({ n: 3, at: [7, 7.5], after: [0.5, 1], size: [8, 1] }), [
    { kind: "frame", n: 3, at: 7, after: 0.5, size: 8 },
    { kind: "frame", n: 4, at: 7.5, after: 1, size: 1 },
  ]);
});

test("holding, attempts, waits and the reply are stretches one after the other", () => {
  const drawn = timeline(
    [
      fact("received", 100),
      fact("held", 101),
      fact("edited", 103, { operation: "set_text" }),
      fact("released", 104),
      fact("attempt", 104, { number: 1, provider: "p" }),
      fact("attempt", 107, { number: 2, provider: "p", reason: "overloaded", waited: 1 }),
      fact("frame", 108, { size: 3, after: 0.5 }),
      fact("frame", 109, { size: 7, after: 2 }),
      fact("finished", 109.5, { finish: "stop" }),
    ],
    500,
  );
  assert.deepEqual(
    drawn?.stretches.map(({ kind, from, to, isFailed }) => [kind, from, to, isFailed]),
    [
      ["held", 1, 4, false],
      ["attempt", 4, 6, true],
      ["wait", 6, 7, false],
      ["attempt", 7, 7.5, false],
      ["reply", 7.5, 9.5, false],
    ],
  );
  assert.equal(drawn?.bytes, 10);
  assert.equal(drawn?.span, 9.5);
  assert.equal(drawn?.isOpen, false);
  assert.deepEqual(
    drawn?.moments.map((moment) => moment.label),
    ["Received", "Edited (set_text)", "Released", "Finished (stop)"],
  );
});

test("what has not ended lasts until now, and nothing is nothing", () => {
  const drawn = timeline([fact("received", 10), fact("held", 10, { phase: "tool_calls" })], 25);
  assert.deepEqual([drawn?.isOpen, drawn?.stretches[0].to], [true, 15]);
  assert.equal(timeline([], 1), null);
  assert.equal(
    timeline([fact("received", 10), fact("attempt", 10, { number: 1 }), fact("failed", 12, { code: "network" })], 0)
      ?.stretches[0].isFailed,
    true,
  );
});

test("columns, ticks and durations", () => {
  assert.deepEqual(
    columnsOf(
      [
        { at: 0, size: 1 },
        { at: 9.9, size: 2 },
        { at: 10, size: 3 },
      ],
      10,
      2,
    ),
    [1, 5],
  );
  assert.deepEqual(ticks(10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual([0, 0.0042, 0.05, 0.4, 1.234, 12.34, 65].map(duration), [
    "0",
    "4.2 ms",
    "50 ms",
    "400 ms",
    "1.23 s",
    "12.3 s",
    "1:05 min",
  ]);
});

test("a hold can be left out", () => {
  const facts = [
    fact("received", 0),
    fact("held", 0),
    fact("released", 300),
    fact("attempt", 300, { number: 1 }),
    fact("finished", 301),
  ];
  assert.equal(timeline(sinceRelease(facts), 0)?.span, 1);
  assert.equal(sinceRelease(facts.slice(0, 2)).length, 2);
});
