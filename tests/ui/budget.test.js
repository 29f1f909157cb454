// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { band, bar, predictTokens, short, toolSizes } from "../../src/sightline/ui/views/request/core/budget.js";

const categories = [
  { name: "user", tokens: 100, low: 90, high: 110 },
  { name: "system", tokens: 300, low: 290, high: 310 },
  { name: "options", tokens: 0, low: 0, high: 0 },
];

test("categories stand in their order, then the reserve, and the window is marked", () => {
  const drawn = bar({ estimate: 400, low: 380, high: 420, window: 1000, reserve: 200, categories });
  assert.deepEqual(
    drawn.segments.map(({ name, start, width }) => [name, start, width]),
    [
      ["system", 0, 30],
      ["user", 30, 10],
      ["reserve", 40, 20],
    ],
  );
  assert.equal(drawn.windowAt, 100);
  assert.equal(drawn.band?.start, 38);
  assert.ok(Math.abs((drawn.band?.width ?? 0) - 4) < 1e-9);
  assert.equal(drawn.verdict, "fits");
});

test("a request that is over its window has the mark inside the bar", () => {
  const drawn = bar({
    estimate: 2000,
    low: 1900,
    high: 2100,
    window: 1000,
    categories: [{ name: "history", tokens: 2000, low: 1900, high: 2100 }],
  });
  assert.equal(drawn.verdict, "exceeds");
  assert.ok(drawn.windowAt !== null && drawn.windowAt < 50);
});

test("the verdict follows the band", () => {
  const of = (/** @type {number} */ low, /** @type {number} */ high, reserve = 0) =>
    bar({ estimate: (low + high) / 2, low, high, window: 100, reserve }).verdict;
  assert.equal(of(90, 110), "may exceed");
  assert.equal(of(101, 102), "exceeds");
  assert.equal(of(10, 20, 75), "near");
  assert.equal(of(10, 20, 95), "crowded");
  assert.equal(bar({ estimate: 5, categories: [] }).verdict, "unknown");
  assert.equal(bar(undefined).used, 0);
});

test("what is typed is predicted by the measure of what was counted", () => {
  const counted = { tokens: 100, low: 90, high: 110 };
  assert.equal(predictTokens(counted, 400, 400), counted);
  assert.deepEqual(predictTokens(counted, 400, 800), { tokens: 200, low: 160, high: 240 });
  assert.equal(predictTokens(counted, 400, 0)?.tokens, 0);
  assert.equal(predictTokens({ tokens: 4, low: 4, high: 4 }, 0, 100)?.tokens, 31);
  assert.equal(predictTokens(null, 1, 2), null);
  // A picture beside the text does not grow with it.
  assert.equal(predictTokens({ tokens: 1010, low: 10, high: 6000 }, 40, 80)?.tokens, 1021);
});

test("counts are short and bands are said only where there is one", () => {
  assert.deepEqual([0, 9999, 12_345, 250_000, 1_200_000, null].map(short), [
    "0",
    "9,999",
    "12.3k",
    "250k",
    "1.2M",
    "–",
  ]);
  assert.equal(band({ tokens: 5, low: 5, high: 5 }), "");
  assert.equal(band({ tokens: 5, low: 4, high: 6 }), "4–6");
});

test("tools share the tokens of their section, and servers have the sums of their tools", () => {
  const part = (/** @type {string} */ id, /** @type {string} */ name, /** @type {number} */ size) => ({
    id,
    name,
    text: "x".repeat(size),
  });
  const parts = [
    part("a", "mcp__git_hub__list", 30),
    part("b", "Read", 20),
    part("c", "mcp__git_hub__get", 50),
    { ...part("d", "Gone", 900), deleted: true },
  ];
  const { tools, servers } = toolSizes({ tokens: { tokens: 1000 }, parts });
  assert.deepEqual([...tools], [["a", 300], ["b", 200], ["c", 500]]); // prettier-ignore
  assert.deepEqual(servers, [
    { name: "git_hub", tokens: 800, count: 2 },
    { name: "", tokens: 200, count: 1 },
  ]);
});
