// @ts-check
/**
 * The stream of facts. A browser allows few connections to one server, so one page of all pages of a browser opens the
 * stream and passes it on to the others; when that page closes, the next takes over.
 */

import { signal } from "../vendor/preact.js";

/** @typedef {{ exchange: string, kind: string, n: number, at: number, [key: string]: any }} Fact */
/** @typedef {"connecting" | "open" | "lost" | "refused"} Connection */
/** What happens outside of exchanges, by the name of its event. @typedef {{ event: string, value: any }} Announced */
/**
 * @typedef {{ fact: Fact } | { announced: Announced } | { state: Connection, isFresh: boolean } | { ask: "state" |
 *   "retry" }} Said
 */

/** Whether this page shows the example that comes with Sightline. It has a record and an API of its own. */
export const isExample = location.pathname.startsWith("/example/");

/** Where a path of the API is for this page. @param {string} path */
export const addressOf = (path) => (isExample ? `/example${path}` : path);

const NAME = isExample ? "sightline-example-events" : "sightline-events";
const SOONEST = 500;
const LATEST = 10_000;
/** A page that listens for all and has been put to sleep must not keep the others from showing anything. */
const LONGEST_SILENCE = 1500;

/**
 * `open`: facts arrive. `lost`: they do not, and the page keeps trying. `refused`: the token is not known any more.
 * @type {import("../vendor/preact.js").Signal<Connection>}
 */
export const connection = signal(/** @type {Connection} */ ("connecting"));

/** @type {() => void} */
let begin = () => {};
/** Kept once facts flow, or fail to. @type {Promise<void>} */
export const begun = new Promise((resolve) => (begin = resolve));

/** @type {Set<(fact: Fact) => void>} */
const listeners = new Set();
/** @type {Map<string, Set<(value: any) => void>>} */
const announcements = new Map();
/** @type {Set<() => void>} */
const returns = new Set();

/** The events that have a name; all others are facts. */
const NAMED = ["chat", "run", "eval", "interception", "forgotten", "cap", "more"];

/**
 * Hear facts. While very many come, the server leaves out those of some exchanges, and announces that there is `more`:
 * then the record has them.
 * @param {(fact: Fact) => void} listener
 * @returns {() => void} stops it
 */
export function onFact(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Called when a fact of one of these kinds came, and when it may have been left out.
 * @param {ReadonlySet<string>} kinds
 * @param {() => void} listener
 * @returns {() => void} stops it
 */
export function onKinds(kinds, listener) {
  return stopAll(
    onFact((fact) => kinds.has(fact.kind) && listener()),
    onAnnounced("more", listener),
  );
}

/**
 * Hear what is announced under this name.
 * @param {"chat" | "run" | "eval" | "interception" | "forgotten" | "cap" | "more"} event
 * @param {(value: any) => void} listener
 * @returns {() => void} stops it
 */
export function onAnnounced(event, listener) {
  const known = announcements.get(event) ?? new Set();
  announcements.set(event, known.add(listener));
  return () => void known.delete(listener);
}

/**
 * Called each time that facts flow again. What was shown before may be out of date, and is fetched again.
 * @param {() => void} listener
 * @returns {() => void} stops it
 */
export function onReconnect(listener) {
  returns.add(listener);
  return () => void returns.delete(listener);
}

/** One that ends them all. @param {(() => unknown)[]} stops */
export function stopAll(...stops) {
  return () => stops.forEach((stop) => stop());
}

const others = new BroadcastChannel(NAME);
let isListener = false;
let hasBegun = false;
let wait = SOONEST;
/** @type {EventSource | null} */
let source = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Begin to hear; called once. */
export function connect() {
  others.onmessage = ({ data }) => onMessage(data);
  if (!("locks" in navigator)) return openStream();
  const own = navigator.locks.request(NAME, () => {
    openStream();
    return new Promise(() => {}); // for as long as this page is open
  });
  own.catch(openStream);
  broadcast({ ask: "state" });
  setTimeout(begin, LONGEST_SILENCE);
}

/** Try at once. */
export function retry() {
  if (isListener) openStream();
  else broadcast({ ask: "retry" });
}

/** Hear no more: the page is about to go elsewhere. */
export function disconnect() {
  clearTimeout(timer);
  source?.close();
}

function openStream() {
  isListener = true;
  clearTimeout(timer);
  source?.close();
  const opened = new EventSource(addressOf("/api/events?frames=0&brief=1"));
  source = opened;
  opened.onopen = () => {
    wait = SOONEST;
    broadcast({ state: "open", isFresh: true });
    setConnection("open", true);
  };
  opened.onmessage = (message) => {
    const fact = JSON.parse(message.data);
    broadcast({ fact });
    deliverFact(fact);
  };
  for (const event of NAMED) {
    opened.addEventListener(event, (message) => {
      const announced = { event, value: JSON.parse(message.data) };
      broadcast({ announced });
      announce(announced);
    });
  }
  opened.onerror = () => {
    opened.close();
    void onLost();
  };
}

async function onLost() {
  const answer = await fetch(addressOf("/api/exchanges?limit=1"), { cache: "no-store" }).catch(() => null);
  if (isExample && answer?.status === 404) return location.assign("/"); // another page has left the example
  const state = answer?.status === 401 ? "refused" : "lost";
  broadcast({ state, isFresh: true });
  setConnection(state, true);
  clearTimeout(timer);
  if (state === "refused") return;
  timer = setTimeout(openStream, wait);
  wait = Math.min(wait * 2, LATEST);
}

/** @param {Said} message */
function broadcast(message) {
  others.postMessage(message);
}

/** @param {Said} message */
function onMessage(message) {
  if ("fact" in message) deliverFact(message.fact);
  else if ("announced" in message) announce(message.announced);
  else if ("state" in message) {
    if (!isListener) setConnection(message.state, message.isFresh);
  } else if (isListener && message.ask === "retry") openStream();
  else if (isListener && connection.value !== "connecting") broadcast({ state: connection.value, isFresh: false });
}

/** @param {Fact} fact */
function deliverFact(fact) {
  for (const each of listeners) each(fact);
}

/** @param {Announced} announced */
function announce({ event, value }) {
  for (const each of announcements.get(event) ?? []) each(value);
}

/**
 * `isFresh` where the connection itself has changed; else a page only asked how it is.
 * @param {Connection} state
 * @param {boolean} isFresh
 */
function setConnection(state, isFresh) {
  connection.value = state;
  const isBack = state === "open" && isFresh && hasBegun;
  hasBegun = true;
  begin();
  if (isBack) for (const each of returns) each();
}
