// @ts-check
/**
 * What a run asks the user: whether its calls may run, whether a limit is raised, and what to do with an interrupted
 * call.
 */

import { button } from "../../kit/button.js";
import { argumentsLine } from "../../kit/core/answers.js";
import { countOf } from "../../kit/core/format.js";
import { checkbox } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { toExchange } from "../../kit/navigation.js";
import { segmentControl } from "../../kit/segmented.js";
import { h, html, signal, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { CallDecision } from "./call-decision.js";
import { amount, describeLimit, spendings, stateWords } from "./core/runs.js";
import { confirmLimit, decide, resumeRun, setStepping, stopRun, useRun } from "./feed.js";

/** @import { PendingCall, Reached } from "../../api-types.d.ts" */
/** @import { Decision, Pending, Run } from "./core/runs.js" */

/**
 * Requests that were opened by themselves, each once: who comes back from one without sending it is not sent there
 * again.
 */
const opened = new Set();

/** The runs that are shown and wait for a person, each with the ids of its calls that do. */
export const waitingRuns = signal(/** @type {Map<string, ReadonlySet<string>>} */ (new Map()));

/**
 * A run by its id: what it asks, and the ways to stop it. Nothing once it is over, unless it `isLeft` by its pair: then
 * it may have been resumed elsewhere, and has an answer that the pair has not.
 * @param {{ run: string, isLeft?: boolean, key?: string }} props
 */
export function ApprovalCard({ run: id, isLeft = false }) {
  const { run, trouble } = useRun(id);
  const isWaiting = run?.state === "waiting";
  const pending = run?.pending;
  useLayoutEffect(() => {
    if (isWaiting) {
      const calls = pending?.step === "approve" ? pending.calls.map((call) => call.id) : [];
      waitingRuns.value = new Map([...waitingRuns.peek(), [id, new Set(calls)]]);
    }
    return () => {
      if (waitingRuns.peek().has(id))
        waitingRuns.value = new Map([...waitingRuns.peek()].filter(([each]) => each !== id));
    };
  }, [id, isWaiting, pending]);
  if (!run) return trouble && trouble.status !== 404 ? html`<p class="soft">${trouble.message}</p>` : null;
  // A run that was just interrupted still belongs to its pair, which shows that.
  if (run.state === "interrupted" && !isLeft) return null;
  const held = run.pending?.step === "hold" && run.is_stepping ? run.pending.exchange : "";
  if (run.state === "ended") return isLeft && run.why === "answered" ? h(Elsewhere, { run }) : null;
  return html`${h(RunControls, { run })}${held ? h(Opening, { key: held, exchange: held }) : null}`;
}

/** The request of a step opens in its editor. @param {{ exchange: string, key?: string }} props */
function Opening({ exchange }) {
  useEffect(() => {
    if (opened.has(exchange)) return;
    opened.add(exchange);
    toExchange(exchange);
  }, []);
  return null;
}

/** @param {{ run: Run }} props */
function Elsewhere({ run }) {
  return html`<section class="run-card boxed" aria-label="Run of tools">
    <div class="run-asked stacked">
      <p class="run-question">The run was resumed elsewhere, and has its answer.</p>
      <div class="run-all">
        ${button("Use its answer", () => void resumeRun(run.id, {}), { kind: "primary" })}
        <a class="run-link" href=${`#/runs/${encodeURIComponent(run.id)}`}>Trace</a>
      </div>
    </div>
  </section>`;
}

/** The same for a run that is at hand. @param {{ run: Run, hasLink?: boolean }} props */
export function RunControls({ run, hasLink = true }) {
  const isWaiting = run.pending !== null;
  /**
   * What was typed for a call, by its key: if it cannot be used, the call is asked about again, with what was typed.
   */
  const attempts = useRef(/** @type {Record<string, string>} */ ({}));
  return html`<section class=${`run-card boxed ${run.state}`} aria-label="Run of tools" onPointerDown=${keepPress}>
    <header class="run-bar in-row">
      <span class=${`run-state ${run.state}`} role="status">${stateWords(run)}</span>
      <span class="soft number run-spent">
        ${spendings(run)
          .filter(({ name }) => name !== "seconds")
          .map(
            ({ name, label, unit, spent, limit }) =>
              html`<span key=${name} title=${limit ? `${label}: ${spent} of ${limit}` : label}>
                ${spent}
                ${limit ? html`<span class="faint"> / ${limit}</span>` : null} ${unit}
              </span>`,
          )}
      </span>
      <span class="shell-gap"></span>
      ${hasLink ? html`<a class="run-link" href=${`#/runs/${encodeURIComponent(run.id)}`}>Trace</a>` : null}
      ${
        run.state === "interrupted"
          ? null
          : html`${h(StepSwitch, { run })}
              ${button("Stop after this step", () => void stopRun(run.id, false), {
                title: "The current step finishes first",
              })}
              ${button("Stop now", () => void stopRun(run.id, true), {
                kind: "danger",
                title: "The current step is cancelled",
              })}`
      }
    </header>
    ${run.paused ? html`<p class="wraps soft" role="status">${run.paused.line}</p>` : null}
    ${run.pending ? h(Question, { run, pending: run.pending, attempts: attempts.current }) : null}
    ${run.state === "interrupted" && !isWaiting ? h(Resume, { run, calls: [] }) : null}
  </section>`;
}

/** A pointer that moves by more pixels has left its button on purpose. */
const SLIP = 12;

/**
 * What arrives above the card moves it, also between a press and its release: then the browser would give the click to
 * what is under the pointer by then. So the press stays with its button, unless the pointer itself moves away.
 * @param {PointerEvent} press
 */
function keepPress(press) {
  const pressed = press.target instanceof Element ? press.target.closest("button") : null;
  if (!pressed) return;
  pressed.setPointerCapture(press.pointerId);
  pressed.onpointermove = ({ clientX, clientY }) => {
    if (Math.hypot(clientX - press.clientX, clientY - press.clientY) > SLIP)
      pressed.releasePointerCapture(press.pointerId);
  };
  pressed.onlostpointercapture = () => (pressed.onpointermove = null);
}

/** @param {{ run: Run }} props */
function StepSwitch({ run }) {
  const isStepping = run.is_stepping ?? false;
  const [isOn, setOn] = useState(isStepping);
  // Before the next click, which it would take back.
  useLayoutEffect(() => setOn(isStepping), [isStepping]);
  const toggle = async () => {
    setOn(!isOn);
    if (!(await setStepping(run.id, !isOn))) setOn(isOn);
  };
  return checkbox("Step", isOn, () => void toggle(), {
    role: "switch",
    title: "Hold each request before it is sent, and open it in the request editor. Your edits stay in later rounds.",
  });
}

/** @param {{ run: Run, pending: Pending, attempts: Record<string, string> }} props */
function Question({ run, pending, attempts }) {
  switch (pending.step) {
    case "approve":
      return h(Approve, { run, calls: pending.calls, objections: pending.objections ?? {}, attempts });
    case "confirm":
      return h(Confirm, { run, reached: pending.reached });
    case "hold":
      return h(HoldQuestion, { run, exchange: pending.exchange });
    default:
      return h(Resume, { run, calls: pending.calls });
  }
}

/**
 * Each decision is sent at once; the run resumes when every call has one.
 * @param {{ run: Run, calls: readonly PendingCall[], objections: Record<string, string>, attempts: Record<string,
 *   string> }} props
 */
function Approve({ run, calls, objections, attempts }) {
  const [sending, setSending] = useState(/** @type {readonly string[]} */ ([]));
  const root = useRef(/** @type {HTMLDivElement | null} */ (null));
  /** Who decided about a call by its buttons stands at the next one when it is gone. */
  const hadFocus = useRef(false);
  useLayoutEffect(() => {
    if (hadFocus.current)
      /** @type {HTMLElement | null | undefined} */ (root.current?.querySelector(".run-choices .button"))?.focus();
    hadFocus.current = false;
  }, [calls.length]);
  const send = async (/** @type {Record<string, Decision>} */ decisions) => {
    const keys = Object.keys(decisions);
    hadFocus.current = root.current?.contains(document.activeElement) ?? false;
    setSending((now) => [...now, ...keys]);
    await decide(run.id, decisions);
    setSending((now) => now.filter((key) => !keys.includes(key)));
  };
  const all = (/** @type {Decision} */ decision) =>
    void send(Object.fromEntries(calls.map((call) => [call.key, decision])));
  return html`<div class="run-asked stacked" ref=${root}>
    <p class="run-question">
      ${
        calls.length === 1
          ? html`The model wants to call <code>${calls[0].name}</code>. Nothing runs until you allow it.`
          : `The model wants to make ${countOf(calls.length, "call")}. Nothing runs until you decide about each.`
      }
    </p>
    <ul class="run-calls stacked">
      ${calls.map((call) =>
        h(CallDecision, {
          key: call.key,
          call,
          objection: objections[call.key] ?? "",
          attempts,
          isBusy: sending.includes(call.key),
          onDecide: (decision) => void send({ [call.key]: decision }),
        }),
      )}
    </ul>
    ${
      calls.length > 1 &&
      html`<div class="run-all">
        <span class="shell-gap"></span>
        ${button(html`Deny all ${calls.length}`, () => all({ decision: "denied", reason: "" }), {
          kind: "danger",
          isDisabled: sending.length > 0,
        })}
        ${button(html`Allow all ${calls.length} as they are`, () => all({ decision: "allowed" }), {
          isDisabled: sending.length > 0,
        })}
      </div>`
    }
  </div>`;
}

/** @param {{ run: Run, exchange: string }} props */
function HoldQuestion({ run, exchange }) {
  return html`<div class="run-asked stacked">
    <p class="run-question">
      ${h(Icon, { name: "pause" })}
      The request of round ${run.rounds.length + 1} is held before it is sent. Your edits stay in later rounds.
    </p>
    <div class="run-all">
      <a class="button primary" href=${`#/x/${encodeURIComponent(exchange)}`}>Open the request</a>
    </div>
  </div>`;
}

/** @param {{ run: Run, reached: Reached }} props */
function Confirm({ run, reached }) {
  const [isSending, setSending] = useState(false);
  const answer = async (/** @type {boolean} */ goesOn) => {
    setSending(true);
    await confirmLimit(run.id, goesOn);
    setSending(false);
  };
  return html`<div class="run-asked stacked">
    <p class="run-question">${h(Icon, { name: "warn" })}${describeLimit(reached)}</p>
    <div class="run-all">
      ${button(
        reached.raised != null ? `Continue, up to ${amount(reached.name, reached.raised)}` : "Go on",
        () => void answer(true),
        {
          kind: "primary",
          isDisabled: isSending,
        },
      )}
      ${button("Stop here", () => void answer(false), { isDisabled: isSending })}
    </div>
  </div>`;
}

/**
 * A run that was interrupted: a call that had begun may have done its work; only the user can know.
 * @param {{ run: Run, calls: readonly PendingCall[] }} props
 */
function Resume({ run, calls }) {
  const [choices, setChoices] = useState(/** @type {Record<string, "again" | "skip">} */ ({}));
  const [isSending, setSending] = useState(false);
  const isOpen = calls.some((call) => !choices[call.key]);
  const resume = async () => {
    setSending(true);
    await resumeRun(run.id, choices);
    setSending(false);
  };
  return html`<div class="run-asked stacked">
    <p class="run-question">
      ${
        calls.length
          ? "The run was interrupted while these calls were running. They may have done their work, or part of it."
          : "The run was interrupted. It can resume from its last complete step."
      }
    </p>
    ${
      calls.length
        ? html`<ul class="run-calls stacked">
            ${calls.map(
              (call) => html`<li key=${call.key} class="run-call stacked mid-flight">
                <span class="run-call-name">
                  <code>${call.name}</code> <span class="faint cut">${argumentsLine(call.arguments)}</span>
                </span>
                ${segmentControl({
                  label: `What to do with ${call.name}`,
                  value: choices[call.key] ?? "",
                  choices: [
                    { value: "again", label: "Run it again" },
                    { value: "skip", label: "Skip it" },
                  ],
                  onChange: (choice) => setChoices({ ...choices, [call.key]: choice }),
                })}
              </li>`,
            )}
          </ul>`
        : null
    }
    <div class="run-all">
      ${button("Resume", () => void resume(), { kind: "primary", isDisabled: isSending || isOpen })}
    </div>
  </div>`;
}
