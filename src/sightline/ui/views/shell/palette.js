// @ts-check
/** The command palette: every command, and every exchange that is loaded. */

import { combobox } from "../../kit/combobox.js";
import { when } from "../../kit/core/format.js";
import { rank } from "../../kit/core/ranking.js";
import { shortcuts } from "../../kit/keyboard.js";
import { KeyCaps } from "../../kit/keycaps.js";
import { go, toExchange } from "../../kit/navigation.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";
import { held, lines } from "../traffic/feed.js";

/**
 * `detail` is searched too; `aside` is what is shown of it.
 * @typedef {{ label: string, detail?: string, aside?: string, group: string, keys?: string, run: () => void }} Command
 */

const MOST = 60;
const EXCHANGES = 300;

/** @param {{ onClose: () => void }} props */
export function Palette({ onClose }) {
  const [text, setText] = useState("");
  const commands = useMemo(commandsNow, []);
  const found = useMemo(() => {
    const best = rank(commands, text).slice(0, MOST);
    return text.trim()
      ? [...best, searchFor(text.trim())]
      : best
          .filter((each) => each.group !== "Exchanges")
          .concat(best.filter((each) => each.group === "Exchanges").slice(0, 8));
  }, [text]);
  return combobox({
    id: "palette",
    title: "Find a command",
    label: "Command or exchange",
    listLabel: "Commands",
    placeholder: "A command, a model, words of a request…",
    text,
    onText: setText,
    items: found,
    keyOf: (_, index) => String(index),
    headingOf: (each, index) =>
      !text && found[index - 1]?.group !== each.group
        ? html`<li key=${`group-${each.group}`} class="palette-group" role="presentation">${each.group}</li>`
        : null,
    renderItem: (each) => html`<span class="cut">${each.label}</span>
      <span class="cut faint">${each.aside ?? each.detail ?? ""}</span>
      ${each.keys ? h(KeyCaps, { keys: each.keys }) : null}`,
    onTake: (command) => {
      onClose();
      queueMicrotask(command.run);
    },
    onClose,
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

/** @param {string} text @returns {Command} */
function searchFor(text) {
  const filter = text.includes(":") ? text : `text:"${text.replaceAll('"', "")}"`;
  return { label: `Filter traffic: ${filter}`, group: "Search", run: () => go({ view: "traffic", filter }) };
}
