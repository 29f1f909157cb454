// @ts-check
/**
 * A value that is fetched and kept in step: fetched again when `follow` says that it changed. One request is under way
 * at a time, and a change that comes meanwhile is fetched after it, so that the latest answer wins.
 */

import { signal } from "../../vendor/preact.js";

/** @import { Signal } from "../../vendor/preact.js" */

/**
 * Subscribes to changes: calls `again` at each, and returns what ends it.
 * @typedef {(again: () => void) => () => void} Follow
 */

/** @template T @template {Error} E */
export class Resource {
  /** @param {() => Promise<T>} ask @param {Follow} follow */
  constructor(ask, follow) {
    /** Null until it has come; an error leaves the last value. @type {Signal<T | null>} */
    this.value = signal(/** @type {T | null} */ (null));
    /** Why the last request failed; null where it did not. @type {Signal<E | null>} */
    this.trouble = signal(/** @type {E | null} */ (null));
    this._ask = ask;
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
    const stop = this._follow(again);
    again();
    return () => {
      this._isStopped = true;
      stop();
    };
  }

  async _catchUp() {
    await null; // calls of one moment share one request
    while (this._isBehind && !this._isStopped) {
      this._isBehind = false;
      try {
        const answer = await this._ask();
        if (this._isStopped) return;
        this.value.value = answer;
        this.trouble.value = null;
      } catch (error) {
        if (this._isStopped) return;
        this.trouble.value = /** @type {E} */ (error);
      }
    }
  }
}
