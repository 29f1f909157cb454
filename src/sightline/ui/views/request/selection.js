// @ts-check
/** Several sections at once: they are picked one by one, as a range, by kind or by words, and change in one step. */

import { button } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { textField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { Menu } from "../../kit/menu.js";
import { h, html, useState } from "../../vendor/preact.js";
import { short } from "./core/budget.js";
import { editsOf, matchingSections, rangeOf, resultsOf } from "./core/selection.js";

/** @import { Section } from "../../api-types.d.ts" */
/** @import { Desk } from "./desk.js" */

/**
 * The bar above the cards of a held request.
 * @param {{ desk: Desk, sections: readonly Section[], here: string }} props
 */
export function Selection({ desk, sections, here }) {
  const [words, setWords] = useState("");
  const picked = sections.filter((section) => desk.picked.value.has(section.id));
  const live = picked.filter((section) => !section.deleted);
  const gone = picked.filter((section) => section.deleted);
  const tokens = live.reduce((sum, section) => sum + (section.tokens?.tokens ?? 0), 0);
  useShortcuts(
    "Sections",
    [
      { keys: "v", label: "Select the section, or not", run: () => desk.pick([here], { isToggled: true }) },
      {
        keys: "V",
        label: "Select up to the section",
        run: () => desk.pick(rangeOf(desk.sections.peek(), desk.lastPicked, here)),
      },
    ],
    [desk, here],
  );
  /** @param {SubmitEvent} event */
  const onSubmit = (event) => {
    event.preventDefault();
    if (words.trim()) desk.pick(matchingSections(sections, words));
  };
  return html`<div class="selection in-row" role="toolbar" aria-label="Selection">
    ${h(Menu, {
      label: "Select sections",
      class: "button quiet",
      align: "left",
      children: html`Select ${h(Icon, { name: "down" })}`,
      choices: [
        { label: "All tool results", run: () => desk.pick(resultsOf(sections)) },
        { label: "All tool results before here", run: () => desk.pick(resultsOf(sections, here)) },
        { label: "Everything up to here", run: () => desk.pick(rangeOf(sections, "", here)) },
      ],
    })}
    <form onSubmit=${onSubmit}>
      ${textField(words, setWords, { label: "Select by words", type: "search", placeholder: "Select by words" })}
    </form>
    ${
      picked.length
        ? html`<span class="soft number" role="status">
              ${countOf(picked.length, "section")}${tokens ? ` · ${short(tokens)} tokens` : ""}
            </span>
            ${button(html`Delete ${live.length || ""}`, () => desk.applyToPicked("delete"), {
              kind: "danger",
              title: "Delete them in one step (d)",
              isDisabled: !live.length,
            })}
            ${button(html`Restore ${gone.length || ""}`, () => desk.applyToPicked("restore"), {
              title: "Restore them in one step (d)",
              isDisabled: !gone.length,
            })}
            ${button("Strip", () => desk.applyToPicked("strip"), {
              title: "Replace their texts with a short mark, so that calls keep their results",
              isDisabled: !editsOf(sections, desk.picked.value, "strip").length,
            })}
            ${button("Keep only these", () => desk.applyToPicked("only"), {
              title: "Delete all other messages",
              isDisabled: !editsOf(sections, desk.picked.value, "only").length,
            })}
            ${h(Menu, {
              label: "Delete them on later requests too",
              class: "button quiet icon",
              align: "left",
              children: h(Icon, { name: "pin" }),
              choices: [
                { label: "Delete, also in this session", run: () => desk.applyToPicked("delete", "session") },
                ...(desk.view.value?.session?.includes("@")
                  ? [{ label: "Delete, also in this project", run: () => desk.applyToPicked("delete", "project") }]
                  : []),
                { label: "Delete always", run: () => desk.applyToPicked("delete", "all") },
              ],
            })}
            ${button("Clear", () => desk.unpick(), { kind: "quiet" })}`
        : null
    }
  </div>`;
}
