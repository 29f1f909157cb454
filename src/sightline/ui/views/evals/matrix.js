// @ts-check
/** The matrix of cases and targets, the worst first. */

import { button } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { checkbox, textField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { memo } from "../../kit/memo.js";
import { go } from "../../kit/navigation.js";
import { segmentControl } from "../../kit/segmented.js";
import { h, html, useLayoutEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import {
  answerSpans,
  cellScore,
  cellStanding,
  cellWords,
  MARKS,
  formatScore,
  filterRows,
  standingCounts,
  trialStanding,
  trialToOpen,
  trialToShow,
} from "./core/evals.js";
import { toneOf } from "./marks.js";

/** @import { Cell } from "../../api-types.d.ts" */
/** @import { Eval, MatrixRow } from "./core/evals.js" */

const PAGE = 200;
/** Up to so many results show their answers without being asked to. */
const FEW = 60;
/** What can be looked at alone: the word of the filter, its name, and how such cells stand. */
const CHOICES = /** @type {const} */ ([
  ["is:failed", "Failed", "failed"],
  ["is:error", "Errors", "error"],
  ["is:not-graded", "Not graded", "not graded"],
  ["is:passed", "Passed", "passed"],
]);

/** The cell that was looked at last: who comes back is there again. */
let lastOpened = { run: "", case: "", target: "" };

/** @param {string} run @param {string} name @param {string} target */
export function rememberCell(run, name, target) {
  lastOpened = { run, case: name, target };
}

/** @param {{ run: Eval, filter: string, order: "worst" | "suite" }} props */
export function Matrix({ run, filter, order }) {
  const [most, setMost] = useState(PAGE);
  const [here, setHere] = useState({ row: 0, column: 0 });
  const hasAnswers = run.matrix.some((row) => row.cells.some((cell) => cell.trials.some((trial) => trial.answer)));
  const [wantsAnswers, setWantsAnswers] = useState(/** @type {boolean | null} */ (null));
  const isShowingAnswers = hasAnswers && (wantsAnswers ?? run.of <= FEW);
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  const table = useRef(/** @type {HTMLTableElement | null} */ (null));
  const rows = useMemo(() => filterRows(run.matrix, filter, order), [run.matrix, filter, order]);
  const counts = useMemo(() => standingCounts(run.matrix), [run.matrix]);
  const targets = useMemo(
    () =>
      run.targets.length
        ? run.targets
        : [...new Set(run.matrix.flatMap((row) => row.cells.map((cell) => cell.target)))],
    [run],
  );
  const at = {
    row: Math.min(here.row, Math.max(rows.length - 1, 0)),
    column: Math.min(here.column, Math.max(targets.length - 1, 0)),
  };
  const among = useMemo(() => orderOf(filter, order), [filter, order]);
  const show = (/** @type {Among} */ wanted) => go({ view: "eval", id: run.run, ...wanted }, { isReplacing: true });
  const write = (/** @type {string} */ text) => show(orderOf(text, order));
  const setOrder = (/** @type {string} */ wanted) => show(orderOf(filter, wanted));
  // It is drawn by then, and the next key finds it.
  const focusSoon = (/** @type {{ row: number, column: number }} */ to) =>
    queueMicrotask(() =>
      /** @type {HTMLElement | null | undefined} */ (
        table.current?.querySelector(`[data-at="${to.row} ${to.column}"]`)
      )?.focus(),
    );
  const move = (/** @type {number} */ down, /** @type {number} */ right) => {
    const next = {
      row: Math.min(Math.max(at.row + down, 0), rows.length - 1),
      column: Math.min(Math.max(at.column + right, 0), targets.length - 1),
    };
    if (next.row >= most) setMost(most + PAGE);
    setHere(next);
    focusSoon(next);
  };
  useShortcuts(
    "Eval",
    [
      { keys: "/", label: "Filter the cases", run: () => box.current?.focus() },
      { keys: "a", label: "Answers in the cells, or scores alone", run: () => setWantsAnswers(!isShowingAnswers) },
      {
        keys: "o",
        label: "Failures first, or as the suite has them",
        run: () => setOrder(order === "worst" ? "suite" : "worst"),
      },
      { keys: "j", also: ["down"], label: "Case below", run: () => move(1, 0), isHidden: true },
      { keys: "k", also: ["up"], label: "Case above", run: () => move(-1, 0), isHidden: true },
      { keys: "l", also: ["right"], label: "Target to the right", run: () => move(0, 1), isHidden: true },
      { keys: "h", also: ["left"], label: "Target to the left", run: () => move(0, -1), isHidden: true },
    ],
    [rows, here, most, targets.length, filter, order, isShowingAnswers],
  );
  const isBack = useRef(true);
  // Before the next key, which it would take back.
  useLayoutEffect(() => {
    if (!isBack.current) return setHere((now) => ({ ...now, row: 0 }));
    isBack.current = false;
    const row = lastOpened.run === run.run ? rows.findIndex((each) => each.case === lastOpened.case) : -1;
    if (row < 0) return;
    const next = { row, column: Math.max(targets.indexOf(lastOpened.target), 0) };
    setMost((now) => Math.max(now, row + PAGE));
    setHere(next);
    focusSoon(next);
  }, [filter, order]);
  const filterWords = filter.split(/\s+/).filter(Boolean);
  const standing = CHOICES.find(([words]) => filterWords.includes(words))?.[0] ?? "";
  const others = filterWords.filter((each) => CHOICES.every(([words]) => words !== each));
  const choose = (/** @type {string} */ words) => write([...others, words].filter(Boolean).join(" "));
  return html`<section class="eval-matrix" aria-label="Cases">
    <div class="matrix-tools in-row">
      <span class="matrix-filter">
        ${h(Icon, { name: "search" })}
        ${textField(filter, write, {
          label: "Filter the cases",
          isCode: true,
          ref: box,
          type: "search",
          placeholder: "Filter: words, tag:…, group:…, target:…",
          onKeyDown: (/** @type {KeyboardEvent} */ event) => {
            if (event.key === "Escape") {
              event.preventDefault();
              event.stopPropagation();
              if (filter) write("");
              else box.current?.blur();
            } else if (event.key === "Enter" || event.key === "ArrowDown") {
              event.preventDefault();
              move(0, 0);
            }
          },
        })}
      </span>
      ${segmentControl({
        label: "Which cases",
        value: standing,
        choices: [
          { value: "", label: "All" },
          ...CHOICES.filter(([words, , shown]) => words === standing || counts[shown]).map(([value, label, shown]) => ({
            value,
            label: html`${label} <span class="number">${counts[shown]}</span>`,
          })),
        ],
        onChange: choose,
      })}
      <span class="shell-gap"></span>
      <span class="faint number" role="status">
        ${
          rows.length === run.matrix.length
            ? countOf(rows.length, "case")
            : `${rows.length} of ${countOf(run.matrix.length, "case")}`
        }
      </span>
      ${
        hasAnswers &&
        checkbox("Answers", isShowingAnswers, setWantsAnswers, {
          title: "What was answered, and how it differs from the first target's answer (a)",
        })
      }
      ${checkbox("Failures first", order === "worst", (isOn) => setOrder(isOn ? "worst" : "suite"), {
        title: "Failures first, or as the suite has them (o)",
      })}
    </div>
    ${
      rows.length
        ? html`<div class="matrix-scroll boxed">
              <table ref=${table} class=${isShowingAnswers ? "matrix has-answers" : "matrix"}>
                <thead>
                  <tr>
                    <th scope="col">Case</th>
                    ${targets.map(
                      (target) => html`<th key=${target} scope="col" title=${target}>
                        <span class="cut">${target}</span>
                      </th>`,
                    )}
                  </tr>
                </thead>
                <tbody>
                  ${rows.slice(0, most).map((row, index) =>
                    h(Row, {
                      key: row.case,
                      run: run.run,
                      row,
                      targets,
                      index,
                      column: index === at.row ? at.column : -1,
                      among,
                      hasAnswers: isShowingAnswers,
                    }),
                  )}
                </tbody>
              </table>
            </div>
            ${
              rows.length > most &&
              html`<p class="run-more">
                ${button(html`Show more: ${rows.length - most} are left`, () => setMost(most + 5 * PAGE))}
              </p>`
            }`
        : html`<p class="soft pad">${run.matrix.length ? "No case matches." : "There are no cases yet."}</p>`
    }
  </section>`;
}

/** Which cases are looked at, as far as it is not the usual. @typedef {{ filter?: string, order?: string }} Among */
/**
 * @typedef {{ run: string, row: MatrixRow, targets: readonly string[], index: number, column: number, among: Among,
 *   hasAnswers: boolean }} RowProps
 */

/** @param {string} filter @param {string} order @returns {Among} */
function orderOf(filter, order) {
  return { ...(filter && { filter }), ...(order === "suite" && { order }) };
}

/** `column` is where the keyboard is in this row, -1 for nowhere. */
const Row = memo(function Row(/** @type {RowProps} */ { run, row, targets, index, column, among, hasAnswers }) {
  const cells = targets.map((target) => row.cells.find((cell) => cell.target === target));
  const first = trialToShow(cells[0])?.answer ?? "";
  return html`<tr class=${column >= 0 ? "is-here" : ""}>
    <th scope="row">
      <span class="case-name wraps" dir="auto">${row.case}</span>
      ${row.group ? html`<span class="chip">${row.group}</span>` : null}
      ${row.tags.map((tag) => html`<span key=${tag} class="chip tag">${tag}</span>`)}
    </th>
    ${cells.map(
      (cell, place) => html`<td key=${targets[place]}>
        ${h(CellView, {
          run,
          name: row.case,
          target: targets[place],
          cell,
          place: `${index} ${place}`,
          isHere: place === column,
          among,
        })}
        ${hasAnswers ? h(CellAnswer, { cell, other: place ? first : "", otherName: targets[0] }) : null}
      </td>`,
    )}
  </tr>`;
});

/**
 * Why it did not pass, and the answer with what differs from that of the first target.
 * @param {{ cell: Cell | undefined, other: string, otherName: string }} props
 */
function CellAnswer({ cell, other, otherName }) {
  const trial = trialToShow(cell);
  if (!trial) return null;
  const isBad = ["failed", "error", "not graded"].includes(trialStanding(trial));
  const isSame = trial.answer !== "" && trial.answer === other;
  return html`<div class="cell-answer">
    ${isBad && trial.reason ? html`<p class="bad">${trial.reason}</p>` : null}
    ${
      isSame
        ? html`<p class="faint">The same answer as ${otherName}.</p>`
        : trial.answer
          ? html`<p class="soft" dir="auto" title=${trial.answer}>
              ${answerSpans(other, trial.answer).map((span, index) =>
                span.changed ? html`<mark key=${index}>${span.text}</mark>` : span.text,
              )}
            </p>`
          : null
    }
  </div>`;
}

/**
 * @param {{ run: string, name: string, target: string, cell: Cell | undefined, place: string, isHere: boolean, among:
 *   Among }} props
 */
function CellView({ run, name, target, cell, place, isHere, among }) {
  const standing = cellStanding(cell);
  const score = cellScore(cell);
  const words = cellWords(name, target, cell);
  const trials = cell?.trials ?? [];
  const reason = trials.find((trial) => trial.reason)?.reason ?? "";
  const inside = html`<span class="cell-mark" aria-hidden="true">${MARKS[standing]}</span>
    <span class="cell-score number">
      ${score === null ? (standing === "open" ? "" : standing) : formatScore(score)}
    </span>
    ${
      trials.length > 1 &&
      html`<span class="cell-trials" aria-hidden="true">
        ${trials.map(
          (trial) =>
            html`<i key=${trial.trial} class=${toneOf(trialStanding(trial))}>${MARKS[trialStanding(trial)]}</i>`,
        )}
      </span>`
    }
    ${
      trials.length && trials.every((trial) => trial.cached)
        ? html`<span class="cell-note faint" title="The answer was taken from an earlier request">cached</span>`
        : null
    }
    ${
      score === null
        ? null
        : html`<i class="cell-bar" aria-hidden="true">
            <b style=${{ width: `${Math.min(Math.max(score, 0), 1) * 100}%` }}></b>
          </i>`
    }`;
  const attributes = {
    class: `cell ${toneOf(standing)}`,
    "data-at": place,
    tabindex: isHere ? 0 : -1,
    title: reason ? `${words}. ${reason}` : words,
    "aria-label": words,
  };
  if (["open", "running"].includes(standing)) return h("span", { ...attributes, role: "img" }, inside);
  return h(
    "a",
    {
      ...attributes,
      href: hashOf({ view: "eval-case", id: run, case: name, target, trial: trialToOpen(cell), ...among }),
    },
    inside,
  );
}
