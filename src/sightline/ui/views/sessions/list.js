// @ts-check
/** All sessions: who asked, how often, what it took, and when last. */

import { about } from "../../kit/about.js";
import { onKinds } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { aboutCosts, clientName, countOf, short, stamp, sumOfCosts, when, whole } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { textField } from "../../kit/fields.js";
import { followTogether, useResource } from "../../kit/resource.js";
import { html, useState } from "../../vendor/preact.js";
import { ENDED } from "./core/session.js";

/** @import { SessionBrief } from "../../api-types.d.ts" */

const TOGETHER = 1000;
const SHOWN = 200;

/** Read it again when a request has ended. */
const follow = followTogether((changed) => onKinds(ENDED, changed), TOGETHER);

export function Sessions() {
  const { value, trouble, again } = useResource("/api/sessions?evals=0", follow);
  const [words, setWords] = useState("");
  const [most, setMost] = useState(SHOWN);
  const wanted = words.trim().toLowerCase();
  const all = (value?.sessions ?? []).filter((/** @type {SessionBrief} */ each) =>
    [each.session, each.title, each.client, each.project].some((text) => text.toLowerCase().includes(wanted)),
  );
  const now = Date.now() / 1000;
  return html`<main class="session-list" aria-label="Sessions">
    <div class="session-bar in-row">
      <h1>Sessions</h1>
      ${textField(words, setWords, {
        label: "Find a session",
        type: "search",
        placeholder: "Find by name, words, client or project",
      })}
      <span class="soft number" role="status">${value ? whole(all.length) : ""}</span>
    </div>
    ${
      trouble && !value
        ? html`<div class="empty" role="alert">
            <h2>The sessions could not be loaded</h2>
            <p class="soft">${trouble.message} ${trouble.hint}</p>
            <p class="empty-actions">${button("Try again", again)}</p>
          </div>`
        : null
    }
    ${!value && !trouble ? html`<p class="faint pad" role="status">Loading…</p>` : null}
    ${
      value && !all.length
        ? html`<div class="empty">
            <p>${wanted ? "No session matches." : "No sessions are recorded yet."}</p>
            <p class="soft">
              Agents name their own sessions. To name one: <code>${about.value.program} run --session NAME</code>.
            </p>
          </div>`
        : null
    }
    ${
      all.length
        ? html`<div class="session-table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Session</th>
                  <th scope="col">Client</th>
                  <th scope="col" class="wide-cell">Project</th>
                  <th scope="col" class="number">Turns</th>
                  <th scope="col" class="number">Tokens in → out</th>
                  <th scope="col" class="number">Cost</th>
                  <th scope="col" class="number">Last active</th>
                </tr>
              </thead>
              <tbody>
                ${all.slice(0, most).map(
                  (/** @type {SessionBrief} */ each) => html`<tr key=${each.key}>
                    <th scope="row">
                      <a class="cut" href=${hashOf({ view: "session", name: each.key })} title=${each.session}>
                        ${each.session || each.title || "Conversation"}
                      </a>
                      ${
                        each.session && each.title
                          ? html`<span class="soft cut" title=${each.title}>${each.title}</span>`
                          : null
                      }
                      ${each.failed ? html`<span class="bad">${whole(each.failed)} failed</span>` : null}
                    </th>
                    <td class="cut" title=${each.client}>${clientName(each.client)}</td>
                    <td class="cut wide-cell">${each.project}</td>
                    <td
                      class="number"
                      title=${countOf(each.requests, "request")}
                      data-name=${each.turns === 1 ? "turn" : "turns"}
                    >
                      ${whole(each.turns)}
                    </td>
                    <td class="number" data-name="tokens">
                      ${short(each.input_tokens)} → ${short(each.output_tokens)}
                    </td>
                    <td
                      class="number"
                      title=${aboutCosts(each) || null}
                      data-name=${sumOfCosts(each) === "unknown" ? "cost" : null}
                    >
                      ${sumOfCosts(each)}
                    </td>
                    <td class="number" title=${stamp(each.ended)}>${when(each.ended, now)}</td>
                  </tr>`,
                )}
              </tbody>
            </table>
            ${all.length > most ? button("Show more", () => setMost(most + SHOWN)) : null}
          </div>`
        : null
    }
  </main>`;
}
