// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { foldText, hasTurnedText, lineCount } from "../../src/sightline/ui/kit/core/long-text.js";
import {
  compareHeaders,
  holdClock,
  joinTexts,
  lacksSections,
  mergeView,
  moveOperation,
  problemsBySection,
  proof,
  whyNotSendable,
} from "../../src/sightline/ui/views/request/core/exchange.js";

/** @param {string} id @param {object} [more] @returns {any} */
const section = (id, more = {}) => ({
  id,
  kind: "user",
  role: "user",
  label: id,
  pointer: `/messages/${id.slice(1)}`,
  text: id,
  editable: true,
  deleted: false,
  parts: [],
  category: "user",
  ...more,
});
/** @param {object} [more] @returns {any} */
const view = (more = {}) => ({
  id: "x_1",
  state: "held",
  dialect: "anthropic",
  provider: "p",
  model: "m",
  session: "",
  at: 1,
  body_sha256: "aa",
  dirty: false,
  ...more,
});

test("texts that came once are in their sections and in their parts", () => {
  const parts = [{ text: "one, " }, {}, { text: "two" }];
  const whole = joinTexts(view({ sections: [section("s1", { text: "", parts }), section("s2")], joined: ["s1"] }));
  assert.deepEqual(
    whole.sections?.map((each) => each.text),
    ["one, two", "s2"],
  );
  assert.ok(!("joined" in whole));
});

test("an answer with changed sections only keeps the others as the same objects", () => {
  const old = mergeView(
    null,
    view({ sections: [section("s1"), section("s2"), section("s3")], facts: [{ kind: "held", n: 1, at: 1 }] }),
  );
  const answer = view({
    sections: [section("s2", { text: "new" })],
    order: ["s1", "s2", "s3"],
    body_sha256: "bb",
    dirty: true,
  });
  const now = mergeView(old, answer);
  assert.equal(now.sections?.[0], old.sections?.[0]);
  assert.equal(now.sections?.[2], old.sections?.[2]);
  assert.equal(now.sections?.[1].text, "new");
  assert.equal(now.body_sha256, "bb");
  assert.deepEqual(now.facts, old.facts);
});

test("a whole answer keeps the objects of what is equal, and the list if all is", () => {
  const old = mergeView(null, view({ sections: [section("s1"), section("s2")] }));
  assert.equal(mergeView(old, view({ sections: [section("s1"), section("s2")] })).sections, old.sections);
  const now = mergeView(old, view({ sections: [section("s1"), section("s2", { deleted: true })] }));
  assert.equal(now.sections?.[0], old.sections?.[0]);
  assert.notEqual(now.sections?.[1], old.sections?.[1]);
});

test("an answer to an edit with all sections, since somebody else was there too, keeps what no edit changes", () => {
  const old = mergeView(
    null,
    view({
      sections: [section("s1"), section("s2")],
      facts: [{ kind: "held", n: 1, at: 1 }],
      edit_cost: { broken_by_edit: 5 },
    }),
  );
  const now = mergeView(
    old,
    /** @type {any} */ ({
      id: "x_1",
      state: "held",
      body_sha256: "cc",
      dirty: true,
      sections: [section("s1", { text: "new" }), section("s2")],
    }),
  );
  assert.deepEqual([now.dialect, now.model, now.body_sha256, now.edit_cost], ["anthropic", "m", "cc", null]);
  assert.deepEqual(
    now.sections?.map((each) => each.text),
    ["new", "s2"],
  );
  assert.equal(now.sections?.[1], old.sections?.[1]);
});

test("a whole answer that says nothing of a hold or of a cost has none", () => {
  const held = mergeView(
    null,
    view({ sections: [section("s1")], hold: { phase: "request", since: 1 }, edit_cost: { broken_by_edit: 5 } }),
  );
  const undone = mergeView(held, view({ sections: [], order: ["s1"] }));
  assert.equal(undone.edit_cost, null);
  assert.deepEqual(undone.hold, held.hold);
  assert.equal(mergeView(held, view({ state: "finished", sections: [section("s1")] })).hold, undefined);
});

test("an order with a section that was never seen asks for all of it", () => {
  const old = mergeView(null, view({ sections: [section("s1")] }));
  assert.equal(lacksSections(old, view({ sections: [], order: ["s1", "s9"] })), true);
  assert.equal(lacksSections(old, view({ sections: [section("s9")], order: ["s9", "s1"] })), false);
  assert.equal(lacksSections(old, view({ sections: [section("s1")] })), false);
});

test("problems go to their sections, and lists that did not change stay the same lists", () => {
  const problem = { pointer: "/x", section: "s1", message: "bad", severity: /** @type {const} */ ("error") };
  const first = problemsBySection({ ok: false, problems: [problem, { ...problem, section: "" }] });
  const second = problemsBySection({ ok: false, problems: [{ ...problem }, { ...problem, section: "s2" }] }, first);
  assert.equal(second.get("s1"), first.get("s1"));
  assert.equal(first.get("")?.length, 1);
  assert.equal(second.has(""), false);
});

test("errors block sending, warnings do not", () => {
  const error = { pointer: "", section: "", message: "orphan", severity: "error" };
  const why = (/** @type {any[]} */ ...problems) => whyNotSendable(view({ validity: { ok: false, problems } }));
  assert.equal(why(error), "orphan");
  assert.equal(why(error, error), "2 problems must be fixed first.");
  assert.equal(why({ ...error, severity: "warning" }), "");
});

test("shown = sent is told from the facts", () => {
  assert.equal(proof(view()).state, "shown");
  const facts = [{ kind: "released", n: 3, at: 3, sha256: "bb" }];
  assert.equal(proof(view({ state: "finished", body_sha256: "bb", facts, hashes: { sent: "bb" } })).state, "same");
  assert.deepEqual(proof(view({ state: "finished", body_sha256: "cc", facts, hashes: { sent: "cc" } })), {
    state: "different",
    shown: "bb",
    sent: "cc",
  });
  assert.equal(proof(view({ state: "finished", hashes: { sent: "aa" } })).state, "same");
  assert.equal(proof(view({ state: "dropped" })).state, "nothing");
  assert.equal(
    proof(view({ state: "finished", facts: [{ kind: "answered", n: 2, at: 2 }] })).state,
    "nothing",
    "answered by hand",
  );
  const calls = [
    { kind: "held", n: 1, at: 1, phase: "tool_calls" },
    { kind: "released", n: 2, at: 2, sha256: "held-calls" },
  ];
  assert.equal(proof(view({ state: "finished", facts: calls, hashes: { sent: "aa" } })).state, "same");
});

test("a hold counts down to what will happen", () => {
  assert.equal(holdClock({ phase: "request", since: 100 }, 165).waited, "1:05");
  const last = holdClock({ phase: "request", since: 100, deadline: 170, on_timeout: "drop" }, 165);
  assert.deepEqual([last.text, last.isUrgent], ["drops in 0:05", true]);
  assert.equal(
    holdClock({ phase: "request", since: 100, deadline: 170, on_timeout: "send" }, 500).text,
    "sends as shown in 0:00",
  );
  assert.equal(holdClock({ phase: "request", since: 0, client_deadline: 600 }, 100).text, "");
  assert.equal(
    holdClock({ phase: "request", since: 0, client_deadline: 600 }, 590).text,
    "the client may give up in 0:10",
  );
});

test("long texts are folded between words, and never inside an emoji", () => {
  const long = "word ".repeat(1000);
  assert.equal(foldText("short").isFolded, false);
  assert.equal(foldText(long).isFolded, true);
  assert.ok(foldText("👋".repeat(2000), 16, 801).text.isWellFormed());
  assert.equal(foldText("a\n".repeat(300)).lines, 301);
  assert.equal(lineCount("a\nb\n"), 3);
});

test("moving goes over deleted neighbours and stops at the ends", () => {
  const sections = [
    section("s0"),
    section("s1", { deleted: true, pointer: "" }),
    section("s1", { id: "s2" }),
    section("s9", { pointer: "/system" }),
  ];
  assert.deepEqual(moveOperation(sections, "s0", 1), { op: "move", from: "/messages/0", pointer: "/messages/1" });
  assert.equal(moveOperation(sections, "s0", -1), null);
  assert.equal(moveOperation(sections, "s2", 1), null);
  assert.equal(moveOperation(sections, "s9", 1), null);
});

test("signs that turn the direction of writing are noticed", () => {
  assert.equal(hasTurnedText("safe שלום"), false);
  assert.equal(hasTurnedText("a\u202eb"), true);
});

test("headers tell what was added, changed or not passed on", () => {
  const found = compareHeaders(
    [
      ["User-Agent", "cli"],
      ["X-Own", "1"],
      ["Accept", "a"],
    ],
    [
      ["user-agent", "cli"],
      ["accept", "b"],
      ["x-api-key", "***"],
    ],
  );
  assert.deepEqual(
    found.client.map((row) => row.change),
    ["same", "dropped", "same"],
  );
  assert.deepEqual(
    found.sent.map((row) => row.change),
    ["same", "changed", "added"],
  );
  assert.equal(compareHeaders([["a", "1"]], []).client[0].change, "same");
  assert.equal(compareHeaders([["Host", "here"]], [["a", "1"]]).client[0].change, "same");
});
