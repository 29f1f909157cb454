// @ts-check
/** Where the page is, as the hash of its address, and back. */

/** @typedef {{ view: "traffic", filter: string } | { view: "request", id: string, tab: string } | { view: "chat", filter: string } | { view: "evals" } | { view: "runs", compare?: string } | { view: "run", id: string } | { view: "compare", a: string, b: string }} Route */

/** The tabs of a request; the first is the usual one. */
export const TABS = ["sections", "wire", "diff", "reply", "timeline", "losses"];

/**
 * @param {string} hash
 * @returns {Route}
 */
export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [place, id = "", tab = "", other = ""] = path.split("/").map(decoded);
  if (place === "x" && id) return { view: "request", id, tab: TABS.includes(tab) ? tab : TABS[0] };
  if (place === "evals") return { view: place };
  if (place === "runs" && id && tab === "compare" && other) return { view: "compare", a: id, b: other };
  if (place === "runs") return id ? { view: "run", id } : { view: "runs", compare: new URLSearchParams(query).get("compare") ?? "" };
  return { view: place === "chat" ? "chat" : "traffic", filter: new URLSearchParams(query).get("filter") ?? "" };
}

/**
 * @param {Route} route
 * @returns {string}
 */
export function hashOf(route) {
  switch (route.view) {
    case "request":
      return `#/x/${encodeURIComponent(route.id)}` + (route.tab === TABS[0] ? "" : `/${route.tab}`);
    case "chat":
    case "traffic":
      return `#/${route.view}` + (route.filter ? `?${new URLSearchParams({ filter: route.filter })}` : "");
    case "run":
      return `#/runs/${encodeURIComponent(route.id)}`;
    case "compare":
      return `#/runs/${encodeURIComponent(route.a)}/compare/${encodeURIComponent(route.b)}`;
    case "runs":
      return "#/runs" + (route.compare ? `?${new URLSearchParams({ compare: route.compare })}` : "");
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
