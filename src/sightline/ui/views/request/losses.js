// @ts-check
/** What a translation could not carry over, and what it had to add. */

import { h, html } from "../../vendor/preact.js";

/** @import { Desk } from "./desk.js" */
/** @typedef {{ pointer: string, what: string, why: string, severity?: string }} Row */

const MEANINGS = /** @type {Record<string, string>} */ ({
  content: "The model or the reader would have seen it",
  option: "A setting",
  identity: "An id or bookkeeping that means nothing elsewhere",
});

/** @param {{ desk: Desk }} props */
export function Losses({ desk }) {
  const view = desk.view.value;
  const losses = view?.losses ?? [];
  const additions =
    view?.additions ??
    (view?.facts ?? []).filter((fact) => fact.kind === "translated").flatMap((fact) => fact.additions ?? []);
  const translated = (view?.facts ?? []).find((fact) => fact.kind === "translated");
  if (!losses.length && !additions.length) {
    return html`<div class="empty">
      <p>Nothing was lost.</p>
      <p class="soft">
        ${
          translated
            ? `Everything could be expressed in ${translated.dialect}.`
            : "The request was not translated: the provider gets it in the client's own dialect."
        }
      </p>
    </div>`;
  }
  return html`<div class="losses">
    ${translated && html`<p class="soft">Translated from <b>${view?.dialect}</b> to <b>${translated.dialect}</b>.</p>`}
    ${losses.length ? h(Table, { title: `${losses.length} not carried over`, rows: losses }) : null}
    ${additions.length ? h(Table, { title: `${additions.length} added`, rows: additions }) : null}
  </div>`;
}

/** @param {{ title: string, rows: Row[] }} props */
function Table({ title, rows }) {
  return html`<section aria-label=${title}>
    <h2>${title}</h2>
    <div class="table-scroll boxed">
      <table class="loss-table">
        <thead>
          <tr><th scope="col">Kind</th><th scope="col">What</th><th scope="col">Why</th><th scope="col">Where</th></tr>
        </thead>
        <tbody>
          ${rows.map(
            (row, index) => html`<tr key=${index}>
              <td>
                <span class=${`chip severity ${row.severity ?? ""}`} title=${MEANINGS[row.severity ?? ""] ?? ""}>
                  ${row.severity ?? ""}
                </span>
              </td>
              <td>${row.what}</td>
              <td class="soft">${row.why}</td>
              <td><code>${row.pointer || "/"}</code></td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}
