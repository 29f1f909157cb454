// @ts-check
/** Two runs side by side: their totals, and round by round where they differ. */

import { button } from "../../kit/button.js";
import { checkbox } from "../../kit/fields.js";
import { foldBlock } from "../../kit/fold-block.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { LineDiff } from "../../kit/line-diff.js";
import { go } from "../../kit/navigation.js";
import { Unloaded } from "../../kit/notices.js";
import { RichText } from "../../kit/rich-text.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";
import { compareRounds, parseArguments, argumentsText, roundLine, spendings, stateWords } from "./core/runs.js";
import { useRun } from "./feed.js";
import { RunCallView } from "./round.js";

/** @import { ComparedRound, Round, Run } from "./core/runs.js" */

/** @param {{ a: string, b: string, key?: string }} props */
export function CompareRuns({ a, b }) {
  const left = useRun(a);
  const right = useRun(b);
  const [isOnlyDifferent, setOnlyDifferent] = useState(false);
  useShortcuts("Compare runs", [{ keys: "escape", label: "Back to the runs", run: () => go({ view: "runs" }) }], []);
  const trouble = left.trouble ?? right.trouble;
  const rounds = useMemo(
    () => (left.run && right.run ? compareRounds(left.run.rounds, right.run.rounds) : []),
    [left.run, right.run],
  );
  if (!left.run || !right.run) {
    return html`<main class="runs-view is-empty">
      ${
        trouble
          ? h(Unloaded, {
              title: trouble.status === 404 ? "One of these runs is not on record" : "They could not be loaded",
              lines: [trouble.status === 404 ? "" : trouble.message],
              ways: html`<a class="button" href="#/runs">All runs</a>`,
            })
          : html`<p class="faint pad" role="status">Loading…</p>`
      }
    </main>`;
  }
  const same = rounds.filter((round) => round.isSame).length;
  const first = rounds.find((round) => !round.isSame);
  const shown = isOnlyDifferent ? rounds.filter((round) => !round.isSame) : rounds;
  return html`<main class="runs-view" aria-label="Two runs compared">
    <header class="runs-head">
      <a class="button quiet icon" href="#/runs" aria-label="All runs" title="All runs">${h(Icon, { name: "back" })}</a>
      <h1>Two runs</h1>
      <span class="soft">
        ${
          first
            ? `They differ from round ${first.number} on; ${same} of ${rounds.length} rounds are the same.`
            : "All rounds are the same."
        }
      </span>
      <span class="shell-gap"></span>
      ${checkbox("Only differences", isOnlyDifferent, setOnlyDifferent)}
      ${button("Swap", () => go({ view: "compare", a: b, b: a }))}
    </header>
    <div class="runs-body compared">
      ${h(Summary, { left: left.run, right: right.run })}
      ${shown.map((round) => h(Pair, { key: String(round.number), round }))}
    </div>
  </main>`;
}

/** @param {{ left: Run, right: Run }} props */
function Summary({ left, right }) {
  const rights = new Map(spendings(right).map((each) => [each.name, each.spent]));
  const rows = [
    ["Model", left.model, right.model],
    ["End", stateWords(left), stateWords(right)],
    ["Rounds", String(left.rounds.length), String(right.rounds.length)],
    ...spendings(left).map(({ name, label, spent }) => [label, spent, rights.get(name) ?? ""]),
  ];
  return html`<table class="compare-summary">
    <thead>
      <tr>
        <th scope="col"><span class="unseen">What</span></th>
        ${[left, right].map(
          (run) => html`<th key=${run.id} scope="col">
            <a class="cut" href=${`#/runs/${encodeURIComponent(run.id)}`}>${run.title || run.id}</a>
          </th>`,
        )}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        ([label, one, two]) => html`<tr key=${label} class=${one === two ? "" : "is-different"}>
          <th scope="row">${label}</th>
          <td class="number">${one}</td>
          <td class="number">${two}</td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}

/** @param {{ round: ComparedRound, key?: string }} props */
function Pair({ round }) {
  return html`<section
    class=${round.isSame ? "compared-round stacked is-same" : "compared-round stacked"}
    aria-label=${`Round ${round.number}`}
  >
    <h2>
      Round ${round.number} <span class=${round.isSame ? "chip" : "chip changed"}>
        ${round.isSame ? "same" : "differs"}
      </span>
    </h2>
    <div class="compared-columns">
      ${h(Side, { round: round.left, name: "left" })}
      ${h(Side, { round: round.right, name: "right" })}
    </div>
    ${round.calls.map((call, index) => h(CallComparison, { key: String(index), call }))}
    ${
      round.left &&
      round.right &&
      round.left.text !== round.right.text &&
      round.left.text &&
      round.right.text &&
      foldBlock(
        "Differences in the text",
        html`<div class="fold-inside">${h(LineDiff, { before: round.left.text, after: round.right.text })}</div>`,
      )
    }
  </section>`;
}

/** @param {{ round: Round | null, name: string }} props */
function Side({ round, name }) {
  if (!round) return html`<div class="compared-side missing faint">There is no such round on the ${name}.</div>`;
  return html`<div class="compared-side">
    <p class="soft number compared-line">
      ${roundLine(round)}
      ${
        round.exchange &&
        html`${" "}
        <a href=${`#/x/${encodeURIComponent(round.exchange)}`}>request</a>${" "}
        <a href=${`#/x/${encodeURIComponent(round.exchange)}/reply`}>reply</a>`
      }
    </p>
    ${round.text ? h(RichText, { text: round.text }) : html`<p class="faint">no text</p>`}
  </div>`;
}

const WORDS = {
  "": "same call",
  "only left": "only on the left",
  "only right": "only on the right",
  arguments: "other arguments",
  result: "another result",
};

/** @param {{ call: ComparedRound["calls"][number], key?: string }} props */
function CallComparison({ call }) {
  const { left, right, difference } = call;
  return html`<div class=${difference ? "compared-call" : "compared-call is-same"}>
    <p class="compared-call-head">
      <code>${left?.name ?? right?.name}</code> <span class=${difference ? "chip changed" : "chip"}>
        ${WORDS[difference]}
      </span>
    </p>
    <div class="compared-columns">
      ${[left, right].map((each, index) =>
        each
          ? html`<div key=${index} class="compared-side">${h(RunCallView, { call: each })}</div>`
          : html`<div key=${index} class="compared-side missing"></div>`,
      )}
    </div>
    ${
      left &&
      right &&
      difference === "arguments" &&
      h(LineDiff, { before: argumentsText(parseArguments(left)), after: argumentsText(parseArguments(right)) })
    }
    ${
      left?.result &&
      right?.result &&
      difference === "result" &&
      h(LineDiff, { before: left.result.text, after: right.result.text })
    }
  </div>`;
}
