// @ts-check
/** Which files can be attached to a question: their kinds and sizes, and why others are refused. */

import { countOf } from "../../../kit/core/format.js";

/**
 * `data` is base64, as it will be sent.
 * @typedef {{ name: string, media_type: string, size: number, kind: "image" | "document" | "audio" | "text", data:
 *   string }} Item
 */
/** @typedef {{ name: string, type: string, size: number }} Candidate */

export const MOST = 20;
export const LARGEST = 20 * 1024 * 1024;
export const LARGEST_TOGETHER = 40 * 1024 * 1024;

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const AUDIO = ["audio/wav", "audio/mpeg", "audio/mp4", "audio/ogg", "audio/flac", "audio/webm"];
/** Kinds by the ending of the name, where the browser does not know them. @type {Record<string, string>} */
const ENDINGS = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  wav: "audio/wav",
  mp3: "audio/mpeg",
  m4a: "audio/mp4",
  ogg: "audio/ogg",
  flac: "audio/flac",
  pdf: "application/pdf",
  json: "application/json",
  csv: "text/csv",
  md: "text/markdown",
  html: "text/html",
  xml: "text/xml",
};
/** What browsers call some of them. @type {Record<string, string>} */
const OTHER_NAMES = { "image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav" };
/** Text by nature, whatever the browser calls it. */
const TEXT_ENDINGS = new Set(
  [
    "txt log md rst tex csv tsv json jsonl yaml yml toml ini cfg conf xml html htm css scss js mjs cjs ts tsx",
    "jsx py pyi rb go rs java kt kts c h cc cpp hpp cs swift php pl lua r sql sh bash zsh ps1 bat dockerfile",
    "makefile gitignore env diff patch vue svelte proto graphql tf",
  ].flatMap((line) => line.split(" ")),
);
const TEXT_TYPES =
  /^(?:text\/|application\/(?:json|xml|x-yaml|yaml|toml|javascript|typescript|x-sh|sql|graphql|x-httpd-php|x-ndjson))/;

/** What the picker offers. */
export const ACCEPTED = [
  ...IMAGES,
  ...AUDIO,
  "application/pdf",
  "text/*",
  ...[...TEXT_ENDINGS].map((ending) => `.${ending}`),
].join(",");

/**
 * The kind and the type that will be said of it; null for what no model takes.
 * @param {Candidate} file
 * @returns {{ kind: Item["kind"], media_type: string } | null}
 */
export function kindOf(file) {
  const ending = /(?:^|\.)([^.]+)$/.exec(file.name.toLowerCase())?.[1] ?? "";
  const type = file.type.split(";")[0].trim().toLowerCase() || (ENDINGS[ending] ?? "");
  const known = OTHER_NAMES[type] ?? type;
  if (IMAGES.includes(known)) return { kind: "image", media_type: known };
  if (AUDIO.includes(known)) return { kind: "audio", media_type: known };
  if (known === "application/pdf") return { kind: "document", media_type: known };
  // No model draws an SVG, but it can be read as text.
  if (known === "image/svg+xml" || TEXT_TYPES.test(known) || TEXT_ENDINGS.has(ending))
    return { kind: "text", media_type: known.startsWith("text/") && known !== "text/html" ? known : "text/plain" };
  return null;
}

/**
 * Which of these files can be attached beside those that are there already, and why the others cannot.
 * @template {Candidate} F
 * @param {readonly F[]} files
 * @param {readonly { size: number }[]} already
 * @returns {{ taken: { file: F, kind: Item["kind"], media_type: string }[], refused: { name: string, why: string, hint:
 *   string }[] }}
 */
export function sortFiles(files, already = []) {
  let total = already.reduce((sum, item) => sum + item.size, 0);
  /** @type {{ file: F, kind: Item["kind"], media_type: string }[]} */
  const taken = [];
  /** @type {{ name: string, why: string, hint: string }[]} */
  const refused = [];
  for (const file of files) {
    const known = kindOf(file);
    const refuse = (/** @type {string} */ why, /** @type {string} */ hint) =>
      refused.push({ name: file.name || "What was pasted", why, hint });
    if (!known)
      refuse(
        `is of a kind that models do not accept${file.type ? ` (${file.type})` : ""}.`,
        "Pictures (PNG, JPEG, GIF, WebP), PDF, audio and text can be attached.",
      );
    else if (!file.size) refuse("is empty.", "Attach a file with content, or the files of a folder.");
    else if (file.size > LARGEST)
      refuse(
        `has ${formatBytes(file.size)}; ${formatBytes(LARGEST)} are the most.`,
        "Make it smaller, or attach a part of it.",
      );
    else if (already.length + taken.length >= MOST)
      refuse(`is one too many: ${countOf(MOST, "attachment")} are the most.`, "Remove others first.");
    else if (total + file.size > LARGEST_TOGETHER)
      refuse(`makes it more than ${formatBytes(LARGEST_TOGETHER)} together.`, "Send some with the next question.");
    else {
      taken.push({ file, ...known });
      total += file.size;
    }
  }
  return { taken, refused };
}

/** 12 bytes, 3.4 KB, 20 MB. @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1000) return countOf(bytes, "byte");
  const [size, unit] = bytes < 1024 * 1000 ? [bytes / 1024, "KB"] : [bytes / 1024 / 1024, "MB"];
  return `${size < 9.95 ? size.toFixed(1).replace(/\.0$/, "") : Math.round(size)} ${unit}`;
}

/** A name for what was pasted and has none. @param {Candidate} file @param {number} count */
export function nameOf(file, count) {
  if (file.name) return file.name;
  return `pasted-${count + 1}.${
    file.type
      .split("/")[1]
      ?.replace("jpeg", "jpg")
      .replace(/[^\w].*/, "") || "txt"
  }`;
}

/** As the server takes them. @param {readonly Item[]} items */
export function wireAttachments(items) {
  return items.map(({ name, media_type, data }) => ({ name, media_type, data }));
}
