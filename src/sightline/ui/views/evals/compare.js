// @ts-check
/**
 * Two runs, or two targets, on the same cases: the difference with its interval, both distributions, and case by case.
 */

import { button } from "../../kit/button.js";
import { countOf, when } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { checkbox, selectField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { go } from "../../kit/navigation.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";
import { percent, formatScore, formatDifference } from "./core/evals.js";
import { bins, formatChance, casesByChange, differenceRange, scoreRange } from "./core/plot.js";
import { NotThere } from "./eval.js";
import { useComparison, useEval } from "./feed.js";
import { Axis, DifferenceBar, DifferencePlot, Histogram } from "./plots.js";

/** @import { ComparedCase } from "../../api-types.d.ts" */
/** @import { Comparison } from "./core/plot.js" */
/** @import { Eval } from "./core/evals.js" */

const PAGE = 200;

/** @param {{ a: string, b: string, targetA?: string, targetB?: string, key?: string }} props */
export function CompareEvals({ a, b, targetA = "", targetB = "" }) {
  const one = useEval(a);
  const other = useEval(b);
  const [first, second] = [one.value, other.value];
  // A run with several targets needs a choice; the first of each is the default.
  const chosenA = targetA || first?.targets[0] || "";
  const chosenB = targetB || pickTarget(chosenA, second) || "";
  useShortcuts(
    "Compare evals",
    [{ keys: "escape", label: "Back", run: () => go(a === b ? { view: "eval", id: a } : { view: "evals" }) }],
    [a, b],
  );
  if (!first || !second)
    return h(NotThere, {
      trouble: one.trouble ?? other.trouble,
      again: () => (one.again(), other.again()),
      what: "One of these runs",
    });
  return h(ComparisonView, { key: `${chosenA} ${chosenB}`, first, second, targetA: chosenA, targetB: chosenB });
}

/** @param {string} target @param {Eval | null} run */
function pickTarget(target, run) {
  return run?.targets.includes(target) ? target : run?.targets[0];
}

/** @param {{ first: Eval, second: Eval, targetA: string, targetB: string, key?: string }} props */
function ComparisonView({ first, second, targetA, targetB }) {
  const { value: comparison, trouble, again } = useComparison(first.run, second.run, targetA, targetB);
  if (!comparison) return h(NotThere, { trouble, again, what: "This comparison" });
  return html`<main class="runs-view" aria-label="Two evals compared">
    ${h(Head, { first, second, targetA, targetB })}
    <div class="runs-body">
      ${h(Verdict, { comparison })}
      ${h(Distributions, { comparison, names: namesOf(first, second, targetA, targetB) })}
      ${h(Cases, { comparison, first, second, targetA, targetB })}
    </div>
  </main>`;
}

/**
 * What the two sides are called: what tells them apart.
 * @param {Eval} first
 * @param {Eval} second
 * @param {string} targetA
 * @param {string} targetB
 * @returns {[string, string]}
 */
function namesOf(first, second, targetA, targetB) {
  const now = Date.now() / 1000;
  if (first.run === second.run) return [`A: ${targetA}`, `B: ${targetB}`];
  return [`A: ${targetA}, ${when(first.at, now)}`, `B: ${targetB}, ${when(second.at, now)}`];
}

/** @param {{ first: Eval, second: Eval, targetA: string, targetB: string }} props */
function Head({ first, second, targetA, targetB }) {
  const to = (/** @type {string} */ one, /** @type {string} */ other) =>
    go({ view: "eval-compare", a: first.run, b: second.run, targetA: one, targetB: other }, { isReplacing: true });
  const swap = () => go({ view: "eval-compare", a: second.run, b: first.run, targetA: targetB, targetB: targetA });
  useShortcuts(
    "Compare evals",
    [{ keys: "s", label: "Swap the two sides", run: swap }],
    [first.run, second.run, targetA, targetB],
  );
  const isOne = first.run === second.run;
  return html`<header class="runs-head">
    <a
      class="button quiet icon"
      href=${isOne ? hashOf({ view: "eval", id: first.run }) : "#/evals"}
      aria-label=${isOne ? "Back to the run" : "All evals"}
      title=${isOne ? "Back to the run (Esc)" : "All evals (Esc)"}
    >
      ${h(Icon, { name: "back" })}
    </a>
    <h1>${isOne ? "Two targets" : "Two evals"}</h1>
    <span class="shell-gap"></span>
    ${button("Swap", swap, { icon: "swap", title: "Swap A and B (s)" })}
    <div class="compare-sides">
      ${h(Side, { letter: "a", run: first, target: targetA, onTarget: (target) => to(target, targetB) })}
      ${h(Side, { letter: "b", run: second, target: targetB, onTarget: (target) => to(targetA, target) })}
    </div>
  </header>`;
}

/** @param {{ letter: "a" | "b", run: Eval, target: string, onTarget: (target: string) => void }} props */
function Side({ letter, run, target, onTarget }) {
  const name = letter.toUpperCase();
  return html`<div class="compare-side in-row">
    <span class=${`side-mark ${letter}`} aria-hidden="true"></span>
    <b>${name}</b>
    <a class="cut" href=${hashOf({ view: "eval", id: run.run })}>${run.name || run.run}</a>
    <span class="soft number">${when(run.at, Date.now() / 1000)}</span>
    ${
      run.targets.length > 1
        ? selectField(target, onTarget, run.targets, { label: `Target of ${name}` })
        : html`<span class="soft cut">${target}</span>`
    }
  </div>`;
}

/** @param {string} name @param {any} value */
const fact = (name, value) => html`<div><dt>${name}</dt><dd class="number">${value}</dd></div>`;

/** @param {{ comparison: Comparison }} props */
function Verdict({ comparison }) {
  const { passing } = comparison;
  const { difference, low, high } = comparison;
  const lines = [
    ...(difference === null
      ? []
      : [{ name: "mean score", what: "Difference of the mean scores", difference, low, high }]),
    ...(passing ? [{ ...passing, name: "share passed", what: "Difference of the shares that passed" }] : []),
  ];
  const range = differenceRange([low, high, difference, passing?.low, passing?.high, passing?.difference]);
  return html`<section class="compare-verdict stacked boxed" aria-label="Difference">
    ${comparison.said.length ? html`<p class="compare-sentence">${comparison.said[0]}</p>` : null}
    <div class="compare-numbers stacked">
      <dl class="spendings">
        ${fact("mean A", formatScore(comparison.mean_a) || "–")}
        ${fact("mean B", formatScore(comparison.mean_b) || "–")}
        ${fact(
          "difference",
          html`<b>${formatDifference(difference) || "–"}</b>
            ${
              low !== null &&
              high !== null &&
              html`<span class="soft"> (${formatDifference(low)} to ${formatDifference(high)})</span>`
            }`,
        )}
        ${fact("B better / worse / same", `${comparison.wins} / ${comparison.losses} / ${comparison.ties}`)}
        ${comparison.p === null ? null : fact(comparison.test, formatChance(comparison.p))}
        ${
          passing &&
          fact(
            "passes",
            html`${formatDifference(passing.difference)}
              <span class="soft">, ${passing.wins} more, ${passing.losses} fewer, ${formatChance(passing.p)}</span>`,
          )
        }
      </dl>
      ${
        comparison.difference === null
          ? html`<p class="soft">No case has a score on both sides.</p>`
          : h(DifferencePlot, { lines, level: comparison.level, range, better: "B is better", worse: "A is better" })
      }
      <p class="faint">
        The mean differences over ${countOf(comparison.cases.length, "case")} that both have
        ${comparison.low === null ? "" : `, each with its ${percent(comparison.level)} interval`}
        . An interval that holds 0 means that the data cannot tell.
      </p>
    </div>
    ${
      comparison.said.length > 1 &&
      html`<ul class="eval-said soft">
        ${comparison.said.slice(1).map((sentence, index) => html`<li key=${index}>${sentence}</li>`)}
      </ul>`
    }
  </section>`;
}

/** @param {{ comparison: Comparison, names: [string, string] }} props */
function Distributions({ comparison, names }) {
  const { a, b } = comparison.distributions;
  const range = scoreRange([...a, ...b]);
  const most = Math.max(...bins(a, range).map((bin) => bin.count), ...bins(b, range).map((bin) => bin.count), 1);
  if (!a.length && !b.length) return null;
  return html`<section class="compare-distributions stacked boxed" aria-label="Scores">
    <h2>Scores of both</h2>
    ${h(Histogram, { name: names[0], side: "a", scores: a, most, range })}
    ${h(Histogram, { name: names[1], side: "b", scores: b, most, range })}
    ${h(Axis, { range, count: 5 })}
    <p class="faint">How many cases have which score, by tenths; the dashed line is the mean.</p>
    ${h(AsTable, { a, b, range })}
  </section>`;
}

/**
 * The same as numbers.
 * @param {{ a: readonly number[], b: readonly number[], range: import("./core/plot.js").Range }} props
 */
function AsTable({ a, b, range }) {
  const [left, right] = [bins(a, range), bins(b, range)];
  return html`<details class="as-table">
    <summary class="soft">As a table</summary>
    <table class="compare-summary">
      <thead><tr><th scope="col">Score</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
      <tbody>
        ${left.map(
          (bin, place) => html`<tr key=${place}>
            <th scope="row" class="number">${formatScore(bin.low)} to ${formatScore(bin.high)}</th>
            <td class="number">${bin.count}</td>
            <td class="number">${right[place].count}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </details>`;
}

/** @param {{ comparison: Comparison, first: Eval, second: Eval, targetA: string, targetB: string }} props */
function Cases({ comparison, first, second, targetA, targetB }) {
  const [isAll, setAll] = useState(false);
  const [most, setMost] = useState(PAGE);
  const rows = useMemo(() => casesByChange(comparison.cases, isAll), [comparison.cases, isAll]);
  const range = differenceRange(comparison.cases.map((each) => each.difference));
  const same = comparison.cases.length - casesByChange(comparison.cases, false).length;
  return html`<section class="compare-cases stacked" aria-label="Case by case">
    <div class="case-part in-row">
      <h2>Case by case</h2>
      <span class="shell-gap"></span>
      ${same ? checkbox(`Also the ${same} with the same score`, isAll, setAll) : null}
    </div>
    ${
      rows.length
        ? html`<table class="run-table compared-cases">
              <thead>
                <tr>
                  <th scope="col">Case</th>
                  <th scope="col">A</th>
                  <th scope="col">B</th>
                  <th scope="col">Difference</th>
                  <th scope="col" class="wide-cell plot-cell"><span class="unseen">Drawn</span></th>
                  <th scope="col" class="wide-cell">What else</th>
                </tr>
              </thead>
              <tbody>
                ${rows.slice(0, most).map((each) =>
                  h(CaseLine, {
                    key: each.case,
                    each,
                    range,
                    links: [
                      hashOf({ view: "eval-case", id: first.run, case: each.case, target: targetA, trial: 0 }),
                      hashOf({ view: "eval-case", id: second.run, case: each.case, target: targetB, trial: 0 }),
                    ],
                  }),
                )}
              </tbody>
            </table>
            ${
              rows.length > most &&
              html`<p class="run-more">
                ${button("Show more", () => setMost(most + 5 * PAGE))}
              </p>`
            }`
        : html`<p class="soft">All cases have the same score.</p>`
    }
    ${h(Only, { letter: "A", cases: comparison.only_a })}
    ${h(Only, { letter: "B", cases: comparison.only_b })}
    ${
      comparison.unpaired.length
        ? html`<p class="soft">
            One side could not grade: ${comparison.unpaired.slice(0, 20).join(", ")}
            ${comparison.unpaired.length > 20 ? ", …" : ""}.
          </p>`
        : null
    }
  </section>`;
}

/**
 * @param {{ each: ComparedCase, range: import("./core/plot.js").Range, links: [string, string], key?: string }} props
 */
function CaseLine({ each, range, links }) {
  const notes = [
    each.flip === "now_passes" ? "B passes" : each.flip === "now_fails" ? "B fails" : "",
    each.is_same_request === false ? "another request" : "",
    each.is_same_answer ? "same answer" : "",
  ].filter(Boolean);
  const { difference } = each;
  return html`<tr class="run-row">
    <th scope="row" class="case-name wraps">${each.case}</th>
    <td class="number">
      <a href=${links[0]} aria-label=${`A: ${each.case}, ${formatScore(each.a)}`}>${formatScore(each.a)}</a>
    </td>
    <td class="number">
      <a href=${links[1]} aria-label=${`B: ${each.case}, ${formatScore(each.b)}`}>${formatScore(each.b)}</a>
    </td>
    <td class=${`number ${difference < 0 ? "bad" : difference > 0 ? "good" : ""}`}>
      ${formatDifference(each.difference)}
    </td>
    <td class="wide-cell plot-cell">${h(DifferenceBar, { difference, range })}</td>
    <td class="wide-cell soft">${notes.join(", ")}</td>
  </tr>`;
}

/** @param {{ letter: string, cases: readonly string[] }} props */
function Only({ letter, cases }) {
  if (!cases.length) return null;
  return html`<p class="soft">
    Only in ${letter}: ${cases.slice(0, 20).join(", ")}
    ${cases.length > 20 ? `, and ${cases.length - 20} more` : ""}.
  </p>`;
}
