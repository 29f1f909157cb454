// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  clientName,
  countOf,
  duration,
  money,
  room,
  formatRunning,
  short,
  stamp,
  when,
  whole,
} from "../../src/sightline/ui/kit/core/format.js";

test("counts in full and in four characters", () => {
  assert.deepEqual([whole(12345.4), whole(null), whole(undefined)], ["12,345", "", ""]);
  const pairs = /** @type {[number, string][]} */ ([
    [0, "0"],
    [999, "999"],
    [1000, "1k"],
    [1234, "1.2k"],
    [9949, "9.9k"],
    [9950, "10k"],
    [56_789, "57k"],
    [999_499, "999k"],
    [999_500, "1M"],
    [1_250_000, "1.3M"],
    [2e12, "2.0e+12"],
  ]);
  for (const [count, told] of pairs) assert.equal(short(count), told);
  assert.equal(short(undefined), "");
});

test("money has as many places as it needs", () => {
  assert.deepEqual(
    [money(null), money(0), money(12.345), money(0.0561), money(0.00123), money(0.00000421), money(-2)],
    ["", "$0", "$12.35", "$0.056", "$0.0012", "$0.000004", "−$2.00"],
  );
});

test("lengths of time", () => {
  const pairs = /** @type {[number, string][]} */ ([
    [0.0432, "43 ms"],
    [0.9994, "999 ms"],
    [0.9996, "1.00 s"],
    [9.994, "9.99 s"],
    [12.34, "12.3 s"],
    [59.94, "59.9 s"],
    [59.96, "1 m 00 s"],
    [125, "2 m 05 s"],
    [3720, "1 h 02 m"],
  ]);
  for (const [seconds, told] of pairs) assert.equal(duration(seconds), told);
  assert.equal(duration(null), "");
});

test("time that still runs", () => {
  assert.deepEqual([-1, 7.9, 879, 3723].map(formatRunning), ["0:00", "0:07", "14:39", "1:02:03"]);
});

test("a time is told with its day only where that is another one", () => {
  const at = new Date(2026, 4, 3, 9, 5, 7).getTime() / 1000;
  assert.equal(when(at, at + 60), "09:05:07");
  assert.equal(when(at, at + 3 * 86400), "3 May 09:05");
  assert.equal(when(at, at + 400 * 86400), "3 May 2026");
  assert.match(stamp(at), /3 May 2026.*09:05:07/);
});

test("a client goes by its name", () => {
  assert.deepEqual(
    ["claude-cli/2.0.1 (external, cli)", "OpenAI/Python 2.1.0", "curl/8.5", "", undefined].map(clientName),
    ["claude-cli", "OpenAI/Python", "curl", "", ""],
  );
});

test("one and many", () => {
  assert.deepEqual(
    [countOf(1, "turn"), countOf(2000, "turn"), countOf(2, "reply", "replies")],
    ["1 turn", "2,000 turns", "2 replies"],
  );
});

test("room on a disk", () => {
  assert.deepEqual([1, 999, 43_000, 1_230_000].map(room), ["1 byte", "999 bytes", "43.0 kB", "1.2 MB"]);
});
