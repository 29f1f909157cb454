// @ts-check
/** One row of the list: an exchange, a conversation, or a folded part. */

import { dialectOf } from "../../kit/about.js";
import {
  aboutCosts,
  clientName,
  costOf,
  countOf,
  duration,
  formatRunning,
  short,
  stamp,
  sumOfCosts,
  when,
  whole,
} from "../../kit/core/format.js";
import { markWords } from "../../kit/core/filter.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { memo } from "../../kit/memo.js";
import { h, html } from "../../vendor/preact.js";
import { CacheCause, mayHaveMissed } from "./cache-cause.js";
import { labelOf, stateOf, titleOf, totals, transportWord } from "./core/lines.js";

/** @import { Snippet } from "../../api-types.d.ts" */
/** @import { Line, Row } from "./core/lines.js" */

/** The columns, by whose names the server sorts; numbers are sorted from the largest on. */
export const COLUMNS = [
  { name: "state", label: "State", help: "State of the exchange", isNumber: false },
  { name: "title", label: "Request", help: "What was asked", isNumber: false },
  { name: "client", label: "Client", help: "The program that asked", isNumber: false },
  { name: "model", label: "Model", help: "The model that was asked for", isNumber: false },
  { name: "route", label: "Route", help: "The client's dialect and the provider that it went to", isNumber: false },
  {
    name: "tokens",
    label: "Tokens in → out",
    help: "Tokens of the whole prompt and of the reply, as the provider counts them",
    isNumber: true,
  },
  { name: "cost", label: "Cost", help: "US dollars, where the prices are known", isNumber: true },
  { name: "first", label: "First byte", help: "From the request to the first byte of the reply", isNumber: true },
  { name: "time", label: "Time", help: "From the request to the end of the reply", isNumber: true },
  { name: "losses", label: "Loss", help: "What a translation could not carry over", isNumber: true },
  { name: "at", label: "At", help: "When the request came", isNumber: true },
];

/**
 * `words` are what the filter looks for, `snippet` is where the exchange has them.
 * @typedef {{ key?: string, row: Row, most: number, now: number, isNarrow: boolean, isActive: boolean, index: number,
 *   words: readonly string[], snippet: Snippet | null, onActivate: (row: Row) => void }} RowProps
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
  const { line, label } = row;
  const marks = { "is-inside": row.isInside, "is-pinned": row.isHeld, "is-side": line.is_side };
  const marked = Object.entries(marks).flatMap(([name, isOn]) => (isOn ? [name] : []));
  const kind = ["is-line", `is-${line.state}`, ...marked].join(" ");
  if (props.isNarrow) return narrowLine(props, row, kind);
  const own = { ...attributes(props, kind), "aria-level": row.isInside ? 2 : 1 };
  return html`<div ...${own}>
    <span class="cell c-state" role="gridcell">${showState(line)}</span>
    <span class="cell c-title cut" role="gridcell" title=${labelOf(line)}>
      ${showTitle(line, label, props)}
    </span>
    <span class="cell c-client cut" role="gridcell" title=${[line.client, line.session].filter(Boolean).join(" · ")}>
      ${row.isInside ? "" : showClient(line)}
    </span>
    <span class="cell c-model cut" role="gridcell" title=${line.model ?? ""}>${line.model}</span>
    <span class="cell c-route cut" role="gridcell" title=${`${line.dialect ?? ""} → ${line.provider ?? ""}`}>
      ${showRoute(line)}
    </span>
    <span class="cell c-tokens" role="gridcell">${showTokens(line, props.most)}</span>
    <span
      class="cell c-cost number"
      role="gridcell"
      title=${line.is_estimated ? "Estimated: the provider did not count the tokens" : null}
    >
      ${costOf(line)}
    </span>
    <span class="cell c-first number" role="gridcell">${duration(line.first_byte)}</span>
    <span class="cell c-time number" role="gridcell">${showTime(line, props.now)}</span>
    <span class="cell c-losses number" role="gridcell">
      ${
        line.losses
          ? html`<a
              class="loss"
              href=${hashOf({ view: "request", id: line.id, tab: "losses" })}
              tabindex="-1"
              title=${`${countOf(line.losses, "thing")} not carried by the translation`}
              onClick=${(/** @type {MouseEvent} */ event) => event.stopPropagation()}
            >
              ${line.losses}
            </a>`
          : ""
      }
    </span>
    <time class="cell c-at number" role="gridcell" title=${stamp(line.at)}>${when(line.at, props.now)}</time>
  </div>`;
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
    <span class="narrow-top" role="gridcell">
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
    <span class="turns number">${countOf(conversation.lines.length, "turn")}</span>
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
      <span class="narrow-top" role="gridcell">
        ${title}
        <time class="c-at faint number">${when(newest.at, props.now)}</time>
      </span>
      <span class="narrow-facts faint cut number" role="gridcell">${facts}</span>
    </div>`;
  }
  return html`<div ...${own}>
    <span class="cell wide-title" role="gridcell">${title}${state}</span>
    <span
      class="cell c-client cut"
      role="gridcell"
      title=${[newest.client, newest.session].filter(Boolean).join(" · ")}
    >
      ${showClient(newest)}
    </span>
    <span class="cell c-model cut" role="gridcell">${isFolded ? newest.model : ""}</span>
    <span class="cell c-route cut" role="gridcell">${isFolded ? showRoute(newest) : ""}</span>
    <span class="cell c-tokens" role="gridcell"><span class="token-words number">${tokenWords(sums)}</span></span>
    <span
      class="cell c-cost number"
      role="gridcell"
      title=${(sums.cost != null && aboutCosts(sums)) || null}
    >
      ${sumOfCosts(sums)}
    </span>
    <span class="cell c-first" role="gridcell"></span>
    <span class="cell c-time number" role="gridcell">${duration(sums.elapsed)}</span>
    <span class="cell c-losses number" role="gridcell">
      ${sums.losses ? html`<span class="loss">${sums.losses}</span>` : ""}
    </span>
    <time class="cell c-at number" role="gridcell" title=${stamp(newest.at)}>${when(newest.at, props.now)}</time>
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

/** Replies that ended before they were done. */
const CUT_SHORT = new Set(["length", "content_filter", "refusal"]);

/** @param {Line} line */
function showState(line) {
  const isRefused = line.state === "finished" && (line.status ?? 0) >= 400;
  const isShort = line.state === "finished" && CUT_SHORT.has(line.finish ?? "");
  const code = line.status ? String(line.status) : "";
  const words =
    line.state === "finished"
      ? isShort
        ? line.finish?.replace("_", " ")
        : code || line.state
      : line.state === "failed" && (line.status ?? 0) >= 400
        ? `failed ${code}`
        : line.state;
  const tip = [
    line.state,
    line.message || line.fault,
    line.finish && `the reply ended: ${line.finish}`,
    (line.attempts ?? 0) > 1 && `sent ${line.attempts} times`,
  ]
    .filter(Boolean)
    .join("\n");
  return html`<span class=${`state-mark ${isRefused ? "refused" : line.state}${isShort ? " short" : ""}`} title=${tip}>
    <span class="dot"></span>
    <span class="state-word">${words}</span>
  </span>`;
}

/** @param {Line} line @param {string} label @param {Pick<RowProps, "words" | "snippet">} props */
function showTitle(line, label, { words, snippet }) {
  const tools = line.tools?.length
    ? html`<span class="calls">
        → ${line.tools.slice(0, 3).join(", ")}
        ${line.tools.length > 3 ? ` +${line.tools.length - 3}` : ""}
      </span>`
    : null;
  const wrong =
    line.state === "failed" ? html`<span class="wrong-words">${line.fault?.replaceAll("_", " ")}</span>` : null;
  const tries =
    (line.attempts ?? 0) > 1
      ? html`<span class="tries" title=${`Sent ${line.attempts} times`}>×${line.attempts}</span>`
      : null;
  const by = transportWord(line);
  const transport = by ? html`<span class="faint transport" title=${`It came over ${by}`}>${by}</span>` : null;
  const rest = label || (tools || wrong ? "" : html`<span class="faint">continues</span>`);
  const isShown = markWords(label, words).some((piece) => piece.isHit);
  return html`${line.origin ? h(Icon, { name: "replay", class: "replayed" }) : null}
    ${
      line.is_masked
        ? html`<span class="masked" role="img" aria-label="Changed by kept edits" title="Changed by kept edits">
            ${h(Icon, { name: "edit" })}
          </span>`
        : null
    }
    <span class="said">${label ? markText(label, words) : rest}</span>
    ${snippet && !isShown ? h(SnippetText, { snippet }) : null}
    ${tools}
    ${tries}
    ${transport}
    ${wrong}
    ${mayHaveMissed(line) ? h(CacheCause, { line }) : null}`;
}

/** A text with what is looked for marked. @param {string} text @param {readonly string[]} words */
function markText(text, words) {
  if (!words.length) return text;
  return markWords(text, words).map((piece) => (piece.isHit ? html`<mark>${piece.text}</mark>` : piece.text));
}

/** @param {{ snippet: Snippet }} props */
function SnippetText({ snippet }) {
  const { before, hit, after } = snippet;
  const where = snippet.of === "reply" ? "in the reply" : "in the request";
  return html`<span class="found" title=${`${where}: ${before}${hit}${after}`}>
    <span class="found-before"><bdi>${before}</bdi></span><mark>${hit}</mark><span class="found-after">${after}</span>
  </span>`;
}

/** @param {Line} line */
function showClient(line) {
  return html`${
    line.session ? html`<span>${line.session}</span>` : html`<span class="soft">${clientName(line.client)}</span>`
  }`;
}

/** The path is worth words only where a request changes its dialect's home. @param {Line} line */
function showRoute(line) {
  const dialect = dialectOf(line.dialect);
  const from = dialect?.label ?? line.dialect;
  if (!line.provider) return html`<span class="faint">${from}</span>`;
  if (line.provider === dialect?.home) return html`${line.provider}`;
  return html`<span class="faint">${from} → </span>${line.provider}`;
}

/** @param {Line} line @param {number} most */
function showTokens(line, most) {
  const { input_tokens: input, output_tokens: output, cached_tokens: cached } = line;
  if (input == null && output == null) return null;
  const tip = [`${whole(input ?? 0)} in`, cached ? `${whole(cached)} cached` : "", `${whole(output ?? 0)} out`]
    .concat(line.is_estimated ? "estimated" : "")
    .filter(Boolean)
    .join(", ");
  /** @param {number} count */
  const share = (count) => ({ width: `${most ? (100 * count) / most : 0}%` });
  return html`<span class="token-words number" title=${tip}>${tokenWords(line)}</span>
    <span class="token-bar" aria-hidden="true">
      <i class="cached" style=${share(cached ?? 0)}></i>
      <i class="in" style=${share((input ?? 0) - (cached ?? 0))}></i>
      <i class="out" style=${share(output ?? 0)}></i>
    </span>`;
}

/** @param {{ input_tokens?: number, output_tokens?: number, is_estimated?: boolean }} of */
function tokenWords({ input_tokens: input, output_tokens: output, is_estimated: isEstimated }) {
  if (input == null && output == null) return "";
  return `${isEstimated ? "~" : ""}${short(input ?? 0)} → ${short(output ?? 0)}`;
}

/** @param {Line} line @param {number} now */
function showTime(line, now) {
  if (line.elapsed != null) return html`${duration(line.elapsed)}`;
  const isRunning = ["received", "held", "sending"].includes(line.state);
  return isRunning && now > line.at ? html`<span class="running">${formatRunning(now - line.at)}</span>` : null;
}
