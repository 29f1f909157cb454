// @ts-check
/** Actions that several parts of the request view share. */

import { dialectOf } from "../../kit/about.js";
import { toast } from "../../kit/toast.js";
import { placeOf } from "./core/exchange.js";
import { wireDialect } from "./desk.js";

/** @import { Section } from "../../api-types.d.ts" */
/** @import { Desk } from "./desk.js" */

/**
 * Open a section's editor. Tools and options have no text of their own and are edited as JSON; of what cannot be edited
 * it says why.
 * @param {Desk} desk
 * @param {Section} section
 * @param {boolean} isWhole whether the hold takes edits of the whole request
 */
export function edit(desk, section, isWhole) {
  if (section.editable) desk.edit({ section: section.id });
  else if (isWhole && (section.kind === "tools" || section.kind === "options"))
    desk.edit({ section: section.id, mode: "json" });
  else toast(section.reason || `${section.label} cannot be edited`);
}

/**
 * A new message below a section, open for writing.
 * @param {Desk} desk
 * @param {Section} section
 * @param {"user" | "assistant"} role
 */
export async function insert(desk, section, role) {
  const place = placeOf(section);
  if (!place) return;
  const dialect = wireDialect(desk.view.peek());
  const value = dialectOf(dialect)?.messages[role];
  if (value === undefined) {
    toast(`The server has not said how ${dialect} writes a message`, { hint: "Reload the page.", tone: "bad" });
    return;
  }
  const before = new Set(desk.sections.peek().map((each) => each.id));
  if (!(await desk.apply({ op: "insert", pointer: `${place.list}/${place.index + 1}`, value }))) return;
  const made = desk.sections.peek().find((each) => !before.has(each.id));
  if (made) desk.edit({ section: made.id });
}
