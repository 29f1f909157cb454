// @ts-check
/** The attachments of a question: pasted, dropped or picked, shown in a tray until it is sent. */

import { iconButton } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { toast } from "../../kit/toast.js";
import { h, html, useRef, useState } from "../../vendor/preact.js";
import { ACCEPTED, MOST, nameOf, formatBytes, sortFiles } from "./core/attachments.js";

/** @import { Item } from "./core/attachments.js" */

/**
 * The files of a paste, a drop or a picker as attachments. What cannot be attached is reported and left out.
 * @param {DataTransfer | FileList | readonly File[] | null} given
 * @param {readonly Item[]} [already]
 * @returns {Promise<Item[]>} the new ones
 */
export async function attachmentsFrom(given, already = []) {
  const files = filesOf(given);
  const { taken, refused } = sortFiles(files, already);
  if (refused.length === 1) toast(`${refused[0].name} ${refused[0].why}`, { hint: refused[0].hint, tone: "bad" });
  else if (refused.length)
    toast(
      `${countOf(refused.length, "file")} cannot be attached: ${refused
        .slice(0, 4)
        .map((each) => each.name)
        .join(", ")}${refused.length > 4 ? "…" : ""}`,
      { hint: `${refused[0].name} ${refused[0].why} ${refused[0].hint}`, tone: "bad" },
    );
  const read = await Promise.all(
    taken.map(({ file, kind, media_type }, index) => item(file, kind, media_type, already.length + index)),
  );
  return read.filter((each) => each !== null);
}

/** Whether a paste or a drop brings files. @param {DataTransfer | null} given */
export function bringsFiles(given) {
  return given !== null && [...given.types].includes("Files");
}

/** @param {DataTransfer | FileList | readonly File[] | null} given @returns {File[]} */
function filesOf(given) {
  if (!given) return [];
  return given instanceof DataTransfer ? [...given.files] : [...given];
}

/**
 * @param {File} file
 * @param {Item["kind"]} kind
 * @param {string} mediaType
 * @param {number} count
 * @returns {Promise<Item | null>}
 */
async function item(file, kind, mediaType, count) {
  try {
    return { name: nameOf(file, count), media_type: mediaType, size: file.size, kind, data: await base64(file) };
  } catch {
    toast(`${file.name} could not be read.`, {
      hint: "It may have been moved or changed. Attach it again.",
      tone: "bad",
    });
    return null;
  }
}

/** @param {File} file @returns {Promise<string>} */
function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("not read"));
    reader.readAsDataURL(file);
  });
}

/** @param {{ items: readonly Item[], onRemove: (index: number) => void }} props */
export function AttachmentTray({ items, onRemove }) {
  if (!items.length) return null;
  return html`<ul class="tray" aria-label="Attachments">
    ${items.map(
      (each, index) => html`<li key=${`${each.name} ${index}`} class=${`tray-item in-row boxed ${each.kind}`}>
        ${
          each.kind === "image"
            ? h(Thumbnail, { item: each })
            : html`<span class="tray-kind" aria-hidden="true">${extensionOf(each)}</span>`
        }
        <span class="tray-text">
          <span class="cut" title=${each.name}>${each.name}</span>
          <span class="faint number">${formatBytes(each.size)}</span>
        </span>
        ${iconButton("close", `Remove ${each.name}`, () => onRemove(index))}
      </li>`,
    )}
  </ul>`;
}

/** @param {{ item: Item }} props */
function Thumbnail({ item }) {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return html`<span class="tray-kind" title="The browser cannot show it">?</span>`;
  return html`<img
    class="tray-picture"
    src=${`data:${item.media_type};base64,${item.data}`}
    alt=""
    onError=${() => setBroken(true)}
  />`;
}

/** @param {Item} item */
function extensionOf(item) {
  return (/\.([^.]{1,4})$/.exec(item.name)?.[1] ?? item.kind.slice(0, 4)).toUpperCase();
}

/** The button that opens the picker. @param {{ items: readonly Item[], onItems: (all: Item[]) => void }} props */
export function AttachButton({ items, onItems }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** To read files takes a while, in which others may have come. */
  const latest = useRef(items);
  latest.current = items;
  /** @param {Event} event */
  const picked = async (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    const more = await attachmentsFrom(field.files, items);
    field.value = "";
    if (more.length) onItems([...latest.current, ...more]);
  };
  return html`<span class="attach">
    <input
      ref=${input}
      class="unseen"
      type="file"
      multiple
      accept=${ACCEPTED}
      tabindex="-1"
      aria-hidden="true"
      onChange=${picked}
    />
    ${iconButton("plus", "Attach files", () => input.current?.click(), {
      title: "Attach files (or paste, or drop them)",
      isDisabled: items.length >= MOST,
    })}
  </span>`;
}
