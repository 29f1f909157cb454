// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseGrowing, parse } from "../../src/sightline/ui/kit/core/markdown.js";
import { safePieces } from "../../src/sightline/ui/kit/core/mathml.js";
import { mayHoldMaths } from "../../src/sightline/ui/kit/core/maths.js";
import { treeOf } from "../../src/sightline/ui/vendor/temml.js";

/** @import { Node } from "../../src/sightline/ui/kit/core/markdown-inline.js" */

/** @param {Node[]} nodes @returns {any[]} */
const all = (nodes) => nodes.flatMap((node) => (typeof node === "string" ? [] : [node, ...all(node.children)]));
/** @param {string} text @param {import("../../src/sightline/ui/kit/core/markdown-inline.js").Ways} [ways] */
const formulas = (text, ways = { hasMaths: true }) =>
  all(parse(text, ways))
    .filter((node) => node.tag === "math")
    .map((node) => [node.isDisplay, node.children[0]]);
/** @param {string} source */
const drawn = (source) =>
  safePieces(
    treeOf(source, { displayMode: true, throwOnError: true, trust: false, maxSize: [20, 200], maxExpand: 200 }),
  );
/** @param {any[]} pieces @returns {any[]} */
const elements = (pieces) =>
  pieces.flatMap((piece) => (typeof piece === "string" ? [] : [piece, ...elements(piece.children)]));

test("all four marks are formulas", () => {
  assert.deepEqual(formulas("a $x_1 + y_2$ b"), [[false, "x_1 + y_2"]]);
  assert.deepEqual(formulas("so \\(e^{i\\pi}\\) is"), [[false, "e^{i\\pi}"]]);
  assert.deepEqual(formulas("$$\n\\frac a b\n$$"), [[true, "\\frac a b"]]);
  assert.deepEqual(formulas("\\[ x \\]"), [[true, "x"]]);
  assert.deepEqual(formulas("inline $$x$$ too"), [[true, "x"]]);
  assert.deepEqual(formulas("Then:\n$$x$$\nand so"), [[true, "x"]]);
  assert.deepEqual(formulas("- a $x$\n- \\[y\\]\n\n> $z$\n\n| $a$ |\n|---|\n| $b$ |"), [
    [false, "x"],
    [true, "y"],
    [false, "z"],
    [false, "a"],
    [false, "b"],
  ]);
});

test("money, code and escaped dollars are no formulas", () => {
  for (const text of [
    "It costs $5 and $10.",
    "from $5-$10",
    "US$ 5 and US$ 6",
    "`$x$`",
    "```\n$x$\n```",
    "\\$x\\$",
    "$ x $",
    "a$b$c",
    "$x",
    "$$",
    "\\[",
    "$$x$$ is not alone\n$",
    "5$ or 6$",
  ]) {
    if (text.startsWith("$$x$$")) assert.deepEqual(formulas(text), [[true, "x"]]);
    else assert.deepEqual(formulas(text), [], text);
  }
});

test("without being asked for, nothing is a formula", () => {
  assert.deepEqual(formulas("$x$ \\(y\\) \\[z\\]", {}), []);
  assert.ok(mayHoldMaths("a $ b") && mayHoldMaths("\\(") && mayHoldMaths("\\[") && !mayHoldMaths("plain (text) [x]"));
});

test("a formula whose end has not come is kept together while the text is written", () => {
  const [open] = parse("$$\n\\frac{a", { hasMaths: true, isOpen: true });
  assert.deepEqual([open.tag, open.isUnfinished, open.children[0]], ["math", true, "\\frac{a"]);
  assert.equal(parse("$$\n\\frac{a", { hasMaths: true })[0].tag, "p");
  assert.equal(parse("$$\na\n$$", { hasMaths: true, isOpen: true })[0].isUnfinished, undefined);
});

test("a text that grows is what it would be if it were read at once, and keeps what stands", () => {
  const text =
    "# A\n\nOne $x$ and **two**\n\n- a\n- b\n\n1. c\n\n2. d\n\n```py\nx = '$'\n\ny\n```\n\n" +
    "| a | b |\n|---|---|\n| 1 | $2$ |\n\n$$\n\\sum\n\nx\n$$\n\n> q\n> r\n\nlast\n---\nend";
  let before = null;
  for (let end = 1; end <= text.length; end++) {
    const ways = { hasMaths: true, isOpen: end < text.length };
    const now = parseGrowing(before, text.slice(0, end), ways);
    assert.deepEqual(now.elements, parse(text.slice(0, end), ways), text.slice(0, end));
    if (before)
      for (let place = 0; place < before.elements.length - 2; place++)
        assert.equal(now.elements[place], before.elements[place]);
    before = now;
  }
});

test("random texts grow to the same as well", () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  const bits = [
    "a",
    "b c",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "```",
    "$$",
    "$",
    "\\[",
    "\\]",
    "> ",
    "| a | b |",
    "|---|---|",
    "---",
    "# ",
    "**",
    "`",
    "  ",
    "    ",
    "[x](https://e.org)",
    "<b>",
    "\r\n",
  ];
  for (let round = 0; round < 400; round++) {
    let text = "";
    /** @type {any} */
    let before = null;
    for (let step = 0; step < 24; step++) {
      text += bits[Math.floor(random() * bits.length)];
      before = parseGrowing(before, text, { hasMaths: true, isOpen: true });
      assert.deepEqual(before.elements, parse(text, { hasMaths: true, isOpen: true }), JSON.stringify(text));
    }
    assert.deepEqual(
      parseGrowing(before, text, { hasMaths: true, isOpen: false }).elements,
      parse(text, { hasMaths: true, isOpen: false }),
      JSON.stringify(text),
    );
  }
});

test("a formula becomes MathML of a closed kind", () => {
  const [math] = /** @type {any[]} */ (drawn("\\frac{a}{b}"));
  assert.equal(math.tag, "math");
  assert.ok(elements([math]).some((each) => each.tag === "mfrac"));
  assert.ok(elements(drawn("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}")).some((each) => each.tag === "mtable"));
});

test("no formula brings an id, a link, a picture or a script", () => {
  for (const hostile of [
    "\\href{javascript:alert(1)}{x}",
    "\\url{https://x}",
    "\\includegraphics{https://x/y.png}",
    "\\class{app}{x}",
    "\\id{app}{x}",
    "\\style{background:url(https://x)}{x}",
    "\\htmlData{a=b}{x}",
    "\\data{a=b}{x}",
    "\\label{app}x",
    "\\ref{app}",
    "\\text{<img src=x onerror=alert(1)>}",
    "\\color{url(https://x)}{x}",
    "\\colorbox{red;background:url(x)}{y}",
  ]) {
    let pieces = [];
    try {
      pieces = drawn(hostile);
    } catch {
      continue; // what cannot be read is shown as its source
    }
    for (const piece of elements(pieces)) {
      assert.ok(!["a", "img", "script", "svg", "span"].includes(piece.tag), hostile);
      assert.ok(!["id", "href", "src", "style"].some((name) => name in piece.attributes), hostile);
      assert.ok(!JSON.stringify([piece.attributes, piece.style]).includes("url"), hostile);
    }
  }
});

test("a formula that is a bomb is not drawn", () => {
  assert.throws(() => drawn("\\def\\a#1{#1#1#1#1}\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{x}}}}}}}}"));
  assert.deepEqual(
    safePieces({
      type: "math",
      children: Array.from({ length: 5000 }, () => ({ type: "mi", children: [{ text: "x" }] })),
    }),
    [],
  );
});
