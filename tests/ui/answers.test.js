// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsLine, callState, trimUnfinishedEnd, sourcesOf } from "../../src/sightline/ui/kit/core/answers.js";
import {
  kindOf,
  LARGEST,
  MOST,
  nameOf,
  formatBytes,
  sortFiles,
  wireAttachments,
} from "../../src/sightline/ui/views/chat/core/attachments.js";

test("half a mark at the end of a text that grows is not shown yet", () => {
  for (const [text, shown] of [
    ["a\n`", "a\n"],
    ["a\n``", "a\n"],
    ["a\n```", "a\n```"],
    ["~~", ""],
    ["x \\", "x "],
    ["$$x$", "$$x"],
    ["$$x$$", "$$x$$"],
    ["a `b`", "a `b`"],
    ["", ""],
  ])
    assert.equal(trimUnfinishedEnd(text), shown, text);
});

test("each source is named once, with all that was quoted of it", () => {
  const told = sourcesOf([
    { title: "A", url: "https://a.org", quote: "one" },
    { title: "B", url: "https://b.org" },
    { title: "A", url: "https://a.org", quote: "two" },
    { title: "", url: "", quote: "" },
    { title: "", url: "https://a.org", quote: "one" },
  ]);
  assert.deepEqual(told, [
    { number: 1, title: "A", url: "https://a.org", quotes: ["one", "two"] },
    { number: 2, title: "B", url: "https://b.org", quotes: [] },
  ]);
});

test("a call's arguments fit on one line", () => {
  assert.equal(argumentsLine('{"path":"src/a.py","limit":3}'), "path: src/a.py, limit: 3");
  assert.equal(argumentsLine('{"path": "src'), '{"path": "src');
  assert.equal(argumentsLine({ text: "a\n  b" }), "text: a b");
  assert.equal(argumentsLine("x".repeat(200)).length, 91);
  assert.equal(argumentsLine(null), "");
  assert.equal(argumentsLine("[1,2]"), "1, 2");
});

test("a call was made, waits for a person, failed, is done, or never ran", () => {
  const result = { text: "", is_error: false, media: 0 };
  assert.deepEqual(
    [
      callState({ id: "c1", result: null }, true, new Set(["c2"])),
      callState({ id: "c1", result: null }, true, new Set(["c1"])),
      callState({ id: "c1", result: null }, false),
      callState({ id: "c1", result }, true, new Set(["c1"])),
      callState({ id: "c1", result: { ...result, is_error: true } }, false),
    ],
    ["called", "waiting", "open", "done", "failed"],
  );
});

test("what models take is known by its type, else by its name", () => {
  const kinds = [
    ["a.png", "image/png"],
    ["a.jpg", "image/jpg"],
    ["photo", "image/webp"],
    ["a.pdf", ""],
    ["a.py", ""],
    ["Makefile", ""],
    ["a.svg", "image/svg+xml"],
    ["a.html", "text/html"],
    ["a.mp3", "audio/mp3"],
    ["a.exe", "application/x-msdownload"],
    ["a.zip", ""],
    ["a.csv", "text/csv"],
  ];
  assert.deepEqual(
    kinds.map(([name, type]) => kindOf({ name, type, size: 1 })?.kind ?? null),
    ["image", "image", "image", "document", "text", "text", "text", "text", "audio", null, null, "text"],
  );
  assert.equal(kindOf({ name: "a.html", type: "text/html", size: 1 })?.media_type, "text/plain");
});

test("what is too large, empty, unknown or too many is refused with a reason", () => {
  const file = (/** @type {string} */ name, size = 10, type = "image/png") => ({ name, type, size });
  const { taken, refused } = sortFiles([
    file("a.png"),
    file("b.bin", 10, "application/x"),
    file("c.png", 0),
    file("d.png", LARGEST + 1),
  ]);
  assert.deepEqual(
    taken.map((each) => each.file.name),
    ["a.png"],
  );
  assert.deepEqual(
    refused.map((each) => each.name),
    ["b.bin", "c.png", "d.png"],
  );
  assert.match(refused[2].why, /20 MB are the most/);
  assert.equal(
    sortFiles(
      [file("a.png")],
      Array.from({ length: MOST }, () => ({ size: 1 })),
    ).taken.length,
    0,
  );
  assert.equal(sortFiles([file("a", LARGEST), file("b", LARGEST), file("c", LARGEST)]).taken.length, 2);
});

test("sizes and names of attachments, and what is sent of them", () => {
  assert.deepEqual(
    [formatBytes(1), formatBytes(999), formatBytes(2048), formatBytes(20 * 1024 * 1024), formatBytes(1024 * 1001)],
    ["1 byte", "999 bytes", "2 KB", "20 MB", "1 MB"],
  );
  assert.deepEqual(
    [
      nameOf({ name: "", type: "image/jpeg", size: 1 }, 0),
      nameOf({ name: "x.md", type: "", size: 1 }, 0),
      nameOf({ name: "", type: "", size: 1 }, 2),
    ],
    ["pasted-1.jpg", "x.md", "pasted-3.txt"],
  );
  assert.deepEqual(wireAttachments([{ name: "a", media_type: "image/png", size: 3, kind: "image", data: "AAAA" }]), [
    { name: "a", media_type: "image/png", data: "AAAA" },
  ]);
});
