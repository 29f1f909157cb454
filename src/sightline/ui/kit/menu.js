// @ts-check
/** A button that opens a list of choices: arrows move, Enter chooses, Escape closes. */

import { h, html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Icon } from "./icon.js";
import { KeyCaps } from "./keycaps.js";

/**
 * Of choices with `isChosen` one is chosen; each with `isChecked` is by itself.
 * @typedef {{ label: string, run: () => void, detail?: string, isChosen?: boolean, isChecked?: boolean, isDanger?:
 *   boolean, keys?: string } | "line"} Choice
 */

/** @param {{ label: string, children?: any, choices: Choice[], class?: string, align?: "left" | "right" }} props */
export function Menu({ label, children, choices, class: name = "button quiet icon", align = "right" }) {
  const [isOpen, setOpen] = useState(false);
  /** @type {{ current: HTMLDivElement | null }} */
  const root = useRef(null);
  const items = () => /** @type {HTMLElement[]} */ ([...(root.current?.querySelectorAll("[role^=menuitem]") ?? [])]);
  // Before the next key, which belongs to the list.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    const list = /** @type {HTMLElement | null | undefined} */ (root.current?.querySelector("[role=menu]"));
    if (list) keepInWindow(list);
    (items().find((each) => each.getAttribute("aria-checked") === "true") ?? items()[0])?.focus();
    /** @param {PointerEvent} event */
    const outside = (event) => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) setOpen(false);
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && isOpen) close();
    else if (event.key === "Tab") setOpen(false);
    else if (step && isOpen) {
      const all = items();
      all[(all.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step + all.length) % all.length]?.focus();
    } else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  const hasWords = children && children.type !== Icon;
  const hasMarks = choices.some((each) => each !== "line" && markOf(each) !== undefined);
  return html`<div class="menu" ref=${root} onKeyDown=${onKey}>
    <button
      type="button"
      class=${name}
      title=${label}
      aria-haspopup="menu"
      aria-expanded=${isOpen}
      onClick=${() => setOpen(!isOpen)}
    >
      <span class="unseen">${label}${hasWords ? ": " : ""}</span>
      ${children ?? h(Icon, { name: "more" })}
    </button>
    ${
      isOpen &&
      html`<div class=${`menu-list ${align}`} role="menu" aria-label=${label}>
        ${choices.map((each) =>
          each === "line"
            ? html`<hr />`
            : html`<button
                type="button"
                role=${roleOf(each)}
                aria-checked=${markOf(each) ?? null}
                tabindex="-1"
                class=${each.isDanger ? "menu-item bare in-row danger" : "menu-item bare in-row"}
                onClick=${() => {
                  close();
                  each.run();
                }}
              >
                ${hasMarks && html`<span class="menu-mark">${markOf(each) ? h(Icon, { name: "check" }) : null}</span>`}
                <span class="menu-text">
                  <span>${each.label}</span>
                  ${each.detail ? html`<span class="faint">${each.detail}</span>` : null}
                </span>
                ${each.keys ? h(KeyCaps, { keys: each.keys }) : null}
              </button>`,
        )}
      </div>`
    }
  </div>`;
}

/** @param {Exclude<Choice, "line">} choice */
function roleOf(choice) {
  if (choice.isChosen !== undefined) return "menuitemradio";
  return choice.isChecked === undefined ? "menuitem" : "menuitemcheckbox";
}

/** @param {Exclude<Choice, "line">} choice */
const markOf = (choice) => choice.isChosen ?? choice.isChecked;

/** Move a list that would leave the window back into it. @param {HTMLElement} list */
function keepInWindow(list) {
  const room = 8;
  const { left, right, bottom, height } = list.getBoundingClientRect();
  const aside = left < room ? room - left : Math.min(innerWidth - room - right, 0);
  const anchor = list.parentElement?.getBoundingClientRect();
  // What scrolls cuts off a list that leaves it.
  const edge = list.closest("[data-edge]")?.getBoundingClientRect();
  const [above, below] = anchor
    ? [anchor.top - (edge?.top ?? 0) - room, (edge?.bottom ?? innerHeight) - anchor.bottom - room]
    : [0, Infinity];
  const isUp = bottom > (edge?.bottom ?? innerHeight) - room && above > below;
  const shown = Math.min(height, Math.max(isUp ? above : below, 120));
  if (shown < height) Object.assign(list.style, { maxHeight: `${shown}px`, overflowY: "auto" });
  const up = isUp && anchor ? -(shown + anchor.height + 8) : 0;
  if (aside || up) list.style.transform = `translate(${aside}px, ${up}px)`;
}
