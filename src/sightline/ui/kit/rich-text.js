// @ts-check
/** A model's text: Markdown with formulas, and code that can be copied. While it grows, only its end is drawn again. */

import { h, html, useMemo, useRef } from "../vendor/preact.js";
import { CopyButton } from "./copy.js";
import { trimUnfinishedEnd } from "./core/answers.js";
import { parseGrowing } from "./core/markdown.js";
import { mayHoldMaths } from "./core/maths.js";
import { Formula } from "./formula.js";
import { renderNode } from "./markdown.js";
import { memo } from "./memo.js";

/** @import { Grown } from "./core/markdown.js" */
/** @import { Element } from "./core/markdown-inline.js" */
/** @import { Drawing } from "./markdown.js" */

/** A text longer than this is shown as it is. */
const LONGEST = 1_000_000;

/** @type {Drawing} */
const DRAWING = {
  pre: (node) => h(Code, { text: String(node.children[0] ?? ""), language: node.language ?? "" }),
  math: (node) =>
    h(Formula, {
      source: String(node.children[0] ?? ""),
      isDisplay: node.isDisplay ?? false,
      isUnfinished: node.isUnfinished,
    }),
};

export const RichText = memo(function RichText(
  /** @type {{ text: string, isLive?: boolean }} */ { text, isLive = false },
) {
  const before = useRef(/** @type {Grown | null} */ (null));
  const shown = isLive ? trimUnfinishedEnd(text) : text;
  const hasMaths = before.current?.ways.hasMaths || mayHoldMaths(shown);
  const read = useMemo(
    () => (shown.length > LONGEST ? null : parseGrowing(before.current, shown, { hasMaths, isOpen: isLive })),
    [shown, isLive, hasMaths],
  );
  before.current = read;
  if (!read) return html`<pre class="plain-text" dir="auto">${shown}</pre>`;
  return html`<div class="markdown rich-text" dir="auto">
    ${read.elements.map((element, index) => h(Block, { key: String(index), element }))}
  </div>`;
});

const Block = memo(function Block(/** @type {{ element: Element }} */ { element }) {
  return renderNode(element, DRAWING);
});

/** @param {{ text: string, language: string }} props */
function Code({ text, language }) {
  return html`<div class="code-frame">
    <div class="code-head">
      <span class="code-language">${language || "text"}</span>
      ${h(CopyButton, { text, label: "Copy code" })}
    </div>
    <pre class="code-block" tabindex="0" aria-label=${language ? `Code, ${language}` : "Code"} role="group">
      <code>${text}</code>
    </pre>
  </div>`;
}
