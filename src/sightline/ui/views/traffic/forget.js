// @ts-check
/** “Delete”: says how many requests go and how much room they take, then removes them from the record for good. */

import { post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { literal, term } from "../../kit/core/filter.js";
import { countOf, room } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { checkbox } from "../../kit/fields.js";
import { attempt, toast, toastError } from "../../kit/toast.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";

/** @import { ForgetResult } from "../../api-types.d.ts" */

/**
 * What a filter takes, or these exchanges: a list of them may be longer than a filter.
 * @typedef {{ filter: string } | { exchanges: string[] }} Selection
 */

/** The filter that takes every exchange. */
export const EVERYTHING = "id:*";

/** A session, whatever its name. @param {string} session @returns {Selection} */
export function ofSession(session) {
  return { filter: term("session", literal(session)) };
}

/**
 * `what` names what is deleted, as in “this request”. `onGone` is called when it is gone.
 * @param {{ wanted: Selection, what: string, onClose: () => void, onGone?: () => void }} props
 */
export function Forget({ wanted, what, onClose, onGone }) {
  const [found, setFound] = useState(/** @type {ForgetResult | null} */ (null));
  const [withCopies, setWithCopies] = useState(true);
  const [isSure, setSure] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    const asked = post("/api/forget", { ...wanted, dry_run: true });
    asked.then(setFound, (error) => {
      toastError(error);
      onClose();
    });
  }, []);
  const forget = async () => {
    setBusy(true);
    const isDone = await attempt(async () => {
      const gone = await post("/api/forget", { ...wanted, copies: withCopies });
      toast(`${countOf(gone.exchanges, "request")} deleted, ${room(gone.bytes)} freed`);
      onClose();
      onGone?.();
    });
    if (!isDone) setBusy(false);
  };
  const count = countOf(found?.exchanges ?? 0, "request");
  const buttons = html`${button("Cancel", onClose)}
    ${
      isSure
        ? button(isBusy ? "Deleting…" : `Yes, delete ${count} for good`, () => void forget(), {
            key: "sure",
            kind: "danger",
            isDisabled: isBusy,
          })
        : button(found?.exchanges ? `Delete ${count}…` : "Delete", () => setSure(true), {
            key: "first",
            isDisabled: !found?.exchanges,
          })
    }`;
  return h(Dialog, {
    title: `Delete ${what}`,
    onClose,
    footer: buttons,
    children: found
      ? h(DeletionPlan, { found, withCopies, onCopies: setWithCopies })
      : html`<p class="soft">Counting…</p>`,
  });
}

/** @param {{ found: ForgetResult, withCopies: boolean, onCopies: (isOn: boolean) => void }} props */
function DeletionPlan({ found, withCopies, onCopies }) {
  const isChat = (/** @type {string} */ log) => log === "chat" || log.startsWith("chat:");
  const removable = found.copies.filter((log) => !isChat(log));
  const names = removable.slice(0, 3).join(", ") + (removable.length > 3 ? ` and ${removable.length - 3} more` : "");
  const copies = [removable.length ? `all of ${names}` : "", found.copies.some(isChat) ? "their texts in chats" : ""]
    .filter(Boolean)
    .join(", and ");
  return html`<div class="forget" role="status">
    <p>
      ${
        found.exchanges
          ? html`<b>${countOf(found.exchanges, "request")}</b> and everything recorded for ${
              found.exchanges === 1 ? "it" : "them"
            } will be deleted (${room(found.bytes)}). This cannot be undone.`
          : "No finished request matches."
      }
    </p>
    ${found.under_way ? html`<p class="soft">${countOf(found.under_way, "request")} still running: kept.</p>` : null}
    ${found.copies.length ? checkbox(`Also delete copies: ${copies}`, withCopies, onCopies, { kind: "" }) : null}
  </div>`;
}
