// @ts-check
/** The list of eval runs, the newest first. */

import { about } from "../../kit/about.js";
import { button } from "../../kit/button.js";
import { CopyBlock } from "../../kit/copy.js";
import { stamp, when } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { selectField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { useChosenPair } from "../../kit/chosen-pair.js";
import { go } from "../../kit/navigation.js";
import { Unloaded } from "../../kit/notices.js";
import { h, html, useState } from "../../vendor/preact.js";
import { evalTone, evalWords, describeLeftOut, runCost, suitesOf } from "./core/evals.js";
import { scoreRange } from "./core/plot.js";
import { useEvals } from "./feed.js";
import { Rates } from "./marks.js";
import { IntervalPlot } from "./plots.js";
import { SuitesDialog } from "./suites.js";

/** @import { EvalBrief } from "../../api-types.d.ts" */

const PAGE = 50;

/** Where the keyboard was: who comes back from a run is there again. */
let lastAt = { suite: "", at: 0 };

/** `compare` is a run that the next chosen one is compared with. @param {{ suite?: string, compare?: string }} props */
export function Evals({ suite = "", compare = "" }) {
  const [limit, setLimit] = useState(PAGE);
  /** The dialog of the suites, if it is open: for the first one, or with the list. */
  const [suites, setSuites] = useState(/** @type {boolean | null} */ (null));
  const { value: runs, trouble, again } = useEvals(suite, limit);
  const onCompare = (/** @type {readonly string[]} */ two) => {
    const [a, b] = inOrder(two, runs ?? []);
    go({ view: "eval-compare", a, b });
  };
  const { chosen, at, toggle } = useChosenPair({
    ids: (runs ?? []).map((run) => run.run),
    at: lastAt.suite === suite ? lastAt.at : 0,
    compare,
    group: "Evals",
    onOpen: (id) => go({ view: "eval", id }),
    onCompare,
    more: [
      { keys: "s", label: "Suites: write one, run one", run: () => setSuites(false) },
      {
        keys: "t",
        label: "Trend of the run's suite",
        run: () => runs?.[lastAt.at]?.suite && go({ view: "eval-trend", suite: runs[lastAt.at].suite }),
      },
    ],
  });
  lastAt = { suite, at };
  const hasRows = (runs?.length ?? 0) > 0;
  return html`<main class=${hasRows || suite ? "runs-view" : "runs-view is-empty"} aria-label="Evals">
    ${
      (hasRows || suite) &&
      h(Head, {
        runs: runs ?? [],
        suite,
        chosen,
        onCompare: () => onCompare(chosen),
        onSuites: () => setSuites(false),
      })
    }
    ${
      trouble &&
      !runs &&
      h(Unloaded, {
        title: "Evals could not be loaded",
        lines: [trouble.message, trouble.hint],
        ways: button("Try again", again),
      })
    }
    ${!runs && !trouble ? html`<p class="faint pad" role="status">Loading…</p>` : null}
    ${
      runs?.length === 0
        ? suite
          ? html`<div class="empty">
              <h1>No runs of this suite</h1>
              <p class="soft"><code>${suite}</code></p>
              <p class="empty-actions"><a class="button" href="#/evals">All runs</a></p>
            </div>`
          : h(NothingYet, { onSuites: setSuites })
        : null
    }
    ${
      hasRows &&
      html`<div class="runs-body eval-list">
        <table class="run-table eval-table">
          <thead>
            <tr>
              <th scope="col"><span class="unseen">Compare</span></th>
              <th scope="col">Run</th>
              <th scope="col" title="The mean score is from 0 to 1, drawn with its interval">Result and mean score</th>
              <th scope="col" class="wide-cell number">Cases</th>
              <th scope="col" class="wide-cell number">Cost</th>
              <th scope="col" class="wide-cell number">Began</th>
            </tr>
          </thead>
          <tbody>
            ${(runs ?? []).map((run, index) =>
              h(Line, {
                key: run.run,
                run,
                isHere: index === at,
                isChosen: chosen.includes(run.run),
                onToggle: () => toggle(run.run),
              }),
            )}
          </tbody>
        </table>
        ${
          (runs?.length ?? 0) >= limit &&
          html`<p class="run-more">
            ${button("Show more", () => setLimit(limit + PAGE * 4))}
          </p>`
        }
      </div>`
    }
    ${suites === null ? null : h(SuitesDialog, { isFirst: suites, onClose: () => setSuites(null) })}
  </main>`;
}

/**
 * The older one is what the newer one is compared with.
 * @param {readonly string[]} two
 * @param {readonly EvalBrief[]} runs
 */
function inOrder([a, b], runs) {
  const begun = (/** @type {string} */ id) => runs.find((run) => run.run === id)?.at ?? 0;
  return begun(a) <= begun(b) ? [a, b] : [b, a];
}

/**
 * @param {{ runs: readonly EvalBrief[], suite: string, chosen: readonly string[], onCompare: () => void,
 *   onSuites: () => void }} props
 */
function Head({ runs, suite, chosen, onCompare, onSuites }) {
  const suites = suitesOf(suite && !runs.length ? [{ suite }] : runs);
  return html`<header class="runs-head">
    <h1>Evals</h1>
    ${
      suite
        ? html`<span class="chip eval-suite cut" title=${suite}>${suite}</span>
            <a class="button quiet icon" href="#/evals" aria-label="Runs of all suites" title="Runs of all suites">
              ${h(Icon, { name: "close" })}
            </a>`
        : suites.length > 1
          ? html`<label class="eval-pick">
              <span class="unseen">Suite</span>
              ${selectField("", (value) => go({ view: "evals", suite: value }), [["", "All suites"], ...suites])}
            </label>`
          : null
    }
    <span class="shell-gap"></span>
    <span class="soft" role="status">${chosen.length === 1 ? "Choose one more to compare." : ""}</span>
    ${
      (suite || suites.length === 1) &&
      html`<a class="button" href=${hashOf({ view: "eval-trend", suite: suite || suites[0] })}>
        ${h(Icon, { name: "gauge" })}Trend
      </a>`
    }
    ${button("Compare", onCompare, { icon: "columns", isDisabled: chosen.length !== 2 })}
    ${button("Suites…", onSuites, { kind: "primary", icon: "plus", title: "Write a suite, or run one (s)" })}
  </header>`;
}

/** @param {{ run: EvalBrief, isHere: boolean, isChosen: boolean, onToggle: () => void, key?: string }} props */
function Line({ run, isHere, isChosen, onToggle }) {
  const title = run.name || run.suite || run.run;
  const range = scoreRange(run.summary.flatMap((line) => [line.low, line.high]));
  const spent = runCost(run.summary);
  return html`<tr class=${`run-row ${isHere ? "is-here" : ""} ${isChosen ? "is-chosen" : ""}`}>
    <td>
      <input type="checkbox" aria-label=${`Compare ${title}, ${run.run}`} checked=${isChosen} onChange=${onToggle} />
    </td>
    <td class="eval-name">
      <a href=${hashOf({ view: "eval", id: run.run })}>${title}</a>
      <p class="faint">
        <span class=${`run-state ${run.state} ${run.state === "ended" && evalTone(run) === "good" ? "good" : ""}`}>
          ${evalWords(run)}
        </span>
        ${
          run.suite &&
          run.suite !== title &&
          html`<a class="cut" href=${hashOf({ view: "evals", suite: run.suite })} title=${`Runs of ${run.suite}`}>
            ${run.suite}
          </a>`
        }
        <span class="narrow-cell number">${when(run.at, Date.now() / 1000)}</span>
      </p>
    </td>
    <td class="eval-results">
      ${
        run.summary.length
          ? run.summary.map(
              (line) => html`<div key=${line.target} class="eval-result">
                <span class="cut eval-target" title=${line.target}>${line.target}</span>
                <span>
                  ${h(Rates, { line })}
                  ${describeLeftOut(line) ? html` <span class="bad">${describeLeftOut(line)}</span>` : null}
                </span>
                ${h(IntervalPlot, {
                  what: `Mean score of ${line.target}`,
                  mean: line.mean,
                  low: line.low,
                  high: line.high,
                  range,
                })}
              </div>`,
            )
          : html`<p class="faint">${run.targets.join(", ")}</p>`
      }
    </td>
    <td class="wide-cell number">${run.cases}</td>
    <td class="wide-cell number" title=${spent.title}>${spent.words}</td>
    <td class="wide-cell number soft" title=${stamp(run.at)}>${when(run.at, Date.now() / 1000)}</td>
  </tr>`;
}

/** How the first one is made. @param {{ onSuites: (isFirst: boolean) => void }} props */
function NothingYet({ onSuites }) {
  return html`<div class="empty eval-first">
    <h1>No evals yet</h1>
    <p class="soft">
      An eval asks models a fixed set of questions, and checks whether the answers are what you expect.
    </p>
    <p class="empty-actions">
      ${button("Write a suite", () => onSuites(true), { kind: "primary" })}
      ${button("Run a suite…", () => onSuites(false))}
    </p>
    <p class="soft">Or in a terminal. The run appears here while it runs.</p>
    ${h(CopyBlock, { text: `${about.value.program} eval run evals/first.yaml`, label: "Copy the command" })}
    <p class="soft">
      Or open an exchange in <a href="#/traffic">Traffic</a>
      , or an answer in the chat, and choose “Make a case of this”.
    </p>
  </div>`;
}
