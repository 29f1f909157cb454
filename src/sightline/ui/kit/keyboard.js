// @ts-check
/** Every shortcut of the page: what is registered here works, and is listed in the help and in the palette. */

import { computed, signal, useLayoutEffect } from "../vendor/preact.js";
import { CHORD_MS, matchSequence, keyOf } from "./core/keys.js";

/**
 * `keys` as in `kit/core/keys.js`, or "" for a command without any. `whileTyping` also works inside a text field;
 * `isHidden` is not offered by the palette, `isUnlisted` not named by the help.
 * @typedef {{ keys: string, label: string, run: () => void, whileTyping?: boolean, also?: string[], isHidden?: boolean,
 *   isUnlisted?: boolean, detail?: string }} Wanted
 */
/** @typedef {Wanted & { group: string }} Shortcut */

const registered = signal(/** @type {readonly (readonly Shortcut[])[]} */ ([]));

/** All that can be done now; what was registered last comes first. */
export const shortcuts = computed(() => [...registered.value].reverse().flat());

/**
 * Register shortcuts for as long as the component is shown.
 * @param {string} group under which the help lists them
 * @param {readonly Wanted[]} wanted
 * @param {readonly unknown[]} inputs when one of these changes they are registered anew
 */
export function useShortcuts(group, wanted, inputs = []) {
  // Before the next paint: a user who sees a button may already press its key.
  useLayoutEffect(() => {
    const own = wanted.map((each) => ({ ...each, group }));
    registered.value = [...registered.value, own];
    return () => {
      registered.value = registered.value.filter((each) => each !== own);
    };
  }, inputs);
}

/**
 * What the arrow keys do in tabs and radio buttons side by side: choose the next one or the one before, and focus it.
 * @param {number} count
 * @param {number} chosen
 * @param {(place: number) => unknown} choose
 */
export function onArrows(count, chosen, choose) {
  return (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (chosen + step + count) % count;
    choose(next);
    const group = event.currentTarget;
    if (group instanceof HTMLElement) /** @type {HTMLElement} */ (group.children[next]).focus();
  };
}

let pending = "";
let pendingSince = 0;

/** Begin to hear keys; called once. */
export function listen() {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const key = keyOf(event);
    if (!key || document.querySelector("dialog[open]")) return;
    if ((key === "enter" || key === "space") && isControl(event.target)) return;
    const isTyping = isText(event.target);
    const usable = shortcuts.value.filter((each) => each.keys && (!isTyping || each.whileTyping));
    const before = event.timeStamp - pendingSince < CHORD_MS ? pending : "";
    const step = matchSequence(
      usable.flatMap((each) => [each.keys, ...(each.also ?? [])]),
      before,
      key,
    );
    pending = step.pending;
    pendingSince = performance.now();
    const found = usable.find((each) => each.keys === step.found || each.also?.includes(step.found));
    if (step.found && found) {
      event.preventDefault();
      found.run();
    }
  });
  // The second of two keys has its time from when the first was let go: a page that is busy must not eat it up.
  addEventListener("keyup", () => (pendingSince = performance.now()));
}

/** @param {EventTarget | null} target */
function isText(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Whether the key means what has the focus. @param {EventTarget | null} target */
function isControl(target) {
  return (
    target instanceof Element && target.closest("a, button, summary, [role=button], [role=tab], [role=option]") !== null
  );
}
