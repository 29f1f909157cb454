// @ts-check
/** A run from its first request to its end: its rounds on one time line, and its totals. */

import { linkButton } from "../../kit/button.js";
import { countOf, duration, when } from "../../kit/core/format.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { go } from "../../kit/navigation.js";
import { NotOnRecord, Stale } from "../../kit/notices.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";
import { RunControls } from "./approval.js";
import { describeLimit, spans, spendings, stateWords, toneOf } from "./core/runs.js";
import { useRun } from "./feed.js";
import { RoundView } from "./round.js";

/** @import { Run } from "./core/runs.js" */

/** @param {{ id: string, key?: string }} props */
export function Trace({ id }) {
  const { run, trouble, again } = useRun(id);
  useShortcuts("Run", [{ keys: "escape", label: "Back to the runs", run: () => go({ view: "runs" }) }], []);
  if (!run && trouble)
    return h(NotOnRecord, {
      trouble,
      what: "This run",
      again,
      way: html`<a class="button" href="#/runs">All runs</a>`,
    });
  if (!run) return html`<main class="runs-view is-empty"><p class="faint pad" role="status">Loading…</p></main>`;
  return html`<main class="runs-view" aria-label="Run">
    ${h(Head, { run })}
    ${h(Stale, { trouble })}
    <div class="runs-body">
      ${run.state === "ended" ? null : h(RunControls, { run, hasLink: false })}
      ${h(Rounds, { key: run.id, run })}
      ${run.state === "ended" && run.reached ? html`<p class="note wraps">${describeLimit(run.reached)}</p>` : null}
      ${(run.notes ?? []).map((note, index) => html`<p key=${index} class="note wraps">${note}</p>`)}
      ${h(Amendments, { run })}
    </div>
  </main>`;
}

/** @param {{ run: Run }} props */
function Head({ run }) {
  return html`<header class="runs-head">
    <a class="button quiet icon" href="#/runs" aria-label="All runs" title="All runs">${h(Icon, { name: "back" })}</a>
    <div class="runs-title">
      <h1 class="cut">${run.title || `Run ${run.id}`}</h1>
      <p class="soft cut">
        ${[run.model, run.at ? when(run.at, Date.now() / 1000) : "", run.id].filter(Boolean).join(" · ")}
      </p>
    </div>
    <span class=${`run-state ${run.state} ${toneOf(run)}`} role="status">${stateWords(run)}</span>
    <a class="button" href=${`#/runs?compare=${encodeURIComponent(run.id)}`}>
      ${h(Icon, { name: "columns" })}Compare…
    </a>
    <dl class="spendings">
      ${spendings(run).map(
        ({ name, label, spent, limit, share }) => html`<div key=${name}>
          <dt>${label}</dt>
          <dd class="number">${spent}${limit ? html`<span class="faint"> / ${limit}</span>` : null}</dd>
          ${
            share === null
              ? null
              : html`<i class=${share >= 1 ? "spend-bar full" : "spend-bar"} aria-hidden="true">
                  <b style=${{ width: `${share * 100}%` }}></b>
                </i>`
          }
        </div>`,
      )}
    </dl>
  </header>`;
}

/** @param {{ run: Run, key?: string }} props */
function Rounds({ run }) {
  const { rounds } = run;
  const last = rounds.at(-1)?.number ?? 0;
  const isLive = run.state === "running";
  /** What a person folded or unfolded stays so; else the newest is open. */
  const [chosen, setChosen] = useState(/** @type {Record<number, boolean>} */ ({}));
  const isOpen = (/** @type {number} */ number) => chosen[number] ?? (number === last || rounds.length <= 3);
  const laid = spans(rounds);
  const total = laid.reduce((sum, span) => sum + span.seconds, 0);
  const [isAll, setAll] = useState(false);
  useEffect(() => {
    if (isAll) setChosen(Object.fromEntries(rounds.map((round) => [round.number, true])));
  }, [isAll, rounds.length]);
  if (!rounds.length)
    return html`<p class="empty-rounds soft" role="status">
      ${isLive ? "Waiting for the first reply…" : "No round was completed."}
    </p>`;
  return html`<section class="rounds" aria-label="Rounds">
    <div class="rounds-legend in-row">
      <h2>${countOf(rounds.length, "round")}</h2>
      <span class="legend-key"><i class="track model"></i>model</span>
      <span class="legend-key"><i class="track tools"></i>tools</span>
      <span class="faint number">${total ? duration(total) : ""}</span>
      <span class="shell-gap"></span>
      ${linkButton(isAll ? "Fold all" : "Unfold all", () => {
        setAll(!isAll);
        if (isAll) setChosen(Object.fromEntries(rounds.map((round) => [round.number, false])));
      })}
    </div>
    <ol>
      ${rounds.map((round, index) =>
        h(RoundView, {
          key: String(round.number),
          round,
          isLive: isLive && round.number === last && !round.finish,
          isOpen: isOpen(round.number),
          span: laid[index] ?? null,
          onToggle: () => setChosen({ ...chosen, [round.number]: !isOpen(round.number) }),
        }),
      )}
    </ol>
    ${isLive ? html`<p class="soft pulse rounds-live" role="status">running…</p>` : null}
  </section>`;
}

/** What the loop had to change so that a provider takes the history. @param {{ run: Run }} props */
function Amendments({ run }) {
  const listed = run.amendments ?? [];
  if (!listed.length) return null;
  return html`<section class="amendments" aria-label="Changes to the history">
    <h2>Changed so that the history stays valid</h2>
    <ul>
      ${listed.map(
        (each, index) => html`<li key=${index}>
          ${each.what}
          ${each.why ? html` <span class="soft">${each.why}</span>` : null}
        </li>`,
      )}
    </ul>
  </section>`;
}
