// @ts-check
/** The frame around every view: navigation, held requests, and the state of the connection. */

import { about } from "../../kit/about.js";
import { connection, isExample, onAnnounced, retry } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { shortcuts, useShortcuts } from "../../kit/keyboard.js";
import { KeyCaps } from "../../kit/keycaps.js";
import { Menu } from "../../kit/menu.js";
import { go, lastChat, lastFilter, lastOpened, route, toChat, toExchange, toTraffic } from "../../kit/navigation.js";
import { Toasts, toast } from "../../kit/toast.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { Chat } from "../chat/page.js";
import { Costs } from "../costs/costs.js";
import { EvalCase } from "../evals/case.js";
import { CompareEvals } from "../evals/compare.js";
import { EvalView } from "../evals/eval.js";
import { Evals } from "../evals/evals.js";
import { EvalTrend } from "../evals/trend.js";
import { ActiveEdits } from "../interception/kept-edits.js";
import { Interception } from "../interception/mode-menu.js";
import { Rules } from "../interception/rules.js";
import { RequestView } from "../request/request.js";
import { CompareRuns } from "../runs/compare.js";
import { Runs } from "../runs/runs.js";
import { Trace } from "../runs/trace.js";
import { Sessions } from "../sessions/list.js";
import { Session } from "../sessions/session.js";
import { held, heldCount } from "../traffic/feed.js";
import { Traffic } from "../traffic/traffic.js";
import { Connect } from "./connect.js";
import { RecordDialog } from "../traffic/record.js";
import { OpenDocument } from "./open-document.js";
import { Palette } from "./palette.js";
import { notifies, theme, toggleNotifications } from "./preferences.js";
import { Shortcuts } from "./shortcuts.js";
import { Tour, leaveExample, showExample } from "./tour.js";

/** @import { Route } from "../../kit/core/routes.js" */
/** @typedef {"" | "palette" | "connect" | "shortcuts" | "rules" | "document" | "record"} Panel */

/**
 * The folder of the view that shows a route: its styles are scoped to this name.
 * @type {Record<Route["view"], string>}
 */
const VIEW_OF = {
  traffic: "traffic",
  request: "request",
  costs: "costs",
  session: "sessions",
  sessions: "sessions",
  chat: "chat",
  runs: "runs",
  run: "runs",
  compare: "runs",
  evals: "evals",
  eval: "evals",
  "eval-case": "evals",
  "eval-compare": "evals",
  "eval-trend": "evals",
};

export function Shell() {
  const [panel, setPanel] = useState(/** @type {Panel} */ (""));
  const at = route.value;
  useTitle();
  useEffect(
    () =>
      onAnnounced("cap", ({ message, share }) =>
        toast(message, { hint: "Costs shows what is left.", tone: share >= 1 ? "bad" : "plain" }),
      ),
    [],
  );
  useShortcuts("Everywhere", [
    { keys: "ctrl+k", label: "Find a command", run: () => setPanel("palette"), whileTyping: true, isHidden: true },
    { keys: "?", label: "Show shortcuts", run: () => setPanel("shortcuts") },
    {
      keys: "f1",
      also: ["ctrl+;"],
      label: "Show shortcuts, even while you write",
      run: () => setPanel("shortcuts"),
      whileTyping: true,
      isHidden: true,
    },
    { keys: "g t", label: "Go to traffic", run: toTraffic },
    { keys: "g a", label: "Go to the chat", run: toChat },
    { keys: "g e", label: "Go to the evals", run: () => go({ view: "evals" }) },
    { keys: "g m", label: "Go to the costs", run: () => go({ view: "costs", by: "day", filter: "" }) },
    { keys: "g u", label: "Go to the runs", run: () => go({ view: "runs" }) },
    { keys: "g s", label: "Go to the sessions", run: () => go({ view: "sessions" }) },
    { keys: "g h", label: "Go to the first held request", run: () => held.value[0] && toExchange(held.value[0].id) },
    { keys: "g c", label: "Connect a client", run: () => setPanel("connect") },
    { keys: "g r", label: "Edit the rules that hold requests", run: () => setPanel("rules") },
    { keys: "g o", label: "Open a document in the editor", run: () => setPanel("document") },
    ...[...exampleCommands(), ...recordCommands(() => setPanel("record")), ...themeCommands()].map((each) => ({
      ...each,
      keys: "",
    })),
  ]);
  const close = () => setPanel("");
  const panels = {
    "": () => null,
    palette: () => h(Palette, { onClose: close }),
    connect: () => h(Connect, { onClose: close }),
    shortcuts: () => h(Shortcuts, { onClose: close, shortcuts: shortcuts.value }),
    rules: () => h(Rules, { onClose: close }),
    document: () => h(OpenDocument, { onClose: close }),
    record: () => h(RecordDialog, { onClose: close }),
  };
  return html`<div class="shell">
    <div class="shell-frame" data-view="shell interception">
      ${h(Header, { onPanel: setPanel })}
      ${h(Banner, {})}
      ${isExample ? h(Tour, {}) : null}
    </div>
    <div class="shell-view" data-view=${VIEW_OF[at.view]}>
      ${at.view === "request" ? h(RequestView, { key: at.id, id: at.id, tab: at.tab, against: at.against }) : null}
      ${at.view === "runs" ? h(Runs, { compare: at.compare }) : null}
      ${at.view === "run" ? h(Trace, { key: at.id, id: at.id }) : null}
      ${at.view === "compare" ? h(CompareRuns, { key: `${at.a} ${at.b}`, a: at.a, b: at.b }) : null}
      ${at.view === "evals" ? h(Evals, { suite: at.suite, compare: at.compare }) : null}
      ${at.view === "eval" ? h(EvalView, { key: at.id, id: at.id, filter: at.filter, order: at.order }) : null}
      ${
        at.view === "eval-case" &&
        h(EvalCase, {
          key: `${at.id} ${at.case} ${at.target} ${at.trial}`,
          id: at.id,
          name: at.case,
          target: at.target,
          trial: at.trial,
          filter: at.filter,
          order: at.order,
        })
      }
      ${
        at.view === "eval-compare" &&
        h(CompareEvals, { key: `${at.a} ${at.b}`, a: at.a, b: at.b, targetA: at.targetA, targetB: at.targetB })
      }
      ${at.view === "eval-trend" ? h(EvalTrend, { key: at.suite, suite: at.suite }) : null}
      ${at.view === "costs" ? h(Costs, { by: at.by, filter: at.filter }) : null}
      ${at.view === "sessions" ? h(Sessions, {}) : null}
      ${at.view === "session" ? h(Session, { key: at.name, name: at.name }) : null}
      ${at.view === "chat" ? h(Chat, { filter: at.filter, chat: at.chat }) : null}
      ${at.view === "traffic" ? h(Traffic, { filter: at.filter, onConnect: () => setPanel("connect") }) : null}
    </div>
    <div class="shell-frame" data-view="shell interception">${panels[panel]()}</div>
    ${h(Toasts, {})}
  </div>`;
}

/** @param {{ onPanel: (panel: Panel) => void }} props */
function Header({ onPanel }) {
  const count = heldCount.value;
  return html`<header class="shell-header in-row">
    <a class="brand in-row" href="#/traffic" aria-label="Sightline">
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d="M1.5 10h17" /><circle cx="10" cy="10" r="4.5" /></svg>
      <span class="brand-name">Sightline</span>
    </a>
    ${h(Places, {})}
    <span class="shell-gap"></span>
    ${
      count
        ? html`<button
            type="button"
            class="button held-chip"
            title="Open the first held request"
            aria-label=${`${count} held`}
            onClick=${() => toExchange(held.value[0].id)}
          >
            ${h(Icon, { name: "pause" })}
            ${count} ${" "}<span class="held-word">held</span>
          </button>`
        : null
    }
    ${h(ActiveEdits, {})}
    ${h(Interception, { onRules: () => onPanel("rules") })}
    <button type="button" class="button quiet find" onClick=${() => onPanel("palette")}>
      ${h(Icon, { name: "search" })}
      <span class="unseen">Find a command </span>
      <span class="find-keys">${h(KeyCaps, { keys: "ctrl+k" })}</span>
    </button>
    ${button(html`<span>Connect</span>`, () => onPanel("connect"), {
      kind: "connect-button",
      icon: "plug",
      name: "Connect a client",
    })}
    ${h(Menu, {
      label: "More",
      choices: [
        ...themeCommands(),
        "line",
        { label: "Notify me of held requests", isChosen: notifies.value, run: toggleNotifications },
        ...exampleCommands(),
        ...recordCommands(() => onPanel("record")),
        { label: "Open a document", run: () => onPanel("document"), keys: "g o" },
        { label: "Connect a client", run: () => onPanel("connect"), keys: "g c" },
        { label: "Keyboard shortcuts", run: () => onPanel("shortcuts"), keys: "?" },
      ],
    })}
  </header>`;
}

function themeCommands() {
  return /** @type {const} */ (["", "light", "dark"]).map((name) => ({
    label: `Theme: ${name || "system"}`,
    isChosen: theme.value === name,
    run: () => (theme.value = name),
  }));
}

/** The example's record is not the user's: there is nothing to set. @param {() => void} open */
function recordCommands(open) {
  return isExample ? [] : [{ label: "The record and how long it is kept", run: open }];
}

/** The way into the example, or out of it. */
function exampleCommands() {
  if (isExample) return [{ label: "Leave the example", run: () => void leaveExample() }];
  return about.value.places?.includes("example") ? [{ label: "Show the example", run: showExample }] : [];
}

function Places() {
  const view = route.value.view;
  const places = [{ view: "traffic", label: "Traffic", href: hashOf({ view: "traffic", filter: lastFilter.value }) }];
  const isSession = view === "session" || view === "sessions";
  places.push({ view: isSession ? view : "sessions", label: "Sessions", href: hashOf({ view: "sessions" }) });
  if (lastOpened.value)
    places.push({
      view: "request",
      label: "Request",
      href: hashOf({ view: "request", id: lastOpened.value, tab: "sections" }),
    });
  const own = about.value.places ?? [];
  if (own.includes("chat")) places.push({ view: "chat", label: "Chat", href: hashOf(lastChat.value) });
  const isEval = view.startsWith("eval");
  if (isEval || own.includes("evals"))
    places.push({ view: isEval ? view : "evals", label: "Evals", href: hashOf({ view: "evals" }) });
  const isRun = ["runs", "run", "compare"].includes(view);
  if (isRun || own.includes("runs"))
    places.push({ view: isRun ? view : "runs", label: "Runs", href: hashOf({ view: "runs" }) });
  places.push({ view: "costs", label: "Costs", href: hashOf({ view: "costs", by: "day", filter: "" }) });
  const bar = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(
    () => bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    [view, places.length],
  );
  return html`<nav class="places" aria-label="Places" ref=${bar}>
    ${places.map(
      (each) => html`<a key=${each.view} href=${each.href} aria-current=${each.view === view ? "page" : null}>
        ${each.label}
      </a>`,
    )}
  </nav>`;
}

function Banner() {
  const state = connection.value;
  if (state === "refused") {
    return html`<div class="banner in-row bad" role="alert">
      ${h(Icon, { name: "warn" })}
      <span>This page's link is no longer valid. Open the link that Sightline printed when it started.</span>
    </div>`;
  }
  if (state !== "lost") return null;
  return html`<div class="banner in-row" role="alert">
    ${h(Icon, { name: "warn" })}
    <span>Sightline does not respond. What you see may be out of date. The page keeps trying to reconnect.</span>
    ${button("Try now", retry)}
  </div>`;
}

/** Views that the title of the window names. @type {Partial<Record<Route["view"], string>>} */
const TITLES = { chat: "Chat", costs: "Costs", sessions: "Sessions" };

function useTitle() {
  const at = route.value;
  const count = heldCount.value;
  const own = at.view === "request" ? at.id : at.view === "session" ? at.name : "";
  const name = own || (at.view.startsWith("eval") ? "Evals" : TITLES[at.view]);
  const place = name ? `${name} · ` : "";
  useEffect(() => {
    document.title = `${count ? `(${count} held) ` : ""}${isExample ? "Example · " : ""}${place}Sightline`;
  }, [count, place]);
}
