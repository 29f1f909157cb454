// @ts-check
/** A summary in place of older pairs: the model drafts it, the user edits and accepts it, and can undo it. */

import { post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { countOf, whole } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { Editor } from "../../kit/editor.js";
import { textField } from "../../kit/fields.js";
import { toastError } from "../../kit/toast.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { offerUndo } from "./actions.js";
import { inChat, isRefusal } from "./chats.js";
import { about } from "./core/chat.js";
import { viewId } from "./feed.js";
import { goToPair } from "./modes.js";
import { PanelTrouble } from "./preview.js";

/** @import { Band } from "./core/chat.js" */
/** @typedef {{ before: Band, after: Band }} Sizes */

const TOGETHER = 400;

/**
 * The summary goes, and the pairs that it stood for are back; whether that is settled.
 * @param {string} id of the summary's pair
 * @param {string} [path] the call in the chat that has it
 */
export async function undoCompaction(id, path = inChat("/api/chat/compaction/undo")) {
  try {
    await post(path, { id });
    return true;
  } catch (error) {
    toastError(error);
    return isRefusal(error);
  }
}

/** @param {{ ids: readonly string[], onClose: () => void }} props */
export function CompactionDialog({ ids, onClose }) {
  const [text, setText] = useState("");
  const [instruction, setInstruction] = useState("");
  const [exchange, setExchange] = useState("");
  const [isSaving, setSaving] = useState(false);
  const [problem, setProblem] = useState(/** @type {{ message: string, hint?: string } | null} */ (null));
  /**
   * What the editor begins with. It is not given what was typed into it: by the time that comes round, more has been
   * typed.
   */
  const [drafted, setDrafted] = useState({ text: "", count: 0 });
  const drafting = useRef(/** @type {AbortController | null} */ (null));
  const [isDrafting, setDrafting] = useState(false);
  const { sizes, setSizes } = useSizes(ids, text, isDrafting);
  useEffect(() => () => drafting.current?.abort(), []);
  const draft = async () => {
    const own = (drafting.current = new AbortController());
    setDrafting(true);
    setProblem(null);
    try {
      const response = await post(
        inChat("/api/chat/compaction/draft"),
        { view: viewId, ids, instruction: instruction.trim() },
        { signal: own.signal },
      );
      setText(response.text);
      setSizes({ before: response.before, after: response.after });
      setExchange(response.exchange ?? "");
      setDrafted(({ count }) => ({ text: response.text, count: count + 1 }));
    } catch (error) {
      if (!own.signal.aborted) setProblem(/** @type {Error & { hint?: string }} */ (error));
    } finally {
      if (drafting.current === own) setDrafting(false);
    }
  };
  const accept = async () => {
    setSaving(true);
    try {
      const { pair } = await post(inChat("/api/chat/compaction"), { ids, text });
      const undo = inChat("/api/chat/compaction/undo"); // of this chat, also if another is open by then
      offerUndo(`The summary replaces ${countOf(ids.length, "pair")}. Undo brings them back.`, () =>
        undoCompaction(pair, undo),
      );
      void goToPair(pair);
      onClose();
    } catch (error) {
      setProblem(/** @type {Error & { hint?: string }} */ (error));
      setSaving(false);
    }
  };
  const footer = html`
    <span class="soft number compaction-sizes" role="status">${sizes ? h(TokenSaving, { sizes }) : null}</span>
    <span class="shell-gap"></span>
    ${button("Cancel", onClose)}
    ${button("Replace the pairs", () => void accept(), {
      kind: "primary",
      isDisabled: !text.trim() || isDrafting || isSaving,
    })}`;
  return h(Dialog, {
    title: `Summarize ${countOf(ids.length, "pair")}`,
    width: 820,
    isKept: text !== "" || isDrafting,
    onClose,
    footer,
    children: html`
      <p class="soft">A summary is sent in their place. The pairs themselves stay, and come back when you undo it.</p>
      <div class="compaction-draft">
        ${textField(instruction, setInstruction, {
          label: "What to keep",
          placeholder: "What the summary must keep, for example all numbers and names",
          disabled: isDrafting,
          onKeyDown: (/** @type {KeyboardEvent} */ event) =>
            event.key === "Enter" && (event.preventDefault(), void draft()),
        })}
        ${
          isDrafting
            ? button("Stop", () => {
                drafting.current?.abort();
                setDrafting(false);
              })
            : button(drafted.count ? "Draft again" : "Let the model draft it", () => void draft(), {
                kind: text ? "" : "primary",
              })
        }
      </div>
      ${isDrafting ? html`<p class="pulse sending-note" role="status">The model is writing…</p>` : null}
      ${problem && h(PanelTrouble, { trouble: { message: problem.message, hint: problem.hint } })}
      <div class="compaction-text">
        ${h(Editor, {
          key: String(drafted.count),
          value: drafted.text,
          label: "Summary",
          language: "markdown",
          onChange: setText,
          onDone: onClose,
        })}
        ${text || isDrafting ? null : html`<p class="faint compaction-hint">Or write it yourself.</p>`}
      </div>
      ${
        exchange &&
        html`<p class="faint">
          <a href=${`#/x/${encodeURIComponent(exchange)}`} target="_blank" rel="noopener">
            The request that drafted it
          </a>
        </p>`
      }`,
  });
}

/**
 * Before and after, for the words as they are now.
 * @param {readonly string[]} ids
 * @param {string} text
 * @param {boolean} isDrafting
 */
function useSizes(ids, text, isDrafting) {
  const [sizes, setSizes] = useState(/** @type {Sizes | null} */ (null));
  useEffect(() => {
    const own = new AbortController();
    if (isDrafting) return undefined;
    const timer = setTimeout(async () => {
      try {
        setSizes(
          await post(inChat("/api/chat/compaction/compare"), { view: viewId, ids, text }, { signal: own.signal }),
        );
      } catch {
        // The sizes that are shown stay until the next words; accepting says what is wrong.
      }
    }, TOGETHER);
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [text, isDrafting]);
  return { sizes, setSizes };
}

/** @param {{ sizes: Sizes }} props */
function TokenSaving({ sizes }) {
  const { before, after } = sizes;
  const saved = before.tokens - after.tokens;
  return html`<span title="Tokens before and after">
    ${about(before)} → <b>${about(after)}</b> tokens
    ${
      before.tokens > 0 &&
      after.tokens > 0 &&
      html`, <span class=${saved > 0 ? "good" : "bad"}>
        ${saved > 0 ? `${whole(saved)} fewer` : `${whole(-saved)} more`}
      </span>`
    }
  </span>`;
}
