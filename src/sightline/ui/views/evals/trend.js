// @ts-check
/** A suite over its runs: one line for each target, with the intervals of its means. */

import { stamp, when } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { go } from "../../kit/navigation.js";
import { h, html, useMemo } from "../../vendor/preact.js";
import { percent, formatScore } from "./core/evals.js";
import {
  spreadLabels,
  changeWords,
  intervalWords,
  scale,
  scoreRange,
  ticks,
  trendOf,
  trendWords,
} from "./core/plot.js";
import { NotThere } from "./eval.js";
import { useTrend } from "./feed.js";

/** @import { Line, Placed, Trend } from "./core/plot.js" */

const [TALL, TOP, BOTTOM] = [260, 12, 30];
/** Each target has its own shape and its own line, and only then its own colour. */
const KINDS = 5;

/** @param {{ suite: string, key?: string }} props */
export function EvalTrend({ suite }) {
  const { value: points, trouble, again } = useTrend(suite);
  const trend = useMemo(() => trendOf(points ?? []), [points]);
  useShortcuts("Trend", [{ keys: "escape", label: "Back to the evals", run: () => go({ view: "evals" }) }], []);
  if (!points) return h(NotThere, { trouble, again, what: "This suite" });
  return html`<main class="runs-view" aria-label="Trend">
    <header class="runs-head">
      <a class="button quiet icon" href="#/evals" aria-label="All evals" title="All evals">
        ${h(Icon, { name: "back" })}
      </a>
      <div class="runs-title">
        <h1 class="cut">Trend of ${suite || "all suites"}</h1>
        <p class="soft">Mean score of each run, from 0 to 1, with its 95 % interval; a point opens its run.</p>
      </div>
      ${suite ? html`<a class="button" href=${hashOf({ view: "evals", suite })}>Its runs</a>` : null}
    </header>
    <div class="runs-body">
      ${
        trend.runs.length
          ? html`${
              trend.lines.some((line) => line.points.length)
                ? h(Plot, { trend })
                : html`<p class="soft pad" role="status">No run of this suite has a score.</p>`
            }
              ${h(Table, { trend })}`
          : html`<div class="empty">
              <h1>No runs of this suite</h1>
              <p class="soft">Run it, and its scores are drawn here run by run.</p>
            </div>`
      }
    </div>
  </main>`;
}

/** @param {{ trend: Trend }} props */
function Plot({ trend }) {
  const values = trend.lines.flatMap((line) => line.points.flatMap((point) => [point.mean, point.low, point.high]));
  const range = scoreRange(values);
  const y = scale(range, TALL - BOTTOM, TOP);
  const count = trend.runs.length;
  const x = (/** @type {number} */ place) => (count > 1 ? 4 + (place / (count - 1)) * 92 : 50);
  const every = Math.max(Math.ceil(count / 6), 1);
  const now = Date.now() / 1000;
  return html`<figure class="trend-plot boxed">
    <div class="trend-frame">
      <svg class="plot trend-scale" height=${TALL} aria-hidden="true">
        ${ticks(range).map(({ value, label }) => html`<text key=${label} x="100%" y=${y(value) + 4}>${label}</text>`)}
      </svg>
      <svg
        class="plot trend"
        height=${TALL}
        role="group"
        aria-label=${`Trend: ${trend.lines.map(trendWords).join(" ")}`}
      >
        ${ticks(range).map(
          ({ value, label }) =>
            html`<line key=${label} class="grid" x1="0%" x2="100%" y1=${y(value)} y2=${y(value)} />`,
        )}
        ${trend.runs.map((run, place) =>
          (place % every === 0 && place < count - every / 2) || place === count - 1
            ? html`<text
                key=${run.run}
                class=${
                  count > 1 && place === 0
                    ? "when start"
                    : count > 1 && place === count - 1
                      ? "when end"
                      : count === 1
                        ? "when only"
                        : "when"
                }
                x=${count > 1 && place === count - 1 ? "100%" : count > 1 && place === 0 ? "0%" : `${x(place)}%`}
                y=${TALL - 8}
              >
                ${when(run.at, now).slice(0, 12)}
              </text>`
            : null,
        )}
        ${trend.lines.map((line, index) =>
          h(TrendLine, { key: line.target, line, index, count: trend.lines.length, x, y }),
        )}
      </svg>
      ${h(Labels, { trend, y })}
    </div>
    <figcaption class="trend-legend">
      ${trend.lines.map(
        (line, index) => html`<span key=${line.target} class="soft">
          <svg class=${`plot line-key t${index % KINDS}`} width="34" height="14" aria-hidden="true">
            <line class="thread" x1="2" x2="32" y1="7" y2="7" />
            ${shape(index, "17", 7)}
          </svg>
          ${line.target}
        </span>`,
      )}
    </figcaption>
    ${h(Changes, { trend })}
  </figure>`;
}

/**
 * @param {{ line: Line, index: number, count: number, x: (place: number) => number, y: (value: number) => number, key?:
 *   string }} props
 */
function TrendLine({ line, index, count, x, y }) {
  // Targets of one run stand beside each other, so that their intervals do not hide one another.
  const aside = (index - (count - 1) / 2) * Math.min(1.1, 5 / count);
  const at = (/** @type {Placed} */ point) => `${x(point.place) + aside}%`;
  return html`<g class=${`target t${index % KINDS}`}>
    ${line.points.slice(1).map(
      (point, place) => html`<line
        key=${point.run}
        class="thread"
        x1=${at(line.points[place])}
        y1=${y(line.points[place].mean)}
        x2=${at(point)}
        y2=${y(point.mean)}
      />`,
    )}
    ${line.points.map(
      (point) => html`<g key=${point.run}>
        ${
          point.low !== null &&
          point.high !== null &&
          html`<line class="reach" x1=${at(point)} x2=${at(point)} y1=${y(point.low)} y2=${y(point.high)} />`
        }
        <a
          href=${hashOf({ view: "eval", id: point.run })}
          aria-label=${
            `${line.target}, ${stamp(point.at)}. ` + intervalWords("Mean score", point.mean, point.low, point.high)
          }
        >
          <title>${`${line.target}, ${stamp(point.at)}: ${formatScore(point.mean)}`}</title>
          ${shape(index, at(point), y(point.mean))}
        </a>
      </g>`,
    )}
  </g>`;
}

/**
 * A circle, a square, a triangle, a diamond, a cross. A nested drawing takes a place in percent, which a path does not.
 * @param {number} index
 * @param {string} x
 * @param {number} y
 */
function shape(index, x, y) {
  const paths = [
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "M-4.5-4.5h9v9h-9Z",
    "M0-5.5 5.5 4.5h-11Z",
    "M0-6 6 0 0 6-6 0Z",
    "M-1.8-5.5h3.6v3.7h3.7v3.6H1.8v3.7h-3.6V1.8h-3.7v-3.6h3.7Z",
  ];
  return html`<svg class="shape" x=${x} y=${y} overflow="visible"><path d=${paths[index % KINDS]} /></svg>`;
}

/** What changed last, in words. @param {{ trend: Trend }} props */
function Changes({ trend }) {
  const now = Date.now() / 1000;
  const rows = trend.lines
    .map((line) => ({ target: line.target, change: changeWords(line, line.points.length - 1, (at) => when(at, now)) }))
    .filter(({ change }) => change);
  if (!rows.length) return null;
  return html`<ul class="eval-said soft" aria-label="The last run against the one before">
    ${rows.map(
      ({ target, change }) => html`<li key=${target}>${trend.lines.length > 1 ? `${target}: ` : ""}${change}</li>`,
    )}
  </ul>`;
}

/** The names at the lines' ends. @param {{ trend: Trend, y: (value: number) => number }} props */
function Labels({ trend, y }) {
  const ends = trend.lines
    .map((line, kind) => ({
      target: line.target,
      kind,
      last: line.points.at(-1),
      at: y(line.points.at(-1)?.mean ?? 0),
    }))
    .filter(({ last }) => last?.place === trend.runs.length - 1);
  const moved = spreadLabels(ends, 15, TALL - BOTTOM);
  return html`<ul class="trend-labels" aria-hidden="true">
    ${ends.map(
      ({ target, kind }, index) => html`<li
        key=${target}
        class=${`cut t${kind % KINDS}`}
        style=${{ top: `${moved[index] - 9}px` }}
        title=${target}
      >
        ${target}
      </li>`,
    )}
  </ul>`;
}

/** The same as numbers. @param {{ trend: Trend }} props */
function Table({ trend }) {
  const now = Date.now() / 1000;
  return html`<p class="faint trend-note">
      Mean score, its 95 % interval, how many passed, and where the data shows a change since the previous run.
    </p>
    <div class="matrix-scroll boxed">
      <table class="run-table trend-table">
        <thead>
          <tr>
            <th scope="col">Run</th>
            ${trend.lines.map((line) => html`<th key=${line.target} scope="col">${line.target}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${[...trend.runs].reverse().map(
            (run) => html`<tr key=${run.run} class="run-row">
              <th scope="row">
                <a href=${hashOf({ view: "eval", id: run.run })} title=${stamp(run.at)}>${when(run.at, now)}</a>
              </th>
              ${trend.lines.map(
                (line) => html`<td key=${line.target} class="number">
                  ${h(Cell, { line, index: line.points.findIndex((point) => point.run === run.run) })}
                </td>`,
              )}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

/** One run on one target. @param {{ line: Line, index: number }} props */
function Cell({ line, index }) {
  const point = line.points[index];
  if (!point) return html`<span class="faint">–</span>`;
  const change = changeWords(line, index, stamp);
  const isTold = point.finding === "better" || point.finding === "worse";
  return html`<b>${formatScore(point.mean)}</b>
    ${
      point.low !== null &&
      point.high !== null &&
      html`<span class="soft"> ${formatScore(point.low)} to ${formatScore(point.high)}</span>`
    }
    <span class="faint"> ${percent(point.pass_rate)}</span>
    ${
      isTold &&
      html` <span class=${`chip ${point.finding}`} title=${change}>
        ${point.finding === "better" ? "▲" : "▼"} ${point.finding}
      </span>`
    }`;
}
