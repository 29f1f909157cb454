// @ts-check
/** What the list shows without rows: loading, failed, nothing matches, or nothing received yet. */

import { about } from "../../kit/about.js";
import { button, linkButton } from "../../kit/button.js";
import { CopyBlock } from "../../kit/copy.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { h, html } from "../../vendor/preact.js";
import { Clients } from "../shell/connect.js";
import { showExample } from "../shell/tour.js";

/** @import { ApiError } from "../../kit/api.js" */

export function Loading() {
  return html`<div class="traffic-loading" role="status" aria-label="Loading">
    ${Array.from(
      { length: 14 },
      (_, index) => html`<div key=${index} class="ghost-row">
        <span></span>
        <span></span>
        <span></span>
        <span></span>
      </div>`,
    )}
  </div>`;
}

/** @param {{ error: ApiError, onRetry: () => void }} props */
export function Failure({ error, onRetry }) {
  return html`<div class="traffic-state" role="alert">
    ${h(Icon, { name: "warn", class: "state-icon bad" })}
    <h2>The list could not be loaded</h2>
    <p class="soft">${error.message} ${error.hint}</p>
    ${button("Try again", onRetry)}
  </div>`;
}

/** `isWrong`: the filter cannot be read. @param {{ isWrong: boolean, onClear: () => void }} props */
export function NothingFound({ isWrong, onClear }) {
  return html`<div class="traffic-state" role="status">
    ${h(Icon, { name: "search", class: "state-icon" })}
    <h2>${isWrong ? "This filter has an error" : "Nothing matches this filter"}</h2>
    <p class="soft">
      ${isWrong ? "Correct it above, or clear it." : "New requests appear here when they match."}
    </p>
    ${button("Clear the filter", onClear)}
  </div>`;
}

/** @param {{ onConnect: () => void }} props */
export function NothingYet({ onConnect }) {
  const { address } = about.value;
  const request =
    `curl ${address}/v1/chat/completions -H 'content-type: application/json' \\\n` +
    `  -d '{"model": "local", "messages": [{"role": "user", "content": "Say hello."}]}'`;
  return html`<div class="traffic-empty">
    <header>
      <h2>Waiting for the first request</h2>
      <p class="soft">
        Point a client here. Its requests appear in this list at once, and you can hold, read and edit each one before
        it is sent.
      </p>
    </header>
    ${
      about.value.places?.includes("example")
        ? html`<section class="tour-offer in-row" aria-label="Tour">
            <div>
              <h3>New here? Look around first</h3>
              <p class="soft">
                A recorded session of a coding agent fills every view. It is kept apart from your record, and one click
                removes it.
              </p>
            </div>
            ${button("Take the tour", showExample, { kind: "primary" })}
          </section>`
        : null
    }
    ${h(Clients, {})}
    <section class="connect-more" aria-label="Try it">
      <h3>Or try it without a client and without a key</h3>
      <p class="soft">
        The model that comes with Sightline answers. <a href=${hashOf({ view: "chat", filter: "" })}>Ask in the chat</a>
        ${" or at a terminal:"}
      </p>
      ${h(CopyBlock, { text: request, label: "Copy command" })}
    </section>
    <p>${linkButton("More ways to connect", onConnect)}</p>
  </div>`;
}
