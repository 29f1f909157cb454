// @ts-check
/** One question and its answer in the history. */

import { addressOf } from "../../kit/api.js";
import { AnswerBody } from "../../kit/answer.js";
import { button, linkButton } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { countOf, formatRunning, stamp, when, whole } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { memo } from "../../kit/memo.js";
import { h, html, useState } from "../../vendor/preact.js";
import { ApprovalCard, waitingRuns } from "../runs/approval.js";
import { cancel, dialog, remove, resume, waitsFor } from "./actions.js";
import { inChat, mediaOf } from "./chats.js";
import { formatBytes } from "./core/attachments.js";
import { whyIncomplete, isLeft, limitLine, usageOf, timeUntil } from "./core/chat.js";
import { liveOf } from "./feed.js";
import { PairActions, reviseHere } from "./pair-actions.js";

/** @import { AnswerShown, PairShown, TroubleShown } from "../../api-types.d.ts" */
/** @import { Standing } from "./core/chat.js" */

/** A question that is longer is folded. */
const LONG = 1800;
const LONG_LINES = 24;
/** Pairs that were imported without a date have the first day of 1970. */
const UNDATED = 86_400;
const RASTER = /^image\/(?:png|jpeg|gif|webp)$/;

const WHY_OFF = "Out of context: too much for the model's limit, so it is not sent";

/** How the label of a pair begins that is not sent. @type {Partial<Record<Standing, string>>} */
const STANDING_LABELS = { excluded: "Off: ", left_out: "Left out: " };

/**
 * @typedef {{ pair: PairShown, index: number, total: number, standing: Standing, isActive: boolean, isMeant: boolean,
 * paused: { line: string, can_go_at: number | null } | null, note: string, onAim: (event: Event, index: number) => void
 * }} PairProps
 */

export const Pair = memo(function Pair(/** @type {PairProps} */ props) {
  const { pair, index, total, standing, isActive, isMeant, paused, note, onAim } = props;
  const names = [
    "pair",
    standing,
    standing === "excluded" ? "ooc" : "",
    pair.state,
    isActive ? "is-active" : "",
    isMeant ? "is-meant" : "",
    `flag-${pair.flag}`,
  ]
    .filter(Boolean)
    .join(" ");
  const words = pair.user_text.trim() || (pair.attachments.length ? "attachments only" : "nothing");
  return html`<article
    id=${`pair-${pair.id}`}
    class=${names}
    tabindex=${isActive ? 0 : -1}
    aria-posinset=${index + 1}
    aria-setsize=${total}
    aria-current=${isActive ? "true" : null}
    aria-label=${`${STANDING_LABELS[standing] ?? ""}${words.slice(0, 80)}`}
    onPointerDown=${(/** @type {Event} */ event) => onAim(event, index)}
    onFocusIn=${(/** @type {Event} */ event) => onAim(event, index)}
  >
    ${h(Head, { pair, standing })}
    ${h(Question, { pair })}
    <div class="pair-answer" data-lead>
      ${
        pair.state === "sending"
          ? h(Arriving, { pair, paused })
          : pair.answer
            ? h(Answer, { pair, answer: pair.answer })
            : null
      }
      ${note ? html`<p class="pair-note">${note}</p>` : null}
      ${pair.trouble && pair.state !== "sending" ? h(Trouble, { pair, trouble: pair.trouble }) : null}
      ${isLeft(pair) ? h(ApprovalCard, { key: pair.run, run: pair.run, isLeft: true }) : null}
    </div>
    ${pair.state === "sending" ? null : h(PairActions, { pair, standing, isMeant })}
  </article>`;
});

/** @param {string} names @param {string} words @param {string} title */
const badge = (names, words, title) => html`<span class=${names} title=${title}>${words}</span>`;

/** @param {{ pair: PairShown, standing: Standing }} props */
function Head({ pair, standing }) {
  const now = Date.now() / 1000;
  const summarized = pair.summary_of.length;
  return html`<header class="pair-head in-row">
    ${standing === "excluded" && badge("badge off", "off", WHY_OFF)}
    ${standing === "left_out" && badge("badge out", "left out", "Left out by hand: it is shown, and not sent")}
    ${pair.hand === "in" && badge("badge in", "kept", "Kept by hand: it is shown whatever the filter says")}
    ${
      pair.star
        ? html`<span class="stars" role="img" aria-label=${`${pair.star} of 3 stars`}>${"★".repeat(pair.star)}</span>`
        : null
    }
    ${pair.flag === "blue" ? null : badge("badge grey", "grey", "Flagged grey")}
    ${pair.is_edited && badge("badge", "edited", "Edited while the request was held: this is what was sent")}
    ${summarized ? badge("badge sum", `summary of ${summarized}`, "This summary stands for these pairs") : null}
    ${pair.topic_path.length ? html`<span class="pair-topic cut">${pair.topic_path.join(" › ")}</span>` : null}
    <span class="pair-model cut">${pair.asking ? `${pair.model} → ${pair.asking}` : pair.model}</span>
    ${
      pair.at < UNDATED
        ? html`<span title="The file that it came from does not say when">undated</span>`
        : html`<time class="number" datetime=${new Date(pair.at * 1000).toISOString()} title=${stamp(pair.at)}>
            ${when(pair.at, now)}
          </time>`
    }
    <span
      class="pair-size number"
      title=${`What the pair takes of the context: ${whole(pair.tokens.low)} to ${whole(pair.tokens.high)} tokens`}
    >
      ${pair.tokens.low < pair.tokens.high ? "~" : ""}${whole(pair.tokens.tokens)}
    </span>
  </header>`;
}

/** @param {{ pair: PairShown }} props */
function Question({ pair }) {
  const text = pair.user_text;
  const isLong = text.length > LONG || text.split("\n", LONG_LINES + 1).length > LONG_LINES;
  const [isOpen, setOpen] = useState(false);
  return html`<div class="pair-question">
    ${text && html`<div class=${isLong && !isOpen ? "question-text is-cut" : "question-text"} dir="auto">${text}</div>`}
    ${
      isLong &&
      linkButton(isOpen ? "Show less" : `Show all ${whole(text.length)} characters`, () => setOpen(!isOpen), {
        isExpanded: isOpen,
      })
    }
    ${
      pair.attachments.length
        ? html`<ul class="question-files" aria-label="Attachments">
            ${pair.attachments.map((each) => {
              const file = inChat(`/api/chat/pairs/${encodeURIComponent(pair.id)}/media/${each.n}?of=question`);
              const href = addressOf(file);
              return html`<li key=${each.n}>
                ${
                  RASTER.test(each.media_type)
                    ? html`<a class="question-picture" href=${href} target="_blank" rel="noopener" title=${each.name}>
                        <img src=${href} alt=${each.name || "picture"} loading="lazy" />
                      </a>`
                    : html`<a class="question-file" href=${href} download=${each.name || true}>
                        ${each.name || each.media_type} <span class="faint number">${formatBytes(each.size)}</span>
                      </a>`
                }
              </li>`;
            })}
          </ul>`
        : null
    }
  </div>`;
}

/** @param {{ pair: PairShown, answer: AnswerShown }} props */
function Answer({ pair, answer }) {
  const why = whyIncomplete(answer);
  return html`
    ${h(AnswerBody, { answer, isLive: false, files: mediaOf(pair.id) })}
    <footer class="pair-foot in-row number">
      ${why ? html`<span class="badge cut-off">${why}</span>` : null}
      ${
        answer.model &&
        answer.model !== pair.model &&
        !pair.model.endsWith(`/${answer.model}`) &&
        html`<span title="The model that answered, as it calls itself">${answer.model}</span>`
      }
      ${usageOf(answer).map((each) => html`<span key=${each.text} title=${each.help}>${each.text}</span>`)}
      ${
        pair.earlier
          ? linkButton(countOf(pair.earlier, "earlier answer"), () => (dialog.value = { kind: "earlier", pair }))
          : null
      }
      ${
        answer.exchange &&
        html`<a
          href=${hashOf({ view: "request", id: answer.exchange, tab: "sections" })}
          title="The request as it was sent, and its reply"
        >
          request
        </a>`
      }
      ${answer.run ? html`<a href=${`#/runs/${encodeURIComponent(answer.run)}`}>run</a>` : null}
    </footer>`;
}

/**
 * What has come so far; drawn again with each piece, and nothing else of the page with it.
 * @param {{ pair: PairShown, paused: PairProps["paused"] }} props
 */
function Arriving({ pair, paused }) {
  const live = liveOf(pair.id).value;
  const answer = live ?? pair.answer;
  const hasWords = Boolean(answer?.blocks.length);
  const run = answer?.run || pair.run;
  const waiting = waitingRuns.value.get(run ?? "");
  const now = useNow();
  return html`
    ${answer && hasWords ? h(AnswerBody, { answer, isLive: true, files: mediaOf(pair.id), waiting }) : null}
    ${run ? h(ApprovalCard, { run }) : null}
    ${paused ? h(PauseNote, { paused, now }) : null}
    <div class="arriving in-row" role="status">
      <span class="thinking-badge">
        <i></i>
        <i></i>
        <i></i>
        ${waitsFor.value || (paused ? "waiting…" : hasWords ? "answering…" : "thinking…")}
      </span>
      <span class="faint number" aria-hidden="true">${formatRunning(now - pair.at)}</span>
      ${pair.asking ? html`<span class="faint">${pair.asking}</span>` : null}
      ${button("Stop", cancel, { kind: "quiet", icon: "stop", keys: "escape" })}
    </div>`;
}

/** @param {{ paused: { line: string, can_go_at: number | null }, now: number }} props */
function PauseNote({ paused, now }) {
  const left = paused.can_go_at === null ? "" : timeUntil(paused.can_go_at, now);
  return html`<div class="paused in-row" role="alert">
    ${h(Icon, { name: "pause" })}
    <p>
      ${limitLine(paused.line)} ${
        paused.can_go_at === null
          ? null
          : html`<span class="number">Goes on at ${when(paused.can_go_at, now)}${left ? ` (in ${left})` : ""}.</span>`
      }
    </p>
    ${button("Send anyway", () => resume(true))}
  </div>`;
}

/** @param {{ pair: PairShown, trouble: TroubleShown }} props */
function Trouble({ pair, trouble }) {
  const isError = pair.state === "error";
  return html`<div class="pair-trouble" role="group" aria-label="Error">
    <p class="trouble-line">
      ${trouble.line}
      ${
        trouble.line.startsWith(`[error: ${trouble.code}]`)
          ? null
          : html` <code class="trouble-code faint" title="What it is exactly; filter with fault:${trouble.code}">
                ${trouble.code}
              </code>`
      }
    </p>
    ${trouble.hint ? html`<p class="soft">${trouble.hint}</p>` : null}
    ${
      isError &&
      html`<p class="trouble-actions">
        ${button("Re-ask", () => reviseHere(pair), { icon: "replay", keys: "e" })}
        ${button("Delete", () => remove([pair.id]), { kind: "danger", icon: "trash", keys: "d" })}
        ${
          pair.exchange &&
          html`<a class="button quiet" href=${hashOf({ view: "request", id: pair.exchange, tab: "sections" })}>
            Request
          </a>`
        }
      </p>`
    }
  </div>`;
}
