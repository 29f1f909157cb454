// @ts-check
/** The reply, assembled as it arrives, and its raw frames. */

import { onAnnounced, onFact, stopAll } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { copyText } from "../../kit/copy.js";
import { duration, whole } from "../../kit/core/format.js";
import { JsonView } from "../../kit/json-view.js";
import { LongText, looksLikeJson } from "../../kit/long-text.js";
import { FaultNote } from "../../kit/notices.js";
import { followTogether, useResource } from "../../kit/resource.js";
import { segmentControl } from "../../kit/segmented.js";
import { h, html, useState } from "../../vendor/preact.js";
import { isHeld, isOver } from "./core/exchange.js";

/** @import { Desk } from "./desk.js" */
/**
 * @typedef {{ type: string, text?: string, id?: string, name?: string, arguments?: string, signature?: string }}
 *   ReplyPart
 */
/**
 * @typedef {{ parts?: ReplyPart[], finish?: string, usage?: Record<string, number>, model?: string, id?: string,
 *   fault?: { code: string, message: string } }} Folded
 */

/** What arrives within so many milliseconds is asked for together. */
const TOGETHER = 300;

/**
 * Follows what arrives of an exchange. Once `isOver`, nothing more does, and facts that were left out are of others.
 * @param {string} id
 * @param {() => boolean} [isOver]
 */
export const followExchange = (id, isOver = () => false) =>
  followTogether((changed) => {
    let isWhole = isOver(); // what is read from now on has the end
    return stopAll(
      onFact((fact) => fact.exchange === id && changed()),
      onAnnounced("more", () => {
        if (isWhole) return;
        isWhole = isOver();
        changed();
      }),
    );
  }, TOGETHER);

/** @param {{ desk: Desk }} props */
export function Reply({ desk }) {
  const view = desk.view.value;
  const follow = followExchange(desk.id, () => isOver(desk.view.peek()));
  const { value: answer, trouble } = useResource(`${desk.path}/reply`, follow);
  const folded = /** @type {Folded | null | undefined} */ (answer?.reply);
  const [isRaw, setRaw] = useState(false);
  const isLive = view?.state === "sending";
  // What is still arriving has no end yet, so that it has none is no fault.
  const reply = isLive && folded ? { ...folded, finish: undefined, fault: undefined } : folded;
  const parts = reply?.parts ?? [];
  const hasNothing = !parts.length && !answer?.raw && !reply?.fault;
  return html`<div class="reply">
    <div class="toolbar">
      ${segmentControl({
        label: "How the reply is shown",
        value: isRaw,
        choices: [
          { value: false, label: "Reply" },
          { value: true, label: "Raw frames" },
        ],
        onChange: setRaw,
      })}
      ${isLive ? html`<span class="sending-note pulse" role="status">arriving…</span>` : null}
      <span class="card-gap"></span>
      ${
        answer?.by_hand &&
        html`<span class="chip edited" title="The client got what a person wrote or changed">by hand</span>`
      }
      ${
        reply?.finish &&
        html`<span
          title="Why the reply ended"
          class=${`chip finish ${["error", "cancelled", "content_filter"].includes(reply.finish) ? "bad" : ""}`}
        >
          ${reply.finish.replaceAll("_", " ")}
        </span>`
      }
      ${answer ? html`<span class="soft number">${whole(answer.events)} events</span>` : null}
      ${
        view?.first_byte != null &&
        html`<span class="soft number" title="Until the first byte">first byte ${duration(view.first_byte)}</span>`
      }
      ${button(
        "Copy",
        () =>
          void copyText(
            isRaw ? (answer?.raw ?? "") : parts.map((part) => part.text ?? part.arguments ?? "").join("\n"),
          ),
        { icon: "copy", isDisabled: !answer || hasNothing },
      )}
    </div>
    <div class="reply-body" aria-live=${isLive ? "polite" : null} aria-busy=${isLive}>
      ${trouble ? html`<div class="empty"><p class="soft">${trouble.message}</p></div>` : null}
      ${
        answer &&
        isRaw &&
        html`<pre class="raw-frames" tabindex="0" aria-label="Raw frames">
          ${answer.raw || "Nothing has arrived."}
        </pre>`
      }
      ${
        !isRaw &&
        answer &&
        hasNothing &&
        html`<div class="empty">
          <p>
            ${
              isHeld(view) && view?.hold?.phase !== "tool_calls"
                ? "It has not been sent yet."
                : isLive
                  ? "Nothing has arrived yet."
                  : "There is no reply."
            }
          </p>
          ${isHeld(view) && html`<p class="soft">Send it, or answer by hand. The reply shows here as it arrives.</p>`}
        </div>`
      }
      ${!isRaw ? parts.map((part, index) => h(ReplyPartView, { key: String(index), part })) : null}
      ${!isRaw && reply?.fault && h(FaultNote, { fault: reply.fault })}
      ${!isRaw && reply?.usage ? h(Usage, { usage: reply.usage }) : null}
    </div>
  </div>`;
}

/** @param {{ part: ReplyPart, key?: string }} props */
function ReplyPartView({ part }) {
  const text = part.text ?? "";
  if (part.type === "tool_call") {
    const args = part.arguments ?? "";
    return html`<article class="card boxed kind-tool_call" aria-label=${`Call of ${part.name}`}>
      <header class="card-head in-row">
        <i class="card-kind"></i>
        <h3 class="card-label cut">calls ${part.name}</h3>
        <code class="faint cut">${part.id}</code>
      </header>
      <div class="card-body">
        ${
          looksLikeJson(args)
            ? h(JsonView, { text: args, open: 3, label: `Arguments of ${part.name}` })
            : html`<pre class="plain-text">${args}</pre>`
        }
      </div>
    </article>`;
  }
  if (part.type === "thinking") {
    return html`<details class="card boxed kind-thinking">
      <summary class="card-head in-row">
        <i class="card-kind"></i>
        <h3 class="card-label">Thinking</h3>
        <span class="faint number">${text ? `${whole(text.length)} characters` : "signed"}</span>
      </summary>
      <div class="card-body">${h(LongText, { text, isMarkdown: true, lines: 40 })}</div>
    </details>`;
  }
  const isKnown = part.type === "text" || part.type === "refusal";
  return html`<article class=${`card boxed kind-assistant ${part.type}`} aria-label=${part.type}>
    ${
      isKnown && part.type === "text"
        ? null
        : html`<header class="card-head in-row">
            <i class="card-kind"></i>
            <h3 class="card-label">${part.type}</h3>
          </header>`
    }
    <div class="card-body">
      ${
        isKnown
          ? h(LongText, { text, isMarkdown: true, lines: 200 })
          : h(JsonView, { text: JSON.stringify(part), open: 2 })
      }
    </div>
  </article>`;
}

const COUNTS = [
  ["input_tokens", "input"],
  ["cached_tokens", "cached"],
  ["cache_write_tokens", "written to the cache"],
  ["output_tokens", "output"],
  ["reasoning_tokens", "reasoning"],
];

/** @param {{ usage: Record<string, number> }} props */
function Usage({ usage }) {
  return html`<dl class="usage">
    ${COUNTS.filter(([name]) => usage[name] != null).map(
      ([name, label]) => html`<div key=${name}>
        <dt>${label}</dt>
        <dd class="number">${whole(usage[name])}</dd>
      </div>`,
    )}
  </dl>`;
}
