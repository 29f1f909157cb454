// @ts-check
/** The summary of a run, target by target, with the intervals of the means drawn. */

import { foldBlock } from "../../kit/fold-block.js";
import { h, html } from "../../vendor/preact.js";
import { gradersOf, describeLeftOut, percent, formatScore, describeSpending } from "./core/evals.js";
import { scoreRange } from "./core/plot.js";
import { Axis, IntervalPlot } from "./plots.js";

/** @import { Eval, GraderLine, TargetLine } from "./core/evals.js" */

/** @param {{ run: Eval }} props */
export function Summary({ run }) {
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

/** @param {{ line: TargetLine, range: import("./core/plot.js").Range, key?: string }} props */
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
