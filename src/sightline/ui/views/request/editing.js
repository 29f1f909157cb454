// @ts-check
/** The open editor of a section or part: the text, its original, and the server's refusal. */

import { bytes } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { exactValue, isJson, nodeAt, scan } from "../../kit/core/json.js";
import { Editor } from "../../kit/editor.js";
import { checkbox } from "../../kit/fields.js";
import { h, html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";

/** @import { Section } from "../../api-types.d.ts" */
/** @import { Target } from "../../kit/core/edits.js" */
/** @import { Desk } from "./desk.js" */

/**
 * `count` is how many text parts the text stands for.
 * @param {{ desk: Desk, target: Target, text: string, label: string, language: "markdown" | "json" | "text", count:
 *   number, key?: string }} props
 */
export function TextPane({ desk, target, text, label, language, count }) {
  const [original, setOriginal] = useState(/** @type {string | null} */ (null));
  const isCompared = desk.isCompared.value;
  const refusal = desk.refusals.value.get(target.part ?? target.section);
  /** What was typed last. An answer to an earlier key must not take later ones back. */
  const latest = useRef(/** @type {string | null} */ (null));
  const value = latest.current !== null && (desk.isBusy.value || refusal) ? latest.current : text;
  useEffect(() => {
    let isThere = true;
    if (isCompared) void desk.original(target).then((found) => isThere && setOriginal(found));
    return () => void (isThere = false);
  }, [isCompared, target.section, target.part]);
  const done = () => desk.stopEditing();
  /** Half-written JSON is kept here until it is whole; as long as it is not, nothing is sent. @param {string} typed */
  const change = (typed) => {
    latest.current = typed;
    if (language !== "json" || isJson(typed)) desk.type(target, typed);
    else desk.hold(target, "it is not JSON yet.");
  };
  return html`<div class="editing">
    ${h(Editor, {
      value,
      label: `Edit ${label}`,
      language,
      original: isCompared ? original : null,
      isFocused: true,
      isSelected: desk.editing.peek()?.isNew,
      onChange: change,
      onDone: done,
    })}
    ${refusal ? html`<p class="editing-refusal" role="alert">Not applied: ${refusal}</p>` : null}
    <div class="editing-foot in-row">
      ${button("Done", done, { keys: "escape" })}
      ${checkbox("Compare with the original", isCompared, (isOn) => (desk.isCompared.value = isOn))}
      <span class="faint">
        ${count > 1 ? `One text over ${count} parts: each change stays in the part that it touches.` : ""}
        ${isCompared && original === null ? " There is no original to compare with." : ""}
      </span>
    </div>
  </div>`;
}

/**
 * A whole item as JSON; it goes to the server when it is applied, or with the request that it belongs to.
 * @param {{ desk: Desk, section: Section }} props
 */
export function JsonPane({ desk, section }) {
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isThere = true;
    const of = desk.view.peek()?.hold?.phase === "tool_calls" ? "?of=held" : "";
    bytes(`${desk.path}/body${of}`).then(
      (body) => {
        if (!isThere) return;
        const whole = new TextDecoder().decode(body);
        const root = scan(whole);
        const node = root && nodeAt(whole, root, section.kind === "options" ? "" : section.pointer);
        const found = node ? JSON.stringify(exactValue(whole.slice(node.start, node.end)), null, 2) : null;
        if (found === null) setProblem("This section has no JSON of its own.");
        setText(found);
        setTyped(found ?? "");
      },
      (error) => isThere && setProblem(error.message),
    );
    return () => void (isThere = false);
  }, [section.id]);
  const apply = async () => {
    let value;
    try {
      value = exactValue(typed);
    } catch (error) {
      setProblem(`Not JSON: ${/** @type {Error} */ (error).message}`);
      return false;
    }
    const isWhole = section.kind === "options" || section.pointer === "";
    const operation = isWhole ? { op: "set_body", body: typed } : { op: "set", pointer: section.pointer, value };
    if (!(await desk.apply(operation))) return false;
    desk.stopEditing();
    return true;
  };
  // It is on screen, so the request must not leave without it.
  useLayoutEffect(() => {
    desk.applyOpen = text !== null && typed !== text ? apply : null;
    return () => void (desk.applyOpen = null);
  });
  if (text === null && !problem) return html`<p class="faint">Loading…</p>`;
  return html`<div class="editing">
    ${
      text !== null &&
      h(Editor, {
        value: text,
        label: `${section.label} as JSON`,
        language: "json",
        isFocused: true,
        onChange: setTyped,
        onDone: () => desk.stopEditing(),
      })
    }
    ${problem ? html`<p class="editing-refusal" role="alert">${problem}</p>` : null}
    <div class="editing-foot in-row">
      ${button("Apply", apply, { kind: "primary", isDisabled: text === null || typed === text })}
      ${button("Cancel", () => desk.stopEditing(), { keys: "escape" })}
    </div>
  </div>`;
}
