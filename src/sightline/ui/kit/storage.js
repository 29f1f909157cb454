// @ts-check
/** What this browser, or this tab of it, keeps for the page. A browser that keeps nothing starts afresh each time. */

/** @typedef {"localStorage" | "sessionStorage"} Place the browser, or the tab */

/** What is kept under a name; empty where nothing is. @param {string} name @param {Place} [place] */
export function readStored(name, place = "localStorage") {
  try {
    return globalThis[place].getItem(`sightline.${name}`) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} name @param {string} value @param {Place} [place] */
export function store(name, value, place = "localStorage") {
  try {
    globalThis[place].setItem(`sightline.${name}`, value);
  } catch {
    // Then it is as usual next time.
  }
}

/**
 * The JSON that is kept under a name; an empty object where there is none.
 * @param {string} name
 * @param {Place} place
 */
export function readStoredJson(name, place) {
  try {
    return JSON.parse(readStored(name, place) || "{}");
  } catch {
    return {};
  }
}
