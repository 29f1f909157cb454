// @ts-check
/**
 * “Share”: exchanges as a file, with a step before that lists what should not leave and what is written instead.
 * What was written is searched once more by the server before this page gets it.
 */

import { about } from "../../kit/about.js";
import { postForFile, upload } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { copyText } from "../../kit/copy.js";
import { countOf, whole } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { saveBlob } from "../../kit/download.js";
import { checkbox, textField } from "../../kit/fields.js";
import { segmentControl } from "../../kit/segmented.js";
import { attempt, toast } from "../../kit/toast.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";
import { filter as shown, showFilter } from "./feed.js";

/** @import { SectionShown, SharePreview } from "../../api-types.d.ts" */
/** @import { Selection } from "./forget.js" */

const SECTIONS = /** @type {const} */ ([
  ["system", "system prompts"],
  ["user", "what users wrote"],
  ["assistant", "answers"],
  ["thinking", "thinking"],
  ["calls", "arguments of tool calls"],
  ["results", "tool results"],
  ["tools", "descriptions of tools"],
  ["attachments", "pictures and files"],
]);
const SOON = 300;

/** @param {object} order */
const ask = (order) => postForFile("/api/share", order);

/**
 * `what` names what is shared, as in “this request”.
 * @param {{ wanted: Selection, what: string, onClose: () => void }} props
 */
export function Share({ wanted, what, onClose }) {
  const [form, setForm] = useState("html");
  const [isRedacted, setRedacted] = useState(true);
  const [kinds, setKinds] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  // Sections that are not treated as others of their kind, by id, each with its kind.
  const [others, setOthers] = useState(/** @type {ReadonlyMap<string, string>} */ (new Map()));
  const [kept, setKept] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const [pattern, setPattern] = useState("");
  const [preview, setPreview] = useState(/** @type {SharePreview | null} */ (null));
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const single = [...others];
  const stays = single.filter(([, kind]) => kinds.has(kind)).map(([id]) => id);
  const order = {
    ...wanted,
    as: form,
    redact: isRedacted,
    sections: [...kinds, ...single.filter(([, kind]) => !kinds.has(kind)).map(([id]) => id)],
    patterns: pattern.trim() ? [pattern.trim()] : [],
    keep: stays,
  };
  /** @param {string} kind */
  const toggleKind = (kind) => {
    setKinds(toggle(kinds, kind));
    setOthers(new Map(single.filter(([, each]) => each !== kind)));
  };
  /** @param {SectionShown} section */
  const isLeftOut = ({ id, kind }) => kinds.has(kind) !== others.has(id);
  /** @param {SectionShown} section */
  const toggleSection = ({ id, kind }) => {
    const next = new Map(others);
    if (!next.delete(id)) next.set(id, kind);
    setOthers(next);
  };
  // What is kept of the values is left out of the question, so that its row stays and can be chosen again.
  useEffect(() => {
    let isLate = false;
    const timer = setTimeout(async () => {
      try {
        const found = await (await ask({ ...order, preview: true })).json();
        if (!isLate) {
          setPreview(found);
          setTrouble("");
        }
      } catch (error) {
        if (!isLate) setTrouble(/** @type {Error} */ (error).message);
      }
    }, SOON);
    return () => {
      isLate = true;
      clearTimeout(timer);
    };
  }, [isRedacted, kinds, others, pattern]);
  /** @param {(answer: Response) => Promise<void>} use */
  const make = async (use) => {
    setBusy(true);
    if (await attempt(async () => use(await ask({ ...order, keep: [...stays, ...kept] })))) onClose();
    else setBusy(false);
  };
  const save = () =>
    make(async (answer) => {
      const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "sightline";
      saveBlob(await answer.blob(), name);
      toast(`${name} is saved.`);
    });
  const copy = () => make(async (answer) => void (await copyText(await answer.text())));
  const forms = about.value.formats ?? [];
  const chosen = forms.find((each) => each.name === form);
  const isReady = Boolean(preview?.exchanges) && !isBusy && !trouble;
  const buttons = html`${button("Cancel", onClose)}
    ${chosen?.is_text ? button("Copy", () => void copy(), { isDisabled: !isReady }) : null}
    ${button(isBusy ? "Writing…" : "Save file", () => void save(), { kind: "primary", isDisabled: !isReady })}`;
  return h(Dialog, {
    title: `Share ${what}`,
    onClose,
    footer: buttons,
    children: html`<div data-view="traffic"><div class="share stacked">
      ${segmentControl({
        label: "Format",
        value: form,
        choices: forms.map(({ name, label }) => ({ value: name, label })),
        onChange: setForm,
      })}
      <p class="soft">${chosen?.about}</p>
      ${checkbox("Replace keys, addresses, phone numbers, user names and internal hosts", isRedacted, setRedacted)}
      ${
        isRedacted
          ? html`<fieldset class="share-sections">
                <legend class="soft">Leave out</legend>
                ${SECTIONS.map(([kind, label]) =>
                  checkbox(label, kinds.has(kind), () => toggleKind(kind), { key: kind }),
                )}
              </fieldset>
              ${h(SingleSections, { preview, isLeftOut, onToggle: toggleSection })}
              <label class="share-pattern">
                <span class="soft">Also replace what matches this regular expression</span>
                ${textField(pattern, setPattern, { kind: "mono", placeholder: "TICKET-\\d+", spellcheck: false })}
              </label>`
          : html`<p class="note warn">
              Everything that people and models wrote will be in it as it is. Credentials of requests are never
              recorded.
            </p>`
      }
      ${trouble ? html`<p class="bad" role="alert">${trouble}</p>` : null}
      ${
        preview
          ? h(Preview, { preview, isRedacted, kept, onKeep: (value) => setKept(toggle(kept, value)) })
          : html`<p class="soft" role="status">Looking through it…</p>`
      }
    </div></div>`,
  });
}

/** @param {ReadonlySet<string>} values @param {string} value @returns {ReadonlySet<string>} */
function toggle(values, value) {
  const next = new Set(values);
  if (!next.delete(value)) next.add(value);
  return next;
}

/**
 * Sections to leave out one by one, or to keep although their kind is left out.
 * @param {{ preview: SharePreview | null, isLeftOut: (section: SectionShown) => boolean,
 *   onToggle: (section: SectionShown) => void }} props
 */
function SingleSections({ preview, isLeftOut, onToggle }) {
  const [words, setWords] = useState("");
  if (!preview?.sections.length) return null;
  const sought = words.trim().toLowerCase();
  const shown = preview.sections.filter((each) => `${each.kind} ${each.label}`.toLowerCase().includes(sought));
  const count = preview.sections.filter(isLeftOut).length;
  const more = preview.all_sections - preview.sections.length;
  return html`<details class="share-single">
    <summary>Choose sections one by one${count ? html` · <b>${countOf(count, "section")} left out</b>` : ""}</summary>
    ${textField(words, setWords, { label: "Find a section", type: "search", placeholder: "Find a section" })}
    <ul aria-label="Sections">
      ${shown.map(
        (each) => html`<li key=${each.id}>
          <label class="check" title=${each.label}>
            <input type="checkbox" checked=${isLeftOut(each)} onChange=${() => onToggle(each)} />
            <span class="soft share-kind">${each.kind}</span>
            <span class="cut">${each.label}</span>
            <span class="soft number">${whole(each.characters)}</span>
          </label>
        </li>`,
      )}
    </ul>
    ${shown.length ? null : html`<p class="soft">No section has these words.</p>`}
    ${more > 0 ? html`<p class="soft">${countOf(more, "more section")} not listed. A filter leaves fewer.</p>` : null}
  </details>`;
}

/**
 * @param {{ preview: SharePreview, isRedacted: boolean, kept: ReadonlySet<string>, onKeep: (value: string) => void }}
 *   props
 */
function Preview({ preview, isRedacted, kept, onKeep }) {
  if (!preview.exchanges) return html`<p class="soft" role="status">No request matches.</p>`;
  const found = preview.found.filter((each) => each.kind !== "section"); // those have a list of their own
  return html`<div class="share-preview stacked">
    <p role="status">
      <b>${countOf(preview.exchanges, "request")}</b>${
        isRedacted ? `, ${found.length ? countOf(found.length, "value") : "nothing"} to replace` : ""
      }
    </p>
    ${
      found.length
        ? html`<div class="share-found">
            <table aria-label="What is replaced">
              <thead>
                <tr>
                  <th scope="col">Replace</th>
                  <th scope="col">Kind</th>
                  <th scope="col">Found</th>
                  <th scope="col">Written instead</th>
                  <th scope="col" class="number">Places</th>
                </tr>
              </thead>
              <tbody>
                ${found.map(
                  (
                    each,
                  ) => html`<tr key=${`${each.kind} ${each.stand_in}`} class=${kept.has(each.value) ? "is-kept" : ""}>
                    <td>
                      <input
                        type="checkbox"
                        aria-label=${`Replace ${each.value}`}
                        checked=${!kept.has(each.value)}
                        disabled=${each.is_cut}
                        onChange=${() => onKeep(each.value)}
                      />
                    </td>
                    <td>${each.kind}</td>
                    <td class="mono cut" title=${each.value}>${each.value}${each.is_cut ? "…" : ""}</td>
                    <td class="mono cut" title=${each.stand_in}>${kept.has(each.value) ? "stays" : each.stand_in}</td>
                    <td class="number">${each.places}</td>
                  </tr>`,
                )}
              </tbody>
            </table>
          </div>`
        : null
    }
  </div>`;
}

/** Read an archive of Sightline, a HAR file or a plug-in’s into the record. @param {File} file */
export async function importFile(file) {
  await attempt(async () => {
    const { exchanges, known, others } = await upload("/api/import", file);
    const more = [
      known ? `${countOf(known, "request")} already on record.` : "",
      others ? `${countOf(others, "request")} for no model left out.` : "",
    ];
    toast(`${countOf(exchanges, "request")} imported.`, { hint: more.filter(Boolean).join(" ") });
    void showFilter(shown.value);
  });
}

/** Let the user choose a file to import. */
export function chooseImport() {
  const field = document.createElement("input");
  field.type = "file";
  // Which names the files of a plug-in’s format have is not known.
  if (about.value.formats?.every((each) => each.is_built_in)) field.accept = ".jsonl,.har,.json,application/json";
  field.addEventListener("change", () => field.files?.[0] && void importFile(field.files[0]));
  field.click();
}
