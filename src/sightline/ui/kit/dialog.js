// @ts-check
/** A native dialog: it holds the focus, closes on Escape, and returns the focus. */

import { html, useId, useLayoutEffect, useRef } from "../vendor/preact.js";
import { iconButton } from "./button.js";

/**
 * `title` names it; with `isBare` only assistive technology reads it; `isKept` stays open after a click beside it.
 * @param {{ title: string, onClose: () => void, children?: any, class?: string, width?: number, isBare?: boolean,
 *   isKept?: boolean, footer?: any }} props
 */
export function Dialog(props) {
  const { title, onClose, children, footer, class: name = "", width = 640, isBare = false, isKept = false } = props;
  /** @type {{ current: HTMLDialogElement | null }} */
  const element = useRef(null);
  const id = useId();
  // Before the next key: what is typed right after the one that opens it belongs into it, and what is typed right after
  // the one that closes it belongs where the focus was.
  useLayoutEffect(() => {
    const own = element.current;
    const before = document.activeElement;
    // What the browser itself gives the focus back to has no cursor then: nothing could be typed there.
    if (before instanceof HTMLElement) before.blur();
    own?.showModal();
    return () => {
      own?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  /** @param {MouseEvent} event */
  const outside = (event) => {
    if (event.target === element.current && !isKept) onClose();
  };
  /** @param {Event} event */
  const cancelled = (event) => {
    event.preventDefault();
    onClose();
  };
  const head = html`<header class="dialog-head">
    <h2 id=${id}>${title}</h2>
    ${iconButton("close", "Close", onClose)}
  </header>`;
  return html`<dialog
    ref=${element}
    class=${`dialog ${name}`}
    style=${{ "--width": `${width}px` }}
    aria-labelledby=${isBare ? null : id}
    aria-label=${isBare ? title : null}
    onMouseDown=${outside}
    onCancel=${cancelled}
  >
    <div class="dialog-body" tabindex="-1" autofocus=${!isBare}>
      ${isBare ? null : head}
      ${children}
      ${footer ? html`<footer class="dialog-foot">${footer}</footer>` : null}
    </div>
  </dialog>`;
}
