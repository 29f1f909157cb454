// @ts-check
/** Runs of evals as the server has them, live, and what can be done about them. */

import { get, onAnnounced, post, put } from "../../kit/api.js";
import { followTogether, useResource } from "../../kit/resource.js";
import { toastError } from "../../kit/toast.js";
import { useEffect } from "../../vendor/preact.js";
import { mode, setMode } from "../interception/feed.js";
import { held, onHeld } from "../traffic/feed.js";

/** @import { SuiteChecked, SuiteOpened } from "../../api-types.d.ts" */
/** @import { Eval } from "./core/evals.js" */

/** What has changed is asked for at most this often: a run of many cases tells of each. */
const OFTEN_MS = 400;
/** A run that another program drives is not announced: it is looked at this often. */
const LOOK_MS = 2000;

/** @param {string} run @returns {`/api/evals/${string}`} */
export function pathOf(run) {
  return `/api/evals/${encodeURIComponent(run)}`;
}

/**
 * @template {string} P
 * @param {P} path
 * @param {Record<string, string>} params what is empty is left out
 * @returns {P | `${P}?${string}`}
 */
function withQuery(path, params) {
  const query = String(new URLSearchParams(Object.entries(params).filter(([, words]) => words)));
  return query ? `${path}?${query}` : path;
}

/**
 * Calls together what is announced in a burst; the last announcement is never lost.
 * @param {(run: string) => boolean} isMine
 * @returns {(again: () => void) => () => void}
 */
function throttleEvents(isMine) {
  return followTogether((changed) => onAnnounced("eval", (event) => isMine(event.run) && changed()), OFTEN_MS);
}

/**
 * Fetch again and again while the page is visible.
 * @param {boolean} isWanted
 * @param {() => void} again
 * @param {number} ms
 */
function usePolling(isWanted, again, ms) {
  useEffect(() => {
    if (!isWanted) return undefined;
    const timer = setInterval(() => document.hidden || again(), ms);
    return () => clearInterval(timer);
  }, [isWanted, ms]);
}

/** The newest runs, live; one that is begun elsewhere shows up too. @param {string} suite @param {number} limit */
export function useEvals(suite, limit) {
  const path = withQuery("/api/evals", { suite, limit: String(limit) });
  const followed = useResource(
    path,
    throttleEvents(() => true),
  );
  usePolling(true, followed.again, LOOK_MS * 2);
  return followed;
}

/**
 * The run that was looked at last: who goes from case to case, or back, need not wait for all of it each time.
 * @type {Eval | null}
 */
let lastSeen = null;

/** One run, live. @param {string} id */
export function useEval(id) {
  const followed = useResource(
    pathOf(id),
    throttleEvents((run) => run === id),
  );
  if (followed.value) lastSeen = followed.value;
  const value = followed.value ?? (lastSeen?.run === id && !followed.trouble ? lastSeen : null);
  usePolling(value?.state === "running" && !value.is_here, followed.again, LOOK_MS);
  return { ...followed, value };
}

/** One case of a run, live. @param {string} id @param {string} name @param {string} target @param {number} trial */
export function useEvalCase(id, name, target, trial) {
  const path = withQuery(`${pathOf(id)}/case`, { case: name, target, trial: String(trial) });
  const followed = useResource(
    path,
    throttleEvents((run) => run === id),
  );
  usePolling(["running", "waiting"].includes(followed.value?.status ?? ""), followed.again, LOOK_MS);
  return followed;
}

/** Two runs on the same cases. @param {string} a @param {string} b @param {string} targetA @param {string} targetB */
export function useComparison(a, b, targetA, targetB) {
  const path = withQuery("/api/evals/compare", { a, b, target_a: targetA, target_b: targetB });
  return useResource(
    path,
    throttleEvents((run) => run === a || run === b),
  );
}

/** A suite over its runs. @param {string} suite */
export function useTrend(suite) {
  return useResource(
    withQuery("/api/evals/trend", { suite }),
    throttleEvents(() => true),
  );
}

/**
 * Tell a run something; the run as it is then, null where it was not taken. What is wrong is said.
 * @param {string} path
 * @param {unknown} body
 * @returns {Promise<Eval | null>}
 */
async function tell(path, body) {
  try {
    return await post(path, body);
  } catch (error) {
    toastError(error);
    return null;
  }
}

/**
 * Run cases again, in a run of its own where the suite was changed; null for all that did not pass, no target for all
 * of the run's.
 * @param {string} run
 * @param {readonly string[] | null} cases
 * @param {string} [target]
 */
export const rerun = (run, cases, target = "") =>
  tell(`${pathOf(run)}/rerun`, { ...(cases && { cases }), ...(target && { target }) });

/**
 * Run a case again, and hold its request before it leaves: `opened` is called with the exchange as soon as it is held.
 * @param {string} run
 * @param {string} name
 * @param {string} target
 * @param {(exchange: string) => void} opened
 */
export async function rerunHeld(run, name, target, opened) {
  if (mode.value !== "every") await setMode("next");
  const known = new Set(held.value.map((line) => line.id));
  const now = await rerun(run, [name], target);
  if (!now) return null;
  const isMine = (/** @type {{ id: string, session?: string | null }} */ line) =>
    line.session === `eval:${now.run}` && !known.has(line.id);
  const waiting = held.value.find(isMine);
  if (waiting) opened(waiting.id);
  else {
    const stop = onHeld((line) => {
      if (!isMine(line)) return;
      stop();
      opened(line.id);
    });
  }
  return now;
}

/** The suites of the configured folder. */
export const useSuites = () => useResource("/api/evals/suites");

/** One suite with its text, and the targets for it. @param {string} file @returns {Promise<SuiteOpened>} */
export const openSuite = (file) => get(withQuery("/api/evals/suite", { file }));

/**
 * Write a whole suite; with `dry` only check it. One with problems is not written.
 * @param {{ file: string, yaml: string, sha256?: string, dry?: boolean }} suite
 * @returns {Promise<SuiteChecked>}
 */
export const writeSuite = (suite) => put("/api/evals/suite", suite);

/** What is under way is finished. @param {string} run */
export const stopEval = (run) => tell(`${pathOf(run)}/stop`, {});

/**
 * Where the pictures and files of a case are, with `#` for the number; `turn` is one of a conversation that was held
 * live.
 * @param {string} run
 * @param {{ case: string, target: string, trial: number }} shown
 * @param {number} [turn]
 */
export const mediaOf = (run, shown, turn) =>
  withQuery(`${pathOf(run)}/case/media/#`, {
    case: shown.case,
    target: shown.target,
    trial: String(shown.trial),
    turn: turn === undefined ? "" : String(turn),
  });
