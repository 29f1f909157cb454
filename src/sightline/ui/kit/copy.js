// @ts-check
/** Copies text: at a key, by a button, or beside the text itself. */

import { h, html, useState } from "../vendor/preact.js";
import { iconButton } from "./button.js";
import { toast } from "./toast.js";

/** Copy, and say so, also if the browser refuses. @param {string} text @param {string} [what] */
export async function copyText(text, what) {
  if (await isCopied(text)) toast(what ? `${what} copied.` : "Copied.");
}

/** @param {{ text: string, label?: string }} props */
export function CopyButton({ text, label = "Copy" }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    if (!(await isCopied(text))) return;
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  const name = isDone ? "Copied" : label;
  return iconButton(isDone ? "check" : "copy", name, copy, { title: name });
}

/** @param {{ text: string, label?: string }} props */
export function CopyBlock({ text, label }) {
  return html`<div class="copy-block"><pre tabindex="0">${text}</pre>${h(CopyButton, { text, label })}</div>`;
}

/** Whether the browser copied it; if not, a message says so. @param {string} text */
async function isCopied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast("The browser did not allow copying.", { hint: "Select the text and copy it by hand.", tone: "bad" });
    return false;
  }
}
