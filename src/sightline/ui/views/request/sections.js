// @ts-check
/** The request section by section: an outline, and a card for each section. */

import { linkButton } from "../../kit/button.js";
import { copyText } from "../../kit/copy.js";
import { countOf } from "../../kit/core/format.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { LongText } from "../../kit/long-text.js";
import { memo } from "../../kit/memo.js";
import { useResource } from "../../kit/resource.js";
import { h, html, useCallback, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";
import { edit, insert, Problems } from "./actions.js";
import { Card } from "./card.js";
import { short } from "./core/budget.js";
import { problemsOf } from "./core/exchange.js";
import { rangeOf } from "./core/selection.js";
import { wireDialect } from "./desk.js";
import { Selection } from "./selection.js";

/** @import { Section } from "../../api-types.d.ts" */
/** @import { Desk } from "./desk.js" */

/** @param {{ desk: Desk }} props */
export function Sections({ desk }) {
  const view = desk.view.value;
  const sections = desk.sections.value;
  const problems = desk.problems.value;
  const editing = desk.editing.value;
  const [active, setActive] = useState(() => editing?.section ?? firstOf(sections));
  const [isSource, setSource] = useState(false);
  const cards = useRef(/** @type {HTMLElement | null} */ (null));
  const isEditable = view?.state === "held";
  const isCalls = isEditable && view?.hold?.phase === "tool_calls";
  const dialect = isCalls ? "" : wireDialect(view);
  const here = sections.some((each) => each.id === active) ? active : firstOf(sections);

  // Keys may be pressed before the next drawing: they act on what was chosen last.
  const chosen = useRef(here);
  chosen.current = here;
  const select = useCallback((/** @type {string} */ id, /** @type {ScrollLogicalPosition} */ block = "nearest") => {
    chosen.current = id;
    setActive(id);
    const card = document.getElementById(`card-${id}`);
    if (!card || card.contains(document.activeElement)) return;
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block });
  }, []);
  const mark = useCallback((/** @type {string} */ id) => select(id, "start"), []);

  const onPick = useCallback(
    (/** @type {string} */ id, /** @type {boolean} */ isRange) => {
      if (isRange) desk.pick(rangeOf(desk.sections.peek(), desk.lastPicked || chosen.current, id));
      else desk.pick([id], { isToggled: true });
    },
    [desk],
  );

  // Closing the editor puts the focus on its card.
  const before = useRef(editing);
  useLayoutEffect(() => {
    if (before.current && !editing)
      document.getElementById(`card-${before.current.section}`)?.focus({ preventScroll: true });
    if (editing) setActive(editing.section);
    before.current = editing;
  }, [editing]);

  useKeys({ desk, chosen, select, isEditable, isCalls, flipSource: () => setSource((on) => !on) });
  useLayoutEffect(() => {
    const card = document.getElementById(`card-${here}`);
    if (document.activeElement === document.body) card?.focus({ preventScroll: true });
    // What can be seen from the start is not moved: a short request is looked at from its beginning. A section that is
    // taller than the room for it begins at the top, since its middle would tell nothing.
    const bring = () => {
      const { bottom: edge = 0, height: room = 0 } = cards.current?.getBoundingClientRect() ?? {};
      const place = card?.getBoundingClientRect();
      if (place && place.bottom > edge) card?.scrollIntoView({ block: place.height > room ? "start" : "center" });
    };
    bring();
    // Sections that come into sight only now get their true height, and may push it out again.
    let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(bring)));
    return () => cancelAnimationFrame(frame);
  }, [sections.length > 0]);

  const rest = problemsOf(problems, "");
  return html`<div class="sections">
    ${h(Outline, {
      sections,
      problems,
      active: here,
      picked: desk.picked.value,
      onGo: mark,
      onPick,
      total: view?.tokens?.estimate ?? 0,
    })}
    ${rest.length ? html`<div class="cards-problems">${h(Problems, { desk, problems: rest, isEditable })}</div>` : null}
    ${isEditable && !isCalls ? h(Selection, { desk, sections, here }) : null}
    <div class="cards" ref=${cards} data-edge>
      ${
        isCalls &&
        html`${h(Conversation, { id: view.id })}
        <p class="cards-note soft">
          The reply is complete and the client has not seen it yet. Change the arguments of a call, or delete the
          call, then pass it on.
        </p>`
      }
      <div class="cards-feed" role="feed" aria-label="Sections">
      ${sections.map((section, position) =>
        h(Card, {
          key: section.id,
          desk,
          section,
          problems: problemsOf(problems, section.id),
          isActive: section.id === here,
          isEditable,
          isEdited: isEditable && desk.isEdited(section),
          isSource,
          dialect,
          editing:
            editing?.section === section.id ? (editing.mode === "json" ? "json" : (editing.part ?? section.id)) : null,
          position,
          count: sections.length,
          onActive: mark,
        }),
      )}
      </div>
      ${
        sections.length
          ? null
          : html`<p class="empty">This request has no sections to show. Wire has its exact bytes.</p>`
      }
    </div>
  </div>`;
}

/** Whether something that is selected is not deleted yet. @param {Desk} desk */
function hasLivePicked(desk) {
  return desk.sections.peek().some((section) => desk.picked.peek().has(section.id) && !section.deleted);
}

/** @param {readonly Section[]} sections */
function firstOf(sections) {
  // A conversation is mostly opened for its last words.
  return sections.findLast((each) => each.kind === "user" && !each.deleted)?.id ?? sections[0]?.id ?? "";
}

/**
 * @param {{ desk: Desk, chosen: { current: string }, select: (id: string) => void, isEditable: boolean, isCalls:
 *   boolean, flipSource: () => void }} state
 */
function useKeys({ desk, chosen, select, isEditable, isCalls, flipSource }) {
  const step = (/** @type {number} */ by) => {
    const sections = desk.sections.peek();
    const at = sections.findIndex((each) => each.id === chosen.current);
    const next = sections[Math.max(0, Math.min(sections.length - 1, at + by))];
    if (next) select(next.id);
  };
  const on = (/** @type {(section: Section) => unknown} */ act) => () => {
    const section = desk.sections.peek().find((each) => each.id === chosen.current);
    if (section) void act(section);
  };
  const whileHeld = isEditable
    ? [
        {
          keys: "e",
          label: "Edit the section",
          run: on((section) => edit(desk, section, !isCalls)),
        },
        {
          keys: "d",
          also: ["delete", "backspace"],
          label: "Delete or restore the section",
          run: on((section) =>
            desk.picked.peek().size
              ? desk.applyToPicked(hasLivePicked(desk) ? "delete" : "restore")
              : desk.apply({ op: section.deleted ? "restore" : "delete", section: section.id }),
          ),
        },
        {
          keys: "c",
          label: "Compare with the original while editing",
          run: () => (desk.isCompared.value = !desk.isCompared.peek()),
        },
      ]
    : [];
  const whole =
    isEditable && !isCalls
      ? [
          {
            keys: "D",
            label: "Duplicate the section",
            run: on((section) => desk.apply({ op: "duplicate", section: section.id })),
          },
          { keys: "alt+up", label: "Move the section up", run: on((section) => desk.move(section.id, -1)) },
          { keys: "alt+down", label: "Move the section down", run: on((section) => desk.move(section.id, 1)) },
          { keys: "o", label: "Insert a message below", run: on((section) => insert(desk, section, "user")) },
          {
            keys: "J",
            label: "Edit the section as JSON",
            run: on((section) => !section.deleted && desk.edit({ section: section.id, mode: "json" })),
          },
        ]
      : [];
  useShortcuts(
    "Sections",
    [
      { keys: "j", label: "Next section", run: () => step(1) },
      { keys: "k", label: "Previous section", run: () => step(-1) },
      { keys: "home", label: "First section", run: () => step(-1e9) },
      { keys: "end", label: "Last section", run: () => step(1e9) },
      { keys: "m", label: "Show texts rendered or as written", run: flipSource },
      { keys: "y", label: "Copy the section's text", run: on((section) => copyText(section.text)) },
      ...whileHeld,
      ...whole,
    ],
    [desk, isEditable, isCalls],
  );
}

/**
 * @typedef {{ sections: readonly Section[], problems: Map<string, readonly any[]>, active: string, picked:
 *   ReadonlySet<string>, onGo: (id: string) => void, onPick: (id: string, isRange: boolean) => void, total: number }}
 *   OutlineProps
 */

const Outline = memo(function Outline(/** @type {OutlineProps} */ props) {
  const { sections, problems, active, picked, onGo, onPick, total } = props;
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  // Of a long outline the part around the active row is drawn first, the rest when there is time.
  const [isWhole, setWhole] = useState(sections.length < 80);
  useEffect(() => {
    if (isWhole) return undefined;
    const timer = setTimeout(() => setWhole(true), 120);
    return () => clearTimeout(timer);
  }, []);
  const at = sections.findIndex((each) => each.id === active);
  const shown = isWhole ? sections : sections.slice(Math.max(0, at - 40), at + 40);
  useEffect(
    () => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }),
    [active, isWhole],
  );
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = by && !event.altKey ? sections[sections.findIndex((each) => each.id === active) + by] : null;
    if (!next) return;
    event.preventDefault();
    onGo(next.id);
    /** @type {HTMLElement | null | undefined} */ (list.current?.querySelector(`[data-section="${next.id}"]`))?.focus();
  };
  return html`<nav class="outline" aria-label="Outline" ref=${list} onKeyDown=${onKey}>
    <ol>
      ${shown.map((section) =>
        h(OutlineRow, {
          key: section.id,
          section,
          isActive: section.id === active,
          isPicked: picked.has(section.id),
          worst: problemsOf(problems, section.id).some((each) => each.severity === "error")
            ? "error"
            : problemsOf(problems, section.id).length
              ? "warning"
              : "",
          onGo,
          onPick,
          share: shareOf(section, total),
        }),
      )}
    </ol>
  </nav>`;
});

/**
 * Percent of the whole, coarse enough that an edit elsewhere does not draw every row anew.
 * @param {Section} section
 * @param {number} total
 */
function shareOf(section, total) {
  return section.tokens && total ? Math.min(100, Math.round((section.tokens.tokens / total) * 200) / 2) : 0;
}

/**
 * @typedef {{ section: Section, isActive: boolean, isPicked: boolean, worst: string, onGo: (id: string) => void,
 *   onPick: (id: string, isRange: boolean) => void, share: number }} RowProps
 */

const OutlineRow = memo(function OutlineRow(/** @type {RowProps} */ props) {
  const { section, isActive, isPicked, worst, onGo, onPick, share } = props;
  /** With control it is selected, with shift all from the last one to it. @param {MouseEvent} event */
  const onClick = (event) => {
    if (event.shiftKey || event.ctrlKey || event.metaKey) onPick(section.id, event.shiftKey);
    else onGo(section.id);
  };
  return html`<li>
    <button
      type="button"
      data-section=${section.id}
      tabindex=${isActive ? 0 : -1}
      class=${[
        `outline-row bare in-row kind-${section.kind}`,
        section.deleted && "is-deleted",
        isPicked && "is-picked",
        worst && `has-${worst}`,
      ]
        .filter(Boolean)
        .join(" ")}
      aria-pressed=${isPicked ? "true" : null}
      aria-current=${isActive ? "true" : null}
      onClick=${onClick}
    >
      <i class="card-kind" aria-hidden="true"></i>
      <span class="cut">${section.label}</span>
      <span class="number faint">${section.tokens ? short(section.tokens.tokens) : ""}</span>
      <span class="outline-share" aria-hidden="true"><i style=${{ width: `${share}%` }}></i></span>
    </button>
  </li>`;
});

/** So many of the last messages are shown at once. */
const LAST = 4;
const SKIPPED = ["tools", "options"];

/**
 * What led to held tool calls: the conversation that was sent, and what the model said before it called.
 * @param {{ id: string }} props
 */
function Conversation({ id }) {
  const [isWhole, setWhole] = useState(false);
  const path = /** @type {const} */ (`/api/exchanges/${encodeURIComponent(id)}`);
  const { value, trouble } = useResource(`${path}/conversation`);
  const { value: answer } = useResource(`${path}/reply`);
  if (trouble) return html`<p class="soft">The conversation could not be loaded: ${trouble.message}</p>`;
  if (!value) return html`<p class="faint" role="status">Loading the conversation…</p>`;
  const sections = value.sections.filter((each) => !SKIPPED.includes(each.kind));
  const shown = isWhole ? sections : sections.slice(-LAST);
  const parts = /** @type {{ type: string, text?: string }[]} */ (answer?.reply?.parts ?? []);
  const said = parts.filter((part) => part.type === "text").map((part) => part.text ?? "");
  return html`<section class="led-here stacked" aria-label="The conversation that led to these calls">
    ${
      shown.length < sections.length &&
      linkButton(`Show all of the conversation: ${countOf(sections.length - shown.length, "earlier message")}`, () =>
        setWhole(true),
      )
    }
    ${shown.map((each) =>
      h(Utterance, {
        key: each.id,
        label: each.label,
        text: each.text || each.parts.map((part) => part.text).join("\n"),
      }),
    )}
    ${said.length ? h(Utterance, { label: "Reply", text: said.join("\n") }) : null}
  </section>`;
}

/** @param {{ label: string, text: string, key?: string }} props */
function Utterance({ label, text }) {
  return html`<div class="led-message">
    <h3 class="card-label">${label}</h3>
    ${text ? h(LongText, { text, isMarkdown: false, lines: 8 }) : html`<p class="faint">Nothing to read.</p>`}
  </div>`;
}
