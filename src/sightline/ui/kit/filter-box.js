// @ts-check
/** The filter field of a list: it completes terms and shows where the filter is wrong. */

import { h, html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { ApiError, get } from "./api.js";
import { button, iconButton } from "./button.js";
import { applyCompletion, errorOf, fitting, splitAtError } from "./core/filter.js";
import { Icon } from "./icon.js";
import { useShortcuts } from "./keyboard.js";
import { KeyCaps } from "./keycaps.js";

/** @import { Completion, FilterError } from "./core/filter.js" */

const PAUSE = 120;
/** A term that is not yet complete is no mistake; it is one after so many milliseconds. */
const SETTLED = 700;

/** Where a filter of exchanges is looked at. */
const TRAFFIC = { lookup: "/api/filter", cursor: "at", placeholder: "Words, or a filter: model:claude-* state:failed" };

/**
 * `onFilter` hears of every text that can be used, or with `isExecuted` of the one for which Enter is pressed;
 * `refused` is what the list itself said of the text. `onKey` sees keys first, and takes those that it says yes to;
 * it is given the text, and how to write another. Another `reset` puts the text back to what is applied.
 * @param {{ value: string, onFilter: (text: string) => void, onLeave: () => void, refused: ApiError | null,
 *   isExecuted?: boolean,
 *   source?: { lookup: string, cursor: string, placeholder: string }, group?: string, reset?: unknown,
 *   onKey?: (event: KeyboardEvent, text: string, write: (text: string) => void) => boolean }} props
 */
export function FilterBox({
  value,
  onFilter,
  onLeave,
  refused,
  isExecuted = false,
  source = TRAFFIC,
  group = "Traffic",
  reset,
  onKey: first,
}) {
  const [text, setText] = useState(value);
  // What the server says of an earlier text is no reason to stay here with the one that is written now.
  const [error, setError] = useState(/** @type {{ of: string, found: FilterError } | null} */ (null));
  const [offered, setOffered] = useState({ asked: "", list: /** @type {Completion[]} */ ([]) });
  const [chosen, setChosen] = useState(-1);
  const [isSettled, setSettled] = useState(true);
  /** @type {{ current: HTMLInputElement | null }} */
  const input = useRef(null);
  const offers = fitting(offered.list, offered.asked, text, input.current?.selectionStart ?? text.length);
  const asked = useRef({ timer: /** @type {any} */ (0), number: 0, own: value, hasLookup: true, reset });

  useShortcuts(group, [{ keys: "/", label: "Filter the list", run: () => input.current?.select() }]);
  useEffect(() => {
    if (isSettled) return undefined;
    const timer = setTimeout(() => setSettled(true), SETTLED);
    return () => clearTimeout(timer);
  }, [text, isSettled]);
  // Before the next letter, which is meant for the new text.
  useLayoutEffect(() => {
    if (value !== asked.current.own || reset !== asked.current.reset) {
      asked.current.own = value;
      asked.current.reset = reset;
      setText(value);
      setError(null);
    }
  }, [value, reset]);

  // A lookup that is answered after the user left the list must not bring them back.
  useLayoutEffect(
    () => () => {
      clearTimeout(asked.current.timer);
      asked.current.number += 1;
    },
    [],
  );

  /** @param {string} wanted */
  const use = (wanted) => {
    asked.current.own = wanted;
    onFilter(wanted);
  };
  /** @param {string} wanted @param {number} at @param {boolean} isUsed */
  const look = async (wanted, at, isUsed) => {
    const number = (asked.current.number += 1);
    if (!asked.current.hasLookup) return isUsed ? use(wanted) : undefined;
    try {
      const response = await get(
        `${source.lookup}?${new URLSearchParams({ text: wanted, [source.cursor]: String(at) })}`,
      );
      if (number !== asked.current.number) return undefined;
      setError(response.ok ? null : { of: wanted, found: errorOf(response.error) });
      const list = /** @type {Completion[]} */ (response.completions ?? []).filter(
        (each) => applyCompletion(wanted, at, each).text.trim() !== wanted.trim(),
      );
      setOffered({ asked: wanted, list: document.activeElement === input.current ? list.slice(0, 40) : [] });
      setChosen(-1);
      if (response.ok && isUsed) use(wanted);
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) asked.current.hasLookup = false;
      if (number === asked.current.number && isUsed) use(wanted);
    }
    return undefined;
  };
  /** @param {string} wanted @param {number} at */
  const wrote = (wanted, at) => {
    setText(wanted);
    setSettled(false);
    setChosen(-1);
    clearTimeout(asked.current.timer);
    // An empty command line offers nothing by itself: it stands over the history.
    if (isExecuted && !wanted.trim()) close();
    else asked.current.timer = setTimeout(() => look(wanted, at, !isExecuted), PAUSE);
  };
  /** @param {Completion} offer */
  const take = (offer) => {
    const element = input.current;
    if (!element) return;
    clearTimeout(asked.current.timer); // what was being written is not wanted any more
    const next = applyCompletion(text, element.selectionStart ?? text.length, offer);
    setText(next.text);
    queueMicrotask(() => element.setSelectionRange(next.at, next.at));
    void look(next.text, next.at, !isExecuted);
  };
  const execute = () => {
    clearTimeout(asked.current.timer);
    asked.current.number += 1; // what the server still says of an earlier filter is late
    close();
    setError(null);
    use(text);
  };
  const leave = () => {
    if (isExecuted) setText(value); // what is not applied is not left standing
    setError(null);
    onLeave();
  };
  const close = () => {
    setOffered({ asked: text, list: [] });
    setChosen(-1);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (first?.(event, text, (words) => wrote(words, words.length))) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const step = event.altKey ? undefined : { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const places = offers.length + 1; // one more for the text itself, which is -1
    if (step && offers.length) setChosen(((chosen + 1 + step + places) % places) - 1);
    else if (event.key === "Enter" && chosen >= 0) take(offers[chosen]);
    else if (event.key === "Tab" && offers.length && !event.shiftKey && text) take(offers[Math.max(chosen, 0)]);
    else if (event.key === "ArrowDown" && isExecuted)
      void look(text, input.current?.selectionStart ?? text.length, false);
    else if (event.key === "Enter" && isExecuted) execute();
    else if (event.key === "Enter" || (event.key === "ArrowDown" && !offers.length)) {
      close();
      setSettled(true);
      if (!found) onLeave();
    } else if (event.key === "Escape") {
      if (offers.length) close();
      else if (text) wrote("", 0);
      else leave();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const found =
    (error?.of === text ? error.found : null) ??
    (refused && (isExecuted || refused.code === "usage") && asked.current.own === text ? errorOf(refused) : null);
  const problem = isSettled ? found : null;
  return html`<div class="filter-box" role="search">
    <div class=${problem && !offers.length ? "filter-field in-row wrong" : "filter-field in-row"}>
      ${h(Icon, { name: "search" })}
      <input
        ref=${input}
        class="mono"
        type="text"
        role="combobox"
        aria-label="Filter"
        aria-expanded=${offers.length > 0}
        aria-controls="filter-offers"
        aria-activedescendant=${chosen >= 0 ? `offer-${chosen}` : null}
        aria-invalid=${problem != null}
        aria-describedby=${problem ? "filter-error" : null}
        placeholder=${source.placeholder}
        value=${text}
        spellcheck=${false}
        autocomplete="off"
        autocapitalize="off"
        onInput=${(/** @type {Event} */ event) => {
          const field = /** @type {HTMLInputElement} */ (event.target);
          wrote(field.value, field.selectionStart ?? field.value.length);
        }}
        onFocus=${() => isExecuted || look(text, input.current?.selectionStart ?? text.length, false)}
        onBlur=${() => setTimeout(() => document.activeElement === input.current || close(), 150)}
        onKeyDown=${onKey}
      />
      ${
        isExecuted &&
        text.trim() !== value.trim() &&
        button("Apply", execute, { kind: "quiet filter-pending", keys: "enter" })
      }
      ${
        text
          ? iconButton("close", "Clear the filter", () => {
              wrote("", 0);
              if (isExecuted) use("");
              else input.current?.focus();
            })
          : html`<span class="filter-key">${h(KeyCaps, { keys: "/" })}</span>`
      }
    </div>
    ${offers.length ? h(Offers, { offers, chosen, onTake: take }) : null}
    ${problem && !offers.length ? h(Problem, { text, problem }) : null}
  </div>`;
}

/** @param {{ offers: readonly Completion[], chosen: number, onTake: (offer: Completion) => void }} props */
function Offers({ offers, chosen, onTake }) {
  /** @type {{ current: HTMLUListElement | null }} */
  const list = useRef(null);
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [chosen]);
  /** @param {Event} event */
  const keepFocus = (event) => event.preventDefault();
  return html`<ul
    ref=${list}
    id="filter-offers"
    class="filter-offers"
    role="listbox"
    aria-label="Completions"
    onMouseDown=${keepFocus}
  >
    ${offers.map(
      (each, index) => html`<li
        key=${each.text}
        id=${`offer-${index}`}
        role="option"
        aria-selected=${index === chosen}
        onClick=${() => onTake(each)}
      >
        <span class="mono">${each.label ?? each.text}</span>
        <span class="faint cut">${(each.help ?? "").replaceAll("`", "")}</span>
      </li>`,
    )}
  </ul>`;
}

/** @param {{ text: string, problem: FilterError }} props */
function Problem({ text, problem }) {
  const [before, wrong, after] = splitAtError(text, problem);
  return html`<div id="filter-error" class="filter-error" role="alert">
    <pre class="caret-text" aria-hidden="true">${before}<mark>${wrong}</mark>${after}</pre>
    <p>${problem.message}. <span class="soft">${problem.hint}</span></p>
  </div>`;
}
