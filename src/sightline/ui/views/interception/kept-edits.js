// @ts-check
/** Kept edits and masks that are active, in the header of every view: what each changes, where and how often. */

import { get, isExample, onAnnounced, onKinds, onReconnect, put } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { countOf, when } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Dialog } from "../../kit/dialog.js";
import { Icon } from "../../kit/icon.js";
import { attempt, toast } from "../../kit/toast.js";
import { computed, h, html, signal, useState } from "../../vendor/preact.js";
import { describeMask, SCOPES } from "../request/masks.js";

/** @typedef {import("../request/masks.js").Mask} Mask */

const masks = signal(/** @type {readonly Mask[]} */ ([]));
const active = computed(() => masks.value.filter((mask) => !mask.is_off));
/** A mask counts as stopped after so many misses in a row: a client's request for a title is one, too. */
const STOPPED = 2;
const SOON = 400;

/** @param {Mask} mask */
function hasStopped(mask) {
  return !mask.is_off && (mask.applied ?? 0) > 0 && (mask.misses ?? 0) >= STOPPED;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Ask for them again soon: an edit was kept, undone or applied. */
export function refreshMasks() {
  clearTimeout(timer);
  timer = setTimeout(() => void load(), SOON);
}

async function load() {
  try {
    const found = /** @type {Mask[]} */ (await get("/api/masks"));
    const known = new Set(masks.value.filter(hasStopped).map((mask) => mask.id));
    for (const mask of found)
      if (hasStopped(mask) && !known.has(mask.id) && masks.value.some((each) => each.id === mask.id))
        toast("A kept edit no longer applies.", { hint: describeMask(mask) });
    masks.value = found;
  } catch {
    masks.value = []; // a server that answers from the record has none
  }
}

/** @param {readonly Mask[]} wanted */
async function save(wanted) {
  await attempt(async () => (masks.value = await put("/api/masks", wanted)));
}

/** Begin to follow; called once. The example holds nothing and keeps no edits. */
export function startKeptEdits() {
  if (isExample) return;
  onKinds(new Set(["edited", "released", "finished"]), refreshMasks);
  onAnnounced("interception", refreshMasks);
  onReconnect(refreshMasks);
  void load();
}

export function ActiveEdits() {
  const [isOpen, setOpen] = useState(false);
  const count = active.value.length;
  const stopped = active.value.filter(hasStopped).length;
  if (!count && !isOpen) return null;
  return html`<button
      type="button"
      class=${stopped ? "button kept-chip has-stopped" : "button kept-chip"}
      aria-label=${`${countOf(count, "edit")} active${stopped ? `, ${stopped} not applying` : ""}`}
      title="Kept edits change requests automatically"
      onClick=${() => setOpen(true)}
    >
      ${h(Icon, { name: stopped ? "warn" : "edit" })}
      <span class="number">${count}</span>
      <span class="kept-word">${count === 1 ? "edit active" : "edits active"}</span>
    </button>
    ${isOpen ? h(List, { onClose: () => setOpen(false) }) : null}`;
}

/** @param {{ onClose: () => void }} props */
function List({ onClose }) {
  const list = masks.value;
  /** @param {Mask} mask */
  const remove = (mask) => {
    void save(list.filter((each) => each.id !== mask.id));
    toast("No longer kept.", { action: { label: "Undo", run: () => void save(list) } });
  };
  return h(Dialog, {
    title: "Kept edits",
    onClose,
    children: html`<div class="kept-list stacked">
      <p class="soft">Kept edits change later requests automatically. Every preview includes them.</p>
      ${list.length ? null : html`<p>No edits are kept.</p>`}
      <ul>
        ${list.map((mask) => h(Row, { key: mask.id, mask, onClose, onRemove: () => remove(mask) }))}
      </ul>
    </div>`,
  });
}

/** @param {{ mask: Mask, onClose: () => void, onRemove: () => void, key?: string }} props */
function Row({ mask, onClose, onRemove }) {
  const now = useNow();
  const what = describeMask(mask);
  const figures = [
    [SCOPES[mask.scope ?? "session"], mask.name].filter(Boolean).join(" "),
    mask.created ? `since ${when(mask.created, now)}` : "",
    `applied ${countOf(mask.applied ?? 0, "time")}`,
    mask.missed ? `not found ${countOf(mask.missed, "time")}` : "",
    mask.last_exchange ? " " : "",
  ]
    .filter(Boolean)
    .join(" · ");
  const turn = () =>
    void save(masks.value.map((each) => (each.id === mask.id ? { ...each, is_off: !each.is_off } : each)));
  return html`<li class=${mask.is_off ? "is-off" : ""}>
    <label class="kept-switch">
      <input type="checkbox" role="switch" checked=${!mask.is_off} aria-label=${`Apply: ${what}`} onChange=${turn} />
    </label>
    <div class="kept-what wraps">
      <p>${what}</p>
      <p class="faint">
        ${figures}
        ${
          mask.last_exchange
            ? html`<a href=${hashOf({ view: "request", id: mask.last_exchange, tab: "diff" })} onClick=${onClose}>
                last here
              </a>`
            : null
        }
      </p>
      ${
        hasStopped(mask)
          ? html`<p class="bad" role="status">
              It no longer applies: its place was not found in the last ${countOf(mask.misses ?? 0, "request")}.
            </p>`
          : null
      }
    </div>
    ${button("Remove", onRemove, { kind: "quiet", name: `Remove: ${what}` })}
  </li>`;
}
