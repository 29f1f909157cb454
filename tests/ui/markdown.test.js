// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../../src/sightline/ui/kit/core/markdown.js";
import { inline, safeAddress, safeImage } from "../../src/sightline/ui/kit/core/markdown-inline.js";

/** @import { Node } from "../../src/sightline/ui/kit/core/markdown-inline.js" */

/** @param {Node[]} nodes @returns {string} what a reader sees */
const textOf = (nodes) => nodes.map((node) => (typeof node === "string" ? node : textOf(node.children))).join("");
/** @param {Node[]} nodes @returns {any[]} */
const all = (nodes) => nodes.flatMap((node) => (typeof node === "string" ? [] : [node, ...all(node.children)]));
/** @param {Node[]} nodes */
const tags = (nodes) => all(nodes).map((node) => node.tag);

test("blocks become a closed set of tags", () => {
  const tree = parse(
    "# Title #\n\nOne *two* **three** `four`\nsame paragraph\n\n- a\n- b\n  - c\n\n" +
      "3. x\n4. y\n\n> quoted\n\n---\n\n```js\nlet a = '<b>';\n```",
  );
  assert.deepEqual(
    tree.map((node) => node.tag),
    ["h1", "p", "ul", "ol", "blockquote", "hr", "pre"],
  );
  assert.equal(textOf(tree[1].children), "One two three four\nsame paragraph");
  assert.deepEqual(tags(tree[1].children), ["em", "strong", "code"]);
  assert.equal(textOf(tree[2].children), "abc");
  assert.deepEqual(tags(tree[2].children), ["li", "li", "ul", "li"]);
  assert.equal(tree[3].start, 3);
  assert.equal(tree[6].language, "js");
  assert.deepEqual(tree[6].children, ["let a = '<b>';"]);
});

test("a table keeps its columns and their sides", () => {
  const [table] = parse("| a | b |\n|:-:|--:|\n| 1 | `x\\|y` |\n| 2 |");
  assert.equal(table.tag, "table");
  const cells = all([table]).filter((node) => node.tag === "td");
  assert.deepEqual(
    cells.map((cell) => [cell.align, textOf(cell.children)]),
    [
      ["center", "1"],
      ["right", "x|y"],
      ["center", "2"],
    ],
  );
});

test("task items know whether they are done", () => {
  const [list] = parse("- [x] done\n- [ ] open");
  assert.deepEqual(
    all([list])
      .filter((node) => node.tag === "li")
      .map((node) => node.checked),
    [true, false],
  );
});

test("HTML stays text", () => {
  for (const hostile of [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>1</script>'>",
    "<svg/onload=alert(1)>",
    "<!-- --><a href='javascript:1'>x</a>",
  ]) {
    const tree = parse(hostile);
    assert.equal(textOf(tree), hostile);
    assert.ok(
      tags(tree).every((tag) => tag === "p" || tag === "markup"),
      hostile,
    );
  }
});

test("an address that could run is text, whatever its disguise", () => {
  const hostile = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "\u0001javascript:alert(1)",
    "vbscript:x",
    "data:text/html,<script>1</script>",
    "data:text/html;base64,PHNjcmlwdD4=",
    "data:image/svg+xml;base64,AAAA",
    "blob:https://x/y",
    "file:///etc/passwd",
    "//evil.example",
    "/api/rules",
    "#/x",
    "https:evil",
    "http:///x",
    "http:\\\\evil",
    "mailto:",
    "https://a\u202eb",
    "chrome://settings",
    "view-source:https://x",
  ];
  for (const address of hostile) {
    assert.equal(safeAddress(address), null, address);
    const tree = parse(`[click](${address}) and ![pic](${address}) and <${address}>`);
    assert.ok(!all(tree).some((node) => node.href && !/^(https?:\/\/|mailto:)/i.test(node.href)), address);
    assert.ok(!all(tree).some((node) => node.src), address);
  }
  assert.equal(safeAddress("https://example.org/a?b=c#d"), "https://example.org/a?b=c#d");
  assert.equal(safeAddress("mailto:a@example.org"), "mailto:a@example.org");
});

test("links, bare addresses and their punctuation", () => {
  const tree = parse("See [the *docs*](https://e.org/a_(b)) or https://e.org/x_y_z. (https://e.org/q)");
  assert.deepEqual(
    all(tree)
      .filter((node) => node.tag === "a")
      .map((node) => node.href),
    ["https://e.org/a_(b)", "https://e.org/x_y_z", "https://e.org/q"],
  );
  assert.equal(textOf(tree), "See the docs or https://e.org/x_y_z. (https://e.org/q)");
});

test("only pictures in the text itself are shown; remote ones are links", () => {
  const own = "data:image/png;base64,iVBORw0KGgo=";
  assert.equal(all(parse(`![p](${own})`)).find((node) => node.tag === "img").src, own);
  const [remote] = all(parse("![p](https://track.example/pixel.gif)")).filter((node) => node.tag !== "p");
  assert.deepEqual([remote.tag, remote.href], ["remote", "https://track.example/pixel.gif"]);
  assert.equal(safeImage("data:image/svg+xml;base64,PHN2Zz4="), null);
  assert.equal(safeImage('data:image/png;base64,AA"onerror='), null);
});

test("right-to-left text and emoji come through whole", () => {
  for (const text of ["שלום **עולם** 👋🏽", "مرحبا `كود` 👨‍👩‍👧‍👦", "a\u202eb", "\ud83d", "é́"]) {
    assert.equal(textOf(parse(text)).replaceAll(/\s/g, ""), text.replaceAll(/[*`]/g, "").replaceAll(/\s/g, ""));
  }
});

test("snake_case, 2 * 3 * 4 and unpaired signs are left alone", () => {
  assert.deepEqual(inline("snake_case_name 2 * 3 * 4 **x `y ~z ["), ["snake_case_name 2 * 3 * 4 **x ", "`", "y ~z ["]);
});

test("prompts with tags on lines of their own keep their lines apart", () => {
  const tree = parse("<system-reminder>\nBe brief.\n</system-reminder>");
  assert.equal(textOf(tree), "<system-reminder>Be brief.</system-reminder>");
  assert.equal(tree.length, 3);
});

test("huge and nested input is read to its end", () => {
  const mean = [
    "*".repeat(60_000),
    "`a".repeat(60_000),
    "[".repeat(60_000),
    "[a](".repeat(20_000),
    "> ".repeat(20_000) + "x",
    "- ".repeat(20_000) + "x",
    "_a ".repeat(40_000),
    "<a ".repeat(40_000),
    "![".repeat(40_000),
    "a\n".repeat(200_000),
    "| a ".repeat(30_000) + "\n" + "|-".repeat(30_000),
    "1. x\n".repeat(50_000),
    "x".repeat(2_000_000),
    "**a ".repeat(9000),
    "\\".repeat(39_000),
    "```\n".repeat(50_001),
    "https://".repeat(5000),
    "~~~" + " ".repeat(300_000) + "`",
    "~".repeat(300_000) + "`",
    "# a" + " ".repeat(300_000) + "x",
    "|a\n-" + " ".repeat(300_000) + "x",
    `${"a|".repeat(30_000)}\n${"-|".repeat(30_000)}\n${"|\n".repeat(60_000)}`,
  ];
  for (const text of mean) assert.ok(Array.isArray(parse(text)));
});
