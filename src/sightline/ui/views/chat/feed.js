// @ts-check
/** The chat's view on the server: its rows around what is in sight, and answers while they arrive. */

import { ApiError, get, onAnnounced, onReconnect, put } from "../../kit/api.js";
import { Heights } from "../../kit/core/heights.js";
import { resource } from "../../kit/resource.js";
import { computed, signal } from "../../vendor/preact.js";
import { moreComplete, applyDelta, NOTHING } from "./core/live.js";
import { Rows } from "./core/rows.js";
import { chat, inChat, isRefusal } from "./chats.js";
import { lastChoice, ownViewId, rememberChoice } from "./tab-memory.js";

/** @import { AnswerShown, PairShown, SavedFilter, ViewShown } from "../../api-types.d.ts" */
/** @import { Delta } from "./core/live.js" */

/** The estimated height of a row that is not drawn yet, in pixels. */
const USUAL = 190;
/** Browsers draw nothing beyond some 17 million; what is not drawn yet is guessed so that all of it stays below. */
const TALLEST = 12_000_000;
/** Changes within so many milliseconds are asked for together, and pieces of an answer drawn together. */
const TOGETHER = 25;
const DRAWN = 40;
/** The rows that are fetched first, from the end. */
const FIRST = 40;

const NO_PREFERENCES = {
  settings: /** @type {Record<string, any>} */ ({}),
  saved_filters: /** @type {SavedFilter[]} */ ([]),
};

/** This page's own, the same after a reload; a view that the server has forgotten is put there again. */
const id = ownViewId();
const path = () => inChat(`/api/chat/views/${id}`);

export const view = signal(/** @type {ViewShown | null} */ (null));
export const condition = signal(/** @type {"loading" | "ready" | "failed"} */ ("loading"));
export const trouble = signal(/** @type {ApiError | null} */ (null));
/** The user's preferences as the server has them; another page may change them. */
export const storedPreferences = resource("/api/chat/preferences", (again) =>
  onAnnounced("chat", (event) => event.kind === "preferences" && again()),
);
/** The same for drawing: the page works without them. */
export const preferences = computed(() => storedPreferences.value.value ?? NO_PREFERENCES);
/** Goes up whenever rows are others than before. */
export const tick = signal(0);
export const sending = computed(() => view.value?.sending ?? "");
export const viewId = id;

export const rows = new Rows();
export const heights = new Heights(0, USUAL);
/** @type {Map<string, number>} */
const measured = new Map();

/**
 * What the view is wanted to be, so that it can be put there again.
 * @type {{ filter: string, model?: string, topic?: string }}
 */
let wanted = { filter: "", ...lastChoice(chat.peek()) };
let inSight = { first: 0, last: 0 };
/** Goes up with each look: what was asked for before is then not shown any more. */
let looks = 0;

/** @type {Set<(kind: "filter" | "sent" | "answered", pair: string) => void>} */
const listeners = new Set();

/**
 * Hear of another filter, of a pair that is on its way, and of its end.
 * @param {(kind: "filter" | "sent" | "answered", pair: string) => void} listener
 */
export function onChat(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** @param {"filter" | "sent" | "answered"} kind @param {string} pair */
function notify(kind, pair) {
  for (const each of listeners) each(kind, pair);
}

/**
 * Look through another filter, with another model, in another topic. A refusal is the caller's to show; what was there
 * stays.
 * @param {{ filter?: string, model?: string, topic?: string }} change
 */
export async function changeView(change) {
  let next = { ...wanted, ...change };
  const own = (looks += 1);
  const at = chat.peek();
  if (!view.value) condition.value = "loading";
  try {
    const fresh = await (view.value ? put(path(), next) : openView(next)).catch((error) => {
      if (view.value || !isRefusal(error) || !(next.model || next.topic)) throw error;
      next = { filter: next.filter }; // what this tab remembers is gone
      return put(path(), next);
    });
    if (own !== looks) return;
    wanted = next;
    rememberChoice(chat.peek(), wanted);
    await showView(fresh, own);
    if (own !== looks) return;
    condition.value = "ready";
    trouble.value = null;
    if (change.filter !== undefined) notify("filter", "");
  } catch (error) {
    if (at !== chat.peek()) return; // another chat is open by now
    if (!view.value) {
      trouble.value = error instanceof ApiError ? error : new ApiError("page", String(error));
      condition.value = "failed";
    }
    throw error;
  }
}

/**
 * The view as it is, where it is as wanted: a filter that is applied again may take others.
 * @param {typeof wanted} next
 * @returns {Promise<ViewShown>}
 */
async function openView(next) {
  const current = await put(path(), {});
  const isSame =
    current.filter === next.filter && current.topic === (next.topic ?? "") && current.selected === (next.model ?? "");
  return isSame ? current : put(path(), next);
}

/** @param {ViewShown} fresh @param {number} own */
async function showView(fresh, own) {
  const from = Math.max(fresh.rows - FIRST, 0);
  const fetched = fresh.rows ? await fetchRows(from, FIRST) : { version: fresh.version, total: 0, from: 0, rows: [] };
  if (own !== looks) return;
  rows.clear(fetched.total);
  rows.take(fetched);
  arrangeHeights();
  setView(fresh);
  tick.value += 1;
}

/** @param {ViewShown} fresh */
function setView(fresh) {
  const before = view.value?.sending ?? "";
  view.value = fresh;
  if (fresh.sending && fresh.sending !== before) notify("sent", (toldOf = fresh.sending));
  if (before && fresh.sending !== before) queueMicrotask(() => notify("answered", before));
  noteOvertaken();
}

/** The pair that was asked here last, until it is seen; and the last one that listeners were notified of as sent. */
let awaited = "";
let toldOf = "";

/** A question of this page has left. @param {string} pair */
export function noteSent(pair) {
  awaited = pair;
  noteOvertaken();
}

/** An answer may have come before the page ever saw that it was on its way. */
function noteOvertaken() {
  const pair = awaited;
  if (!pair || !rows.places.has(pair)) return;
  awaited = "";
  if (pair === toldOf || pair === view.value?.sending) return;
  notify("sent", (toldOf = pair));
  queueMicrotask(() => notify("answered", pair));
}

/** @param {number} from @param {number} limit */
async function fetchRows(from, limit) {
  const at = chat.peek();
  const page = await inView(() => get(`${path()}/rows?from=${from}&limit=${limit}`));
  if (at !== chat.peek()) throw new ApiError("page", "Another chat is open.");
  return page;
}

/**
 * Do something in this page's view; where the server has forgotten it, put it there first.
 * @template T
 * @param {() => Promise<T>} order
 * @returns {Promise<T>}
 */
export async function inView(order) {
  const at = chat.peek();
  try {
    return await order();
  } catch (error) {
    const isForgotten = error instanceof ApiError && error.status === 404 && view.value;
    if (!isForgotten || at !== chat.peek()) throw error;
    await put(path(), wanted);
    return order();
  }
}

/** The heights that are known, where the rows stand now. */
function arrangeHeights() {
  heights.usual = Math.min(USUAL, TALLEST / Math.max(rows.total, 1));
  heights.fill(rows.total, (index) => {
    const pair = rows.at(index);
    return pair && measured.get(pair.id);
  });
}

/** @param {number} index @param {number} height */
export function noteHeight(index, height) {
  const pair = rows.at(index);
  if (pair) measured.set(pair.id, height);
}

let isFetching = false;

/** These rows are in sight: bring what is missing of them. @param {number} first @param {number} last */
export function showRows(first, last) {
  inSight = { first, last };
  if (!isFetching && rows.missing(first, last)) void fetchMissing();
}

async function fetchMissing() {
  isFetching = true;
  try {
    for (let gap = rows.missing(inSight.first, inSight.last); gap; gap = rows.missing(inSight.first, inSight.last)) {
      const page = await fetchRows(gap.from, gap.limit);
      if (rows.take(page)) arrangeHeights();
      else
        for (let index = page.from; index < page.from + page.rows.length; index += 1)
          heights.set(index, measured.get(page.rows[index - page.from].id) ?? heights.of(index));
      tick.value += 1;
      if (!page.rows.length) break;
    }
  } catch {
    // The next scroll asks again; whether the server is there at all, the banner says.
  } finally {
    isFetching = false;
  }
}

/**
 * Where a pair stands among the rows; null where it is not shown.
 * @param {string} pair
 * @returns {Promise<number | null>}
 */
export async function indexOfPair(pair) {
  const known = rows.places.get(pair);
  if (known !== undefined) return known;
  return (await inView(() => get(`${path()}/place?pair=${encodeURIComponent(pair)}`))).index;
}

/**
 * The ids of a stretch of rows, fetched where they are not known.
 * @param {number} first
 * @param {number} last
 * @returns {Promise<string[]>}
 */
export async function idsOf(first, last) {
  for (let gap = rows.missing(first, last); gap; gap = rows.missing(first, last)) {
    const page = await fetchRows(gap.from, gap.limit);
    rows.take(page);
    if (!page.rows.length) break;
  }
  return Array.from({ length: last - first }, (_, step) => rows.at(first + step)?.id ?? "").filter(Boolean);
}

/* --- Changes */

/** @type {Set<string>} */
let touched = new Set();
let isWide = false;
let isBehind = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let isCatchingUp = false;

/** @param {readonly string[]} ids @param {boolean} wide */
function noteChange(ids, wide) {
  for (const each of ids) touched.add(each);
  isWide ||= wide;
  isBehind = true;
  if (!isCatchingUp) timer ??= setTimeout(catchUp, TOGETHER);
}

/** Fetch the view and what is in sight again; rows that did not change stay as they are. */
export async function catchUp() {
  clearTimeout(timer);
  timer = undefined;
  if (!view.value) return;
  const ids = [...touched];
  const wide = isWide;
  touched = new Set();
  isWide = false;
  isBehind = false;
  isCatchingUp = true;
  const own = looks;
  try {
    let fresh = /** @type {ViewShown} */ (await inView(() => get(path())));
    const fetched = await fetchVisible(fresh.rows);
    // Rows that are ahead of the view would show an answer that has come, and a view that still waits for it.
    if (fetched.total && fetched.version !== fresh.version) fresh = await inView(() => get(path()));
    if (own !== looks) return void noteChange(ids, wide);
    if (wide || fetched.total !== rows.total) rows.clear(fetched.total);
    else rows.forget(ids);
    rows.take(fetched);
    arrangeHeights();
    for (const pair of fetched.rows) settleLive(pair);
    setView(fresh);
    tick.value += 1;
  } catch {
    for (const each of ids) touched.add(each); // asked again with the next change, or when the connection is back
    isWide ||= wide;
    isBehind = false;
  } finally {
    isCatchingUp = false;
    if (isBehind) timer ??= setTimeout(catchUp, TOGETHER);
  }
  return undefined;
}

/**
 * What is in sight, wherever it stands now: at the end one stays at the end, elsewhere with what is being read.
 * @param {number} total
 */
async function fetchVisible(total) {
  const { first, last } = inSight;
  const size = Math.max(last - first, FIRST);
  const isAtEnd = last >= rows.total;
  let from = isAtEnd ? total - size : first;
  const reading = rows.at(Math.floor((first + last) / 2))?.id;
  if (!isAtEnd && total !== rows.total && reading) {
    const { index } = await inView(() => get(`${path()}/place?pair=${encodeURIComponent(reading)}`));
    if (index !== null) from = index - Math.floor(size / 2);
  }
  from = Math.max(Math.min(from, total - size), 0);
  if (!total) return { version: 0, total: 0, from: 0, rows: [] };
  return fetchRows(from, Math.min(size, 200));
}

/* --- Answers while they arrive */

/** @type {Map<string, import("../../vendor/preact.js").Signal<AnswerShown | null>>} */
const live = new Map();
/** @type {Delta[]} */
let pieces = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let drawing;
/** @type {Set<string>} */
const asking = new Set();
/** @type {WeakSet<Delta>} */
const tried = new WeakSet();

/** What has come so far of an answer that is on its way. @param {string} pair */
export function liveOf(pair) {
  let found = live.get(pair);
  if (!found) live.set(pair, (found = signal(/** @type {AnswerShown | null} */ (null))));
  return found;
}

/** @param {PairShown} pair */
function settleLive(pair) {
  const found = live.get(pair.id);
  if (!found) return;
  if (pair.state !== "sending") live.delete(pair.id);
  else if (pair.answer) found.value = found.value ? moreComplete(found.value, pair.answer) : pair.answer;
}

/** Draw what has come since. */
function drawPieces() {
  drawing = undefined;
  const waiting = pieces;
  pieces = [];
  /** @type {Map<string, AnswerShown>} */
  const next = new Map();
  for (const delta of waiting) {
    if (asking.has(delta.pair)) {
      pieces.push(delta); // put in its place when the whole has come
      continue;
    }
    const pair = rows.pair(delta.pair);
    const before =
      next.get(delta.pair) ?? liveOf(delta.pair).value ?? (pair?.state === "sending" ? pair.answer : null) ?? NOTHING;
    const after = applyDelta(before, delta);
    if (after) next.set(delta.pair, after);
    else if (!tried.has(delta)) {
      tried.add(delta); // one that does not fit the whole either belongs to an attempt that is over
      pieces.push(delta);
      void fetchLive(delta.pair);
    }
  }
  for (const [pair, value] of next) liveOf(pair).value = value;
}

/** Something between is missing: ask for all of it. @param {string} pair */
async function fetchLive(pair) {
  if (asking.has(pair)) return;
  asking.add(pair);
  const at = chat.peek();
  try {
    const response = await get(inChat(`/api/chat/pairs/${encodeURIComponent(pair)}`));
    if (at !== chat.peek()) return;
    if (response.state === "sending") liveOf(pair).value = response.answer;
    else endLive(pair);
  } catch {
    endLive(pair);
  } finally {
    asking.delete(pair);
    if (pieces.length) drawing ??= setTimeout(drawPieces, DRAWN);
  }
}

/** Nothing more of it is drawn piece by piece. @param {string} pair */
function endLive(pair) {
  pieces = pieces.filter((each) => each.pair !== pair);
  noteChange([pair], false);
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let looking;

/** Results of tools, and calls that wait for approval, do not come in pieces: the whole answer is fetched. */
function onRunEvent() {
  looking ??= setTimeout(() => {
    looking = undefined;
    if (sending.value) void fetchLive(sending.value);
  }, 4 * DRAWN);
}

/* --- What the server says by itself */

/** @param {any} event */
function onChatEvent(event) {
  if (event.chat !== chat.peek() && event.kind !== "preferences") return;
  if (event.kind === "delta") {
    pieces.push(event);
    drawing ??= setTimeout(drawPieces, DRAWN);
  } else if (event.kind === "changed") noteChange(event.ids ?? [], Boolean(event.wide));
  else if (event.kind === "preferences" || event.kind === "topics") noteChange([], true);
  else if (event.kind === "paused") noteChange([event.pair], false);
}

/** After a reconnect: a server that was restarted does not know this page's view, which is put there again. */
async function onReturn() {
  try {
    if (!view.value) return await changeView({});
    await openView(wanted);
    noteChange([], true);
  } catch {
    // What is wrong with the connection, the banner says.
  }
  return undefined;
}

/** @param {{ settings?: Record<string, any>, saved_filters?: SavedFilter[] }} change */
export async function savePreferences(change) {
  storedPreferences.value.value = await put("/api/chat/preferences", change);
}

/** Open another chat: nothing of the one before is shown any more. @param {string} name */
export function openChat(name) {
  if (name === chat.peek()) return;
  looks += 1;
  chat.value = name;
  view.value = null;
  trouble.value = null;
  condition.value = "loading";
  wanted = { filter: "", ...lastChoice(name) };
  inSight = { first: 0, last: 0 };
  awaited = toldOf = "";
  touched = new Set();
  pieces = [];
  live.clear();
  measured.clear();
  rows.clear(0);
  arrangeHeights();
  tick.value += 1;
}

let isFollowed = false;

/** Begin to follow, when the page is first opened. */
export function startChat() {
  if (isFollowed) return;
  isFollowed = true;
  onAnnounced("chat", onChatEvent);
  onAnnounced("run", onRunEvent);
  onReconnect(() => {
    live.clear();
    void onReturn();
  });
  storedPreferences.start();
}
