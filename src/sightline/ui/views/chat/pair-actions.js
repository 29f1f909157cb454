// @ts-check
/** The buttons of one pair; each has a shortcut. */

import { about } from "../../kit/about.js";
import { iconButton } from "../../kit/button.js";
import { copyText } from "../../kit/copy.js";
import { countOf } from "../../kit/core/format.js";
import { Menu } from "../../kit/menu.js";
import { attempt, toast } from "../../kit/toast.js";
import { h, html } from "../../vendor/preact.js";
import { dialog, mark, reask, remove, revise, swap } from "./actions.js";
import { chat, forkChat, goToChat } from "./chats.js";
import { undoCompaction } from "./compaction.js";
import { nextStar } from "./core/chat.js";
import { idsOf, view } from "./feed.js";
import { mark as chosenFrom, selectionRange, toInput } from "./modes.js";

/** @import { PairShown } from "../../api-types.d.ts" */
/** @import { Standing } from "./core/chat.js" */

/** Both sides as Markdown. @param {PairShown} pair */
export function bothSides(pair) {
  return [pair.user_text, pair.answer?.text ?? pair.trouble?.line ?? ""].filter(Boolean).join("\n\n---\n\n");
}

/** Propose a case of the pair and of what went before it. @param {PairShown} pair */
export function makeCaseOf(pair) {
  if (exchangeOf(pair)) dialog.value = { kind: "case", exchanges: [exchangeOf(pair)] };
  else toast("This pair is not on record.", { hint: "Only what was asked from here can become a case." });
}

/** Where the pair is on record; its request holds the conversation before it. @param {PairShown} pair */
function exchangeOf(pair) {
  return pair.answer?.exchange || pair.exchange;
}

/** Open a new chat with everything up to this pair. @param {PairShown} pair */
export async function forkFrom(pair) {
  const before = chat.value;
  await attempt(async () => {
    const made = await forkChat(pair.id);
    toast(`A new chat with ${countOf(made.pairs, "pair")}.`, {
      action: { label: "Back", run: () => goToChat(before) },
    });
  });
}

/** Choose the model that answers again. @param {PairShown} pair */
export function pickAndReask(pair) {
  const current = view.value?.model ?? pair.model;
  dialog.value = {
    kind: "model",
    title: "Ask again, answered by",
    current: current || pair.model,
    onPick: (model) => void reask(pair, { model }),
  };
}

/** @param {PairShown} pair */
export function reviseHere(pair) {
  void revise(pair);
  toInput();
}

/** @typedef {(ids: string[], pair: PairShown) => unknown} Deed */
/**
 * What can be done to all that is chosen; where it has two directions, one pair decides which.
 * @type {Record<"addStar" | "switchFlag" | "switchKept" | "pickTopic" | "summarize" | "remove", Deed>}
 */
export const forChosen = {
  addStar: (ids, pair) => mark(ids, { star: nextStar(pair.star) }),
  switchFlag: (ids, pair) => mark(ids, { flag: pair.flag === "blue" ? "grey" : "blue" }),
  switchKept: (ids, pair) => mark(ids, { hand: pair.hand === "in" ? "" : "in" }),
  pickTopic: (ids, pair) =>
    (dialog.value = {
      kind: "topic",
      title: ids.length === 1 ? "Move the pair to" : `Move ${ids.length} pairs to`,
      current: pair.topic,
      onPick: (topic) => void mark(ids, { topic }),
    }),
  summarize: (ids) => (dialog.value = { kind: "compact", ids }),
  remove: (ids) => {
    chosenFrom.value = "";
    return remove(ids);
  },
};

/**
 * `isMeant`: it is chosen together with others, and what is done here is done to all of them.
 * @param {{ pair: PairShown, standing: Standing, isMeant: boolean }} props
 */
export function PairActions({ pair, standing, isMeant }) {
  /** @param {Deed} run */
  const withAll = (run) => async () => void run(isMeant ? await idsOf(...selectionRange()) : [pair.id], pair);
  const all = isMeant ? " (all chosen)" : "";
  const isOut = standing === "left_out";
  const isError = pair.state === "error";
  /** @type {(label: string, icon: string, run: () => void, more?: { pressed?: boolean, keys?: string }) => any} */
  const action = (label, icon, run, { pressed, keys } = {}) =>
    iconButton(icon, label, run, { title: keys ? `${label} (${keys})` : label, isPressed: pressed });
  return html`<div class="pair-actions" role="toolbar" aria-label="This pair">
    ${action(`Stars: ${pair.star}`, "star", withAll(forChosen.addStar), { keys: "*" })}
    ${action(
      isOut ? "Put back into the context" : "Leave out of the context",
      "eye",
      withAll((ids) => mark(ids, { hand: isOut ? "" : "out" })),
      { pressed: isOut, keys: "x" },
    )}
    ${isError ? null : action("Ask again on a model", "replay", () => pickAndReask(pair), { keys: "e" })}
    ${action("Change the question and ask", "edit", () => reviseHere(pair), { keys: "R" })}
    ${action("Copy the answer", "copy", () => void copyText(pair.answer?.text ?? pair.user_text, "Answer"), {
      keys: "y y",
    })}
    ${h(Menu, {
      label: "More for this pair",
      choices: [
        { label: `Move to a topic…${all}`, run: withAll(forChosen.pickTopic), keys: "t" },
        {
          label: `${pair.flag === "blue" ? "Flag grey" : "Flag blue"}${all}`,
          run: withAll(forChosen.switchFlag),
          keys: "a",
        },
        {
          label: `${pair.hand === "in" ? "Keep no longer" : "Keep whatever the filter says"}${all}`,
          run: withAll(forChosen.switchKept),
          keys: "X",
        },
        { label: "Edit the texts…", run: () => (dialog.value = { kind: "edit", pair }), keys: "w" },
        ...(pair.earlier
          ? [
              { label: "Swap with the answer before", run: () => void swap(pair.id), keys: "E" },
              {
                label: "Earlier answers…",
                run: () => (dialog.value = { kind: /** @type {const} */ ("earlier"), pair }),
              },
            ]
          : []),
        ...(isError ? [] : [{ label: "Ask again, held for editing", run: () => void reask(pair, { hold: true }) }]),
        ...(pair.summary_of.length && !isMeant
          ? [{ label: "Undo the summary", run: () => void undoCompaction(pair.id) }]
          : [{ label: `Summarize…${all}`, run: withAll(forChosen.summarize), keys: "C" }]),
        ...(exchangeOf(pair) && about.value.places?.includes("evals")
          ? [{ label: "Make a case of this…", detail: "the conversation up to here", run: () => makeCaseOf(pair) }]
          : []),
        { label: "Fork from here", detail: "a new chat with all pairs up to this one", run: () => void forkFrom(pair) },
        { label: "Copy question and answer", run: () => void copyText(bothSides(pair), "Pair"), keys: "Y" },
        "line",
        { label: `Delete${all}`, isDanger: true, run: withAll(forChosen.remove), keys: "d" },
      ],
    })}
  </div>`;
}
