// @ts-check
/** The editor of a topic: prompt, model, parameters and tools. Empty fields show what is inherited. */

import { about } from "../../kit/about.js";
import { post, put } from "../../kit/api.js";
import { button, linkButton } from "../../kit/button.js";
import { Dialog } from "../../kit/dialog.js";
import { checkbox, onValue, selectField, textField } from "../../kit/fields.js";
import { foldBlock } from "../../kit/fold-block.js";
import { Icon } from "../../kit/icon.js";
import { useResource } from "../../kit/resource.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";
import { inChat } from "./chats.js";
import { bodyOf, formOf, inheritanceOf, parentsFor, problemsOf, tree } from "./core/topics.js";
import { fetchTopics, useTopics } from "./topic-feed.js";

/** @import { Form, Inherited, Topic } from "./core/topics.js" */
/**
 * @typedef {{ form: Form, inherited: Inherited, problems: Record<string, string>, onChange: (change: Partial<Form>) =>
 *   void }} Fields
 */

const PARAMETERS = /** @type {const} */ ([
  ["temperature", "Temperature", "as the model has it"],
  ["top_p", "Top p", "as the model has it"],
  ["max_tokens", "Most tokens of a reply", "the reply's reserve"],
  ["effort", "Effort", "low, medium, high"],
  ["verbosity", "Verbosity", "low, medium, high"],
]);

const TEXTS = /** @type {const} */ ([
  ["system_prompt", "System prompt", 6, "No system prompt"],
  [
    "instructions",
    "Instructions",
    3,
    "Sent after the system prompt, or after the default prompt of the model's family",
  ],
  ["directives", "Style directives", 3, "One for each line, for instance: Answer in short sentences."],
]);

/**
 * Without a topic a new one is made, below `parent`.
 * @param {{ topic: Topic | null, parent?: string, onClose: () => void }} props
 */
export function TopicEditor({ topic, parent = "", onClose }) {
  const topics = useTopics() ?? [];
  const isRoot = topic?.id === "";
  const [first] = useState(() => formOf(topic, parent));
  const [form, setForm] = useState(first);
  const [isChecked, setChecked] = useState(false);
  const [refusal, setRefusal] = useState(/** @type {{ message: string, hint?: string } | null} */ (null));
  const [isSaving, setSaving] = useState(false);
  const rows = useMemo(() => tree(topics), [topics]);
  const inherited = useMemo(() => inheritanceOf(isRoot ? [] : topics, form.parent), [topics, form.parent]);
  const wrong = problemsOf(form, isRoot);
  const problems = isChecked ? wrong : {};
  const onChange = (/** @type {Partial<Form>} */ change) => {
    setRefusal(null);
    setForm((now) => ({ ...now, ...change }));
  };
  /** @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    setChecked(true);
    if (Object.keys(wrong).length) return;
    setSaving(true);
    try {
      const { name, parent: place, ...own } = bodyOf(form);
      // The one above all has no name and no place, and its address no id.
      if (isRoot) await put(inChat("/api/chat/topics"), own);
      else if (!topic) await post(inChat("/api/chat/topics"), { name, parent: place, ...own });
      else await put(inChat(`/api/chat/topics/${encodeURIComponent(topic.id)}`), { name, parent: place, ...own });
      await fetchTopics();
      onClose();
    } catch (error) {
      setRefusal(/** @type {Error & { hint?: string }} */ (error));
      setSaving(false);
    }
  };
  const fields = { form, inherited, problems, onChange };
  const above = { ...inherited, directives: inherited.style_directives.join("\n") };
  const places = parentsFor(rows, topic?.id ?? "new").map((row) => /** @type {const} */ ([row.topic.id, row.path]));
  const parents = [/** @type {const} */ (["", "(the top)"]), ...places];
  return h(Dialog, {
    title: isRoot ? "Everywhere" : topic ? `Topic: ${topic.name}` : "New topic",
    width: 680,
    isKept: form !== first,
    onClose,
    footer: html`${refusal ? html`<p class="refusal" role="alert">${refusal.message} ${refusal.hint ?? ""}</p>` : null}
      <span class="shell-gap"></span>
      ${button("Cancel", onClose)}
      <button type="submit" form="topic-form" class="button primary" disabled=${isSaving}>Save</button>`,
    children: html`<form id="topic-form" class="form" onSubmit=${save}>
      ${
        isRoot
          ? html`<p class="soft">Applies to every topic that does not set its own value.</p>`
          : html`<div class="form-pair">
              ${h(Line, {
                label: "Name",
                problem: problems.name,
                children: textField(form.name, (value) => onChange({ name: value }), {
                  label: "Name",
                  autofocus: true,
                  "aria-invalid": problems.name ? "true" : null,
                }),
              })}
              ${h(Line, {
                label: "Below",
                children: selectField(form.parent, (parent) => onChange({ parent }), parents, { label: "Below" }),
              })}
            </div>`
      }
      ${TEXTS.map(([name, label, lines, nothing]) =>
        h(Text, { ...fields, key: name, name, label, lines, above: above[name], nothing }),
      )}
      ${h(Line, {
        label: "Model",
        children: html`${textField(form.model ?? "", (value) => onChange({ model: value.trim() || null }), {
          label: "Model",
          kind: "mono",
          list: "topic-models",
          placeholder: inherited.model ? `${inherited.model} (from above)` : "the one that is chosen in the chat",
        })}
          <datalist id="topic-models">
            ${about.value.models.map((model) => html`<option key=${model.id} value=${model.id}></option>`)}
          </datalist>`,
      })}
      ${h(Toolsets, fields)}
      ${foldBlock(
        "Parameters",
        html`<div class="fold-inside form-grid">
          ${PARAMETERS.map(([name, label, usual]) =>
            h(Line, {
              key: name,
              label,
              problem: problems[name],
              children: textField(form[name], (value) => onChange({ [name]: value }), {
                label,
                kind: "number",
                inputmode: ["effort", "verbosity"].includes(name) ? null : "decimal",
                "aria-invalid": problems[name] ? "true" : null,
                placeholder: inherited.parameters[name] != null ? `${inherited.parameters[name]} (from above)` : usual,
              }),
            }),
          )}
        </div>`,
        { isOpen: Object.keys(topic?.parameters ?? {}).length > 0 },
      )}
    </form>`,
  });
}

/** @param {{ label: string, problem?: string, children: any, aside?: any, key?: string }} props */
function Line({ label, problem, children, aside }) {
  return html`<div class="form-line">
    <span class="form-label">${label}${aside ?? null}</span>
    ${children}
    ${problem ? html`<span class="field-problem" role="alert">${problem}</span>` : null}
  </div>`;
}

/**
 * A text that can be as above, or the topic's own, even if that is none.
 * @param {Fields & { name: "system_prompt" | "instructions" | "directives", label: string, lines: number, above:
 *   string, nothing: string, key?: string }} props
 */
function Text({ form, onChange, name, label, lines, above, nothing }) {
  const value = form[name];
  const aside =
    value === null
      ? html`<span class="faint">${above ? "from above" : ""}</span>`
      : linkButton(above ? "As above" : "Clear", () => onChange({ [name]: null }));
  return h(Line, {
    label,
    aside,
    children: html`<textarea
        class="field tall"
        rows=${lines}
        aria-label=${label}
        placeholder=${above || nothing}
        value=${value ?? ""}
        onInput=${onValue((value) => onChange({ [name]: value }))}
      ></textarea>
      ${
        value === "" &&
        above &&
        html`<span class="faint">Empty: nothing is sent here, even if a topic above sets it.</span>`
      }`,
  });
}

/** The toolsets that are configured; the page cannot name any other. @param {Fields} props */
function Toolsets({ form, inherited, onChange }) {
  const { value } = useResource("/api/about");
  const own = form.toolsets;
  const names = [...new Set([...(value?.toolsets ?? []), ...(own ?? inherited.toolsets)])].sort();
  const aside =
    own === null
      ? html`<span class="faint">
          ${inherited.toolsets.length ? `from above: ${inherited.toolsets.join(", ")}` : ""}
        </span>`
      : linkButton(inherited.toolsets.length ? "As above" : "None", () => onChange({ toolsets: null }));
  const chosen = own ?? inherited.toolsets;
  const toggle = (/** @type {string} */ name) =>
    onChange({ toolsets: chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name] });
  return h(Line, {
    label: "Tools",
    aside,
    children: names.length
      ? html`<div class="toolset-choice" role="group" aria-label="Toolsets">
          ${names.map((name) => checkbox(name, chosen.includes(name), () => toggle(name), { key: name }))}
        </div>`
      : html`<p class="faint">
          ${h(Icon, { name: "plug" })} No toolsets are configured. A table <code>[tools.NAME]</code> in sightline.toml
          makes one.
        </p>`,
  });
}
