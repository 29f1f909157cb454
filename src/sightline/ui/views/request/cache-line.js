// @ts-check
/** One line on what the provider read from its prompt cache, and why not more: it leads to the difference. */

import { CacheAdviceList } from "../../kit/cache-advice.js";
import { duration, money, short } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { useResource } from "../../kit/resource.js";
import { h, html } from "../../vendor/preact.js";

/** @import { CacheTurn } from "../../api-types.d.ts" */

/** Causes that are no miss: nothing could have been read, or nothing is known. */
const QUIET = new Set(["", "unknown", "cold_start"]);

/**
 * Why the provider read what it read; null for what is not counted, or no turn of a conversation.
 * @param {string} id
 * @returns {CacheTurn | null}
 */
export function useCacheTurn(id) {
  return useReport(id)?.turns[0] ?? null;
}

/** @param {string} id */
const useReport = (id) => useResource(`/api/cache?exchange=${encodeURIComponent(id)}`).value;

/** @param {{ id: string }} props */
export function CacheLine({ id }) {
  const report = useReport(id);
  const turn = report?.turns[0];
  if (!turn || QUIET.has(turn.autopsy.cause)) return null;
  const { autopsy } = turn;
  const isChange = autopsy.offset != null;
  const place = isChange ? ` at ${turn.section_name || autopsy.pointer}` : "";
  const pause =
    autopsy.lifetime == null ? "" : ` after ${duration(autopsy.idle)}, kept for ${duration(autopsy.lifetime)}`;
  const href = hashOf({ view: "request", id, tab: "diff", against: turn.previous });
  const own = turn.provider_reason ? `; the provider says ${turn.provider_reason.replaceAll("_", " ")}` : "";
  return html`<div class="cache-line">
    ${h(Icon, { name: "warn" })}
    Cache: read <b class="number">${short(autopsy.read_tokens)}</b> of
    ${autopsy.is_estimated ? " about" : ""} <span class="number">${short(autopsy.could_tokens)}</span>
    ${autopsy.money ? html` <span class="number">(${money(autopsy.money)} lost)</span>` : null}:
    ${
      turn.previous ? html` <a href=${href}>${turn.reason}${place}</a>` : html` ${turn.reason}`
    }${pause}<span class="faint">${own}</span>
    ${
      isChange
        ? html`<span class="cache-change cut" title=${autopsy.before}>was “${autopsy.before}”</span>
            <span class="cache-change cut" title=${autopsy.after}>now “${autopsy.after}”</span>`
        : null
    }
    ${h(CacheAdviceList, { advice: report.advice, isShort: true })}
  </div>`;
}
