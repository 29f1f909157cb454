// @ts-check
/**
 * Reduces a formula's tree to what MathML Core defines and a page can safely show: a closed set of elements,
 * attributes and styles. Links, pictures and ids are not among them.
 */

/** @import { MathTree } from "../../vendor/temml.js" */
/**
 * @typedef {string | { tag: string, attributes: Record<string, string>, style: Record<string, string>, children:
 *   MathPiece[] }} MathPiece
 */

const TAGS = new Set(
  [
    "math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms",
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none semantics",
  ].flatMap((line) => line.split(" ")),
);
const ATTRIBUTES = new Set(
  [
    "accent accentunder columnspan columnalign depth dir display displaystyle fence form height largeop",
    "linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize movablelimits",
    "notation rowspan rspace scriptlevel separator stretchy symmetric voffset width",
  ].flatMap((line) => line.split(" ")),
);
const STYLES = new Set(
  [
    "border borderTop borderBottom borderLeft borderRight color backgroundColor display fontWeight mathDepth",
    "math-depth padding paddingTop paddingBottom paddingLeft paddingRight textAlign width whiteSpace",
  ].flatMap((line) => line.split(" ")),
);
/** Of the classes those that the page has a style for. */
const CLASSES = /^(?:tml-[a-z0-9-]+|mathcal|mathscr|menclose|upstrike|downstrike|sout)$/;
const VALUE = /^[#\w .%+,()-]{1,60}$/;
const MOST = 4000;

/** @param {MathTree} tree @returns {MathPiece[]} nothing where it is too large to be drawn */
export function safePieces(tree) {
  const left = { count: MOST };
  const pieces = piecesOf(tree, left);
  return left.count < 0 ? [] : pieces;
}

/** @param {MathTree} tree @param {{ count: number }} left @returns {MathPiece[]} */
function piecesOf(tree, left) {
  left.count -= 1;
  if (left.count < 0) return [];
  if (!tree.type) return typeof tree.text === "string" ? [tree.text] : inside(tree, left);
  // What is no element of MathML is only its text: a link is what is written in it.
  if (!TAGS.has(tree.type)) return inside(tree, left);
  const attributes = pickAllowed(tree.attributes, ATTRIBUTES);
  const names = (tree.classes ?? []).filter((name) => CLASSES.test(name)).join(" ");
  if (names) attributes.class = names;
  const style = pickAllowed(tree.style, STYLES);
  if (tree.attributes?.style === "font-weight:bold") style.fontWeight = "bold";
  return [{ tag: tree.type, attributes, style, children: inside(tree, left) }];
}

/** @param {MathTree} tree @param {{ count: number }} left */
function inside(tree, left) {
  return (tree.children ?? []).flatMap((child) => piecesOf(child, left));
}

/** @param {Record<string, unknown> | undefined} values @param {Set<string>} known @returns {Record<string, string>} */
function pickAllowed(values, known) {
  const entries = Object.entries(values ?? {}).filter(
    ([name, value]) =>
      known.has(name) && value != null && VALUE.test(String(value)) && !/url|expression|var/i.test(String(value)),
  );
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}
