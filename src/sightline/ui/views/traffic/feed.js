// @ts-check
/** The list of exchanges, kept in step with the server: pages are fetched, and changes arrive as facts. */

import { ApiError, get, onAnnounced, onFact, onReconnect } from "../../kit/api.js";
import { computed, signal } from "../../vendor/preact.js";
import { applyFacts, onlyHeld, mergeLines } from "./core/lines.js";

/** @import { Line } from "./core/lines.js" */

const PAGE = 500;
/** Changes within so many milliseconds are asked for together. */
const TOGETHER = 120;
/** And drawn together within so many. */
const DRAWN = 40;
/** So many single lines at most; for more the whole page is cheaper. */
const SINGLE = 8;

/** @type {import("../../vendor/preact.js").Signal<Line[]>} */
export const lines = signal([]);
export const filter = signal("");
/** @type {import("../../vendor/preact.js").Signal<"loading" | "ready" | "failed">} */
export const condition = signal("loading");
/** @type {import("../../vendor/preact.js").Signal<ApiError | null>} */
export const trouble = signal(null);
export const isComplete = signal(false);

/** Held ones of all traffic, whatever the filter: they are what the title counts. */
/** @type {import("../../vendor/preact.js").Signal<Line[]>} */
export const held = signal([]);
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
  try {
    const found = await fetchLines(wanted, "", PAGE, own.signal);
    if (own.signal.aborted) return;
    lines.value = found;
    isComplete.value = found.length < PAGE;
    condition.value = "ready";
    trouble.value = null;
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
    const found = await fetchLines(wanted, last.id, PAGE);
    if (wanted !== filter.value) return;
    lines.value = mergeLines(lines.value, found);
    isComplete.value = found.length < PAGE;
  } catch {
    // The next scroll asks again; whether the server is there at all, the banner says.
  } finally {
    isFetchingMore = false;
  }
}

/**
 * @param {string} wanted
 * @param {string} before
 * @param {number} limit
 * @param {AbortSignal} [signal]
 * @returns {Promise<Line[]>}
 */
async function fetchLines(wanted, before, limit, signal) {
  const query = new URLSearchParams({ filter: wanted, limit: String(limit), ...(before && { before }) });
  return (await get(`/api/exchanges?${query}`, { signal })).exchanges;
}

/** @type {Set<string>} */
let touched = new Set();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {import("../../kit/api.js").Fact[]} */
const waiting = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let drawing;

/** @param {import("../../kit/api.js").Fact} fact */
function onTrafficFact(fact) {
  if (fact.kind === "frame" || fact.kind === "edited") return;
  waiting.push(fact);
  drawing ??= setTimeout(drawFacts, DRAWN);
  if (fact.kind === "held") addHeld(fact.exchange);
  else if (fact.kind !== "received") held.value = without(held.value, fact.exchange);
  touched.add(fact.exchange);
  timer ??= setTimeout(catchUp, TOGETHER);
}

/** Draw what has come since: in a burst the list is put in order once for many facts. */
function drawFacts() {
  drawing = undefined;
  lines.value = applyFacts(lines.value, waiting.splice(0), { isFiltered: filter.value !== "" });
}

/** @param {string} id */
function addHeld(id) {
  drawFacts();
  const line = lines.value.find((each) => each.id === id) ?? { id, at: Date.now() / 1000, state: "held" };
  held.value = [...without(held.value, id), { ...line, state: "held" }];
  for (const each of heldListeners) each(line);
}

/** @param {Line[]} kept @param {string} id */
function without(kept, id) {
  return kept.some((line) => line.id === id) ? kept.filter((line) => line.id !== id) : kept;
}

/** Ask for the lines that facts have touched. */
async function catchUp() {
  timer = undefined;
  const wanted = filter.value;
  const ids = touched;
  touched = new Set();
  try {
    const fresh = await fetchLines(wanted, "", Math.min(Math.max(ids.size * 2, 20), PAGE));
    const rest = [...ids].filter(
      (id) => !fresh.some((line) => line.id === id) && lines.value.some((line) => line.id === id),
    );
    if (wanted !== filter.value) return;
    if (rest.length > SINGLE) return void showFilter(wanted);
    const single = await Promise.all(rest.map((id) => fetchLines(`id:${id}`, "", 1)));
    if (wanted === filter.value) lines.value = mergeLines(lines.value, [...fresh, ...single.flat()]);
    held.value = held.value.map((line) => lines.value.find((each) => each.id === line.id) ?? line);
  } catch {
    for (const id of ids) touched.add(id); // asked again with the next fact, or when the connection is back
  }
}

/** All that waits, whatever the list shows. */
async function fetchHeld() {
  try {
    held.value = onlyHeld(await fetchLines("state:held", "", PAGE));
  } catch {
    held.value = onlyHeld(lines.value);
  }
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
  onAnnounced("forgotten", onForgotten);
  onReconnect(() => {
    void showFilter(filter.value);
    void fetchHeld();
  });
  void fetchHeld();
}
