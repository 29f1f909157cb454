// @ts-check
/** The shortcuts of the chat. */

import { copyText } from "../../kit/copy.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { toast } from "../../kit/toast.js";
import { cancel, dialog, mark as mark_, swap, undoLast } from "./actions.js";
import { beginChat, isListOpen, showList } from "./chat-list.js";
import { standingOf } from "./core/chat.js";
import { heights, idsOf, rows, sending, view } from "./feed.js";
import { pickModel, pickTopicOfNext } from "./input.js";
import {
  setCursor,
  cursor,
  cursorIndex,
  goTo,
  isTypewriter,
  list,
  mark,
  selectionRange,
  pairElement,
  toCommand,
  toInput,
} from "./modes.js";
import { panelKeys, showPanel } from "./panels.js";
import { bothSides, forChosen, forkFrom, makeCaseOf, pickAndReask, reviseHere } from "./pair-actions.js";

/** @import { PairShown } from "../../api-types.d.ts" */
/** @import { Deed } from "./pair-actions.js" */
/** @import { Wanted } from "../../kit/keyboard.js" */

const DIGITS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/** Of a shortcut: the palette does not offer it. */
const isHidden = true;
/** Of a shortcut: it also works inside a text field. */
const whileTyping = true;

/** What keys are about, if it has been fetched. @returns {PairShown | undefined} */
function current() {
  if (cursorIndex() < 0 && rows.total) setCursor(rows.total - 1);
  return rows.at(cursorIndex());
}

/** What does something with all that is chosen. @param {Deed} run */
const withSelection = (run) => async () => {
  const pair = current();
  if (pair) await run(await idsOf(...selectionRange()), pair);
};

/** What does something with the pair that keys are about. @param {(pair: PairShown) => void} run */
const withPair = (run) => () => {
  const pair = current();
  if (pair) run(pair);
};

/** @param {1 | -1} step */
function move(step) {
  const at = cursorIndex();
  if (at < 0) return goTo(rows.total - 1);
  const element = list.current?.element();
  if (!element) return undefined;
  const box = element.getBoundingClientRect();
  const row = pairElement(cursor.value.id)?.getBoundingClientRect();
  // Who has scrolled away goes on from what is in sight.
  if (!row || row.bottom < box.top || row.top > box.bottom)
    return goTo(heights.at(element.scrollTop + (step > 0 ? 8 : box.height - 8)));
  // A pair that goes on beyond the edge is read first.
  const beyond = step > 0 ? row.bottom - box.bottom : box.top - row.top;
  if (beyond > 12 && !isTypewriter.value) return list.current?.scroll(step * Math.min(box.height * 0.8, beyond + 16));
  return goTo(at + step);
}

function toBoundary() {
  const shown = view.value;
  if (!shown?.rows) return;
  if (shown.start === 0)
    toast(`All ${shown.counter.visible} visible pairs are sent.`, { hint: "There is no boundary to jump to." });
  goTo(Math.min(shown.start, shown.rows - 1), { where: shown.start === 0 ? "nearest" : "middle" });
}

function onEscape() {
  if (sending.value) void cancel();
  else if (mark.value) mark.value = "";
  else toCommand();
}

/** @param {string} selector @param {string} what */
function focusInside(selector, what) {
  const pair = current();
  if (!pair) return;
  const found = /** @type {HTMLElement | null | undefined} */ (pairElement(pair.id)?.querySelector(selector));
  if (!found) return void toast(`This pair has no ${what}.`);
  if (!found.matches("a, button, summary, [tabindex]")) found.tabIndex = -1;
  found.focus();
  return undefined;
}

/** @param {string} selector @param {number} number */
function inside(selector, number) {
  const pair = current();
  return pair ? (pairElement(pair.id)?.querySelectorAll(selector)[number - 1] ?? null) : null;
}

/** @param {number} number @param {boolean} isCopied */
function code(number, isCopied) {
  use("Code block", number, inside(".pair-answer pre code", number)?.textContent, isCopied);
}

/** @param {number} number @param {boolean} isCopied */
function formula(number, isCopied) {
  const found = inside(".pair-answer :is(.formula, .formula-source)", number);
  use("Formula", number, found?.matches(".formula") ? found.getAttribute("title") : found?.textContent, isCopied);
}

/** @param {string} what @param {number} number @param {string | null | undefined} text @param {boolean} isCopied */
function use(what, number, text, isCopied) {
  const title = `${what} ${number}`;
  if (!text) toast(`There is no ${title.toLowerCase()} here.`);
  else if (isCopied) void copyText(text, title);
  else dialog.value = { kind: "code", title, text };
}

/**
 * One shortcut for each digit; the help names them once.
 * @param {string} key
 * @param {string} label
 * @param {(number: number) => void} run
 * @returns {Wanted[]}
 */
function digitShortcuts(key, label, run) {
  return DIGITS.map((digit) => ({
    keys: `${key} ${digit}`,
    label: `${label} 1 … 9`,
    run: () => run(digit),
    isHidden,
    isUnlisted: digit > 1,
  }));
}

export function useChatKeys() {
  // What is registered last is listed first.
  useShortcuts("Chat: anywhere", generalKeys());
  useShortcuts("Chat: copy and look", copyKeys());
  useShortcuts("Chat: asking (VIEW)", askKeys());
  useShortcuts("Chat: marking (VIEW)", markKeys());
  useShortcuts("Chat: moving (VIEW)", movementKeys());
}

/** @returns {Wanted[]} */
function movementKeys() {
  return [
    { keys: "enter", label: "To the input", run: toInput, isHidden },
    { keys: "escape", label: "Stop the answer, or go to the command line", run: onEscape, isHidden },
    { keys: "j", also: ["down"], label: "Next pair", run: () => move(1), isHidden },
    { keys: "k", also: ["up"], label: "Pair before", run: () => move(-1), isHidden },
    {
      keys: "u",
      label: "Beginning of the pair before",
      run: () => goTo(cursorIndex() - 1, { where: "start" }),
      isHidden,
    },
    { keys: "U", label: "Beginning of this pair", run: () => goTo(cursorIndex(), { where: "start" }), isHidden },
    { keys: "g g", also: ["home"], label: "First pair", run: () => goTo(0) },
    {
      keys: "G",
      also: ["end"],
      label: "Last pair",
      run: () => {
        goTo(rows.total - 1);
        list.current?.toEnd();
      },
    },
    {
      keys: "n",
      label: "Newest pair",
      run: () => {
        goTo(rows.total - 1, { where: "start" });
        list.current?.follow();
      },
    },
    { keys: "O", also: ["o"], label: "To the boundary of the context", run: toBoundary },
    {
      keys: "J",
      also: ["shift+down"],
      label: "Choose more, downwards",
      run: () => goTo(cursorIndex() + 1, { isExtending: true }),
      isHidden,
    },
    {
      keys: "K",
      also: ["shift+up"],
      label: "Choose more, upwards",
      run: () => goTo(cursorIndex() - 1, { isExtending: true }),
      isHidden,
    },
    {
      keys: "r",
      label: "Keep the pair in the middle, or not",
      run: () => {
        isTypewriter.value = !isTypewriter.value;
        goTo(cursorIndex());
      },
    },
  ];
}

/** @returns {Wanted[]} */
function markKeys() {
  const star = (/** @type {number} */ stars) => withSelection((ids) => mark_(ids, { star: stars }));
  return [
    { keys: "*", label: "One star more", run: withSelection(forChosen.addStar) },
    { keys: "1", label: "One star", run: star(1), isHidden },
    { keys: "2", label: "Two stars", run: star(2), isHidden },
    { keys: "3", label: "Three stars", run: star(3), isHidden },
    { keys: "space", also: ["0"], label: "No star", run: star(0), isHidden },
    { keys: "a", label: "Flag blue or grey", run: withSelection(forChosen.switchFlag) },
    {
      keys: "x",
      label: "Leave out of the context, or put back",
      run: withSelection((ids, pair) =>
        mark_(ids, { hand: standingOf(pair, cursorIndex(), view.value?.start ?? 0) === "left_out" ? "" : "out" }),
      ),
    },
    { keys: "X", label: "Keep whatever the filter says, or no longer", run: withSelection(forChosen.switchKept) },
    { keys: "t", label: "Move to a topic", run: withSelection(forChosen.pickTopic) },
    { keys: "d", also: ["delete"], label: "Delete (can be undone)", run: withSelection(forChosen.remove) },
    { keys: "ctrl+z", label: "Undo the last deletion or summary", run: () => void undoLast() },
    { keys: "C", label: "Summarize", run: withSelection(forChosen.summarize) },
  ];
}

/** @returns {Wanted[]} */
function askKeys() {
  return [
    {
      keys: "e",
      label: "Ask again: a failed question in the input, another on a model",
      run: withPair((pair) => (pair.state === "error" ? reviseHere(pair) : pickAndReask(pair))),
    },
    {
      keys: "E",
      label: "Swap with the answer before",
      run: withPair((pair) => (pair.earlier ? void swap(pair.id) : void toast("This pair has one answer only."))),
    },
    { keys: "R", label: "Change the question and ask", run: withPair(reviseHere) },
    { keys: "w", label: "Edit the texts", run: withPair((pair) => void (dialog.value = { kind: "edit", pair })) },
    { keys: "", label: "Make a case of this pair for evals", run: withPair(makeCaseOf) },
    { keys: "", label: "Fork the chat from this pair", run: withPair((pair) => void forkFrom(pair)) },
    { keys: "p", label: "Preview of the next request", run: () => showPanel("preview") },
    { keys: "T", label: "Topic of the next question", run: pickTopicOfNext },
    { keys: "M", label: "Model of the next question", run: pickModel },
  ];
}

/** @returns {Wanted[]} */
function copyKeys() {
  return [
    {
      keys: "y y",
      label: "Copy the answer",
      run: withPair((pair) => void copyText(pair.answer?.text ?? pair.user_text, "Answer")),
    },
    {
      keys: "Y",
      label: "Copy question and answer",
      run: withSelection((ids) => {
        const pairs = ids.map((id) => rows.pair(id)).filter((each) => each !== undefined);
        return copyText(pairs.map(bothSides).join("\n\n"), "Text");
      }),
    },
    ...digitShortcuts("c", "Copy code block", (digit) => code(digit, true)),
    ...digitShortcuts("v", "Look at code block", (digit) => code(digit, false)),
    ...digitShortcuts("y", "Copy formula", (digit) => formula(digit, true)),
    ...digitShortcuts("m", "Look at formula", (digit) => formula(digit, false)),
    {
      keys: "l",
      label: "First link of the pair",
      run: () => focusInside(".pair-answer a[href]:not(.pair-foot a)", "link"),
      isHidden,
    },
    {
      keys: "i",
      label: "First picture of the pair",
      run: () => focusInside(".question-picture, .pair-answer img", "picture"),
      isHidden,
    },
    {
      keys: "S",
      also: ["ctrl+shift+s"],
      label: "Sources of the answer",
      run: () => focusInside(".pair-answer .sources a, .pair-answer .sources summary, .pair-answer .sources", "source"),
      isHidden,
    },
  ];
}

/** @returns {Wanted[]} */
function generalKeys() {
  return [
    { keys: "alt+c", label: "List of chats", run: () => showList(!isListOpen.value), whileTyping },
    { keys: "alt+n", label: "New chat", run: () => void beginChat(), whileTyping },
    { keys: "ctrl+i", label: "To the input (INPUT)", run: toInput, whileTyping, isHidden },
    { keys: "ctrl+d", label: "To the command line (COMMAND)", run: () => toCommand(), whileTyping, isHidden },
    { keys: ":", label: "Begin a command", run: () => toCommand(":"), isHidden },
    { keys: "ctrl+m", label: "Model of the next question", run: pickModel, whileTyping, isHidden },
    { keys: "alt+t", label: "Topic of the next question", run: pickTopicOfNext, whileTyping, isHidden },
    { keys: "alt+shift+t", label: "Topics", run: () => void (dialog.value = { kind: "topics" }), whileTyping },
    { keys: "alt+p", label: "Preview of the next request", run: () => showPanel("preview"), whileTyping, isHidden },
    {
      keys: "alt+a",
      label: "Attach files",
      run: () => /** @type {HTMLElement | null} */ (document.querySelector(".chat-input .attach button"))?.click(),
      whileTyping,
    },
    {
      keys: "ctrl+,",
      label: "Settings of the chat",
      run: () => void (dialog.value = { kind: "settings" }),
      whileTyping,
    },
    {
      keys: "ctrl+.",
      label: "Menu of the chat",
      run: () => /** @type {HTMLElement | null} */ (document.querySelector('.command-line [title="Chat"]'))?.click(),
      whileTyping,
      isHidden,
    },
    ...panelKeys(),
    { keys: "", label: "Import a history", run: () => void (dialog.value = { kind: "import" }) },
    { keys: "", label: "Export the history", run: () => void (dialog.value = { kind: "export" }) },
  ];
}
