// @ts-check
/** The list of exchanges, kept in step with the server: pages are fetched, and changes arrive as facts. */

import { ApiError, get, onAnnounced, onFact, onReconnect } from "../../kit/api.js";
import { computed, signal } from "../../vendor/preact.js";
import { applyFacts, joinPage, onlyHeld, mergeLines, sumLines } from "./core/lines.js";

/** @import { Snippet } from "../../api-types.d.ts" */
/** @import { Line } from "./core/lines.js" */

const PAGE = 500;
/** Changes within so many milliseconds are asked for together. */
const TOGETHER = 120;
/** And drawn together within so many. */
const DRAWN = 40;
/** So many single lines at most; for more the whole page is cheaper. */
const SINGLE = 8;
/** A list in another order than by time, and sums of what is not loaded, are asked for again at most so often. */
const AGAIN = 1500;
/** And, while requests come, not before so many times as long as the last ones took. */
const REST = 50;
/** Where more happens than the server tells, the first page is read again after so many milliseconds. */
const MORE = 1000;
/** A request is on record, and could be told, so many seconds after it came. */
const LATE = 1;
/** The states of exchanges that have not ended. */
const UNDER_WAY = new Set(["received", "held", "sending"]);
/** The server looks into so many exchanges in one call. */
const LOOKED_INTO = 50;
/** The session of every request that an eval run or its judge makes begins so. */
const EVAL_SESSION = "eval:";

export const lines = signal(/** @type {Line[]} */ ([]));
export const filter = signal("");
export const condition = signal(/** @type {"loading" | "ready" | "failed"} */ ("loading"));
export const trouble = signal(/** @type {ApiError | null} */ (null));
export const isComplete = signal(false);
/** The column that the list is sorted by, with "-" before it for the largest first; empty for the newest first. */
export const sort = signal("");
/** Whether the requests of eval runs show, and how many are folded away. */
export const showsEvals = signal(false);
export const foldedEvals = signal(0);
/** The sums of all that the filter takes. */
const askedSums = signal(/** @type {ReturnType<typeof sumLines> | null} */ (null));
export const sums = computed(() => (isComplete.value ? sumLines(lines.value) : askedSums.value));
/** The words that the filter looks for, and where each exchange has them. */
export const words = signal(/** @type {readonly string[]} */ ([]));
export const snippets = signal(/** @type {ReadonlyMap<string, Snippet | null>} */ (new Map()));

/** Held ones of all traffic, whatever the filter: they are what the title counts. */
export const held = signal(/** @type {Line[]} */ ([]));
export const heldCount = computed(() => held.value.length);

/** @type {Set<(line: Line) => void>} */
const heldListeners = new Set();

/** Called when a request begins to wait. @param {(line: Line) => void} listener */
export function onHeld(listener) {
  heldListeners.add(listener);
  return () => void heldListeners.delete(listener);
}

/** @type {AbortController | null} */
let loading = null;

/** Show what a filter takes, from the newest on. @param {string} wanted */
export async function showFilter(wanted) {
  filter.value = wanted;
  loading?.abort();
  const own = (loading = new AbortController());
  if (!lines.value.length) condition.value = "loading";
  void findWords(wanted, own.signal);
  try {
    const found = await fetchLines(wanted, "", PAGE, { signal: own.signal, isList: true });
    if (own.signal.aborted) return;
    lines.value = found;
    isComplete.value = found.length < PAGE;
    condition.value = "ready";
    trouble.value = null;
    void fetchSums();
  } catch (error) {
    if (own.signal.aborted) return;
    trouble.value = error instanceof ApiError ? error : new ApiError("page", String(error));
    condition.value = "failed";
  }
}

let isFetchingMore = false;

/** The next older page. */
export async function loadOlder() {
  const last = lines.value.at(-1);
  if (isComplete.value || isFetchingMore || !last) return;
  isFetchingMore = true;
  const wanted = filter.value;
  try {
    const order = sort.value;
    const found = await fetchLines(wanted, last.id, PAGE, { isList: true });
    if (wanted !== filter.value || order !== sort.value || lines.value.at(-1)?.id !== last.id) return;
    lines.value = order ? [...lines.value, ...found] : mergeLines(lines.value, found);
    isComplete.value = found.length < PAGE;
  } catch {
    // The next scroll asks again; whether the server is there at all, the banner says.
  } finally {
    isFetchingMore = false;
  }
}

/** Sort by a column, as `sort` says; or show the newest first again. @param {string} wanted */
export function sortBy(wanted) {
  sort.value = wanted;
  void showFilter(filter.value);
}

/** Show the requests of eval runs, or fold them away. @param {boolean} isShown */
export function showEvals(isShown) {
  showsEvals.value = isShown;
  void showFilter(filter.value);
}

/** Whether requests of evals are folded away: who asks for them by their session sees them. */
function hidesEvals() {
  return !showsEvals.value && !filter.value.includes(EVAL_SESSION);
}

/**
 * With `isList` as the list is sorted and folded, without simply what the filter takes.
 * @param {string} wanted
 * @param {string} before
 * @param {number} limit
 * @param {{ signal?: AbortSignal, isList?: boolean }} [options]
 * @returns {Promise<Line[]>}
 */
async function fetchLines(wanted, before, limit, { signal, isList = false } = {}) {
  const query = new URLSearchParams({ filter: wanted, limit: String(limit), ...(before && { before }) });
  if (isList && sort.value) query.set("sort", sort.value);
  if (isList && hidesEvals()) query.set("evals", "0");
  return (await get(`/api/exchanges?${query}`, { signal })).exchanges;
}

/** What is folded away, and the sums of a list that is too long to be added up here. */
async function fetchSums() {
  const wanted = filter.value;
  /** @param {string} evals */
  const total = async (evals) =>
    (await get(`/api/costs?${new URLSearchParams({ by: "model", filter: wanted, evals })}`)).total;
  try {
    const folded = hidesEvals() ? (await total("only")).requests : 0;
    const found = isComplete.value ? null : await total(hidesEvals() ? "0" : "");
    if (wanted !== filter.value) return;
    foldedEvals.value = folded;
    if (found) askedSums.value = found;
  } catch {
    // The list says what is wrong with the server or with the filter.
  }
}

let lookedFor = "";

/** What the filter looks for in texts. @param {string} wanted @param {AbortSignal} signal */
async function findWords(wanted, signal) {
  if (wanted === lookedFor) return;
  lookedFor = wanted;
  snippets.value = new Map();
  words.value = [];
  if (!wanted.trim()) return;
  try {
    const found = await get(`/api/snippets?${new URLSearchParams({ filter: wanted })}`, { signal });
    if (!signal.aborted) words.value = found.words;
  } catch {
    lookedFor = ""; // a filter that is wrong looks for nothing
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let looking;

/** Find where exchanges have the words, when scrolling rests. @param {string[]} ids those in sight */
export function lookInto(ids) {
  clearTimeout(looking);
  if (!words.value.length) return;
  const wanted = ids.filter((id) => !snippets.value.has(id)).slice(0, LOOKED_INTO);
  if (wanted.length) looking = setTimeout(() => void fetchSnippets(wanted), TOGETHER);
}

/** @param {string[]} ids */
async function fetchSnippets(ids) {
  const asked = filter.value;
  try {
    const found = await get(`/api/snippets?${new URLSearchParams({ filter: asked, ids: ids.join(",") })}`);
    if (asked !== filter.value) return;
    const next = new Map(snippets.value);
    for (const id of ids) next.set(id, null); // it is not asked for again
    for (const each of found.snippets) next.set(each.id, each);
    snippets.value = next;
  } catch {
    // The row stays without one; the next scroll asks again.
  }
}

/** @type {Set<string>} */
let touched = new Set();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {import("../../kit/api.js").Fact[]} */
const waiting = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let drawing;
/** The latest requests of evals that are folded away: one of them may be held. */
/** @type {Line[]} */
let folded = [];

/** @param {import("../../kit/api.js").Fact} fact */
function onTrafficFact(fact) {
  if (fact.kind === "frames" || fact.kind === "edited") return;
  waiting.push(fact);
  heard.add(fact.exchange);
  drawing ??= setTimeout(drawFacts, DRAWN);
  if (fact.kind === "held") addHeld(fact.exchange);
  else if (fact.kind !== "received") held.value = without(held.value, fact.exchange);
  touched.add(fact.exchange);
  timer ??= setTimeout(catchUp, TOGETHER);
}

/** Draw what has come since: in a burst the list is put in order once for many facts. */
function drawFacts() {
  drawing = undefined;
  const facts = waiting.splice(0);
  const isFolded = (/** @type {import("../../kit/api.js").Fact} */ fact) =>
    hidesEvals() && Boolean(fact.session?.startsWith?.(EVAL_SESSION));
  const shown = facts.filter((fact) => !isFolded(fact));
  lines.value = applyFacts(lines.value, shown, { isFiltered: filter.value !== "" || sort.value !== "" });
  folded = applyFacts(folded, facts.filter(isFolded), { isFiltered: false }).slice(0, PAGE);
}

/** @param {string} id */
function addHeld(id) {
  drawFacts();
  const known = [...lines.value, ...folded].find((each) => each.id === id);
  const line = known ?? { id, at: Date.now() / 1000, state: "held" };
  held.value = [...without(held.value, id), { ...line, state: "held" }];
  for (const each of heldListeners) each(line);
}

/** @param {Line[]} kept @param {string} id */
function without(kept, id) {
  return kept.some((line) => line.id === id) ? kept.filter((line) => line.id !== id) : kept;
}

let isCatchingUp = false;

/** Ask for the lines that facts have touched, once at a time: a late answer would be older than the next. */
async function catchUp() {
  timer = undefined;
  askLater();
  if (reading || isCatchingUp) return; // it asks for them itself
  const wanted = filter.value;
  const ids = touched;
  touched = new Set();
  if (sort.value) return;
  isCatchingUp = true;
  let isBroken = false;
  try {
    const fresh = await fetchLines(wanted, "", Math.min(Math.max(ids.size * 2, 20), PAGE), { isList: true });
    const rest = [...ids].filter(
      (id) => !fresh.some((line) => line.id === id) && lines.value.some((line) => line.id === id),
    );
    if (wanted !== filter.value) return;
    if (rest.length > SINGLE) return void showFilter(wanted);
    const single = await Promise.all(rest.map((id) => fetchLines(`id:${id}`, "", 1)));
    if (wanted === filter.value) lines.value = mergeLines(lines.value, [...fresh, ...single.flat()]);
    held.value = held.value.map((line) => lines.value.find((each) => each.id === line.id) ?? line);
  } catch {
    isBroken = true;
    for (const id of ids) touched.add(id); // asked again with the next fact, or when the connection is back
  } finally {
    isCatchingUp = false;
    if (touched.size && !isBroken) timer ??= setTimeout(catchUp, TOGETHER);
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let reading;
/** Whether facts were left out since the first page was asked for. */
let isBehind = false;
/** Lines that are older than this time have no gap between them. */
let wholeUntil = 0;

/** More happens than the server tells: lines may be missing until the first page is read again. */
function onMore() {
  isBehind = true;
  askLater();
  if (reading) return;
  wholeUntil = (lines.value[0]?.at ?? 0) - LATE;
  reading = setTimeout(readAgain, MORE);
}

async function readAgain() {
  const wanted = filter.value;
  isBehind = false;
  if (held.value.length) void fetchHeld();
  if (!sort.value) {
    const ids = touched;
    touched = new Set(); // what comes while the page is read is newer than the page
    try {
      const fresh = await fetchLines(wanted, "", PAGE, { isList: true });
      if (wanted === filter.value && !sort.value) {
        const { joined, hasGap } = joinPage(lines.value, fresh, { wholeUntil, isLast: fresh.length < PAGE });
        if (hasGap && isComplete.value) askedSums.value = sums.value; // until they are asked for
        lines.value = joined;
        if (hasGap) isComplete.value = false;
        if (fresh.length) wholeUntil = fresh[0].at - LATE;
      }
      const known = new Set(fresh.map((line) => line.id));
      // The end of an older one that is under way may be what was left out.
      for (const { id, state } of lines.value)
        if (!known.has(id) && (ids.has(id) || UNDER_WAY.has(state))) touched.add(id);
    } catch {
      for (const id of ids) touched.add(id);
      isBehind = true; // asked again, or all is when the connection is back
    }
  }
  reading = isBehind ? setTimeout(readAgain, MORE) : undefined;
  if (touched.size) timer ??= setTimeout(catchUp, TOGETHER);
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let askAgain;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let askAtRest;
/** How many milliseconds it took to ask for the last sums, or for all lines in another order. */
let askingTook = 0;

/** Ask for what changes cannot be merged into, once nothing has come for a while, or it has been a while. */
function askLater() {
  askAgain ??= setTimeout(onAskAgain, Math.max(AGAIN, REST * askingTook));
  clearTimeout(askAtRest);
  askAtRest = setTimeout(onAskAgain, AGAIN);
}

/** Another order, and sums of what is not loaded. */
async function onAskAgain() {
  clearTimeout(askAgain);
  clearTimeout(askAtRest);
  askAgain = undefined;
  const began = performance.now();
  await (sort.value ? showFilter(filter.value) : fetchSums());
  askingTook = performance.now() - began;
}

/** Exchanges that were heard of since held ones were last asked for. */
/** @type {Set<string>} */
let heard = new Set();

/** All that waits, whatever the list shows. What is heard meanwhile is newer than the answer. */
async function fetchHeld() {
  const since = (heard = new Set());
  const found = await fetchLines("state:held", "", PAGE).catch(() => lines.value);
  if (since !== heard) return; // it was asked again
  held.value = [
    ...onlyHeld(found).filter((line) => !since.has(line.id)),
    ...held.value.filter((line) => since.has(line.id)),
  ];
}

/** Deleted ones leave the list of every page. @param {{ exchanges: string[] }} forgotten */
function onForgotten({ exchanges }) {
  const gone = new Set(exchanges);
  lines.value = lines.value.filter((line) => !gone.has(line.id));
  void showFilter(filter.value);
}

/** Begin to follow; called once. */
export function startTraffic() {
  onFact(onTrafficFact);
  onAnnounced("more", onMore);
  onAnnounced("forgotten", onForgotten);
  onReconnect(() => {
    void showFilter(filter.value);
    void fetchHeld();
  });
  void fetchHeld();
}
