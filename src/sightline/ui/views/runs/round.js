// @ts-check
/** One round of a run: the model's text, the calls with their results, and links to the exact bytes. */

import { CallBlock, Ending } from "../../kit/answer.js";
import { duration } from "../../kit/core/format.js";
import { parseOrText } from "../../kit/core/json.js";
import { onToggle } from "../../kit/fields.js";
import { foldBlock } from "../../kit/fold-block.js";
import { Icon } from "../../kit/icon.js";
import { LineDiff } from "../../kit/line-diff.js";
import { FaultNote } from "../../kit/notices.js";
import { RichText } from "../../kit/rich-text.js";
import { h, html, useState } from "../../vendor/preact.js";
import { argumentsText, outcomeOf, roundLine } from "./core/runs.js";

/** @import { Round, RunCall } from "./core/runs.js" */

/**
 * @param {{ round: Round, isLive: boolean, isOpen: boolean, span: { start: number, model: number, tools: number } |
 *   null, onToggle: () => void, key?: string }} props
 */
export function RoundView({ round, isLive, isOpen, span, onToggle }) {
  const names = round.calls.map((call) => call.name).join(", ");
  return html`<li class=${isOpen ? "round is-open" : "round"}>
    <div class="round-head in-row">
      <button
        type="button"
        class="round-fold bare in-row"
        aria-expanded=${isOpen}
        onClick=${onToggle}
      >
        <span class=${isOpen ? "json-arrow open" : "json-arrow"} aria-hidden="true">▸</span>
        <span class="unseen">Round </span>
        <b class="round-number number">${round.number}</b>
        <span class="round-title cut">
          ${names ? html`<code>${names}</code>` : round.text.trim().split("\n")[0] || "…"}
        </span>
      </button>
      <span class="round-line soft number">${roundLine(round)}</span>
      ${
        round.exchange &&
        html`<span class="round-links">
          <a href=${`#/x/${encodeURIComponent(round.exchange)}`}>Request</a>
          <a href=${`#/x/${encodeURIComponent(round.exchange)}/reply`}>Reply</a>
        </span>`
      }
    </div>
    <div class="round-track" aria-hidden="true">
      ${
        span &&
        html`<i class="track model" style=${{ left: `${span.start}%`, width: `${span.model}%` }}></i>
        <i class="track tools" style=${{ left: `${span.start + span.model}%`, width: `${span.tools}%` }}></i>`
      }
    </div>
    ${
      isOpen &&
      html`<div class="round-body stacked">
        ${round.thinking && h(Thinking, { text: round.thinking, isLive })}
        ${round.text ? h(RichText, { text: round.text, isLive }) : null}
        ${round.calls.map((call) => h(RunCallView, { key: call.key, call }))}
        ${
          round.context &&
          html`<div class="round-context">
            <h4>Also sent to the model</h4>
            <p class="soft">${round.context}</p>
          </div>`
        }
        ${
          !round.text &&
          !round.calls.length &&
          !round.thinking &&
          html`<p class="faint">${isLive ? "Waiting for the model…" : "An empty reply."}</p>`
        }
        ${round.fault && h(FaultNote, { fault: round.fault })}
        ${round.fault ? null : h(Ending, { who: "The reply", finish: round.finish })}
      </div>`
    }
  </li>`;
}

/** @param {{ text: string, isLive: boolean }} props */
function Thinking({ text, isLive }) {
  const [isOpen, setOpen] = useState(false);
  const inside = isOpen && html`<div class="fold-inside soft">${h(RichText, { text, isLive })}</div>`;
  return foldBlock("Thinking", inside, { kind: "thinking", onToggle: onToggle(setOpen) });
}

/** @param {{ call: RunCall, key?: string }} props */
export function RunCallView({ call }) {
  const { state, words } = outcomeOf(call);
  const wrote = argumentsText(parseOrText(call.arguments));
  const ran = call.ran == null ? wrote : argumentsText(call.ran);
  const notes = html`
    ${
      call.is_edited &&
      ran !== wrote &&
      html`<div class="call-part"><h4>Edited before it ran</h4></div>
      ${h(LineDiff, { before: wrote, after: ran })}`
    }
    ${h(Repairs, { repairs: call.repairs })}
    ${call.seconds != null ? html`<p class="faint number">${duration(call.seconds)}</p>` : null}`;
  return h(CallBlock, {
    name: call.name,
    args: ran,
    state,
    words: call.is_edited ? `${words}, edited` : words,
    result: call.result?.text ?? null,
    media: call.result?.media ?? 0,
    children: notes,
  });
}

/** What was changed in a call so that it could run. @param {{ repairs: RunCall["repairs"] }} props */
export function Repairs({ repairs }) {
  if (!repairs?.length) return null;
  return html`<ul class="run-repairs soft" aria-label="Repairs">
    ${repairs.map(
      (repair, index) => html`<li key=${index}>
        ${h(Icon, { name: "warn" })}
        <span><code>${repair.pointer || "/"}</code> ${repair.what}</span>
      </li>`,
    )}
  </ul>`;
}
