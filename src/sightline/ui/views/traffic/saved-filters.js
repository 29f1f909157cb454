// @ts-check
/** Saved filters: kept by the server, so that every browser has them. */

import { get, put } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { textField } from "../../kit/fields.js";
import { Dialog } from "../../kit/dialog.js";
import { Icon } from "../../kit/icon.js";
import { Menu } from "../../kit/menu.js";
import { go } from "../../kit/navigation.js";
import { toast, toastError } from "../../kit/toast.js";
import { h, html, signal, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/preact.js";

/** @import { TrafficFilter } from "../../api-types.d.ts" */
/** @import { Choice } from "../../kit/menu.js" */

/** @type {import("../../vendor/preact.js").Signal<readonly TrafficFilter[]>} */
const saved = signal([]);

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
    try {
      await save(list.filter((each) => each.name !== name));
      toast(`The filter “${name}” is deleted.`, {
        action: { label: "Undo", run: () => void save(list).catch(toastError) },
      });
    } catch (error) {
      toastError(error);
    }
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
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => field.current?.focus(), []);
  const [name, setName] = useState("");
  const wanted = name.trim();
  const others = saved.value.filter((each) => each.name.toLowerCase() !== wanted.toLowerCase());
  /** @param {Event} event */
  const onSubmit = async (event) => {
    event.preventDefault();
    try {
      await save([...others, { name: wanted, filter }]);
      onClose();
      toast(`Saved as “${wanted}”.`);
    } catch (error) {
      toastError(error);
    }
  };
  return h(Dialog, {
    title: "Save the filter",
    onClose,
    children: html`<form class="name-filter" onSubmit=${onSubmit}>
      <p><code>${filter}</code></p>
      <label>
        <span class="soft">Name</span>
        ${textField(name, setName, { ref: field, maxlength: "60" })}
      </label>
      ${
        others.length < saved.value.length
          ? html`<p class="soft">A filter of that name exists; it will be replaced.</p>`
          : null
      }
      <div class="name-actions">
        <button type="submit" class="button primary" disabled=${!wanted}>Save</button>
        ${button("Cancel", onClose, { kind: "quiet" })}
      </div>
    </form>`,
  });
}
