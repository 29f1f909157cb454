// @ts-check
/**
 * A formula as MathML. The renderer is loaded with the first formula; a formula that cannot be parsed is shown as
 * source.
 */

import { h, html, signal, useMemo } from "../vendor/preact.js";
import { safePieces } from "./core/mathml.js";
import { memo } from "./memo.js";

/** @import { MathPiece } from "./core/mathml.js" */
/** @typedef {typeof import("../vendor/temml.js").treeOf} Reader */

const reader = signal(/** @type {Reader | null} */ (null));
/** @type {Promise<void> | null} */
let loading = null;

/** Once for the page; after a failure the next formula tries again. */
function load() {
  loading ??= import("../vendor/temml.js").then(
    (module) => void (reader.value = module.treeOf),
    () => void (loading = null),
  );
}

export const Formula = memo(function Formula(
  /** @type {{ source: string, isDisplay: boolean, isUnfinished?: boolean }} */ { source, isDisplay, isUnfinished },
) {
  const read = reader.value;
  if (!read && !isUnfinished) load();
  const { pieces, problem } = useMemo(
    () => (read && !isUnfinished ? piecesOf(read, source, isDisplay) : { pieces: [], problem: "" }),
    [read, source, isDisplay, isUnfinished],
  );
  if (!pieces.length)
    return html`<code class=${isDisplay ? "formula-source is-display" : "formula-source"} title=${problem || null}>
      ${source}
    </code>`;
  return h(
    "span",
    {
      class: isDisplay ? "formula is-display" : "formula",
      tabindex: isDisplay ? 0 : null,
      role: isDisplay ? "group" : null,
      "aria-label": isDisplay ? "Formula" : null,
      title: source,
    },
    pieces.map(element),
  );
});

/**
 * @param {Reader} read
 * @param {string} source
 * @param {boolean} isDisplay
 * @returns {{ pieces: MathPiece[], problem: string }}
 */
function piecesOf(read, source, isDisplay) {
  try {
    const tree = read(source, {
      displayMode: isDisplay,
      throwOnError: true,
      trust: false,
      maxSize: [20, 200],
      maxExpand: 200,
    });
    const pieces = safePieces(tree);
    return { pieces, problem: pieces.length ? "" : "This formula is too large to be drawn." };
  } catch (error) {
    // A model's formula can be wrong in any way, and the reader says so by throwing; its source is then what is shown.
    return {
      pieces: [],
      problem: `This formula cannot be read: ${/** @type {Error} */ (error).message.split(" at position")[0]}`,
    };
  }
}

/** @param {MathPiece} piece @returns {any} */
function element(piece) {
  if (typeof piece === "string") return piece;
  return h(/** @type {any} */ (piece.tag), { ...piece.attributes, style: piece.style }, piece.children.map(element));
}
