// @ts-check
/** What would have helped against a cache miss, with a button for each edit that does it from the next request on. */

import { post, remove } from "./api.js";
import { button } from "./button.js";
import { countOf, money, short } from "./core/format.js";
import { attempt, toast, toastError } from "./toast.js";
import { html, useState } from "../vendor/preact.js";

/** @import { CacheAdvice, KeepableEdit } from "../api-types.d.ts" */

/** @param {{ saved_tokens: number, money: number | null }} saved */
const worth = ({ saved_tokens: tokens, money: dollars }) =>
  `${short(tokens)} tokens${dollars ? `, ${money(dollars)}` : ""}`;

/** What each edit does to later requests. @type {Record<KeepableEdit["action"], string>} */
const MEANINGS = {
  freeze: "Later requests send these words as they were",
  strip: "Later requests go without these words",
  move: "Later requests have these words at the end of the newest message",
  order: "Later requests have the tools in the order of the first one",
  option: "Later requests have the value of the first one",
  mark: "Later requests are marked for the cache",
};

/** With `isShort`, only the edits. @param {{ advice: readonly CacheAdvice[], isShort?: boolean }} props */
export function CacheAdviceList({ advice, isShort = false }) {
  const [kept, setKept] = useState(/** @type {ReadonlySet<string | undefined>} */ (new Set()));
  /** @param {KeepableEdit} edit */
  const keep = async (edit) => {
    const { mask } = edit;
    if (!(await attempt(() => post("/api/masks", mask)))) return;
    setKept(new Set([...kept, mask.id]));
    const where = mask.name ? `the next requests of ${mask.scope ?? "session"} ${mask.name}` : "all requests";
    const undo = () => remove(`/api/masks/${mask.id}`).then(() => setKept(new Set()), toastError);
    toast(`Kept: it changes ${where}.`, { action: { label: "Undo", run: () => void undo() } });
  };
  if (!advice.some((each) => !isShort || each.edits.length)) return null;
  return html`<ul class=${isShort ? "cache-advice is-short" : "cache-advice"} aria-label="What would have helped">
    ${advice.map(
      (each) => html`<li key=${`${each.cause} ${each.section_name}`} class="in-row">
        ${
          isShort
            ? null
            : html`<span>
                ${each.text}${" "}
                <span class="faint">
                  ${each.section_name ? `${each.section_name}: ` : ""}
                  lost ${worth(each)} in ${countOf(each.turns, "turn")}
                </span>
              </span>`
        }
        ${each.edits.map((edit) => {
          const isKept = kept.has(edit.mask.id);
          const label = html`${isKept ? "Kept" : edit.label}
            <span class="faint number">${isKept ? "" : `saves ${worth(edit)}`}</span>`;
          return button(label, () => void keep(edit), {
            key: edit.mask.id,
            isDisabled: isKept,
            title: `${MEANINGS[edit.action]}${edit.words ? `: “${edit.words}”` : ""}. Saves ${worth(edit)} here.`,
          });
        })}
      </li>`,
    )}
  </ul>`;
}
