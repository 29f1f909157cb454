// @ts-check
/** Draws the Markdown tree: each node becomes an element of the same kind. */

import { h, useMemo } from "../vendor/preact.js";
import { parse } from "./core/markdown.js";
import { memo } from "./memo.js";

/** @import { Element, Node } from "./core/markdown-inline.js" */
/**
 * What a place draws in its own way; what is not named is drawn as everywhere.
 * @typedef {Partial<Record<Element["tag"], (node: Element, children: any[]) => any>>} Drawing
 */

/** A text longer than this is shown as it is. */
const LONGEST = 300_000;

export const Markdown = memo(function Markdown(/** @type {{ text: string }} */ { text }) {
  const tree = useMemo(() => (text.length > LONGEST ? null : parse(text)), [text]);
  return h(
    "div",
    { class: "markdown", dir: "auto" },
    tree ? tree.map((node) => renderNode(node)) : h("pre", { class: "plain-text" }, text),
  );
});

/** @param {Node} node @param {Drawing} [drawing] @returns {any} */
export function renderNode(node, drawing) {
  if (typeof node === "string") return node;
  const children = node.children.map((child) => renderNode(child, drawing));
  const own = drawing?.[node.tag];
  if (own) return own(node, children);
  switch (node.tag) {
    case "pre":
      return h(
        "pre",
        { class: "code-block", "data-language": node.language || null, tabindex: 0 },
        h("code", {}, children),
      );
    case "a":
      return h(
        "a",
        { href: node.href, target: "_blank", rel: "noopener noreferrer nofollow", title: node.href },
        children,
      );
    case "remote":
      return h(
        "a",
        {
          class: "remote-image",
          href: node.href,
          target: "_blank",
          rel: "noopener noreferrer nofollow",
          title: `Picture, not loaded: ${node.href}`,
        },
        "picture: ",
        children,
      );
    case "img":
      return h("img", { src: node.src, alt: String(node.children[0] ?? ""), loading: "lazy" });
    case "markup":
      return h("span", { class: "markup" }, children);
    case "table":
      return h(
        "div",
        { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "Table" },
        h("table", {}, children),
      );
    case "th":
    case "td":
      return h(node.tag, { class: node.align === "left" ? null : `align-${node.align}` }, children);
    case "li":
      return node.checked === undefined
        ? h("li", {}, children)
        : h(
            "li",
            { class: "task" },
            h("span", { role: "img", "aria-label": node.checked ? "done" : "open" }, node.checked ? "☑" : "☐"),
            " ",
            children,
          );
    case "ol":
      return h("ol", { start: node.start }, children);
    case "h1":
    case "h2":
    case "h3":
    case "h4":
    case "h5":
    case "h6":
      // The prompt's own headings are no headings of the page.
      return h("p", { class: `heading ${node.tag}` }, children);
    default:
      return h(node.tag, {}, children);
  }
}
