// @ts-check
/** Which sections are meant when several are selected at once, by their ids. */

/** @import { Section } from "../../../api-types.d.ts" */

/**
 * All results of tools that are not deleted; with an id, only those before that section.
 * @param {readonly Section[]} sections
 * @param {string} [before]
 */
export function resultsOf(sections, before = "") {
  const end = before ? sections.findIndex((section) => section.id === before) : sections.length;
  return sections.slice(0, Math.max(0, end)).flatMap((section) => {
    const isResult = section.kind === "tool_result" && !section.deleted;
    return isResult ? [section.id] : [];
  });
}

/**
 * The messages from one section to another, both included, in either direction; tools and options are no messages.
 * Without a beginning, the range begins with the first message behind the system prompt.
 * @param {readonly Section[]} sections
 * @param {string} from
 * @param {string} to
 */
export function rangeOf(sections, from, to) {
  const end = sections.findIndex((section) => section.id === to);
  const known = sections.findIndex((section) => section.id === from);
  const start = known >= 0 ? known : sections.findIndex((section) => !isFrame(section));
  if (end < 0 || start < 0) return [];
  const range = sections.slice(Math.min(start, end), Math.max(start, end) + 1);
  return range.filter((section) => !["tools", "options"].includes(section.kind)).map((section) => section.id);
}

/** @param {Section} section */
function isFrame(section) {
  return ["system", "developer", "tools", "options"].includes(section.kind);
}

/**
 * Sections whose label or text has these words, in upper or lower case.
 * @param {readonly Section[]} sections
 * @param {string} words
 */
export function matchingSections(sections, words) {
  const wanted = words.trim().toLowerCase();
  return sections
    .filter((section) => !["tools", "options"].includes(section.kind))
    .filter((section) =>
      [section.label, section.text, ...section.parts.map((part) => part.text ?? "")].some((text) =>
        text.toLowerCase().includes(wanted),
      ),
    )
    .map((section) => section.id);
}

/** What a stripped text is replaced by. */
export const STRIPPED = "[left out]";

/**
 * The edits that do something to the picked sections: delete or restore them, strip their texts so that calls keep
 * their results, or delete all other messages.
 * @param {readonly Section[]} sections
 * @param {ReadonlySet<string>} picked
 * @param {"delete" | "restore" | "strip" | "only"} what
 * @returns {{ op: string, section: string, text?: string }[]}
 */
export function editsOf(sections, picked, what) {
  const meant = sections.filter((section) => picked.has(section.id));
  switch (what) {
    case "only":
      return sections
        .filter((section) => !picked.has(section.id) && !section.deleted && !isFrame(section))
        .map((section) => ({ op: "delete", section: section.id }));
    case "strip":
      return meant
        .filter((section) => !section.deleted && section.editable && section.text && section.text !== STRIPPED)
        .map((section) => ({ op: "set_text", section: section.id, text: STRIPPED }));
    default:
      return meant
        .filter((section) => section.deleted === (what === "restore"))
        .map((section) => ({ op: what, section: section.id }));
  }
}
