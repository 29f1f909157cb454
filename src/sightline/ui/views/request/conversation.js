// @ts-check
/** What led to held tool calls: the conversation that was sent, and what the model said before it called. */

import { linkButton } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { LongText } from "../../kit/long-text.js";
import { useResource } from "../../kit/resource.js";
import { h, html, useState } from "../../vendor/preact.js";

/** So many of the last messages are shown at once. */
const LAST = 4;
const SKIPPED = ["tools", "options"];

/** @param {{ id: string }} props */
export function Conversation({ id }) {
  const [isWhole, setWhole] = useState(false);
  const path = /** @type {const} */ (`/api/exchanges/${encodeURIComponent(id)}`);
  const { value, trouble } = useResource(`${path}/conversation`);
  const { value: answer } = useResource(`${path}/reply`);
  if (trouble) return html`<p class="soft">The conversation could not be loaded: ${trouble.message}</p>`;
  if (!value) return html`<p class="faint" role="status">Loading the conversation…</p>`;
  const sections = value.sections.filter((each) => !SKIPPED.includes(each.kind));
  const shown = isWhole ? sections : sections.slice(-LAST);
  const parts = /** @type {{ type: string, text?: string }[]} */ (answer?.reply?.parts ?? []);
  const said = parts.filter((part) => part.type === "text").map((part) => part.text ?? "");
  return html`<section class="led-here stacked" aria-label="The conversation that led to these calls">
    ${
      shown.length < sections.length &&
      linkButton(`Show all of the conversation: ${countOf(sections.length - shown.length, "earlier message")}`, () =>
        setWhole(true),
      )
    }
    ${shown.map((each) =>
      h(Utterance, {
        key: each.id,
        label: each.label,
        text: each.text || each.parts.map((part) => part.text).join("\n"),
      }),
    )}
    ${said.length ? h(Utterance, { label: "Reply", text: said.join("\n") }) : null}
  </section>`;
}

/** @param {{ label: string, text: string, key?: string }} props */
function Utterance({ label, text }) {
  return html`<div class="led-message">
    <h3 class="card-label">${label}</h3>
    ${text ? h(LongText, { text, isMarkdown: false, lines: 8 }) : html`<p class="faint">Nothing to read.</p>`}
  </div>`;
}
