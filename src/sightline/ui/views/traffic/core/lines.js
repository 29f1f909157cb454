// @ts-check
/** The list of exchanges: its lines, conversations, and the rows that show them. */

import { countOf } from "../../../kit/core/format.js";

/** @import { Line as ServedLine } from "../../../api-types.d.ts" */

/**
 * One exchange in a list, as the server gives it or as the first facts tell it.
 * @typedef {Partial<ServedLine> & Pick<ServedLine, "id" | "at" | "state">} Line
 */

/** @typedef {{ key: string, lines: Line[], sides: Line[], at: number }} Conversation newest first */

/** @typedef {"some" | "all" | "none"} Openness */

/**
 * @typedef {{ kind: "heading", key: string, label: string, count: number }
 *   | { kind: "conversation", key: string, conversation: Conversation, openness: Openness }
 *   | { kind: "line", key: string, line: Line, label: string, isInside: boolean, isHeld: boolean }
 *   | { kind: "more", key: string, conversation: Conversation, hidden: number }
 *   | { kind: "sides", key: string, conversation: Conversation, isOpen: boolean }} Row
 */

/** So many of a conversation's newest turns show without being asked for. */
export const USUALLY_SHOWN = 3;

/** A client's errand belongs to the conversation that ran in its session within so many seconds. */
const ERRAND_SECONDS = 600;

/**
 * All lines once, newest first; a fresh one takes the place of what was known.
 * @param {readonly Line[]} known
 * @param {readonly Line[]} fresh
 * @returns {Line[]}
 */
export function mergeLines(known, fresh) {
  const all = new Map(known.map((line) => [line.id, line]));
  let isNew = false;
  for (const line of fresh) {
    isNew ||= !all.has(line.id);
    all.set(line.id, line);
  }
  const lines = [...all.values()];
  return isNew ? lines.sort(newestFirst) : lines;
}

/**
 * The list with its first page as the server has it now. What is known of older lines stays where none can be missing
 * between these and the page: where that is the last one, or goes back to `wholeUntil`, the time up to which the known
 * lines have no gap.
 * @param {readonly Line[]} known
 * @param {readonly Line[]} page
 * @param {{ wholeUntil: number, isLast: boolean }} options
 * @returns {{ joined: Line[], hasGap: boolean }}
 */
export function joinPage(known, page, { wholeUntil, isLast }) {
  const hasGap = !isLast && page[page.length - 1].at > wholeUntil;
  // What came since the page was read stays in any case.
  const kept = hasGap ? known.filter((line) => line.at > page[0].at) : known;
  return { joined: mergeLines(kept, page), hasGap };
}

/** @param {Line} a @param {Line} b */
export function newestFirst(a, b) {
  return b.at - a.at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

/**
 * What a fact makes of a line at once; the server's own line follows.
 * @param {Line} line
 * @param {{ kind: string, [key: string]: any }} fact
 * @returns {Line}
 */
export function applyFact(line, fact) {
  switch (fact.kind) {
    case "held":
      return { ...line, state: "held" };
    case "released":
    case "attempt":
      return line.state === "sending" ? line : { ...line, state: "sending" };
    case "dropped":
      return { ...line, state: "dropped" };
    case "finished":
      return { ...line, state: "finished", status: fact.status ?? line.status };
    case "failed":
      return { ...line, state: "failed", fault: fact.code ?? line.fault, message: fact.message ?? line.message };
    case "cancelled":
      return { ...line, state: "cancelled", message: fact.reason ?? line.message };
    case "translated":
      return { ...line, losses: fact.losses ?? line.losses };
    default:
      return line;
  }
}

/**
 * A line as the fact of its arrival tells it.
 * @param {{ exchange: string, at: number, [key: string]: any }} fact
 * @returns {Line}
 */
export function lineFrom(fact) {
  const { exchange, at, dialect, model, session, client, path, is_stream, origin } = fact;
  return { id: exchange, at, state: "received", dialect, model, session, client, path, is_stream, origin };
}

/**
 * The list after some facts; what has just arrived joins it only where no filter stands between.
 * @param {readonly Line[]} lines
 * @param {readonly { exchange: string, kind: string, at: number, [key: string]: any }[]} facts
 * @param {{ isFiltered: boolean }} options
 * @returns {Line[]}
 */
export function applyFacts(lines, facts, { isFiltered }) {
  /** @type {Map<string, (typeof facts)[number][]>} */
  const byExchange = new Map();
  for (const fact of facts) byExchange.set(fact.exchange, [...(byExchange.get(fact.exchange) ?? []), fact]);
  const next = lines.map((line) => {
    const own = byExchange.get(line.id);
    byExchange.delete(line.id);
    return own ? own.reduce(applyFact, line) : line;
  });
  if (isFiltered) return next;
  const fresh = [...byExchange.values()]
    .filter((own) => own[0].kind === "received")
    .map((own) => own.slice(1).reduce(applyFact, lineFrom(own[0])));
  return fresh.length ? mergeLines(next, fresh) : next;
}

/** Held ones, in the order in which they came. @param {readonly Line[]} lines */
export function onlyHeld(lines) {
  return lines.filter((line) => line.state === "held").reverse();
}

/**
 * The conversations, those with the newest exchange first. A client sends the whole conversation each time, so that
 * each exchange names the one before it; a replay belongs to what it replays, an errand to what ran beside it.
 * @param {readonly Line[]} lines newest first
 * @returns {Conversation[]}
 */
export function conversations(lines) {
  const roots = rootsOf(lines);
  const beside = nearestFinder(lines);
  /** @type {Map<string, Conversation>} */
  const found = new Map();
  for (const line of lines) {
    const near = line.is_side ? beside(line) : undefined;
    const key = roots.get(near?.id ?? line.id) ?? line.id;
    let conversation = found.get(key);
    if (!conversation) found.set(key, (conversation = { key, lines: [], sides: [], at: line.at }));
    (near ? conversation.sides : conversation.lines).push(line);
  }
  return [...found.values()];
}

/** The first exchange of each one's conversation, as far back as it is known. @param {readonly Line[]} lines */
function rootsOf(lines) {
  const known = new Map(lines.map((line) => [line.id, line]));
  /** @type {Map<string, string>} */
  const roots = new Map();
  for (const line of lines) {
    const path = [];
    let id = line.id;
    while (!roots.has(id)) {
      path.push(id);
      roots.set(id, id); // also ends a circle, which a broken record could hold
      const before = known.get(id)?.previous || known.get(id)?.origin;
      if (!before) break;
      id = before;
    }
    const root = roots.get(id) ?? id;
    for (const each of path) roots.set(each, root);
  }
  return roots;
}

/**
 * Finds the exchange of the same session that is nearest in time.
 * @param {readonly Line[]} lines newest first
 * @returns {(side: Line) => Line | undefined}
 */
function nearestFinder(lines) {
  /** @type {Map<string, Line[]>} */
  const sessions = new Map();
  for (const line of lines) {
    if (line.is_side || !line.session) continue;
    const kept = sessions.get(line.session);
    if (kept) kept.push(line);
    else sessions.set(line.session, [line]);
  }
  return (side) => {
    const found = sessions.get(side.session ?? "") ?? [];
    let low = 0;
    let high = found.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (found[middle].at > side.at) low = middle + 1;
      else high = middle;
    }
    /** @param {Line | undefined} line */
    const distance = (line) => (line ? Math.abs(line.at - side.at) : Infinity);
    const nearest = distance(found[low - 1]) <= distance(found[low]) ? found[low - 1] : found[low];
    return distance(nearest) <= ERRAND_SECONDS ? nearest : undefined;
  };
}

/**
 * What the list shows, from top to bottom: held ones first, then the conversations.
 * @param {readonly Line[]} lines newest first
 * @param {ReadonlyMap<string, Openness>} opened by the key of the conversation
 * @param {ReadonlySet<string>} sides the conversations whose errands show
 * @returns {Row[]}
 */
export function rowsOf(lines, opened, sides) {
  /** @type {Row[]} */
  const rows = [];
  const held = onlyHeld(lines);
  if (held.length) {
    rows.push({ kind: "heading", key: "held", label: "Held", count: held.length });
    for (const line of held) {
      rows.push({ kind: "line", key: line.id, line, label: labelOf(line), isInside: false, isHeld: true });
    }
    rows.push({ kind: "heading", key: "traffic", label: "Traffic", count: lines.length - held.length });
  }
  for (const conversation of conversations(lines)) addConversation(rows, conversation, opened, sides);
  return rows;
}

/**
 * @param {Row[]} rows
 * @param {Conversation} conversation
 * @param {ReadonlyMap<string, Openness>} opened
 * @param {ReadonlySet<string>} sides
 */
function addConversation(rows, conversation, opened, sides) {
  const { key } = conversation;
  const shown = conversation.lines.filter((line) => line.state !== "held");
  const sideLines = conversation.sides.filter((line) => line.state !== "held");
  if (shown.length + sideLines.length === 0) return;
  if (conversation.lines.length + conversation.sides.length === 1) {
    const line = shown[0] ?? sideLines[0];
    rows.push({ kind: "line", key: line.id, line, label: labelOf(line), isInside: false, isHeld: false });
    return;
  }
  const openness = opened.get(key) ?? "some";
  rows.push({ kind: "conversation", key: `c:${key}`, conversation, openness });
  if (openness === "none") return;
  // One more is no shorter than the row that would stand for it.
  const count = openness === "all" || shown.length <= USUALLY_SHOWN + 1 ? shown.length : USUALLY_SHOWN;
  for (const line of shown.slice(0, count)) rows.push(inside(line, turnLabel(line, conversation)));
  if (count < shown.length) rows.push({ kind: "more", key: `m:${key}`, conversation, hidden: shown.length - count });
  if (sideLines.length) {
    const isOpen = sides.has(key);
    rows.push({ kind: "sides", key: `s:${key}`, conversation, isOpen });
    if (isOpen) for (const line of sideLines) rows.push(inside(line, labelOf(line)));
  }
}

/** @param {Line} line @param {string} label @returns {Row} */
function inside(line, label) {
  return { kind: "line", key: line.id, line, label, isInside: true, isHeld: false };
}

/**
 * What a turn adds: the words of the person where they are new, else nothing.
 * @param {Line} line
 * @param {Conversation} conversation
 */
function turnLabel(line, conversation) {
  const before = conversation.lines[conversation.lines.indexOf(line) + 1];
  if (line.origin) return `Replay · ${labelOf(line)}`;
  return before && labelOf(before) === labelOf(line) ? "" : labelOf(line);
}

/** How many turns a conversation has. A replay of a turn is not another one. @param {Conversation} conversation */
export function turnWords({ lines }) {
  const replays = lines.filter((line) => line.origin).length;
  return replays && replays === lines.length ? countOf(replays, "replay") : countOf(lines.length - replays, "turn");
}

/**
 * The rows of a list that is sorted by a column: every exchange by itself, in the order in which it came.
 * @param {readonly Line[]} lines
 * @returns {Row[]}
 */
export function flatRows(lines) {
  return lines.map((line) => ({
    kind: "line",
    key: line.id,
    line,
    label: labelOf(line),
    isInside: false,
    isHeld: line.state === "held",
  }));
}

/**
 * The next way to sort after a click on a column: its first way, the other one, then the newest first again.
 * @param {string} sort the column, with "-" before it for the largest first; empty for conversations
 * @param {string} column
 * @param {boolean} isNumber numbers begin with the largest
 */
export function nextSort(sort, column, isNumber) {
  const ways = column === "at" ? ["at"] : isNumber ? [`-${column}`, column] : [column, `-${column}`];
  return ways[ways.indexOf(sort) + 1] ?? "";
}

/**
 * Sums over a conversation; a sum is there where at least one figure is. `unpriced` is how many exchanges were counted
 * whose cost is not known: with any, `cost` is the least that all of them cost. `estimated_cost` of it is estimated.
 * @param {{ lines: readonly Line[], sides: readonly Line[] }} conversation
 */
export function totals(conversation) {
  /** @typedef {"input_tokens" | "output_tokens" | "cached_tokens" | "cost" | "elapsed" | "losses"} Name */
  /** @type {Record<Name, number | undefined>} */
  const sums = {
    input_tokens: undefined,
    output_tokens: undefined,
    cached_tokens: undefined,
    cost: undefined,
    elapsed: undefined,
    losses: undefined,
  };
  let unpriced = 0;
  let estimated_cost = 0;
  // One walk: it is made for all lines of the list, 10,000 of them, whenever a request arrives.
  for (const part of [conversation.lines, conversation.sides])
    for (const { input_tokens, output_tokens, cached_tokens, cost, elapsed, losses, is_estimated } of part) {
      if (input_tokens != null) sums.input_tokens = (sums.input_tokens ?? 0) + input_tokens;
      if (output_tokens != null) sums.output_tokens = (sums.output_tokens ?? 0) + output_tokens;
      if (cached_tokens != null) sums.cached_tokens = (sums.cached_tokens ?? 0) + cached_tokens;
      if (cost != null) sums.cost = (sums.cost ?? 0) + cost;
      else if (input_tokens != null || output_tokens != null) unpriced += 1;
      if (is_estimated) estimated_cost += cost ?? 0;
      if (elapsed != null) sums.elapsed = (sums.elapsed ?? 0) + elapsed;
      if (losses != null) sums.losses = (sums.losses ?? 0) + losses;
    }
  return { ...sums, unpriced, estimated_cost };
}

/**
 * The sums of a list as `GET /api/costs` gives them, for one that is known whole.
 * @param {readonly Line[]} lines
 */
export function sumLines(lines) {
  const sums = totals({ lines, sides: [] });
  return {
    requests: lines.length,
    failed: lines.filter((line) => line.state === "failed").length,
    input_tokens: sums.input_tokens ?? 0,
    cached_tokens: sums.cached_tokens ?? 0,
    output_tokens: sums.output_tokens ?? 0,
    cost: sums.cost ?? 0,
    unpriced: sums.unpriced,
    estimated_cost: sums.estimated_cost,
  };
}

/** What a line is about: its words, or the call of what passed as it was. @param {Line} line */
export function labelOf(line) {
  return line.method ? `${line.method} ${line.path ?? ""}` : (line.title ?? "");
}

/** The title of a conversation: how it began, as far as that is known. @param {Conversation} conversation */
export function titleOf(conversation) {
  const titled = conversation.lines.filter(labelOf);
  const first = titled[titled.length - 1] ?? conversation.sides[0];
  return first ? labelOf(first) : "";
}

/** The state that stands for a conversation: the liveliest of its newest. @param {Conversation} conversation */
export function stateOf(conversation) {
  const all = [...conversation.lines, ...conversation.sides];
  for (const state of /** @type {const} */ (["held", "sending", "received"]))
    if (all.some((line) => line.state === state)) return state;
  return (conversation.lines[0] ?? conversation.sides[0])?.state ?? "finished";
}

/** The largest exchange of a list, for the bars. @param {readonly Line[]} lines */
export function mostTokens(lines) {
  return lines.reduce((most, line) => Math.max(most, (line.input_tokens ?? 0) + (line.output_tokens ?? 0)), 0);
}

/**
 * How a request came, where that is worth a word: plain HTTP is not.
 * @param {Line} line
 */
export function transportWord(line) {
  return { websocket: "WebSocket", tls: "TLS" }[line.transport ?? ""] ?? "";
}
