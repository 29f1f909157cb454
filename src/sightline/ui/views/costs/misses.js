// @ts-check
/** Why caches missed in the exchanges that the filter takes: summed by cause in each group, and what would help. */

import { CacheAdviceList } from "../../kit/cache-advice.js";
import { countOf, money, short, whole } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { onToggle } from "../../kit/fields.js";
import { useResource } from "../../kit/resource.js";
import { h, html, useState } from "../../vendor/preact.js";
import { groupFilter, keyWords } from "./core/costs.js";

/** @import { CacheCause, CacheReport } from "../../api-types.d.ts" */

/** By what causes are summed; costs have more groups. */
const GROUPS = new Set(["day", "client", "model", "session"]);
const EVERYTHING = "tokens>0";

/** Every turn is examined, so it waits until it is opened. @param {{ by: string, filter: string }} props */
export function Misses({ by, filter }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details class="cost-misses" onToggle=${onToggle(setOpen)}>
    <summary>Why caches missed</summary>
    ${isOpen ? h(Report, { by: GROUPS.has(by) ? by : "", filter }) : null}
  </details>`;
}

/** @param {{ by: string, filter: string }} props */
function Report({ by, filter }) {
  const query = new URLSearchParams({ by, filter: filter || EVERYTHING });
  const { value: report, trouble } = useResource(`/api/cache?${query}`);
  if (trouble) return html`<p class="soft pad" role="status">${trouble.message}</p>`;
  if (!report) return html`<p class="faint pad" role="status">Comparing each turn with the one before it…</p>`;
  const causes = report.causes.filter((each) => each.lost_tokens);
  return html`<p class="soft">${summaryWords(report)}</p>
    ${
      causes.length
        ? html`<table class="cost-table figures">
            <thead>
              <tr>
                <th scope="col">Cause</th>
                <th scope="col" class="number">Lost tokens</th>
                <th scope="col" class="number">Money</th>
                <th scope="col" class="number wide-cell">Turns</th>
              </tr>
            </thead>
            <tbody>
              ${causes.map((cause, at) => h(Cause, { key: at, cause, by, filter, above: causes[at - 1] }))}
            </tbody>
          </table>`
        : null
    }
    ${h(CacheAdviceList, { advice: report.advice })}`;
}

/**
 * A line of a cause, below a heading where its group begins.
 * @param {{ cause: CacheCause, by: string, filter: string, above: CacheCause | undefined, key?: number }} props
 */
function Cause({ cause, by, filter, above }) {
  const words = keyWords(by, cause.key);
  const narrower = groupFilter(by, cause.key, filter);
  const isFirst = by && cause.key !== above?.key;
  return html`${
    isFirst
      ? html`<tr class="cause-group">
            <th scope="rowgroup" colspan="4">
              ${
                narrower
                  ? html`<a class="cut" href=${hashOf({ view: "traffic", filter: narrower })} title=${words}>
                      ${words}
                    </a>`
                  : html`<span class="cut">${words}</span>`
              }
            </th>
          </tr>`
      : null
  }
    <tr>
      <th scope="row" class="cause-name">${cause.reason}</th>
      <td class="number" title=${whole(cause.lost_tokens)}>${short(cause.lost_tokens)}</td>
      <td class="number">${moneyWords(cause)}</td>
      <td class="number wide-cell">${whole(cause.turns)}</td>
    </tr>`;
}

/** @param {CacheReport} report */
function summaryWords(report) {
  const answers = report.agreed + report.disagreed;
  return [
    `Read ${short(report.read_tokens)} of ${short(report.could_tokens)} tokens that caches could have held, in ` +
      `${countOf(report.turns.length, "turn")}${report.is_cut ? ", the newest ones only" : ""}.`,
    report.lost_tokens ? `Lost ${short(report.lost_tokens)} (${moneyWords(report)}).` : "Nothing was lost.",
    answers ? `The provider gives the same reason for ${report.agreed} of ${countOf(answers, "turn")}.` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

/** A sum without the prices that are not known says so. @param {{ money: number, unpriced: number }} lost */
function moneyWords({ money: dollars, unpriced }) {
  if (!unpriced) return money(dollars);
  return dollars ? `${money(dollars)} +` : "unknown";
}
