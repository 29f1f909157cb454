// @ts-check
/** JSON as a tree that folds, drawn from the text itself. A leaf can be edited in place; its type stays. */

import { h, html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { linkButton } from "./button.js";
import { withLineEnds } from "./core/edits.js";
import { exactValue, keyOf, scan, step, stringOf } from "./core/json.js";
import { memo } from "./memo.js";

/** @import { Node } from "./core/json.js" */
/** @typedef {(pointer: string, value: unknown) => void} Setter */

const OPEN_DEPTH = 2;
const MOST_ITEMS = 200;
const LONGEST_LEAF = 400;

/** The open fields with a text that is not JSON. A document must not be sent without what they show. */
export const brokenFields = /** @type {Set<HTMLElement>} */ (new Set());

/** `pointer` is the place of the text in its document; with `onSet` leaves can be edited. */
export const JsonView = memo(
  function JsonView(
    /** @type {{ text: string, pointer?: string, open?: number, label?: string, onSet?: Setter | null }} */ props,
  ) {
    const root = useMemo(() => scan(props.text), [props.text]);
    if (!root) return html`<pre class="plain-text json-broken" dir="ltr">${props.text}</pre>`;
    const open = props.open ?? OPEN_DEPTH;
    return html`<div class="json" role="tree" aria-label=${props.label ?? "JSON"} dir="ltr">
      ${h(Branch, {
        text: props.text,
        node: root,
        pointer: props.pointer ?? "",
        depth: 0,
        open,
        onSet: props.onSet ?? null,
        name: null,
      })}
    </div>`;
  },
);

/**
 * @typedef {{ text: string, node: Node, pointer: string, depth: number, open: number, onSet: Setter | null, name:
 *   string | null, key?: string }} BranchProps
 */

/** @param {BranchProps} props */
function Branch({ text, node, pointer, depth, open, onSet, name }) {
  const items = node.items ?? [];
  const [isOpen, setOpen] = useState(depth < open && items.length <= 40);
  const [most, setMost] = useState(MOST_ITEMS);
  const key = name === null ? null : html`<span class="json-key">${name}</span><span class="json-sign">: </span>`;
  if (!node.items) {
    return html`<div class="json-row" role="treeitem" aria-level=${depth + 1}>
      ${key}
      ${h(Leaf, { text, node, pointer, name: name ?? "value", onSet })}
    </div>`;
  }
  const isArray = node.kind === "array";
  const [left, right] = isArray ? ["[", "]"] : ["{", "}"];
  if (!items.length)
    return html`<div class="json-row" role="treeitem" aria-level=${depth + 1}>
      ${key}
      <span class="json-sign">${left}${right}</span>
    </div>`;
  const toggle = () => setOpen(!isOpen);
  return html`<div class="json-branch" role="treeitem" aria-level=${depth + 1} aria-expanded=${isOpen}>
    <button type="button" class="bare json-fold" aria-expanded=${isOpen} onClick=${toggle}>
      <span class=${isOpen ? "json-arrow open" : "json-arrow"} aria-hidden="true">▸</span>
      ${key}
      <span class="json-sign">${left}</span>
      ${
        isOpen
          ? null
          : html`<span class="json-summary">${summary(text, node)}</span>
              <span class="json-sign">${right}</span>`
      }
    </button>
    ${
      isOpen &&
      html`<div class="json-items" role="group">
        ${items.slice(0, most).map((item, index) =>
          h(Branch, {
            key: String(index),
            text,
            node: item,
            pointer: pointer + step(isArray ? String(index) : keyOf(text, item)),
            depth: depth + 1,
            open,
            onSet,
            name: isArray ? String(index) : keyOf(text, item),
          }),
        )}
        ${items.length > most && linkButton(html`${items.length - most} more`, () => setMost(most + 1000))}
      </div>
      <span class="json-sign">${right}</span>`
    }
  </div>`;
}

/** @param {string} text @param {Node} node */
function summary(text, node) {
  const items = node.items ?? [];
  if (node.kind === "array") return ` ${items.length} ${items.length === 1 ? "item" : "items"} `;
  const keys = items.slice(0, 4).map((item) => keyOf(text, item));
  return ` ${keys.join(", ")}${items.length > 4 ? ", …" : ""} `;
}

/** @param {{ text: string, node: Node, pointer: string, name: string, onSet: Setter | null }} props */
function Leaf({ text, node, pointer, name, onSet }) {
  const [isEditing, setEditing] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  /** Who closed it by a key goes on from here; who has clicked elsewhere is there. */
  const isBack = useRef(false);
  useLayoutEffect(() => {
    if (!isEditing && isBack.current) button.current?.focus();
    isBack.current = false;
  }, [isEditing]);
  const raw = text.slice(node.start, node.end);
  const isLong = raw.length > LONGEST_LEAF;
  const shown = node.kind === "string" && !isLong ? JSON.stringify(stringOf(text, node)) : raw;
  const cut = isLong && !isWhole ? shown.slice(0, LONGEST_LEAF) + "…" : shown;
  if (isEditing && onSet) {
    const done = (/** @type {unknown} */ value, /** @type {boolean} */ isSet, /** @type {boolean} */ isByKey) => {
      isBack.current = isByKey;
      setEditing(false);
      if (isSet) onSet(pointer, value);
    };
    return h(LeafInput, { kind: node.kind, value: node.kind === "string" ? stringOf(text, node) : raw, name, done });
  }
  const value = html`<span class=${`json-value ${node.kind}`}>${cut}</span>`;
  const more =
    isLong && !isWhole
      ? html` ${linkButton(`all ${raw.length.toLocaleString("en-US")} characters`, () => setWhole(true))}`
      : null;
  if (!onSet) return html`${value}${more}`;
  /** Opens when pressed: leaving the value edited before may draw a warning above this one, and it would move away from
   * under the pointer before the button is released. */
  const press = (/** @type {MouseEvent} */ event) => {
    if (event.button !== 0) return;
    event.preventDefault(); // the press would take the focus from the field that opens
    setEditing(true);
  };
  return html`<button
      type="button"
      ref=${button}
      class="bare json-leaf"
      title="Edit this value"
      aria-label=${`Edit ${name}: ${cut.slice(0, 80)}`}
      onMouseDown=${press}
      onClick=${() => setEditing(true)}
    >
      ${value}
    </button>
    ${more}`;
}

/**
 * @param {{ kind: string, value: string, name: string, done: (value: unknown, isSet: boolean, isByKey: boolean) => void
 *   }} props
 */
function LeafInput({ kind, value, name, done }) {
  const [problem, setProblem] = useState("");
  const isClosed = useRef(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    const own = field.current;
    if (!problem || !own) return undefined;
    brokenFields.add(own);
    return () => void brokenFields.delete(own);
  }, [problem]);
  const finish = (/** @type {string} */ text, /** @type {boolean} */ isSet, isByKey = true) => {
    if (isClosed.current) return;
    const typed = withLineEnds(text, value);
    if (!isSet || typed === value) {
      isClosed.current = true;
      done(null, false, isByKey);
      return;
    }
    let meant = /** @type {unknown} */ (typed);
    if (kind !== "string") {
      try {
        meant = exactValue(typed);
      } catch {
        setProblem(`Not JSON: write ${kind === "number" ? "a number" : "true, false or null"}, or a text in quotes.`);
        return;
      }
    }
    isClosed.current = true;
    done(meant, true, isByKey);
  };
  const isTall = value.length > 60 || /[\r\n]/.test(value);
  const shared = {
    class: "field json-input mono",
    "aria-label": `Value of ${name}`,
    "aria-invalid": problem ? "true" : null,
    title: problem || "Enter applies, Escape leaves it as it was",
    ref: (/** @type {HTMLInputElement | null} */ input) => {
      field.current = input;
      if (input && document.activeElement !== input && !isClosed.current) input.focus();
    },
    onBlur: (/** @type {FocusEvent} */ event) =>
      finish(/** @type {HTMLInputElement} */ (event.target).value, true, false),
    onKeyDown: (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      const input = /** @type {HTMLInputElement} */ (event.target);
      if (event.key === "Escape") finish(input.value, false);
      else if (event.key === "Enter" && (!isTall || event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        finish(input.value, true);
      }
    },
  };
  return html`${
    isTall
      ? h("textarea", { ...shared, rows: Math.min(10, Math.ceil(value.length / 60) + 1), defaultValue: value })
      : h("input", { ...shared, defaultValue: value, size: Math.max(6, value.length + 2) })
  }
    ${problem ? html`<span class="field-problem" role="alert">${problem}</span>` : null}`;
}
