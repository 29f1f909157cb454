// @ts-check
/** The server's API: JSON requests, typed by path, and the stream of facts. */

import { addressOf, begun } from "./events.js";

export {
  addressOf,
  connect,
  connection,
  disconnect,
  isExample,
  onAnnounced,
  onFact,
  onKinds,
  onReconnect,
  retry,
  stopAll,
} from "./events.js";
/** @typedef {import("./events.js").Fact} Fact */

/** A refusal with the server's own words; `hint` says what to do next. */
export class ApiError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {string} hint
   * @param {number} status 0 where no answer came
   * @param {any} details what else the server says of it
   */
  constructor(code, message, hint = "", status = 0, details = null) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.hint = hint;
    this.status = status;
    this.details = details;
  }
}

/**
 * @template {string} P
 * @param {P} path
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<import("./api-paths.d.ts").GetAnswer<P>>}
 */
export async function get(path, options = {}) {
  return (await fetchOk(path, { signal: options.signal })).json();
}

/**
 * @template {string} P
 * @param {P} path
 * @param {unknown} body
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<import("./api-paths.d.ts").PostAnswer<P>>}
 */
export async function post(path, body, options = {}) {
  return sendJson("POST", path, body, options);
}

/**
 * @template {string} P
 * @param {P} path
 * @param {unknown} body
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<import("./api-paths.d.ts").PutAnswer<P>>}
 */
export async function put(path, body, options = {}) {
  return sendJson("PUT", path, body, options);
}

/** @param {string} path @returns {Promise<any>} */
export async function remove(path) {
  const text = await (await fetchOk(path, { method: "DELETE" })).text();
  return text ? JSON.parse(text) : null;
}

/**
 * A file as it is.
 * @param {string} path
 * @param {Blob} file
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<any>}
 */
export async function upload(path, file, options = {}) {
  const headers = { "content-type": "application/octet-stream" };
  return (await fetchOk(path, { method: "POST", headers, body: file, signal: options.signal })).json();
}

/**
 * The exact bytes of a body.
 * @param {string} path
 * @param {{ signal?: AbortSignal }} [options]
 * @returns {Promise<Uint8Array>}
 */
export async function bytes(path, options = {}) {
  return new Uint8Array(await (await fetchOk(path, { signal: options.signal })).arrayBuffer());
}

/** A file that the server makes, as it answers. @param {string} path @param {unknown} body */
export async function postForFile(path, body) {
  return fetchOk(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** @param {string} method @param {string} path @param {unknown} body @param {{ signal?: AbortSignal }} options */
async function sendJson(method, path, body, options) {
  const headers = { "content-type": "application/json" };
  const answer = await fetchOk(path, { method, headers, body: JSON.stringify(body), signal: options.signal });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** @param {string} path @param {RequestInit} options */
async function fetchOk(path, options) {
  await begun; // nothing is asked for before facts flow, or fail to, so that nothing can happen in between
  let answer;
  try {
    answer = await fetch(addressOf(path), { ...options, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("unreachable", "Sightline does not respond.", "Check that it is still running.");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().then(
    (body) => body?.error,
    () => null,
  );
  throw new ApiError(
    problem?.code ?? "http",
    problem?.message ?? `HTTP ${answer.status}`,
    problem?.hint ?? "",
    answer.status,
    problem?.details ?? null,
  );
}
