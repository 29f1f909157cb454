// @ts-check
/** One call that waits for a decision. Its arguments can be edited, and the decision can apply to later calls too. */

import { button } from "../../kit/button.js";
import { Editor } from "../../kit/editor.js";
import { checkbox, onValue, textField } from "../../kit/fields.js";
import { JsonView } from "../../kit/json-view.js";
import { h, html, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { argumentsText, isSameArguments, freeArguments, patternsFor, readArguments, ruleWords } from "./core/runs.js";
import { Repairs } from "./round.js";

/** @import { PendingCall } from "../../api-types.d.ts" */
/** @import { Arguments, Decision, Rule } from "./core/runs.js" */
/** @typedef {"" | "deny" | "answer" | "rule"} Form */

/**
 * `objection` is why arguments that were edited before cannot be used; `attempts` has what was typed then, by the key
 * of the call.
 * @param {{ call: PendingCall, objection: string, attempts: Record<string, string>, isBusy: boolean, onDecide:
 *   (decision: Decision) => void, key?: string }} props
 */
export function CallDecision({ call, objection, attempts, isBusy, onDecide }) {
  const [isEditing, setEditing] = useState(objection !== "");
  /** Opening the editor focuses it; a question that appears by itself must not take the focus. */
  const [isOpened, setOpened] = useState(false);
  /** What the editor begins with; what is typed into it is not given back to it. */
  const [written, setWritten] = useState((objection && attempts[call.key]) || argumentsText(call.arguments));
  const [typed, setTyped] = useState(written);
  const [form, setForm] = useState(/** @type {Form} */ (""));
  const root = useRef(/** @type {HTMLLIElement | null} */ (null));
  useLayoutEffect(() => {
    if (objection) setEditing(true);
  }, [objection]);
  const read = readArguments(typed, call.arguments);
  const problem = "problem" in read ? read.problem : "";
  const allow = (/** @type {Rule | undefined} */ rule, /** @type {boolean} */ isAlways = false) => {
    if ("problem" in read) return;
    const isEdited = !isSameArguments(read.value, call.arguments);
    attempts[call.key] = typed;
    setForm("");
    onDecide({
      decision: "allowed",
      ...(isEdited ? { arguments: read.value } : {}),
      ...(rule ? { rule } : {}),
      ...(isAlways ? { always: true } : {}),
    });
  };
  const toggle = () => {
    const original = argumentsText(call.arguments);
    setWritten(original);
    setTyped(original);
    setOpened(!isEditing);
    setEditing(!isEditing);
  };
  const open = (/** @type {Form} */ wanted) => setForm(form === wanted ? "" : wanted);
  return html`<li class="run-call stacked" ref=${root} aria-label=${`Call of ${call.name}`}>
    <div class="run-call-head">
      <code class="run-call-title">${call.name}</code>
      <span class="shell-gap"></span>
      ${button(isEditing ? "As the model wrote them" : "Edit arguments", toggle, {
        kind: "quiet",
        icon: isEditing ? "undo" : "edit",
        isPressed: isEditing,
      })}
    </div>
    ${
      isEditing
        ? html`<div class="run-arguments">
            ${h(Editor, {
              value: written,
              label: `Arguments of ${call.name}`,
              language: typeof call.arguments === "string" ? "text" : "json",
              isFocused: isOpened,
              onChange: setTyped,
              onDone: () => root.current?.querySelector("button")?.focus(),
            })}
          </div>`
        : h(ArgumentsView, { args: call.arguments, name: call.name })
    }
    ${problem && isEditing ? html`<p class="field-problem" role="alert">${problem}</p>` : null}
    ${objection ? html`<p class="field-problem objection" role="alert">${objection}</p>` : null}
    ${h(Repairs, { repairs: call.repairs })}
    <div class="run-choices">
      ${button("Allow", () => allow(undefined), { kind: "primary", isDisabled: isBusy || problem !== "" })}
      ${button("Allow for this run", () => allow({ tool: call.name, ruling: "allow" }), {
        title: `You are not asked about ${call.name} again in this run`,
        isDisabled: isBusy || problem !== "",
      })}
      ${button("Always…", () => open("rule"), { isDisabled: isBusy, isExpanded: form === "rule" })}
      ${button("Deny…", () => open("deny"), { kind: "danger", isDisabled: isBusy, isExpanded: form === "deny" })}
      ${button("Answer by hand…", () => open("answer"), { isDisabled: isBusy, isExpanded: form === "answer" })}
    </div>
    ${form === "deny" ? h(Deny, { onDecide }) : null}
    ${form === "answer" ? h(AnswerByHand, { onDecide }) : null}
    ${
      form === "rule" &&
      h(RuleForm, { call, args: "value" in read ? read.value : call.arguments, onAllow: (rule) => allow(rule, true) })
    }
  </li>`;
}

/** @param {{ args: Arguments, name: string }} props */
function ArgumentsView({ args, name }) {
  if (typeof args === "string")
    return html`<pre class="plain-text run-arguments" dir="auto">${args || "(empty)"}</pre>`;
  if (!Object.keys(args).length) return html`<p class="faint">without arguments</p>`;
  return html`<div class="run-arguments">
    ${h(JsonView, { text: argumentsText(args), open: 3, label: `Arguments of ${name}` })}
  </div>`;
}

/**
 * The first field of a form has the focus before the next key is pressed: else that would be a shortcut of the page.
 */
function useFocus() {
  const field = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => field.current?.focus(), []);
  return field;
}

/** @param {{ onDecide: (decision: Decision) => void }} props */
function Deny({ onDecide }) {
  const [reason, setReason] = useState("");
  const field = useFocus();
  /** @param {Event} event */
  const send = (event) => (event.preventDefault(), onDecide({ decision: "denied", reason: reason.trim() }));
  return html`<form class="decision-form" onSubmit=${send}>
    ${textField(reason, setReason, {
      label: "Why it is denied",
      ref: field,
      placeholder: "Why? The model reads this, and can try something else.",
    })}
    <button type="submit" class="button danger">Deny</button>
  </form>`;
}

/** @param {{ onDecide: (decision: Decision) => void }} props */
function AnswerByHand({ onDecide }) {
  const [text, setText] = useState("");
  const [isError, setError] = useState(false);
  const field = useFocus();
  return html`<div class="decision-form is-tall">
    <textarea
      class="field tall"
      ref=${field}
      rows="4"
      aria-label="Result for the model"
      placeholder="The tool does not run. The model gets this as its result."
      value=${text}
      onInput=${onValue(setText)}
    ></textarea>
    <div class="run-all">
      ${checkbox("as an error", isError, setError)}
      <span class="shell-gap"></span>
      ${button("Give this result", () => onDecide({ decision: "answered", text, is_error: isError }), {
        kind: "primary",
      })}
    </div>
  </div>`;
}

/**
 * Leave for calls like this one, kept for all runs: of this tool, where the chosen arguments fit their patterns.
 * @param {{ call: PendingCall, args: Arguments, onAllow: (rule: Rule) => void }} props
 */
function RuleForm({ call, args, onAllow }) {
  const field = useFocus();
  const [patterns, setPatterns] = useState(() => patternsFor(args).map((each) => ({ ...each, isUsed: true })));
  const change = (/** @type {number} */ index, /** @type {{ isUsed?: boolean, pattern?: string }} */ to) =>
    setPatterns(patterns.map((each, place) => (place === index ? { ...each, ...to } : each)));
  const used = patterns.filter((each) => each.isUsed);
  /** @type {Rule} */
  const rule = {
    tool: call.name,
    ruling: "allow",
    ...(used.length ? { arguments: Object.fromEntries(used.map((each) => [each.pointer, each.pattern])) } : {}),
  };
  const open = freeArguments(args, rule);
  return html`<form
    class="decision-form is-tall"
    onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), onAllow(rule))}
  >
    ${patterns.map(
      (each, index) => html`<div key=${each.pointer} class="pattern-line">
        ${checkbox(each.name, each.isUsed, (isUsed) => change(index, { isUsed }), { ref: index === 0 ? field : null })}
        ${textField(each.pattern, (value) => change(index, { pattern: value }), {
          label: `Pattern for ${each.name}`,
          kind: "mono",
          disabled: !each.isUsed,
        })}
      </div>`,
    )}
    <p class="soft">
      Runs without asking from now on, in this run and in all others: <b>${ruleWords(rule)}</b>
      .
      ${used.length && open.length ? html` <b>${open.join(", ")}</b> may be anything.` : null} ${
        patterns.length
          ? html`<span class="faint">
              <code>*</code> stops at a slash, <code>**</code> does not.
            </span>`
          : null
      }
    </p>
    <div class="run-all">
      <span class="faint">Revoke it under <a href="#/runs">Runs</a>.</span>
      <span class="shell-gap"></span>
      <button type="submit" class="button primary" ref=${patterns.length ? null : field}>Always allow</button>
    </div>
  </form>`;
}
