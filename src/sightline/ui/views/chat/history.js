// @ts-check
/**
 * The history: the pairs around what is in sight, the boundary among them, and what is shown when there are none.
 */

import { about } from "../../kit/about.js";
import { button } from "../../kit/button.js";
import { countOf, whole } from "../../kit/core/format.js";
import { Icon } from "../../kit/icon.js";
import { VirtualList } from "../../kit/virtual-list.js";
import { h, html } from "../../vendor/preact.js";
import { dialog } from "./actions.js";
import { chat, goToChat } from "./chats.js";
import { standingOf } from "./core/chat.js";
import { condition, heights, changeView, showRows, noteHeight, rows, tick, trouble, view } from "./feed.js";
import { setCursor, cursor, isTypewriter, list, mark, selectionRange, useCursor } from "./modes.js";
import { Pair } from "./pair.js";

/** @import { ViewShown } from "../../api-types.d.ts" */

/** @param {Event} event @param {number} index */
function aimAt(event, index) {
  const [first, last] = selectionRange();
  // The buttons of a pair that is chosen with others are about all of them.
  if (
    mark.value &&
    index >= first &&
    index < last &&
    event.target instanceof Element &&
    event.target.closest(".pair-actions")
  )
    return;
  if (event instanceof PointerEvent && event.shiftKey) {
    if (!mark.value) mark.value = cursor.value.id;
  } else if (event instanceof PointerEvent) mark.value = "";
  if (cursor.value.id !== rows.at(index)?.id) setCursor(index);
}

export function History() {
  const shown = view.value;
  useCursor();
  if (condition.value === "failed" && trouble.value) return h(HistoryError, {});
  if (!shown)
    return html`<div class="history-state" role="status" aria-label="Loading">
      <span class="thinking-badge"><i></i><i></i><i></i>loading…</span>
    </div>`;
  if (!shown.rows) return shown.filter ? h(NothingFound, { shown }) : h(NothingYet, {});
  const [first, last] = selectionRange();
  const active = cursor.value;
  const hasMarked = mark.value !== "" && last - first > 1;
  /** @param {number} index */
  const render = (index) => {
    const pair = rows.at(index);
    const line = index === shown.start && index > 0 ? h(Boundary, { shown }) : null;
    if (!pair)
      return html`${line}<div class="pair ghost" aria-hidden="true"><span></span><span></span><span></span></div>`;
    const isActive = active.id ? pair.id === active.id : index === active.index;
    const isLast = index === shown.rows - 1 && shown.start >= shown.rows;
    const paused = pair.id === shown.sending ? shown.paused : null;
    const note = shown.last?.pair === pair.id && pair.state !== "sending" ? shown.last.trim_summary : "";
    return html`${line}
      ${h(Pair, {
        key: pair.id,
        pair,
        index,
        total: shown.rows,
        standing: standingOf(pair, index, shown.start),
        isActive,
        isMeant: hasMarked && index >= first && index < last,
        paused,
        note,
        onAim: aimAt,
      })}
      ${isLast ? h(Boundary, { shown }) : null}`;
  };
  return html`<div class=${isTypewriter.value ? "history is-typewriter" : "history"}>
    ${h(VirtualList, {
      heights,
      version: tick.value,
      edge: "end",
      keyOf: (index) => rows.at(index)?.id ?? "",
      placeOf: (key) => rows.places.get(key),
      render,
      onWindow: showRows,
      onMeasured: noteHeight,
      handle: list,
      attributes: {
        "data-edge": "",
        role: "feed",
        "aria-label": "History",
        "aria-busy": condition.value === "loading",
        tabindex: 0,
      },
    })}
  </div>`;
}

/** @param {{ shown: ViewShown }} props */
function Boundary({ shown }) {
  const { predicted, visible } = shown.counter;
  return html`<div
    class="boundary in-row"
    role="separator"
    aria-label=${predicted ? `Boundary: ${countOf(predicted, "pair")} from here on` : "Boundary: no pair is sent"}
  >
    <span>
      ${
        predicted
          ? `From here on, ${whole(predicted)} of ${whole(visible)} are sent`
          : "None of these fit beside your question"
      }
    </span>
  </div>`;
}

function HistoryError() {
  const error = trouble.value;
  return html`<div class="history-state" role="alert">
    ${h(Icon, { name: "warn", class: "state-icon bad" })}
    <h2>The chat could not be opened</h2>
    <p class="soft">${error?.message} ${error?.hint}</p>
    ${button("Try again", () => changeView({}).catch(() => {}))}
  </div>`;
}

/** @param {{ shown: ViewShown }} props */
function NothingFound({ shown }) {
  return html`<div class="history-state" role="status">
    ${h(Icon, { name: "search", class: "state-icon" })}
    <h2>No pair matches this filter</h2>
    <p class="soft"><code>${shown.filter}</code> shows nothing, so your next question is sent alone.</p>
    ${button("Show everything", () => goToChat(chat.value))}
  </div>`;
}

function NothingYet() {
  const { models, providers } = about.value;
  const missing = providers.filter((each) => !each.ready);
  return html`<div class="history-state is-welcome">
    <h2>What you see is what is sent</h2>
    <p class="soft">
      Ask something below. Everything that is shown here is sent with your next question, and nothing else is. Filter
      the history to choose the context.
    </p>
    <ul class="welcome-points">
      <li>
        <kbd class="key">Esc</kbd> and <kbd class="key">↵</kbd> step between the history, the filter and the input.
      </li>
      <li><kbd class="key">p</kbd> shows the exact request before you send it.</li>
      <li><kbd class="key">?</kbd> shows every key.</li>
    </ul>
    ${
      models.length
        ? null
        : html`<div class="note">
            <p>No model is ready.</p>
            ${missing.slice(0, 3).map((each) => html`<p key=${each.name}>${each.name}: ${each.why}</p>`)}
          </div>`
    }
    <p>
      ${button("Import a history…", () => (dialog.value = { kind: "import" }))}
    </p>
  </div>`;
}
