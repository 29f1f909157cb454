// @ts-check
/** Where the page is, as the hash of its address, and back. */

/** @typedef {{ view: "traffic", filter: string } | { view: "request", id: string, tab: string } | { view: "chat" | "evals" }} Route */

/** The tabs of a request; the first is the usual one. */
export const TABS = ["sections", "wire", "diff", "reply", "timeline", "losses"];

/**
 * @param {string} hash
 * @returns {Route}
 */
export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [place, id = "", tab = ""] = path.split("/").map(decoded);
  if (place === "x" && id) return { view: "request", id, tab: TABS.includes(tab) ? tab : TABS[0] };
  if (place === "chat" || place === "evals") return { view: place };
  return { view: "traffic", filter: new URLSearchParams(query).get("filter") ?? "" };
}

/**
 * @param {Route} route
 * @returns {string}
 */
export function hashOf(route) {
  switch (route.view) {
    case "request":
      return `#/x/${encodeURIComponent(route.id)}` + (route.tab === TABS[0] ? "" : `/${route.tab}`);
    case "traffic":
      return "#/traffic" + (route.filter ? `?${new URLSearchParams({ filter: route.filter })}` : "");
    default:
      return `#/${route.view}`;
  }
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
