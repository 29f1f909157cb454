// @ts-check
/** The exact body that the next send would have, updated while the question is written and the filter changes. */

import { post } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { CopyButton } from "../../kit/copy.js";
import { countOf, whole } from "../../kit/core/format.js";
import { checkbox } from "../../kit/fields.js";
import { foldBlock } from "../../kit/fold-block.js";
import { Icon } from "../../kit/icon.js";
import { h, html, signal, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { Bytes, sha256Of } from "../request/wire.js";
import { send } from "./actions.js";
import { inChat } from "./chats.js";
import { wireAttachments } from "./core/attachments.js";
import { about } from "./core/chat.js";
import { isEmpty, items, replaces, text } from "./draft.js";
import { view, viewId } from "./feed.js";
import { toView } from "./modes.js";

/** @import { Item } from "./core/attachments.js" */
/** @import { PreviewShown as Shown } from "../../api-types.d.ts" */
/** @typedef {{ code?: string, message: string, hint?: string }} Trouble */

/** Keys within so many milliseconds are asked about together. */
const TOGETHER = 150;

/** What went wrong. @param {{ trouble: Trouble }} props */
export function PanelTrouble({ trouble: { code, message, hint } }) {
  return html`<div class="panel-trouble" role="alert">
    ${h(Icon, { name: "warn" })}
    <div>
      <p>${code ? html`<code>${code}</code> ${message}` : message}</p>
      ${hint ? html`<p class="soft">${hint}</p>` : null}
    </div>
  </div>`;
}

/** The preview beside the history. @param {{ close: () => void }} props */
export function NextSend({ close }) {
  const { version, filter, model, topic } = view.value ?? {};
  const { shown, trouble, isPending } = usePreview(
    JSON.stringify([version, filter, model, topic]),
    text.value,
    items.value,
    replaces.value,
  );
  const isNothing = isEmpty();
  const stopped = trouble ?? (isNothing ? null : (shown?.trouble ?? null));
  const canSend = shown !== null && !stopped && !isPending && !isNothing;
  const onClose = () => {
    close();
    toView();
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    onClose();
  };
  /** @param {{ hold?: boolean, expect?: string }} how */
  const closeAndSend = (how) => {
    close();
    void send(how);
  };
  return html`<section
    class=${isPending ? "preview-panel is-pending" : "preview-panel"}
    aria-label="Preview of the next send"
    aria-busy=${isPending}
    onKeyDown=${onKey}
  >
    <header class="panel-head in-row">
      <h2>Next send</h2>
      <span class="faint panel-aside">exactly as it will be sent</span>
      <span class="shell-gap"></span>
      ${iconButton("close", "Close preview", onClose)}
    </header>
    ${stopped && h(PanelTrouble, { trouble: stopped })}
    ${
      isNothing &&
      html`<p class="soft pad preview-nothing">
        “…” stands for your question until you write one.
      </p>`
    }
    ${shown ? h(Facts, { shown }) : !stopped ? html`<p class="faint pad">Composing…</p>` : null}
    ${shown?.body ? h(Body, { shown }) : null}
    <footer class="panel-foot in-row">
      ${button("Edit before sending", () => closeAndSend({ hold: true }), {
        icon: "edit",
        title: "Hold it before it is sent, and open it in the request editor",
        isDisabled: !canSend,
      })}
      ${button("Send exactly this", () => shown && closeAndSend({ expect: shown.body_sha256 }), {
        kind: "primary",
        icon: "send",
        title: "Only if it is still exactly these bytes",
        isDisabled: !canSend,
      })}
    </footer>
  </section>`;
}

/**
 * What the server says of the latest words; an answer to older ones is dropped. `replaces` is the pair that goes when
 * they are sent.
 * @param {string} about
 * @param {string} text
 * @param {readonly Item[]} attachments
 * @param {string} replaces
 */
function usePreview(about, text, attachments, replaces) {
  const [shown, setShown] = useState(/** @type {Shown | null} */ (null));
  const [trouble, setTrouble] = useState(/** @type {Trouble | null} */ (null));
  const [isPending, setPending] = useState(true);
  const isFirst = useRef(true);
  useEffect(() => {
    const own = new AbortController();
    setPending(true);
    const ask = async () => {
      try {
        const body = { view: viewId, text, attachments: wireAttachments(attachments), replaces };
        const response = await post(inChat("/api/chat/preview"), body, { signal: own.signal });
        setShown(response);
        setTrouble(null);
      } catch (error) {
        if (own.signal.aborted) return;
        const { code = "page", message, hint } = /** @type {any} */ (error);
        setTrouble({ code, message, hint });
      }
      setPending(false);
    };
    const timer = setTimeout(ask, isFirst.current ? 0 : TOGETHER);
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [about, text, attachments, replaces]);
  return { shown, trouble, isPending };
}

/** @param {{ shown: Shown }} props */
function Facts({ shown }) {
  const { shares } = shown;
  const total = shares.reduce((sum, share) => sum + share.size, 0) || 1;
  return html`<div class="preview-facts stacked">
    <p class="preview-route">
      <b>${shown.model}</b>
      <span class="soft">${shown.provider}</span>
      <code class="cut faint" title=${shown.url}>${shown.url}</code>
    </p>
    <p class="preview-numbers number soft">
      <span>${about(shown)} tokens</span>
      <span>${countOf(shown.included, "pair")} of the history</span>
      ${
        shown.left_out_preflight
          ? html`<span
              class="preview-left"
              title="Your question takes more than its allowance, so the oldest of them are not sent"
            >
              ${whole(shown.left_out_preflight)} left out to make room
            </span>`
          : null
      }
    </p>
    <div
      class="preview-bar"
      role="img"
      aria-label=${shares.map((share) => `${share.label} ${Math.round((share.size / total) * 100)} %`).join(", ")}
    >
      ${shares.map(
        (share) => html`<i
          key=${share.label}
          class=${`meter-share ${classOf(share.label)}`}
          style=${{ width: `${(share.size / total) * 100}%` }}
        ></i>`,
      )}
    </div>
    <p class="preview-shares">
      ${shares.map(
        (share) => html`<span key=${share.label}>
          <i class=${`meter-dot ${classOf(share.label)}`}></i>
          ${share.label}
          ${share.count > 1 ? html` <span class="soft number">×${whole(share.count)}</span>` : null}${" "}
          <span class="faint number">${whole(share.size)}</span>
        </span>`,
      )}
      <span class="faint">characters</span>
    </p>
    ${h(Changes, { changes: shown.losses ?? [], words: `that ${shown.dialect} cannot express` })}
    ${h(Changes, {
      changes: (shown.additions ?? []).filter(({ severity }) => severity !== "identity"),
      words: `that ${shown.dialect} requires`,
    })}
  </div>`;
}

/**
 * What a dialect makes of the request.
 * @param {{ changes: readonly { what: string, why: string }[], words: string }} props
 */
function Changes({ changes, words }) {
  if (!changes.length) return null;
  return foldBlock(
    `${countOf(changes.length, "thing")} ${words}`,
    html`<ul class="fold-inside preview-losses">
      ${changes.map(
        (change, index) => html`<li key=${index}>
          <b>${change.what}</b> <span class="soft">${change.why}</span>
        </li>`,
      )}
    </ul>`,
  );
}

/** @param {string} label */
function classOf(label) {
  return label.toLowerCase().replaceAll(" ", "-");
}

/** @param {{ shown: Shown }} props */
function Body({ shown }) {
  const [isIndented, setIndented] = useState(true);
  const [own, setOwn] = useState("");
  const place = useMemo(() => ({ shownPointer: signal("") }), []);
  useEffect(() => {
    let isThere = true;
    void sha256Of(new TextEncoder().encode(shown.body)).then((sha256) => isThere && setOwn(sha256));
    return () => void (isThere = false);
  }, [shown.body]);
  const isSame = !own || own === shown.body_sha256;
  return html`<div class="preview-body">
    <div class="preview-tools in-row">
      ${checkbox("Indent", isIndented, setIndented)}
      <span class="shell-gap"></span>
      <code
        class=${isSame ? "hash faint" : "hash bad"}
        title=${
          isSame
            ? `SHA-256 of these bytes, worked out in this page: ${own || shown.body_sha256}`
            : "The hash is of an older text than the one shown"
        }
      >
        sha256 ${shown.body_sha256.slice(0, 12)}…
      </code>
      ${h(CopyButton, { text: shown.body, label: "Copy body" })}
    </div>
    ${h(Bytes, { desk: place, body: { text: shown.body }, marks: [], isIndented })}
  </div>`;
}
