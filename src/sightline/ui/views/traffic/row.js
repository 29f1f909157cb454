// @ts-check
/** One row of the list: an exchange, a conversation, or a folded part. */

import { clientName, costOf, countOf, duration, sumOfCosts, when, whole } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { memo } from "../../kit/memo.js";
import { h, html } from "../../vendor/preact.js";
import { COLUMNS, cell, showState, showTitle, tokenWords } from "./columns.js";
import { stateOf, titleOf, totals, turnWords } from "./core/lines.js";

/** @import { Row } from "./core/lines.js" */
/** @import { CellProps } from "./columns.js" */

/**
 * @typedef {CellProps & { key?: string, row: Row, isNarrow: boolean, isActive: boolean, index: number,
 *   onActivate: (row: Row) => void }} RowProps
 */

// What is in a row is made by plain functions: as components of their own they took a sixth of the time of a row.
export const TrafficRow = memo(renderRow);

/** @param {RowProps} props */
function renderRow(props) {
  const { row } = props;
  switch (row.kind) {
    case "heading":
      return html`<div id=${`row-${props.index}`} class=${`heading-row of-${row.key}`} role="row">
        <span role="gridcell">${row.label}<span class="count number">${whole(row.count)}</span></span>
      </div>`;
    case "line":
      return lineRow(props, row);
    case "conversation":
      return conversationRow(props, row);
    case "more":
      return foldRow(props, `${countOf(row.hidden, "earlier turn")}`, false);
    default:
      return foldRow(props, countOf(row.conversation.sides.length, "side request"), row.isOpen);
  }
}

/** @param {RowProps} props @param {string} kind */
function attributes(props, kind) {
  return {
    id: `row-${props.index}`,
    role: "row",
    "aria-rowindex": props.index + 1,
    class: `row ${kind}${props.isActive ? " is-active" : ""}`,
    "aria-selected": props.isActive,
    onClick: (/** @type {MouseEvent} */ event) => onRowClick(event, props),
    onAuxClick: (/** @type {MouseEvent} */ event) => onRowClick(event, props),
  };
}

/**
 * With control, or by the middle button, an exchange opens beside this page.
 * @param {MouseEvent} event
 * @param {RowProps} props
 */
function onRowClick(event, { row, onActivate }) {
  const isBeside = event.ctrlKey || event.metaKey || event.button === 1;
  if (isBeside && row.kind === "line")
    open(hashOf({ view: "request", id: row.line.id, tab: "sections" }), "_blank", "noopener");
  else if (event.button === 0) onActivate(row);
}

/** @param {RowProps} props @param {Extract<Row, { kind: "line" }>} row */
function lineRow(props, row) {
  const { line } = row;
  const marks = { "is-inside": row.isInside, "is-pinned": row.isHeld, "is-side": line.is_side };
  const marked = Object.entries(marks).flatMap(([name, isOn]) => (isOn ? [name] : []));
  const kind = ["is-line", `is-${line.state}`, ...marked].join(" ");
  if (props.isNarrow) return narrowLine(props, row, kind);
  const own = { ...attributes(props, kind), "aria-level": row.isInside ? 2 : 1 };
  return html`<div ...${own}>${COLUMNS.map((each) => cell(each, each.show(row, props), each.tip?.(line)))}</div>`;
}

/** @param {RowProps} props @param {Extract<Row, { kind: "line" }>} row @param {string} kind */
function narrowLine(props, row, kind) {
  const { line, label } = row;
  const facts = [
    line.model,
    row.isInside ? "" : line.session || clientName(line.client),
    tokenWords(line),
    costOf(line),
    duration(line.elapsed),
  ];
  return html`<div ...${{ ...attributes(props, kind), "aria-level": row.isInside ? 2 : 1 }}>
    <span class="narrow-top in-row" role="gridcell">
      ${showState(line)}
      <span class="c-title cut">${showTitle(line, label, props)}</span>
      <time class="c-at faint number">${when(line.at, props.now)}</time>
    </span>
    <span class="narrow-facts faint cut number" role="gridcell">${facts.filter(Boolean).join(" · ")}</span>
  </div>`;
}

/** @param {RowProps} props @param {Extract<Row, { kind: "conversation" }>} row */
function conversationRow(props, row) {
  const { conversation } = row;
  const newest = conversation.lines[0] ?? conversation.sides[0];
  const sums = totals(conversation);
  const own = { ...attributes(props, "is-conversation"), "aria-level": 1, "aria-expanded": row.openness !== "none" };
  const title = html`<span class=${`twist ${row.openness === "none" ? "" : "open"}`}>
      ${h(Icon, { name: "right" })}
    </span>
    <span class="cut conversation-title">${titleOf(conversation) || "Conversation"}</span>
    <span class="count turns number">${turnWords(conversation)}</span>
    <a
      class="session-link"
      href=${hashOf({ view: "session", name: newest.session || newest.id })}
      tabindex="-1"
      title="Open the session (s)"
      onClick=${(/** @type {MouseEvent} */ event) => event.stopPropagation()}
    >
      Session
    </a>`;
  const isFolded = row.openness === "none";
  const liveliest = stateOf(conversation);
  const state = isFolded && liveliest !== "finished" ? showState({ ...newest, state: liveliest }) : null;
  if (props.isNarrow) {
    const facts = [newest.session || clientName(newest.client), tokenWords(sums), sumOfCosts(sums)]
      .filter(Boolean)
      .join(" · ");
    return html`<div ...${own}>
      <span class="narrow-top in-row" role="gridcell">
        ${title}
        <time class="c-at faint number">${when(newest.at, props.now)}</time>
      </span>
      <span class="narrow-facts faint cut number" role="gridcell">${facts}</span>
    </div>`;
  }
  const all = { newest, sums, isFolded, now: props.now };
  return html`<div ...${own}>
    <span class="cell wide-title" role="gridcell">${title}${state}</span>
    ${COLUMNS.slice(2).map((each) => cell(each, each.showAll?.(all), each.tipAll?.(all)))}
  </div>`;
}

/** @param {RowProps} props @param {string} text @param {boolean} isOpen */
function foldRow(props, text, isOpen) {
  return html`<div ...${{ ...attributes(props, "is-fold"), "aria-level": 2, "aria-expanded": isOpen }}>
    <span class="cell fold-text" role="gridcell">
      <span class=${`twist ${isOpen ? "open" : ""}`}>${h(Icon, { name: "right" })}</span>
      ${text}
    </span>
  </div>`;
}
