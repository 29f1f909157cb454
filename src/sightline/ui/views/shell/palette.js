// @ts-check
/** Everything that can be done, and every exchange that is known, by some of its letters. */

import { when } from "../../kit/core/format.js";
import { rank } from "../../kit/core/ranking.js";
import { Dialog } from "../../kit/dialog.js";
import { Icon } from "../../kit/icon.js";
import { shortcuts } from "../../kit/keyboard.js";
import { KeyCaps } from "../../kit/keycaps.js";
import { go, toExchange } from "../../kit/navigation.js";
import { h, html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { held, lines } from "../traffic/feed.js";

/** `detail` is searched too; `aside` is what is shown of it. */
/**
 * @typedef {{ label: string, detail?: string, aside?: string, group: string, keys?: string, run: () => void }} Command
 */

const MOST = 60;
const EXCHANGES = 300;

/** @param {{ onClose: () => void }} props */
export function Palette({ onClose }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  /** @type {{ current: HTMLUListElement | null }} */
  const list = useRef(null);
  const commands = useMemo(commandsNow, []);
  const found = useMemo(() => {
    const best = rank(commands, text).slice(0, MOST);
    return text.trim()
      ? [...best, searchFor(text.trim())]
      : best
          .filter((each) => each.group !== "Exchanges")
          .concat(best.filter((each) => each.group === "Exchanges").slice(0, 8));
  }, [text]);
  useEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [chosen, found],
  );
  /** @param {Command | undefined} command */
  const run = (command) => {
    if (!command) return;
    onClose();
    queueMicrotask(command.run);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) setChosen(Math.min(Math.max(chosen + step, 0), found.length - 1));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return h(Dialog, {
    title: "Find a command",
    isBare: true,
    class: "palette",
    onClose,
    children: html`
      <div class="palette-field">
        ${h(Icon, { name: "search" })}
        <input
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant=${`palette-${chosen}`}
          aria-label="Command or exchange"
          placeholder="A command, a model, words of a request…"
          spellcheck=${false}
          autocomplete="off"
          value=${text}
          onInput=${(/** @type {Event} */ event) => {
            setText(/** @type {HTMLInputElement} */ (event.target).value);
            setChosen(0);
          }}
          onKeyDown=${onKey}
        />
        <kbd class="key">Esc</kbd>
      </div>
      <ul id="palette-list" class="palette-list" role="listbox" aria-label="Commands" ref=${list}>
        ${found.map(
          (each, index) => html`
            ${
              !text && found[index - 1]?.group !== each.group
                ? html`<li key=${`group-${each.group}`} class="palette-group" role="presentation">${each.group}</li>`
                : null
            }
            <li
              key=${index}
              id=${`palette-${index}`}
              role="option"
              aria-selected=${index === chosen}
              class="palette-item"
              onMouseMove=${() => setChosen(index)}
              onClick=${() => run(each)}
            >
              <span class="cut">${each.label}</span>
              <span class="cut faint">${each.aside ?? each.detail ?? ""}</span>
              ${each.keys ? h(KeyCaps, { keys: each.keys }) : null}
            </li>`,
        )}
      </ul>`,
  });
}

/** @returns {Command[]} */
function commandsNow() {
  const now = Date.now() / 1000;
  const waiting = held.value.map((line) => ({
    label: `Held: ${line.title || line.model || line.id}`,
    detail: line.model,
    group: "Held",
    run: () => toExchange(line.id),
  }));
  const actions = shortcuts.value.filter((each) => !each.isHidden).map((each) => ({ ...each }));
  const exchanges = lines.value.slice(0, EXCHANGES).map((line) => ({
    label: line.title || line.id,
    detail: [line.model, line.session, line.id].filter(Boolean).join(" · "),
    aside: [line.model, when(line.at, now)].filter(Boolean).join(" · "),
    group: "Exchanges",
    run: () => toExchange(line.id),
  }));
  return [...waiting, ...actions, ...exchanges];
}

/**
 * @param {string} text
 * @returns {Command}
 */
function searchFor(text) {
  const filter = text.includes(":") ? text : `text:"${text.replaceAll('"', "")}"`;
  return { label: `Filter traffic: ${filter}`, group: "Search", run: () => go({ view: "traffic", filter }) };
}
