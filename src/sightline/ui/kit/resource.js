// @ts-check
/**
 * A value of the server that is kept in step: fetched when it is first needed, fetched again when `follow` says that it
 * changed and after each reconnect. One request is under way at a time, and the latest answer wins.
 */

import { signal, useEffect, useMemo } from "../vendor/preact.js";
import { ApiError, get, onReconnect } from "./api.js";

/** @import { Signal } from "../vendor/preact.js" */
/** @template {string} P @typedef {import("./api-paths.d.ts").GetAnswer<P>} Answer */

/**
 * Subscribes to changes: calls `again` at each, and returns what ends it.
 * @typedef {(again: () => void) => () => void} Follow
 */

/** @type {Follow} */
const NEVER = () => () => {};

/** @template T */
export class Resource {
  /** @param {string} path @param {Follow} follow */
  constructor(path, follow) {
    this.path = path;
    /** Null until it has come; an error leaves the last value. @type {Signal<T | null>} */
    this.value = signal(/** @type {T | null} */ (null));
    /** Why the last request failed. @type {Signal<ApiError | null>} */
    this.trouble = signal(/** @type {ApiError | null} */ (null));
    this._follow = follow;
    this._isStopped = false;
    this._isBehind = false;
    /** @type {Promise<void> | null} */
    this._fetching = null;
    /** Fetch it again; resolves once a request that began after this call is answered. */
    this.refresh = () => {
      this._isBehind = true;
      this._fetching ??= this._catchUp().finally(() => (this._fetching = null));
      return this._fetching;
    };
  }

  /** Fetch it, and follow it from now on. @returns {() => void} ends it */
  start() {
    this._isStopped = false;
    const again = () => void this.refresh();
    const stops = [this._follow(again), onReconnect(again)];
    again();
    return () => {
      this._isStopped = true;
      for (const stop of stops) stop();
    };
  }

  async _catchUp() {
    await null; // calls of one moment share one request
    while (this._isBehind && !this._isStopped) {
      this._isBehind = false;
      try {
        const answer = /** @type {T} */ (await get(this.path));
        if (this._isStopped) return;
        this.value.value = answer;
        this.trouble.value = null;
      } catch (error) {
        if (this._isStopped) return;
        this.trouble.value = error instanceof ApiError ? error : new ApiError("page", String(error));
      }
    }
  }
}

/**
 * A value that several views share; it is fetched and followed once `start` is called.
 * @template {string} P
 * @param {P} path
 * @param {Follow} [follow]
 * @returns {Resource<Answer<P>>}
 */
export function resource(path, follow = NEVER) {
  return new Resource(path, follow);
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
