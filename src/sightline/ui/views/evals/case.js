// @ts-check
/** One case on one target: the request, the answer, and the results of every grader. */

import { AnswerBody, Ending } from "../../kit/answer.js";
import { post } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { CopyButton } from "../../kit/copy.js";
import { countOf, duration, money, whole } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { foldBlock } from "../../kit/fold-block.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { go, toExchange } from "../../kit/navigation.js";
import { Stale } from "../../kit/notices.js";
import { segmentControl } from "../../kit/segmented.js";
import { toast } from "../../kit/toast.js";
import { h, html, useLayoutEffect, useMemo, useState } from "../../vendor/preact.js";
import { canHold } from "../interception/feed.js";
import { exchangeOf, noteKind, turnMessages } from "./core/case.js";
import { neighbour, formatScore, filterRows, trialStanding, trialToOpen, verdictStanding } from "./core/evals.js";
import { NotThere } from "./eval.js";
import { mediaOf, pathOf, rerun, rerunHeld, useEval, useEvalCase } from "./feed.js";
import { Mark } from "./marks.js";
import { rememberCell } from "./matrix.js";
import { SaveDialog, Source, useSaving } from "./saving.js";
import { ScoreTree } from "./scores.js";

/** @import { Eval } from "./core/evals.js" */
/** @import { Case, Message, Turn } from "./core/case.js" */
/** @import { Saving } from "./saving.js" */

/**
 * `filter` and `order` are those of the run's matrix: the way back, and which case is the next.
 * @param {{ id: string, name: string, target: string, trial: number, filter?: string, order?: string, key?: string }}
 *   props
 */
export function EvalCase({ id, name, target, trial, filter = "", order = "" }) {
  const { value: shown, trouble, again } = useEvalCase(id, name, target, trial);
  const { value: run } = useEval(id);
  const saving = useSaving(id, name, again);
  // Before the next key, which may already be the way back.
  useLayoutEffect(() => rememberCell(id, name, target), []);
  const among = { ...(filter && { filter }), ...(order && { order }) };
  const rows = useMemo(
    () => (run ? filterRows(run.matrix, filter, order === "suite" ? "suite" : "worst") : []),
    [run, filter, order],
  );
  const step = (/** @type {1 | -1} */ by) => {
    const next = neighbour(rows, name, target, by);
    if (next) go({ view: "eval-case", id, ...next, ...among });
    else toast(by > 0 ? "This is the last case." : "This is the first case.");
  };
  const to = (/** @type {string} */ other, /** @type {number} */ number) =>
    go({ view: "eval-case", id, case: name, target: other, trial: number, ...among });
  const back = { view: /** @type {const} */ ("eval"), id, ...among };
  const runAgain = async () => {
    const now = await rerun(id, [name], target);
    if (!now) return;
    if (now.run === id) return void toast(`${name} runs again on ${target}.`);
    toast("The suite was changed since: this is a run of its own.");
    go({ view: "eval-case", id: now.run, case: name, target, trial: 0 });
  };
  const editAgain = async () => {
    const now = await rerunHeld(id, name, target, toExchange);
    if (!now) return;
    const close = toast("Its request is held before it is sent.", {
      hint: "Edit and send it. The answer is graded, and the edit can be saved in the suite from the case.",
      action: {
        label: "Back to the case",
        run: () => {
          close();
          go({ view: "eval-case", id: now.run, case: name, target, trial: now.run === id ? trial : 0 });
        },
      },
    });
  };
  const exchange = shown ? exchangeOf(shown) : "";
  const ownCells = run?.matrix.find((each) => each.case === name)?.cells ?? [];
  const trials = ownCells.find((cell) => cell.target === target)?.trials ?? [];
  useShortcuts(
    "Case",
    [
      { keys: "escape", label: "Back to the run", run: () => go(back) },
      { keys: "n", also: ["]"], label: "Next case", run: () => step(1) },
      { keys: "p", also: ["["], label: "Case before", run: () => step(-1) },
      { keys: "r", label: "Run the case again", run: () => void runAgain() },
      { keys: "e", label: "Open the request in the editor", run: () => exchange && toExchange(exchange) },
      { keys: "w", label: "Exact wire", run: () => exchange && toExchange(exchange, "wire") },
      {
        keys: "E",
        label: "Edit the request and run the case again",
        run: () => exchange && canHold.value && void editAgain(),
      },
      {
        keys: "t",
        label: "Next target",
        run: () => {
          const cells = ownCells.filter((cell) => cell.trials.length);
          const next = cells[(cells.findIndex((cell) => cell.target === target) + 1) % cells.length];
          if (next) to(next.target, trialToOpen(next));
        },
      },
      {
        keys: "T",
        label: "Next try",
        run: () =>
          trials.length > 1 &&
          to(target, trials[(trials.findIndex((each) => each.trial === trial) + 1) % trials.length].trial),
      },
    ],
    [rows, shown, name, target, trial],
  );
  if (!shown) return h(NotThere, { trouble, again, what: "This case" });
  return html`<main class="runs-view case-view" aria-label="Case">
    ${h(Head, {
      shown,
      run,
      back: hashOf(back),
      onStep: step,
      onOpen: to,
      onRerun: () => void runAgain(),
      onEdit: () => void editAgain(),
    })}
    ${h(Stale, { trouble })}
    <div class="case-body">
      <div class="case-talk">
        ${h(Fault, { shown })}
        ${h(EditNote, { id, shown, saving })}
        ${shown.turns.length ? h(Turns, { id, shown }) : h(Talk, { id, shown })}
      </div>
      <aside class="case-side" aria-label="Grading">
        <section class="case-scores">
          <h2>Graders</h2>
          ${shown.reason && !shown.error ? html`<p class="soft">${shown.reason}</p>` : null}
          ${
            shown.scores.length || !shown.turns.some((turn) => turn.scores.length)
              ? h(ScoreTree, { scores: shown.scores, label: "Graders" })
              : html`<p class="soft">Each turn was graded by itself.</p>`
          }
        </section>
        ${h(Notes, { shown })}
        ${h(Wire, { shown })}
        ${h(Source, { run: id, shown, saving, onRerun: () => void runAgain() })}
      </aside>
    </div>
    ${h(SaveDialog, { saving })}
  </main>`;
}

/**
 * @param {{ shown: Case, run: Eval | null, back: string, onStep: (by: 1 | -1) => void, onOpen: (target: string, trial:
 *   number) => void, onRerun: () => void, onEdit: () => void }} props
 */
function Head({ shown, run, back, onStep, onOpen, onRerun, onEdit }) {
  const row = run?.matrix.find((each) => each.case === shown.case);
  const trials = row?.cells.find((cell) => cell.target === shown.target)?.trials ?? [];
  const exchange = exchangeOf(shown);
  const facts = [
    shown.model && shown.model !== shown.target ? shown.model : "",
    shown.usage?.input_tokens != null
      ? `${whole(shown.usage.input_tokens)} in, ${whole(shown.usage.output_tokens) || "?"} out`
      : "",
    shown.seconds != null ? duration(shown.seconds) : "",
    shown.cost ? money(shown.cost) : "",
    shown.cached ? "answer from the cache" : "",
  ].filter(Boolean);
  const standing = trialStanding({ status: shown.status, verdict: shown.verdict });
  return html`<header class="runs-head">
    <a class="button quiet icon" href=${back} aria-label="Back to the run" title="Back to the run (Esc)">
      ${h(Icon, { name: "back" })}
    </a>
    <div class="runs-title">
      <h1 class="cut" title=${shown.case}><bdi>${shown.case}</bdi></h1>
      <p class="soft cut">${[run?.name, ...facts].filter(Boolean).join(" · ")}</p>
    </div>
    ${h(Mark, { standing, isNamed: true })}
    ${shown.score === null ? null : html`<b class="case-score number">${formatScore(shown.score)}</b>`}
    <span class="case-steps">
      ${iconButton("up", "Case before", () => onStep(-1), { title: "Case before (p)" })}
      ${iconButton("down", "Next case", () => onStep(1), { title: "Next case (n)" })}
    </span>
    ${
      exchange &&
      html`<a
        class="button"
        href=${hashOf({ view: "request", id: exchange, tab: "sections" })}
        title="The request as it was sent, section by section (e)"
      >
        ${h(Icon, { name: "edit" })}
        <span class="wide-only">Open in the editor</span>
        <span class="narrow-only">Request</span>
      </a>`
    }
    ${
      exchange &&
      canHold.value &&
      button(html`<span class="wide-only">Edit and re-run</span> <span class="narrow-only">Edit</span>`, onEdit, {
        icon: "pause",
        title: "Run the case again, with its request held in the editor before it is sent (Shift E)",
      })
    }
    ${button("Re-run", onRerun, { icon: "replay", title: "Run the case again (r)" })}
    <div class="case-choices">
      ${
        row && row.cells.length > 1
          ? segmentControl({
              label: "Target",
              value: shown.target,
              choices: row.cells.map((cell) => ({
                value: cell.target,
                label: cell.target,
                isDisabled: !cell.trials.length,
              })),
              onChange: (target) => {
                const cell = row.cells.find((each) => each.target === target);
                if (cell) onOpen(target, trialToOpen(cell));
              },
            })
          : html`<span class="soft">${shown.target}</span>`
      }
      ${
        trials.length > 1
          ? segmentControl({
              label: "Try",
              value: shown.trial,
              choices: trials.map((trial) => ({
                value: trial.trial,
                name: `Try ${trial.trial + 1}: ${trialStanding(trial)}`,
                label: html`${trial.trial + 1} ${h(Mark, { standing: trialStanding(trial) })}`,
              })),
              onChange: (trial) => onOpen(shown.target, trial),
            })
          : null
      }
    </div>
  </header>`;
}

/** @param {{ shown: Case }} props */
function Fault({ shown }) {
  if (shown.status === "running" || shown.status === "waiting")
    return html`<p class="note" role="status">
      ${shown.status === "running" ? "It is running." : "It is waiting for its turn."}
    </p>`;
  if (!shown.error) return null;
  return html`<div class="fault" role="alert">
    ${h(Icon, { name: "warn" })}
    <div>
      <p>${shown.error_code ? html`<b>${shown.error_code}</b> ` : null}${shown.error}</p>
      <p class="soft">There is no answer, so this case does not count in the means.</p>
    </div>
  </div>`;
}

/**
 * A person changed a request of it: that is what was sent, and it can be what the suite says.
 * @param {{ id: string, shown: Case, saving: Saving }} props
 */
function EditNote({ id, shown, saving }) {
  if (!shown.is_edited) return null;
  const { case: name, target, trial, source_sha256: sha256 } = shown;
  const isWhole = !shown.turns.length && !shown.run;
  const adopt = () =>
    void saving.propose({
      words: `the input of ${name}`,
      write: (dry) => post(`${pathOf(id)}/case/adopt`, { case: name, target, trial, sha256, dry }),
    });
  return html`<p class="note" role="note">
    ${h(Icon, { name: "edit" })} A person changed the request on its way
    ${isWhole ? ": this is what was sent." : "; the wire has what was sent."} ${
      isWhole && shown.source ? button("Save the change in the suite…", adopt, { isDisabled: saving.isBusy }) : null
    }
  </p>`;
}

/** @param {{ id: string, shown: Case }} props */
function Talk({ id, shown }) {
  const from = mediaOf(id, shown);
  const [isFlat, setFlat] = useState(false);
  return html`<section aria-label="Messages as sent">
      <div class="case-part in-row">
        <h2>As sent</h2>
        <span class="faint number">${countOf(shown.messages.length, "message")}</span>
        <span class="shell-gap"></span>
        ${
          shown.question && shown.messages.length
            ? segmentControl({
                label: "Show",
                value: isFlat,
                choices: [
                  { value: false, label: "Messages" },
                  { value: true, label: "Flat" },
                ],
                onChange: setFlat,
              })
            : null
        }
      </div>
      ${
        isFlat || !shown.messages.length
          ? html`<pre class="plain-text flat-question boxed" dir="auto">${shown.question || "Nothing was sent."}</pre>`
          : shown.messages.map((message, index) => h(CaseMessage, { key: String(index), message, from }))
      }
    </section>
    ${
      !shown.answer.length && (shown.error || shown.verdict === null || shown.status === "skipped")
        ? null
        : html`<section aria-label="Answer">
            <div class="case-part in-row"><h2>Answer</h2></div>
            <div class="case-message boxed assistant is-answer">
              ${
                shown.answer.length
                  ? h(AnswerBody, { answer: { blocks: [...shown.answer], citations: [] }, isLive: false, files: from })
                  : html`<p class="faint">An empty answer.</p>`
              }
              ${h(Ending, { who: "It", finish: shown.finish })}
            </div>
          </section>`
    }
    ${h(Expectation, { shown })}`;
}

/** What the suite says about it. @param {{ shown: Case }} props */
function Expectation({ shown }) {
  if (!shown.expected.length && !shown.criteria) return null;
  return html`<section aria-label="Expected">
    <div class="case-part in-row"><h2>Expected</h2></div>
    ${shown.criteria ? html`<p class="case-criteria">${shown.criteria}</p>` : null}
    ${shown.expected.map((message, index) => h(CaseMessage, { key: String(index), message }))}
  </section>`;
}

/** `from` is where its pictures and files are. @param {{ message: Message, from?: string, key?: string }} props */
function CaseMessage({ message, from = "" }) {
  return html`<article class=${`case-message boxed ${message.role}`} aria-label=${message.role}>
    <h3>${message.role}${message.name ? html` <span class="soft">${message.name}</span>` : null}</h3>
    ${
      message.blocks.length
        ? h(AnswerBody, { answer: { blocks: [...message.blocks], citations: [] }, isLive: false, files: from })
        : html`<p class="faint">empty</p>`
    }
  </article>`;
}

/** A conversation that was held live: each turn with its own grading. @param {{ id: string, shown: Case }} props */
function Turns({ id, shown }) {
  return html`<section aria-label="Turns">
      <div class="case-part in-row"><h2>${countOf(shown.turns.length, "turn")}</h2></div>
      <ol class="case-turns">
        ${shown.turns.map((turn, index) =>
          h(TurnView, { key: String(index), turn, number: index + 1, from: mediaOf(id, shown, index) }),
        )}
      </ol>
    </section>
    ${h(Expectation, { shown })}`;
}

/** @param {{ turn: Turn, number: number, from: string, key?: string }} props */
function TurnView({ turn, number, from }) {
  const { before, own } = turnMessages(turn.messages);
  return html`<li class="case-turn stacked">
    <div class="case-part in-row">
      <h3>Turn ${number}</h3>
      ${h(Mark, { standing: verdictStanding(turn.verdict), isNamed: true })}
      ${turn.score === null ? null : html`<span class="number">${formatScore(turn.score)}</span>`}
      <span class="shell-gap"></span>
      ${turn.exchanges.map(
        (exchange) => html`<a key=${exchange} href=${hashOf({ view: "request", id: exchange, tab: "wire" })}>Wire</a>`,
      )}
    </div>
    ${
      before.length
        ? foldBlock(
            `${countOf(before.length, "message")} before`,
            html`<div class="fold-inside">
              ${before.map((message, index) => h(CaseMessage, { key: String(index), message, from }))}
            </div>`,
          )
        : null
    }
    ${own.map((message, index) => h(CaseMessage, { key: String(index), message, from }))}
    ${turn.error ? html`<p class="bad">${turn.error}</p>` : null}
    ${
      turn.answer.length
        ? html`<div class="case-message boxed assistant">
            <h3>assistant</h3>
            ${h(AnswerBody, { answer: { blocks: [...turn.answer], citations: [] }, isLive: false, files: from })}
          </div>`
        : null
    }
    ${turn.reason ? html`<p class="soft">${turn.reason}</p>` : null}
    ${turn.scores.length ? h(ScoreTree, { scores: turn.scores, label: `Graders of turn ${number}` }) : null}
  </li>`;
}

/** @param {{ shown: Case }} props */
function Notes({ shown }) {
  if (!shown.notes_trouble && !shown.notes.length) return null;
  return html`<section class="case-notes" aria-label="What delivery changed">
    <h2>What delivery changed</h2>
    ${shown.notes_trouble && html`<p class="soft">It is no longer known: ${shown.notes_trouble}</p>`}
    <ul>
      ${shown.notes.map(
        (note, index) => html`<li key=${index}>
          <span class="chip">${noteKind(note)}</span> ${note.what}
          ${note.why ? html` <span class="soft">${note.why}</span>` : null}
        </li>`,
      )}
    </ul>
  </section>`;
}

/** @param {{ shown: Case }} props */
function Wire({ shown }) {
  if (!shown.exchanges.length && !shown.run && !shown.body_sha256) return null;
  return html`<section class="case-wire" aria-label="On record">
    <h2>On record</h2>
    <ul>
      ${shown.exchanges.map(
        (exchange, index) => html`<li key=${exchange} class="in-row">
          <a href=${hashOf({ view: "request", id: exchange, tab: "wire" })}>
            Exact wire${shown.exchanges.length > 1 ? ` ${index + 1}` : ""}
          </a> <a href=${hashOf({ view: "request", id: exchange, tab: "reply" })}>Reply</a> <code class="faint cut">
            ${exchange}
          </code>
        </li>`,
      )}
      ${
        shown.run &&
        html`<li class="in-row"><a href=${hashOf({ view: "run", id: shown.run })}>Trace of the tool run</a></li>`
      }
      ${
        shown.body_sha256 &&
        html`<li class="case-hash in-row">
          <span class="soft">SHA-256 of the body</span> <code class="cut" title=${shown.body_sha256}>
            ${shown.body_sha256.slice(0, 16)}
          </code>
          ${h(CopyButton, { text: shown.body_sha256, label: "Copy SHA-256" })}
        </li>`
      }
    </ul>
  </section>`;
}
