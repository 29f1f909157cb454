// @ts-check
/** One line on what the provider read from its prompt cache, and why not more: it leads to the difference. */

import { money, short } from "../../kit/core/format.js";
import { useResource } from "../../kit/resource.js";
import { html } from "../../vendor/preact.js";

/** @param {{ id: string, onDiff: () => void }} props */
export function CacheLine({ id, onDiff }) {
  // What is not counted, or no turn of a conversation, has no line.
  const { value } = useResource(`/api/cache?exchange=${encodeURIComponent(id)}`);
  const turn = value?.turns[0];
  if (!turn || ["", "unknown", "cold_start"].includes(turn.autopsy.cause)) return null;
  const { autopsy } = turn;
  const place = autopsy.offset == null ? "" : ` at ${turn.section_name || autopsy.pointer}`;
  const change = autopsy.offset == null ? "" : `“${autopsy.before}” became “${autopsy.after}”`;
  const own = turn.provider_reason ? `; the provider says ${turn.provider_reason.replaceAll("_", " ")}` : "";
  return html`<p class="cache-line" title=${change}>
    Cache: read <b class="number">${short(autopsy.read_tokens)}</b> of
    ${autopsy.is_estimated ? " about" : ""} <span class="number">${short(autopsy.could_tokens)}</span>
    ${autopsy.money ? html` <span class="number">(${money(autopsy.money)} lost)</span>` : null}:
    ${
      place && turn.previous
        ? html` <button type="button" class="link" onClick=${onDiff}>${turn.reason}${place}</button>`
        : html` ${turn.reason}`
    }<span class="faint">${own}</span>
  </p>`;
}
