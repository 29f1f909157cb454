// @ts-check
/** The three zones of the chat. The mode is derived from the focus, so that both always agree. */

import { signal, useLayoutEffect } from "../../vendor/preact.js";
import { rangeOf } from "./core/chat.js";
import { indexOfPair, rows, tick } from "./feed.js";

/** @import { Mode } from "./core/chat.js" */
/** @import { ListHandle } from "../../kit/virtual-list.js" */

export const INPUT = "chat-input";
export const COMMAND = "chat-command";

export const mode = signal(/** @type {Mode} */ ("view"));
/** The pair that keys are about. `id` is empty until its row has been fetched. */
export const cursor = signal({ id: "", index: -1 });
/** The other end of a stretch of pairs; empty where only one is meant. */
export const mark = signal("");
/** Whether the pair that keys are about is kept in the middle. */
export const isTypewriter = signal(false);
/** @type {{ current: ListHandle | null }} */
export const list = { current: null };

/** @param {Element | null} element @returns {Mode} */
function modeOf(element) {
  if (element?.id === INPUT) return "input";
  return element instanceof HTMLInputElement && element.closest(`#${COMMAND}`) ? "command" : "view";
}

let presses = 0;

/** Another number once the person has pressed anything: who has gone on by then is not to be moved. */
export function pressesSoFar() {
  return presses;
}

/** Follow the focus for as long as the chat is shown. */
export function useModes() {
  useLayoutEffect(() => {
    const look = () => (mode.value = modeOf(document.activeElement));
    const pressed = () => (presses += 1);
    look();
    for (const each of ["keydown", "pointerdown"]) addEventListener(each, pressed, true);
    addEventListener("focusin", look);
    addEventListener("focusout", look);
    return () => {
      for (const each of ["keydown", "pointerdown"]) removeEventListener(each, pressed, true);
      removeEventListener("focusin", look);
      removeEventListener("focusout", look);
    };
  }, []);
}

export function toInput() {
  document.getElementById(INPUT)?.focus();
}

export function toCommand(end = "") {
  const field = /** @type {HTMLInputElement | null} */ (document.querySelector(`#${COMMAND} input`));
  if (!field) return;
  field.focus();
  if (!end) return field.select();
  field.value = `${field.value}${field.value && !/\s$/.test(field.value) ? " " : ""}${end}`;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** To the history; the pair that keys are about has the focus, the newest where there is none yet. */
export function toView() {
  if (cursor.value.index < 0 && rows.total) setCursor(rows.total - 1);
  if (focusPair()) return;
  const empty = list.current?.element();
  if (empty) empty.focus();
  else if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

/** @returns {boolean} whether the pair is in the document */
export function focusPair() {
  const found = pairElement(cursor.value.id);
  found?.focus({ preventScroll: true });
  return found !== null;
}

/** The pair has the focus at once if it is in the document; when all is drawn too, unless the person has gone on. */
export function focusSoon() {
  if (mode.value !== "view") return;
  focusPair();
  const before = presses;
  requestAnimationFrame(() => presses === before && mode.value === "view" && focusPair());
}

/** @param {string} id */
export function pairElement(id) {
  return id ? document.getElementById(`pair-${id}`) : null;
}

/** Let keys be about a row, without moving anything. @param {number} index */
export function setCursor(index) {
  cursor.value = { id: rows.at(index)?.id ?? "", index };
}

/**
 * Go to a row.
 * @param {number} index
 * @param {{ where?: "nearest" | "start" | "middle", isExtending?: boolean }} [options]
 */
export function goTo(index, { where = isTypewriter.value ? "middle" : "nearest", isExtending = false } = {}) {
  if (!rows.total) return;
  if (!isExtending) mark.value = "";
  else if (!mark.value) mark.value = cursor.value.id;
  const wanted = Math.min(Math.max(index, 0), rows.total - 1);
  setCursor(wanted);
  list.current?.show(wanted, where);
  focusSoon();
}

/** Go to a pair, if it is shown. @param {string} pair @param {"nearest" | "start"} [where] */
export async function goToPair(pair, where = "nearest") {
  const index = await indexOfPair(pair);
  if (index !== null) goTo(index, { where });
  return index !== null;
}

/** Where the cursor stands now: rows above it may have come or gone. */
export function cursorIndex() {
  const { id, index } = cursor.value;
  return (id ? rows.places.get(id) : undefined) ?? Math.min(index, rows.total - 1);
}

/** A row that has come gives the cursor its pair; one that has gone gives it the next. */
export function useCursor() {
  const now = tick.value;
  useLayoutEffect(() => {
    const { id, index } = cursor.value;
    if (index < 0 || (id && rows.places.get(id) === index)) return;
    const place = id ? rows.places.get(id) : undefined;
    if (place !== undefined) cursor.value = { id, index: place };
    else if (rows.total) {
      const near = Math.min(index, rows.total - 1);
      const pair = rows.at(near);
      if (pair && pair.id !== id) cursor.value = { id: pair.id, index: near };
      if (document.activeElement === document.body)
        requestAnimationFrame(() => document.activeElement === document.body && focusPair());
    } else cursor.value = { id: "", index: -1 };
  }, [now]);
}

/** The rows that keys are about: the first, and the one behind the last. @returns {[number, number]} */
export function selectionRange() {
  const at = cursorIndex();
  if (at < 0) return [0, 0];
  const other = mark.value ? rows.places.get(mark.value) : undefined;
  return other === undefined ? [at, at + 1] : rangeOf(other, at);
}
