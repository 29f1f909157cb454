// @ts-check
/** One exchange as the page holds it: merging the server's answers, and what can be done with it. */

import { formatRunning } from "../../../kit/core/format.js";

/** @import { HoldShown, Section, SectionPart, Validity, View as Served } from "../../../api-types.d.ts" */
/** @typedef {import("../../../api-types.d.ts").ValidityFinding} Problem */
/** @typedef {{ kind: string, n: number, at: number, [key: string]: any }} Fact */
/**
 * What the page has of an exchange: an answer to an edit leaves out what no edit changes.
 * @typedef {Omit<Served, "facts" | "edit_cost"> & { facts?: Fact[], edit_cost?: Served["edit_cost"] | null }} View
 */

/** What an exchange is called: its model, or the call of what passed as it was. @param {View} view */
export function nameOf(view) {
  return view.raw ? `${view.raw.method} ${view.raw.path}` : view.model;
}

/**
 * A view that was asked for with each text once: the texts of the sections in `joined` are those of their parts.
 * @param {View & { joined?: string[] }} answer
 * @returns {View}
 */
export function joinTexts({ joined = [], ...view }) {
  const those = new Set(joined);
  for (const section of view.sections ?? [])
    if (those.has(section.id)) section.text = section.parts.map((part) => part.text ?? "").join("");
  return view;
}

/**
 * The view after an answer. Sections that are as they were stay the very same objects, so that only changed cards are
 * drawn anew; an answer with `order` holds the changed ones only.
 * @param {View | null} old
 * @param {View} answer
 * @returns {View}
 */
export function mergeView(old, answer) {
  const answered = /** @type {Section[]} */ (answer.sections ?? []);
  const known = new Map((old?.sections ?? []).map((section) => [section.id, section]));
  const fresh = answered.map((section) => keepEqual(known.get(section.id), section));
  let sections = fresh;
  if (answer.order) {
    for (const section of fresh) known.set(section.id, section);
    sections = answer.order.flatMap((id) => known.get(id) ?? []);
  } else if (!answer.sections) sections = old?.sections ?? [];
  const same =
    old?.sections?.length === sections.length && sections.every((section, at) => section === old?.sections?.[at]);
  // An answer to an edit leaves out what no edit changes, and what there is nothing to say of; a whole view leaves out
  // only the latter.
  const isEdit = answer.order !== undefined || answer.dialect === undefined;
  const rest = isEdit ? { ...(old ?? {}), edit_cost: null } : {};
  return { ...rest, ...answer, sections: same ? old?.sections : sections, facts: answer.facts ?? old?.facts ?? [] };
}

/**
 * Whether an answer with changed sections only left one out that this page has never seen.
 * @param {View | null} old
 * @param {View} answer
 */
export function lacksSections(old, answer) {
  if (!answer.order) return false;
  const known = new Set([...(old?.sections ?? []), ...(answer.sections ?? [])].map((section) => section.id));
  return answer.order.some((id) => !known.has(id));
}

/** @template T @param {T | undefined} old @param {T} fresh @returns {T} */
function keepEqual(old, fresh) {
  return old !== undefined && equal(old, fresh) ? old : fresh;
}

/** Whether two JSON values are the same. @param {unknown} a @param {unknown} b @returns {boolean} */
export function equal(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  const left = /** @type {Record<string, unknown>} */ (a);
  const right = /** @type {Record<string, unknown>} */ (b);
  return keys.every((key) => equal(left[key], right[key]));
}

const NONE = /** @type {readonly Problem[]} */ (Object.freeze([]));

/**
 * Problems by the section that they are about; those of no section stand under "". Lists that are as they were are the
 * same lists.
 * @param {Validity | undefined} validity
 * @param {Map<string, readonly Problem[]>} [old]
 * @returns {Map<string, readonly Problem[]>}
 */
export function problemsBySection(validity, old = new Map()) {
  /** @type {Map<string, Problem[]>} */
  const found = new Map();
  for (const problem of validity?.problems ?? []) {
    const list = found.get(problem.section ?? "");
    if (list) list.push(problem);
    else found.set(problem.section ?? "", [problem]);
  }
  return new Map([...found].map(([id, list]) => [id, keepEqual(old.get(id), list)]));
}

/** @param {Map<string, readonly Problem[]>} problems @param {string} id */
export function problemsOf(problems, id) {
  return problems.get(id) ?? NONE;
}

/** @param {View | null} view */
export function isHeld(view) {
  return view?.state === "held";
}

/** @param {View | null} view */
export function isOver(view) {
  return ["finished", "failed", "dropped", "cancelled"].includes(view?.state ?? "");
}

/** @param {View | null} view */
export function errorsOf(view) {
  return (view?.validity?.problems ?? []).filter((problem) => problem.severity === "error");
}

/** Why a held request may not be sent as it stands; empty where it may. @param {View} view */
export function whyNotSendable(view) {
  const errors = errorsOf(view);
  return errors.length > 1 ? `${errors.length} problems must be fixed first.` : (errors[0]?.message ?? "");
}

/**
 * What is known about "shown = sent". The hash on screen at release is in the facts; what was written to the socket
 * is in each attempt.
 * @param {View | null} view
 * @returns {{ state: "shown" | "same" | "different" | "nothing", shown: string, sent: string }}
 */
export function proof(view) {
  const facts = view?.facts ?? [];
  const released = facts.findLast((fact) => fact.kind === "released" && fact.sha256);
  const inTools =
    view?.hold?.phase === "tool_calls" || facts.some((fact) => fact.kind === "held" && fact.phase === "tool_calls");
  const sent = view?.hashes?.sent || facts.findLast((fact) => fact.kind === "attempt" && fact.sha256)?.sha256 || "";
  const shown = (!inTools && released?.sha256) || view?.body_sha256 || "";
  if (view?.state === "held") return { state: "shown", shown: view.body_sha256, sent: "" };
  if (!sent) return { state: isOver(view) || !shown ? "nothing" : "shown", shown, sent };
  return { state: shown === sent || (inTools && !!view) ? "same" : "different", shown: inTools ? sent : shown, sent };
}

/**
 * How long a hold lasts still.
 * @param {HoldShown} hold
 * @param {number} now in seconds
 * @returns {{ text: string, waited: string, isUrgent: boolean }}
 */
export function holdClock(hold, now) {
  const waited = formatRunning(now - hold.since);
  if (hold.deadline) {
    const left = Math.max(0, hold.deadline - now);
    const then = hold.on_timeout === "drop" ? "drops" : "sends as shown";
    return { text: `${then} in ${formatRunning(left)}`, waited, isUrgent: left < 15 };
  }
  const patience = hold.client_deadline ? Math.max(0, hold.client_deadline - now) : Infinity;
  const text = patience < 120 ? `the client may give up in ${formatRunning(patience)}` : "";
  return { text, waited, isUrgent: patience < 15 };
}

/** Kinds of which a text is best read as Markdown. */
const PROSE = new Set(["system", "developer", "user", "context", "history", "assistant", "thinking"]);

/** @param {Section} section */
export function isProse(section) {
  return PROSE.has(section.kind);
}

/** A text part of a section that is edited as one text. @param {SectionPart} part */
export function isText(part) {
  return part.type === "text" || part.type === "refusal";
}

/**
 * The place of a section among its siblings, for moving it: the list's pointer and the index.
 * @param {Section} section
 */
export function placeOf(section) {
  const found = /^(.*)\/(\d+)$/.exec(section.pointer);
  return found ? { list: found[1], index: Number(found[2]) } : null;
}

/**
 * The operation that moves a section one place up or down among those that are not deleted; null where it cannot.
 * @param {readonly Section[]} sections
 * @param {string} id
 * @param {-1 | 1} by
 * @returns {{ op: "move", from: string, pointer: string } | null}
 */
export function moveOperation(sections, id, by) {
  const section = sections.find((each) => each.id === id);
  const place = section && !section.deleted ? placeOf(section) : null;
  if (!section || !place) return null;
  const siblings = sections.filter((each) => !each.deleted && placeOf(each)?.list === place.list);
  const other = siblings[siblings.indexOf(section) + by];
  return other ? { op: "move", from: section.pointer, pointer: other.pointer } : null;
}

/** @typedef {{ name: string, value: string, change: "same" | "added" | "changed" | "dropped" }} HeaderRow */

/** Each connection says these for itself; the record has them of the client alone. */
const FRAMING = new Set(["host", "connection", "content-length", "transfer-encoding", "keep-alive"]);

/**
 * The client's headers and those that were sent, each with what became of it or where it came from. A credential is
 * masked on both sides, so that two of them look the same.
 * @param {readonly (readonly [string, string] | readonly string[])[]} client
 * @param {readonly (readonly [string, string] | readonly string[])[]} sent
 * @returns {{ client: HeaderRow[], sent: HeaderRow[] }}
 */
export function compareHeaders(client, sent) {
  /** @param {typeof client} headers */
  const byName = (headers) => {
    /** @type {Map<string, string[]>} */
    const found = new Map();
    for (const [name, value] of headers) {
      const key = name.toLowerCase();
      found.set(key, [...(found.get(key) ?? []), value]);
    }
    return found;
  };
  const [before, after] = [byName(client), byName(sent)];
  return {
    client: client.map(([name, value]) => ({
      name,
      value,
      change: sent.length && !after.has(name.toLowerCase()) && !FRAMING.has(name.toLowerCase()) ? "dropped" : "same",
    })),
    sent: sent.map(([name, value]) => {
      const known = before.get(name.toLowerCase());
      return { name, value, change: !known ? "added" : known.includes(value) ? "same" : "changed" };
    }),
  };
}
