// @ts-check
/** A block of text with a copy button, or only the button. */

import { h, html, useState } from "../vendor/preact.js";
import { Icon } from "./icon.js";
import { toast } from "./toast.js";

/** @param {{ text: string, label?: string }} props */
export function CopyButton({ text, label = "Copy" }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      toast("The browser did not allow copying.", { hint: "Select the text and copy it by hand.", tone: "bad" });
    }
  };
  const name = isDone ? "Copied" : label;
  return html`<button type="button" class="button quiet icon" aria-label=${name} title=${name} onClick=${copy}>
    ${h(Icon, { name: isDone ? "check" : "copy" })}
  </button>`;
}

/** @param {{ text: string, label?: string }} props */
export function CopyBlock({ text, label }) {
  return html`<div class="copy-block"><pre>${text}</pre>${h(CopyButton, { text, label })}</div>`;
}
