// @ts-check
/** A session as rows, and the columns of its two drawings. */

/** @import { SessionThread, SessionTurn, TurnDetails } from "../../../api-types.d.ts" */

/**
 * @typedef {{ kind: "thread", key: string, thread: SessionThread, number: number }
 *   | { kind: "turn", key: string, turn: SessionTurn, number: number, depth: number, label: string }
 *   | { kind: "fold", key: string, thread: SessionThread, depth: number, isOpen: boolean }} Row
 */

/** How an exchange ends, and what tells that it has. */
export const ENDED = new Set(["finished", "failed", "cancelled", "dropped"]);

/** So many turns are asked for at once. */
export const AT_ONCE = 10;

const WORDS = { conversation: "Conversation", agent: "Sub-agent", side: "Side request", replay: "Replay" };

/**
 * What the table shows: the turns in their order, and below each one folded what it caused.
 * @param {readonly SessionThread[]} threads
 * @param {ReadonlySet<string>} opened keys of the folds that are open
 * @returns {Row[]}
 */
export function rowsOf(threads, opened) {
  /** @type {Row[]} */
  const rows = [];
  threads.forEach((thread, index) => {
    if (threads.length > 1) rows.push({ kind: "thread", key: `t:${thread.turns[0].id}`, thread, number: index + 1 });
    addTurns(rows, thread, 0, opened);
  });
  return rows;
}

/**
 * @param {Row[]} rows
 * @param {SessionThread} thread
 * @param {number} depth
 * @param {ReadonlySet<string>} opened
 */
function addTurns(rows, thread, depth, opened) {
  thread.turns.forEach((turn, index) => {
    rows.push({ kind: "turn", key: turn.id, turn, number: index + 1, depth, label: turn.asked });
    for (const below of turn.below) {
      const key = `f:${below.turns[0].id}`;
      const isOpen = opened.has(key);
      rows.push({ kind: "fold", key, thread: below, depth: depth + 1, isOpen });
      if (isOpen) addTurns(rows, below, depth + 1, opened);
    }
  });
}

/** What a folded thread is called. @param {SessionThread} thread */
export function threadWords(thread) {
  return [WORDS[thread.kind], thread.title].filter(Boolean).join(": ");
}

/** The turns of the conversations themselves, in their order. @param {readonly SessionThread[]} threads */
export function mainTurns(threads) {
  return threads.flatMap((thread) => thread.turns);
}

/** Every turn, those of the conversations first. @param {readonly SessionThread[]} threads @returns {SessionTurn[]} */
export function allTurns(threads) {
  const own = mainTurns(threads);
  return [...own, ...own.flatMap((turn) => allTurns(turn.below))];
}

/** The ids of every turn, in the same order. @param {readonly SessionThread[]} threads */
export function allIds(threads) {
  return allTurns(threads).map((turn) => turn.id);
}

/** How many tokens one turn takes. @param {SessionTurn} turn */
export function tokensOf(turn) {
  return (turn.input_tokens ?? 0) + (turn.output_tokens ?? 0);
}

/** The largest of all turns, for the bars. @param {readonly SessionThread[]} threads @returns {number} */
export function mostTokens(threads) {
  return mainTurns(threads).reduce((most, turn) => Math.max(most, tokensOf(turn), mostTokens(turn.below)), 0);
}

/**
 * The kinds of content of all turns, the largest first, and one column for each turn that is known.
 * @param {readonly SessionTurn[]} turns
 * @param {ReadonlyMap<string, TurnDetails>} details
 */
export function growth(turns, details) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const turn of turns)
    for (const { name, tokens } of details.get(turn.id)?.kinds ?? []) sums.set(name, (sums.get(name) ?? 0) + tokens);
  const names = [...sums].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([name]) => name);
  const columns = turns.map((turn) => {
    const kinds = new Map((details.get(turn.id)?.kinds ?? []).map((row) => [row.name, row.tokens]));
    const tokens = names.map((name) => kinds.get(name) ?? 0);
    return { id: turn.id, tokens, total: tokens.reduce((sum, each) => sum + each, 0) };
  });
  return { names, columns, most: Math.max(0, ...columns.map((column) => column.total)) };
}

/** The colour of a kind of content, by its name; servers share what is left. @param {string} name */
export function colourOf(name) {
  const known = /** @type {Record<string, string>} */ ({
    "System prompt": "system",
    Tools: "tools",
    "Added by the client": "options",
    User: "user",
    Assistant: "assistant",
    Reasoning: "reasoning",
    "Tool calls": "calls",
    "Tool results": "results",
    "Files read": "files",
  });
  return known[name] ?? (name.startsWith("Tools of ") ? "server" : "other");
}
