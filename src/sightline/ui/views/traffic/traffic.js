// @ts-check
/** The traffic view: held exchanges on top, then conversations, the newest first. */

import { linkButton } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { aboutCosts, countOf, short, sumOfCosts, whole } from "../../kit/core/format.js";
import { Heights } from "../../kit/core/heights.js";
import { FilterBox } from "../../kit/filter-box.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { Menu } from "../../kit/menu.js";
import { go, lastOpened, toExchange } from "../../kit/navigation.js";
import { VirtualList } from "../../kit/virtual-list.js";
import { computed, h, html, signal, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { COLUMNS, WIDTHS, headClass } from "./columns.js";
import { flatRows, mostTokens, nextSort, rowsOf } from "./core/lines.js";
import {
  condition,
  filter as shown,
  foldedEvals,
  isComplete,
  lines,
  loadOlder,
  lookInto,
  showEvals,
  showFilter,
  showsEvals,
  snippets,
  sort,
  sortBy,
  sums,
  trouble,
  words,
} from "./feed.js";
import { EVERYTHING, Forget } from "./forget.js";
import { TrafficRow } from "./row.js";
import { FilterMenu } from "./saved-filters.js";
import { Share, chooseImport } from "./share.js";
import { Failure, Loading, NothingFound, NothingYet } from "./states.js";

/** @import { Openness } from "./core/lines.js" */
/** @import { Selection } from "./forget.js" */

const NARROW = matchMedia("(max-width: 760px)");
const ROW = 32;
const TALL_ROW = 56;
const LOW_ROW = 36;
const HEAD = 28;
const RUNNING = new Set(["received", "held", "sending"]);

/** What is folded outlives a visit to a request. */
const opened = signal(/** @type {ReadonlyMap<string, Openness>} */ (new Map()));
const openSides = signal(/** @type {ReadonlySet<string>} */ (new Set()));
const rows = computed(() => (sort.value ? flatRows(lines.value) : rowsOf(lines.value, opened.value, openSides.value)));
const keys = computed(() => rows.value.map((row) => row.key));
const most = computed(() => mostTokens(lines.value));
const heights = computed(() => new Heights(rows.value.length, ROW));
const tallHeights = computed(() => {
  const heightOf = (/** @type {number} */ index) =>
    ["line", "conversation"].includes(rows.value[index].kind) ? TALL_ROW : LOW_ROW;
  return new Heights(rows.value.length, LOW_ROW, heightOf);
});
/** @type {{ current: import("../../kit/virtual-list.js").ListHandle | null }} */
const table = { current: null };
const active = signal("");
/** What the open dialog is to delete. */
const deleting = signal(/** @type {{ wanted: Selection, what: string } | null} */ (null));
/** What the open dialog is to share. */
const sharing = signal(/** @type {{ wanted: Selection, what: string } | null} */ (null));
const ALL = { wanted: { filter: EVERYTHING }, what: "everything" };

/** @param {string} key @param {Openness} openness */
function setOpenness(key, openness) {
  opened.value = new Map(opened.value).set(key, openness);
}

/** @param {string} key */
function toggleSides(key) {
  const next = new Set(openSides.value);
  if (!next.delete(key)) next.add(key);
  openSides.value = next;
}

/** @param {import("./core/lines.js").Row} row */
function activate(row) {
  if (row.kind === "line") toExchange(row.line.id);
  else if (row.kind === "conversation") setOpenness(row.conversation.key, row.openness === "none" ? "some" : "none");
  else if (row.kind === "more") setOpenness(row.conversation.key, "all");
  else if (row.kind === "sides") toggleSides(row.conversation.key);
}

/** @param {import("./core/lines.js").Row} row */
function onRowClick(row) {
  active.value = row.key;
  activate(row);
}

/** @param {{ filter: string, onConnect: () => void }} props */
export function Traffic({ filter, onConnect }) {
  const isNarrow = useNarrow();
  useEffect(() => void showFilter(filter), [filter]);
  useLayoutEffect(() => {
    if (!active.value && lastOpened.value) active.value = lastOpened.value;
  }, []);
  useListKeys();
  const list = rows.value;
  const place = keys.value.indexOf(active.value);
  const seen = useRef("");
  useLayoutEffect(() => {
    if (place < 0 || !table.current || seen.current === active.value) return;
    seen.current = active.value;
    table.current.show(place);
  });
  const now = Math.floor(useNow(lines.value.some((line) => RUNNING.has(line.state))));
  /** @param {number} first @param {number} last */
  const onWindow = (first, last) => {
    if (last >= list.length - 20) void loadOlder();
    lookInto(list.slice(first, last).flatMap((row) => (row.kind === "line" ? [row.line.id] : [])));
  };
  // What is looked for is known after the rows: the server reads the filter.
  const inSight = useRef({ first: 0, last: 0 });
  useEffect(() => onWindow(inSight.current.first, inSight.current.last), [words.value, list.length]);
  /** @param {number} index */
  const render = (index) =>
    h(TrafficRow, {
      key: list[index].key,
      row: list[index],
      words: words.value,
      snippet: snippets.value.get(list[index].key) ?? null,
      most: most.value,
      now,
      isNarrow,
      isActive: index === place,
      index,
      onActivate: onRowClick,
    });
  const leave = () => {
    if (!active.value && list.length) move(1);
    table.current?.element()?.focus();
  };
  const all = filter ? { wanted: { filter }, what: "what the filter shows" } : ALL;
  /** What can be chosen where there is a request. @param {import("../../kit/menu.js").Choice[]} choices */
  const some = (...choices) => (lines.value.length ? choices : []);
  return html`<main class="traffic" aria-label="Traffic">
    <div class="traffic-bar in-row">
      ${h(FilterBox, {
        value: filter,
        refused: trouble.value,
        onFilter: (/** @type {string} */ text) => go({ view: "traffic", filter: text }, { isReplacing: true }),
        onLeave: leave,
      })}
      ${h(FilterMenu, { filter })}
      ${h(Menu, {
        label: "Share, import and delete",
        children: h(Icon, { name: "share" }),
        choices: [
          ...some({ label: `Share ${all.what}…`, run: () => (sharing.value = all) }),
          { label: "Import a file…", detail: "A Sightline archive, HAR, or a plug-in’s format", run: chooseImport },
          ...some("line", { label: `Delete ${all.what}…`, isDanger: true, run: () => (deleting.value = all) }),
        ],
      })}
    </div>
    ${h(Totals, { filter })}
    ${sharing.value ? h(Share, { ...sharing.value, onClose: () => (sharing.value = null) }) : null}
    ${deleting.value ? h(Forget, { ...deleting.value, onClose: () => (deleting.value = null) }) : null}
    ${
      bodyFor(filter, onConnect) ??
      html`<div class="traffic-table" style=${WIDTHS}>
        ${h(VirtualList, {
          header: isNarrow
            ? null
            : html`<div class="traffic-head" role="row">
                ${COLUMNS.map((each) => h(ColumnHead, { key: each.name, column: each }))}
              </div>`,
          headerHeight: isNarrow ? 0 : HEAD,
          heights: (isNarrow ? tallHeights : heights).value,
          keyOf: (index) => keys.value[index],
          placeOf: (key) => keys.value.indexOf(key),
          render,
          onWindow: (first, last) => {
            inSight.current = { first, last };
            onWindow(first, last);
          },
          handle: table,
          attributes: {
            tabindex: 0,
            role: "treegrid",
            "aria-label": "Exchanges",
            "aria-rowcount": isComplete.value ? list.length : -1,
            "aria-activedescendant": place >= 0 ? `row-${place}` : null,
          },
        })}
      </div>`
    }
  </main>`;
}

/** What all that the filter takes adds up to, and what is folded away. @param {{ filter: string }} props */
function Totals({ filter }) {
  const found = sums.value;
  const folded = foldedEvals.value;
  if (!found || (!found.requests && !folded && !showsEvals.value)) return null;
  const share = found.input_tokens ? Math.round((100 * found.cached_tokens) / found.input_tokens) : 0;
  const showFailed = () => go({ view: "traffic", filter: filter ? `(${filter}) & state:failed` : "state:failed" });
  return html`<div class="traffic-totals number" role="status" aria-label="Totals">
    <span><b>${whole(found.requests)}</b> ${found.requests === 1 ? "request" : "requests"}</span>
    ${
      found.failed
        ? linkButton(`${whole(found.failed)} failed`, showFailed, { kind: "bad", title: "Show only these" })
        : html`<span class="faint">none failed</span>`
    }
    <span title=${`${whole(found.input_tokens)} tokens in, ${whole(found.cached_tokens)} cached`}>
      <b>${short(found.input_tokens)}</b> tokens in${found.cached_tokens ? `, ${share} % cached` : ""}
    </span>
    <span title=${`${whole(found.output_tokens)} tokens out`}><b>${short(found.output_tokens)}</b> out</span>
    <span title=${aboutCosts(found) || null}><b>${sumOfCosts(found)}</b> cost</span>
    ${
      folded || showsEvals.value
        ? linkButton(
            showsEvals.value ? "Hide requests of evals" : `Show ${countOf(folded, "request")} of evals`,
            () => showEvals(!showsEvals.value),
            { isPressed: showsEvals.value },
          )
        : null
    }
  </div>`;
}

/** @param {{ column: import("./columns.js").Column, key?: string }} props */
function ColumnHead({ column }) {
  const { name, label, help, isNumber = false } = column;
  const isSorted = sort.value.replace("-", "") === name;
  const isDown = sort.value.startsWith("-") || (name === "at" && !sort.value);
  const way = isDown ? "descending" : "ascending";
  return html`<span
    role="columnheader"
    class=${`${headClass(column)}${isSorted ? " is-sorted" : ""}`}
    aria-sort=${isSorted || (name === "at" && !sort.value) ? way : null}
  >
    <button
      type="button"
      class="bare cut"
      title=${`${help}. Click to sort.`}
      onClick=${() => sortBy(nextSort(sort.value, name, isNumber))}
    >
      ${label}${isSorted ? html`<span aria-hidden="true">${isDown ? " ↓" : " ↑"}</span>` : null}
    </button>
  </span>`;
}

/** What is shown in place of an empty list. @param {string} filter @param {() => void} onConnect */
function bodyFor(filter, onConnect) {
  if (condition.value === "loading") return h(Loading, {});
  if (condition.value === "failed" && trouble.value && trouble.value.code !== "usage")
    return h(Failure, { error: trouble.value, onRetry: () => void showFilter(filter) });
  if (lines.value.length) return null;
  return shown.value
    ? h(NothingFound, { isWrong: condition.value === "failed", onClear: () => go({ view: "traffic", filter: "" }) })
    : h(NothingYet, { onConnect });
}

/** The row under the cursor. */
function activeRow() {
  return rows.value[keys.value.indexOf(active.value)];
}

/** @param {number} step */
function move(step) {
  const list = rows.value;
  if (!list.length) return;
  let place = keys.value.indexOf(active.value);
  const direction = Math.sign(step);
  place = place < 0 ? (direction > 0 ? 0 : list.length - 1) : Math.min(Math.max(place + step, 0), list.length - 1);
  while (list[place]?.kind === "heading") place += direction;
  active.value = list[Math.min(Math.max(place, 0), list.length - 1)].key;
  if (list[0]?.kind === "heading" && place <= 0) active.value = list[1]?.key ?? "";
}

/** What the row under the cursor is: a request, or a conversation with its side requests. */
function rowFilter() {
  const row = activeRow();
  if (row?.kind === "line") return { wanted: { exchanges: [row.line.id] }, what: "this request" };
  if (row?.kind !== "conversation") return null;
  const { lines: turns, sides } = row.conversation;
  return { wanted: { exchanges: [...turns, ...sides].map((line) => line.id) }, what: "this conversation" };
}

/** @param {boolean} isOpening */
function fold(isOpening) {
  const row = activeRow();
  if (row?.kind === "conversation") {
    const next = isOpening ? (row.openness === "none" ? "some" : "all") : row.openness === "all" ? "some" : "none";
    setOpenness(row.conversation.key, next);
  } else if (row && isOpening && row.kind !== "line") activate(row);
  else if (row?.kind === "line" && row.isInside && !isOpening) {
    const before = rows.value.slice(0, keys.value.indexOf(row.key)).reverse();
    active.value = before.find((each) => each.kind === "conversation")?.key ?? active.value;
  }
}

function openSession() {
  const row = activeRow();
  if (!row || row.kind === "heading") return;
  const line = row.kind === "line" ? row.line : (row.conversation.lines[0] ?? row.conversation.sides[0]);
  go({ view: "session", name: line.session || line.id });
}

function useListKeys() {
  useShortcuts("Traffic", [
    { keys: "j", also: ["down"], label: "Next row", run: () => move(1), isHidden: true },
    { keys: "k", also: ["up"], label: "Row before", run: () => move(-1), isHidden: true },
    { keys: "pagedown", label: "A page down", run: () => move(20), isHidden: true },
    { keys: "pageup", label: "A page up", run: () => move(-20), isHidden: true },
    { keys: "home", label: "First row", run: () => move(-Infinity), isHidden: true },
    { keys: "end", label: "Last row", run: () => move(Number.MAX_SAFE_INTEGER), isHidden: true },
    {
      keys: "enter",
      also: ["o"],
      label: "Open",
      isHidden: true,
      run: () => {
        const row = activeRow();
        if (row) activate(row);
      },
    },
    { keys: "delete", label: "Delete the request or conversation", run: () => (deleting.value = rowFilter()) },
    { keys: "S", label: "Share the request or conversation", run: () => (sharing.value = rowFilter()) },
    { keys: "s", label: "Open the session", run: openSession },
    { keys: "right", label: "Unfold", run: () => fold(true), isHidden: true },
    { keys: "left", label: "Fold", run: () => fold(false), isHidden: true },
    { keys: "z c", label: "Fold all conversations", run: () => foldAll("none") },
    { keys: "z o", label: "Unfold all conversations", run: () => foldAll("all") },
    {
      keys: "f e",
      label: "Only failed ones",
      run: () => go({ view: "traffic", filter: shown.value === "state:failed" ? "" : "state:failed" }),
    },
  ]);
}

/** @param {Openness} openness */
function foldAll(openness) {
  const next = new Map(opened.value);
  for (const row of rows.value) if (row.kind === "conversation") next.set(row.conversation.key, openness);
  opened.value = next;
}

function useNarrow() {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const changed = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", changed);
    return () => NARROW.removeEventListener("change", changed);
  }, []);
  return isNarrow;
}
