// @ts-check
/** Actions that several parts of the request view share. */

import { dialectOf } from "../../kit/about.js";
import { toast } from "../../kit/toast.js";
import { placeOf } from "./core/exchange.js";
import { wireDialect } from "./desk.js";

/** @import { Section } from "./core/exchange.js" */
/** @import { Desk } from "./desk.js" */

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
