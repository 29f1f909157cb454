// @ts-check
/** One run of evals: its summary, and every case on every target. */

import { button } from "../../kit/button.js";
import { countOf, when } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { foldBlock } from "../../kit/fold-block.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { go } from "../../kit/navigation.js";
import { NotOnRecord, Stale } from "../../kit/notices.js";
import { toast } from "../../kit/toast.js";
import { h, html, useState } from "../../vendor/preact.js";
import {
  describeLeftOut,
  describeSpending,
  evalTone,
  evalWords,
  formatScore,
  gradersOf,
  percent,
  standingCounts,
} from "./core/evals.js";
import { scoreRange } from "./core/plot.js";
import { rerun, stopEval, useEval } from "./feed.js";
import { Matrix } from "./matrix.js";
import { Axis, IntervalPlot } from "./plots.js";

/** @import { Eval, GraderLine, TargetLine } from "./core/evals.js" */
/** @import { Range } from "./core/plot.js" */

/** @param {{ id: string, filter?: string, order?: string, key?: string }} props */
export function EvalView({ id, filter = "", order = "" }) {
  const { value: run, trouble, again } = useEval(id);
  useShortcuts(
    "Eval",
    [
      {
        keys: "escape",
        label: "Back to the evals",
        run: () =>
          filter ? go({ view: "eval", id, ...(order && { order }) }, { isReplacing: true }) : go({ view: "evals" }),
      },
    ],
    [filter, order],
  );
  if (!run) return h(NotThere, { trouble, again, what: "This run" });
  return html`<main class="runs-view eval-view" aria-label="Eval">
    ${h(Head, { run })}
    ${h(Stale, { trouble })}
    <div class="runs-body">
      ${h(Progress, { run })}
      ${h(Summary, { run })}
      ${h(Matrix, { run, filter, order: order === "suite" ? "suite" : "worst" })}
    </div>
  </main>`;
}

/**
 * What is shown while something is not.
 * @param {{ trouble: { message: string, hint?: string, status?: number } | null, again: () => void, what: string }}
 *   props
 */
export function NotThere({ trouble, again, what }) {
  if (!trouble)
    return html`<main class="runs-view is-empty">
      <div class="empty"><p class="faint" role="status">Loading…</p></div>
    </main>`;
  return h(NotOnRecord, { trouble, what, again, way: html`<a class="button" href="#/evals">All evals</a>` });
}

/** @param {{ run: Eval }} props */
function Head({ run }) {
  const [isBusy, setBusy] = useState(false);
  const counts = standingCounts(run.matrix);
  const bad = counts.failed + counts.error + counts["not graded"];
  const doing = async (/** @type {() => Promise<Eval | null>} */ what, /** @type {string} */ message) => {
    setBusy(true);
    const now = await what();
    if (now && now.run !== run.run) {
      toast("The suite was changed since: this is a run of its own.");
      go({ view: "eval", id: now.run });
    } else if (now) toast(message);
    setBusy(false);
  };
  const isStoppable = run.state === "running" && run.is_here;
  const isRerunnable = run.state !== "running" && bad > 0;
  const stop = () => void doing(() => stopEval(run.run), "What is under way is finished first.");
  const again = () => void doing(() => rerun(run.run, null), "What did not pass runs again.");
  const targets = {
    view: /** @type {const} */ ("eval-compare"),
    a: run.run,
    b: run.run,
    targetA: run.targets[0],
    targetB: run.targets[1],
  };
  const other = { view: /** @type {const} */ ("evals"), suite: run.suite, compare: run.run };
  useShortcuts(
    "Eval",
    [
      ...(isStoppable ? [{ keys: "S", label: "Stop the run", run: stop }] : []),
      ...(isRerunnable ? [{ keys: "R", label: "Run again what did not pass", run: again }] : []),
      ...(run.suite
        ? [{ keys: "t", label: "Trend of its suite", run: () => go({ view: "eval-trend", suite: run.suite }) }]
        : []),
      ...(run.targets.length > 1 ? [{ keys: "m", label: "Compare its targets", run: () => go(targets) }] : []),
      { keys: "c", label: "Compare with another run", run: () => go(other) },
    ],
    [run, isBusy],
  );
  return html`<header class="runs-head">
    <a class="button quiet icon" href="#/evals" aria-label="All evals" title="All evals">
      ${h(Icon, { name: "back" })}
    </a>
    <div class="runs-title">
      <h1 class="cut">${run.name || run.suite || run.run}</h1>
      <p class="soft cut">
        ${[
          run.suite !== run.name ? run.suite : "",
          countOf(run.cases, "case"),
          when(run.at, Date.now() / 1000),
          run.run,
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
    </div>
    <span class=${`run-state ${run.state} ${evalTone(run) === "good" ? "good" : ""}`} role="status">
      ${evalWords(run)}
    </span>
    ${
      isStoppable &&
      button("Stop", stop, {
        icon: "stop",
        title: "What is under way is finished; the rest can be resumed (Shift S)",
        isDisabled: isBusy,
      })
    }
    ${
      isRerunnable &&
      button(html`Re-run ${bad} <span class="wide-only">that did not pass</span>`, again, {
        icon: "replay",
        title: "What failed, had an error or could not be graded (Shift R)",
        isDisabled: isBusy,
      })
    }
    ${
      run.suite &&
      html`<a
        class="button"
        href=${hashOf({ view: "eval-trend", suite: run.suite })}
        title="Its suite over all runs (t)"
      >
        ${h(Icon, { name: "gauge" })}Trend
      </a>`
    }
    ${
      run.targets.length > 1 &&
      html`<a class="button" href=${hashOf(targets)} title="One target of this run with another (m)">
        ${h(Icon, { name: "columns" })}
        <span class="wide-only">Compare targets</span>
        <span class="narrow-only">Targets</span>
      </a>`
    }
    <a class="button" href=${hashOf(other)} title="This run with another (c)">
      ${h(Icon, { name: "columns" })}Compare…
    </a>
  </header>`;
}

/** How far it is, while it runs or where it was left. @param {{ run: Eval }} props */
function Progress({ run }) {
  if (run.state === "ended") return null;
  const { of } = run;
  const counts = standingCounts(run.matrix);
  const facts = [
    counts.passed ? `${counts.passed} passed` : "",
    counts.failed ? `${counts.failed} failed` : "",
    counts.error ? countOf(counts.error, "error") : "",
    counts["not graded"] ? `${counts["not graded"]} not graded` : "",
  ]
    .filter(Boolean)
    .join(", ");
  return html`<div class="eval-progress">
    <div
      class="progress-track"
      role="progressbar"
      aria-label="Progress"
      aria-valuemin="0"
      aria-valuemax=${of}
      aria-valuenow=${run.done}
      aria-valuetext=${`${run.done} of ${of}`}
    >
      <b style=${{ width: `${of ? (run.done / of) * 100 : 0}%` }}></b>
    </div>
    <p class="soft number">
      <b>${run.done}</b> of ${of}
      ${facts ? ` · ${facts}` : ""}
      ${run.state === "running" ? "" : html` · resume it with <code>sightline eval run --resume ${run.run}</code>`}
    </p>
  </div>`;
}

/** The summary target by target, with the intervals of the means drawn. @param {{ run: Eval }} props */
function Summary({ run }) {
  if (!run.summary.length)
    return html`<p class="soft pad" role="status">
      ${run.state === "running" ? "Waiting for the first answers…" : "No case was answered."}
    </p>`;
  const range = scoreRange(run.summary.flatMap((line) => [line.low, line.high, line.mean]));
  return html`<section class="eval-summary stacked" aria-label="Summary">
    <table class="eval-totals">
      <thead>
        <tr>
          <th scope="col">Target</th>
          <th scope="col">Passed</th>
          <th scope="col">Mean ± error</th>
          <th scope="col" class="plot-cell">95 % interval</th>
          <th scope="col" class="wide-cell">Took</th>
        </tr>
      </thead>
      <tbody>
        ${run.summary.map((line) => h(Total, { key: line.target, line, range }))}
        <tr class="axis-row" aria-hidden="true">
          <td colspan="3"></td>
          <td class="plot-cell">${h(Axis, { range })}</td>
          <td class="wide-cell"></td>
        </tr>
      </tbody>
    </table>
    ${h(Sentences, { run })}
    ${run.graders.length ? h(Graders, { graders: run.graders, targets: run.targets }) : null}
  </section>`;
}

/** @param {{ line: TargetLine, range: Range, key?: string }} props */
function Total({ line, range }) {
  const within =
    line.pass_low !== null && line.pass_high !== null
      ? `Between ${percent(line.pass_low)} and ${percent(line.pass_high)}, as far as these cases can tell`
      : null;
  return html`<tr>
    <th scope="row" class="eval-target">${line.target}</th>
    <td class="number" title=${within}>
      ${
        line.pass_rate === null
          ? html`<span class="faint">–</span>`
          : html`<b>${percent(line.pass_rate)}</b> <span class="faint wide-inline">
                ${line.passed} of ${line.passed + line.failed}
              </span>`
      }
      ${describeLeftOut(line) ? html`<span class="bad eval-left">${describeLeftOut(line)}</span>` : null}
    </td>
    <td class="number">
      ${
        line.mean === null
          ? html`<span class="faint">no score</span>`
          : html`${formatScore(line.mean)}
              ${line.stderr === null ? null : html`<span class="soft"> ± ${formatScore(line.stderr)}</span>`}`
      }
    </td>
    <td class="plot-cell">
      ${h(IntervalPlot, {
        what: `Mean score of ${line.target}`,
        mean: line.mean,
        low: line.low,
        high: line.high,
        range,
      })}
    </td>
    <td class="wide-cell number soft">${describeSpending(line)}</td>
  </tr>`;
}

/** What the numbers mean; each sentence names its target where there are several. @param {{ run: Eval }} props */
function Sentences({ run }) {
  const notes = run.summary.flatMap((line) =>
    line.said.map((sentence) => (run.summary.length > 1 ? `${line.target}: ${sentence}` : sentence)),
  );
  if (!notes.length) return null;
  return foldBlock(
    "In words",
    html`<ul class="fold-inside eval-said">
      ${notes.map((sentence, index) => html`<li key=${index}>${sentence}</li>`)}
    </ul>`,
    { aside: html`<span class="faint cut fold-summary">${notes[0]}</span>` },
  );
}

/** @param {{ graders: readonly GraderLine[], targets: readonly string[] }} props */
function Graders({ graders, targets }) {
  const rows = gradersOf(graders);
  const cell = (/** @type {GraderLine | undefined} */ line) =>
    line
      ? html`${line.mean === null ? html`<span class="faint">no score</span>` : formatScore(line.mean)}${" "}
          <span class="faint">${line.passes} of ${line.n}</span>
          ${line.not_graded ? html` <span class="bad">${line.not_graded} not graded</span>` : null}`
      : "";
  return foldBlock(
    "Graders",
    html`<div class="fold-inside matrix-overflow">
      <table>
        <thead>
          <tr>
            <th scope="col">Mean of</th>
            ${targets.map((target) => html`<th key=${target} scope="col">${target}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ({ name, lines }) => html`<tr key=${name}>
              <th scope="row">${name}</th>
              ${targets.map((target) => html`<td key=${target} class="number">${cell(lines.get(target))}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`,
    {
      kind: "eval-graders",
      aside: html`<span class="faint cut fold-summary">${rows.map(({ name }) => name).join(" · ")}</span>`,
    },
  );
}
