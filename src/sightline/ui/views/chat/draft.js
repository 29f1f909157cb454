// @ts-check
/** The question that is being written: kept by this tab, and its tokens counted when the user pauses. */

import { post } from "../../kit/api.js";
import { readStoredJson, store } from "../../kit/storage.js";
import { effect, signal } from "../../vendor/preact.js";
import { wireAttachments } from "./core/attachments.js";
import { chat, inChat } from "./chats.js";
import { inView, view, viewId } from "./feed.js";
import { keyOf } from "./tab-memory.js";

/** @import { EstimateShown } from "../../api-types.d.ts" */
/** @import { Item } from "./core/attachments.js" */
/** @typedef {{ text: string, items: Item[], replaces: string }} Draft */

const NAME = "chat.draft";
/** Tokens are counted so many milliseconds after the last key. */
const PAUSE = 250;

/** @param {string} name @returns {{ text: string, replaces: string }} */
function readDraft(name) {
  return { text: "", replaces: "", ...readStoredJson(keyOf(NAME, name), "sessionStorage") };
}

/** The chat whose draft this is, and the files of the drafts of other chats. */
let owner = chat.peek();
/** @type {Map<string, Item[]>} */
const kept = new Map();
const before = readDraft(owner);
export const text = signal(before.text);
/** The pair that this question takes the place of. */
export const replaces = signal(before.replaces);
export const items = signal(/** @type {Item[]} */ ([]));
export const size = signal(/** @type {EstimateShown | null} */ (null));

// Another chat has a draft of its own.
effect(() => {
  const next = chat.value;
  if (next === owner) return;
  kept.set(owner, items.peek());
  owner = next;
  write({ ...readDraft(next), items: kept.get(next) ?? [] });
});

effect(() => {
  store(keyOf(NAME, owner), JSON.stringify({ text: text.value, replaces: replaces.value }), "sessionStorage");
});

/** @param {Partial<Draft>} draft */
export function write(draft) {
  if (draft.text !== undefined) text.value = draft.text;
  if (draft.items !== undefined) items.value = draft.items;
  if (draft.replaces !== undefined) replaces.value = draft.replaces;
}

/** All of it, leaving nothing. @returns {Draft} */
export function take() {
  const taken = { text: text.value, items: items.value, replaces: replaces.value };
  write({ text: "", items: [], replaces: "" });
  return taken;
}

/**
 * What could not be sent comes back to the chat that it was written in, before what was written there since.
 * @param {Draft} draft
 * @param {string} [of] the chat, if it is not the one that is open
 */
export function restoreDraft(draft, of = owner) {
  const isOpen = of === owner;
  const since = isOpen
    ? { text: text.value, items: items.value, replaces: replaces.value }
    : { ...readDraft(of), items: kept.get(of) ?? [] };
  const both = {
    text: since.text && since.text !== draft.text ? `${draft.text}\n\n${since.text}` : draft.text,
    items: [...draft.items, ...since.items],
    replaces: draft.replaces || since.replaces,
  };
  if (isOpen) return write(both);
  kept.set(of, both.items);
  store(keyOf(NAME, of), JSON.stringify({ text: both.text, replaces: both.replaces }), "sessionStorage");
}

export function isEmpty() {
  return !text.value.trim() && !items.value.length;
}

let number = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

// Another text, attachment, model, filter or setting: measured once the person pauses, and the last answer counts.
effect(() => {
  const [words, files, at, old] = [text.value, items.value, view.value, replaces.value];
  clearTimeout(timer);
  const own = (number += 1);
  if (!at || (!words.trim() && !files.length)) {
    if (size.peek()) size.value = null;
    return;
  }
  timer = setTimeout(async () => {
    const attachments = wireAttachments(files);
    try {
      const response = await inView(() =>
        post(inChat("/api/chat/estimate"), { view: viewId, text: words, attachments, replaces: old }),
      );
      if (own === number) size.value = response;
    } catch {
      if (own === number) size.value = null;
    }
  }, PAUSE);
});
