// @ts-check
/** The request view: everything that will be sent or was sent, and the reply. */

import { about } from "../../kit/about.js";
import { button, iconButton } from "../../kit/button.js";
import { markWords } from "../../kit/core/filter.js";
import { countOf, money } from "../../kit/core/format.js";
import { PANEL, TABS, hashOf } from "../../kit/core/routes.js";
import { loadEditor } from "../../kit/editor.js";
import { showFirstMark, sought, useMarks } from "../../kit/found.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { forgetOpened, go, toTraffic } from "../../kit/navigation.js";
import { Stale, Unloaded } from "../../kit/notices.js";
import { h, html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { words } from "../traffic/feed.js";
import { Answer } from "./answer.js";
import { CacheLine } from "./cache-line.js";
import { Compare } from "./compare.js";
import { short } from "./core/budget.js";
import { errorsOf, isHeld, nameOf } from "./core/exchange.js";
import { Desk } from "./desk.js";
import { Diff } from "./diff.js";
import { Header } from "./header.js";
import { Headers } from "./headers.js";
import { Masks } from "./masks.js";
import { Meter } from "./meter.js";
import { PluginPanel } from "./plugin-panel.js";
import { Raw } from "./raw.js";
import { Reply } from "./reply.js";
import { Sections } from "./sections.js";
import { Timeline } from "./timeline.js";
import { Wire } from "./wire.js";

/** @import { View } from "./core/exchange.js" */
/** @import { Panel } from "./header.js" */
/** @typedef {{ pointer: string, what: string, why: string, severity?: string }} LossOrAddition */

/**
 * What each tab is called and shows.
 * @type {Record<string, [string, (props: { desk: Desk, against?: string }) => any]>}
 */
const VIEWS = {
  sections: ["Sections", Sections],
  wire: ["Wire", Wire],
  diff: ["Diff", Diff],
  reply: ["Reply", Reply],
  timeline: ["Timeline", Timeline],
  losses: ["Losses", Losses],
  headers: ["Headers", Headers],
};
/**
 * The same for what can stand in place of the tabs.
 * @type {Record<Exclude<Panel, "">, [string, (props: { desk: Desk, onClose: () => void }) => any]>}
 */
const PANELS = {
  answer: ["Answer by hand", Answer],
  compare: ["Replay and compare", Compare],
  masks: ["Kept edits", Masks],
};

/** The tabs of an exchange that passed as it was: it has no conversation. */
const RAW_TABS = ["sections", "timeline"];

/** @param {View} view */
function tabsOf(view) {
  const added = (about.value.panels ?? []).map((each) => PANEL + each.name);
  return [...(view.raw ? RAW_TABS : TABS), ...added];
}

/** What a tab is called. @param {string} tab */
function nameOfTab(tab) {
  return VIEWS[tab]?.[0] ?? panelOf(tab)?.title ?? tab;
}

/** The panel of a plug-in that a tab shows. @param {string} tab */
function panelOf(tab) {
  return (about.value.panels ?? []).find((each) => PANEL + each.name === tab);
}

/** @param {{ id: string, tab: string, against?: string, key?: string }} props */
export function RequestView({ id, tab, against }) {
  const desk = useMemo(() => new Desk(id), [id]);
  const [panel, setPanel] = useState(/** @type {Panel} */ (""));
  useEffect(() => {
    desk.open();
    return () => desk.close();
  }, [desk]);
  const view = desk.view.value;
  const isWaiting = isHeld(view);
  useEffect(() => {
    // The editor is there before it is wanted.
    if (isWaiting) void loadEditor().catch(() => {});
    else if (panel === "answer") setPanel("");
  }, [isWaiting]);
  const show = (/** @type {string} */ name) => {
    setPanel("");
    go({ view: "request", id, tab: name });
  };
  useShortcuts(
    "Request",
    [
      ...TABS.map((name, index) => ({
        keys: String(index + 1),
        label: `Show ${nameOfTab(name)}`,
        run: () => show(name),
      })),
      {
        keys: "escape",
        label: "Back",
        run: () => (panel ? setPanel("") : desk.editing.peek() ? desk.stopEditing() : toTraffic()),
      },
    ],
    [id, panel],
  );
  const trouble = desk.trouble.value;
  const isGone = !view && trouble?.status === 404;
  useEffect(() => {
    if (isGone) forgetOpened(id);
  }, [isGone, id]);
  if (!view) {
    return html`<main class="request-view is-empty">
      ${
        trouble
          ? h(Unloaded, {
              title: isGone ? "This exchange is not in the record" : "It could not be loaded",
              lines: isGone
                ? [
                    "It was removed with older ones, or the link is from another record.",
                    html`<code class="faint">${id}</code>`,
                  ]
                : [trouble.message, trouble.hint],
              ways: html`${button("Back to traffic", toTraffic, { kind: "primary" })}
                ${button("Try again", () => void desk.load())}`,
            })
          : h(Loading, {})
      }
    </main>`;
  }
  const inside = () => {
    if (panel) return h(PANELS[panel][1], { desk, onClose: () => setPanel("") });
    const added = panelOf(tab);
    if (added) return h(PluginPanel, { key: tab, panel: added, view });
    if (view.raw && !isWaiting && tab !== "timeline") return h(Raw, { key: tab, desk });
    return h(VIEWS[tab]?.[1] ?? Sections, { key: `${tab} ${against ?? ""}`, desk, against });
  };
  return html`<main class="request-view" aria-label=${`Request ${nameOf(view)}`}>
    ${h(Header, { desk, view, panel, onPanel: setPanel })}
    ${
      view.raw
        ? null
        : html`<div class="request-budget">
            ${h(Meter, { tokens: view.tokens, isPending: desk.isBusy.value })}
            ${
              // Once the provider has counted, what it read says more than what an edit was going to cost.
              view.tokens?.input_tokens == null || view.tokens.is_estimated || isWaiting
                ? h(CostOfEdit, { view })
                : h(CacheLine, { id })
            }
          </div>`
    }
    ${h(Tabs, { view, tab: panel ? "" : tab, onTab: show })}
    ${h(Stale, { trouble })}
    ${h(Find, { desk, tab: panel ? "" : tab, panel: "request-panel" })}
    <div
      class=${`request-body ${panel ? `panel-${panel}` : `tab-${tab}`}`}
      role=${panel ? "region" : "tabpanel"}
      id="request-panel"
      tabindex=${panel || tab === "sections" ? null : 0}
      aria-label=${panel ? PANELS[panel][0] : nameOfTab(tab)}
    >
      ${inside()}
    </div>
  </main>`;
}

/** @param {{ view: View, tab: string, onTab: (tab: string) => void }} props */
function Tabs({ view, tab, onTab }) {
  const tabs = tabsOf(view);
  const errors = errorsOf(view).length;
  const warnings = (view.validity?.problems ?? []).length - errors;
  const badges = /** @type {Record<string, any>} */ ({
    sections: errors
      ? html`<span class="badge error">${errors}</span>`
      : warnings
        ? html`<span class="badge warning">${warnings}</span>`
        : null,
    wire: view.dirty ? html`<span class="badge changed" title="Differs from what the client sent">edited</span>` : null,
    losses: (view.losses ?? []).length ? html`<span class="badge warning">${view.losses?.length}</span>` : null,
  });
  useEffect(
    () => document.getElementById(`tab-${tab}`)?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    [tab],
  );
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    onTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label="Request" onKeyDown=${onKey}>
    ${tabs.map(
      (name, index) => html`<button
        type="button"
        key=${name}
        id=${`tab-${name}`}
        role="tab"
        class="tab tab-button"
        aria-selected=${tab === name}
        aria-controls="request-panel"
        tabindex=${tab === name || (!tab && !index) ? 0 : -1}
        title=${`Show ${nameOfTab(name)}${name.startsWith(PANEL) ? "" : ` (${index + 1})`}`}
        onClick=${() => onTab(name)}
      >
        ${view.raw && name === "sections" ? "Bodies" : nameOfTab(name)}
        ${badges[name] ?? null}
      </button>`,
    )}
  </div>`;
}

/** What the edit costs in cached prefix, or why the cache broke without one. @param {{ view: View }} props */
function CostOfEdit({ view }) {
  const cost = view.edit_cost;
  if (cost?.broken_tokens && !cost.broken_by_edit)
    return html`<p class="edit-cost cache-break" title=${cost.reason ?? ""}>
      ${h(Icon, { name: "warn" })}
      The cache breaks here: <b class="number">${short(cost.broken_tokens)}</b> tokens are not read from the cache
      ${cost.money ? html` (${money(cost.money)})` : null}
      <span class="soft">: ${cost.reason}</span>${" "}
      <a href=${hashOf({ view: "request", id: view.id, tab: "diff", against: "previous" })}>Show the cause</a>
    </p>`;
  if (!cost?.broken_by_edit) return null;
  return html`<p class="edit-cost" title=${cost.reason ?? ""}>
    ${h(Icon, { name: "warn" })}
    This edit breaks <b class="number">${short(cost.broken_by_edit)}</b> tokens of cached prefix
    ${cost.money_by_edit ? html` (${money(cost.money_by_edit)})` : null}
    ${cost.reason ? html`<span class="faint">: ${cost.reason}</span>` : null}
  </p>`;
}

function Loading() {
  return html`<div class="request-loading" role="status" aria-label="Loading">
    ${[60, 100, 84, 100, 70].map((width, index) => html`<i key=${index} style=${{ width: `${width}%` }}></i>`)}
  </div>`;
}

/** The texts are drawn when their card comes near: only then a mark can be shown. */
const DRAWN = 250;

/**
 * What the filter of the list looks for, marked in this request, with a way from one section to the next.
 * @param {{ desk: Desk, tab: string, panel: string }} props
 */
function Find({ desk, tab, panel }) {
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

const MEANINGS = /** @type {Record<string, string>} */ ({
  content: "The model or the reader would have seen it",
  option: "A setting",
  identity: "An id or bookkeeping that means nothing elsewhere",
});

/** What a translation could not carry over, and what it had to add. @param {{ desk: Desk }} props */
function Losses({ desk }) {
  const view = desk.view.value;
  const losses = view?.losses ?? [];
  const additions =
    view?.additions ??
    (view?.facts ?? []).filter((fact) => fact.kind === "translated").flatMap((fact) => fact.additions ?? []);
  const translated = (view?.facts ?? []).find((fact) => fact.kind === "translated");
  if (!losses.length && !additions.length) {
    return html`<div class="empty">
      <p>Nothing was lost.</p>
      <p class="soft">
        ${
          translated
            ? `Everything could be expressed in ${translated.dialect}.`
            : "The request was not translated: the provider gets it in the client's own dialect."
        }
      </p>
    </div>`;
  }
  return html`<div class="losses">
    ${translated && html`<p class="soft">Translated from <b>${view?.dialect}</b> to <b>${translated.dialect}</b>.</p>`}
    ${losses.length ? h(Changes, { title: `${losses.length} not carried over`, rows: losses }) : null}
    ${additions.length ? h(Changes, { title: `${additions.length} added`, rows: additions }) : null}
  </div>`;
}

/** @param {{ title: string, rows: readonly LossOrAddition[] }} props */
function Changes({ title, rows }) {
  return html`<section aria-label=${title}>
    <h2>${title}</h2>
    <div class="table-scroll boxed">
      <table class="loss-table">
        <thead>
          <tr><th scope="col">Kind</th><th scope="col">What</th><th scope="col">Why</th><th scope="col">Where</th></tr>
        </thead>
        <tbody>
          ${rows.map(
            (row, index) => html`<tr key=${index}>
              <td>
                <span class=${`chip severity ${row.severity ?? ""}`} title=${MEANINGS[row.severity ?? ""] ?? ""}>
                  ${row.severity ?? ""}
                </span>
              </td>
              <td>${row.what}</td>
              <td class="soft">${row.why}</td>
              <td><code>${row.pointer || "/"}</code></td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}
