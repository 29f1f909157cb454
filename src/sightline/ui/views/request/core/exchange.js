// @ts-check
/** One exchange as the page holds it: merging the server's answers, and what can be done with it. */

/** @import { Estimate, Tokens } from "./budget.js" */
/** @import { RawExchange } from "./raw.js" */

/** @typedef {{ call_id: string, name: string, arguments: string, section: string }} Answered */
/**
 * @typedef {object} SectionPart
 * @property {string} id
 * @property {string} type
 * @property {string} pointer
 * @property {string} [text]
 * @property {boolean} [editable]
 * @property {boolean} [deleted]
 * @property {string} [call_id]
 * @property {string} [name]
 * @property {string} [reason]
 * @property {string} [media_type]
 * @property {string} [url]
 * @property {number | null} [tokens]
 * @property {boolean} [is_json]
 */
/**
 * @typedef {object} Section
 * @property {string} id
 * @property {string} kind
 * @property {string} role
 * @property {string} label
 * @property {string} pointer
 * @property {string} text
 * @property {boolean} editable
 * @property {boolean} deleted
 * @property {SectionPart[]} parts
 * @property {string} category
 * @property {Estimate | null} [tokens]
 * @property {Answered[]} [answers]
 * @property {string} [reason]
 * @property {boolean} [has_cache_mark]
 */
/** @typedef {{ label: string, operations: object[] }} Fix */
/**
 * @typedef {{ pointer: string, section: string, message: string, severity: "error" | "warning", fixes?: Fix[] }}
 *   Problem
 */
/** @typedef {{ ok: boolean, problems: Problem[] }} Validity */
/**
 * @typedef {{ phase: "request" | "tool_calls", since: number, deadline?: number | null, client_deadline?: number |
 *   null, on_timeout?: "send" | "drop", queue?: string[], reason?: string }} Hold
 */
/** @typedef {{ code: string, message: string, hint?: string }} FaultTold */
/** @typedef {{ kind: string, n: number, at: number, [key: string]: any }} Fact */
/**
 * @typedef {object} Cost
 * @property {number} [kept_tokens]
 * @property {number} [broken_tokens]
 * @property {number} [broken_by_edit]
 * @property {string} [section]
 * @property {string} [pointer]
 * @property {string} [reason]
 * @property {number | null} [money]
 * @property {number | null} [money_by_edit]
 */
/**
 * @typedef {object} View
 * @property {string} id
 * @property {string} state
 * @property {string} dialect
 * @property {string} provider
 * @property {string} model
 * @property {string} session
 * @property {string} [client]
 * @property {string} [transport]
 * @property {number} at
 * @property {number | null} [status]
 * @property {string} body_sha256
 * @property {boolean} dirty
 * @property {boolean} [can_undo]
 * @property {boolean} [can_redo]
 * @property {Validity} [validity]
 * @property {Tokens} [tokens]
 * @property {Section[]} [sections]
 * @property {string[]} [order]
 * @property {Hold | null} [hold]
 * @property {Cost | number | null} [cost] in dollars, or what the edit costs
 * @property {Cost | null} [edit_cost]
 * @property {{ pointer: string, what: string, why: string, severity: string }[]} [losses]
 * @property {{ pointer: string, what: string, why: string, severity?: string }[]} [additions]
 * @property {{ mask: any, outcome: string, section: string, why: string }[]} [masks]
 * @property {string[]} [kept] the ids of the masks that edits of this hold have made
 * @property {{ received?: string | null, sent?: string | null, reply?: string | null }} [hashes]
 * @property {Fact[]} [facts]
 * @property {FaultTold | string | null} [fault]
 * @property {"client_gone" | "shutdown" | "interrupted" | "user" | "timeout" | null} [reason] why it was cancelled
 * @property {string} [origin]
 * @property {string[]} [replays]
 * @property {string} [previous]
 * @property {{ previous?: string, title?: string, is_side?: boolean }} [thread]
 * @property {RawExchange | null} [raw] of an exchange that passed as it was
 * @property {boolean} [is_stream]
 * @property {number | null} [first_byte]
 * @property {number | null} [elapsed]
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

/**
 * Whether it may be sent as it stands, and if not, why.
 * @param {View | null} view
 * @returns {{ ok: boolean, why: string }}
 */
export function sendable(view) {
  if (!view || !isHeld(view)) return { ok: false, why: "It is not held." };
  const errors = errorsOf(view);
  if (errors.length)
    return {
      ok: false,
      why: errors.length === 1 ? errors[0].message : `${errors.length} problems must be fixed first.`,
    };
  return { ok: true, why: "" };
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
 * @param {Hold | null | undefined} hold
 * @param {number} now in seconds
 * @returns {{ text: string, left: number | null, waited: string, isUrgent: boolean }}
 */
export function holdClock(hold, now) {
  const waited = hold ? formatClock(Math.max(0, now - hold.since)) : "";
  if (!hold?.deadline) {
    const patience = hold?.client_deadline ? Math.max(0, hold.client_deadline - now) : null;
    const isNear = patience !== null && patience < 120;
    return {
      text: isNear ? `the client may give up in ${formatClock(patience)}` : "",
      left: null,
      waited,
      isUrgent: isNear && patience < 15,
    };
  }
  const left = Math.max(0, hold.deadline - now);
  const then = hold.on_timeout === "drop" ? "drops" : "sends as shown";
  return { text: `${then} in ${formatClock(left)}`, left, waited, isUrgent: left < 15 };
}

/** @param {number} seconds @returns {string} 0:07 · 4:05 · 1:02:03 */
export function formatClock(seconds) {
  const whole = Math.floor(seconds);
  const pad = (/** @type {number} */ count) => String(count).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${pad(whole % 60)}`;
  return `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(whole % 60)}`;
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

/** @param {View | null} view @returns {FaultTold | null} */
export function faultOf(view) {
  const fault = view?.fault;
  if (!fault) return null;
  return typeof fault === "string" ? { code: fault, message: fault } : fault;
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
