// @ts-check
/** The head of an exchange: what it is, its state, and what can be done with it now. */

import { about } from "../../kit/about.js";
import { button, iconButton } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { CopyButton } from "../../kit/copy.js";
import { clientName, costOf, duration, stamp } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { Menu } from "../../kit/menu.js";
import { go, route, toExchange, toTraffic } from "../../kit/navigation.js";
import { FaultNote } from "../../kit/notices.js";
import { useResource } from "../../kit/resource.js";
import { attempt } from "../../kit/toast.js";
import { h, html, useState } from "../../vendor/preact.js";
import { MakeCase } from "../evals/make.js";
import { held } from "../traffic/feed.js";
import { Forget, ofSession } from "../traffic/forget.js";
import { Share } from "../traffic/share.js";
import { holdClock, isHeld, nameOf, proof, whyNotSendable } from "./core/exchange.js";

/** @import { View } from "./core/exchange.js" */
/** @import { Desk } from "./desk.js" */
/** @import { Selection } from "../traffic/forget.js" */

/** @import { Choice } from "../../kit/menu.js" */
/** @typedef {"" | "answer" | "compare" | "masks"} Panel */
/** What a dialog is about. @typedef {{ wanted: Selection, what: string }} Chosen */

/** @param {{ desk: Desk, view: View, panel: Panel, onPanel: (panel: Panel) => void }} props */
export function Header({ desk, view, panel, onPanel }) {
  const isWaiting = isHeld(view);
  const way = [
    view.client && clientName(view.client),
    view.dialect,
    view.provider === view.dialect ? "" : view.provider,
  ].filter(Boolean);
  return html`<header class=${`request-head state-${view.state}`}>
    <div class="request-title in-row">
      ${iconButton("back", "Back to traffic", toTraffic, { kind: "back", title: "Back to traffic (Esc)" })}
      <span class=${`state-badge ${view.state}`}>${stateName(view)}</span>
      <h1 class="cut" title=${nameOf(view)}>${nameOf(view) || "no model"}</h1>
      <span
        class="request-route cut soft"
        title=${`From ${view.client || "an unnamed client"}, in ${view.dialect}, to ${view.provider}`}
      >
        ${way.map(
          (each, index) => html`${index ? html`<span class="faint" aria-hidden="true"> → </span>` : null}
            ${each}`,
        )}
      </span>
      ${
        view.transport === "websocket" &&
        html`<span class="chip" title="The request came as a frame of a WebSocket">WebSocket</span>`
      }
      ${h(InSession, { view })}
      <span class="card-gap"></span>
      ${h(Facts, { view })}
      ${isWaiting ? h(Queue, { view }) : null}
    </div>
    <div class="request-actions in-row">
      ${isWaiting ? h(HoldActions, { desk, view, panel, onPanel }) : h(AfterActions, { desk, view, panel, onPanel })}
      <span class="card-gap"></span>
      ${h(Proof, { view })}
    </div>
    ${view.fault && view.state !== "held" ? h(FaultNote, { fault: view.fault }) : null}
  </header>`;
}

/** @param {View} view */
function stateName(view) {
  if (view.state === "held") return view.hold?.phase === "tool_calls" ? "tool calls held" : "held";
  return view.state;
}

/** @param {{ view: View }} props */
function Facts({ view }) {
  const details = [
    view.status ? html`<span class=${view.status >= 400 ? "bad" : ""}>${view.status}</span>` : null,
    view.elapsed != null ? html`<span title="Until the last byte">${duration(view.elapsed)}</span>` : null,
    typeof view.cost === "number"
      ? html`<span title=${view.tokens?.is_estimated ? "Cost, estimated" : "Cost"}>
          ${costOf({ cost: view.cost, is_estimated: view.tokens?.is_estimated })}
        </span>`
      : null,
    html`<span title=${stamp(view.at)} class="faint">${new Date(view.at * 1000).toLocaleTimeString("en-GB")}</span>`,
  ].filter(Boolean);
  return html`<span class="request-facts number soft">${details}</span>`;
}

/** Others that wait, in order of arrival. @param {{ view: View }} props */
function Queue({ view }) {
  const waiting = held.value;
  if (waiting.length < 2) return null;
  const at = waiting.findIndex((line) => line.id === view.id);
  return html`<span class="queue">
    ${h(Menu, {
      label: `${waiting.length} requests are held`,
      class: "button quiet",
      children: html`<span class="number">${at + 1} of ${waiting.length} held</span>${h(Icon, { name: "down" })}`,
      choices: waiting.map((line, index) => ({
        label: `${index + 1}. ${line.model ?? line.id}`,
        detail: [line.session, clientName(line.client)].filter(Boolean).join(" · "),
        isChosen: line.id === view.id,
        run: () => toExchange(line.id),
      })),
    })}
    ${button("Next", () => nextHeld(view.id), { kind: "quiet", keys: "n", title: "Next held request (n)" })}
  </span>`;
}

/** Why the exchange was cancelled. */
const CANCELLED = {
  client_gone: "the client left",
  shutdown: "Sightline was stopped",
  interrupted: "Sightline or its command was interrupted",
  user: "it was stopped by hand",
  timeout: "its time ran out",
};

const SCOPES = /** @type {const} */ ([
  ["", "This request only"],
  ["session", "Keep for this session"],
  ["project", "Keep for this project"],
  ["all", "Keep everywhere"],
]);

/** Where edits apply, as it is asked at Send; before, “Keep edits…” asks the same. */
const SEND_CHOICES = /** @type {const} */ ([
  ["", "Send: only this request", "Later requests are not changed"],
  ["session", "Send, and apply to this session", "The edits are made again on its later requests"],
  ["project", "Send, and apply to this project", "On all sessions of the same project"],
  ["all", "Send, and apply always", "On every request that has the same text"],
]);

/** @param {{ desk: Desk, view: View, panel: Panel, onPanel: (panel: Panel) => void }} props */
function HoldActions({ desk, view, panel, onPanel }) {
  const why = whyNotSendable(view);
  const doing = desk.doing.value;
  const isCalls = view.hold?.phase === "tool_calls";
  const send = () => void desk.send();
  useShortcuts(
    "Held request",
    [
      // While an answer is written, the same keys send that.
      ...(panel === "answer"
        ? []
        : [
            {
              keys: "ctrl+enter",
              label: isCalls ? "Pass the tool calls on" : "Send what is shown",
              run: send,
              whileTyping: true,
            },
          ]),
      { keys: "ctrl+z", label: "Undo", run: () => desk.view.peek()?.can_undo && void desk.apply({ op: "undo" }) },
      {
        keys: "ctrl+shift+z",
        also: ["ctrl+y"],
        label: "Redo",
        run: () => desk.view.peek()?.can_redo && void desk.apply({ op: "redo" }),
      },
      { keys: "a", label: "Answer by hand", run: () => onPanel(panel === "answer" ? "" : "answer") },
      { keys: "X", label: "Drop the request", run: () => void desk.drop() },
      { keys: "n", label: "Next held request", run: () => nextHeld(view.id) },
    ],
    [view.id, panel, isCalls],
  );
  return html`
    ${button(doing === "send" ? "Sending…" : isCalls ? "Pass on" : "Send", send, {
      kind: "primary send",
      icon: "send",
      keys: panel === "answer" ? "" : "ctrl+enter",
      title: why || "Send exactly what is shown",
      isDisabled: why !== "" || doing !== "",
    })}
    ${
      view.dirty && !isCalls && !view.raw
        ? h(Menu, {
            label: "Apply the edits to later requests too",
            class: "button icon send-choice",
            align: "left",
            children: h(Icon, { name: "down" }),
            choices: SEND_CHOICES.filter(([scope]) => scope !== "project" || view.session?.includes("@")).map(
              ([scope, label, detail]) => ({ label, detail, run: () => void desk.send(scope) }),
            ),
          })
        : null
    }
    ${button("Drop", () => void desk.drop(), {
      kind: "danger",
      title: "The client gets an error (Shift+X)",
      isDisabled: doing !== "",
    })}
    ${
      isCalls
        ? null
        : button(
            html`<span class="wide-only">Answer by hand</span> <span class="narrow-only">Answer</span>`,
            () => onPanel(panel === "answer" ? "" : "answer"),
            {
              icon: "hand",
              title: "Write the reply yourself (a)",
              isDisabled: doing !== "",
              isPressed: panel === "answer",
            },
          )
    }
    <span class="action-line" aria-hidden="true"></span>
    ${iconButton("undo", "Undo", () => void desk.apply({ op: "undo" }), {
      title: "Undo (Ctrl+Z)",
      isDisabled: !view.can_undo,
    })}
    ${iconButton("redo", "Redo", () => void desk.apply({ op: "redo" }), {
      title: "Redo (Ctrl+Shift+Z)",
      isDisabled: !view.can_redo,
    })}
    ${button("Reset", () => void desk.apply({ op: "reset" }), {
      kind: "quiet",
      title: "Back to what the client sent; this can be undone",
      isDisabled: !view.dirty,
    })}
    ${
      isCalls
        ? null
        : h(Menu, {
            label: "How long edits are kept",
            class: desk.keep.value ? "button keep is-on" : "button quiet keep",
            align: "left",
            children: html`<span class="cut">
                ${desk.keep.value ? SCOPES.find(([scope]) => scope === desk.keep.value)?.[1] : "Keep edits…"}
              </span>
              ${h(Icon, { name: "down" })}`,
            choices: [
              ...SCOPES.map(([scope, label]) => ({
                label,
                detail: scope ? "applied to later requests too" : "",
                isChosen: desk.keep.value === scope,
                run: () => void desk.keepFor(scope),
              })),
              "line",
              { label: "Show all kept edits…", run: () => onPanel("masks") },
            ],
          })
    }
    ${h(Countdown, { view })}`;
}

/** @param {string} id */
function nextHeld(id) {
  const waiting = held.peek();
  const at = waiting.findIndex((line) => line.id === id);
  const next = waiting[(at + 1) % Math.max(1, waiting.length)];
  if (next) toExchange(next.id);
}

/** @param {{ view: View }} props */
function Countdown({ view }) {
  const now = useNow();
  if (!view.hold) return null;
  const clock = holdClock(view.hold, now);
  return html`<span
    class=${clock.isUrgent ? "countdown urgent" : "countdown"}
    role="timer"
    aria-label=${`Held for ${clock.waited}. ${clock.text} ${view.hold.reason ?? ""}`.trim()}
  >
    <span class="number soft">held ${clock.waited}</span>
    ${clock.text ? html`<span class="number countdown-left">${clock.text}</span>` : null}
    ${view.hold.reason ? html`<span class="countdown-left" title=${view.hold.reason}>over a cap</span>` : null}
  </span>`;
}

/** @param {{ desk: Desk, view: View, panel: Panel, onPanel: (panel: Panel) => void }} props */
function AfterActions({ desk, view, panel, onPanel }) {
  const [dialog, setDialog] = useState(/** @type {any} */ (null));
  const isRaw = Boolean(view.raw);
  const canReplay = !isRaw || view.transport !== "websocket";
  const replay = () => (isRaw ? void sendAgain(desk) : onPanel(panel === "compare" ? "" : "compare"));
  const hasEvals = !isRaw && (about.value.places?.includes("evals") ?? false);
  const onClose = () => setDialog(null);
  const makeCase = () => setDialog(h(MakeCase, { exchanges: [view.id], onClose }));
  const share = (/** @type {Chosen} */ chosen) => setDialog(h(Share, { ...chosen, onClose }));
  const forget = (/** @type {Chosen} */ chosen) => setDialog(h(Forget, { ...chosen, onClose, onGone: toTraffic }));
  const one = { wanted: { exchanges: [view.id] }, what: "this request" };
  const session = { wanted: ofSession(view.session ?? ""), what: `session ${view.session}` };
  /** @type {(verb: string, keys: string, run: (chosen: Chosen) => void, isDanger?: boolean) => Choice[]} */
  const oneOrSession = (verb, keys, run, isDanger) => [
    { label: `${verb} this request…`, keys, isDanger, run: () => run(one) },
    ...(view.session
      ? [{ label: `${verb} its session…`, detail: view.session, isDanger, run: () => run(session) }]
      : []),
  ];
  useShortcuts(
    "Request",
    [
      ...(canReplay ? [{ keys: "r", label: isRaw ? "Send again" : "Replay and compare", run: replay }] : []),
      ...(hasEvals ? [{ keys: "M", label: "Make a case of this", run: makeCase }] : []),
      { keys: "S", label: "Share this request", run: () => share(one) },
      { keys: "delete", label: "Delete this request", run: () => forget(one) },
    ],
    [view.id, panel, hasEvals],
  );
  return html`
    ${
      canReplay &&
      button(isRaw ? "Send again" : "Replay…", replay, { icon: "replay", keys: "r", isPressed: panel === "compare" })
    }
    ${
      isRaw
        ? null
        : button("Kept edits", () => onPanel(panel === "masks" ? "" : "masks"), {
            kind: "quiet",
            isPressed: panel === "masks",
          })
    }
    ${
      hasEvals &&
      view.state !== "sending" &&
      button("Make a case of this", makeCase, {
        kind: "quiet",
        title: "Put it into a suite of evals (Shift+M)",
      })
    }
    ${h(Menu, {
      label: "Share",
      align: "left",
      children: h(Icon, { name: "share" }),
      choices: oneOrSession("Share", "S", share),
    })}
    ${
      view.state !== "sending" &&
      h(Menu, {
        label: "Delete",
        align: "left",
        children: h(Icon, { name: "trash" }),
        choices: oneOrSession("Delete", "delete", forget, true),
      })
    }
    ${dialog}
    ${
      view.origin &&
      html`<a class="button quiet" href=${`#/x/${encodeURIComponent(view.origin)}`}>
        ${h(Icon, { name: "link" })}Replay of ${view.origin.slice(-6)}
      </a>`
    }
    ${
      (view.replays ?? []).length
        ? button(
            html`${view.replays?.length} ${view.replays?.length === 1 ? "replay" : "replays"}`,
            () => onPanel("compare"),
            { kind: "quiet", title: "Compare the replies" },
          )
        : null
    }
    ${
      view.state === "cancelled" &&
      !view.fault &&
      html`<span class="soft" role="status">Cancelled: ${CANCELLED[view.reason ?? "client_gone"]}.</span>`
    }
    ${
      view.state === "sending" &&
      html`<span class="soft pulse" role="status">
        ${desk.frames.value.length ? "The reply is arriving…" : "Waiting for the provider…"}
      </span>`
    }`;
}

/** Send what passed as it was once more, and look at that. @param {Desk} desk */
const sendAgain = (desk) => attempt(async () => toExchange(await desk.replay({})));

/** The promise of the product, in one line. @param {{ view: View }} props */
function Proof({ view }) {
  const { state, shown, sent } = proof(view);
  const words = { shown: "shown", same: "sent = shown", different: "sent ≠ shown", nothing: "nothing was sent" };
  const hash = sent || shown;
  const title =
    state === "same"
      ? `The bytes that were sent are the bytes that were shown; SHA-256: ${sent}`
      : state === "different"
        ? `Shown ${shown}, sent ${sent}`
        : `SHA-256 of the body on screen: ${shown}`;
  return html`<span
    class=${`proof ${state}`}
    title=${title}
    role="status"
    aria-label=${state === "nothing" ? words[state] : `${words[state]} ${hash}`}
  >
    ${h(Icon, { name: state === "different" ? "warn" : state === "same" ? "check" : "link" })}
    <span>${words[state]}</span>
    ${
      hash &&
      state !== "nothing" &&
      html`<code>${hash.slice(0, 12)}</code>
      ${h(CopyButton, { text: hash, label: "Copy SHA-256" })}`
    }
  </span>`;
}

/**
 * The session, the place of this turn in it, and the turns beside it.
 * @param {{ view: View }} props
 */
function InSession({ view }) {
  // A turn that ends may have made its successor possible; only the record knows what came before and after.
  const { value: place } = useResource(`/api/exchanges/${view.id}/place`, undefined, view.state);
  const tab = route.value.view === "request" ? route.value.tab : "sections";
  const step = (/** @type {string | undefined} */ id) => id && toExchange(id, tab);
  useShortcuts(
    "Request",
    [
      { keys: "[", label: "Previous turn of the session", run: () => step(place?.previous) },
      { keys: "]", label: "Next turn of the session", run: () => step(place?.next) },
      {
        keys: "s",
        label: "Open the session",
        run: () => go({ view: "session", name: view.session || place?.key || view.id }),
      },
    ],
    [view.id, view.session, place, tab],
  );
  if (!view.session && (!place || place.turns < 2)) return null;
  return html`<span class="in-session">
    <a
      class="chip session cut"
      href=${hashOf({ view: "session", name: view.session || place?.key || view.id })}
      title=${view.session ? `Session ${view.session} (s)` : "The conversation (s)"}
    >
      ${view.session || "conversation"}
    </a>
    ${
      place && place.turns > 1
        ? html`${iconButton("back", "Previous turn", () => step(place.previous), {
            title: "Previous turn ([)",
            isDisabled: !place.previous,
          })}
            <span class="number soft">turn ${place.turn} of ${place.turns}</span>
            ${iconButton("right", "Next turn", () => step(place.next), {
              title: "Next turn (])",
              isDisabled: !place.next,
            })}`
        : null
    }
    ${
      place?.above
        ? html`<a class="soft" href=${hashOf({ view: "request", id: place.above, tab: "sections" })}>
            caused by a turn
          </a>`
        : null
    }
  </span>`;
}
