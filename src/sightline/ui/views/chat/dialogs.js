// @ts-check
/** The dialogs of the chat. */

import { about } from "../../kit/about.js";
import { AnswerBody } from "../../kit/answer.js";
import { get } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { combobox } from "../../kit/combobox.js";
import { CopyBlock } from "../../kit/copy.js";
import { short, when } from "../../kit/core/format.js";
import { rank } from "../../kit/core/ranking.js";
import { Dialog } from "../../kit/dialog.js";
import { onValue } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { NameDialog } from "../../kit/name-dialog.js";
import { attempt, toast, toastError } from "../../kit/toast.js";
import { h, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { MakeCase } from "../evals/make.js";
import { dialog, edit, runCommand, swap } from "./actions.js";
import { DeleteChat, RenameChat } from "./chat-list.js";
import { inChat, mediaOf } from "./chats.js";
import { CompactionDialog } from "./compaction.js";
import { confirmationText, limitLine, usageOf, timeUntil } from "./core/chat.js";
import { preferences, savePreferences } from "./feed.js";
import { toInput } from "./modes.js";
import { ChatSettingsDialog } from "./settings.js";
import { TopicPicker, TopicsDialog } from "./topics.js";
import { ExportDialog, ImportDialog } from "./transfer.js";

/** @import { ApiError } from "../../kit/api.js" */
/** @import { Opened, Quota } from "./actions.js" */
/** @import { AnswerShown, CommandShown, PairShown } from "../../api-types.d.ts" */

/** So many models are offered at once. */
const MOST_MODELS = 80;

const close = () => void (dialog.value = null);

/**
 * The dialog of each kind: it gets what was said when it was opened.
 * @type {{ [Kind in Opened["kind"]]: (props: Opened & { kind: Kind, onClose: () => void }) => any }}
 */
const DIALOGS = {
  "over-budget": OverBudget,
  quota: QuotaDialog,
  command: Agreement,
  edit: EditDialog,
  earlier: Earlier,
  model: ModelPicker,
  topic: TopicPicker,
  compact: CompactionDialog,
  case: MakeCase,
  code: CodeDialog,
  save: SaveFilter,
  topics: TopicsDialog,
  import: ImportDialog,
  export: ExportDialog,
  "rename-chat": RenameChat,
  "delete-chat": DeleteChat,
  settings: ChatSettingsDialog,
};

/** The one that is open. */
export function Dialogs() {
  const open = dialog.value;
  return open && h(/** @type {any} */ (DIALOGS[open.kind]), { ...open, onClose: close });
}

/** @param {{ error: ApiError }} props */
function OverBudget({ error }) {
  const done = () => {
    close();
    queueMicrotask(toInput); // once nothing stands above it any more
  };
  return h(Dialog, {
    title: "The question is too large",
    width: 480,
    isKept: true,
    onClose: done,
    children: html`<p>${error.message[0].toUpperCase() + error.message.slice(1)}.</p>
      <p class="soft">${error.hint}</p>`,
    footer: html`${button("To the input", done, { kind: "primary" })}
      ${button("Settings…", () => {
        close();
        queueMicrotask(() => (dialog.value = { kind: "settings" }));
      })}`,
  });
}

/** @param {{ error: ApiError, again: (quota: Quota) => void, onCancel: () => void }} props */
function QuotaDialog({ error, again, onCancel }) {
  const { line = error.message, can_go_at = null } = error.details ?? {};
  const now = useNow();
  const left = can_go_at === null ? "" : timeUntil(can_go_at, now);
  const stop = () => {
    close();
    onCancel();
  };
  const go = (/** @type {Quota} */ quota) => () => {
    close();
    again(quota);
  };
  return h(Dialog, {
    title: "This would exceed the quota",
    width: 480,
    isKept: true,
    onClose: stop,
    children: html`<p>${limitLine(line)}</p>
      ${
        can_go_at === null
          ? html`<p class="soft">It can never fit into this quota. Shorten the question or its context.</p>`
          : html`<p class="soft number">
              It can be sent at ${when(can_go_at, now)}
              ${left ? `, in ${left}` : ", which is now"}.
            </p>`
      }`,
    footer: html`${can_go_at === null ? null : button("Wait, then send", go("wait"), { kind: "primary" })}
      ${button("Send anyway", go("anyway"))}
      ${button("Cancel", stop, { kind: "quiet" })}`,
  });
}

/** @param {{ text: string, outcome: CommandShown }} props */
function Agreement({ text, outcome }) {
  const [isBusy, setBusy] = useState(false);
  const first = useRef(/** @type {HTMLButtonElement | null} */ (null));
  // What may be too much is agreed to by going there.
  useLayoutEffect(() => void (outcome.needs_force || first.current?.focus()), []);
  const { title, button: words } = confirmationText(outcome.command, outcome.count);
  const isDry = /(?:^|\s)--dry-run(?:\s|$)/.test(text) || outcome.done || outcome.count === 0;
  const go = async () => {
    setBusy(true);
    if (await attempt(() => runCommand(outcome.needs_force ? `${text} --force` : text))) close();
    else setBusy(false);
  };
  return h(Dialog, {
    title: isDry ? `:${outcome.command}` : title,
    width: 480,
    onClose: close,
    children: html`<p>${outcome.message}</p>
      ${
        outcome.sample.length
          ? html`<ul class="sample" aria-label="The first of them">
              ${outcome.sample.map((each, place) => html`<li key=${place} class="cut">${each || "(no words)"}</li>`)}
              ${
                outcome.count > outcome.sample.length &&
                html`<li class="faint">and ${outcome.count - outcome.sample.length} more</li>`
              }
            </ul>`
          : null
      }
      ${
        outcome.needs_force &&
        html`<p class="note">
          These are many. Agreeing here is the same as writing <code>--force</code>.
        </p>`
      }`,
    footer: isDry
      ? button("Close", close, { ref: first })
      : html`${button("Cancel", close)}
          ${button(words, go, {
            kind: outcome.command === "delete" ? "danger" : "primary",
            ref: first,
            isDisabled: isBusy,
          })}`,
  });
}

/** @param {{ pair: PairShown }} props */
function EditDialog({ pair }) {
  const before = pair.answer?.text ?? "";
  const [question, setQuestion] = useState(pair.user_text);
  const [answer, setAnswer] = useState(before);
  const isChanged = question !== pair.user_text || answer !== before;
  const save = async () => {
    if (!isChanged) return close();
    const done = await edit(pair.id, {
      ...(question !== pair.user_text && { user_text: question }),
      ...(answer !== before && { assistant_text: answer }),
    });
    if (done) close();
    return undefined;
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
  };
  /** @type {(label: string, value: string, set: (text: string) => void) => any} */
  const field = (label, value, set) =>
    html`<label class="edit-field">
      <span class="soft">${label}</span>
      <textarea
        class="field"
        dir="auto"
        rows=${Math.min(Math.max(value.split("\n").length + 1, 4), 14)}
        value=${value}
        onInput=${onValue(set)}
        onKeyDown=${onKey}
      ></textarea>
    </label>`;
  return h(Dialog, {
    title: "Edit the texts",
    width: 860,
    isKept: true,
    onClose: close,
    children: html`<p class="soft">
        From now on, this text is sent with your questions. The record keeps what was sent and answered before.
      </p>
      ${field("Question", question, setQuestion)}
      ${field("Answer", answer, setAnswer)}`,
    footer: html`${button("Cancel", close)}
      ${button(html`Save <kbd class="key">Ctrl ↵</kbd>`, save, { kind: "primary", isDisabled: !isChanged })}`,
  });
}

/** @param {{ pair: PairShown }} props */
function Earlier({ pair }) {
  const [answers, setAnswers] = useState(/** @type {AnswerShown[] | null} */ (null));
  useEffect(() => {
    get(inChat(`/api/chat/pairs/${encodeURIComponent(pair.id)}`)).then(
      (response) => setAnswers(response.earlier_answers),
      (error) => {
        close();
        toastError(error);
      },
    );
  }, []);
  return h(Dialog, {
    title: "Earlier answers",
    width: 860,
    onClose: close,
    children:
      answers === null
        ? html`<p class="soft" role="status">Loading…</p>`
        : html`<ol class="earlier">
            ${answers.map(
              (answer, index) => html`<li key=${index}>
                <div class="pair-foot in-row number">
                  <b>${answer.model || pair.model}</b>
                  <span>${when(answer.at, Date.now() / 1000)}</span>
                  ${usageOf(answer).map((each) => html`<span key=${each.text} title=${each.help}>${each.text}</span>`)}
                  ${button("Use this answer", async () => {
                    if (await swap(pair.id, index)) close();
                  })}
                </div>
                ${h(AnswerBody, { answer, isLive: false, files: mediaOf(pair.id, index) })}
              </li>`,
            )}
          </ol>`,
  });
}

/** @param {{ title: string, text: string }} props */
function CodeDialog({ title, text }) {
  return h(Dialog, { title, width: 860, onClose: close, children: h(CopyBlock, { text, label: "Copy" }) });
}

/** @param {{ filter: string }} props */
function SaveFilter({ filter }) {
  const list = preferences.value.saved_filters;
  const bare = (/** @type {string} */ name) => name.replace(/^@/, "");
  const save = async (/** @type {string} */ name) => {
    const wanted = bare(name);
    const others = list.filter((each) => each.name.toLowerCase() !== wanted.toLowerCase());
    try {
      await savePreferences({ saved_filters: [...others, { name: wanted, filter }] });
    } catch (error) {
      return `${/** @type {Error} */ (error).message} ${/** @type {{ hint?: string }} */ (error).hint ?? ""}`;
    }
    close();
    toast(`Saved as @${wanted}.`, { hint: "Use it wherever you write a filter, also inside another one." });
    return undefined;
  };
  return h(NameDialog, {
    title: "Save the filter",
    verb: "Save",
    width: 480,
    about: html`<p><code>${filter}</code></p>`,
    field: { kind: "mono", placeholder: "favourites", isCode: true },
    noteOf: (name) =>
      list.some((each) => each.name.toLowerCase() === name.toLowerCase())
        ? html`<p class="soft">A filter of that name exists; it will be replaced.</p>`
        : html`<p class="soft">Then <code>@${bare(name) || "name"}</code> stands for it.</p>`,
    onSave: save,
    onClose: close,
  });
}

/** @param {{ title: string, current: string, onPick: (model: string) => void, onClose: () => void }} props */
function ModelPicker({ title, current, onPick, onClose }) {
  const [words, setWords] = useState("");
  const { models, providers } = about.value;
  const found = useMemo(() => {
    const isCurrent = (/** @type {{ id: string, name: string }} */ each) =>
      current === each.id || current === each.name;
    const ready = new Set(providers.filter((each) => each.ready).map((each) => each.name));
    const known = models.map((each) => {
      const name = each.provider ? `${each.provider}/${each.id}` : each.id;
      return { ...each, name, label: name, detail: each.provider, isReady: ready.has(each.provider) };
    });
    const ordered = rank(known, words);
    if (!words.trim())
      ordered.sort((a, b) => Number(isCurrent(b)) - Number(isCurrent(a)) || Number(b.isReady) - Number(a.isReady));
    const best = ordered.slice(0, MOST_MODELS);
    // A model that the catalogue does not know can still be asked for by its name.
    const own = words.trim();
    if (!own || known.some((each) => each.id === own || each.name === own)) return best;
    const written = { id: own, name: own, label: own, provider: "", isReady: true, context_window: undefined };
    return [...best, { ...written, detail: "as written" }];
  }, [words, models]);
  return combobox({
    id: "model",
    title,
    heading: html`<p class="palette-title">${title}</p>`,
    label: "Model",
    listLabel: "Models",
    placeholder: "A model's name",
    text: words,
    onText: setWords,
    items: found,
    nothing: html`<li class="palette-item faint" role="presentation">No model is known.</li>`,
    keyOf: (each) => each.name,
    itemClass: (each) => (each.isReady ? "" : "is-missing"),
    renderItem: (each) => html`<span class="cut">${each.id}</span>
      <span class="cut faint">
        ${each.detail}
        ${each.isReady ? "" : ", no key"}
        ${each.context_window ? ` · ${short(each.context_window)}` : ""}
      </span>
      ${each.id === current || each.name === current ? h(Icon, { name: "check" }) : null}`,
    onTake: (model) => {
      onClose();
      onPick(model.name);
    },
    onClose,
  });
}
