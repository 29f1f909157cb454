// @ts-check
/** The columns of the list: one entry each says all that the page knows of it. */

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
import { h, html } from "../../vendor/preact.js";
import { CacheCause, mayHaveMissed } from "./cache-cause.js";
import { labelOf, transportWord } from "./core/lines.js";

/** @import { Snippet } from "../../api-types.d.ts" */
/** @import { Line, Row, totals } from "./core/lines.js" */

/**
 * `words` are what the filter looks for, `snippet` is where the exchange has them.
 * @typedef {{ most: number, now: number, words: readonly string[], snippet: Snippet | null }} CellProps
 * @typedef {Extract<Row, { kind: "line" }>} LineRow
 * @typedef {{ newest: Line, sums: ReturnType<typeof totals>, isFolded: boolean, now: number }} All a conversation
 */

/**
 * The server sorts by the `name`, and filters have a field of this name or it is in `SORTS` of workbench/exchanges.py;
 * numbers are sorted from the largest on. `class` is that of its cells: `cut` where a text may not fit, `number` where
 * they are aligned to the right. `widths` are its widths on screens of each of `SCREENS`; on those behind them it does
 * not show. `show` and `tip` are for an exchange, `showAll` and `tipAll` for the row of a conversation.
 * @typedef {{ name: string, label: string, help: string, isNumber?: boolean, class?: "cut" | "number",
 *   widths: readonly string[], tag?: "time", show: (row: LineRow, props: CellProps) => unknown,
 *   tip?: (line: Line) => string | null | undefined, showAll?: (all: All) => unknown,
 *   tipAll?: (all: All) => string | null | undefined }} Column
 */

/** Kinds of screens; their widths are in states.css. */
const SCREENS = ["wide", "usual", "medium", "small"];

/** @type {readonly Column[]} */
export const COLUMNS = [
  {
    name: "state",
    label: "State",
    help: "State of the exchange",
    widths: ["92px", "84px", "84px", "84px"],
    show: ({ line }) => showState(line),
  },
  {
    name: "title",
    label: "Request",
    help: "What was asked",
    class: "cut",
    widths: ["minmax(320px, 1fr)", "minmax(200px, 1fr)", "minmax(140px, 1fr)", "minmax(120px, 1fr)"],
    show: ({ line, label }, props) => showTitle(line, label, props),
    tip: labelOf,
  },
  {
    name: "client",
    label: "Client",
    help: "The program that asked",
    class: "cut",
    widths: ["170px", "minmax(84px, 104px)", "minmax(80px, 110px)"],
    show: ({ line, isInside }) => (isInside ? "" : showClient(line)),
    tip: clientTip,
    showAll: ({ newest }) => showClient(newest),
    tipAll: ({ newest }) => clientTip(newest),
  },
  {
    name: "model",
    label: "Model",
    help: "The model that was asked for",
    class: "cut",
    widths: ["220px", "minmax(100px, 136px)", "minmax(90px, 148px)", "minmax(80px, 140px)"],
    show: ({ line }) => line.model,
    tip: (line) => line.model ?? "",
    showAll: ({ newest, isFolded }) => (isFolded ? newest.model : ""),
  },
  {
    name: "route",
    label: "Route",
    help: "The client's dialect and the provider that it went to",
    class: "cut",
    widths: ["180px", "minmax(84px, 124px)"],
    show: ({ line }) => showRoute(line),
    tip: (line) => `${line.dialect ?? ""} → ${line.provider ?? ""}`,
    showAll: ({ newest, isFolded }) => (isFolded ? showRoute(newest) : ""),
  },
  {
    name: "tokens",
    label: "Tokens in → out",
    help: "Tokens of the whole prompt and of the reply, as the provider counts them",
    isNumber: true,
    widths: ["150px", "104px", "104px", "86px"],
    show: ({ line }, { most }) => showTokens(line, most),
    showAll: ({ sums }) => html`<span class="token-words number">${tokenWords(sums)}</span>`,
  },
  {
    name: "cost",
    label: "Cost",
    help: "US dollars, where the prices are known",
    isNumber: true,
    class: "number",
    widths: ["84px", "82px", "82px", "82px"],
    show: ({ line }) => costOf(line),
    tip: (line) => (line.is_estimated ? "Estimated: the provider did not count the tokens" : null),
    showAll: ({ sums }) => sumOfCosts(sums),
    tipAll: ({ sums }) => (sums.cost != null && aboutCosts(sums)) || null,
  },
  {
    name: "first",
    label: "First byte",
    help: "From the request to the first byte of the reply",
    isNumber: true,
    class: "number",
    widths: ["76px", "62px"],
    show: ({ line }) => duration(line.first_byte),
  },
  {
    name: "time",
    label: "Time",
    help: "From the request to the end of the reply",
    isNumber: true,
    class: "number",
    widths: ["76px", "62px", "62px", "62px"],
    show: ({ line }, { now }) => showTime(line, now),
    showAll: ({ sums }) => duration(sums.elapsed),
  },
  {
    name: "losses",
    label: "Loss",
    help: "What a translation could not carry over",
    isNumber: true,
    class: "number",
    widths: ["44px", "30px", "30px"],
    show: ({ line }) => showLosses(line),
    showAll: ({ sums }) => (sums.losses ? html`<span class="count loss">${sums.losses}</span>` : ""),
  },
  {
    name: "at",
    label: "At",
    help: "When the request came",
    isNumber: true,
    class: "number",
    widths: ["84px", "64px", "64px", "64px"],
    tag: "time",
    show: ({ line }, { now }) => when(line.at, now),
    tip: (line) => stamp(line.at),
    showAll: ({ newest, now }) => when(newest.at, now),
    tipAll: ({ newest }) => stamp(newest.at),
  },
];

/** The widths of all columns by screen, for the style of the table. */
export const WIDTHS = Object.fromEntries(
  SCREENS.map((screen, at) => [`--columns-${screen}`, COLUMNS.flatMap(({ widths }) => widths[at] ?? []).join(" ")]),
);

/** The class of a column's head, with the first screen on which it does not show. @param {Column} column */
export function headClass({ name, class: own, widths }) {
  const hidden = SCREENS[widths.length];
  return `cell c-${name}${own === "number" ? " number" : ""}${hidden ? ` not-${hidden}` : ""}`;
}

const CELL_CLASSES = new Map(COLUMNS.map((each) => [each, `${headClass(each)}${each.class === "cut" ? " cut" : ""}`]));

/** @param {Column} column @param {unknown} content @param {string | null} [tip] */
export function cell(column, content, tip) {
  const attributes = { class: CELL_CLASSES.get(column), role: "gridcell", title: tip };
  return h(column.tag ?? "span", attributes, /** @type {any} */ (content));
}

/** Replies that ended before they were done. */
const CUT_SHORT = new Set(["length", "content_filter", "refusal"]);

/** @param {Line} line */
export function showState(line) {
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

/** @param {Line} line @param {string} label @param {Pick<CellProps, "words" | "snippet">} props */
export function showTitle(line, label, { words, snippet }) {
  const tools = line.tools?.length
    ? html`<span class="calls">
        → ${line.tools.slice(0, 3).join(", ")}
        ${line.tools.length > 3 ? ` +${line.tools.length - 3}` : ""}
      </span>`
    : null;
  const wrong = line.state === "failed" ? html`<span class="bad">${line.fault?.replaceAll("_", " ")}</span>` : null;
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
      <i class="new" style=${share((input ?? 0) - (cached ?? 0))}></i>
      <i class="out" style=${share(output ?? 0)}></i>
    </span>`;
}

/** @param {{ input_tokens?: number, output_tokens?: number, is_estimated?: boolean }} of */
export function tokenWords({ input_tokens: input, output_tokens: output, is_estimated: isEstimated }) {
  if (input == null && output == null) return "";
  return `${isEstimated ? "~" : ""}${short(input ?? 0)} → ${short(output ?? 0)}`;
}

/** @param {Line} line @param {number} now */
function showTime(line, now) {
  if (line.elapsed != null) return html`${duration(line.elapsed)}`;
  const isRunning = ["received", "held", "sending"].includes(line.state);
  return isRunning && now > line.at ? html`<span class="running">${formatRunning(now - line.at)}</span>` : null;
}

/** @param {Line} line */
function clientTip(line) {
  return [line.client, line.session].filter(Boolean).join(" · ");
}

/** @param {Line} line */
function showLosses(line) {
  if (!line.losses) return "";
  return html`<a
    class="count loss"
    href=${hashOf({ view: "request", id: line.id, tab: "losses" })}
    tabindex="-1"
    title=${`${countOf(line.losses, "thing")} not carried by the translation`}
    onClick=${(/** @type {MouseEvent} */ event) => event.stopPropagation()}
  >
    ${line.losses}
  </a>`;
}
