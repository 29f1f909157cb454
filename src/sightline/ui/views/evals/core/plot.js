// @ts-check
/** Positions in a plot, and descriptions of plots for screen readers. */

import { percent, formatScore, formatDifference } from "./evals.js";

/** @import { ComparedCase, TrendPoint } from "../../../api-types.d.ts" */
/** @typedef {{ low: number, high: number }} Range */
/** @typedef {{ value: number, label: string }} Tick */

/**
 * How wide numbers are laid out.
 * @param {Range} range
 * @param {number} from
 * @param {number} to
 * @returns {(value: number) => number}
 */
export function scale(range, from, to) {
  const size = range.high - range.low || 1;
  return (value) => from + ((value - range.low) / size) * (to - from);
}

/**
 * Round numbers that lie in a range, some five of them.
 * @param {Range} range
 * @param {{ count?: number, isSigned?: boolean }} [options]
 * @returns {Tick[]}
 */
export function ticks({ low, high }, { count = 5, isSigned = false } = {}) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999) ?? power * 10;
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place++) {
    const value = Number((place * step).toPrecision(12));
    found.push({ value, label: isSigned ? formatDifference(value) : formatScore(value) });
  }
  return found;
}

/**
 * A range that holds these values; scores have at least 0 to 1.
 * @param {readonly (number | null | undefined)[]} values
 * @returns {Range}
 */
export function scoreRange(values) {
  const numbers = values.filter((value) => value != null);
  return { low: Math.min(0, ...numbers), high: Math.max(1, ...numbers) };
}

/**
 * A range around 0, as far to both sides, for differences of scores, which are 1 at most.
 * @param {readonly (number | null | undefined)[]} values
 * @returns {Range}
 */
export function differenceRange(values) {
  const reach = Math.max(...values.map((value) => Math.abs(value ?? 0))) * 1.15;
  const rounded = [0.1, 0.25, 0.5].find((each) => reach <= each) ?? 1;
  return { low: -rounded, high: rounded };
}

/** @typedef {{ low: number, high: number, count: number }} Bin */

const BINS = 10;

/**
 * Scores by tenths; the last holds what is exactly 1.
 * @param {readonly number[]} scores
 * @param {Range} [range]
 * @returns {Bin[]}
 */
export function bins(scores, range = { low: 0, high: 1 }) {
  const size = (range.high - range.low) / BINS;
  const made = Array.from({ length: BINS }, (_, place) => ({
    low: range.low + place * size,
    high: range.low + (place + 1) * size,
    count: 0,
  }));
  for (const score of scores)
    made[Math.min(Math.max(Math.floor((score - range.low) / size + 1e-9), 0), BINS - 1)].count += 1;
  return made;
}

/** A distribution as a sentence. @param {string} name @param {readonly number[]} scores */
export function distributionWords(name, scores) {
  if (!scores.length) return `${name}: no scores.`;
  const mean = scores.reduce((sum, each) => sum + each, 0) / scores.length;
  const [whole, none] = [scores.filter((each) => each >= 1).length, scores.filter((each) => each <= 0).length];
  const counts = `${whole} of them 1, ${none} of them 0, ${scores.length - whole - none} between`;
  return `${name}: ${scores.length} scores, mean ${formatScore(mean)}; ${counts}.`;
}

/**
 * A mean and its interval.
 * @param {string} what
 * @param {number | null} mean
 * @param {number | null} low
 * @param {number | null} high
 * @param {number} [level]
 */
export function intervalWords(what, mean, low, high, level = 0.95) {
  if (mean === null) return `${what}: no number.`;
  const hasInterval = low !== null && high !== null;
  const interval = hasInterval
    ? `${percent(level)} interval from ${formatScore(low)} to ${formatScore(high)}`
    : "no interval";
  return `${what}: ${formatScore(mean)}, ${interval}.`;
}

/** `place` is that of its run. @typedef {TrendPoint & { mean: number, place: number }} Placed */
/** @typedef {{ target: string, points: readonly Placed[] }} Line */
/** @typedef {{ runs: readonly { run: string, at: number }[], lines: readonly Line[] }} Trend */

/**
 * Points of runs as lines of targets over the runs, the oldest first.
 * @param {readonly TrendPoint[]} points
 * @returns {Trend}
 */
export function trendOf(points) {
  const known = new Map(points.map((point) => [point.run, { run: point.run, at: point.at }]));
  const runs = [...known.values()].sort((a, b) => a.at - b.at || (a.run < b.run ? -1 : 1));
  const places = new Map(runs.map((run, place) => [run.run, place]));
  const targets = [...new Set(points.map((point) => point.target))];
  const lines = targets.map((target) => ({
    target,
    points: points
      .filter((point) => point.target === target && point.mean !== null)
      .map((point) => ({ ...point, mean: point.mean ?? 0, place: places.get(point.run) ?? 0 }))
      .sort((a, b) => a.place - b.place),
  }));
  return { runs, lines };
}

/**
 * What a run of a target changed, in words: runs are called by when they were begun, for their ids say nothing to
 * people.
 * @param {Line} line
 * @param {number} index
 * @param {(at: number) => string} named
 */
export function changeWords(line, index, named) {
  const [before, own] = [line.points[index - 1], line.points[index]];
  if (!before || !own?.change) return "";
  const words = own.change
    .replaceAll(before.run, `the run of ${named(before.at)}`)
    .replaceAll(own.run, `the run of ${named(own.at)}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** How a target went, in a sentence. @param {Line} line */
export function trendWords(line) {
  const [first, last] = [line.points[0], line.points.at(-1)];
  if (!first || !last) return `${line.target}: no scores.`;
  if (first === last) return `${line.target}: one run, mean ${formatScore(first.mean)}.`;
  const difference = formatDifference(last.mean - first.mean);
  const change = `mean from ${formatScore(first.mean)} to ${formatScore(last.mean)}, ${difference}`;
  return `${line.target}: ${line.points.length} runs, ${change}.`;
}

/**
 * Labels that would lie on each other, moved apart.
 * @param {readonly { at: number }[]} labels
 * @param {number} room
 * @param {number} most
 * @returns {number[]}
 */
export function spreadLabels(labels, room, most) {
  const order = labels.map((label, place) => ({ place, at: label.at })).sort((a, b) => a.at - b.at);
  for (let index = 1; index < order.length; index++)
    order[index].at = Math.max(order[index].at, order[index - 1].at + room);
  let end = most;
  for (let index = order.length - 1; index >= 0; index--) {
    order[index].at = Math.min(order[index].at, end);
    end = order[index].at - room;
  }
  const moved = /** @type {number[]} */ (Array(labels.length));
  for (const { place, at } of order) moved[place] = at;
  return moved;
}

/** @typedef {import("../../../api-types.d.ts").CompareShown} Comparison */

/**
 * The cases that changed, the largest loss first and then the largest gain; with `isAll` also those that did not.
 * @param {readonly ComparedCase[]} cases
 * @param {boolean} isAll
 * @returns {ComparedCase[]}
 */
export function casesByChange(cases, isAll) {
  return cases
    .filter((each) => isAll || side(each.difference) < 2)
    .sort((a, b) => side(a.difference) - side(b.difference) || Math.abs(b.difference) - Math.abs(a.difference));
}

/** Losses, then gains, then ties. @param {number} difference */
function side(difference) {
  return Math.abs(difference) <= 1e-9 ? 2 : difference < 0 ? 0 : 1;
}

/** @param {number | null} p */
export function formatChance(p) {
  if (p === null) return "";
  return p < 0.001 ? "p < 0.001" : `p = ${Number(p.toFixed(3))}`;
}
