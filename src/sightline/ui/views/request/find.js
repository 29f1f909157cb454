// @ts-check
/** What the filter of the list looks for, marked in this request, with a way from one section to the next. */

import { iconButton } from "../../kit/button.js";
import { markWords } from "../../kit/core/filter.js";
import { countOf } from "../../kit/core/format.js";
import { showFirstMark, sought, useMarks } from "../../kit/found.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { h, html, useEffect, useRef } from "../../vendor/preact.js";
import { words } from "../traffic/feed.js";

/** @import { Desk } from "./desk.js" */

/** The texts are drawn when their card comes near: only then a mark can be shown. */
const DRAWN = 250;

/** @param {{ desk: Desk, tab: string, panel: string }} props */
export function Find({ desk, tab, panel }) {
  const wanted = words.value;
  const at = useRef(-1);
  useEffect(() => {
    sought.value = wanted;
    return () => (sought.value = []);
  }, [wanted]);
  useMarks(panel, wanted);
  const found = wanted.length
    ? desk.sections.value.filter((section) => markWords(section.text, wanted).some((piece) => piece.isHit))
    : [];
  /** @param {number} by */
  const step = (by) => {
    if (!found.length) return;
    at.current = at.current < 0 && by < 0 ? found.length - 1 : (at.current + by + found.length) % found.length;
    const card = document.getElementById(`card-${found[at.current].id}`);
    card?.scrollIntoView({ block: "start" });
    card?.focus({ preventScroll: true });
    if (card) setTimeout(() => showFirstMark(card, wanted), DRAWN);
  };
  useShortcuts(
    "Request",
    wanted.length
      ? [
          { keys: "f n", label: "Next section with what was found", run: () => step(1) },
          { keys: "f p", label: "Previous section with what was found", run: () => step(-1) },
        ]
      : [],
    [wanted, found.length],
  );
  if (!wanted.length) return null;
  const isStepped = tab === "sections" && found.length > 0;
  return html`<div class="find in-row" role="status" aria-label="Found">
    ${h(Icon, { name: "search" })}
    <span class="cut">
      ${wanted.map((word, index) => html`${index ? " " : null}<mark key=${word}>${word}</mark>`)}
    </span>
    <span class="soft">
      ${found.length ? `in ${countOf(found.length, "section")} of this request` : "not in the sections; look in Reply"}
    </span>
    ${
      isStepped
        ? html`${iconButton("up", "Previous section with it", () => step(-1), {
            title: "Previous section with it (f p)",
          })}
            ${iconButton("down", "Next section with it", () => step(1), { title: "Next section with it (f n)" })}`
        : null
    }
    ${iconButton("close", "Stop marking", () => (words.value = []), { title: "Stop marking" })}
  </div>`;
}
