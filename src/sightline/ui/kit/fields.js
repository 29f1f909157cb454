// @ts-check
/** Handlers of fields. */

/** Calls `run` with what a field says. @param {(value: string) => unknown} run */
export function onValue(run) {
  return (/** @type {Event} */ event) => void run(/** @type {HTMLInputElement} */ (event.target).value);
}
