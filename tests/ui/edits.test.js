// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { Edits, PAUSE, withLineEnds } from "../../src/sightline/ui/kit/core/edits.js";

/** A clock that is moved by hand, and a server that answers when told to. */
function stage() {
  /** @type {{ run: () => void, after: number, off?: boolean }[]} */
  const timers = [];
  /** @type {{ operation: any, answer: (value: unknown) => void, refuse: (error: Error) => void }[]} */
  const posts = [];
  /** @type {string[]} */
  const log = [];
  const edits = new Edits({
    post: (operation) => new Promise((answer, refuse) => posts.push({ operation, answer, refuse })),
    answered: (answer, operation) => log.push(`${operation.op}:${answer}`),
    refused: (error, operation) => log.push(`${operation.op}!${error.message}`),
    later: (run, after) => {
      const timer = { run, after, off: false };
      timers.push(timer);
      return () => void (timer.off = true);
    },
  });
  const tick = (/** @type {number} */ upTo) =>
    timers
      .filter((timer) => !timer.off && timer.after <= upTo)
      .forEach((timer) => {
        timer.off = true;
        timer.run();
      });
  const settle = () => new Promise((done) => setImmediate(done));
  return { edits, posts, log, tick, settle };
}

test("a burst of keys is one edit, told after a pause", async () => {
  const { edits, posts, log, tick, settle } = stage();
  edits.type({ section: "s1" }, "a");
  edits.type({ section: "s1" }, "ab");
  assert.equal(edits.typed("s1"), "ab");
  assert.equal(posts.length, 0);
  tick(PAUSE);
  await settle();
  assert.deepEqual(
    posts.map((post) => post.operation),
    [{ op: "set_text", section: "s1", text: "ab" }],
  );
  assert.equal(edits.isBusy, true);
  posts[0].answer("ok");
  await settle();
  assert.deepEqual(log, ["set_text:ok"]);
  assert.equal(edits.isBusy, false);
});

test("an operation waits for what was typed before it, and goes one at a time", async () => {
  const { edits, posts, settle } = stage();
  edits.type({ section: "s1", part: "s1.p2" }, "x");
  const done = edits.apply({ op: "delete", section: "s3" });
  await settle();
  assert.deepEqual(
    posts.map((post) => post.operation),
    [{ op: "set_text", section: "s1", part: "s1.p2", text: "x" }],
  );
  posts[0].answer(1);
  await settle();
  assert.equal(posts[1].operation.op, "delete");
  posts[1].answer(2);
  assert.equal(await done, true);
});

test("flush before sending says whether everything was taken", async () => {
  const { edits, posts, log, settle } = stage();
  edits.type({ section: "s1" }, "bad");
  const flushed = edits.flush();
  await settle();
  posts[0].refuse(new Error("no"));
  assert.equal(await flushed, false);
  assert.deepEqual(log, ["set_text!no"]);
  assert.equal(await edits.flush(), true, "a refusal is told once");
});

test("what was typed can be forgotten", async () => {
  const { edits, posts, tick, settle } = stage();
  edits.type({ section: "s1" }, "x");
  edits.forget("s1");
  tick(10_000);
  await settle();
  assert.equal(posts.length, 0);
  assert.equal(edits.isBusy, false);
});

test("line ends stay as they were, although a text field makes one kind of them all", () => {
  assert.equal(withLineEnds("a\nb", "a\r\nb"), "a\r\nb");
  assert.equal(withLineEnds("a\nbc\n", "a\r\nb"), "a\r\nbc\r\n");
  assert.equal(withLineEnds("a\nb\nc", "a\r\nb\nc"), "a\r\nb\nc", "nothing was typed");
  assert.equal(withLineEnds("a\nb\nd", "a\r\nb\nc"), "a\nb\nd", "which of them is meant nobody can say");
  assert.equal(withLineEnds("a\nb", "a\rb"), "a\rb");
  assert.equal(withLineEnds("x\ny", "a"), "x\ny");
});
