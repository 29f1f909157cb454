// @ts-check
/** The topic picker and the dialog with the tree of topics. */

import { post, remove } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { combobox } from "../../kit/combobox.js";
import { countOf, whole } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { Icon } from "../../kit/icon.js";
import { attempt, toast } from "../../kit/toast.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";
import { inChat } from "./chats.js";
import { topicToCreate, findRows, tree, whyKept } from "./core/topics.js";
import { TopicEditor } from "./topic-editor.js";
import { fetchTopics, useTopics } from "./topic-feed.js";

/** @import { Row, Topic } from "./core/topics.js" */

/**
 * One line of the list: a topic, no topic, or one that would be made.
 * @typedef {{ key: string, label: string, detail: string, depth: number, isChosen: boolean, run: () => void }} Offer
 */

/**
 * `current` is the topic that is chosen now.
 * @param {{ current: string, onPick: (topic: string) => void, onClose: () => void, title: string }} props
 */
export function TopicPicker({ current, onPick, onClose, title }) {
  const topics = useTopics();
  const [text, setText] = useState("");
  const rows = useMemo(() => tree(topics ?? []), [topics]);
  const pick = (/** @type {string} */ id) => {
    onClose();
    onPick(id);
  };
  const create = async (/** @type {{ name: string, parent: string }} */ { name, parent }) => {
    await attempt(async () => {
      const made = await post(inChat("/api/chat/topics"), { name, parent });
      await fetchTopics();
      pick(made.id);
    });
  };
  // Which topics there are must be known before one can be new.
  const offers = useMemo(
    () => (topics ? offersFor(rows, text, current, { pick, create }) : null),
    [rows, topics, text, current],
  );
  return combobox({
    id: "topic",
    class: "topic-picker",
    title,
    label: title,
    listLabel: "Topics",
    placeholder: "A topic, or a new one: Work › Plans",
    text,
    onText: setText,
    items: offers,
    first: Math.max(
      (offers ?? []).findIndex((each) => each.isChosen && !text),
      0,
    ),
    nothing: html`<li class="palette-group" role="presentation">
      No topic has this name. What is before ${BETWEEN_WORDS} must be a topic that exists.
    </li>`,
    keyOf: (each) => each.key,
    itemClass: () => "topic-offer",
    renderItem: (each) => html`<span class="cut" style=${{ paddingLeft: `${each.depth * 16}px` }}>${each.label}</span>
      <span class="cut faint number">${each.detail}</span>
      ${each.isChosen ? h(Icon, { name: "check" }) : null}`,
    onTake: (offer) => offer.run(),
    onClose,
  });
}

const BETWEEN_WORDS = "›";
/** A click that leaves the button must still find everything in its place. */
const LATER = 300;

/**
 * @param {readonly Row[]} rows
 * @param {string} text
 * @param {string} current
 * @param {{ pick: (id: string) => void, create: (wanted: { name: string, parent: string }) => void }} ways
 * @returns {Offer[]}
 */
function offersFor(rows, text, current, { pick, create }) {
  const isSearch = text.trim() !== "";
  const known = findRows(rows, text).map(({ topic, depth, path }) => ({
    key: topic.id,
    label: isSearch ? path : topic.name,
    detail: topic.total ? countOf(topic.total, "pair") : "",
    depth: isSearch ? 0 : depth,
    isChosen: topic.id === current,
    run: () => pick(topic.id),
  }));
  const none = { key: "none", label: "No topic", detail: "", depth: 0, isChosen: current === "", run: () => pick("") };
  const made = isSearch ? topicToCreate(rows, text) : null;
  const making = made
    ? [
        {
          key: "new",
          label: `Make “${made.name}”`,
          detail: made.above ? `below ${made.above}` : "a new topic",
          depth: 0,
          isChosen: false,
          run: () => void create(made),
        },
      ]
    : [];
  return [...(isSearch ? [] : [none]), ...known, ...making];
}

/** Every topic with what is in it. @param {{ onClose: () => void }} props */
export function TopicsDialog({ onClose }) {
  const topics = useTopics();
  const rows = useMemo(() => tree(topics ?? []), [topics]);
  const root = topics?.find((topic) => topic.id === "") ?? null;
  const [edited, setEdited] = useState(/** @type {{ topic: Topic | null, parent: string } | null} */ (null));
  if (edited) return h(TopicEditor, { ...edited, onClose: () => setEdited(null) });
  return h(Dialog, {
    title: "Topics",
    onClose,
    footer: html`${button("New topic", () => setEdited({ topic: null, parent: "" }), { icon: "plus" })}
      <span class="shell-gap"></span>
      ${button("Close", onClose)}`,
    children: html`
      <p class="soft">A topic inherits what it does not set from the topic above it.</p>
      ${topics === null ? html`<p class="faint">Loading…</p>` : null}
      <ul class="topic-tree boxed" aria-label="Topics">
        ${root && h(TopicRow, { topic: root, topics: topics ?? [], label: "Everywhere", depth: 0, onEdit: setEdited })}
        ${rows.map(({ topic, depth, path }) =>
          h(TopicRow, {
            key: topic.id,
            topic,
            topics: topics ?? [],
            label: path,
            depth: depth + (root ? 1 : 0),
            onEdit: setEdited,
          }),
        )}
      </ul>
      ${
        topics &&
        !rows.length &&
        html`<p class="rules-empty soft">
          There are no topics yet. A topic has a system prompt, a model and tools of its own.
        </p>`
      }`,
  });
}

/**
 * @param {{ topic: Topic, topics: readonly Topic[], label: string, depth: number, onEdit: (edited: { topic: Topic |
 *   null, parent: string }) => void, key?: string }} props
 */
function TopicRow({ topic, topics, label, depth, onEdit }) {
  const isRoot = topic.id === "";
  const why = isRoot ? "" : whyKept(topics, topic);
  const [isAsking, setAsking] = useState(false);
  const marks = [
    topic.system_prompt ? "system prompt" : "",
    topic.style_directives?.length ? "style" : "",
    topic.model ?? "",
    topic.toolsets?.length ? countOf(topic.toolsets.length, "toolset") : "",
  ]
    .filter(Boolean)
    .join(" · ");
  const drop = async () => {
    if (why) return void setAsking(!isAsking);
    if (!isAsking) return void setAsking(true);
    await attempt(async () => {
      await remove(inChat(`/api/chat/topics/${encodeURIComponent(topic.id)}`));
      await fetchTopics();
      toast(`The topic “${topic.name}” is gone.`);
    });
    return undefined;
  };
  return html`<li class="topic-row" style=${{ paddingLeft: `${depth * 18 + 8}px` }}>
    <span class="topic-name">
      <span class="cut">${isRoot ? "Everywhere" : topic.name}</span>
      ${marks ? html`<span class="cut faint">${marks}</span>` : null}
    </span>
    <span
      class="number soft topic-counts"
      title=${`${countOf(topic.direct ?? 0, "pair")} in it, ${whole(topic.total ?? 0)} with those below`}
    >
      ${whole(topic.direct ?? 0)}
      ${topic.total !== topic.direct ? html` <span class="faint">/ ${whole(topic.total ?? 0)}</span>` : null}
    </span>
    <span class="topic-buttons">
      ${iconButton("plus", `New topic below ${label}`, () => onEdit({ topic: null, parent: topic.id }), {
        title: "New topic below it",
      })}
      ${iconButton("edit", `Edit ${label}`, () => onEdit({ topic, parent: topic.parent }), { title: "Edit" })}
      ${
        isRoot
          ? html`<span class="button quiet icon" aria-hidden="true"></span>`
          : html`<button
              type="button"
              class=${isAsking && !why ? "button danger" : "button quiet icon"}
              aria-label=${isAsking && !why ? `Delete ${label} now` : `Delete ${label}`}
              title=${why || "Delete"}
              onClick=${() => void drop()}
              onBlur=${() => why || setTimeout(() => setAsking(false), LATER)}
            >
              ${isAsking && !why ? "Delete" : h(Icon, { name: "trash" })}
            </button>`
      }
    </span>
    ${isAsking && why ? html`<p class="topic-why" role="alert">${why}</p>` : null}
  </li>`;
}
