// @ts-check
/** The headers of an exchange, on both sides of Sightline, and the addresses that were really used. */

import { CopyButton } from "../../kit/copy.js";
import { countOf } from "../../kit/core/format.js";
import { h, html } from "../../vendor/preact.js";
import { compareHeaders } from "./core/exchange.js";

/** @import { Desk } from "./desk.js" */
/** @import { HeaderRow } from "./core/exchange.js" */

const WORDS = { same: "", added: "added by Sightline", changed: "changed by Sightline", dropped: "not passed on" };
/** What the record has in place of a credential. */
const MASK = "***";
const MASKED = "A credential: the record holds a mask in its place";

/** @param {{ desk: Desk }} props */
export function Headers({ desk }) {
  const view = desk.view.value;
  const facts = view?.facts ?? [];
  const received = facts.find((fact) => fact.kind === "received");
  const attempts = facts.flatMap((fact) => (fact.kind === "attempt" ? [fact] : []));
  const ended = facts.find((fact) => fact.kind === "finished" || fact.kind === "failed");
  const sent = attempts[attempts.length - 1];
  const compared = compareHeaders(received?.headers ?? [], sent?.headers ?? []);
  const answered = /** @type {[string, string][]} */ (ended?.headers ?? []);
  return html`<div class="headers">
    <section aria-label="Addresses">
      <h2>Addresses</h2>
      <dl class="addresses">
        <dt>The client requested</dt>
        <dd><code>${received?.path || "no path: Sightline made this request itself"}</code></dd>
        ${attempts.map(
          (attempt) => html`<dt key=${`t${attempt.number}`}>
              ${attempts.length > 1 ? `Attempt ${attempt.number} went to` : "Sightline sent it to"}
            </dt>
            <dd key=${`d${attempt.number}`}>
              <code>${attempt.url || "The address was not recorded"}</code>
              ${attempt.url ? h(CopyButton, { text: attempt.url, label: "Copy the address" }) : null}
            </dd>`,
        )}
        ${!attempts.length && html`<dt>Sightline sent it to</dt><dd class="soft">Nothing was sent.</dd>`}
      </dl>
    </section>
    ${h(Table, {
      title: "From the client",
      rows: compared.client,
      empty: "The client's headers were not recorded.",
    })}
    ${h(Table, {
      title: "To the provider",
      rows: compared.sent,
      note: "Host, Content-Length and Connection are not listed.",
      empty: sent ? "The headers were not recorded: an earlier version sent this request." : "Nothing was sent.",
    })}
    ${h(Table, {
      title: "From the provider",
      rows: answered.map(([name, value]) => ({ name, value, change: /** @type {const} */ ("same") })),
      empty: ended ? "The headers of the reply were not recorded." : "No reply has arrived yet.",
    })}
  </div>`;
}

/** @param {{ title: string, rows: HeaderRow[], empty: string, note?: string }} props */
function Table({ title, rows, empty, note }) {
  return html`<section aria-label=${title}>
    <h2>
      ${title} <span class="faint">${rows.length ? countOf(rows.length, "header") : ""}</span>
    </h2>
    ${
      rows.length
        ? html`<div class="table-scroll boxed">
              <table class="header-table">
                <tbody>
                  ${rows.map(
                    (row, index) => html`<tr key=${index} class=${row.change}>
                      <th scope="row">${row.name}</th>
                      <td>
                        ${
                          row.value.includes(MASK)
                            ? html`<code title=${MASKED}>${row.value}</code>${" "} <span class="chip">masked</span>`
                            : html`<code>${row.value}</code>`
                        }
                      </td>
                      <td class="soft">${WORDS[row.change]}</td>
                    </tr>`,
                  )}
                </tbody>
              </table>
            </div>
            ${note ? html`<p class="faint">${note}</p>` : null}`
        : html`<p class="soft">${empty}</p>`
    }
  </section>`;
}
