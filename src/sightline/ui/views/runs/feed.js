// @ts-check
/** Runs as the server has them: one that is watched is fetched anew whenever it is announced to have changed. */

import { get, onAnnounced, onReconnect, post } from "../../kit/api.js";
import { toastError } from "../../kit/toast.js";
import { useEffect, useRef, useState } from "../../vendor/preact.js";

/** @import { Decision, Run } from "./core/runs.js" */
/** @typedef {import("../../api-types.d.ts").RunBrief} RunBrief */
/** @typedef {import("../../api-types.d.ts").ApprovalShown} ApprovalShown */

/**
 * What `ask` answers, asked again when told to: one question at a time, and the latest is never missed.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(again: () => void) => () => void} follow
 * @param {readonly unknown[]} inputs
 */
export function useFollowed(ask, follow, inputs) {
  const [value, setValue] = useState(/** @type {T | null} */ (null));
  const [trouble, setTrouble] = useState(
    /** @type {{ message: string, hint?: string, status?: number } | null} */ (null),
  );
  const [asked, setAsked] = useState(0);
  const answered = useRef(0);
  useEffect(() => {
    let isThere = true;
    let isAsking = false;
    let isMissed = false;
    const again = async () => {
      isMissed = isAsking;
      if (isAsking) return;
      isAsking = true;
      try {
        const response = await ask();
        if (isThere) (setValue(() => response), setTrouble(null));
      } catch (error) {
        if (isThere) setTrouble(/** @type {Error & { hint?: string }} */ (error));
      }
      isAsking = false;
      if (isMissed && isThere) void again();
    };
    // What is only asked again stays in sight until the new answer comes.
    if (answered.current === asked) setValue(null);
    answered.current = asked;
    void again();
    const stop = [follow(() => void again()), onReconnect(() => void again())];
    return () => {
      isThere = false;
      for (const each of stop) each();
    };
  }, [...inputs, asked]);
  return { value, trouble, again: () => setAsked((count) => count + 1) };
}

/** One run, live. @param {string} id */
export function useRun(id) {
  const followed = useFollowed(
    () => /** @type {Promise<Run>} */ (get(pathOf(id))),
    (again) => onAnnounced("run", (event) => event.run === id && again()),
    [id],
  );
  return { run: followed.value, trouble: followed.trouble, again: followed.again };
}

/** The newest runs, live. @param {number} limit */
export function useRuns(limit) {
  return useFollowed(
    () => /** @type {Promise<RunBrief[]>} */ (get(`/api/runs?limit=${limit}`)),
    (again) => onAnnounced("run", again),
    [limit],
  );
}

/** What is allowed for all runs; it is looked up again when `version` changes. @param {unknown} version */
export function useApprovals(version) {
  const followed = useFollowed(
    () => /** @type {Promise<ApprovalShown[]>} */ (get("/api/approvals")),
    () => () => {},
    [version],
  );
  return { approvals: followed.value, trouble: followed.trouble, again: followed.again };
}

/** Ask about such calls again; whether that was taken. @param {ApprovalShown} approval */
export async function revokeApproval({ tool, place, arguments: patterns }) {
  try {
    await post("/api/approvals/forget", { tool, place, arguments: patterns });
    return true;
  } catch (error) {
    toastError(error);
    return false;
  }
}

/** @param {string} id */
function pathOf(id) {
  return `/api/runs/${encodeURIComponent(id)}`;
}

/**
 * Tell a run something; whether it was taken. What is wrong is said.
 * @param {string} id
 * @param {string} what
 * @param {unknown} body
 */
async function postToRun(id, what, body) {
  try {
    await post(`${pathOf(id)}/${what}`, body);
    return true;
  } catch (error) {
    toastError(error);
    return false;
  }
}

/** @param {string} id @param {Record<string, Decision>} decisions */
export const decide = (id, decisions) => postToRun(id, "decide", { decisions });
/** @param {string} id @param {boolean} goesOn */
export const confirmLimit = (id, goesOn) => postToRun(id, "confirm", { goes_on: goesOn });
/** @param {string} id @param {boolean} now at once, or after the step */
export const stopRun = (id, now) => postToRun(id, "stop", { now });
/** @param {string} id @param {Record<string, "again" | "skip">} midFlight */
export const resumeRun = (id, midFlight) => postToRun(id, "resume", { mid_flight: midFlight });
/** @param {string} id @param {boolean} on */
export const setStepping = (id, on) => postToRun(id, "step", { on });
