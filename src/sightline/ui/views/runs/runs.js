// @ts-check
/** The list of runs, the newest first. */

import { about } from "../../kit/about.js";
import { button } from "../../kit/button.js";
import { costOf, countOf, duration, short, stamp, when } from "../../kit/core/format.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { go } from "../../kit/navigation.js";
import { h, html, useEffect, useLayoutEffect, useState } from "../../vendor/preact.js";
import { Approvals } from "./approvals.js";
import { stateWords, toneOf } from "./core/runs.js";
import { useRuns } from "./feed.js";

/** @import { RunBrief } from "./feed.js" */

const PAGE = 100;

/** `compare` is a run that the next chosen one is compared with. @param {{ compare?: string }} props */
export function Runs({ compare = "" }) {
  const [limit, setLimit] = useState(PAGE);
  const { value: runs, trouble, again } = useRuns(limit);
  const [chosen, setChosen] = useState(/** @type {string[]} */ (compare ? [compare] : []));
  const [at, setAt] = useState(0);
  // Before the next key, which it would take back.
  useLayoutEffect(() => setChosen(compare ? [compare] : []), [compare]);
  const move = (/** @type {number} */ by) => setAt((now) => Math.min(Math.max(now + by, 0), (runs?.length ?? 1) - 1));
  const toggle = (/** @type {string} */ id) =>
    setChosen((now) => (now.includes(id) ? now.filter((each) => each !== id) : [...now, id].slice(-2)));
  useShortcuts(
    "Runs",
    [
      { keys: "j", also: ["down"], label: "Next run", run: () => move(1) },
      { keys: "k", also: ["up"], label: "Run before", run: () => move(-1) },
      { keys: "enter", label: "Open the run", run: () => runs?.[at] && go({ view: "run", id: runs[at].id }) },
      { keys: "x", label: "Choose the run to compare", run: () => runs?.[at] && toggle(runs[at].id) },
      {
        keys: "c",
        label: "Compare the two chosen runs",
        run: () => chosen.length === 2 && go({ view: "compare", a: chosen[0], b: chosen[1] }),
      },
    ],
    [runs, at, chosen],
  );
  useEffect(() => document.querySelector(".run-row.is-here")?.scrollIntoView({ block: "nearest" }), [at]);
  const isEmpty = runs?.length === 0;
  return html`<main class=${runs?.length ? "runs-view" : "runs-view is-empty"} aria-label="Runs">
    ${
      trouble &&
      !runs &&
      html`<div class="empty" role="alert">
        <h1>Runs could not be loaded</h1>
        <p class="soft">${trouble.message}</p>
        <p class="soft">${trouble.hint ?? ""}</p>
        <p class="empty-actions">${button("Try again", again)}</p>
      </div>`
    }
    ${!runs && !trouble ? html`<p class="faint pad" role="status">Loading…</p>` : null}
    ${
      isEmpty &&
      html`<div class="empty">
        <h1>No runs yet</h1>
        <p class="soft">
          A run is a model that calls tools until it is done. Give a topic of the chat some tools, or start one on
          the command line:
        </p>
        <p><code>${about.value.program} ask --tools tools.py "…"</code></p>
        ${h(Approvals, { version: "" })}
      </div>`
    }
    ${
      runs?.length
        ? html`<header class="runs-head">
              <h1>Runs</h1>
              <span class="shell-gap"></span>
              <span class="soft" role="status">${chosen.length === 1 ? "Choose one more to compare." : ""}</span>
              ${button("Compare", () => go({ view: "compare", a: chosen[0], b: chosen[1] }), {
                icon: "columns",
                isDisabled: chosen.length !== 2,
              })}
            </header>
            <div class="runs-body">
              ${h(Approvals, { version: runs[0]?.id })}
              <table class="run-table">
                <thead>
                  <tr>
                    <th scope="col"><span class="unseen">Compare</span></th>
                    <th scope="col">State</th>
                    <th scope="col">Run</th>
                    <th scope="col" class="wide-cell">Model</th>
                    <th scope="col" class="wide-cell number">Rounds</th>
                    <th scope="col" class="wide-cell number">Tokens</th>
                    <th scope="col" class="wide-cell number">Cost</th>
                    <th scope="col" class="wide-cell number">Time</th>
                    <th scope="col" class="number">Began</th>
                  </tr>
                </thead>
                <tbody>
                  ${runs.map((run, index) =>
                    h(Line, {
                      key: run.id,
                      run,
                      isHere: index === at,
                      isChosen: chosen.includes(run.id),
                      onToggle: () => toggle(run.id),
                    }),
                  )}
                </tbody>
              </table>
              ${
                runs.length >= limit &&
                html`<p class="run-more">
                  ${button("Show more", () => setLimit(limit + PAGE * 4))}
                </p>`
              }
            </div>`
        : null
    }
  </main>`;
}

/** @param {{ run: RunBrief, isHere: boolean, isChosen: boolean, onToggle: () => void, key?: string }} props */
function Line({ run, isHere, isChosen, onToggle }) {
  const title = run.title || run.id;
  return html`<tr class=${`run-row ${isHere ? "is-here" : ""} ${isChosen ? "is-chosen" : ""}`}>
    <td><input type="checkbox" aria-label=${`Compare ${title}`} checked=${isChosen} onChange=${onToggle} /></td>
    <td><span class=${`run-state ${run.state} ${toneOf(run)}`}>${stateWords(run)}</span></td>
    <td class="run-name"><a class="cut" href=${`#/runs/${encodeURIComponent(run.id)}`} title=${title}>${title}</a></td>
    <td class="wide-cell soft cut">${run.model}</td>
    <td class="wide-cell number">${run.rounds}</td>
    <td
      class="wide-cell number"
      title=${run.spent?.tool_calls != null ? countOf(run.spent.tool_calls, "tool call") : null}
    >
      ${short(run.spent?.tokens)}
    </td>
    <td class="wide-cell number">
      ${run.spent?.cost ? costOf(run.spent) : run.spent?.cost === null ? "unknown" : ""}
    </td>
    <td class="wide-cell number">${run.spent?.seconds ? duration(run.spent.seconds) : ""}</td>
    <td class="number soft" title=${stamp(run.at)}>${when(run.at, Date.now() / 1000)}</td>
  </tr>`;
}
