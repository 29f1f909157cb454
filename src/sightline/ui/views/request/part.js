// @ts-check
/** One part of a section. */

import { whole } from "../../kit/core/format.js";
import { safeAddress, safeImage } from "../../kit/core/markdown-inline.js";
import { JsonView } from "../../kit/json-view.js";
import { LongText, looksLikeJson } from "../../kit/long-text.js";
import { h, html, useState } from "../../vendor/preact.js";
import { isText } from "./core/exchange.js";

/** @import { Setter } from "../../kit/json-view.js" */
/** @import { SectionPart } from "../../api-types.d.ts" */

const NAMES = /** @type {Record<string, string>} */ ({
  text: "text",
  refusal: "refusal",
  image: "image",
  document: "document",
  audio: "audio",
  thinking: "thinking",
  tool_call: "call",
  tool_result: "result",
  cache_breakpoint: "cache mark",
  opaque: "as it came",
  tool: "tool",
  option: "option",
});

/** @param {SectionPart} part */
export function partName(part) {
  // What an agent has put into a message is told apart from what a person wrote.
  if (part.type === "text" && part.name) return part.name;
  return part.name ? `${NAMES[part.type] ?? part.type} ${part.name}` : (NAMES[part.type] ?? part.type);
}

/** @param {{ part: SectionPart, isMarkdown: boolean, onSet: Setter | null, key?: string }} props */
export function PartBody({ part, isMarkdown, onSet }) {
  const text = part.text ?? "";
  switch (part.type) {
    case "image":
      return h(Picture, { part });
    case "document":
    case "audio":
      return html`<p class="attachment wraps">
          ${NAMES[part.type]}
          ${part.media_type ? html` <code>${part.media_type}</code>` : null}
          ${part.name ? html` <b>${part.name}</b>` : null}
          ${h(Address, { url: part.url ?? "" })}
        </p>
        ${text ? h(LongText, { text, isMarkdown: false }) : null}`;
    case "cache_breakpoint":
      return html`<p class="cache-mark in-row"><span>cache mark${text ? ` · ${text}` : ""}</span></p>`;
    case "tool":
    case "option":
      return h(JsonView, {
        text,
        pointer: part.pointer,
        open: part.type === "option" ? 2 : 1,
        label: part.name || "JSON",
        onSet,
      });
    case "tool_call":
      return looksLikeJson(text)
        ? h(JsonView, { text, label: `Arguments of ${part.name}`, open: 2 })
        : h(LongText, { text, isMarkdown: false });
    case "opaque":
      return looksLikeJson(text)
        ? h(JsonView, { text, open: 1, label: "As it came" })
        : h(LongText, { text: text || "(nothing to show)", isMarkdown: false, lines: 6 });
    case "thinking":
      return text
        ? h(LongText, { text, isMarkdown, lines: 6 })
        : html`<p class="empty-text">signed by the provider, which does not show the thinking</p>`;
    case "tool_result":
      return looksLikeJson(text) && text.length < 100_000
        ? h(JsonView, { text, open: 2, label: "Result" })
        : h(LongText, { text, isMarkdown: false });
    default:
      return h(LongText, { text, isMarkdown: isMarkdown && isText(part) });
  }
}

/**
 * Only pictures that are in the request itself are shown: a remote one could tell its owner that it was looked at.
 * @param {{ part: SectionPart }} props
 */
function Picture({ part }) {
  const url = part.url ?? "";
  const [isBroken, setBroken] = useState(false);
  const src = safeImage(url);
  if (src && !isBroken)
    return html`<figure class="picture">
      <img src=${src} alt=${part.text || "Picture in the request"} loading="lazy" onError=${() => setBroken(true)} />
      <figcaption class="faint">
        ${part.media_type || "image"} · ${whole(Math.ceil((src.length * 3) / 4 / 1024))} KB
      </figcaption>
    </figure>`;
  return html`<p class="attachment wraps">
    image${part.media_type ? html` <code>${part.media_type}</code>` : null}
    ${isBroken ? " that the browser cannot read" : ""}
    ${h(Address, { url })}
  </p>`;
}

/** @param {{ url: string }} props */
function Address({ url }) {
  if (!url) return null;
  const href = safeAddress(url);
  if (href)
    return html` <a href=${href} target="_blank" rel="noopener noreferrer nofollow">
        ${href.length > 90 ? `${href.slice(0, 90)}…` : href}
      </a> <span class="faint">not loaded</span>`;
  return html` <code class="cut">${url.slice(0, 80)}${url.length > 80 ? "…" : ""}</code>`;
}
