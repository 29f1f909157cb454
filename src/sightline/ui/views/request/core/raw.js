// @ts-check
/** Bodies that passed as they were: what each is, the parts of a form, and the requests of a batch. */

import { isJson } from "../../../kit/core/json.js";

/** @typedef {"json" | "batch" | "form" | "events" | "text" | "picture" | "audio" | "binary"} RawKind */
/** @typedef {{ name: string, file: string, type: string, data: Uint8Array }} FormPart */
/** @typedef {{ id: string, title: string, text: string }} BatchItem one request of a batch, as JSON */

/** Pictures that a browser draws without running anything in them: SVG is not among them. */
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

/** @param {string} mediaType @returns {string} without its parameters, in lower case */
export function essence(mediaType) {
  return mediaType.split(";")[0].trim().toLowerCase();
}

/**
 * What a body is, by its media type, and where that says nothing by its bytes.
 * @param {string} mediaType
 * @param {Uint8Array} data
 * @param {boolean} isWhole whether all of it is here: half a picture or half a document is not shown as one
 * @returns {RawKind}
 */
export function kindOf(mediaType, data, isWhole) {
  const type = essence(mediaType);
  if (PICTURES.includes(type)) return isWhole ? "picture" : "binary";
  if (type.startsWith("audio/")) return isWhole ? "audio" : "binary";
  if (type === "multipart/form-data" && boundaryOf(mediaType)) return "form";
  const text = textOf(data, isWhole);
  if (text === null) return "binary";
  if (type === "text/event-stream") return "events";
  if (batchOf(text)) return "batch";
  return isWhole && /^\s*[[{]/.test(text) && isJson(text) ? "json" : "text";
}

/**
 * The bytes as text; null where they are none.
 * @param {Uint8Array} data
 * @param {boolean} isWhole
 * @returns {string | null}
 */
export function textOf(data, isWhole) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data, { stream: !isWhole });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/**
 * The requests of a batch: the lines of OpenAI's and Google's files, or the list that Anthropic's call has. Null where
 * the text is no batch.
 * @param {string} text
 * @returns {BatchItem[] | null}
 */
export function batchOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  if (!lines.length || !lines[0].trimStart().startsWith("{")) return null;
  const whole = valueOf(text);
  if (whole && Array.isArray(whole.requests) && whole.requests.every(isRequest)) return whole.requests.map(itemOf);
  const values = lines.map(valueOf);
  return values.every(isRequest) ? values.map(itemOf) : null;
}

/** @param {string} text @returns {any} an object, or null */
function valueOf(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** @param {any} value */
function isRequest(value) {
  const isNamed = typeof value?.custom_id === "string" || typeof value?.key === "string";
  return isNamed && [value.body, value.params, value.request, value.response, value.result].some(Boolean);
}

/** @param {any} value @returns {BatchItem} */
function itemOf(value) {
  const inner = value.body ?? value.params ?? value.request ?? value.response?.body ?? value.response ?? value.result;
  const model = inner?.model ?? inner?.message?.model ?? "";
  const call = value.url ? `${value.method ?? "POST"} ${value.url}` : "";
  const status = value.response?.status_code ?? value.result?.type ?? "";
  return {
    id: value.custom_id ?? value.key,
    title: [call, model, status].filter(Boolean).join(" · "),
    text: JSON.stringify(inner),
  };
}

/**
 * The events of a stream, as Google's interactions and others send them; what is cut off at its end is left out.
 * @param {string} text
 * @returns {{ name: string, text: string }[]}
 */
export function eventsOf(text) {
  return text
    .replaceAll("\r\n", "\n")
    .split("\n\n")
    .map((frame) => {
      const lines = frame.split("\n");
      const field = (/** @type {string} */ name) =>
        lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
      const data = field("data").join("\n");
      const value = valueOf(data);
      return { name: field("event")[0] ?? value?.event_type ?? value?.type ?? "", text: data };
    })
    .filter((event) => event.text);
}

/** @param {string} mediaType */
function boundaryOf(mediaType) {
  const found = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(mediaType);
  return found ? (found[1] ?? found[2]) : "";
}

/**
 * The parts of a form. What is not whole at its end is left out.
 * @param {string} mediaType
 * @param {Uint8Array} data
 * @returns {FormPart[]}
 */
export function partsOf(mediaType, data) {
  // One character for each byte, so that places in the text are places in the bytes.
  const text = Array.from({ length: Math.ceil(data.length / 32768) }, (_, index) =>
    String.fromCharCode(...data.subarray(index * 32768, (index + 1) * 32768)),
  ).join("");
  const mark = `--${boundaryOf(mediaType)}`;
  /** @type {FormPart[]} */
  const parts = [];
  let at = text.indexOf(mark);
  while (at >= 0) {
    const start = at + mark.length + 2;
    const next = text.indexOf(`\r\n${mark}`, start - 2);
    const body = text.indexOf("\r\n\r\n", start - 2);
    if (next < 0 || body < 0 || body > next) break;
    const head = text.slice(start, body);
    parts.push({
      name: /name="([^"]*)"/i.exec(head)?.[1] ?? "",
      file: /filename="([^"]*)"/i.exec(head)?.[1] ?? "",
      type: /content-type:\s*([^\r\n]+)/i.exec(head)?.[1] ?? "",
      data: data.subarray(body + 4, next),
    });
    at = next + 2;
  }
  return parts;
}

/** A size in words. @param {number} size */
export function sizeWords(size) {
  if (size < 1024) return `${size} bytes`;
  const steps = ["KiB", "MiB", "GiB"];
  let [value, step] = [size / 1024, 0];
  while (value >= 1024 && step < 2) [value, step] = [value / 1024, step + 1];
  return `${value.toFixed(value < 10 ? 1 : 0)} ${steps[step]}`;
}
