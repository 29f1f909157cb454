// @ts-check
/** A dialog with a text field and the list of what it finds: arrows choose an item, Enter or a click takes it. */

import { h, html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

const STEPS = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 });

/**
 * `items` are null while they load; Enter is then obeyed as soon as they are there. `first` is the item that is chosen
 * before the user moves. `renderItem` gives the contents of an option, `headingOf` a heading above it.
 * @template T
 * @typedef {{
 *   id: string, title: string, label: string, listLabel: string, placeholder: string,
 *   text: string, onText: (text: string) => void,
 *   items: readonly T[] | null, keyOf: (item: T, index: number) => string, first?: number,
 *   renderItem: (item: T) => any, headingOf?: (item: T, index: number) => any, itemClass?: (item: T) => string,
 *   onTake: (item: T) => void, onClose: () => void,
 *   class?: string, heading?: any, nothing?: any,
 * }} Props
 */

/** @template T @param {Props<T>} props */
export function combobox(props) {
  return h(ComboboxDialog, /** @type {Props<any>} */ (props));
}

/** @param {Props<any>} props */
function ComboboxDialog(props) {
  const { id, title, text, items, first = 0, onTake, onClose } = props;
  const [moved, setMoved] = useState(-1);
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  const isEnterPending = useRef(false);
  const count = items?.length ?? 0;
  const chosen = Math.min(moved < 0 ? first : moved, count - 1);
  useEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [chosen, items],
  );
  const take = () => {
    const item = items?.[chosen];
    if (item !== undefined) onTake(item);
  };
  useLayoutEffect(() => {
    if (!items || !isEnterPending.current) return;
    isEnterPending.current = false;
    take();
  }, [items === null]);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const step = STEPS[event.key];
    if (step) setMoved(Math.min(Math.max(chosen + step, 0), count - 1));
    else if (event.key === "Enter" && items) take();
    else if (event.key === "Enter") isEnterPending.current = true;
    else return;
    event.preventDefault();
  };
  /** @param {Event} event */
  const onInput = (event) => {
    isEnterPending.current = false;
    setMoved(-1);
    props.onText(/** @type {HTMLInputElement} */ (event.target).value);
  };
  return h(Dialog, {
    title,
    isBare: true,
    class: props.class ? `palette ${props.class}` : "palette",
    width: 620,
    onClose,
    children: html`
      ${props.heading ?? null}
      <div class="palette-field in-row">
        ${h(Icon, { name: "search" })}
        <input
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls=${`${id}-list`}
          aria-activedescendant=${`${id}-${chosen}`}
          aria-label=${props.label}
          placeholder=${props.placeholder}
          spellcheck=${false}
          autocomplete="off"
          value=${text}
          onInput=${onInput}
          onKeyDown=${onKey}
        />
        <kbd class="key">Esc</kbd>
      </div>
      <ul id=${`${id}-list`} class="palette-list" role="listbox" aria-label=${props.listLabel} ref=${list}>
        ${items === null ? html`<li class="palette-group" role="presentation">Loading…</li>` : null}
        ${items && !count ? (props.nothing ?? null) : null}
        ${(items ?? []).map(
          (item, index) => html`
            ${props.headingOf?.(item, index) ?? null}
            <li
              key=${props.keyOf(item, index)}
              id=${`${id}-${index}`}
              role="option"
              aria-selected=${index === chosen}
              class=${["palette-item", props.itemClass?.(item)].filter(Boolean).join(" ")}
              onMouseMove=${() => setMoved(index)}
              onClick=${() => onTake(item)}
            >
              ${props.renderItem(item)}
            </li>`,
        )}
      </ul>`,
  });
}
