// @ts-check
/** A model's answer: text, thinking, tool calls with their results, pictures and sources. None of it becomes markup. */

import { h, html, useMemo, useState } from "../vendor/preact.js";
import { CopyButton } from "./copy.js";
import { argumentsLine, callState, sourcesOf } from "./core/answers.js";
import { countOf, whole } from "./core/format.js";
import { safeAddress } from "./core/markdown-inline.js";
import { onToggle } from "./fields.js";
import { foldBlock } from "./fold-block.js";
import { Icon } from "./icon.js";
import { JsonView } from "./json-view.js";
import { LongText, looksLikeJson } from "./long-text.js";
import { memo } from "./memo.js";
import { RichText } from "./rich-text.js";

/** @import { Block } from "../api-types.d.ts" */
/** @import { AnswerShown, Citation } from "./core/answers.js" */

/** Kinds that cannot hold a script. */
const RASTER = /^image\/(?:png|jpe?g|gif|webp|avif|bmp)$/i;
/** A longer result is a view of its ends; the exchange's page has it whole. */
const LONGEST_RESULT = 20_000;

/**
 * `files` is where its pictures are, with `#` for the number; `waiting` are the ids of calls that wait for a person.
 * @param {{ answer: AnswerShown, isLive: boolean, files?: string, waiting?: ReadonlySet<string>, key?: string }} props
 */
export function AnswerBody({ answer, isLive, files = "", waiting }) {
  const blocks = answer.blocks ?? [];
  return html`<div class="answer-blocks stacked">
    ${blocks.map((block, index) =>
      renderBlock(block, String(index), isLive && index === blocks.length - 1, isLive, files, waiting),
    )}
    ${answer.citations?.length ? h(Sources, { citations: answer.citations }) : null}
  </div>`;
}

/**
 * Props are plain values, so that a block whose words are the same is not drawn again.
 * @param {Block} block
 * @param {string} key
 * @param {boolean} isLast
 * @param {boolean} isLive
 * @param {string} files
 * @param {ReadonlySet<string>} [waiting]
 */
function renderBlock(block, key, isLast, isLive, files, waiting) {
  switch (block.type) {
    case "text":
      return h(RichText, { key, text: block.text, isLive: isLast });
    case "thinking":
      return h(Thinking, { key, text: block.text, isLive: isLast });
    case "refusal":
      return h(Refusal, { key, text: block.text });
    case "media":
      return h(Media, { key, files, n: block.n, mediaType: block.media_type });
    default:
      return h(CallBlock, {
        key,
        name: block.name,
        args: block.arguments,
        state: callState(block, isLive, waiting),
        ...(block.result?.is_denied && { words: "denied" }),
        result: block.result?.text ?? null,
        media: block.result?.media ?? 0,
        first: block.result?.first ?? 0,
        files,
      });
  }
}

const Thinking = memo(function Thinking(/** @type {{ text: string, isLive: boolean }} */ { text, isLive }) {
  const [isOpen, setOpen] = useState(false);
  const words = text ? h(RichText, { text, isLive }) : html`<p class="empty-text">The provider hides the thinking.</p>`;
  return foldBlock(isLive ? "Thinking…" : "Thinking", isOpen && html`<div class="fold-inside soft">${words}</div>`, {
    kind: isLive ? "thinking is-live" : "thinking",
    aside: html`<span class="faint number">
        ${text ? countOf(wordCount(text), "word") : "signed by the provider"}
      </span>`,
    onToggle: onToggle(setOpen),
  });
});

/** @param {string} text */
function wordCount(text) {
  return text.trim().split(/\s+/).length;
}

const Refusal = memo(function Refusal(/** @type {{ text: string }} */ { text }) {
  return html`<div class="refusal-block" role="note" aria-label="Refusal">
    <p class="refusal-head">${h(Icon, { name: "warn" })}The model refused</p>
    ${h(RichText, { text })}
  </div>`;
});

const STATES = {
  called: "called",
  waiting: "waits for you",
  running: "running…",
  failed: "error",
  done: "done",
  open: "no result",
};

/**
 * `words` say how it stands where the state alone does not, `files` where its media are, with `#` for the number.
 * @typedef {{ name: string, args: string, state: keyof typeof STATES, words?: string, result: string | null, media?:
 *   number, first?: number, files?: string, children?: any }} CallProps
 */

export const CallBlock = memo(function CallBlock(
  /** @type {CallProps} */ {
    name,
    args,
    state,
    words = STATES[state],
    result,
    media = 0,
    first = 0,
    files = "",
    children,
  },
) {
  const [isOpen, setOpen] = useState(false);
  const summary = useMemo(() => argumentsLine(args), [args]);
  return html`<details class=${`fold-block boxed call ${state}`} onToggle=${onToggle(setOpen)}>
    <summary data-call=${name} data-state=${words}>
      <span class="fold-mark" aria-hidden="true"></span>
      <span class="unseen">Call of </span>
      <code class="fold-title">${name}</code>
      <span class="cut faint fold-summary">${summary}</span>
      <span class=${`call-state ${state}`}>${words}</span>
    </summary>
    ${
      isOpen &&
      html`<div class="fold-inside">
        <div class="call-part"><h4>Arguments</h4>${h(CopyButton, { text: args, label: "Copy arguments" })}</div>
        ${
          looksLikeJson(args)
            ? h(JsonView, { text: args, open: 3, label: `Arguments of ${name}` })
            : html`<pre class="plain-text" dir="auto">${args || "none"}</pre>`
        }
        ${
          result === null
            ? null
            : html`<div class="call-part">
                  <h4>${state === "failed" ? "Error" : "Result"}</h4>
                  ${h(CopyButton, { text: result, label: "Copy result" })}
                </div>
                ${h(Result, { text: result })}`
        }
        ${media && !files ? html`<p class="faint">${countOf(media, "attachment")} came with it.</p>` : null}
        ${
          files
            ? Array.from({ length: media }, (_, index) =>
                h(Media, { key: String(index), files, n: first + index, mediaType: "" }),
              )
            : null
        }
        ${children ?? null}
      </div>`
    }
  </details>`;
});

/** A tool's answer is data: it is shown as the text that it is. @param {{ text: string }} props */
export function Result({ text }) {
  if (!text) return html`<p class="empty-text">empty</p>`;
  if (looksLikeJson(text) && text.length < LONGEST_RESULT) return h(JsonView, { text, open: 2, label: "Result" });
  const half = LONGEST_RESULT / 2;
  const cut = text.length - LONGEST_RESULT;
  const shown =
    cut > 0 ? `${text.slice(0, half)}\n\n⋯ ${whole(cut)} characters are not shown ⋯\n\n${text.slice(-half)}` : text;
  return h(LongText, { text: shown, isMarkdown: false, lines: 14 });
}

/**
 * What is not said to be something else is tried as a picture; the server gives nothing out as one that is none.
 * @param {{ files: string, n: number, mediaType: string, key?: string }} props
 */
function Media({ files, n, mediaType }) {
  const [isBroken, setBroken] = useState(false);
  const path = files.replace("#", String(n));
  if (!files) return html`<p class="attachment wraps">${mediaType || "attachment"}</p>`;
  if ((!mediaType || RASTER.test(mediaType)) && !isBroken) {
    return html`<figure class="answer-picture">
      <a href=${path} target="_blank" rel="noopener noreferrer">
        <img src=${path} alt="Picture in the answer" loading="lazy" onError=${() => setBroken(true)} />
      </a>
    </figure>`;
  }
  return html`<p class="attachment wraps">
    <a href=${path} target="_blank" rel="noopener noreferrer">Download <code>${mediaType || "attachment"}</code></a>
    ${isBroken ? html` <span class="faint">the browser cannot show it</span>` : null}
  </p>`;
}

/** How answers end that are whole. */
const WHOLE = ["stop", "end_turn", "tool_calls", "tool_use"];

/** Why an answer ended before it was whole. @param {{ who: string, finish: string | null | undefined }} props */
export function Ending({ who, finish }) {
  if (!finish || WHOLE.includes(finish)) return null;
  return html`<p class="answer-ending">
    ${h(Icon, { name: "warn" })}${who} ended with ${finish.replaceAll("_", " ")}.
  </p>`;
}

/** @param {{ citations: readonly Citation[] }} props */
function Sources({ citations }) {
  const listed = useMemo(() => sourcesOf(citations), [citations]);
  if (!listed.length) return null;
  return html`<section class="sources" aria-label="Sources">
    <h4>Sources</h4>
    <ol>
      ${listed.map((source) => {
        const href = safeAddress(source.url);
        return html`<li key=${source.number} value=${source.number}>
          ${
            href
              ? html`<a href=${href} target="_blank" rel="noopener noreferrer nofollow" title=${href}>
                    ${source.title}
                  </a> <span class="faint">${hostOf(href)}</span>`
              : html`<span>${source.title}</span>`
          }
          ${source.quotes.slice(0, 3).map(
            (quote, index) => html`<q key=${index} class="soft">
              ${quote.length > 240 ? `${quote.slice(0, 240)}…` : quote}
            </q>`,
          )}
        </li>`;
      })}
    </ol>
  </section>`;
}

/** @param {string} href */
function hostOf(href) {
  return /^https?:\/\/([^/?#]+)/i.exec(href)?.[1] ?? "";
}
