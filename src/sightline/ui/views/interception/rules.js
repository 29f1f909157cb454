// @ts-check
/** The rules that decide what is held, let pass or dropped. */

import { button, iconButton, linkButton } from "../../kit/button.js";
import { splitAtError } from "../../kit/core/filter.js";
import { Dialog } from "../../kit/dialog.js";
import { checkbox, selectField, textField } from "../../kit/fields.js";
import { toast } from "../../kit/toast.js";
import { h, html, useState } from "../../vendor/preact.js";
import { moveItem, newRule, refusalOf, sentence, rulesToSend } from "./core/interception.js";
import { mode, rules as kept, saveRules, setMode } from "./feed.js";

/** @import { Refusal, Rule } from "./core/interception.js" */

const ACTIONS = /** @type {const} */ ([
  ["hold", "Hold"],
  ["pass", "Let pass"],
  ["drop", "Drop"],
]);
const PHASES = /** @type {const} */ ([
  ["request", "requests"],
  ["tool_calls", "tool calls"],
]);
const ENDS = /** @type {const} */ ([
  ["send", "send it as it is"],
  ["drop", "drop it"],
]);

/** @param {{ onClose: () => void }} props */
export function Rules({ onClose }) {
  const [blank] = useState(() => [newRule()]);
  /** The user's own list; null before the first change, while the rules of the server are shown. */
  const [own, setList] = useState(/** @type {Rule[] | null} */ (null));
  const list = own ?? (kept.value.length ? kept.value : blank);
  const [refusal, setRefusal] = useState(/** @type {Refusal | null} */ (null));
  const [isSaving, setSaving] = useState(false);
  /** @param {number} index @param {Partial<Rule>} change */
  const change = (index, change) => {
    if (refusal?.rule === index) setRefusal(null);
    setList(list.map((rule, place) => (place === index ? { ...rule, ...change } : rule)));
  };
  /** @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    setSaving(true);
    try {
      await saveRules(rulesToSend(list));
      toast(list.length ? "The rules apply from the next request on." : "All rules are removed.");
      onClose();
    } catch (error) {
      setRefusal(refusalOf(/** @type {Error & { hint?: string }} */ (error)));
    } finally {
      setSaving(false);
    }
  };
  const footer = html`
    ${button("Add rule", () => setList([...list, newRule()]), { icon: "plus" })}
    <span class="shell-gap"></span>
    ${button("Cancel", onClose)}
    <button type="submit" form="rules-form" class="button primary" disabled=${isSaving}>Save rules</button>`;
  return h(Dialog, {
    title: "Rules",
    width: 920,
    isKept: own !== null,
    onClose,
    footer,
    children: html`
      <p class="soft">The first rule that matches decides. An empty filter matches everything.</p>
      ${
        mode.value === "rules"
          ? null
          : html`<p class="note">
              Rules are kept, but not used: the mode is <b>${mode.value}</b>
              . ${linkButton("Use rules", () => setMode("rules"))}
            </p>`
      }
      ${refusal && refusal.rule < 0 && html`<p class="refusal" role="alert">${refusal.message} ${refusal.hint}</p>`}
      <form id="rules-form" onSubmit=${save}>
        <ol class="rules stacked">
          ${list.map((rule, index) =>
            h(RuleRow, {
              key: index,
              rule,
              index,
              count: list.length,
              refusal: refusal?.rule === index ? refusal : null,
              onChange: (/** @type {Partial<Rule>} */ values) => change(index, values),
              onMove: (/** @type {-1 | 1} */ step) => setList(moveItem(list, index, step)),
              onRemove: () => setList(list.filter((_, place) => place !== index)),
            }),
          )}
        </ol>
        ${list.length ? null : html`<p class="rules-empty soft">No rules: nothing is held by rule.</p>`}
      </form>`,
  });
}

/**
 * @param {{ key?: number, rule: Rule, index: number, count: number, refusal: Refusal | null,
 *   onChange: (change: Partial<Rule>) => void, onMove: (step: -1 | 1) => void, onRemove: () => void }} props
 */
function RuleRow({ rule, index, count, refusal, onChange, onMove, onRemove }) {
  const name = `Rule ${index + 1}`;
  return html`<li class=${refusal ? "rule boxed wrong" : "rule boxed"} aria-label=${name}>
    <span class="rule-number faint number">${index + 1}</span>
    ${selectField(rule.action, (action) => onChange({ action }), ACTIONS, { label: `${name}: action` })}
    ${selectField(rule.phase, (phase) => onChange({ phase }), PHASES, { label: `${name}: phase` })}
    ${textField(rule.filter, (value) => onChange({ filter: value }), {
      label: `${name}: filter`,
      kind: "mono rule-filter",
      isCode: true,
      "aria-invalid": refusal?.error != null,
      placeholder: "everything, or e.g. model:claude-* session:demo",
    })}
    ${checkbox("once", rule.once, (once) => onChange({ once }), { kind: "rule-check in-row" })}
    <span class="rule-buttons">
      ${iconButton("up", `${name}: move up`, () => onMove(-1), { isDisabled: index === 0 })}
      ${iconButton("down", `${name}: move down`, () => onMove(1), { isDisabled: index === count - 1 })}
      ${iconButton("trash", `${name}: remove`, onRemove, { kind: "danger" })}
    </span>
    ${
      rule.action === "hold" &&
      html`<span class="rule-time in-row soft">
        After
        ${textField(rule.timeout_s ?? "", (value) => onChange({ timeout_s: value === "" ? null : Number(value) }), {
          label: `${name}: timeout in seconds`,
          kind: "number",
          type: "number",
          min: "0.1",
          step: "any",
          placeholder: "no limit",
        })}
        s
        ${selectField(rule.on_timeout ?? "send", (end) => onChange({ on_timeout: end }), ENDS, {
          label: `${name}: when the time is up`,
          disabled: rule.timeout_s == null,
        })}
      </span>`
    }
    <span class="rule-sentence faint">${sentence(rule).replace(/(\d) s /, "$1\u00a0s ")}</span>
    ${refusal ? h(RuleError, { refusal, text: rule.filter }) : null}
  </li>`;
}

/** @param {{ refusal: Refusal, text: string }} props */
function RuleError({ refusal, text }) {
  const { error } = refusal;
  if (!error)
    return html`<p class="rule-error bad" role="alert">
      ${refusal.message} <span class="soft">${refusal.hint}</span>
    </p>`;
  const [before, wrong, after] = splitAtError(text, error);
  return html`<div class="rule-error bad" role="alert">
    <pre class="caret-text">${before}<mark>${wrong}</mark>${after}</pre>
    <p>${error.message}. <span class="soft">${error.hint}</span></p>
  </div>`;
}
