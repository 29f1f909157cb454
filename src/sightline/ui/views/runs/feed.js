// @ts-check
/** Runs as the server has them, live, and what can be done about them. */

import { onAnnounced, post } from "../../kit/api.js";
import { useResource } from "../../kit/resource.js";
import { attempt } from "../../kit/toast.js";

/** @import { ApprovalShown } from "../../api-types.d.ts" */
/** @import { Decision, Run } from "./core/runs.js" */

/** One run, live. @param {string} id */
export function useRun(id) {
  const follow = (/** @type {() => void} */ again) => onAnnounced("run", (event) => event.run === id && again());
  const { value, trouble, again } = useResource(pathOf(id), follow);
  return { run: /** @type {Run | null} */ (value), trouble, again };
}

/** The newest runs, live. @param {number} limit */
export function useRuns(limit) {
  return useResource(`/api/runs?limit=${limit}`, (again) => onAnnounced("run", again));
}

/** What is allowed for all runs; it is fetched again when `version` changes. @param {unknown} version */
export function useApprovals(version) {
  const { value, trouble, again } = useResource("/api/approvals", undefined, version);
  return { approvals: value, trouble, again };
}

/** Ask about such calls again; whether that was taken. @param {ApprovalShown} approval */
export const revokeApproval = ({ tool, place, arguments: patterns }) =>
  attempt(() => post("/api/approvals/forget", { tool, place, arguments: patterns }));

/** @param {string} id @returns {`/api/runs/${string}`} */
function pathOf(id) {
  return `/api/runs/${encodeURIComponent(id)}`;
}

/** Tell a run something; whether it was taken. @param {string} id @param {string} what @param {unknown} body */
const postToRun = (id, what, body) => attempt(() => post(`${pathOf(id)}/${what}`, body));

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
