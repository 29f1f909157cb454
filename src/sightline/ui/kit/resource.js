// @ts-check
/** Values of the server, typed by their path and kept in step with it, also after a reconnect. */

import { useEffect, useMemo } from "../vendor/preact.js";
import { get, onReconnect, stopAll } from "./api.js";
import { Resource } from "./core/resource.js";

/** @import { ApiError } from "./api.js" */
/** @import { Follow } from "./core/resource.js" */
/** @template {string} P @typedef {import("./api-paths.d.ts").GetAnswer<P>} Answer */

/** @type {Follow} */
const NEVER = () => () => {};

/**
 * Follows what `subscribe` tells of, and asks once for all that comes within so many milliseconds; with `isAtRest` not
 * before nothing more has come for so long.
 * @param {(listener: () => void) => () => void} subscribe
 * @param {number} ms
 * @param {{ isAtRest?: boolean }} [options]
 * @returns {Follow}
 */
export function followTogether(subscribe, ms, { isAtRest = false } = {}) {
  return (again) => {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const stop = subscribe(() => {
      if (timer !== undefined && !isAtRest) return;
      clearTimeout(timer);
      timer = setTimeout(() => ((timer = undefined), again()), ms);
    });
    return stopAll(stop, () => clearTimeout(timer));
  };
}

/**
 * A value that several views share; it is fetched and followed once `start` is called.
 * @template {string} P
 * @param {P} path
 * @param {Follow} [follow]
 * @returns {Resource<Answer<P>, ApiError>}
 */
export function resource(path, follow = NEVER) {
  return new Resource(
    () => get(path),
    (again) => stopAll(follow(again), onReconnect(again)),
  );
}

/**
 * A value for as long as a component is shown. Another path or version begins without a value.
 * @template {string} P
 * @param {P} path
 * @param {Follow} [follow]
 * @param {unknown} [version]
 * @returns {{ value: Answer<P> | null, trouble: ApiError | null, again: () => void }}
 */
export function useResource(path, follow = NEVER, version = "") {
  const found = useMemo(() => resource(path, follow), [path, version]);
  useEffect(() => found.start(), [found]);
  return { value: found.value.value, trouble: found.trouble.value, again: () => void found.refresh() };
}
