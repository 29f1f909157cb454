// @ts-check
/** An answer while it arrives: its pieces come in order, and a page that opens late fetches the first ones. */

/** @import { AnswerShown, Block } from "../../../api-types.d.ts" */
/**
 * `offset` is how many characters of the block came before.
 * @typedef {{ pair: string, block: number, type: "text" | "thinking" | "call" | "refusal", offset: number, text:
 *   string, name?: string, id?: string }} Delta
 */

/** @type {AnswerShown} */
export const NOTHING = {
  blocks: [],
  text: "",
  citations: [],
  finish: "",
  reason: null,
  is_partial: false,
  model: "",
  usage: null,
  predicted: null,
  cost: null,
  seconds: null,
  exchange: "",
  at: 0,
  run: "",
};

/**
 * With one more piece; null where it does not go on from what is known, so that the whole must be asked for.
 * @param {AnswerShown} answer
 * @param {Delta} delta
 * @returns {AnswerShown | null}
 */
export function applyDelta(answer, delta) {
  const { blocks } = answer;
  if (delta.block > blocks.length || (delta.block === blocks.length && delta.offset > 0)) return null;
  if (delta.block === blocks.length) return replaceBlock(answer, delta.block, blockFrom(delta));
  const block = blocks[delta.block];
  const known = words(block);
  if (delta.offset > known.length) return null;
  const both = known.slice(delta.offset, delta.offset + delta.text.length);
  // Other words in the same place are those of another attempt.
  if (both !== delta.text.slice(0, both.length)) return null;
  const more = delta.text.slice(both.length);
  if (!more || block.type === "media") return answer;
  return replaceBlock(
    answer,
    delta.block,
    block.type === "call" ? { ...block, arguments: known + more } : { ...block, text: known + more },
  );
}

/** The one of two states of the same answer that knows more. @param {AnswerShown} one @param {AnswerShown} other */
export function moreComplete(one, other) {
  if (results(other) !== results(one)) return results(other) > results(one) ? other : one;
  return countCharacters(other) > countCharacters(one) || other.blocks.length > one.blocks.length ? other : one;
}

/** @param {Delta} delta @returns {Block} */
function blockFrom(delta) {
  if (delta.type === "call")
    return { type: "call", id: delta.id ?? "", name: delta.name ?? "", arguments: delta.text, result: null };
  return { type: delta.type, text: delta.text };
}

/** @param {AnswerShown} answer @param {number} place @param {Block} block @returns {AnswerShown} */
function replaceBlock(answer, place, block) {
  const blocks = answer.blocks.slice();
  blocks[place] = block;
  return { ...answer, blocks };
}

/** @param {Block} block */
function words(block) {
  return block.type === "call" ? block.arguments : block.type === "media" ? "" : block.text;
}

/** Arguments that were edited can be shorter, but what a tool said stays said. @param {AnswerShown} answer */
function results(answer) {
  return answer.blocks.filter((block) => block.type === "call" && block.result).length;
}

/** @param {AnswerShown} answer */
function countCharacters(answer) {
  return answer.blocks.reduce((all, block) => all + words(block).length, 0);
}
