// @ts-check
/** The dialog that picks a model. */

import { about } from "../../kit/about.js";
import { combobox } from "../../kit/combobox.js";
import { short } from "../../kit/core/format.js";
import { rank } from "../../kit/core/ranking.js";
import { Icon } from "../../kit/icon.js";
import { h, html, useMemo, useState } from "../../vendor/preact.js";

const MOST = 80;

/** @param {{ title: string, current: string, onPick: (model: string) => void, onClose: () => void }} props */
export function ModelPicker({ title, current, onPick, onClose }) {
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
