// @ts-check
/** Saved filters: kept by the server, so that every browser has them. */

import { get, put } from "../../kit/api.js";
import { Icon } from "../../kit/icon.js";
import { Menu } from "../../kit/menu.js";
import { NameDialog } from "../../kit/name-dialog.js";
import { go } from "../../kit/navigation.js";
import { attempt, toast, toastError } from "../../kit/toast.js";
import { h, html, signal, useEffect, useState } from "../../vendor/preact.js";

/** @import { TrafficFilter } from "../../api-types.d.ts" */
/** @import { Choice } from "../../kit/menu.js" */

const saved = signal(/** @type {readonly TrafficFilter[]} */ ([]));

/** @param {readonly TrafficFilter[]} filters */
async function save(filters) {
  saved.value = (await put("/api/filters", { filters })).filters;
}

/** @param {{ filter: string }} props */
export function FilterMenu({ filter }) {
  const [isNaming, setNaming] = useState(false);
  useEffect(() => void get("/api/filters").then((found) => (saved.value = found.filters), toastError), []);
  const list = saved.value;
  /** @param {string} name */
  const forget = async (name) => {
    if (!(await attempt(() => save(list.filter((each) => each.name !== name))))) return;
    toast(`The filter “${name}” is deleted.`, {
      action: { label: "Undo", run: () => void save(list).catch(toastError) },
    });
  };
  /** @type {Choice[]} */
  const choices = [
    ...list.map((each) => ({
      label: each.name,
      detail: each.filter,
      isChosen: each.filter === filter,
      run: () => go({ view: "traffic", filter: each.filter }),
    })),
    ...(list.length ? /** @type {Choice[]} */ (["line"]) : []),
    {
      label: "Save this filter…",
      detail: filter || "Nothing is filtered now",
      run: () => (filter ? setNaming(true) : void toast("There is no filter to save.", { hint: "Write one first." })),
    },
    ...list.map((each) => ({ label: `Delete “${each.name}”`, isDanger: true, run: () => void forget(each.name) })),
  ];
  return html`${h(Menu, { label: "Saved filters", children: h(Icon, { name: "bookmark" }), choices })}
    ${isNaming ? h(NameFilter, { filter, onClose: () => setNaming(false) }) : null}`;
}

/** @param {{ filter: string, onClose: () => void }} props */
function NameFilter({ filter, onClose }) {
  const others = (/** @type {string} */ name) =>
    saved.value.filter((each) => each.name.toLowerCase() !== name.toLowerCase());
  return h(NameDialog, {
    title: "Save the filter",
    verb: "Save",
    about: html`<p><code>${filter}</code></p>`,
    field: { maxlength: "60" },
    noteOf: (name) =>
      others(name).length < saved.value.length
        ? html`<p class="soft">A filter of that name exists; it will be replaced.</p>`
        : null,
    onSave: async (name) => {
      if (!(await attempt(() => save([...others(name), { name, filter }])))) return;
      onClose();
      toast(`Saved as “${name}”.`);
    },
    onClose,
  });
}
