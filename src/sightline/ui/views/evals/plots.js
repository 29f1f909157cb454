// @ts-check
/**
 * Plots drawn by hand. Widths are in percent, so that a plot fills its space while its text keeps its size; each plot
 * has a description in words.
 */

import { h, html } from "../../vendor/preact.js";
import { formatScore, formatDifference } from "./core/evals.js";
import { bins, distributionWords, intervalWords, scale, ticks } from "./core/plot.js";

/** @import { Range } from "./core/plot.js" */

/** Where a value lies, in percent of the width. @param {Range} range */
export function percentOf(range) {
  const place = scale(range, 0, 100);
  return (/** @type {number} */ value) => `${Math.min(Math.max(place(value), 0), 100).toFixed(3)}%`;
}

/** The numbers below a plot. @param {{ range: Range, isSigned?: boolean, count?: number }} props */
export function Axis({ range, isSigned = false, count = 4 }) {
  const x = percentOf(range);
  const marks = ticks(range, { count, isSigned });
  return html`<svg class="plot axis" height="16" aria-hidden="true">
    ${marks.map(
      ({ value, label }, place) => html`<text
        key=${label}
        x=${x(value)}
        y="12"
        class=${value === range.low ? "start" : value === range.high ? "end" : place % 2 ? "minor" : ""}
      >
        ${label}
      </text>`,
    )}
  </svg>`;
}

/**
 * A number and the interval around it on one line. An end that lies outside has no cap.
 * @param {{ what: string, mean: number | null, low: number | null, high: number | null, range: Range, level?: number,
 *   isSigned?: boolean, height?: number }} props
 */
export function IntervalPlot({ what, mean, low, high, range, level = 0.95, isSigned = false, height = 20 }) {
  const x = percentOf(range);
  const middle = height / 2;
  const cap = Math.min(5, middle - 2);
  return html`<svg
    class="plot interval"
    height=${height}
    role="img"
    aria-label=${intervalWords(what, mean, low, high, level)}
  >
    ${ticks(range, { count: isSigned ? 5 : 4, isSigned }).map(
      ({ value }) => html`<line
        key=${value}
        class=${isSigned && value === 0 ? "zero" : "grid"}
        x1=${x(value)}
        x2=${x(value)}
        y1="0"
        y2=${height}
      />`,
    )}
    ${
      low !== null &&
      high !== null &&
      html`<g class="whisker">
        <line x1=${x(low)} x2=${x(high)} y1=${middle} y2=${middle} />
        ${[low, high].map((end) =>
          end < range.low || end > range.high
            ? null
            : html`<line key=${end} x1=${x(end)} x2=${x(end)} y1=${middle - cap} y2=${middle + cap} />`,
        )}
      </g>`
    }
    ${mean === null ? null : html`<circle class="mean" cx=${x(mean)} cy=${middle} r="4.5" />`}
  </svg>`;
}

const TALL = 72;

/**
 * How scores are spread, by tenths. `side` a is drawn hollow and b filled, so that they differ without colour.
 * @param {{ name: string, side: "a" | "b", scores: readonly number[], most: number, range: Range }} props
 */
export function Histogram({ name, side, scores, most, range }) {
  const x = percentOf(range);
  const made = bins(scores, range);
  const mean = scores.length ? scores.reduce((sum, each) => sum + each, 0) / scores.length : null;
  const high = (/** @type {number} */ count) => (count / Math.max(most, 1)) * (TALL - 16);
  const size = 100 / made.length;
  return html`<figure class="histogram">
    <figcaption class="in-row">
      <span class=${`side-mark ${side}`} aria-hidden="true"></span>
      <b class="cut">${name}</b>
      <span class="soft number">${scores.length} scores${mean === null ? "" : `, mean ${formatScore(mean)}`}</span>
    </figcaption>
    <svg class="plot bars" height=${TALL} role="img" aria-label=${distributionWords(name, scores)}>
      ${ticks(range, { count: 5 }).map(
        ({ value }) => html`<line key=${value} class="grid" x1=${x(value)} x2=${x(value)} y1="0" y2=${TALL} />`,
      )}
      ${made.map((bin, place) =>
        bin.count
          ? html`<g key=${place}>
              <rect
                class=${`bar ${side}`}
                x=${`${place * size + size * 0.1}%`}
                width=${`${size * 0.8}%`}
                y=${TALL - high(bin.count)}
                height=${Math.max(high(bin.count) - 1, 1)}
              />
              <text class="count" x=${`${(place + 0.5) * size}%`} y=${TALL - high(bin.count) - 4}>${bin.count}</text>
            </g>`
          : null,
      )}
      <line class="base" x1="0%" x2="100%" y1=${TALL - 0.5} y2=${TALL - 0.5} />
      ${
        mean === null
          ? null
          : html`<g class="mean-line">
              <line class="halo" x1=${x(mean)} x2=${x(mean)} y1="0" y2=${TALL} />
              <line x1=${x(mean)} x2=${x(mean)} y1="0" y2=${TALL} />
            </g>`
      }
    </svg>
  </figure>`;
}

/**
 * Paired differences with their intervals on one scale, a line each.
 * @param {{ lines: readonly { name: string, what: string, difference: number, low: number | null, high: number | null
 *   }[], level: number, range: Range, better: string, worse: string }} props
 */
export function DifferencePlot({ lines, level, range, better, worse }) {
  return html`<div class="difference-plot">
    <div class="difference-sides soft" aria-hidden="true"><span>← ${worse}</span><span>${better} →</span></div>
    ${lines.map(
      ({ name, what, difference, low, high }) => html`<div key=${name} class="difference-line">
        <span class="soft" aria-hidden="true">${name}</span>
        ${h(IntervalPlot, { what, mean: difference, low, high, range, level, isSigned: true, height: 28 })}
      </div>`,
    )}
    <div class="difference-line"><span></span>${h(Axis, { range, isSigned: true, count: 5 })}</div>
    <p class="axis-name faint" aria-hidden="true">B less A</p>
  </div>`;
}

/** A difference as a bar from the middle. @param {{ difference: number, range: Range }} props */
export function DifferenceBar({ difference, range }) {
  const place = scale(range, 0, 100);
  const [from, to] = [place(Math.min(difference, 0)), place(Math.max(difference, 0))];
  return html`<svg
    class="plot difference-bar"
    height="14"
    role="img"
    aria-label=${`Difference ${formatDifference(difference)}`}
  >
    <line class="zero" x1="50%" x2="50%" y1="0" y2="14" />
    ${
      difference
        ? html`<rect
            class=${difference < 0 ? "loss" : "win"}
            x=${`${from}%`}
            width=${`${to - from}%`}
            y="3"
            height="8"
            rx="1"
          />`
        : null
    }
  </svg>`;
}
