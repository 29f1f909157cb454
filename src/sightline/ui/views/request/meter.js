// @ts-check
/** The budget bar: categories side by side, the reply's reserve, the band of the estimate and the end of the window. */

import { whole } from "../../kit/core/format.js";
import { memo } from "../../kit/memo.js";
import { html, useMemo } from "../../vendor/preact.js";
import { bar, band, short } from "./core/budget.js";

/** @import { TokensShown } from "../../api-types.d.ts" */

/** In percent of the bar: a narrower band is a smudge, and its numbers stand below anyway. */
const LEAST_BAND = 1.5;

const WORDS = {
  fits: "fits",
  near: "nearly full",
  crowded: "the reply may not fit",
  "may exceed": "may be too long",
  exceeds: "too long",
  unknown: "",
};

export const Meter = memo(function Meter(
  /** @type {{ tokens: TokensShown | undefined, isPending?: boolean }} */ { tokens, isPending },
) {
  const drawn = useMemo(() => bar(tokens), [tokens]);
  const usage = usageLine(tokens);
  if (tokens?.estimate == null && !drawn.segments.length)
    return usage ? html`<div class="meter"><div class="meter-legend">${usage}</div></div>` : null;
  const reserve = drawn.reserve ? `, ${whole(drawn.reserve)} kept for the reply` : "";
  const label = drawn.window
    ? `${whole(drawn.used)} of ${whole(drawn.window)} tokens${reserve}: ${WORDS[drawn.verdict]}`
    : `${whole(drawn.used)} tokens; the model's window is not known`;
  const about = drawn.low === drawn.high ? "" : "≈ ";
  return html`<div class=${`meter verdict-${drawn.verdict.replace(" ", "-")} ${isPending ? "is-pending" : ""}`}>
    <div
      class="meter-bar"
      role="meter"
      aria-label="Token budget"
      aria-valuemin="0"
      aria-valuemax=${drawn.window ?? drawn.used}
      aria-valuenow=${drawn.used}
      aria-valuetext=${label}
      title=${label}
    >
      ${drawn.segments.map(
        (part) =>
          html`<span
            key=${part.name}
            class=${`meter-part ${part.name}`}
            style=${{ left: `${part.start}%`, width: `${part.width}%` }}
            title=${`${part.label}: ${whole(part.tokens)} tokens${band(part) ? ` (${band(part)})` : ""}`}
          ></span>`,
      )}
      ${
        drawn.band &&
        drawn.band.width >= LEAST_BAND &&
        html`<span
          class="meter-band"
          style=${{ left: `${drawn.band.start}%`, width: `${drawn.band.width}%` }}
          title=${`The true count is between ${whole(drawn.low)} and ${whole(drawn.high)} tokens`}
        ></span>`
      }
      ${
        drawn.windowAt !== null &&
        html`<span
          class="meter-window"
          style=${{ left: `${drawn.windowAt}%` }}
          title=${`The window ends at ${whole(drawn.window ?? 0)} tokens`}
        ></span>`
      }
    </div>
    <div class="meter-legend">
      <span class="meter-total number" title=${label}>
        <b>${about}${short(drawn.used)}</b>
        ${drawn.window ? html` / ${short(drawn.window)}` : null} tokens
        ${
          drawn.low === drawn.high
            ? null
            : html`<span class="faint meter-range"> ${short(drawn.low)}–${short(drawn.high)}</span>`
        }
      </span>
      ${
        ["fits", "unknown"].includes(drawn.verdict)
          ? null
          : html`<span class="meter-verdict">${WORDS[drawn.verdict]}</span>`
      }
      ${usage}
      <span class="meter-keys">
        ${drawn.segments.map(
          (part) => html`<span key=${part.name} class="meter-key">
            <i class=${`meter-dot ${part.name}`}></i>
            ${part.label} <span class="number soft">${short(part.tokens)}</span>
          </span>`,
        )}
      </span>
    </div>
  </div>`;
});

/** What the provider says that it counted. @param {TokensShown | undefined} tokens */
function usageLine(tokens) {
  if (tokens?.input_tokens == null && tokens?.output_tokens == null) return null;
  const cached = tokens.cached_tokens ? ` (${short(tokens.cached_tokens)} cached)` : "";
  const source = tokens.is_estimated ? "estimated, not counted by the provider" : "provider's count";
  return html`<span class="meter-usage soft number">
    ${source}: ${short(tokens.input_tokens)} in${cached} · ${short(tokens.output_tokens)} out
  </span>`;
}
