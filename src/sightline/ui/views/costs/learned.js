// @ts-check
/** What estimates have learned from the counts of providers, and a way to forget it. */

import { post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { countOf, whole } from "../../kit/core/format.js";
import { useResource } from "../../kit/resource.js";
import { toast, toastError } from "../../kit/toast.js";
import { h, html } from "../../vendor/preact.js";

/** @import { Lesson } from "../../api-types.d.ts" */

export function LearnedRatios() {
  const { value, again } = useResource("/api/learned");
  const lessons = value?.lessons ?? [];
  if (!lessons.length) return null;
  /** @param {string} model */
  const forget = async (model) => {
    try {
      const { forgotten } = await post("/api/learned/forget", { model });
      again();
      toast(`Forgot ${countOf(forgotten.length, "lesson")}${model ? ` about ${model}` : ""}.`);
    } catch (error) {
      toastError(error);
    }
  };
  return html`<details class="learned">
    <summary>Learned corrections of token estimates <span class="soft">${lessons.length}</span></summary>
    <p class="soft">
      Estimates are corrected by the counts of providers. A count that cannot be explained is set aside.
    </p>
    <table class="cost-table">
      <thead>
        <tr>
          <th scope="col">Model</th>
          <th scope="col">Kind</th>
          <th scope="col" class="number">Times</th>
          <th scope="col" class="number wide-cell">Plus</th>
          <th scope="col" class="number wide-cell">Counts</th>
          <th scope="col" class="number wide-cell">Set aside</th>
          <th scope="col"><span class="unseen">Forget</span></th>
        </tr>
      </thead>
      <tbody>
        ${lessons.map((lesson) => h(Row, { key: `${lesson.model} ${lesson.kind}`, lesson, forget }))}
      </tbody>
    </table>
    ${button("Forget all", () => forget(""), { kind: "quiet" })}
  </details>`;
}

/** @param {{ lesson: Lesson, forget: (model: string) => void, key?: string }} props */
function Row({ lesson, forget }) {
  return html`<tr>
    <th scope="row"><span class="cut" title=${lesson.model}>${lesson.model}</span></th>
    <td>${lesson.kind}</td>
    <td class="number">${lesson.factor.toFixed(2)}</td>
    <td class="number wide-cell">${whole(lesson.added)}</td>
    <td class="number wide-cell">${whole(lesson.seen)}</td>
    <td class="number wide-cell">${lesson.set_aside ? whole(lesson.set_aside) : ""}</td>
    <td class="number">
      ${button("Forget", () => forget(lesson.model), {
        kind: "quiet",
        name: `Forget what was learned about ${lesson.model}`,
      })}
    </td>
  </tr>`;
}
