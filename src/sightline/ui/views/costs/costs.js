// @ts-check
/** What recorded exchanges cost: a bar for each group, with its tokens, its money and what the cache saved. */

import { post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { aboutCosts, countOf, money, short, sumOfCosts, whole } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { FilterBox } from "../../kit/filter-box.js";
import { go } from "../../kit/navigation.js";
import { figure, Unloaded } from "../../kit/notices.js";
import { useResource } from "../../kit/resource.js";
import { segmentControl } from "../../kit/segmented.js";
import { attempt, toast } from "../../kit/toast.js";
import { h, html } from "../../vendor/preact.js";
import { Caps } from "./caps.js";
import { groupFilter, keyWords } from "./core/costs.js";
import { Misses } from "./misses.js";

/** @import { CostRow, CostsShown, Lesson, PriceUsed } from "../../api-types.d.ts" */

const GROUPS = /** @type {const} */ ([
  { value: "day", label: "Day" },
  { value: "model", label: "Model" },
  { value: "provider", label: "Provider" },
  { value: "client", label: "Client" },
  { value: "session", label: "Session" },
  { value: "project", label: "Project" },
  { value: "tag", label: "Tag" },
]);

/** @param {{ by: string, filter: string }} props */
export function Costs({ by, filter }) {
  const query = new URLSearchParams({ by, filter });
  const { value: costs, trouble, again } = useResource(`/api/costs?${query}`);
  const isRefused = trouble?.code === "usage"; // the filter; whatever else is wrong is no mistake in its words
  return html`<main class="costs" aria-label="Costs">
    <div class="costs-bar in-row">
      ${h(FilterBox, {
        value: filter,
        refused: isRefused ? trouble : null,
        onFilter: (/** @type {string} */ text) => go({ view: "costs", by, filter: text }, { isReplacing: true }),
        onLeave: () => {},
        group: "Costs",
      })}
      ${segmentControl({
        label: "Group by",
        value: by,
        choices: GROUPS,
        onChange: (/** @type {string} */ value) => go({ view: "costs", by: value, filter }, { isReplacing: true }),
      })}
    </div>
    <div class="costs-body">
      ${h(Caps, {})}
      ${
        trouble && !isRefused
          ? h(Unloaded, {
              title: "Costs could not be loaded",
              lines: [trouble.message, trouble.hint],
              ways: button("Try again", again),
            })
          : null
      }
      ${!costs && !trouble ? html`<p class="faint pad" role="status">Loading…</p>` : null}
      ${costs ? h(costs.total.requests ? Account : Nothing, { costs, by, filter }) : null} ${h(Lessons, {})}
    </div>
  </main>`;
}

/** @param {{ filter: string }} props */
function Nothing({ filter }) {
  return html`<div class="empty">
    <h1>${filter ? "No exchange matches this filter" : "Nothing recorded yet"}</h1>
    <p class="soft">
      ${
        filter
          ? "Costs are of the exchanges that match the filter."
          : "Point a client at Sightline, and its costs are added up here."
      }
    </p>
  </div>`;
}

/** @param {{ costs: CostsShown, by: string, filter: string }} props */
function Account({ costs, by, filter }) {
  const { total } = costs;
  const most = Math.max(...costs.rows.map((row) => row.cost), 0);
  return html`<dl class="cost-totals">
      ${figure("Cost", costWords(total), gapWords(total))}
      ${figure("Requests", whole(total.requests), failureWords(total))}
      ${figure("Input", short(total.input_tokens), shareWords(total))}
      ${figure("Output", short(total.output_tokens))}
      ${figure("Saved by caches", total.saved ? money(total.saved) : "–")}
    </dl>
    <table class="cost-table figures">
      <thead>
        <tr>
          <th scope="col">${GROUPS.find((each) => each.value === by)?.label ?? "Group"}</th>
          <th scope="col"><span class="unseen">Share of the highest cost</span></th>
          <th scope="col" class="number">Cost</th>
          <th scope="col" class="number wide-cell">Requests</th>
          <th scope="col" class="number wide-cell">Input</th>
          <th scope="col" class="number wide-cell">Cached</th>
          <th scope="col" class="number wide-cell">Output</th>
          <th scope="col" class="number wide-cell">Saved</th>
        </tr>
      </thead>
      <tbody>
        ${costs.rows.map((row) => h(Line, { key: row.keys.join(" "), row, by, filter, most }))}
      </tbody>
    </table>
    ${h(Misses, { by, filter })} ${costs.prices.length ? h(Prices, { prices: costs.prices }) : null}`;
}

/** By which prices it was counted, of when they are and where they were read. @param {{ prices: PriceUsed[] }} props */
function Prices({ prices }) {
  return html`<details class="cost-prices">
    <summary>Prices and their sources <span class="soft">per million tokens</span></summary>
    <table class="cost-table figures">
      <thead>
        <tr>
          <th scope="col">Model</th>
          <th scope="col" class="number">Input</th>
          <th scope="col" class="number">Output</th>
          <th scope="col">Looked up</th>
        </tr>
      </thead>
      <tbody>
        ${prices.map(
          (each) =>
            html`<tr key=${`${each.provider}/${each.model}`}>
              <th scope="row"><span class="cut" title=${each.model}>${each.provider}/${each.model}</span></th>
              <td class="number">${each.input == null ? "unknown" : money(each.input)}</td>
              <td class="number">${each.output == null ? "unknown" : money(each.output)}</td>
              <td>${priceSource(each)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </details>`;
}

/** Only an address of the web is a link: the source of a user's own price is any text. @param {PriceUsed} price */
function priceSource({ as_of: month, source }) {
  if (!month && !source) return html`<span class="soft">your own</span>`;
  return source.startsWith("https://")
    ? html`<a href=${source} target="_blank" rel="noreferrer">${month || "source"}</a>`
    : html`<span>${[month, source].filter(Boolean).join(", ")}</span>`;
}

/** @param {{ row: CostRow, by: string, filter: string, most: number, key?: string }} props */
function Line({ row, by, filter, most }) {
  const key = row.keys[0] ?? "";
  const words = keyWords(by, key);
  const narrower = groupFilter(by, key, filter);
  return html`<tr>
    <th scope="row">
      ${
        narrower
          ? html`<a class="cut" href=${hashOf({ view: "traffic", filter: narrower })} title=${words}>${words}</a>`
          : html`<span class="cut soft">${words}</span>`
      }
    </th>
    <td class="cost-track" aria-hidden="true">
      <meter class="cost-meter" min="0" max=${most || 1} value=${row.cost}></meter>
    </td>
    <td class="number" title=${gapWords(row) || null}>${costWords(row)}</td>
    <td class="number wide-cell">${whole(row.requests)}</td>
    <td class="number wide-cell" title=${whole(row.input_tokens)}>${short(row.input_tokens)}</td>
    <td class="number wide-cell" title=${whole(row.cached_tokens)}>${shareWords(row).replace(" cached", "")}</td>
    <td class="number wide-cell" title=${whole(row.output_tokens)}>${short(row.output_tokens)}</td>
    <td class="number wide-cell">${row.saved ? money(row.saved) : ""}</td>
  </tr>`;
}

/** A sum without the costs that are not known says so. @param {CostRow} row */
function costWords(row) {
  const isUnknown = !row.cost && row.unpriced + row.uncounted >= row.requests - row.failed;
  return isUnknown ? "unknown" : sumOfCosts(row);
}

/** @param {CostRow} row */
function gapWords(row) {
  return [aboutCosts(row), row.uncounted ? `${countOf(row.uncounted, "request")} without a count or an estimate` : ""]
    .filter(Boolean)
    .join(", ");
}

/** @param {CostRow} row */
function failureWords(row) {
  return row.failed ? `${whole(row.failed)} failed` : "";
}

/** @param {CostRow} row */
function shareWords(row) {
  return row.cached_tokens && row.input_tokens
    ? `${Math.round((row.cached_tokens / row.input_tokens) * 100)} % cached`
    : "";
}

/** What estimates have learned from the counts of providers, and a way to forget it. */
function Lessons() {
  const { value, again } = useResource("/api/learned");
  const lessons = value?.lessons ?? [];
  if (!lessons.length) return null;
  /** @param {string} model */
  const forget = async (model) => {
    await attempt(async () => {
      const { forgotten } = await post("/api/learned/forget", { model });
      again();
      toast(`Forgot ${countOf(forgotten.length, "lesson")}${model ? ` about ${model}` : ""}.`);
    });
  };
  return html`<details class="learned">
    <summary>Learned corrections of token estimates <span class="soft">${lessons.length}</span></summary>
    <p class="soft">
      Estimates are corrected by the counts of providers. A count that cannot be explained is set aside.
    </p>
    <table class="cost-table figures">
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
        ${lessons.map((lesson) => h(LessonRow, { key: `${lesson.model} ${lesson.kind}`, lesson, forget }))}
      </tbody>
    </table>
    ${button("Forget all", () => forget(""), { kind: "quiet" })}
  </details>`;
}

/** @param {{ lesson: Lesson, forget: (model: string) => void, key?: string }} props */
function LessonRow({ lesson, forget }) {
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
