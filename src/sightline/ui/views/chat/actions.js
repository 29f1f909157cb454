// @ts-check
/** What the user does in the chat: ask, stop, ask again, mark, move, delete. Refusals are shown where they belong. */

import { ApiError, addressOf, get, post } from "../../kit/api.js";
import { countOf } from "../../kit/core/format.js";
import { toExchange } from "../../kit/navigation.js";
import { attempt, toast, toastError } from "../../kit/toast.js";
import { computed, signal } from "../../vendor/preact.js";
import { waitingRuns } from "../runs/approval.js";
import { held, onHeld } from "../traffic/feed.js";
import { chat, inChat, sessionOfChat } from "./chats.js";
import { wireAttachments } from "./core/attachments.js";
import { isEmpty, restoreDraft, take, write } from "./draft.js";
import { inView, changeView, condition, noteSent, onChat, sending, viewId } from "./feed.js";

/** @import { ChatBrief, CommandShown, PairShown } from "../../api-types.d.ts" */
/** @import { Draft } from "./draft.js" */
/** @typedef {"ask" | "wait" | "anyway"} Quota */
/**
 * What stands above the chat; each kind has its dialog in dialogs.js.
 * @typedef {{ kind: "over-budget", error: ApiError } | { kind: "quota", error: ApiError, again: (quota: Quota) => void,
 *   onCancel: () => void }
 * | { kind: "command", text: string, outcome: CommandShown } | { kind: "edit", pair: PairShown } | { kind: "earlier",
 * pair: PairShown }
 *   | { kind: "model", title: string, current: string, onPick: (model: string) => void }
 *   | { kind: "topic", title: string, current: string, onPick: (topic: string) => void }
 * | { kind: "compact", ids: string[] } | { kind: "case", exchanges: string[] } | { kind: "code", title: string, text:
 * string }
 *   | { kind: "save", filter: string } | { kind: "rename-chat" | "delete-chat", brief: ChatBrief }
 *   | { kind: "topics" | "import" | "export" | "settings" }} Opened
 */

export const dialog = signal(/** @type {Opened | null} */ (null));
/** A question is on its way to the server, which has not taken it yet. */
export const isPosting = signal(false);
/** Whether each request of a tool loop waits for a person. */
export const isStepping = signal(false);

/** What the answer on its way waits for, where that is a person. */
export const waitsFor = computed(() => {
  if (!sending.value) return "";
  if (waitingRuns.value.size) return "waits for you";
  return held.value.some((line) => line.session === sessionOfChat()) ? "held: waits for you" : "";
});

/** Until the chat is shown, or cannot be: what is sent is what is shown, also for who types ahead of it. */
async function whenShown() {
  let stop = () => {};
  await new Promise((resolve) => (stop = condition.subscribe((now) => now !== "loading" && resolve(now))));
  stop();
}

/** @param {ApiError} error */
function codeOf(error) {
  return error.details?.code ?? error.code;
}

/**
 * Ask what is written. It leaves the input at once, and comes back where it is refused.
 * @param {{ hold?: boolean, step?: boolean, expect?: string, quota?: Quota, draft?: Draft }} [options]
 */
export async function send({ hold = false, step = isStepping.value, expect = "", quota = "ask", draft } = {}) {
  if (isPosting.value || sending.value)
    return void toast("An answer is on its way.", { hint: "Esc stops it; what you write stays here." });
  if (!draft && isEmpty()) return undefined;
  const asked = draft ?? take();
  const { text, replaces } = asked;
  const attachments = wireAttachments(asked.items);
  const own = { view: viewId, text, attachments, replaces, quota, hold, step, expect_sha256: expect };
  const at = chat.peek();
  const stop = hold ? openWhenHeld() : () => {};
  isPosting.value = true;
  try {
    await whenShown();
    if (at !== chat.peek()) throw new ApiError("page", "Another chat is open.", "Your question was not sent.");
    const { pair } = await inView(() => post(inChat("/api/chat/send"), own));
    if (at !== chat.peek()) return undefined;
    if (hold) wait(pair, asked);
    noteSent(pair);
  } catch (error) {
    stop();
    const isGone = asked.replaces !== "" && error instanceof ApiError && error.status === 404;
    const back = isGone ? { ...asked, replaces: "" } : asked; // the pair that it was to replace was deleted meanwhile
    const onCancel = () => restoreDraft(back, at);
    if (at !== chat.peek()) {
      onCancel();
      return void toastError(error);
    }
    const again = (/** @type {Quota} */ next) =>
      at === chat.peek() ? void send({ hold, step, expect, quota: next, draft: asked }) : onCancel();
    handleRefusal(error, { again, onCancel });
  } finally {
    isPosting.value = false;
  }
  return undefined;
}

/** @param {unknown} error @param {{ again: (quota: Quota) => void, onCancel: () => void }} ways */
function handleRefusal(error, { again, onCancel }) {
  if (error instanceof ApiError && codeOf(error) === "quota_wait")
    return void (dialog.value = { kind: "quota", error, again, onCancel });
  onCancel();
  if (error instanceof ApiError && codeOf(error) === "user_prompt_too_large")
    dialog.value = { kind: "over-budget", error };
  else toastError(error);
}

/** A request of the chat that is held opens in the request's own page; those of other clients do not. */
function openWhenHeld() {
  const session = sessionOfChat();
  const stop = onHeld(async ({ id }) => {
    const response = await get(`/api/exchanges?${new URLSearchParams({ filter: `id:${id}`, limit: "1" })}`).catch(
      () => null,
    );
    if (response?.exchanges[0]?.session !== session) return;
    stop();
    toExchange(id);
  });
  return stop;
}

/** What was held and dropped comes back to the input. @param {string} pair @param {Draft} draft */
function wait(pair, draft) {
  const at = chat.peek();
  const stop = onChat(async (kind, ended) => {
    if (kind !== "answered" || ended !== pair) return;
    stop();
    const response = await get(inChat(`/api/chat/pairs/${encodeURIComponent(pair)}`)).catch(() => null);
    if (!response || response.state !== "error" || response.answer) return;
    restoreDraft({ ...draft, replaces: pair }, at);
    toast("Nothing was sent.", { hint: "Your question is back in the input." });
  });
}

/** Stop the answer that is on its way; what has come of it stays. */
export async function cancel() {
  try {
    await post(inChat("/api/chat/cancel"), {});
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) toastError(error);
  }
}

/** Resume what waits for a quota. @param {boolean} anyway */
export async function resume(anyway) {
  await attempt(() => post(inChat("/api/chat/resume"), { anyway }));
}

/**
 * Ask again: a question that failed goes to the input, an answered one is answered anew where it stands.
 * @param {PairShown} pair
 * @param {{ model?: string, hold?: boolean, step?: boolean, quota?: Quota }} [options]
 */
export async function reask(pair, { model = "", hold = false, step = isStepping.value, quota = "ask" } = {}) {
  if (sending.value) return void toast("An answer is on its way.", { hint: "Esc stops it." });
  const stop = hold ? openWhenHeld() : () => {};
  try {
    const path = inChat(`/api/chat/pairs/${encodeURIComponent(pair.id)}/reask`);
    await inView(() => post(path, { view: viewId, model, quota, hold, step }));
  } catch (error) {
    stop();
    handleRefusal(error, { again: (next) => void reask(pair, { model, hold, step, quota: next }), onCancel: () => {} });
  }
  return undefined;
}

/**
 * Put a question into the input again, to be changed; the new one takes the place of the old.
 * @param {PairShown} pair
 */
export async function revise(pair) {
  write({ text: pair.user_text, replaces: pair.id, items: [] });
  // A failed question is asked anew in its own topic and of its own model, which the input then shows and lets change;
  // a model that does not exist is not asked again.
  if (pair.state === "error")
    await choose({ topic: pair.topic, ...(pair.model && pair.trouble?.label !== "model" && { model: pair.model }) });
  if (!pair.attachments.length) return;
  await attempt(async () => {
    const { attachmentsFrom } = await import("./attachments.js");
    const files = await Promise.all(pair.attachments.map((each) => fileOf(pair.id, each)));
    write({ items: await attachmentsFrom(files) });
  });
}

/** @param {string} pair @param {{ n: number, name: string, media_type: string }} attachment */
async function fileOf(pair, { n, name, media_type }) {
  const path = inChat(`/api/chat/pairs/${encodeURIComponent(pair)}/media/${n}?of=question`);
  const answer = await fetch(addressOf(path), { cache: "no-store" });
  if (!answer.ok) throw new ApiError("http", "An attachment could not be loaded.", "Attach it again.", answer.status);
  return new File([await answer.arrayBuffer()], name || `attachment-${n + 1}`, { type: media_type });
}

/**
 * @param {readonly string[]} ids
 * @param {{ star: number } | { flag: "blue" | "grey" } | { topic: string } | { hand: "" | "in" | "out" }} how
 */
export async function mark(ids, how) {
  if (!ids.length) return;
  await attempt(() => post(inChat("/api/chat/mark"), { ids, ...how }));
}

/** @typedef {{ undo: () => Promise<boolean>, close: () => void }} Step */
/** What was done here and can be taken back, the last at the end. @type {Step[]} */
const steps = [];

/**
 * Say what was done; a button and a key take it back.
 * @param {string} message
 * @param {() => Promise<boolean>} undo whether it is settled
 */
export function offerUndo(message, undo) {
  /** @type {Step} */
  const step = { undo, close: () => {} };
  steps.push(step);
  step.close = toast(message, { action: { label: "Undo", run: () => void undoLast(step) } });
  setTimeout(step.close, 12_000);
}

/** Take back what was done last, or this. @param {Step} [step] */
export async function undoLast(step = steps.at(-1)) {
  if (!step) return void toast("There is nothing to undo here.");
  if (!(await step.undo())) return undefined;
  step.close();
  const at = steps.indexOf(step);
  if (at >= 0) steps.splice(at, 1);
  return undefined;
}

/** They go, and can be brought back. @param {readonly string[]} ids */
export async function remove(ids) {
  if (!ids.length || !(await attempt(() => post(inChat("/api/chat/delete"), { ids })))) return;
  noteDeleted(ids);
}

/** Say so, and offer to bring them back. @param {readonly string[]} ids */
function noteDeleted(ids) {
  const restore = inChat("/api/chat/restore"); // of this chat, also if another is open by then
  offerUndo(`${countOf(ids.length, "pair")} deleted.`, async () => {
    const isDone = await attempt(() => post(restore, { ids }));
    if (isDone) toast(`${countOf(ids.length, "pair")} restored.`);
    return isDone;
  });
}

/** @param {string} pair @param {{ user_text?: string, assistant_text?: string }} texts */
export async function edit(pair, texts) {
  return attempt(() => post(inChat(`/api/chat/pairs/${encodeURIComponent(pair)}/edit`), texts));
}

/** An earlier answer takes the place of the present one. @param {string} pair @param {number} [index] */
export async function swap(pair, index = -1) {
  return attempt(() => post(inChat(`/api/chat/pairs/${encodeURIComponent(pair)}/swap`), { index }));
}

/**
 * Apply a line of the command line: a filter, or a filter with a command, which says first what it would do.
 * @param {string} text
 * @returns {Promise<CommandShown>}
 */
export async function tryCommand(text) {
  return inView(() => post(inChat("/api/chat/command"), { view: viewId, text, dry_run: true }));
}

/** Do what a line says, and say what was done; what it deleted can be brought back. @param {string} text */
export async function runCommand(text) {
  const outcome = /** @type {CommandShown} */ (
    await inView(() => post(inChat("/api/chat/command"), { view: viewId, text, dry_run: false }))
  );
  if (outcome.ids?.length) noteDeleted(outcome.ids);
  else toast(outcome.message ? `${outcome.message[0].toUpperCase()}${outcome.message.slice(1)}.` : "Done.");
}

/** @param {{ filter?: string, model?: string, topic?: string }} change */
export async function choose(change) {
  await attempt(() => changeView(change));
}
