// @ts-check
/** The page's location as the hash of its address, and back. */

/**
 * @typedef {{ view: "traffic", filter: string }
 *   | { view: "costs", by: string, filter: string }
 *   | { view: "request", id: string, tab: string, against?: string }
 *   | { view: "session", name: string }
 *   | { view: "sessions" }
 *   | { view: "chat", filter: string, chat?: string }
 *   | { view: "evals", suite?: string, compare?: string }
 *   | { view: "eval", id: string, filter?: string, order?: string }
 *   | { view: "eval-case", id: string, case: string, target: string, trial: number, filter?: string, order?: string }
 *   | { view: "eval-compare", a: string, b: string, targetA?: string, targetB?: string }
 *   | { view: "eval-trend", suite: string }
 *   | { view: "runs", compare?: string }
 *   | { view: "run", id: string }
 *   | { view: "compare", a: string, b: string }} Route
 */

/** The tabs of a request; the first is the usual one. */
export const TABS = ["sections", "wire", "diff", "reply", "timeline", "losses", "headers"];

/** The tab of a plug-in's panel begins like this. */
export const PANEL = "panel-";

/** @param {string} hash @returns {Route} */
export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [place, id = "", tab = "", other = ""] = path.split("/").map(decode);
  if (place === "x" && id) return requestRoute(id, tab, new URLSearchParams(query));
  if (place === "sessions") return id ? { view: "session", name: id } : { view: "sessions" };
  if (place === "costs") return costsRoute(new URLSearchParams(query));
  if (place === "evals") return evalRoute(id, tab, other, new URLSearchParams(query));
  if (place === "runs" && id && tab === "compare" && other) return { view: "compare", a: id, b: other };
  if (place === "runs")
    return id ? { view: "run", id } : { view: "runs", compare: new URLSearchParams(query).get("compare") ?? "" };
  const filter = new URLSearchParams(query).get("filter") ?? "";
  return place === "chat" ? { view: "chat", filter, ...withoutEmpty({ chat: id }) } : { view: "traffic", filter };
}

/** @param {Route} route @returns {string} */
export function hashOf(route) {
  switch (route.view) {
    case "request":
      return (
        `#/x/${encodeURIComponent(route.id)}` +
        (route.tab === TABS[0] ? "" : `/${route.tab}`) +
        queryOf({ against: route.against ?? "" })
      );
    case "sessions":
      return "#/sessions";
    case "session":
      return `#/sessions/${encodeURIComponent(route.name)}`;
    case "chat":
      return `#/chat${route.chat ? `/${encodeURIComponent(route.chat)}` : ""}${queryOf({ filter: route.filter })}`;
    case "traffic":
      return `#/traffic${queryOf({ filter: route.filter })}`;
    case "costs":
      return `#/costs${queryOf({ by: route.by === "day" ? "" : route.by, filter: route.filter })}`;
    case "run":
      return `#/runs/${encodeURIComponent(route.id)}`;
    case "compare":
      return `#/runs/${encodeURIComponent(route.a)}/compare/${encodeURIComponent(route.b)}`;
    case "runs":
      return "#/runs" + (route.compare ? `?${new URLSearchParams({ compare: route.compare })}` : "");
    default:
      return evalHash(route);
  }
}

/** @param {string} id @param {string} tab @param {URLSearchParams} query @returns {Route} */
function requestRoute(id, tab, query) {
  const against = query.get("against") ?? "";
  const isTab = TABS.includes(tab) || tab.startsWith(PANEL);
  return { view: "request", id, tab: isTab ? tab : TABS[0], ...withoutEmpty({ against }) };
}

/** @param {URLSearchParams} query @returns {Route} */
function costsRoute(query) {
  return { view: "costs", by: query.get("by") || "day", filter: query.get("filter") ?? "" };
}

/**
 * Where the page is among evals. What is not said is not there, so that one place has one address.
 * @param {string} id
 * @param {string} tab
 * @param {string} other
 * @param {URLSearchParams} query
 * @returns {Route}
 */
function evalRoute(id, tab, other, query) {
  const param = (/** @type {string} */ name) => query.get(name) ?? "";
  if (!id) return { view: "evals", ...withoutEmpty({ suite: param("suite"), compare: param("compare") }) };
  if (id === "trend") return { view: "eval-trend", suite: param("suite") };
  const among = withoutEmpty({ filter: param("filter"), order: param("order") === "suite" ? "suite" : "" });
  if (tab === "case")
    return {
      view: "eval-case",
      id,
      case: param("case"),
      target: param("target"),
      trial: Number(param("trial")) || 0,
      ...among,
    };
  if (tab === "compare" && other)
    return { view: "eval-compare", a: id, b: other, ...withoutEmpty({ targetA: param("a"), targetB: param("b") }) };
  return { view: "eval", id, ...among };
}

/** @param {Extract<Route, { view: "evals" | "eval" | "eval-case" | "eval-compare" | "eval-trend" }>} route */
function evalHash(route) {
  switch (route.view) {
    case "eval":
      return (
        `#/evals/${encodeURIComponent(route.id)}` + queryOf({ filter: route.filter ?? "", order: route.order ?? "" })
      );
    case "eval-case":
      return (
        `#/evals/${encodeURIComponent(route.id)}/case` +
        queryOf({
          case: route.case,
          target: route.target,
          trial: route.trial ? String(route.trial) : "",
          filter: route.filter ?? "",
          order: route.order ?? "",
        })
      );
    case "eval-compare":
      return (
        `#/evals/${encodeURIComponent(route.a)}/compare/${encodeURIComponent(route.b)}` +
        queryOf({ a: route.targetA ?? "", b: route.targetB ?? "" })
      );
    case "eval-trend":
      return `#/evals/trend${queryOf({ suite: route.suite })}`;
    default:
      return `#/evals${queryOf({ suite: route.suite ?? "", compare: route.compare ?? "" })}`;
  }
}

/** The query of an address. @param {Record<string, string>} params */
function queryOf(params) {
  const query = String(new URLSearchParams(withoutEmpty(params)));
  return query ? `?${query}` : "";
}

/** What has words. @param {Record<string, string>} params @returns {Record<string, string>} */
function withoutEmpty(params) {
  return Object.fromEntries(Object.entries(params).filter(([, words]) => words));
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
