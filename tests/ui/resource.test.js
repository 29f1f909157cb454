import assert from "node:assert/strict";
import { test } from "node:test";

import { Resource } from "../../src/sightline/ui/kit/core/resource.js";

/** Answers that the test gives when it likes. */
function questions() {
  /** @type {{ answer: (value: string) => void, fail: (error: Error) => void }[]} */
  const open = [];
  const ask = () =>
    new Promise((/** @type {(value: string) => void} */ answer, fail) => void open.push({ answer, fail }));
  return { open, ask };
}

const settle = () => new Promise((resolve) => setTimeout(resolve));
const never = () => () => {};

test("calls of one moment share one request", async () => {
  const { open, ask } = questions();
  const value = new Resource(ask, never);
  void value.refresh();
  void value.refresh();
  await settle();
  assert.equal(open.length, 1);
  open[0].answer("one");
  await settle();
  assert.equal(value.value.value, "one");
  assert.equal(open.length, 1);
});

test("a change during a request is fetched after it, and the promise waits for that", async () => {
  const { open, ask } = questions();
  const value = new Resource(ask, never);
  void value.refresh();
  await settle();
  let isFresh = false;
  void value.refresh().then(() => (isFresh = true));
  open[0].answer("old");
  await settle();
  assert.equal(open.length, 2);
  assert.equal(isFresh, false);
  open[1].answer("new");
  await settle();
  assert.equal(value.value.value, "new");
  assert.equal(isFresh, true);
});

test("an error leaves the value, and the next answer takes the error away", async () => {
  const { open, ask } = questions();
  const value = new Resource(ask, never);
  for (const step of ["first", new Error("no"), "second"]) {
    void value.refresh();
    await settle();
    const last = open.at(-1);
    if (typeof step === "string") last?.answer(step);
    else last?.fail(step);
    await settle();
    assert.equal(value.trouble.value, typeof step === "string" ? null : step);
    assert.equal(value.value.value, step === "second" ? "second" : "first");
  }
});

test("what is followed is fetched at each change, until it is stopped", async () => {
  const { open, ask } = questions();
  /** @type {Set<() => void>} */
  const listeners = new Set();
  const value = new Resource(ask, (again) => {
    listeners.add(again);
    return () => void listeners.delete(again);
  });
  const stop = value.start();
  await settle();
  open[0].answer("one");
  await settle();
  for (const again of listeners) again();
  await settle();
  assert.equal(open.length, 2);
  stop();
  open[1].answer("late");
  await settle();
  assert.equal(value.value.value, "one");
  assert.equal(listeners.size, 0);
});
