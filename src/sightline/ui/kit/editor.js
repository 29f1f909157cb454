// @ts-check
/**
 * CodeMirror, loaded when the first editor opens. Until then, or if it cannot be loaded, a plain text field is used.
 */

import { h, html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { withLineEnds } from "./core/edits.js";
import { findChange } from "./core/text-diff.js";

/** @import { EditorView } from "../vendor/codemirror.js" */
/** @typedef {typeof import("../vendor/codemirror.js")} CodeMirror */

/** @type {CodeMirror | null} */
let loaded = null;
/** @type {Promise<CodeMirror> | null} */
let loading = null;

/** Load it ahead of time, for instance when a request is held. @returns {Promise<CodeMirror>} */
export function loadEditor() {
  loading ??= import("../vendor/codemirror.js").then(
    (module) => (loaded = module),
    (error) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}

/**
 * @typedef {object} EditorProps
 * @property {string} value taken when it opens; a later value replaces the text only if it is not what was typed
 * @property {string} label
 * @property {"markdown" | "json" | "text"} [language]
 * @property {string | null} [original] with it, what differs is marked and can be taken back piece by piece
 * @property {boolean} [isReadOnly]
 * @property {boolean} [isFocused] take the focus when it opens
 * @property {boolean} [isSelected] select the whole text when it opens
 * @property {(text: string) => void} [onChange]
 * @property {() => void} [onDone] Escape, or Ctrl+Enter where nothing else takes it
 * @property {string} [key]
 */

/** @param {EditorProps} props */
export function Editor(props) {
  const [module, setModule] = useState(loaded);
  useEffect(() => {
    let isThere = true;
    if (!module)
      loadEditor().then(
        (code) => isThere && setModule(code),
        () => {},
      );
    return () => void (isThere = false);
  }, []);
  /** What was typed into the plain field is carried over when the real one comes, and so is the cursor. */
  const typed = useRef(/** @type {string | null} */ (null));
  const left = useRef(/** @type {Left} */ (null));
  const onChange = (/** @type {string} */ text) => {
    typed.current = text;
    props.onChange?.(text);
  };
  return module
    ? h(Rich, { ...props, value: typed.current ?? props.value, onChange: props.onChange, module, left })
    : h(Plain, { ...props, onChange, left });
}

/**
 * Where the cursor was in the plain field, if it had the focus.
 * @typedef {{ anchor: number, head: number } | null} Left
 */

/** @param {EditorProps & { left: { current: Left } }} props */
function Plain({ value, label, isReadOnly, isFocused, isSelected, onChange, onDone, left }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  // Letters that are typed before the real one is there are no shortcuts of the page.
  useLayoutEffect(() => {
    const own = field.current;
    if (!own) return undefined;
    own.setSelectionRange(isSelected ? 0 : own.value.length, own.value.length);
    if (isFocused) own.focus();
    return () => {
      if (document.activeElement !== own) return;
      // A text field counts a line end as one character, however it is written.
      const place = (/** @type {number} */ at) => withLineEnds(own.value.slice(0, at), value).length;
      left.current = { anchor: place(own.selectionStart), head: place(own.selectionEnd) };
    };
  }, []);
  return html`<textarea
    ref=${field}
    class="editor-plain mono"
    aria-label=${label}
    readonly=${isReadOnly}
    defaultValue=${value}
    spellcheck=${false}
    onInput=${(/** @type {InputEvent} */ event) =>
      onChange?.(withLineEnds(/** @type {HTMLTextAreaElement} */ (event.target).value, value))}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) =>
      event.key === "Escape" && (event.preventDefault(), event.stopPropagation(), onDone?.())}
  ></textarea>`;
}

/** @param {EditorProps & { module: CodeMirror, left: { current: Left } }} props */
function Rich(props) {
  const host = useRef(/** @type {HTMLDivElement | null} */ (null));
  const editor = useRef(/** @type {EditorView | null} */ (null));
  const latest = useRef(props);
  /** What was typed or taken last: an answer that says the same must not move the cursor. */
  const known = useRef(props.value);
  latest.current = props;
  const hasMerge = typeof props.original === "string";

  useLayoutEffect(() => {
    const { module, isFocused, isSelected, left } = latest.current;
    const before = editor.current?.state;
    const text = before ? before.doc.toString() : latest.current.value;
    const place = left.current && {
      anchor: Math.min(left.current.anchor, text.length),
      head: Math.min(left.current.head, text.length),
    };
    left.current = null;
    const view = new module.EditorView({
      doc: text,
      selection: before?.selection ??
        place ?? { anchor: isSelected || !isFocused ? 0 : text.length, head: isFocused ? text.length : 0 },
      extensions: extensions(module, latest, known),
      parent: /** @type {HTMLElement} */ (host.current),
    });
    editor.current = view;
    if (isFocused || place) view.focus();
    return () => view.destroy();
  }, [props.module, hasMerge, props.language, props.isReadOnly]);

  // Before the next key: what is typed between another value and this would be taken back.
  useLayoutEffect(() => {
    const view = editor.current;
    if (!view || props.value === known.current) return;
    known.current = props.value;
    const [from, to, end] = findChange(view.state.doc.toString(), props.value);
    // Only what differs, so that the cursor stays where it is.
    if (from < to || from < end) view.dispatch({ changes: { from, to, insert: props.value.slice(from, end) } });
  }, [props.value]);

  return html`<div class="editor" ref=${host}></div>`;
}

/** @param {CodeMirror} module @param {{ current: EditorProps }} latest @param {{ current: string }} known */
function extensions(module, latest, known) {
  const { EditorView, EditorState, keymap, Prec } = module;
  const { label, language, original, isReadOnly } = latest.current;
  const done = () => (latest.current.onDone?.(), true);
  const list = [
    Prec.high(
      keymap.of([
        { key: "Escape", run: (view) => (module.searchPanelOpen(view.state) ? module.closeSearchPanel(view) : done()) },
      ]),
    ),
    module.history(),
    module.drawSelection(),
    module.highlightSpecialChars(),
    module.bracketMatching(),
    module.search({ top: true }),
    module.highlightSelectionMatches(),
    EditorView.lineWrapping,
    EditorView.perLineTextDirection.of(true),
    keymap.of([
      ...module.defaultKeymap.filter((binding) => binding.key !== "Mod-Enter"),
      ...module.historyKeymap,
      ...module.searchKeymap,
    ]),
    module.syntaxHighlighting(module.classHighlighter),
    EditorView.contentAttributes.of({
      tabindex: "0", // axe and some readers do not take what can be written to as something to focus
      "aria-label": label,
      spellcheck: "false",
      autocorrect: "off",
      autocapitalize: "off",
    }),
    EditorView.domEventHandlers({ beforeinput: (event, view) => insertOverSelection(event, view) }),
    EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      const text = update.state.doc.toString();
      if (text === known.current) return;
      known.current = text;
      latest.current.onChange?.(text);
    }),
  ];
  // A line break is what the text has: a document with \r\n would otherwise come back changed.
  list.push(EditorState.lineSeparator.of("\n"));
  if (isReadOnly) list.push(EditorState.readOnly.of(true));
  if (language === "json") list.push(module.json());
  if (language === "markdown") list.push(module.markdown());
  if (typeof original === "string")
    list.push(
      module.unifiedMergeView({
        original: module.Text.of(original.split("\n")),
        mergeControls: !isReadOnly,
        highlightChanges: true,
        gutter: true,
        collapseUnchanged: { margin: 3, minSize: 8 },
      }),
    );
  return list;
}

/**
 * A browser that replaces a selection by itself keeps its colours in a style attribute, which this page forbids.
 * @param {InputEvent} event
 * @param {EditorView} view
 */
function insertOverSelection(event, view) {
  const { state } = view;
  if (
    event.inputType !== "insertText" ||
    event.data === null ||
    event.isComposing ||
    state.readOnly ||
    state.selection.main.empty
  )
    return false;
  view.dispatch(state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}
