// @ts-check
/** A section as a card: its name, tokens, problems, and its parts to read and to edit. */

import { dialectOf } from "../../kit/about.js";
import { button, iconButton } from "../../kit/button.js";
import { copyText } from "../../kit/copy.js";
import { LongText } from "../../kit/long-text.js";
import { memo } from "../../kit/memo.js";
import { Menu } from "../../kit/menu.js";
import { toExchange } from "../../kit/navigation.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { edit, insert, Problems } from "./actions.js";
import { band, predictTokens, short, toolSizes } from "./core/budget.js";
import { isProse, isText, placeOf } from "./core/exchange.js";
import { JsonPane, TextPane } from "./editing.js";
import { PartBody, partName } from "./part.js";

/** @import { Section, SectionPart } from "../../api-types.d.ts" */
/** @import { Problem } from "./core/exchange.js" */
/** @import { Desk } from "./desk.js" */
/** @import { Choice } from "../../kit/menu.js" */

/**
 * @typedef {object} CardProps
 * @property {Desk} desk
 * @property {Section} section
 * @property {readonly Problem[]} problems
 * @property {boolean} isActive
 * @property {boolean} isEditable whether the exchange is held
 * @property {boolean} isEdited
 * @property {boolean} isSource texts are shown as they are written
 * @property {string | null} editing the id of what is being edited of it, with "json" for its JSON
 * @property {number} position
 * @property {number} count
 * @property {string} dialect
 * @property {(id: string) => void} onActive
 * @property {string} [key]
 */

export const Card = memo(function Card(/** @type {CardProps} */ props) {
  const { desk, section, problems, isActive, isEditable, editing, position, count } = props;
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  const isNear = useNear(root, (count < 40 && position < 12) || isActive || editing !== null);
  const canEdit = isEditable && section.editable; // an edit of what is deleted restores it
  const worst = problems.some((each) => each.severity === "error") ? "error" : problems.length ? "warning" : "";
  const names = [
    "card boxed",
    `kind-${section.kind}`,
    `category-${section.category}`,
    section.deleted && "is-deleted",
    isActive && "is-active",
    worst && `has-${worst}`,
    editing !== null && "is-editing",
  ];
  /** @param {MouseEvent} event */
  const onDoubleClick = (event) => {
    if (
      !canEdit ||
      editing !== null ||
      (event.target instanceof Element && event.target.closest("button, a, input, textarea, .editor, .json"))
    )
      return;
    desk.edit({ section: section.id });
  };
  /** Enter belongs to the card itself; on a button in it, it is the button's. @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey)
      return;
    event.preventDefault();
    if (isEditable) edit(desk, section, props.dialect !== "");
  };
  return html`<article
    ref=${root}
    id=${`card-${section.id}`}
    class=${names.filter(Boolean).join(" ")}
    tabindex=${isActive ? 0 : -1}
    aria-posinset=${position + 1}
    aria-setsize=${count}
    aria-label=${`${section.label}${section.deleted ? ", deleted" : ""}${worst ? `, ${worst}` : ""}`}
    aria-current=${isActive ? "true" : null}
    onFocusIn=${() => isActive || props.onActive(section.id)}
    onDblClick=${onDoubleClick}
    onKeyDown=${onKeyDown}
  >
    ${
      isNear
        ? h(CardHead, { ...props, canEdit })
        : html`<header class="card-head in-row">
            <h3 class="card-label">${section.label}</h3>
          </header>`
    }
    ${problems.length ? h(Problems, { desk, problems, isEditable }) : null}
    ${
      section.deleted || !isNear
        ? null
        : (section.answers ?? []).map((call) => h(CallLink, { key: call.call_id, call, onGo: props.onActive }))
    }
    <div class=${isNear ? "card-body" : "card-body card-waiting"}>
      ${isNear ? h(CardBody, { ...props, canEdit }) : section.text.slice(0, 400)}
    </div>
  </article>`;
});

const NEARER = "contentvisibilityautostatechange";

/**
 * Whether a card is near the screen, or has been: only then it is worth drawing. The browser says so, because it skips
 * the contents of other cards (`content-visibility`). An observer for each of 400 cards took 3 ms of every key.
 * @param {{ current: HTMLElement | null }} root
 * @param {boolean} isAlready
 */
function useNear(root, isAlready) {
  const [isNear, setNear] = useState(isAlready);
  useEffect(() => {
    const element = root.current;
    if (isNear || !element) return undefined;
    if (!CSS.supports("content-visibility: auto")) return void setNear(true);
    const onChange = (/** @type {any} */ event) => event.skipped || setNear(true);
    element.addEventListener(NEARER, onChange);
    return () => element.removeEventListener(NEARER, onChange);
  }, [isNear]);
  return isNear || isAlready;
}

/** @param {CardProps & { canEdit: boolean }} props */
function CardHead(props) {
  const { desk, section, isEditable, isEdited, canEdit, editing } = props;
  const typed = editing === null ? null : desk.typedLength.value;
  const isTyped = typed && typed.name === section.id;
  const tokens = isTyped ? predictTokens(section.tokens ?? null, section.text.length, typed.length) : section.tokens;
  const total = (desk.view.peek()?.tokens?.estimate ?? 0) + (tokens?.tokens ?? 0) - (section.tokens?.tokens ?? 0);
  const share = tokens && total ? Math.round((tokens.tokens / total) * 100) : 0;
  return html`<header class="card-head in-row">
    <i class="card-kind" aria-hidden="true"></i>
    <h3 class="card-label cut" title=${section.pointer || "not in the document"}>${section.label}</h3>
    ${isEdited && !section.deleted ? html`<span class="chip edited">edited</span>` : null}
    ${section.deleted ? html`<span class="chip deleted">deleted</span>` : null}
    ${section.has_cache_mark ? html`<span class="chip cache" title="This section has a cache mark">cache</span>` : null}
    ${
      isEditable &&
      section.reason &&
      !section.deleted &&
      !section.parts.some((part) => part.editable) &&
      html`<span class="chip" title=${section.reason}>read-only</span>`
    }
    <span class="card-gap"></span>
    ${
      isEditable &&
      !section.deleted &&
      editing === null &&
      html`<span class="card-actions">
        ${
          canEdit &&
          iconButton("edit", `Edit ${section.label}`, () => desk.edit({ section: section.id }), {
            title: "Edit (Enter)",
          })
        }
        ${iconButton("trash", `Delete ${section.label}`, () => void desk.apply({ op: "delete", section: section.id }), {
          title: "Delete (d); it can be restored",
        })}
      </span>`
    }
    ${
      tokens &&
      html`<span
        class="card-tokens number"
        title=${band(tokens) ? `Between ${band(tokens)} tokens` : "Counted exactly"}
      >
        ${short(tokens.tokens)}
        <span class="faint"> tok${share ? ` · ${share}%` : ""}</span>
      </span>`
    }
    ${
      canEdit &&
      section.deleted &&
      editing === null &&
      iconButton("edit", `Edit ${section.label}`, () => desk.edit({ section: section.id }), {
        title: "Edit (Enter); this restores it",
      })
    }
    ${
      isEditable &&
      section.deleted &&
      button("Restore", () => void desk.apply({ op: "restore", section: section.id }), { kind: "restore" })
    }
    ${section.deleted ? null : h(Menu, { label: `More for ${section.label}`, choices: choicesOf(props) })}
  </header>`;
}

/** @param {CardProps & { canEdit: boolean }} props @returns {Choice[]} */
function choicesOf({ desk, section, isEditable, dialect }) {
  /** @type {Choice[]} */
  const choices = [
    { label: "Copy text", run: () => void copyText(section.text || section.parts.map((part) => part.text).join("\n")) },
    {
      label: "Show in Wire",
      detail: section.pointer,
      run: () => ((desk.shownPointer.value = section.pointer), toExchange(desk.id, "wire")),
    },
  ];
  if (!isEditable) return choices;
  // The calls of a reply can be changed or taken out, and no more.
  if (!dialect) return choices;
  choices.unshift({ label: "Edit as JSON…", run: () => desk.edit({ section: section.id, mode: "json" }) }, "line");
  if (!placeOf(section)) return choices;
  choices.push(
    "line",
    { label: "Duplicate", keys: "D", run: () => void desk.apply({ op: "duplicate", section: section.id }) },
    { label: "Move up", keys: "alt+up", run: () => desk.move(section.id, -1) },
    { label: "Move down", keys: "alt+down", run: () => desk.move(section.id, 1) },
    "line",
    { label: "Insert user message below", keys: "o", run: () => void insert(desk, section, "user") },
    { label: "Insert assistant message below", run: () => void insert(desk, section, "assistant") },
    "line",
    ...(dialectOf(dialect)?.roles ?? []).map((role) => ({
      label: `Role: ${role}`,
      isChosen: section.role === role,
      run: () => void desk.apply({ op: "set_role", section: section.id, role }),
    })),
  );
  return choices;
}

/** @param {{ call: import("../../api-types.d.ts").CallReference, onGo: (id: string) => void, key?: string }} props */
function CallLink({ call, onGo }) {
  const args = call.arguments.length > 160 ? `${call.arguments.slice(0, 160)}…` : call.arguments;
  return html`<button type="button" class="answered" title="Go to the call" onClick=${() => onGo(call.section)}>
    <span class="faint">answers</span> <b>${call.name}</b>
    <code class="cut">${args}</code>
  </button>`;
}

/** @param {CardProps & { canEdit: boolean }} props */
function CardBody(props) {
  const { desk, section, editing, isSource } = props;
  const isMarkdown = isProse(section) && !isSource;
  if (section.deleted && editing === null)
    return html`<div class="deleted-text">
      ${(section.text || section.parts.map((part) => part.text).join(" ")).slice(0, 240) || "(nothing to show)"}
    </div>`;
  if (editing === "json") return h(JsonPane, { desk, section });
  if (editing === section.id) {
    const others = section.parts.filter((part) => !isText(part) && part.type !== "cache_breakpoint");
    const isOfParts = section.parts.some(isText);
    return html`${h(TextPane, {
      desk,
      target: { section: section.id },
      text: section.text,
      label: section.label,
      language: isProse(section) ? "markdown" : section.parts[0]?.is_json ? "json" : "text",
      count: section.parts.filter(isText).length,
    })}
      ${isOfParts ? others.map((part) => h(PartRow, { ...props, key: part.id, part, isMarkdown })) : null}`;
  }
  const solid = section.parts.filter((part) => part.type !== "cache_breakpoint");
  const isAlone = section.parts.length === 1 && isText(section.parts[0]) && !section.parts[0].deleted;
  if (isAlone || !section.parts.length) return h(LongText, { text: section.text, isMarkdown });
  if (section.kind === "tools" || section.kind === "options") return h(Bundle, props);
  const isSingle = solid.length === 1 && !solid[0].deleted;
  return section.parts.map((part) => h(PartRow, { ...props, key: part.id, part, isMarkdown, isBare: isSingle }));
}

/**
 * @param {CardProps & { canEdit: boolean, part: SectionPart, isMarkdown: boolean, isBare?: boolean, key?: string }}
 *   props
 */
function PartRow({ desk, section, part, isMarkdown, isEditable, editing, isBare }) {
  const target = { section: section.id, part: part.id };
  if (part.type === "cache_breakpoint" && !part.deleted) return h(PartBody, { part, isMarkdown, onSet: null });
  const canEdit = isEditable && part.editable && !part.deleted;
  const isEditing = editing === part.id;
  const body = isEditing
    ? h(TextPane, {
        desk,
        target,
        text: part.text ?? "",
        label: `${partName(part)} of ${section.label}`,
        language: part.is_json ? "json" : isText(part) && isProse(section) ? "markdown" : "text",
        count: 1,
      })
    : part.deleted
      ? html`<div class="deleted-text">${(part.text ?? "").slice(0, 160) || partName(part)}</div>`
      : h(PartBody, {
          part,
          isMarkdown,
          onSet: canEdit && (part.type === "tool" || part.type === "option") ? desk.setLeaf : null,
        });
  return html`<div
    class=${`part type-${part.type} ${part.deleted ? "is-deleted" : ""}`}
    role="group"
    aria-label=${partName(part)}
  >
    ${
      isBare && isText(part)
        ? null
        : html`<div class="part-head in-row">
            <span class="part-name">${partName(part)}</span>
            ${part.call_id ? html`<code class="faint cut part-id">${part.call_id}</code>` : null}
            ${
              part.reason &&
              !part.deleted &&
              ["thinking", "tool_call", "tool_result", "text"].includes(part.type) &&
              html`<span class="faint cut" title=${part.reason}>${part.reason}</span>`
            }
            <span class="card-gap"></span>
            ${
              part.tokens != null &&
              !isBare &&
              html`<span class="card-tokens number faint">${short(part.tokens)} tok</span>`
            }
            ${h(PartActions, {
              desk,
              target,
              editLabel: canEdit && !isEditing ? `Edit ${partName(part)}` : "",
              deleteLabel: part.deleted || isBare || isEditing ? "" : `Delete ${partName(part)}`,
              isEditable,
              isDeleted: part.deleted,
            })}
          </div>`
    }
    ${body}
  </div>`;
}

/**
 * The buttons of a part; one without a label is left out.
 * @param {{ desk: Desk, target: { section: string, part: string }, editLabel: string, deleteLabel: string, isEditable:
 *   boolean, isDeleted: boolean | undefined }} props
 */
function PartActions({ desk, target, editLabel, deleteLabel, isEditable, isDeleted }) {
  if (!isEditable) return null;
  if (isDeleted)
    return html`<button
      type="button"
      class="part-action bare shown"
      onClick=${() => void desk.apply({ op: "restore", ...target })}
    >
      Restore
    </button>`;
  /** @param {string} label @param {string} words @param {() => unknown} run */
  const action = (label, words, run) =>
    label && html`<button type="button" class="part-action bare" aria-label=${label} onClick=${run}>${words}</button>`;
  return html`${action(editLabel, "Edit", () => desk.edit(target))}
  ${action(deleteLabel, "Delete", () => void desk.apply({ op: "delete", ...target }))}`;
}

/**
 * Tools and options: a line for each, with its JSON below when it is opened.
 * @param {CardProps & { canEdit: boolean }} props
 */
function Bundle(props) {
  const { section, isEditable, desk, editing } = props;
  const isOptions = section.kind === "options";
  const [open, setOpen] = useState(/** @type {string[]} */ ([]));
  const flip = (/** @type {string} */ id) =>
    setOpen(open.includes(id) ? open.filter((each) => each !== id) : [...open, id]);
  const { tools, servers } = isOptions ? { tools: new Map(), servers: [] } : toolSizes(section);
  return html`${servers.length > 1 || servers[0]?.name ? h(Servers, { servers }) : null}
  <ul class="bundle">
    ${section.parts.map((part) => {
      const text = part.text ?? "";
      const isShort = isOptions && text.length <= 80 && !/^[{[]./.test(text);
      const isOpen = open.includes(part.id) || editing === part.id;
      const target = { section: section.id, part: part.id };
      const canEdit = isEditable && part.editable && !part.deleted;
      return html`<li key=${part.id} class=${`bundle-item ${part.deleted ? "is-deleted" : ""}`}>
        <div class="bundle-line in-row">
          ${
            isShort && editing !== part.id
              ? html`<span class="bundle-name"><code>${part.name}</code></span>
                  <span class="bundle-value">
                    ${
                      part.deleted
                        ? html`<code>${text}</code>`
                        : h(PartBody, { part, isMarkdown: false, onSet: canEdit ? desk.setLeaf : null })
                    }
                  </span>`
              : html`<button
                  type="button"
                  class="bundle-name fold-name bare"
                  aria-expanded=${isOpen}
                  onClick=${() => flip(part.id)}
                >
                  <span class=${isOpen ? "json-arrow open" : "json-arrow"} aria-hidden="true">▸</span>
                  <code>${part.name || part.type}</code>
                  <span class="cut faint bundle-about">${isOpen ? "" : aboutTool(text)}</span>
                </button>`
          }
          ${isShort && editing !== part.id ? html`<span class="card-gap"></span>` : null}
          ${
            (part.tokens ?? tools.get(part.id) ?? null) !== null
              ? html`<span class="card-tokens number faint">${short(part.tokens ?? tools.get(part.id))} tok</span>`
              : null
          }
          ${h(PartActions, {
            desk,
            target,
            editLabel: canEdit && editing !== part.id && !isShort ? `Edit ${part.name} as JSON` : "",
            deleteLabel: part.deleted || editing === part.id ? "" : `Delete ${part.name}`,
            isEditable,
            isDeleted: part.deleted,
          })}
        </div>
        ${
          editing === part.id
            ? h(TextPane, { desk, target, text, label: `${part.name} as JSON`, language: "json", count: 1 })
            : isOpen && !isShort
              ? html`<div class="bundle-open">
                  ${h(PartBody, { part, isMarkdown: false, onSet: canEdit ? desk.setLeaf : null })}
                </div>`
              : null
        }
      </li>`;
    })}
  </ul>`;
}

/** @param {{ servers: readonly { name: string, tokens: number, count: number }[] }} props */
function Servers({ servers }) {
  return html`<ul class="servers" aria-label="Sizes by MCP server">
    ${servers.map(
      (each) => html`<li key=${each.name}>
        <b>${each.name || "Own tools"}</b>
        <span class="number">${short(each.tokens)} tok</span>
        <span class="faint">${each.count === 1 ? "1 tool" : `${each.count} tools`}</span>
      </li>`,
    )}
  </ul>`;
}

/** What a tool says of itself, if it is easily found. @param {string} text */
function aboutTool(text) {
  const found = /"description"\s*:\s*("(?:[^"\\]|\\.){0,160})/.exec(text);
  if (!found) return text.length > 90 ? `${text.slice(0, 90)}…` : text;
  return found[1].slice(1).replaceAll(/\\n/g, " ").replaceAll(/\\(.)/g, "$1");
}
