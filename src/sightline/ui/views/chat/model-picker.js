// @ts-check
/** A model by some of its letters. */

import { about } from "../../kit/about.js";
import { short } from "../../kit/core/format.js";
import { rank } from "../../kit/core/ranking.js";
import { Dialog } from "../../kit/dialog.js";
import { Icon } from "../../kit/icon.js";
import { h, html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";

const MOST = 80;

/** @param {{ title: string, current: string, onPick: (model: string) => void, onClose: () => void }} props */
export function ModelPicker({ title, current, onPick, onClose }) {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
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
    const best = ordered.slice(0, MOST);
    // A model that the catalogue does not know can still be asked for by its name.
    const own = words.trim();
    return own && !known.some((each) => each.id === own || each.name === own)
      ? [
          ...best,
          {
            id: own,
            name: own,
            label: own,
            detail: "as written",
            provider: "",
            isReady: true,
            context_window: undefined,
          },
        ]
      : best;
  }, [words, models]);
  useEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [chosen, found],
  );
  /** @param {number} index */
  const pick = (index) => {
    const model = found[index];
    if (!model) return;
    onClose();
    onPick(model.name);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) setChosen(Math.min(Math.max(chosen + step, 0), found.length - 1));
    else if (event.key === "Enter") pick(chosen);
    else return;
    event.preventDefault();
  };
  return h(Dialog, {
    title,
    isBare: true,
    class: "palette",
    onClose,
    children: html`
      <p class="palette-title">${title}</p>
      <div class="palette-field">
        ${h(Icon, { name: "search" })}
        <input
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="model-list"
          aria-activedescendant=${`model-${chosen}`}
          aria-label="Model"
          placeholder="A model's name"
          spellcheck=${false}
          autocomplete="off"
          value=${words}
          onInput=${(/** @type {Event} */ event) => {
            setWords(/** @type {HTMLInputElement} */ (event.target).value);
            setChosen(0);
          }}
          onKeyDown=${onKey}
        />
        <kbd class="key">Esc</kbd>
      </div>
      <ul id="model-list" class="palette-list" role="listbox" aria-label="Models" ref=${list}>
        ${found.map(
          (each, index) => html`<li
            key=${each.name}
            id=${`model-${index}`}
            role="option"
            aria-selected=${index === chosen}
            class=${each.isReady ? "palette-item" : "palette-item is-missing"}
            onMouseMove=${() => setChosen(index)}
            onClick=${() => pick(index)}
          >
            <span class="cut">${each.id}</span>
            <span class="cut faint">
              ${each.detail}
              ${each.isReady ? "" : ", no key"}
              ${each.context_window ? ` · ${short(each.context_window)}` : ""}
            </span>
            ${each.id === current || each.name === current ? h(Icon, { name: "check" }) : null}
          </li>`,
        )}
        ${found.length ? null : html`<li class="palette-item faint" role="presentation">No model is known.</li>`}
      </ul>`,
  });
}
