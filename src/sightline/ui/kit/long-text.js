// @ts-check
/** A text that is folded after its beginning until the user opens it. */

import { h, html, useState } from "../vendor/preact.js";
import { patternOf } from "./core/filter.js";
import { whole } from "./core/format.js";
import { foldText, hasTurnedText } from "./core/long-text.js";
import { sought } from "./found.js";
import { Markdown } from "./markdown.js";

/** @param {string} text */
export function looksLikeJson(text) {
  return /^\s*[{[]/.test(text) && /[}\]]\s*$/.test(text) && text.length < 400_000;
}

/**
 * A text with its fold. `isMarkdown` is for prose, everything else is shown as it is.
 * @param {{ text: string, isMarkdown: boolean, lines?: number, key?: string }} props
 */
export function LongText({ text, isMarkdown, lines = 16 }) {
  const cut = foldText(text, lines);
  const [choice, setOpen] = useState(/** @type {boolean | null} */ (null));
  const isHit = cut.isFolded && sought.value.length > 0 && patternOf(sought.value)?.test(text.slice(cut.text.length));
  const isOpen = choice ?? isHit ?? false;
  const shown = isOpen ? text : cut.text;
  if (!text) return html`<p class="empty-text">empty</p>`;
  return html`<div class=${cut.isFolded && !isOpen ? "long-text is-folded" : "long-text"}>
      ${isMarkdown ? h(Markdown, { text: shown }) : html`<pre class="plain-text" dir="auto">${shown}</pre>`}
    </div>
    ${
      cut.isFolded &&
      html`<button type="button" class="fold" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
        ${
          isOpen
            ? "Show less"
            : `Show all · ${cut.lines > 2 ? `${whole(cut.lines)} lines, ` : ""}${whole(cut.characters)} characters`
        }
      </button>`
    }
    ${
      hasTurnedText(text) &&
      html`<p class="note warn">
        This text has hidden characters that change its reading direction. Check it in Wire.
      </p>`
    }`;
}
