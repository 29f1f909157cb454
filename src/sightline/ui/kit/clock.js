// @ts-check
/** The current time for components that show it: they are drawn again with each tick. */

import { useEffect, useState } from "../vendor/preact.js";

/**
 * The time in seconds. The component is drawn again every `ms` milliseconds while `isRunning`.
 * @param {boolean} [isRunning]
 * @param {number} [ms]
 */
export function useNow(isRunning = true, ms = 1000) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), ms);
    return () => clearInterval(timer);
  }, [isRunning, ms]);
  return Date.now() / 1000;
}
