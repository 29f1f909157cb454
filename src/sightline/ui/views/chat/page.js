// @ts-check
/** The chat view: command line, history and input, with panels beside them. */

import { toastError } from "../../kit/toast.js";
import { h, html, signal, useEffect, useLayoutEffect } from "../../vendor/preact.js";
import { waitsFor } from "./actions.js";
import { ChatList, goToFound, isListOpen } from "./chat-list.js";
import { isRefusal, MAIN } from "./chats.js";
import { CommandLine, refused } from "./command-line.js";
import { takesFocus } from "./core/chat.js";
import { Dialogs } from "./dialogs.js";
import { isEmpty } from "./draft.js";
import { startChat, changeView, onChat, openChat, preferences, rows, sending, view } from "./feed.js";
import { History } from "./history.js";
import { Input } from "./input.js";
import { useChatKeys } from "./keys.js";
import {
  setCursor,
  focusPair,
  focusSoon,
  list,
  mark,
  mode,
  pairElement,
  pressesSoFar,
  toInput,
  useModes,
} from "./modes.js";
import { Panels } from "./panels.js";

/** Who touches the screen has the keyboard only when they ask for it. */
const TOUCHES = matchMedia("(pointer: coarse)");

/** Announced to assistive technology. */
const hasAnswered = signal(false);

/** @param {{ filter: string, chat?: string }} props */
export function Chat({ filter, chat: name = MAIN }) {
  useModes();
  // Before the next key: users who open the chat write at once.
  useLayoutEffect(() => {
    startChat();
    if (!TOUCHES.matches) toInput();
    return onChat(followPair);
  }, []);
  useLayoutEffect(() => openChat(name), [name]);
  useEffect(() => {
    if (view.value && view.value.filter === filter) return;
    changeView({ filter }).then(
      () => {
        refused.value = null;
        goToFound();
      },
      (error) => {
        const show = () => (refused.value = error);
        if (isRefusal(error) && view.value) show();
        else if (isRefusal(error)) changeView({ filter: "" }).then(show, () => {});
        else if (view.value) toastError(error);
      },
    );
  }, [name, filter]);
  useChatKeys();
  return html`<main class="chat" aria-label="Chat">
    ${h(CommandLine, {})}
    <div class="chat-middle">
      ${isListOpen.value ? h(ChatList, {}) : null}
      <div class="chat-column">${h(History, { key: name })}${h(Input, {})}</div>
      ${h(Panels, {})}
    </div>
    <p class="unseen" role="status" aria-live="polite">
      ${announcement()}
    </p>
    ${h(Dialogs, {})}
  </main>`;
}

/** How the answer stands, for assistive technology. */
function announcement() {
  if (waitsFor.value) return `The answer ${waitsFor.value}.`;
  if (sending.value) return "An answer is on its way.";
  return hasAnswered.value ? "Answer received." : "";
}

/**
 * Where the eye goes when a question leaves and when its answer is there.
 * @param {"filter" | "sent" | "answered"} kind
 * @param {string} pair
 */
function followPair(kind, pair) {
  if (kind === "filter") {
    mark.value = "";
    setCursor(rows.total - 1);
    list.current?.toEnd();
    focusSoon();
  } else if (kind === "sent") {
    requestAnimationFrame(() => {
      const place = rows.places.get(pair);
      if (place === undefined) return;
      if (mode.value === "input" || list.current?.isAtEnd()) {
        setCursor(place);
        if (place === rows.total - 1) list.current?.follow();
        else list.current?.show(place, "nearest");
      }
    });
  } else {
    hasAnswered.value = true;
    const before = pressesSoFar();
    requestAnimationFrame(() => requestAnimationFrame(() => pressesSoFar() === before && focusAnswer(pair)));
  }
}

/** @param {string} pair */
function focusAnswer(pair) {
  const height = pairElement(pair)?.querySelector("[data-lead]")?.getBoundingClientRect().height ?? 0;
  const viewport = list.current?.element()?.clientHeight ?? Infinity;
  const { replyFocus: focus, partialHeightThreshold: threshold } = preferences.value.settings;
  if (!takesFocus({ mode: mode.value, isEmpty: isEmpty(), height, viewport, focus, threshold })) return;
  const place = rows.places.get(pair);
  if (place === undefined) return;
  setCursor(place);
  focusPair();
  if (place === rows.total - 1) list.current?.follow();
}
