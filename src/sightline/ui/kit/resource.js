// @ts-check
/** Values of the server, typed by their path and kept in step with it, also after a reconnect. */

import { useEffect, useMemo } from "../vendor/preact.js";
import { get, onReconnect } from "./api.js";
import { Resource } from "./core/resource.js";

/** @import { ApiError } from "./api.js" */
/** @import { Follow } from "./core/resource.js" */
/** @template {string} P @typedef {import("./api-paths.d.ts").GetAnswer<P>} Answer */

/** @type {Follow} */
const NEVER = () => () => {};

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
    (again) => {
      const stops = [follow(again), onReconnect(again)];
      return () => stops.forEach((stop) => stop());
    },
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
